"""Tries each rung of each ladder on this machine; believes nothing that it has not seen work.

Leaves nothing behind: what it writes to try a thing is gone when it returns.
"""

from __future__ import annotations

import errno
import fcntl
import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping

from relaunch.journal.home import Home, find_home
from relaunch.proc.capture import capture
from relaunch.proc.git import git_env
from relaunch.proc.ours import plain_env
from relaunch.record import Record

_TAKEN = 32 << 20
"""Bytes of memory that are taken to see whether that is seen."""


class Rung(Record):
    """One way to do it: whether it works here, and what that means to the person."""

    name: str
    ok: bool
    means: str
    raise_it: str = ""
    """What would make it work; a command where there is one."""


class Ladder(Record):
    """The ways to do one thing, best first; the first that works is taken, or all `together`."""

    name: str
    rungs: tuple[Rung, ...]
    together: bool = False

    @property
    def taken(self) -> Rung | None:
        """Return the best rung that works here."""
        return next((rung for rung in self.rungs if rung.ok), None)


def ladders(cwd: str, env: Mapping[str, str]) -> list[Ladder]:
    """Try every ladder from `cwd`."""
    home = find_home(cwd)
    with tempfile.TemporaryDirectory(prefix="rl-doctor-") as scratch:
        return [
            _code(home, env, scratch),
            _journal(home),
            _index(),
            _processes(),
            _terminal(),
            _failures(env, scratch),
            _kept_calls(),
            _warm(env, scratch),
            _memory(),
            _watch(),
            _hang(),
            _gpu_memory(env),
            _unsaved(env),
        ]


def _ladder(name: str, *rungs: Rung) -> Ladder:
    return Ladder(name=name, rungs=rungs)


def _code(home: Home, env: Mapping[str, str], scratch: str) -> Ladder:
    version = capture(["git", "--version"], env=git_env(env)).text.split()[2:3]
    works = bool(version) and _git_keeps(env, scratch)
    named = f"git {version[0]}" if version else "git"
    inside = "run it inside a project" if home.too_wide else ""
    return _ladder(
        "code",
        Rung(
            name="your repository",
            ok=works and bool(home.git_dir),
            means=f"{named}: snapshots share its objects; your index and stash are never touched",
            raise_it="" if home.git_dir else inside or "git init",
        ),
        Rung(
            name="private repository",
            ok=works and not home.too_wide,
            means=f"{named}: the same snapshots, kept beside the journal",
            raise_it=inside if works else "install git",
        ),
        Rung(name="none", ok=True, means="trials are kept without their code"),
    )


def _git_keeps(env: Mapping[str, str], scratch: str) -> bool:
    """Take a tiny snapshot with an index of its own and read it back."""
    clean = git_env(env)
    folder = os.path.join(scratch, "snapshot")
    git = ["git", "-C", folder]
    os.mkdir(folder)
    with open(os.path.join(folder, "file"), "w", encoding="ascii") as file:
        file.write("seen\n")
    capture([*git, "init", "-q", "--template="], env=clean)
    own = {**clean, "GIT_INDEX_FILE": os.path.join(scratch, "index")}
    capture([*git, "add", "-A"], env=own)
    tree = capture([*git, "write-tree"], env=own).text.strip()
    return capture([*git, "show", f"{tree}:file"], env=clean).out == b"seen\n"


def _journal(home: Home) -> Ladder:
    folder = home.journal
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    locks, why = _locks(folder)
    shown = home.journal
    return _ladder(
        "journal",
        Rung(
            name="locked",
            ok=locks,
            means=f"{shown}: trials at once never mix config sets or frozen copies",
            raise_it=why,
        ),
        Rung(
            name="unlocked",
            ok=os.access(folder, os.W_OK),
            means=f"{shown}: every trial is kept; run config sets one at a time",
        ),
        Rung(name="none", ok=True, means="programs run, nothing is remembered"),
    )


def _locks(folder: str) -> tuple[bool, str]:
    """Tell whether a second lock is refused while the first is held, and if not, why."""
    name = os.path.join(folder, f".rl-doctor-{os.getpid()}")
    try:
        first = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        return False, f"{folder}: {error.strerror}"
    second = -1
    try:
        second = os.open(name, os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        held = error.errno in (errno.EWOULDBLOCK, errno.EAGAIN)
        return held, "" if held else f"locking here: {error.strerror}"
    finally:
        os.close(first)
        if second >= 0:
            os.close(second)
        os.unlink(name)
    return False, "locks of this filesystem hold nobody back"


def _index() -> Ladder:
    try:
        import sqlite3

        with sqlite3.connect(":memory:") as base:
            version = base.execute("select sqlite_version()").fetchone()[0]
        base.close()
        ok, means = True, f"SQLite {version}: `rl log` stays quick over thousands of trials"
    except (ImportError, AttributeError):
        ok, means = False, "this Python has no sqlite3"
    return _ladder(
        "search",
        Rung(name="index", ok=ok, means=means, raise_it="" if ok else "a Python with sqlite3"),
        Rung(name="reading", ok=True, means="`rl log` reads the trials one by one"),
    )


def _processes() -> Ladder:
    from relaunch.proc.tree import ladder

    rungs = [Rung(name=name, ok=ok, means=means) for name, ok, means in ladder()]
    rungs.append(Rung(name="process group", ok=True, means="who stays in it is ended with it"))
    return Ladder(name="processes", rungs=tuple(rungs), together=True)


def _terminal() -> Ladder:
    try:
        near, far = os.openpty()
        os.close(near)
        os.close(far)
        ok, why = True, ""
    except OSError as error:
        ok, why = False, f"no pseudo-terminals here: {error.strerror}"
    means = "on a terminal the program sees one too: colours, job control, window size"
    return _ladder(
        "terminal",
        Rung(name="pty", ok=ok, means=means, raise_it=why),
        Rung(name="pipes", ok=True, means="the program writes as into a file"),
    )


def _failures(env: Mapping[str, str], scratch: str) -> Ladder:
    ok = _hook_reports(env, scratch)
    means = "Python names its failing frames itself, threads included"
    return _ladder(
        "failures",
        Rung(
            name="hook", ok=ok, means=means, raise_it="" if ok else f"{sys.executable} ignored it"
        ),
        Rung(name="text", ok=True, means="tracebacks, signals and test ids are read from output"),
    )


def _kept_calls() -> Ladder:
    from relaunch.journal.seal import trouble

    why = trouble()
    return _ladder(
        "kept calls",
        Rung(name="sealed", ok=not why, means="`rl replay` knows those of yours", raise_it=why),
        Rung(
            name="asked about", ok=True, means="each has to be trusted before `rl replay` loads it"
        ),
    )


def _hook_reports(env: Mapping[str, str], scratch: str) -> bool:
    """Let a tiny program fail under the hook and look for its report."""
    from relaunch.inside.protocol import hooked_env

    reports = os.path.join(scratch, "reports")
    os.mkdir(reports)
    child = [sys.executable, "-P", "-c", "raise LookupError('rl doctor')"]
    capture(child, env=hooked_env(plain_env(env), reports))
    for name in glob.glob(os.path.join(reports, "*")):
        with open(name, encoding="utf-8", errors="replace") as file:
            if "LookupError" in file.read():
                return True
    return False


def _memory() -> Ladder:
    """Take some memory and give it back: is it seen as a peak, and gone the next time?"""
    import mmap

    from relaunch.inside.sections.meter import RECORD, RESET, RUSAGE, Meter

    meter = Meter()
    with mmap.mmap(-1, _TAKEN) as block:
        for at in range(0, _TAKEN, mmap.PAGESIZE):
            block[at] = 1
    meter.read()
    peak = meter.high - meter.rss
    meter.read()
    is_own = meter.by == RESET and peak > _TAKEN // 2 > meter.high - meter.rss
    return _ladder(
        "memory",
        Rung(
            name="own peaks",
            ok=is_own,
            means="each section has a peak of its own",
            raise_it="" if is_own else "a kernel whose /proc/self/clear_refs takes a 5",
        ),
        Rung(
            name="records",
            ok=meter.by in (RESET, RECORD),
            means="the peak of a section is known where it is a new record of the process",
        ),
        Rung(
            name="getrusage",
            ok=meter.by in (RESET, RECORD, RUSAGE),
            means="memory of sections is the record of the process",
        ),
        Rung(name="none", ok=True, means="sections tell their time alone"),
    )


def _watch() -> Ladder:
    from relaunch.look.means import means

    rungs = [Rung(name=n, ok=ok, means=said, raise_it=why) for n, ok, said, why in means()]
    return Ladder(name="watch", rungs=tuple(rungs), together=True)


def _hang() -> Ladder:
    from relaunch.look.waits.means import means

    rungs = [Rung(name=n, ok=ok, means=said, raise_it=why) for n, ok, said, why in means()]
    return Ladder(name="hang", rungs=tuple(rungs))


def _gpu_memory(env: Mapping[str, str]) -> Ladder:
    """Hold a little of the first GPU and read back that it is gone."""
    from relaunch.proc.gpu.held import GpuHolder, NotHeld, Wish

    holder = GpuHolder([Wish(look=True), Wish(gpu=0, hold=_TAKEN)], env)
    names: list[str] = []
    why = ""
    try:
        (one,) = holder.wait()
        if one.before - one.free < _TAKEN:
            why = f"{_TAKEN >> 20} MB were taken, and {one.before - one.free} B are seen to be"
    except NotHeld as error:
        why = error.message
    finally:
        holder.stop()
        names = list(holder.names.values())
    shown = f"{len(names)} x {names[0]}" if names else "no GPU"
    return _ladder(
        "GPU memory",
        Rung(
            name="held",
            ok=not why,
            means=f"--gpu-free leaves as much free as was asked, for any program ({shown})",
            raise_it=why,
        ),
        Rung(
            name="share",
            ok=bool(names),
            means=f"torch's own allocator keeps to --gpu-free, in each process ({shown})",
        ),
        Rung(name="none", ok=True, means="--gpu-free and rl squeeze hold --gpu end with one line"),
    )


def _warm(env: Mapping[str, str], scratch: str) -> Ladder:
    from relaunch.desk.warm import try_warm

    python, missing = try_warm(env, scratch)
    return _ladder(
        "warm",
        Rung(
            name="snapshots",
            ok=not missing,
            means=f"after an edit `rl warm` goes on where it was ({python})",
            raise_it=missing,
        ),
        Rung(name="cold", ok=True, means="`rl warm` runs the program from its beginning"),
    )


_EDITORS = {"vim": "vim", "nvim": "neovim", "emacs": "emacs", "nano": "nano", "code": "VS Code"}


def _unsaved(env: Mapping[str, str]) -> Ladder:
    path = env.get("PATH", os.defpath)
    found = [name for program, name in _EDITORS.items() if shutil.which(program, path=path)]
    proc = os.path.isdir(f"/proc/{os.getpid()}/fd")
    seen = f"seen on this PATH: {', '.join(found)}" if found else "no editor we know on this PATH"
    return _ladder(
        "unsaved",
        Rung(
            name="with its process",
            ok=proc,
            means=f"unsaved buffers are found with the editor's pid; {seen}",
            raise_it="" if proc else "/proc is not mounted",
        ),
        Rung(name="files", ok=True, means=f"swap and lock files alone are read; {seen}"),
    )


def shell_version(shell: str) -> str:
    """Return `5.2` of `GNU bash, version 5.2.15(1)-release`; empty if the shell does not say."""
    words = capture([shell, "--version"]).text.replace(",", " ").split()
    number = next((word for word in words if word[:1].isdigit()), "")
    return ".".join(number.split(".")[:2])
