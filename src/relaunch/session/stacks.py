"""Where is it stuck? Finds the processes that are meant, reads their stacks, and merges them."""

from __future__ import annotations

import os
import time

from relaunch.errors import RelaunchError, UsageError
from relaunch.look.matching import by_pattern
from relaunch.look.stacks.frames import LookError, ProcessStacks
from relaunch.look.stacks.ladder import Asked, look
from relaunch.look.stacks.who import all_python, matching, of_job, with_all_below
from relaunch.look.stacks.wire import NoStacksError, read_processes
from relaunch.look.usage import stat_of
from relaunch.proc.status import process_of
from relaunch.record import Record
from relaunch.session import look_back
from relaunch.session.watched import LAST, processes_of, running_trials, trial_to_watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

    from relaunch.journal.store import Journal, Trial


_KEPT = "it hung, and its stacks are kept"


class Chosen(Record):
    """The processes that are meant, and what they are called."""

    title: str
    pids: Sequence[int]
    may_be_none: bool = False
    """That there are none here is an answer too: a job may have none on this host."""


class Taken(Record):
    """What was read, and how long that took."""

    title: str
    processes: Sequence[ProcessStacks]
    took_s: float = 0.0
    problems: Sequence[str] = ()
    """What could not be asked at all, and why: a node that is lost."""


def take(chosen: Chosen, asked: Asked) -> Taken:
    """Read the stacks of the processes that were chosen.

    Raises LookError when nothing of any Python among them can be read; with one that can, the rest
    is told with it.
    """
    began = time.monotonic()
    found = look(chosen.pids, asked)
    took_s = time.monotonic() - began
    if not found and not chosen.may_be_none:
        raise LookError(f"{chosen.title} ended before it could be read")
    python = [one for one in found if one.is_python]
    if python and not any(one.is_read for one in python):
        raise _nothing_read(python)
    return Taken(title=chosen.title, processes=found, took_s=took_s)


def _nothing_read(python: Sequence[ProcessStacks]) -> LookError:
    first = next((one for one in python if one.fix), python[0])
    more = f", and {len(python) - 1} more" if len(python) > 1 else ""
    doing = first.main.doing if first.main is not None else ""
    kernel = f" (the kernel says: {doing})" if doing else ""
    return LookError(f"process {first.pid}{more}: {first.problem}{kernel}", hint=first.fix)


# --- who is meant ---------------------------------------------------------------------------------


def by_word(word: str) -> Chosen:
    """Return what a word means: a trial that runs here, a process, or a name.

    A plain number is a trial only where one of that number runs: it is a process otherwise.
    """
    if word == LAST or word.startswith(("#", "@")) or _is_trials_number(word):
        return of_trial(word)
    if word.isdecimal():
        trial = _running(word)
        return of_trial(word, trial) if trial is not None else of_process(int(word))
    return of_name(word)


def _is_trials_number(word: str) -> bool:
    """Tell what only a trial is called: `3.2`, a repeat, and `-1`, the last."""
    number, dot, repeat = word.partition(".")
    is_repeat = bool(dot) and number.isdecimal() and repeat.isdecimal()
    return is_repeat or (word.startswith("-") and word[1:].isdecimal())


def of_trial(word: str = LAST, trial: Trial | None = None) -> Chosen:
    """Return the processes of a trial; of the one that runs here when none is named."""
    journal = look_back.here()[1]
    if trial is None and word == LAST and not running_trials(journal):
        raise _nothing_runs(journal)
    found = trial or trial_to_watch(journal, word)
    pids = with_all_below(matching(processes_of(found))) if found.running else []
    if not pids:
        kept = _KEPT if _hung(found) else "nothing of it runs"
        raise LookError(f"#{found.id} has ended: {kept}", hint=f"rl show {found.id}")
    return Chosen(title=f"#{found.id}", pids=pids)


def _nothing_runs(journal: Journal) -> RelaunchError:
    newest = journal.newest()
    what = f"#{newest}, the last trial here, has ended" if newest else "no trial runs here"
    if newest and _hung(journal.load(newest)):
        return UsageError(f"{what}: {_KEPT}", hint=f"rl show {newest}")
    return UsageError(f"{what}: whose stacks?", hint="rl stacks PID, NAME or --all")


def _hung(trial: Trial) -> bool:
    """Tell whether it was ended because it hung, with its stacks kept."""
    reached = (trial.end or {}).get("reached") or {}
    return reached.get("what") == "hang" and bool(reached.get("title"))


def _running(number: str) -> Trial | None:
    try:
        running = running_trials(look_back.here()[1])
    except (RelaunchError, OSError):
        return None
    return next((trial for trial in running if trial.id == number), None)


def of_process(pid: int) -> Chosen:
    """Return a process and all below it; a thread means its process."""
    try:
        pid = process_of(pid)
    except (OSError, KeyError, ValueError):
        raise LookError(f"no process {pid}", hint="rl stacks --all, or rl stacks NAME") from None
    stat = stat_of(pid)
    if pid == os.getpid() or stat is None:
        raise LookError(f"process {pid} is rl itself", hint="rl stacks --all")
    if stat.state in "ZX":
        why = f"process {pid} has ended; its parent, {stat.parent}, has not collected it"
        raise LookError(why, hint=f"rl stacks {stat.parent}")
    return Chosen(title=f"process {pid}", pids=with_all_below([pid]))


def of_name(word: str) -> Chosen:
    """Return who has a regular expression in its name or command line, and all below them."""
    pids = with_all_below(matching(by_pattern(_pattern(word), None)))
    if not pids:
        raise LookError(f"no process is called `{word}`", hint="rl stacks --all")
    return Chosen(title=word, pids=pids)


def _pattern(text: str) -> re.Pattern[str]:
    from relaunch.patterns import compiled

    if not text.strip():
        raise UsageError("an empty name matches everything", hint="rl stacks --all")
    try:
        return compiled(text)
    except ValueError as error:
        import re

        raise UsageError(
            f"`{text}` is no regular expression: {error}", hint=f"rl stacks '{re.escape(text)}'"
        ) from None


def of_slurm_job(job: str) -> Chosen:
    """Return the processes of a Slurm job on this host."""
    number, _, task = job.partition("_")
    if not number.isdecimal() or (task and not task.isdecimal()):
        raise UsageError(f"--job takes a number such as 1234 or 1234_5, not `{job}`", hint="squeue")
    return Chosen(title=f"job {job}", pids=of_job(job), may_be_none=True)


def of_everyone() -> Chosen:
    """Return every Python process of this user; for root, of all users."""
    uid = os.geteuid()
    pids = all_python(uid or None)
    if not pids:
        raise LookError("no Python runs here", hint="sudo rl stacks --all" if uid else "rl doctor")
    return Chosen(title="every Python", pids=pids)


# --- what was read elsewhere ----------------------------------------------------------------------


def kept(paths: Sequence[str], stdin: str = "") -> Taken:
    """Return what `rl stacks --json` wrote into files, of any host and moment; `-` is `stdin`."""
    found: list[ProcessStacks] = []
    for path in paths:
        try:
            if path == "-":
                text = stdin
            else:
                with open(path, encoding="utf-8", errors="replace") as file:
                    text = file.read()
            found += read_processes(text)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}") from None
        except NoStacksError as error:
            raise NoStacksError(f"{path}: {error.message}", hint="rl stacks --json") from None
    names = ", ".join(map(os.path.basename, paths)) if len(paths) < 4 else f"{len(paths)} files"
    return Taken(title=names, processes=found)
