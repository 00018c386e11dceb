"""The packages of an old revision: an environment for each set of requirements, made once.

One folder for each key. An attempt has a folder of its own in it, as a killed installer may still
write into an earlier one; the file `made`, put there last, names the attempt that came to its end.
"""

from __future__ import annotations

import fcntl
import glob
import os
import re
import shutil
import sys
import time

from relaunch.errors import LaunchError, PlaceError
from relaunch.jsontext import dumps, loads
from relaunch.proc.capture import capture
from relaunch.record import Record
from relaunch.textfile import read_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from relaunch.trial.place.requirements import Requirements

    Tell = Callable[[str], object]
    Steps = Callable[[str, str], list[list[str]]]

RUNGS = ("uv", "pip", "venv")
"""uv; the pip of the Python; a pip that each new environment brings along."""

_DAY_S = 86400
_NOT_FOR_INSTALLERS = frozenset(
    ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "CONDA_PREFIX", "PIP_TARGET",
     "PIP_USER", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV", "UV_SYSTEM_PYTHON", "UV_PYTHON",
     "UV_PROJECT_ENVIRONMENT", "RELAUNCH_TRIAL")
)  # fmt: skip
_SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
_ALONE = """\
import sys
sys.path.insert(0, sys.argv[1])
from relaunch.trial.place.environment import install_alone
install_alone()
"""


class Environment(Record):
    """An environment that is complete."""

    python: str
    env: Mapping[str, str]
    """The variables to set for what is to run in it."""
    made_by: str
    """Which rung: uv, pip or venv."""
    log: str
    """What the installer said."""


class _Result(Record):
    """How the steps of an installation ended."""

    failed: int = -1
    """The step that failed."""
    timed_out: bool = False
    log: str


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
        from today's checkout is not there.
        """
        self.parent = os.path.abspath(parent)
        self.python = shutil.which(python, path=env.get("PATH")) or python
        self.env = {name: env[name] for name in env if name not in _NOT_FOR_INSTALLERS}
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
        from relaunch.trial.place.requirements import normalised

        lines = sorted({*needs.needs, *(normalised(line) or line for line in extra)})
        rung = self._rung(before)
        day = _end_of_day(before)
        how = ["--no-deps"] if alone else []
        key = self._key(lines, self._version(), os.path.realpath(self.python), rung, day, *how)
        words = f"{', '.join(lines[:4])}{', ...' if len(lines) > 4 else ''}" or "no requirements"

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
        present: _Stamps = {}

        def steps(*how: str) -> Steps:
            def installing(rung: str, root: str) -> list[list[str]]:
                present.update(present or _files(tree))
                install = [*self._installer(rung, root, day), "--no-deps", *how, tree]
                return [self._venv(rung, root), install]

            return installing

        def finish(root: str) -> None:
            _stack(root, below)
            _keep(tree, present, root + ".tree")

        # Some build tools of old know no editable installs.
        made = self._once(key, f"an installation of {tree}", [steps("-e"), steps()], finish)
        _put_back(made["root"] + ".tree", tree)
        return self._environment(made, os.path.join(below, "bin"))

    def _once(
        self, key: str, what: str, ways: list[Steps], finish: Callable[[str], None]
    ) -> dict[str, Any]:
        """Return what is known of the environment `key`; make it if nobody has."""
        folder = os.path.join(self.parent, key)
        made = _complete(folder)
        if made:
            return made
        if key in self._failures:
            raise self._failed(self._failures[key], folder)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            with _Lock(folder, self.tell, what):
                return _complete(folder) or self._make(key, folder, what, ways, finish)
        except OSError as error:
            where = error.filename or folder
            raise PlaceError(f"cannot make {what}: {where}: {error.strerror}") from error

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
        made = {"root": root, "made_by": rung, "seconds": round(time.monotonic() - began, 3)}
        _write(os.path.join(folder, "made"), dumps(made))
        return made

    def _climb(self, root: str, way: Steps, what: str) -> tuple[str, _Result]:
        """Go through the rungs until one makes an environment at all, and install into it."""
        result = None
        for rung in self._rungs():
            self.tell(f"making {what} ({rung})")
            result = self._run(way(rung, root), root)
            if result.failed != 0 or result.timed_out:
                break
            shutil.rmtree(root, ignore_errors=True)
        if result is None:
            raise _no_way(self.python)
        return rung, result

    def _run(self, steps: list[list[str]], root: str) -> _Result:
        """Run the steps in a process of their own: only there all of their children are found."""
        log = root + ".log"
        told = {
            "parent": os.getpid(),
            "steps": steps,
            "cwd": os.path.dirname(root),
            "env": {**self.env, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"},
            "log": log,
            "limit_s": self.limit_s,
        }
        done = capture(
            [sys.executable, "-I", "-S", "-c", _ALONE, _SOURCE], data=dumps(told).encode("ascii")
        )
        if done.code:
            raise PlaceError(f"the installer was stopped: {os.fsdecode(done.err).strip()[-300:]}")
        return _Result(log=log, **loads(done.text))

    def _remember(self, key: str, folder: str, what: str, result: _Result) -> None:
        """Tell what went wrong; what will go wrong again is written down for the next one."""
        text = read_if_there(result.log)
        if result.timed_out:
            fault = f"it took over {self.limit_s:g} s"
        else:
            fault = installer_fault(text, self._version())
            if not _PASSING.search(text):
                _write(os.path.join(folder, "failed"), f"cannot make {what}: {fault}")
        self._failures[key] = f"cannot make {what}: {fault}"
        raise PlaceError(self._failures[key], hint=f"cat {result.log}")

    def _failed(self, remembered: str, folder: str) -> PlaceError:
        return PlaceError(remembered, hint=f"rm -r {folder}  # and try again")

    def _finish(self, root: str) -> None:
        if self.inherit:
            path = os.path.join(_site(root), "zzz_relaunch_inherited.pth")
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
        return (rung for rung in RUNGS if _works(rung, self.python, self.env))

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


# --- what works here


_known: dict[tuple[str, ...], bool] = {}


def ways(env: Mapping[str, str], python: str = sys.executable) -> list[str]:
    """List the rungs that work here for this Python, best first; each is tried."""
    return [rung for rung in RUNGS if _works(rung, python, env)]


def _works(rung: str, python: str, env: Mapping[str, str]) -> bool:
    """Tell whether a rung answers; asked once."""
    asked = (rung, "" if rung == "uv" else python, env.get("PATH", ""))
    if asked not in _known:
        clean = {name: env[name] for name in env if name not in _NOT_FOR_INSTALLERS}
        _known[asked] = _TRIED[rung](python, clean)
    return _known[asked]


def _has_pip(python: str, env: Mapping[str, str]) -> bool:
    """Tell whether its pip can install into another Python."""
    said = capture([python, "-m", "pip", "--version"], env=env).text.split()
    return bool(said[1:]) and _numbers(said[1]) >= (22, 3) and _imports(python, env, "venv")


def _imports(python: str, env: Mapping[str, str], names: str) -> bool:
    return capture([python, "-c", f"import {names}"], env=env).code == 0


_TRIED: dict[str, Callable[[str, Mapping[str, str]], bool]] = {
    "uv": lambda _, env: capture(["uv", "--version"], env=env).code == 0,
    "pip": _has_pip,
    "venv": lambda python, env: _imports(python, env, "venv, ensurepip"),
}


# --- in the process of an installer


def install_alone() -> None:
    """Run the steps that standard input tells, and say how they ended; this process is for that.

    It is killed with who started it, and its guard ends the installer then.
    """
    from relaunch.proc.prctl import die_with_parent
    from relaunch.proc.supervise import supervise

    if TYPE_CHECKING:
        import signal as _signal
    else:
        import _signal

    told = loads(sys.stdin.read())
    die_with_parent(_signal.SIGKILL)
    if os.getppid() != told["parent"]:
        sys.exit("who asked for it is gone")
    log = os.open(told["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + told["limit_s"]
    result: dict[str, object] = {}
    for number, argv in enumerate(told["steps"]):
        os.write(log, os.fsencode(f"$ {' '.join(argv)}\n"))
        try:
            ended = supervise(
                argv,
                cwd=told["cwd"],
                env=told["env"],
                chunk=lambda _, __, data: os.write(log, data),
                timeout_s=max(deadline - time.monotonic(), 0.001),
                quiet=True,
                stdin=False,
            )
        except LaunchError as error:
            os.write(log, os.fsencode(f"error: {error.message}\n"))
            result = {"failed": number}
            break
        if ended.exit_code != 0 or ended.timed_out:
            result = {"failed": number, "timed_out": ended.timed_out}
            break
    os.write(1, dumps(result).encode("ascii"))


# --- what an installer says


_PASSING = re.compile(
    r"failed to fetch|connection (refused|reset|aborted|error|timed out)|dns error|read timed out"
    r"|name or service not known|temporary failure|network is unreachable|no space left"
    r"|request failed after|error sending request|max retries exceeded",
    re.IGNORECASE,
)
"""What may be otherwise in an hour."""
_UNBUILT = re.compile(
    r"Failed to build `([^`]+)`|Failed building \w+ for (\S+)|Failed to build ([\w.-]+)\s*$"
    r"|Failed to build installable wheels for .*\((.+)\)|package metadata\.\s*╰─> (?!See)(\S+)"
    r"|The build backend returned an error|subprocess-exited-with-error",
    re.MULTILINE,
)
_REASON = re.compile(
    r"^\W*(?:[\w/.-]+:\d+:\d+: )?((?:[\w.]*(?:Error|Exception)|fatal error): .+)", re.M
)
_UNSOLVED = re.compile(r"No solution found.*?\b(Because .*?)(?:,? we can conclude|\s*hint: |$)")
_ABSENT = re.compile(r"No matching distribution found for (.+)")
_ERROR = re.compile(r"^\W*error: (?!ResolutionImpossible|subprocess-exited)(.+)", re.M | re.I)


def installer_fault(text: str, version: str) -> str:
    """Return in one line why an installation for Python `version` failed, from what it said."""
    short = ".".join(version.split(".")[:2])
    text = "\n".join(text.splitlines())  # progress bars return to the start of theirs
    unbuilt = [found.groups() for found in _UNBUILT.finditer(text)]
    if unbuilt:
        which = next((name for names in unbuilt for name in names if name), "it")
        reasons = _REASON.findall(text)
        reason = f": {reasons[-1]}" if reasons else ""
        return _short(f"{which} cannot be built for Python {short}{reason}")
    unsolved = _UNSOLVED.search(re.sub(r"[\s│╰├─▶]+", " ", text))
    if unsolved:
        reason = unsolved[1].removeprefix("Because ").partition(" and you require ")[0]
        return _short(f"{reason}, for Python {short}")
    absent = _ABSENT.search(text)
    if absent:
        return _short(f"there is no version of {absent[1].strip()} for Python {short}")
    errors = _ERROR.findall(text) or [line for line in text.splitlines() if line.strip()]
    return _short(errors[-1].strip()) if errors else "it ended without a word"


def _short(line: str) -> str:
    line = line.strip()
    return line if len(line) <= 300 else line[:299] + "…"


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
        """Wait until nobody else holds it."""
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._tell(f"waiting: another process makes {self._what}")
            fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        """Let go."""
        os.close(self._fd)


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


def _stack(root: str, below: str) -> None:
    """Let an environment have the packages and the scripts of another, which stays as it is."""
    line = f"import site; site.addsitedir({_site(below)!r})\n"
    _write(os.path.join(_site(root), "zzz_relaunch_below.pth"), line)
    ours, theirs = (os.fsencode(os.path.join(place, "bin")) for place in (root, below))
    for entry in os.scandir(os.path.join(below, "bin")):
        copy = os.path.join(root, "bin", entry.name)
        if not os.path.lexists(copy) and entry.is_file(follow_symlinks=False):
            with open(entry.path, "rb") as script, open(copy, "wb") as file:
                file.write(script.read().replace(theirs, ours))
            shutil.copymode(entry.path, copy)


_Stamps = dict[str, tuple[int, int]]
_NO_RESULT = frozenset((".git", "__pycache__", "build", ".eggs"))


def _files(tree: str) -> _Stamps:
    """Return each file below a folder, with what changes when it is written."""
    found: _Stamps = {}
    for folder, folders, names in os.walk(tree):
        folders[:] = [name for name in folders if name not in _NO_RESULT]
        for name in names:
            path = os.path.join(folder, name)
            stat = os.lstat(path)
            found[os.path.relpath(path, tree)] = (stat.st_size, stat.st_mtime_ns)
    return found


def _keep(tree: str, present: _Stamps, folder: str) -> None:
    """Keep a copy of each file of the tree that was written since."""
    for name, stamp in _files(tree).items():
        if present.get(name) != stamp:
            _copy(os.path.join(tree, name), os.path.join(folder, name))


def _put_back(folder: str, tree: str) -> None:
    for name, (size, _) in _files(folder).items():
        kept, path = os.path.join(folder, name), os.path.join(tree, name)
        if not os.path.exists(path) or os.path.getsize(path) != size or not _equal(kept, path):
            _copy(kept, path)


def _equal(one: str, other: str) -> bool:
    with open(one, "rb") as first, open(other, "rb") as second:
        return first.read() == second.read()


def _copy(path: str, target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy2(path, target, follow_symlinks=False)


# --- other Pythons


_PYTHON_NAME = re.compile(r"python[23]?(\.\d+)?t?$")
_versions: dict[tuple[str, int], str] = {}


def version_of(python: str) -> str:
    """Return the version of the Python at a path, as `3.11.7`; nothing when it does not run."""
    try:
        asked = (python, os.stat(python).st_mtime_ns)
    except OSError:
        return ""
    if asked not in _versions:
        code = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
        said = capture([python, "-E", "-s", "-S", "-c", code])
        _versions[asked] = said.text.strip() if said.code == 0 else ""
    return _versions[asked]


def pythons(env: Mapping[str, str]) -> list[tuple[str, str]]:
    """List the installed Pythons as version and path, newest first."""
    found = {os.path.realpath(path): None for path in _candidates(env)}
    known = [(version_of(path), path) for path in found]
    return sorted(
        (pair for pair in known if pair[0]), key=lambda pair: _numbers(pair[0]), reverse=True
    )


def _candidates(env: Mapping[str, str]) -> Iterator[str]:
    for folder in env.get("PATH", os.defpath).split(os.pathsep):
        if os.path.basename(folder) != "shims":  # pyenv's, whose Pythons come next
            for name in _listed(folder):
                path = os.path.join(folder, name)
                if _PYTHON_NAME.match(name) and os.access(path, os.X_OK):
                    yield path
    pyenv = env.get("PYENV_ROOT") or os.path.join(env.get("HOME", ""), ".pyenv")
    for version in _listed(os.path.join(pyenv, "versions")):
        yield os.path.join(pyenv, "versions", version, "bin", "python")
    managed = capture(["uv", "python", "dir"], env=env).text.strip()
    for build in _listed(managed) if managed else []:
        yield os.path.join(managed, build, "bin", "python3")


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder or os.curdir))
    except OSError:
        return []


def suitable(requires_python: str, pythons: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return those Pythons that `>=3.7,<3.10` and the like allow, in their order."""
    parts = [part.strip() for part in requires_python.split(",") if part.strip()]
    return [pair for pair in pythons if all(_allows(part, pair[0]) for part in parts)]


def _allows(part: str, version: str) -> bool:
    """Judge one clause; what is none allows everything."""
    found = re.match(r"(~=|===?|!=|<=|>=|<|>)\s*([\d.]+?)(\.\*)?$", part)
    if not found:
        return True
    how, wanted, mine = found[1], _numbers(found[2]), _numbers(version)
    if how == "~=":
        return mine >= wanted and mine[: len(wanted) - 1] == wanted[:-1]
    if found[3] or how == "===":
        mine = mine[: len(wanted)]
    length = max(len(mine), len(wanted))
    mine, wanted = _padded(mine, length), _padded(wanted, length)
    return {
        "==": mine == wanted, "===": mine == wanted, "!=": mine != wanted, "<": mine < wanted,
        "<=": mine <= wanted, ">": mine > wanted, ">=": mine >= wanted,
    }[how]  # fmt: skip


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _padded(numbers: Sequence[int], length: int) -> tuple[int, ...]:
    return (*numbers, *(0,) * (length - len(numbers)))
