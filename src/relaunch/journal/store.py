"""One directory per trial, each file written whole by temp + rename, so no kill can corrupt it.

What begins a trial is on the disk before its program starts, or, where the disk is slow, soon after
(`to_disk`); a file that a power cut left broken hides no other.

    trials/7/start.json     all that is known before the launch; its arrival makes the trial exist
    trials/7/output.0 ...   what the program said, with times
    trials/7/end.json       the outcome; missing while it runs, or when rl itself was killed
    trials/7/mark.json      the person's verdict and name
    trials/7/repeats        the highest of its repeats that was forgotten: not to be given again

Short cuts, each a file with a trial's number; the journal works without them, and a trial is not
lost because one cannot be written:

    identities/DIGEST       the first trial with this code, command, set and environment
    signatures/DIGEST       the last trial that failed this way
    lineages/DIGEST         the last trial of this command
    running/7               begun and not finished: what the next run looks at to repair
    last                    the trial that began last

A number is taken by renaming a finished temp directory onto it: atomic, also on network homes and
with many writers. Repeats of trial 7 are 7.2, 7.3, ...
"""

from __future__ import annotations

import os
import time

from relaunch.errors import JournalError
from relaunch.inside.secret_shapes import mask_all, spans
from relaunch.journal import to_disk
from relaunch.journal.malformed import Reading
from relaunch.journal.output import SEGMENT_BYTES, OutputWriter
from relaunch.jsontext import dumps, loads
from relaunch.record import Record
from relaunch.textfile import make_own_folder, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

FORMAT = 1
UNREADABLE = "unreadable"
"""The one word of an end or mark whose file is broken."""
_SILENT_S = 86400
_PROC = "/proc"


class Trial(Record):
    """One trial as remembered. `end` is None while it runs and after rl itself was killed."""

    id: str
    path: str
    start: dict[str, Any]
    end: dict[str, Any] | None = None
    mark: dict[str, Any] = {}

    def reading(self) -> Reading:
        """Return what says in one line, as JournalError, that what it holds cannot be read."""
        return Reading(f"#{self.id}", "trial", self.path)

    @property
    def running(self) -> bool:
        """True while the rl that started it is alive; elsewhere, for a day after it last spoke."""
        if self.end is not None:
            return False
        rl = self.start.get("rl")
        if not isinstance(rl, dict):
            return False
        if not is_here(rl):
            return time.time() - self._last_spoke() < _SILENT_S
        pid = rl.get("pid")
        return isinstance(pid, int) and process_started(pid) == rl.get("started")

    def _last_spoke(self) -> float:
        found = [0.0]
        try:
            found.append(float(self.start.get("when", 0)))
            with os.scandir(self.path) as files:
                found += [f.stat().st_mtime for f in files if f.name.startswith("output.")]
        except (OSError, TypeError, ValueError, OverflowError):
            pass
        return max(found)


class Journal:
    """The trials of one project."""

    def __init__(self, home: str) -> None:
        """Use the folder `home`; it is made when the first trial begins."""
        self.home = home
        self.trials = os.path.join(home, "trials")

    def begin(self, start: dict[str, Any], *, identity: str = "", lineage: str = "") -> Trial:
        """Give the trial a number and make it exist. Raises OSError if it cannot be written.

        Trials of one `lineage`, in practice of one command, are told against each other.
        """
        make_own_folder(self.home)  # before what is in it: the mode is for the last folder
        os.makedirs(self.trials, mode=0o700, exist_ok=True)
        first = self.first_with(identity) if identity else ""
        pid = os.getpid()
        rl = {"pid": pid, "started": process_started(pid), **whereabouts()}
        start = {
            "format": FORMAT,
            "when": time.time(),
            "rl": rl,
            "identity": identity,
            "previous": self.newest(),
            "before": self._recall("lineages", lineage) if lineage else "",
            **start,
            "identical_to": first,
        }
        temp = os.path.join(self.trials, f".new-{os.getpid()}-{time.monotonic_ns()}")
        os.mkdir(temp, 0o700)
        write_json(os.path.join(temp, "start.json"), start)
        trial_id = self._take_number(temp, first)
        self._remember("running", trial_id, b"")
        self._remember("", "last", trial_id.encode())
        if lineage:
            self._remember("lineages", lineage, trial_id.encode())
        if identity and not first:
            self._remember("identities", identity, trial_id.encode())
        trial = Trial(id=trial_id, path=os.path.join(self.trials, trial_id), start=start)
        self._sync_start(trial)
        return trial

    def _sync_start(self, trial: Trial) -> None:
        """Have the trial on the disk soon; `to_disk.wait` waits for it."""
        paths = [os.path.join(trial.path, "start.json"), trial.path, self.trials]
        if trial.id == "1":  # they may be new too
            paths += [self.home, os.path.dirname(self.home)]
        to_disk.soon(lambda: to_disk.sync(paths))

    def _take_number(self, temp: str, repeat_of: str) -> str:
        if repeat_of:
            prefix = repeat_of + "."
            taken = [id_order(i)[1] for i in self.ids() if i.startswith(prefix)]
            # After the listing: what is forgotten meanwhile is in the one or in the other.
            number = max([1, *taken, self._forgotten_repeat(repeat_of)]) + 1
        else:
            prefix = ""
            number = self.last_number() + 1
        while True:
            try:
                os.rename(temp, os.path.join(self.trials, f"{prefix}{number}"))
            except OSError as error:
                if not os.path.isdir(os.path.join(self.trials, f"{prefix}{number}")):
                    raise error
                number += 1
            else:
                return f"{prefix}{number}"

    def note_forgotten(self, trial_id: str) -> None:
        """Keep the number of a repeat that is to go from being given again. May raise OSError."""
        first, _, repeat = trial_id.partition(".")
        folder = os.path.join(self.trials, first)
        if repeat.isdecimal() and os.path.isdir(folder):
            highest = max(int(repeat), self._forgotten_repeat(first))
            write_file(os.path.join(folder, "repeats"), b"%d" % highest)

    def _forgotten_repeat(self, first: str) -> int:
        try:
            with open(os.path.join(self.trials, first, "repeats"), "rb") as file:
                return int(file.read(32))
        except (OSError, ValueError):
            return 0

    def _remember(self, folder: str, name: str, data: bytes) -> None:
        """Write a short cut if we can: the trial is there without it."""
        path = os.path.join(self.home, folder, name)
        try:
            try:
                write_file(path, data, is_dispensable=True)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
                write_file(path, data, is_dispensable=True)
        except OSError:
            pass

    def first_with(self, identity: str) -> str:
        """Return the id of the first trial with this identity, or nothing."""
        return self._recall("identities", identity)

    def last_with(self, signature: str) -> str:
        """Return the id of the last trial that failed with this signature digest, or nothing."""
        return self._recall("signatures", signature)

    def newest(self) -> str:
        """Return the id of the trial that began last, or nothing; 3.2 may be newer than 7."""
        return self._recall("", "last") or (self.ids() or [""])[-1]

    def unfinished(self) -> list[str]:
        """List the trials that have begun and not been finished, alive or not."""
        try:
            names = os.listdir(os.path.join(self.home, "running"))
        except OSError:
            return []
        return sorted((name for name in names if not is_temporary(name)), key=id_order)

    def _recall(self, folder: str, name: str) -> str:
        try:
            trial_id = read_text(os.path.join(self.home, folder, name), "strict")[:32].strip()
        except (OSError, ValueError):
            return ""
        exists = trial_id and os.path.isdir(os.path.join(self.trials, trial_id))
        return trial_id if exists else ""

    def finish(self, trial: Trial, end: dict[str, Any]) -> Trial:
        """Write the outcome. Raises OSError if it cannot be written.

        A busy disk is not waited for: what it was handed over follows within seconds.
        """
        to_disk.wait(to_disk.AT_EXIT_S)
        write_json(os.path.join(trial.path, "end.json"), end, is_synced=to_disk.is_quick())
        try:
            os.unlink(os.path.join(self.home, "running", trial.id))
        except OSError:
            pass
        if end.get("signature"):
            self._remember("signatures", end["signature"]["digest"], trial.id.encode())
        return trial.but(end=end)

    def rewrite_start(self, trial: Trial) -> None:
        """Write what is known before the launch once more. Raises OSError if it cannot.

        The trial was announced: a power cut must not leave an empty file in place of the first.
        """
        write_json(os.path.join(trial.path, "start.json"), trial.start, is_synced=True)
        self._sync_start(trial)

    def set_mark(self, trial: Trial, mark: dict[str, Any]) -> Trial:
        """Write the person's verdict, note and name."""
        mark = {name: value for name, value in mark.items() if name != UNREADABLE}
        write_json(os.path.join(trial.path, "mark.json"), mark, is_synced=True)
        return trial.but(mark=mark)

    def output(self, trial: Trial, *, max_bytes: int = 3 * SEGMENT_BYTES) -> OutputWriter:
        """Open the trial's output for appending; of more, the beginning and the end are kept."""
        return OutputWriter(trial.path, segment_bytes=max(1 << 16, max_bytes // 3))

    def ids(self) -> list[str]:
        """List all trial ids, oldest number first, repeats after their first."""
        try:
            names = os.listdir(self.trials)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise JournalError(f"cannot read the journal {self.trials}: {error.strerror}") from None
        return sorted((name for name in names if not name.startswith(".")), key=id_order)

    def last_number(self) -> int:
        """Return the highest number in use."""
        ids = self.ids()
        return id_order(ids[-1])[0] if ids else 0

    def began_empty(self, trial_id: str) -> bool:
        """Tell whether nothing is known of how a trial began: its file is there, and empty."""
        try:
            return os.path.getsize(os.path.join(self.trials, trial_id, "start.json")) == 0
        except OSError:
            return False

    def load(self, trial_id: str) -> Trial:
        """Read one trial; raises JournalError if it cannot be known how it began.

        An end or a mark that cannot be read hides no start: it has one word, which says why.
        """
        path = os.path.join(self.trials, trial_id)
        if not os.path.isdir(path):
            last = self.last_number()
            have = f"there are 1 to {last}" if last else "there are none yet"
            raise JournalError(f"no trial #{trial_id}: {have}", hint="rl log")
        start = read_json(os.path.join(path, "start.json"))
        if start is None:
            raise JournalError(f"trial #{trial_id} has no start.json", hint=f"ls {path}")
        end = _read_if_whole(path, "end.json")
        mark = _read_if_whole(path, "mark.json") or {}
        return Trial(id=trial_id, path=path, start=start, end=end, mark=mark)


def _read_if_whole(folder: str, name: str) -> dict[str, Any] | None:
    try:
        return read_json(os.path.join(folder, name))
    except JournalError as error:
        return {UNREADABLE: error.message.replace(os.path.join(folder, ""), "")}


def id_order(trial_id: str) -> tuple[int, int]:
    """Sort key of ids: 3, 3.2, 3.10, 4; anything else first."""
    number, _, repeat = trial_id.partition(".")
    try:
        return int(number), int(repeat or 1)
    except ValueError:
        return 0, 0


def before(ids: Sequence[str], trial_id: str) -> str:
    """Return the id that comes before this one, which need not be there itself; or nothing."""
    smaller = [other for other in ids if id_order(other) < id_order(trial_id)]
    return smaller[-1] if smaller else ""


def whereabouts() -> dict[str, str]:
    """Name the place in which a pid means something: host, boot, and pid namespace.

    Containers often share a hostname; in each, the pids of the others are gone or someone else's.
    """
    return {
        "host": os.uname().nodename,
        "boot": _line_of(f"{_PROC}/sys/kernel/random/boot_id"),
        "pids": _link_of(f"{_PROC}/self/ns/pid"),
    }


def is_here(rl: dict[str, Any]) -> bool:
    """Tell whether the pid in a trial's `rl` can be looked at from here."""
    return "host" in rl and all(rl.get(name, mine) == mine for name, mine in whereabouts().items())


def _line_of(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(256).decode("ascii", "replace").strip()
    except OSError:
        return ""


def _link_of(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def process_started(pid: int) -> int:
    """Return when a process started, in ticks since boot: with the pid, its identity. 0 if gone.

    Without /proc (macOS) all we can tell is whether there is such a process: then 1.
    """
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
        return 0 if words[0] == b"Z" else int(words[19])  # a zombie only waits to be collected
    except (OSError, ValueError, IndexError):
        return 0 if os.path.exists(f"{_PROC}/self/stat") else int(_answers(pid))


def _answers(pid: int) -> bool:
    if pid <= 0:
        return False  # a group, to kill(2)
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True  # another user's
    except (OSError, OverflowError):
        return False
    return True


def write_file(
    path: str, data: bytes, *, is_synced: bool = False, is_dispensable: bool = False
) -> None:
    """Put `data` at `path` whole or not at all, readable by its owner alone.

    With `is_synced` it is on the disk when this returns. Only what is dispensable may be empty
    after a power cut: to hand a file over to the disk takes as long as to write it.
    """
    # Hosts and containers that share a home may share the pid as well.
    temp = f"{path}.{os.getpid()}-{time.monotonic_ns()}.tmp"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        try:
            done = 0
            while done < len(data):
                done += os.write(fd, data[done:])
            # Before the rename: else a power cut would leave an empty file by the final name.
            is_old = is_synced and os.path.lexists(path)
            if is_old:
                to_disk.sync_file(fd)
            elif not is_dispensable:
                to_disk.hand_over(fd)
        finally:
            os.close(fd)
        os.rename(temp, path)
        if is_synced:
            to_disk.sync((path, os.path.dirname(path)))
    except OSError:
        try:
            os.unlink(temp)
        except OSError:
            pass
        raise


def is_temporary(name: str) -> bool:
    """Tell whether a file is one of `write_file`'s that has not been renamed yet."""
    path, _, end = name.rpartition(".")
    return end == "tmp" and path.rpartition(".")[2].replace("-", "").isdecimal()


def write_json(path: str, value: dict[str, Any], *, is_synced: bool = False) -> None:
    """Put `value` at `path` as JSON, whole or not at all, and without what looks like a secret."""
    write_exactly(path, cleaned(value), is_synced=is_synced)


def write_exactly(path: str, value: dict[str, Any], *, is_synced: bool = False) -> None:
    """Put `value` at `path` as JSON: paths and the like, which must come back unchanged."""
    write_file(path, dumps(value).encode("ascii") + b"\n", is_synced=is_synced)


def cleaned(value: dict[str, Any]) -> dict[str, Any]:
    """Return plain data without what looks like a secret; `env` has names and hashes of them."""
    rest = {name: one for name, one in value.items() if name != "env"}
    if not spans(dumps(rest).encode("ascii")):
        return value
    return {**value, **mask_all(rest)}


def read_json(path: str) -> dict[str, Any] | None:
    """Read an object back; None if there is no such file; JournalError if it is not one."""
    try:
        value = loads(read_text(path, "strict"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise JournalError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        what = "is not JSON" if os.path.getsize(path) else "is empty"
        raise JournalError(f"{path} {what}", hint=f"mv {path} {path}.broken") from None
    if not isinstance(value, dict):
        raise JournalError(f"{path} is not a JSON object")
    return value
