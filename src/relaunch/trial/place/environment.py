"""The packages of an old revision: an environment for each set of requirements, made once.

One folder for each key. An attempt has a folder of its own in it, as a killed installer may still
write into an earlier one; the file `made`, put there last, names the attempt that came to its end.
"""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import time

from relaunch.errors import PlaceError
from relaunch.jsontext import dumps, loads
from relaunch.proc.file_system import sync_file_system
from relaunch.record import Record
from relaunch.textfile import read_if_there
from relaunch.trial.place.built_tree import keep, put_back, stamps
from relaunch.trial.place.installer import (
    NOT_FOR_INSTALLERS,
    PASSING,
    RUNGS,
    installer_fault,
    run_steps,
    works,
)
from relaunch.trial.place.pythons import version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from relaunch.trial.place.built_tree import Stamps
    from relaunch.trial.place.installer import Result
    from relaunch.trial.place.requirements import Requirements

    Tell = Callable[[str], object]
    Steps = Callable[[str, str], list[list[str]]]

_DAY_S = 86400
_INHERITED, _BELOW = "zzz_relaunch_inherited.pth", "zzz_relaunch_below.pth"
"""They are read last: what an environment has itself comes first."""
GONE = ".gone-"
"""How a folder is called while it is removed."""


class Environment(Record):
    """An environment that is complete."""

    python: str
    env: Mapping[str, str]
    """The variables to set for what is to run in it."""
    made_by: str
    """Which rung: uv, pip or venv."""
    log: str
    """What the installer said."""


def _silent(_: str) -> None:
    """Tell nobody."""


class Environments:
    """The environments in one folder, for one Python; any thread or process may ask for one."""

    def __init__(
        self,
        parent: str,
        python: str,
        *,
        env: Mapping[str, str],
        inherit: tuple[str, ...] = (),
        limit_s: float = 300,
        tell: Tell = _silent,
    ) -> None:
        """Keep them in `parent`; what is in the folders `inherit` can be imported from them too.

        `inherit` comes last on the path, and no .pth file in it is followed: what was installed
        from today's checkout is not there. `tell` hears what takes long, and nothing when it is
        over.
        """
        self.parent = os.path.abspath(parent)
        self.python = shutil.which(python, path=env.get("PATH")) or python
        self.env = {name: env[name] for name in env if name not in NOT_FOR_INSTALLERS}
        self.inherit = inherit
        self.limit_s = limit_s
        self.tell = tell
        self._failures: dict[str, str] = {}

    def for_requirements(
        self,
        needs: Requirements,
        *,
        extra: tuple[str, ...] = (),
        before: float | None = None,
        alone: bool = False,
    ) -> Environment:
        """Return the environment with these needs, made now if there is none yet.

        With `alone` exactly these are installed, and not what they need in turn.

        With `before` (unix time), nothing is taken that was published after that day. Raises
        PlaceError when it cannot be made; that is remembered too.
        """
        from relaunch.trial.place.stated.line import normalised

        lines = sorted({*needs.needs, *(normalised(line) or line for line in extra)})
        rung = self._rung(before)
        day = _end_of_day(before)
        how = ["--no-deps"] if alone else []
        key = self._key(lines, self._version(), os.path.realpath(self.python), rung, day, *how)
        words = f"{', '.join(lines[:4])}{', ...' if len(lines) > 4 else ''}" or "no packages"

        def steps(rung: str, root: str) -> list[list[str]]:
            wanted = root + ".txt"
            _write(wanted, "".join(f"{line}\n" for line in lines))
            installing = [[*self._installer(rung, root, day), *how, "-r", wanted]] if lines else []
            return [self._venv(rung, root), *installing]

        made = self._once(key, f"an environment with {words}", [steps], self._finish)
        return self._environment(made)

    def editable(
        self, environment: Environment, tree: str, *, tree_id: str, before: float | None = None
    ) -> Environment:
        """Return an environment with all of that one, in which the checkout `tree` is installed.

        What the installation writes into the tree (versions, compiled modules) is kept, and put
        back there when the same tree is asked for again.
        """
        tree = os.path.realpath(tree)
        below = os.path.dirname(os.path.dirname(environment.python))
        day = _end_of_day(before)
        key = self._key("tree", below, tree, tree_id, self._rung(before), day)
        present: Stamps = {}

        def steps(*how: str) -> Steps:
            def installing(rung: str, root: str) -> list[list[str]]:
                present.update(present or stamps(tree))
                install = [*self._installer(rung, root, day), "--no-deps", *how, tree]
                return [self._venv(rung, root), install]

            return installing

        def finish(root: str) -> None:
            _stack(root, below)
            keep(tree, present, root + ".tree")

        # Some build tools of old know no editable installs.
        made = self._once(key, "an installation of its code", [steps("-e"), steps()], finish)
        put_back(made["root"] + ".tree", tree)
        return self._environment(made, os.path.join(below, "bin"))

    def _once(
        self, key: str, what: str, ways: list[Steps], finish: Callable[[str], None]
    ) -> dict[str, Any]:
        """Return what is known of the environment `key`; make it if nobody has."""
        folder = os.path.join(self.parent, key)
        made = _complete(folder)
        if made:
            os.utime(os.path.join(folder, "made"))  # it is in use: what is old may be removed
            return made
        if key in self._failures:
            raise self._failed(self._failures[key], folder)
        try:
            with _Lock(folder, self.tell, what):
                return _complete(folder) or self._make(key, folder, what, ways, finish)
        except OSError as error:
            where = error.filename or folder
            raise PlaceError(f"cannot make {what}: {where}: {error.strerror}") from error
        finally:
            self.tell("")

    def _make(
        self, key: str, folder: str, what: str, ways: list[Steps], finish: Callable[[str], None]
    ) -> dict[str, Any]:
        remembered = read_if_there(os.path.join(folder, "failed"))
        if remembered:
            raise self._failed(remembered, folder)
        _remove_attempts(folder)
        began = time.monotonic()
        for way in ways:
            root = os.path.join(folder, os.urandom(4).hex())
            rung, result = self._climb(root, way, what)
            if result.failed < 0 or result.timed_out:
                break
        if result.failed >= 0:
            self._remember(key, folder, what, result)
        finish(root)
        sync_file_system(folder)  # else a power cut could leave `made` and empty packages
        made = {"root": root, "made_by": rung, "seconds": round(time.monotonic() - began, 3)}
        _write(os.path.join(folder, "made"), dumps(made))
        return made

    def _climb(self, root: str, way: Steps, what: str) -> tuple[str, Result]:
        """Go through the rungs until one makes an environment at all, and install into it."""
        result = None
        for rung in self._rungs():
            self.tell(f"making {what} (Python {self._version()}, {rung})")
            result = run_steps(way(rung, root), root=root, env=self.env, limit_s=self.limit_s)
            if result.failed != 0 or result.timed_out:
                break
            shutil.rmtree(root, ignore_errors=True)
        if result is None:
            raise _no_way(self.python)
        return rung, result

    def _remember(self, key: str, folder: str, what: str, result: Result) -> None:
        """Tell what went wrong; what will go wrong again is written down for the next one."""
        text = read_if_there(result.log)
        if result.timed_out:
            fault = f"it took over {self.limit_s:g} s"
        else:
            fault = installer_fault(text, self._version())
            if not PASSING.search(text):
                _write(os.path.join(folder, "failed"), f"cannot make {what}: {fault}")
        self._failures[key] = f"cannot make {what}: {fault}"
        raise PlaceError(self._failures[key], hint=f"cat {result.log}")

    def _failed(self, remembered: str, folder: str) -> PlaceError:
        return PlaceError(remembered, hint=f"rm -r {folder}  # and try again")

    def _finish(self, root: str) -> None:
        if self.inherit:
            path = os.path.join(_site(root), _INHERITED)
            _write(path, "".join(f"{folder}\n" for folder in self.inherit))

    def _environment(self, made: Mapping[str, Any], *more: str) -> Environment:
        root = made["root"]
        folders = [os.path.join(root, "bin"), *more, self.env.get("PATH", os.defpath)]
        return Environment(
            python=os.path.join(root, "bin", "python"),
            env={"VIRTUAL_ENV": root, "PATH": os.pathsep.join(folders)},
            made_by=made["made_by"],
            log=root + ".log",
        )

    def _key(self, *parts: object) -> str:
        from _blake2 import blake2b

        text = dumps([list(self.inherit), *parts])
        return blake2b(text.encode("ascii"), digest_size=8).hexdigest()

    def _version(self) -> str:
        version = version_of(self.python)
        if not version:
            raise PlaceError(f"`{self.python}` does not run", hint=f"{self.python} --version")
        return version

    # the rungs

    def _rungs(self) -> Iterator[str]:
        return (rung for rung in RUNGS if works(rung, self.python, self.env))

    def _rung(self, before: float | None) -> str:
        rung = next(self._rungs(), "")
        if not rung:
            raise _no_way(self.python)
        if before is not None and rung != "uv":
            raise PlaceError("the packages of a day can only be found by uv", hint="pip install uv")
        return rung

    def _venv(self, rung: str, root: str) -> list[str]:
        if rung == "uv":
            return ["uv", "venv", "-q", "--no-project", "--python", self.python, root]
        without = ["--without-pip"] if rung == "pip" else []
        return [self.python, "-m", "venv", *without, root]

    def _installer(self, rung: str, root: str, day: str) -> list[str]:
        inner = os.path.join(root, "bin", "python")
        if rung == "uv":
            bound = ["--exclude-newer", day] if day else []
            return ["uv", "pip", "install", "--python", inner, *bound]
        if rung == "pip":
            return [self.python, "-m", "pip", "--python", inner, "install"]
        return [inner, "-m", "pip", "install"]


def _no_way(python: str) -> PlaceError:
    return PlaceError(
        f"`{python}` has neither venv nor pip, and there is no uv", hint="pip install uv"
    )


def _end_of_day(before: float | None) -> str:
    """Return the end of that day: one environment serves all of its commits."""
    if before is None:
        return ""
    end = (int(before) // _DAY_S + 1) * _DAY_S
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))


# --- folders and files


class _Lock:
    """Held while an environment is made; the kernel lets go of it when a process is killed."""

    def __init__(self, folder: str, tell: Tell, what: str) -> None:
        """Take what to lock, and what others are told they wait for."""
        self._path = os.path.join(folder, "lock")
        self._tell = tell
        self._what = what
        self._fd = -1

    def __enter__(self) -> None:
        """Wait until nobody else holds it; who sweeps may have taken the folder away meanwhile."""
        while True:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            try:
                self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:
                continue
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._tell(f"waiting: another process makes {self._what}")
                fcntl.flock(self._fd, fcntl.LOCK_EX)
            if _is_there(self._path, self._fd):
                return
            os.close(self._fd)

    def __exit__(self, *_: object) -> None:
        """Let go."""
        os.close(self._fd)


def _is_there(path: str, fd: int) -> bool:
    """Tell whether an open file still has that name."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False


def sweep(parent: str) -> list[str]:
    """Remove the environments that are half made by nobody any more; returns their keys.

    Who makes one holds its lock until it is whole, or known to be impossible.
    """
    gone = []
    for name in os.listdir(parent):
        folder = os.path.join(parent, name)
        if name.startswith(GONE):
            shutil.rmtree(folder, ignore_errors=True)
        elif not _is_settled(folder) and _take_away(parent, name):
            gone.append(name)
    return gone


def _is_settled(folder: str) -> bool:
    return any(os.path.exists(os.path.join(folder, name)) for name in ("made", "failed"))


def _take_away(parent: str, name: str) -> bool:
    """Remove an environment unless somebody makes it; renamed first, so that no half is seen."""
    folder, hidden = os.path.join(parent, name), os.path.join(parent, f"{GONE}{os.getpid()}-{name}")
    try:
        fd = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # it is not there yet, or no longer
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_settled(folder):
            return False
        os.rename(folder, hidden)
    except OSError:
        return False
    finally:
        os.close(fd)
    shutil.rmtree(hidden, ignore_errors=True)
    return True


def _complete(folder: str) -> dict[str, Any]:
    """Return what the file `made` says, if what it names is still there."""
    try:
        made: dict[str, Any] = loads(read_if_there(os.path.join(folder, "made")))
        return made if os.path.exists(os.path.join(made["root"], "bin", "python")) else {}
    except (ValueError, KeyError, TypeError):
        return {}


def _remove_attempts(folder: str) -> None:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        elif entry.name != "lock":
            os.unlink(entry.path)


def _write(path: str, text: str) -> None:
    """Write a small file so that it is there whole or not at all."""
    fresh = f"{path}.{os.getpid()}"
    with open(fresh, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    os.rename(fresh, path)


def _site(root: str) -> str:
    return glob.glob(os.path.join(glob.escape(root), "lib", "*", "site-packages"))[0]


def folders_of(root: str) -> tuple[str, str, tuple[str, ...]]:
    """Say where the packages of an environment lie: its own, those below it, those it inherits."""
    own = _site(root)
    _, _, below = read_if_there(os.path.join(own, _BELOW)).partition("addsitedir(")
    site = below.strip().removesuffix(")").strip("'\"")
    inherited = read_if_there(os.path.join(site or own, _INHERITED)).splitlines()
    return own, site, tuple(inherited)


def _stack(root: str, below: str) -> None:
    """Let an environment have the packages and the scripts of another, which stays as it is."""
    line = f"import site; site.addsitedir({_site(below)!r})\n"
    _write(os.path.join(_site(root), _BELOW), line)
    ours, theirs = (os.fsencode(os.path.join(place, "bin")) for place in (root, below))
    for entry in os.scandir(os.path.join(below, "bin")):
        copy = os.path.join(root, "bin", entry.name)
        if not os.path.lexists(copy) and entry.is_file(follow_symlinks=False):
            with open(entry.path, "rb") as script, open(copy, "wb") as file:
                file.write(script.read().replace(theirs, ours))
            shutil.copymode(entry.path, copy)
