"""The environment of every git that we call: it starts no program, asks nobody, fetches nothing.

A repository's own settings can name programs: hooks, filters, a monitor of files, ways to reach
others. To read or restore code none of them is needed, and they may have come with it. The settings
of the user (`~/.gitconfig`) hold otherwise. Filters have names of their own: `without_filters`
takes them out, and whatever prints a difference says `NO_DRIVERS`.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NO_DRIVERS = ("--no-ext-diff", "--no-textconv")
"""For `diff`, `log -p` and `show`: no program of the repository's turns files into text."""
ALONE = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_ATTR_NOSYSTEM": "1"}
"""For repositories of ours: all their settings are in their own file."""
_SILENT = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",  # older ones do not know GIT_NO_LAZY_FETCH
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": ":",
}
_SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.sshCommand=false",
    "core.alternateRefsCommand=:", "core.askPass=", "credential.helper=", "log.showSignature=false",
    "commit.gpgSign=false", "submodule.recurse=false", "gc.auto=0", "maintenance.auto=false",
    "safe.bareRepository=explicit",  # one among the files of a clone is never taken for its own
)  # fmt: skip
_PARAMETERS = "GIT_CONFIG_PARAMETERS"  # what `git -c` sets; older ones know no GIT_CONFIG_COUNT


def git_env(
    base: Mapping[str, str] | None = None, *, kept: Iterable[str] = (), alone: bool = False
) -> dict[str, str]:
    """Return the environment for git: without the user's variables of git but for those `kept`.

    `kept` are beginnings of names. `alone` reads no settings file but the repository's.
    """
    env = os.environ if base is None else base
    wanted = tuple(kept)
    found = {
        name: value
        for name, value in env.items()
        if not name.startswith("GIT_") or (wanted and name.startswith(wanted))
    }
    ours = " ".join(f"'{setting}'" for setting in _SETTINGS)
    said = {_PARAMETERS: f"{found.get(_PARAMETERS, '')} {ours}".strip()}
    return {**found, **_SILENT, **said, **(ALONE if alone else {})}


def with_settings(env: dict[str, str], settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Add settings of git to an environment, over those of any file."""
    told = env.get("GIT_CONFIG_COUNT", "")
    count = int(told) if told.isascii() and told.isdecimal() else 0
    for name, value in settings:
        env[f"GIT_CONFIG_KEY_{count}"] = name
        env[f"GIT_CONFIG_VALUE_{count}"] = value
        count += 1
    env["GIT_CONFIG_COUNT"] = str(count)
    return env


def without_filters(listed: str) -> list[tuple[str, str]]:
    """Return settings that undo the filters which a repository itself names; pure.

    `listed` is what `git config -z --show-scope --get-regexp ^filter\\\\.` says. Those of the user
    remain: git-lfs is usually one.
    """
    words = listed.split("\0")
    own: dict[str, str] = {}
    theirs: set[str] = set()
    for scope, setting in zip(words[::2], words[1::2], strict=False):
        name, _, value = setting.partition("\n")
        if scope in ("local", "worktree"):
            theirs.add(name)
        else:
            own[name] = value
    drivers = {name.rpartition(".")[0] for name in theirs}
    keys = (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
    return [
        (f"{driver}.{key}", own.get(f"{driver}.{key}", nothing))
        for driver in sorted(drivers)
        for key, nothing in keys
    ]
