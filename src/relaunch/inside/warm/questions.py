"""Other programs that are only asked a question, and what their answers depend on.

Of git, only questions that `HEAD`, refs and settings answer: what looks at the files of the project
is not known.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from .ledger import Ledger

_OF_THE_MACHINE = frozenset(
    ("uname", "ldconfig", "/sbin/ldconfig", "lscpu", "nproc", "hostname", "whoami", "getconf",
     "nvidia-smi", "rocm-smi", "stty", "tput")
)  # fmt: skip
"""Programs that only tell about the machine."""
_GIT = ("git", "/usr/bin/git", "/usr/local/bin/git", "/bin/git")
_ASKED = frozenset(
    (
        "rev-parse HEAD",
        "rev-parse --verify HEAD",
        "rev-parse --short HEAD",
        "rev-parse --short=7 HEAD",
        "rev-parse --short=8 HEAD",
        "rev-parse --abbrev-ref HEAD",
        "rev-parse --show-toplevel",
        "rev-parse --git-dir",
        "rev-parse --is-inside-work-tree",
        "branch --show-current",
        "symbolic-ref HEAD",
        "symbolic-ref --short HEAD",
    )
)
_IDLE = (
    "GIT_SSL", "GIT_SSH", "GIT_HTTP", "GIT_PROXY", "GIT_AUTHOR", "GIT_COMMITTER", "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_ASKPASS", "GIT_TERMINAL_PROMPT", "GIT_MERGE",
)  # fmt: skip
"""Beginnings of variables that change no answer."""
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 /._=-")
"""Letters that mean nothing to a shell."""
_MOST = 64


def is_known(ledger: Ledger, words: Sequence[str], cwd: Any, env: Any) -> bool:
    """Tell whether it is known what a program's answer depends on; then that is noted."""
    words = _without_shell(words)
    if words[:1] and words[0].removeprefix("/usr").removeprefix("/bin/") in _OF_THE_MACHINE:
        return True
    if words[:1] and words[0] in _GIT:
        return _ask_git(ledger, words[1:], os.fsdecode(cwd or os.getcwd()), env)
    return False


def words_of(command: Any) -> list[str]:
    """Return the words of a command, which may be one path."""
    if isinstance(command, (str, bytes)) or hasattr(command, "__fspath__"):
        return [os.fsdecode(command)]
    return [os.fsdecode(word) for word in command]


def _without_shell(words: Sequence[str]) -> Sequence[str]:
    """Return what a shell would run, if it is a plain command; as of `os.system`, which has one."""
    if len(words) == 1 and " " in words[0]:
        words = ("sh", "-c", words[0])
    if len(words) == 3 and words[0] in ("/bin/sh", "sh") and words[1] == "-c":
        return words[2].split() if _PLAIN.issuperset(words[2]) else ()
    return words


def _ask_git(ledger: Ledger, words: Sequence[str], cwd: str, env: Mapping[Any, Any] | None) -> bool:
    names = os.environ if env is None else [os.fsdecode(name) for name in env]
    if any(name.startswith("GIT_") and not name.startswith(_IDLE) for name in names):
        return False
    if words[:1] == ["-C"] and len(words) > 2:
        cwd, words = os.path.join(cwd, words[1]), words[2:]
    if " ".join(words) not in _ASKED:
        return False
    folder = os.path.realpath(os.path.join(os.getcwd(), cwd))
    if any("include" in _text(ledger, path) for path in _settings()):
        return False
    for place in _upwards(folder):
        ledger.look(ledger.full(f"{place}/HEAD"))
        found = f"{place}/.git"
        ledger.look(ledger.full(found))
        if os.path.exists(f"{place}/HEAD"):
            return False  # it may be a repository itself
        if os.path.exists(found):
            ledger.ask(ledger.full(place))
            return _read_repository(ledger, found, "--short" in " ".join(words))
    return True


def _read_repository(ledger: Ledger, git: str, short: bool) -> bool:
    """Note all that tells where HEAD is; False where that is told in another way."""
    if os.path.isfile(git):
        kind, _, path = _text(ledger, git).strip().partition(": ")
        if kind != "gitdir":
            return False
        git = os.path.join(os.path.dirname(git), path)
    shared = os.path.join(git, _text(ledger, f"{git}/commondir").strip() or ".")
    ledger.ask(ledger.full(git))
    head = _text(ledger, f"{git}/HEAD").strip()
    if head.startswith("ref: "):
        ref = head[5:]
        if _text(ledger, f"{shared}/{ref}").startswith("ref:"):
            return False
    settings = _text(ledger, f"{shared}/config") + _text(ledger, f"{git}/config.worktree")
    for name in ("packed-refs", "objects/info/alternates", "info/grafts"):
        _text(ledger, f"{shared}/{name}")
    if short:  # how short a name can be depends on how many there are
        ledger.list(ledger.full(f"{shared}/objects/pack"), (), False)
    return "include" not in settings and "refstorage" not in settings.lower()


def _settings() -> Iterator[str]:
    home = os.environ.get("HOME", "")
    yield "/etc/gitconfig"
    yield f"{home}/.gitconfig"
    yield os.path.join(os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config", "git/config")


def _text(ledger: Ledger, path: str) -> str:
    """Read a file and note that; empty if there is none."""
    ledger.read(ledger.full(path), digest=True)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _upwards(folder: str) -> Iterator[str]:
    for _ in range(_MOST):
        yield folder.rstrip("/")
        if folder == "/":
            return
        folder = os.path.dirname(folder)
