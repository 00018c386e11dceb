"""Edits a program again and again, relaunches it warm and cold, and wants the same of both.

    python -m tests.quality.warm.harness --pairs 2000        # all programs; prints what was resumed
    python -m tests.quality.warm.harness --only closures     # one of them
    python -m tests.quality.warm.harness CASE                # a difference that was kept, once more

The warm side talks to the runner and its host directly, as `rl warm` would.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import functools
import hashlib
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.quality.warm import edits

from relaunch.inside.warm import wire
from relaunch.inside.warm.shot import FOR_RUNNER

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
RUNNER = Path(wire.__file__).parent / "main.py"
PATIENCE_S = 60.0
"""After this a warm run hangs."""
CPU_S = 1
"""A cold run that works longer than this is endless: the edit made it so."""
MOST_OUTPUT = 1 << 22
MOST_SNAPSHOTS = 24
"""Of one run: each costs some milliseconds, and the host keeps no more."""
DENSITIES = (0.1, 0.3, 1.0)
"""How often a run gets the snapshot that it asks for, at one place or another."""
OFTEN_S = float(os.environ.get("RELAUNCH_WARM_OFTEN", "0"))
MOST_DIFFERENCES = 5
"""Of one program; then we stop looking for more."""
_MARKS = 10**9
"""A mark says also of which run it is."""
_OTHERWISE = Path(__file__).with_name("otherwise")
_SIDES = ("parent", "child", "neither", "first")
_SPARE_LISTS = ("0", "90", "260", "430", "600")
"""Python 3.11 and 3.12 collect when there are 700 more objects, 3.13 when there are 2,000."""
_OTHERWISE_VALUES = {"SLOW_SIDE": _SIDES, "SPARE_LISTS": _SPARE_LISTS}
_RANDOM = "random: "
"""With it on the path, one side of each fork and thread waits, or both take turns."""
_THREADS_AT_FORK = rb".*DeprecationWarning: This process .* is multi-threaded, .*\n(  .*\n)?"
_KEPT_FILES = (".py", ".json", ".csv", ".txt")


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What a run did, for all that anybody can see; `how` is not compared."""

    out: bytes
    err: bytes
    status: int | None
    files: dict[str, bytes]
    how: str = ""

    @property
    def seen(self) -> tuple[Any, ...]:
        """All that must be equal."""
        return self.status, self.out, self.err, self.files


@dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """The sources and data of a program at one time, and how they came about."""

    files: dict[str, str]
    label: str
    clean: bool = True
    """What the run before wrote is taken away first."""
    renamed: bool = False
    """Saved as editors do: a new file with the name of the old one."""


# --- the two ways to run


def environment() -> dict[str, str]:
    """Return the environment of both sides."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME", "/"),
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


class Cold:
    """A cold run, started now and waited for later."""

    def __init__(
        self, folder: Path, argv: list[str], python: str, extra: dict[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.is_endless = False
        self._result: Result | None = None
        limited = f'ulimit -t {CPU_S}; exec "$0" "$@"'
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", limited, python, "main.py", *argv],
            cwd=folder,
            env={**environment(), **(extra or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        try:
            out, err = self._process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            end_all(self._process.pid)
            out, err = self._process.communicate()
        status = self._process.returncode
        self.is_endless = status in (-signal.SIGXCPU, -signal.SIGKILL) or len(out) > MOST_OUTPUT
        if self.is_endless:
            end_all(self._process.pid)
        self._result = Result(out=out, err=err, status=status, files=read_files(self.folder))

    def result(self) -> Result:
        """Wait until it ended."""
        self._thread.join()
        assert self._result is not None
        return self._result


class Warm:
    """Relaunches the program in one folder, warm where that can be done."""

    def __init__(self, folder: Path, run: Path, python: str, often: float, dense: bool) -> None:
        self.folder = folder
        self.run = run
        self.python = python
        self.often = often
        self.dense = dense
        """Each run gets as many snapshots as it wants."""
        self.key = hashlib.blake2b(str(folder).encode(), digest_size=8).hexdigest()
        self.runs = 0
        self.failed: list[str] = []

    def warm(self, argv: list[str], give_up: Callable[[], bool] = lambda: False) -> Result:
        """Run the program as it is now; `give_up` is asked now and then."""
        for _ in range(6):
            answer = self.ask({"op": "ask"}) or {"cold": "there is no host yet"}
            if "resume" not in answer:
                return self._start(argv, str(answer.get("cold", answer)), give_up)
            result = self._resume(answer, give_up)
            if result is not None:
                return result
        return self._start(argv, "resuming failed again and again", give_up)

    def ask(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Say something to the host; None if there is none."""
        try:
            with wire.connect(str(self.run), self.key) as link:
                link.settimeout(PATIENCE_S)
                wire.send(link, message)
                return wire.receive(link)[0]
        except OSError:
            return None

    def stop(self) -> None:
        """End the host and all snapshots."""
        self.ask({"op": "stop"})

    def _start(self, argv: list[str], why: str, give_up: Callable[[], bool]) -> Result:
        with Recorder(*self._tape()) as recorder:
            command = [self.python, str(RUNNER), self._spec(recorder, argv), "--", "main.py", *argv]
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=recorder.out_far,
                stderr=recorder.err_far,
                pass_fds=[recorder.control_far.fileno()],
                start_new_session=True,
            )
            recorder.let_go()
            whole = recorder.until_ended(give_up)
            if not whole:
                end_all(process.pid)
            try:
                status: int | None = process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                end_all(process.pid)
                process.wait()
                whole = False
            return self._result(recorder, status if whole else None, f"cold: {why}")

    def _spec(self, recorder: Recorder, argv: list[str]) -> str:
        return json.dumps(
            {
                "run": str(self.run),
                "cache": str(self.run.with_name("code")),
                "key": self.key,
                "roots": [str(self.folder)],
                "control": recorder.control_far.fileno(),
                "at": [],
                "memory": 0,
                "idle": 60,
                "often": self.often,
                "command": [self.python, "main.py", *argv],
                "tape": str(recorder.tape),
            }
        )

    def _resume(self, answer: dict[str, Any], give_up: Callable[[], bool]) -> Result | None:
        with (
            Recorder(*self._tape()) as recorder,
            wire.connect(str(self.run), self.key) as link,
            open(os.devnull, "r+b", buffering=0) as nothing,  # as `subprocess.DEVNULL` is
        ):
            run, mark = divmod(int(answer["mark"]), _MARKS)
            recorder.play(self._tape_of(run), mark)
            tape = str(recorder.tape)
            env = {
                "RELAUNCH_TRIAL": tape.removesuffix(".tape"),
                FOR_RUNNER: json.dumps({"tape": tape}),
            }
            wire.send(
                link,
                {"op": "resume", "id": answer["resume"], "env": env, "tape": tape},
                [
                    nothing.fileno(),
                    recorder.out_far,
                    recorder.err_far,
                    recorder.control_far.fileno(),
                ],
            )
            recorder.let_go()
            link.settimeout(PATIENCE_S)
            first = _receive(link)
            if "pid" not in first:
                self.failed.append(str(first.get("failed", first)))
                return None
            recorder.control_near.send(b"go")
            whole = recorder.until_ended(give_up)
            if not whole:
                end_all(int(first["pid"]))
            ended = _receive(link).get("ended")
            status = os.waitstatus_to_exitcode(ended) if ended is not None and whole else None
            return self._result(recorder, status, f"resumed at {answer['at']}")

    def _tape(self) -> tuple[Path, int, bool]:
        self.runs += 1
        return self._tape_of(self.runs), self.runs, self.dense

    def _tape_of(self, run: int) -> Path:
        return self.run / f"{self.key}.{run}.tape"

    def _result(self, recorder: Recorder, status: int | None, how: str) -> Result:
        out, err = recorder.heard
        return Result(out=out, err=err, status=status, files=read_files(self.folder), how=how)


def end_all(pid: int) -> None:
    """End a process and its children: they would go on writing in the folder."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _receive(link: socket.socket) -> dict[str, Any]:
    try:
        return wire.receive(link)[0] or {"failed": "the host closed the connection"}
    except OSError as error:
        return {"failed": f"the host does not answer: {error}"}


class Recorder:
    """The engine's part: reads both streams, writes them to the tape, and marks it when asked."""

    def __init__(self, tape: Path, run: int, dense: bool) -> None:
        self.tape = tape
        self._run = run
        self._file = tape.open("wb", buffering=0)
        self._length = 0
        self._marks = 0
        self._rng = random.Random(run)
        self._density = 1.0 if dense else self._rng.choice(DENSITIES)
        self._heard = (bytearray(), bytearray())
        self.out_near, self.out_far = os.pipe()
        self.err_near, self.err_far = os.pipe()
        self.control_near, self.control_far = socket.socketpair(
            socket.AF_UNIX, socket.SOCK_SEQPACKET
        )
        for fd in (self.out_near, self.err_near):
            os.set_blocking(fd, False)
        self._open = {self.out_near: 0, self.err_near: 1}
        self._far_is_here = True

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()
        self._file.close()
        self.control_near.close()
        for fd in (self.out_near, self.err_near):
            os.close(fd)

    @property
    def heard(self) -> tuple[bytes, bytes]:
        """Everything that was written to both streams."""
        return bytes(self._heard[0]), bytes(self._heard[1])

    def let_go(self) -> None:
        """Close the ends that the program has now."""
        if self._far_is_here:
            os.close(self.out_far)
            os.close(self.err_far)
            self.control_far.close()
            self._far_is_here = False

    def play(self, tape: Path, mark: int) -> None:
        """Say what the program said before its snapshot, as the beginning of this run."""
        data = tape.read_bytes()[:mark]
        at = 0
        while at < len(data):
            stream, length = struct.unpack_from("<BI", data, at)
            at += 5
            self._note(stream - 1, data[at : at + length])
            at += length

    def _note(self, stream: int, data: bytes) -> None:
        self._heard[stream].extend(data)
        self._length += self._file.write(struct.pack("<BI", stream + 1, len(data)) + data)

    def until_ended(self, give_up: Callable[[], bool]) -> bool:
        """Listen until both streams are closed; False if that does not happen."""
        deadline = time.monotonic() + PATIENCE_S
        poller = select.poll()
        for fd in (*self._open, self.control_near.fileno()):
            poller.register(fd, select.POLLIN)
        while self._open:
            for fd, _ in poller.poll(100):
                if fd in self._open:
                    if not self._drain(fd):
                        poller.unregister(fd)
                        del self._open[fd]
                elif not self._serve():
                    poller.unregister(fd)
            too_much = sum(map(len, self._heard)) > 2 * MOST_OUTPUT
            if too_much or time.monotonic() > deadline or give_up():
                return False
        return True

    def _drain(self, fd: int) -> bool:
        """Take what is in a pipe; False when it is closed."""
        while True:
            try:
                data = os.read(fd, 1 << 16)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._note(self._open[fd], data)
            if sum(map(len, self._heard)) > 2 * MOST_OUTPUT:
                return True

    def _is_worth_one(self) -> bool:
        """Decide whether there may be a snapshot: not so many that the run takes long."""
        wanted = self._marks < MOST_SNAPSHOTS and self._rng.random() < self._density
        self._marks += wanted
        return wanted

    def _serve(self) -> bool:
        """Answer one question of the program; False when it asks no more."""
        try:
            asked = self.control_near.recv(64)
        except OSError:
            return False
        if not asked:
            return False
        for fd in self._open:
            self._drain(fd)
        mark = str(self._run * _MARKS + self._length) if self._is_worth_one() else "-"
        try:
            self.control_near.send(mark.encode())
        except OSError:
            return False
        return True


# --- folders


def read_files(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder with their contents, and its folders."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = path.read_bytes() if path.is_file() else b"<folder>"
    return found


def write_version(folder: Path, version: Version) -> None:
    """Make the folder what a version says."""
    if version.clean:
        _clean(folder, version)
    for path in [*folder.rglob("*.py")]:
        if str(path.relative_to(folder)) not in version.files:
            path.unlink()
    for name, text in version.files.items():
        path = folder / name
        if path.is_file() and path.read_text() == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if version.renamed:
            new = path.with_suffix(".new")
            new.write_text(text)
            new.replace(path)
        else:
            path.write_text(text)


def _clean(folder: Path, version: Version) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        name = str(path.relative_to(folder))
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif name not in version.files:
            path.unlink()


def load(program: Path) -> Version:
    """Read a program as it is kept."""
    files = {
        str(path.relative_to(program)): path.read_text()
        for path in sorted(program.rglob("*"))
        if path.suffix in _KEPT_FILES and path.name != "argv.txt"
    }
    return Version(files=files, label="as it was")


def argv_of(program: Path) -> list[str]:
    """Return the words a program is started with."""
    path = program / "argv.txt"
    return path.read_text().split() if path.exists() else []


def programs() -> list[Path]:
    """List the shapes of programs that are tried."""
    return sorted(path.parent for path in PROGRAMS.glob("*/main.py"))


# --- what to do next


class Author:
    """Somebody who edits a program: forth, back, and forth again."""

    def __init__(self, first: Version, rng: random.Random) -> None:
        self.history = [first]
        self.rng = rng
        self.keeps = rng.random() < 0.25
        """Leaves what runs have written."""

    def next(self) -> Version:
        """Return the next version of the program."""
        made = dataclasses.replace(
            self._next(),
            clean=not (self.keeps and self.rng.random() < 0.8),
            renamed=self.rng.random() < 0.5,
        )
        self.history.append(made)
        return made

    def _next(self) -> Version:
        rng, now = self.rng, self.history[-1]
        chance = rng.random()
        if chance < 0.14 and len(self.history) > 1:
            return dataclasses.replace(self.history[-2], label="undo")
        if chance < 0.22:
            return dataclasses.replace(rng.choice(self.history), label="back to a version before")
        if chance < 0.24:
            return dataclasses.replace(now, label="nothing")
        if chance < 0.26:
            return self._broken(now)
        edited = self._edited(now)
        while rng.random() < 0.15:
            edited = self._edited(edited)
        return edited

    def _edited(self, now: Version) -> Version:
        sources = [name for name in now.files if name.endswith(".py")]
        data = [name for name in now.files if not name.endswith(".py")]
        rng = self.rng
        if data and rng.random() < 0.2:
            name = rng.choice(data)
            text, label = edits.edit_data(now.files[name], rng)
        else:
            name = "main.py" if rng.random() < 0.6 else rng.choice(sources)
            if not edits.compiles(now.files[name]):
                return dataclasses.replace(self.history[0], label="all undone")
            text, label = edits.edit(now.files[name], rng)
        words = label if now.label in ("as it was", "undo") else f"{now.label}; {label}"
        return dataclasses.replace(
            now, files={**now.files, name: text}, label=f"{words} ({name})"[-300:]
        )

    def _broken(self, now: Version) -> Version:
        lines = now.files["main.py"].splitlines()
        lines.insert(self.rng.randrange(len(lines) + 1), "def broken(:")
        files = {**now.files, "main.py": "\n".join(lines) + "\n"}
        return dataclasses.replace(now, files=files, label="syntax error")

    def forget(self) -> None:
        """Undo the last edit: it led nowhere."""
        self.history.pop()

    def begin_anew(self) -> None:
        """Take the first version again: the last one says too little to be worth editing."""
        self.history.append(dataclasses.replace(self.history[0], label="all undone"))


# --- pairs


@dataclass(kw_only=True, slots=True)
class Tally:
    """What happened to many pairs."""

    pairs: int = 0
    resumed: int = 0
    skipped: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    """Pairs whose cold runs differ from each other, by what makes them."""
    endless: int = 0
    mismatches: list[str] = dataclasses.field(default_factory=list)
    reasons: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    failures: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def add(self, other: Tally) -> None:
        """Count another tally in."""
        self.pairs += other.pairs
        self.resumed += other.resumed
        self.skipped += other.skipped
        self.endless += other.endless
        self.mismatches += other.mismatches
        self.reasons += other.reasons
        self.failures += other.failures

    def note(self, how: str) -> None:
        """Count a pair by how it was run."""
        self.pairs += 1
        if how.startswith("resumed"):
            self.resumed += 1
        else:
            self.reasons[in_general(how.removeprefix("cold: "))] += 1

    def __str__(self) -> str:
        cold = self.pairs - self.resumed
        skipped = ", ".join(f"{count} {why}" for why, count in self.skipped.most_common())
        text = f"{self.pairs} pairs: {self.resumed} resumed, {cold} cold"
        text += f", {self.skipped.total()} skipped (cold differs from cold: {skipped or 'never'})"
        text += f", {self.endless} endless"
        text += f", {len(self.mismatches)} MISMATCHES" if self.mismatches else ", all equal"
        for why, count in self.reasons.most_common(12):
            text += f"\n  {count:5} cold: {why}"
        for why, count in self.failures.most_common(8):
            text += f"\n  {count:5} resume failed: {why}"
        return text


def to_json(tally: Tally) -> dict[str, Any]:
    """Return a tally as it can be written."""
    return {field.name: getattr(tally, field.name) for field in dataclasses.fields(tally)}


def from_json(data: dict[str, Any]) -> Tally:
    """Read a tally that was written."""
    names = ("skipped", "reasons", "failures")
    counters = {name: collections.Counter(data[name]) for name in names}
    return Tally(**{**data, **counters})


def in_general(why: str) -> str:
    """Return a reason without its numbers and names, to be counted."""
    why = re.sub(r"`[^`]*`", "`x`", why)
    why = re.sub(r"[\w/.-]+\.(py|txt|csv|json|log|bin)\b", "FILE", why)
    why = re.sub(r"/[\w/.-]+", "PATH", why)
    return re.sub(r"\d+", "N", why)[:110]


class Pair:
    """Two folders with the same program, one relaunched warm and one cold."""

    def __init__(
        self, root: Path, argv: list[str], python: str, often: float = OFTEN_S, dense: bool = False
    ) -> None:
        self.warm_folder = root / "warm" / "project"
        self.cold_folder = root / "cold" / "project"
        run = root / "run"
        for folder in (self.warm_folder, self.cold_folder):
            folder.mkdir(parents=True)
        run.mkdir(mode=0o700)
        self.argv = argv
        self.python = python
        self.client = Warm(self.warm_folder, run, python, often, dense)

    def run(self, version: Version) -> tuple[Result, Result | None]:
        """Run a version both ways: what cold did, and what warm did; None if cold is endless."""
        before = self._leftovers()
        for folder in (self.warm_folder, self.cold_folder):
            write_version(folder, version)
        cold = Cold(self.cold_folder, self.argv, self.python)
        warm = self._washed(self.client.warm(self.argv, lambda: cold.is_endless))
        expected = self._washed(cold.result())
        if cold.is_endless:
            self.level()
            return expected, None
        if warm.seen != expected.seen:
            why = self.why_uncertain(version, before, expected, warm)
            if why:
                self.level()
                return expected, dataclasses.replace(expected, how=f"{_RANDOM}{why}")
        return expected, warm

    def _leftovers(self) -> dict[str, bytes]:
        return read_files(self.cold_folder)

    def why_uncertain(
        self, version: Version, before: dict[str, bytes], expected: Result, warm: Result
    ) -> str:
        """Tell what lets the cold run do something else when it is repeated; else nothing.

        A program with several processes or threads may happen to win the same race each time: so it
        is also run with those held back that start others, with those that are started, with
        processes that take turns in writing, and with threads that overtake each other. What a
        `__del__` of objects in cycles writes depends on the moment at which Python collects them:
        so it is also moved.
        """
        if not _is_more_than_ending_threads(version, expected, warm):
            return "threads that end"
        if any(self._again(version, before).seen != expected.seen for _ in range(2)):
            return "by chance"
        for name, values in _OTHERWISE_VALUES.items():
            first, *others = (self._again(version, before, {name: one}).seen for one in values)
            if any(one != first for one in others):
                return name
        return ""

    def _again(
        self, version: Version, before: dict[str, bytes], otherwise: dict[str, str] | None = None
    ) -> Result:
        fill(self.cold_folder, before)
        write_version(self.cold_folder, version)
        extra = {"PYTHONPATH": str(_OTHERWISE), **otherwise} if otherwise else {}
        return self._washed(Cold(self.cold_folder, self.argv, self.python, extra).result())

    def _washed(self, result: Result) -> Result:
        """Put the name of the warm folder in the place of the cold one's; they are equally long.

        Addresses of objects and process numbers are those of no other run, cold ones included.
        """
        old, new = (str(one).encode() for one in (self.cold_folder, self.warm_folder))

        def wash(data: bytes) -> bytes:
            data = re.sub(rb"\(pid=\d+\)", b"(pid=?)", data.replace(old, new))
            return re.sub(rb"\b0x[0-9a-f]{6,}\b", b"0x?", data)

        return dataclasses.replace(
            result,
            out=wash(result.out),
            err=wash(result.err),
            files={name: wash(data) for name, data in result.files.items()},
        )

    def level(self) -> None:
        """Make the two folders equal again."""
        fill(self.warm_folder, read_files(self.cold_folder))

    def close(self) -> None:
        """End all that waits."""
        self.client.stop()


def _is_more_than_ending_threads(version: Version, cold: Result, warm: Result) -> bool:
    """Tell whether two runs of a program differ in more than a warning that comes by chance.

    Python 3.12 and later ask the system at a fork how many threads there are: one that is just
    ending may count or not, even when it was joined.
    """
    if not any("threading" in text for text in version.files.values()):
        return True
    calm = [
        dataclasses.replace(one, err=re.sub(_THREADS_AT_FORK, b"", one.err)) for one in (cold, warm)
    ]
    return calm[0].seen != calm[1].seen


def fill(folder: Path, files: dict[str, bytes]) -> None:
    """Make a folder hold just these files."""
    for path in sorted(folder.rglob("*"), reverse=True):
        name = str(path.relative_to(folder))
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif files.get(name) != path.read_bytes():
            path.unlink()
    for name, data in sorted(files.items()):
        path = folder / name
        if data == b"<folder>":
            path.mkdir(exist_ok=True)
        elif not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def session(program: Path, seed: int, pairs: int, python: str, keep: Path) -> Tally:
    """Edit and relaunch one program many times; differences are kept in the folder `keep`."""
    tally = Tally()
    while tally.pairs < pairs and len(tally.mismatches) < MOST_DIFFERENCES:
        rng = random.Random(f"{program.name} {seed} {tally.pairs}")
        with _room() as root:
            pair = Pair(root, argv_of(program), python)
            try:
                _edit_and_run(pair, Author(load(program), rng), pairs, tally, program, keep)
            finally:
                pair.close()
            tally.failures.update(map(in_general, pair.client.failed))
    return tally


class _room:
    """A folder for a session, as short as can be."""

    def __enter__(self) -> Path:
        self._path = tempfile.mkdtemp(prefix="w")
        return Path(self._path)

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._path, ignore_errors=True)


def _edit_and_run(
    pair: Pair, author: Author, pairs: int, tally: Tally, program: Path, keep: Path
) -> None:
    """Go on until there are enough pairs, or one differs."""
    ran = [author.history[0]]
    first, warm = pair.run(ran[0])
    if warm is not None and not warm.how.startswith(_RANDOM) and warm.seen != first.seen:
        tally.note(warm.how)
        tally.mismatches.append(keep_case(keep, program, pair, ran, first, warm))
        return
    while tally.pairs < pairs:
        version = author.next()
        cold, warm = pair.run(version)
        if warm is None:
            tally.endless += 1
            author.forget()
            continue
        ran.append(version)
        if warm.how.startswith(_RANDOM):
            tally.skipped[warm.how.removeprefix(_RANDOM)] += 1
            continue
        tally.note(warm.how)
        if warm.seen != cold.seen:
            tally.mismatches.append(keep_case(keep, program, pair, ran, cold, warm))
            return
        if len(cold.out) < len(first.out) // 2 and author.rng.random() < 0.7:
            author.begin_anew()


# --- differences, kept and repeated


def keep_case(
    keep: Path, program: Path, pair: Pair, ran: list[Version], cold: Result, warm: Result
) -> str:
    """Write down a difference so that it can be looked at and repeated; returns where."""
    short, repeats = _shortest(pair, ran)
    name = f"{program.name}-{hashlib.sha1(repr(ran[-1].files).encode()).hexdigest()[:8]}"
    folder = keep / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, version in enumerate(short):
        place = folder / f"version{number}"
        place.mkdir()
        write_version(place, version)
    (folder / "case.json").write_text(
        json.dumps(
            {
                "program": program.name,
                "python": pair.python,
                "argv": pair.argv,
                "often": pair.client.often,
                "versions": [dataclasses.asdict(version) for version in short],
            },
            indent=1,
        )
    )
    for side, result in (("cold", cold), ("warm", warm)):
        (folder / f"{side}.out").write_bytes(result.out)
        (folder / f"{side}.err").write_bytes(result.err)
    text = _difference(cold, warm)
    (folder / "README").write_text(
        f"{program.name}, {warm.how}, last edit: {ran[-1].label}\n"
        f"{len(short)} versions; it {'repeats' if repeats else 'DOES NOT REPEAT every time'}\n"
        f"once more: PYTHONPATH=src:. .venv/bin/python -m tests.quality.warm.harness {folder}\n\n"
        f"{text}\n"
    )
    return f"{folder}: {warm.how}, {ran[-1].label}\n{text}"


def _difference(cold: Result, warm: Result) -> str:
    import difflib

    lines = [] if cold.status == warm.status else [f"status: cold {cold.status} warm {warm.status}"]
    pairs = [("stdout", cold.out, warm.out), ("stderr", cold.err, warm.err)]
    for name in sorted({*cold.files, *warm.files}):
        pairs.append((name, cold.files.get(name, b"<none>"), warm.files.get(name, b"<none>")))
    for name, one, other in pairs:
        if one != other:
            old, new = (data.decode(errors="replace").splitlines() for data in (one, other))
            sides = f"{name} cold", f"{name} warm"
            found = difflib.unified_diff(old, new, *sides, lineterm="", n=1)
            lines += [*found][:40]
    return "\n".join(lines)


def _shortest(pair: Pair, ran: list[Version]) -> tuple[list[Version], bool]:
    """Find a short way to the difference: the fewest versions that still show it."""
    tails = [
        [ran[-1]],
        [*ran[-2:]],
        [ran[0], ran[-1]],
        ran[-3:],
        [ran[0], *ran[-2:]],
        ran[-5:],
        ran[-9:],
    ]
    for tail in tails:
        if differs(tail, pair.argv, pair.python, pair.client.often):
            return tail, True
    return ran, differs(ran, pair.argv, pair.python, pair.client.often) is not None


def differs(
    versions: list[Version], argv: list[str], python: str, often: float
) -> tuple[Result, Result] | None:
    """Run versions one after the other from nothing; the results of the last if they differ."""
    with _room() as root:
        pair = Pair(root, argv, python, often, dense=True)
        try:
            for version in versions:
                cold, warm = pair.run(version)
                time.sleep(0.03)  # so that the last snapshots have said what they are
            return None if warm is None or warm.seen == cold.seen else (cold, warm)
        finally:
            pair.close()


def repeat(folder: Path, python: str = "") -> int:
    """Run a difference that was kept once more and show it; 0 if both sides agree now."""
    case = json.loads((folder / "case.json").read_text())
    versions = [Version(**one) for one in case["versions"]]
    for number, version in enumerate(versions):  # they may have been made smaller by hand
        place = folder / f"version{number}"
        for name in version.files:
            version.files[name] = (place / name).read_text()
    found = differs(versions, case["argv"], python or case["python"], case["often"])
    if found is None:
        print("both are the same")
        return 0
    cold, warm = found
    print(warm.how)
    print(_difference(cold, warm))
    return 1


def python_of_tests() -> str:
    """Return the Python that the programs run on."""
    return os.environ.get("RELAUNCH_WARM_PYTHON", sys.executable)


def other_python(version: str) -> str | None:
    """Find a Python such as 3.12, beside this one or on the path; None if none works."""
    beside = sorted(Path(sys.base_prefix).parent.glob(f"*{version}.*/bin/python{version}"))
    for python in [*map(str, beside), shutil.which(f"python{version}")]:
        if python and version_of(python) == version:
            return python
    return None


@functools.cache
def version_of(python: str) -> str:
    """Ask a Python for its version, as 3.12; empty if it does not run, as those of pyenv may."""
    ask = "import sys; print(*sys.version_info[:2], sep='.')"
    asked = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else ""


def _each(options: argparse.Namespace) -> Iterator[tuple[str, Tally]]:
    chosen = [one for one in programs() if not options.only or one.name in options.only]
    share = max(1, -(-options.pairs // len(chosen)))
    for program in chosen:
        began = time.monotonic()
        tally = session(program, options.seed, share, options.python, options.keep)
        took = time.monotonic() - began
        yield f"{program.name} {took / max(1, tally.pairs) * 1000:.0f} ms/pair", tally


def main() -> int:
    """Run many pairs and print what became of them, or one that was kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("case", nargs="?", type=Path, help="a difference that was kept")
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", help="a program")
    parser.add_argument("--python", default=python_of_tests())
    parser.add_argument(
        "--keep", type=Path, default=Path(tempfile.gettempdir()) / "warm_mismatches"
    )
    options = parser.parse_args()
    if options.case:
        return repeat(options.case)
    total = Tally()
    for name, tally in _each(options):
        print(name, tally, flush=True)
        for one in tally.mismatches:
            print(one, flush=True)
        total.add(tally)
    print("TOTAL", total)
    return 1 if total.mismatches else 0


if __name__ == "__main__":
    sys.exit(main())
