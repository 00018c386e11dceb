"""The user's repository, and the one way in which git is asked about it: nothing is ever written.

The index is not refreshed, no hook, pager or prompt is started, and nothing is fetched.
"""

from __future__ import annotations

import os

from relaunch.errors import RelaunchError, UsageError
from relaunch.proc.capture import capture, complaint
from relaunch.proc.git import ALONE, git_env, with_settings, without_filters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from relaunch.proc.capture import Captured

_KEPT = (
    "GIT_CEILING_DIRECTORIES", "GIT_CONFIG", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH",
    "GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE",
)  # fmt: skip
"""The beginnings of git's variables that stay the user's; others would lead us elsewhere."""


class Repository:
    """A work tree of the user, and the git directory that it shares with its linked worktrees."""

    def __init__(self, *, top: str, common: str) -> None:
        """Use what `open_repository` found."""
        self.top = top
        self.common = common

    @property
    def is_shallow(self) -> bool:
        """Tell whether the history is cut, as after `git clone --depth`."""
        try:
            return os.path.getsize(os.path.join(self.common, "shallow")) > 0
        except OSError:
            return False

    def git(self, *args: str, data: bytes = b"") -> bytes:
        """Run git at the top and return its output; RelaunchError with git's own words."""
        return self._told(self.try_git(*args, data=data), args[0])

    def _told(self, done: Captured, verb: str) -> bytes:
        if done.code == 0:
            return done.out
        if b"promisor remote" in done.err or b"lazy fetching disabled" in done.err:
            raise RelaunchError(
                f"git {verb} in {self.top}: objects are missing, this is a partial clone",
                hint="git fetch --refetch --no-filter",
            )
        raise RelaunchError(f"git {verb} in {self.top}: {complaint(done)}")

    def try_git(self, *args: str, data: bytes = b"", plain: bool = False) -> Captured:
        """Run git at the top; `plain` leaves out the settings of the user's home."""
        own = ("-c", "safe.directory=*") if plain else ()  # it was found safe when it was opened
        return _git(self.top, *own, *args, data=data, env=ALONE if plain else {})

    def dirty(self) -> tuple[str, ...]:
        """List the tracked files with changes that are in no commit, relative to the top."""
        found = self._status("--untracked-files=no")
        rest = (one for one in self._submodules() if one not in found)
        return (*found, *(one for one in rest if self._is_dirty(one)))

    def is_changed(self, name: str) -> bool:
        """Tell whether a file below the top is not as HEAD has it, or not in HEAD at all."""
        return bool(self._status("--untracked-files=all", "--ignored", "--", name))

    def written(self, name: str) -> bytes | None:
        """Return a file of HEAD as git writes it; None where a filter of the repository would."""
        env, own = self._with_own_filters()
        told = self.git("check-attr", "-z", "filter", "--", name).split(b"\0")
        if f"filter.{os.fsdecode(told[2])}.smudge" in own:
            return None
        done = _git(self.top, "cat-file", "--filters", f"HEAD:./{name}", env=env)
        return self._told(done, "cat-file")

    def _status(self, *words: str) -> list[str]:
        """List what differs from HEAD."""
        env, _ = self._with_own_filters()
        plain = ("--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=dirty")
        done = _git(self.top, "status", *plain, *words, env=env)
        entries = os.fsdecode(self._told(done, "status")).split("\0")
        return [entry[3:] for entry in entries if entry]

    def _with_own_filters(self) -> tuple[dict[str, str], set[str]]:
        """Return an environment with the filters of the user alone, and what that undoes."""
        listed = _git(self.top, "config", "-z", "--show-scope", "--get-regexp", r"^filter\.").text
        undone = without_filters(listed)
        return with_settings(git_env(kept=_KEPT), undone), {name for name, _ in undone}

    def _is_dirty(self, submodule: str) -> bool:
        """Ask a submodule itself: its own settings may name filters too."""
        top = os.path.join(self.top, submodule)
        is_there = os.path.lexists(os.path.join(top, ".git"))
        return is_there and bool(Repository(top=top, common="").dirty())

    def _submodules(self) -> list[str]:
        if not os.path.exists(os.path.join(self.top, ".gitmodules")):
            return []
        entries = os.fsdecode(self.git("ls-files", "-s", "-z")).split("\0")
        return [one.partition("\t")[2] for one in entries if one.startswith("160000 ")]

    def untracked(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return those of the files or folders in the work tree of which git tracks nothing.

        Paths are absolute or relative to the top, and so is what comes back: relative to the top.
        """
        inside = [path for path in map(self.inner, paths) if path]
        if not inside:
            return ()
        listed = os.fsdecode(self.git("ls-files", "-z", "--", *inside)).split("\0")
        tracked = {*listed, *(folder for name in listed for folder in _folders(name))}
        return tuple(path for path in dict.fromkeys(inside) if path not in tracked)

    def inner(self, path: str) -> str:
        """Return the path below the top; nothing if it lies elsewhere or does not exist."""
        folder, name = os.path.split(os.path.abspath(os.path.join(self.top, path)))
        full = os.path.join(os.path.realpath(folder), name)
        start = os.path.join(os.path.realpath(self.top), "")
        if not full.startswith(start) or not os.path.lexists(full):
            return ""
        return full.removeprefix(start)


def _folders(name: str) -> Iterable[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def open_repository(cwd: str) -> Repository:
    """Find the work tree around `cwd`; UsageError if there is none with a commit."""
    asked = ("--is-bare-repository", "--git-common-dir", "--show-toplevel")
    done = _git(cwd, "rev-parse", "--path-format=absolute", *asked)
    found = done.text.split("\n")
    if found[:1] == ["true"]:  # an older git, which takes any
        raise _is_bare(found[1])
    if done.code:
        raise _not_opened(cwd, done)
    repo = Repository(top=found[2], common=found[1])
    unborn = repo.try_git("rev-parse", "--verify", "--quiet", "HEAD^{commit}").code
    if unborn and not repo.git("rev-list", "--all", "--max-count=1"):
        raise UsageError(f"{repo.top} has no commits yet", hint="git add -A && git commit")
    return repo


def _is_bare(path: str) -> UsageError:
    return UsageError(
        f"{path} is a bare repository: there is no work tree to run in",
        hint=f"git clone {path} work && cd work",
    )


def _not_opened(cwd: str, done: Captured) -> UsageError:
    said = complaint(done)
    bare = said.removeprefix("cannot use bare repository '").partition("' (")[0]
    if bare != said and os.path.basename(bare) != ".git":
        return _is_bare(bare)
    if "not a git repository" in said:
        return UsageError(
            f"{cwd} is not in a git repository", hint="cd into a clone, or git clone URL"
        )
    if "dubious ownership" in said:
        whose = said.partition("'")[2].rpartition("'")[0] or cwd
        return UsageError(
            f"git refuses {whose}: it belongs to another user",
            hint=f"git config --global --add safe.directory {whose}",
        )
    return UsageError(f"git in {cwd}: {said}")


def _git(
    folder: str, *args: str, data: bytes = b"", env: Mapping[str, str] | None = None
) -> Captured:
    words = ("git", "-C", folder, "--no-pager", *args)
    done = capture(words, env={**git_env(kept=_KEPT), **(env or {})}, data=data)
    if done.code == 127:
        raise UsageError("git cannot be started: no commits can be read", hint="rl doctor")
    return done
