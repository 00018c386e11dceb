"""What a person calls a trial: `3`, `#3`, `3.2`, `-1`, `@good`, a name; turned into its id.

3  #3  3.2         that number, or its second repeat
-1  -2  @          counted from the newest
@good @bad @unsure the newest so marked. Nothing marked: @good is the newest that passed,
                   @bad the newest that failed
@passed @failed    the newest that did
NAME               given by `rl mark 3 --name NAME`
"""

from __future__ import annotations

import os

from relaunch.errors import JournalError, UsageError
from relaunch.journal.store import UNREADABLE, id_order, read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from relaunch.journal.store import Journal, Trial

VERDICTS = ("good", "bad", "unsure")
STATES = ("passed", "failed", "interrupted", "unstarted", "killed", "running", "unknown")
_WORDS = (*VERDICTS, "passed", "failed")
_NAME_EXTRA = "-_."


def resolve(journal: Journal, ref: str) -> str:
    """Return the id of the trial that `ref` means; raises JournalError when there is none."""
    word = ref.strip()
    if word in ("", "#"):
        raise UsageError("which trial? An empty word names none", hint="rl log")
    if word == "@":
        return _from_newest(journal, 1)
    if word[0] == "-" and word[1:].isdecimal():
        return _from_newest(journal, int(word[1:]))
    if word[0] == "@" and word[1:] in _WORDS:
        return _newest_so_judged(journal, word[1:])
    number = _number(word.removeprefix("#"))
    if number:
        if not os.path.isdir(os.path.join(journal.trials, number)):
            raise JournalError(f"no trial #{number}: {what_there_is(journal)}", hint="rl log")
        return number
    return _named(journal, word.removeprefix("@"))


def _number(word: str) -> str:
    """Return the id as the journal writes it, or nothing if the word is no number."""
    number, dot, repeat = word.partition(".")
    if not (number.isascii() and number.isdecimal()):
        return ""
    if not dot:
        return str(int(number))
    if not (repeat.isascii() and repeat.isdecimal()):
        return ""
    return str(int(number)) if int(repeat) == 1 else f"{int(number)}.{int(repeat)}"


def what_there_is(journal: Journal) -> str:
    """Say which numbers there are."""
    ids = [trial_id for trial_id in journal.ids() if id_order(trial_id)[0]]
    if not ids:
        return "there are none yet"
    first, last = id_order(ids[0])[0], id_order(ids[-1])[0]
    return f"there is only #{first}" if first == last else f"there are {first} to {last}"


def newest(journal: Journal, count: int) -> list[str]:
    """Return the last `count` ids in the order they were started, oldest first.

    Numbers rise with time, so only repeats (3.2 may be younger than 7) need a look at the disk.
    """
    if count <= 0:
        return []
    plain, repeats = _families(journal)
    plain = plain[-count:]
    if not repeats:
        return [str(number) for number in plain]
    young = [(_started(journal, str(number)), number, 1, str(number)) for number in plain]
    for number, times in repeats.items():
        for repeat in sorted(times)[-count:]:
            trial_id = f"{number}.{repeat}"
            young.append((_started(journal, trial_id), number, repeat, trial_id))
    young.sort()
    return [item[3] for item in young[-count:]]


def _families(journal: Journal) -> tuple[list[int], dict[int, list[int]]]:
    """List the plain numbers in order, and for each the repeats it has."""
    try:
        names = os.listdir(journal.trials)
    except FileNotFoundError:
        return [], {}
    except OSError as error:
        raise JournalError(f"cannot read the journal {journal.trials}: {error.strerror}") from None
    plain: list[int] = []
    repeats: dict[int, list[int]] = {}
    for name in names:
        if name.isdecimal():
            plain.append(int(name))
        elif name[0] != ".":
            number, repeat = id_order(name)
            if repeat:
                repeats.setdefault(number, []).append(repeat)
    plain.sort()
    return plain, repeats


def _started(journal: Journal, trial_id: str) -> int:
    """Return when the trial's first file was written; it is never touched again."""
    folder = os.path.join(journal.trials, trial_id)
    try:
        return os.stat(os.path.join(folder, "start.json")).st_mtime_ns
    except OSError:
        return 0


def _from_newest(journal: Journal, back: int) -> str:
    if back < 1:
        raise UsageError("trials are counted from the newest with -1, -2, ...", hint="rl log")
    ids = newest(journal, back)
    if len(ids) < back:
        have = f"there are only {len(ids)}" if ids else "there are none yet"
        raise JournalError(f"no trial -{back}: {have}", hint="rl log")
    return ids[0]


def _youngest_first(journal: Journal) -> Iterator[str]:
    """Give ids from the newest on, few at first, because the answer is usually near."""
    given, count = 0, 16
    while True:
        ids = newest(journal, count)
        yield from reversed(ids[: len(ids) - given])
        if len(ids) < count:
            return
        given, count = len(ids), count * 8


def _first_where(journal: Journal, holds: Callable[[str], bool]) -> str:
    for trial_id in _youngest_first(journal):
        try:
            if holds(os.path.join(journal.trials, trial_id)):
                return trial_id
        except JournalError:
            continue  # an unreadable trial is nobody's @good
    return ""


def _newest_so_judged(journal: Journal, word: str) -> str:
    found = ""
    if word in VERDICTS:
        found = _first_where(journal, lambda folder: _mark(folder, "verdict") == word)
    if not found and word in ("good", "passed"):
        found = _first_where(journal, lambda folder: _state_on_disk(folder) == "passed")
    if not found and word in ("bad", "failed"):
        found = _first_where(journal, lambda folder: _state_on_disk(folder) == "failed")
    if found:
        return found
    fallback = {"good": " or passed", "bad": " or failed"}.get(word, "")
    said = f"is marked {word}{fallback}" if word in VERDICTS else word
    hint = f"rl mark N {word}" if word in VERDICTS else "rl log"
    raise JournalError(f"no trial for @{word}: none {said}", hint=hint)


def state(trial: Trial) -> str:
    """Say in one of STATES how a trial stands; `killed` is rl itself gone before the end.

    `unknown` is one whose end cannot be read.
    """
    if trial.end is not None:
        return _ended(trial.end)
    return "running" if trial.running else "killed"


def _ended(end: dict[str, Any]) -> str:
    if UNREADABLE in end:
        return "unknown"
    if end.get("not_started"):
        return "unstarted"
    if end.get("interrupted"):
        return "interrupted"
    return "passed" if end.get("exit_code") == 0 and not end.get("signature") else "failed"


def _mark(folder: str, field: str) -> str:
    mark = read_json(os.path.join(folder, "mark.json"))
    return str(mark.get(field, "")) if mark else ""


def _state_on_disk(folder: str) -> str:
    end = read_json(os.path.join(folder, "end.json"))
    return "" if end is None else _ended(end)


def _named(journal: Journal, name: str) -> str:
    names: list[str] = []

    def holds(folder: str) -> bool:
        given = _mark(folder, "name")
        if given:
            names.append(given)
        return given == name

    found = _first_where(journal, holds)
    if found:
        return found
    raise JournalError(f"no trial is called `{name}`{_nearest(name, names)}", hint="rl log")


def _nearest(name: str, names: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, [*names, *(f"@{word}" for word in _WORDS)], n=1)
    if near:
        return f"; did you mean `{near[0]}`?"
    if not names:
        return ": no trial has a name yet"
    return f"; names: {', '.join(sorted(set(names))[:8])}"


def check_name(name: str) -> str:
    """Return the name if it can never be mistaken for a number, a verdict or an option."""
    good = name and name[0].isalpha() and all(c.isalnum() or c in _NAME_EXTRA for c in name)
    if not good:
        raise UsageError(
            f"`{name}` cannot be a name: a letter first, then letters, digits, `-`, `_`, `.`",
            hint="rl mark N --name lr-works",
        )
    if name in _WORDS:
        raise UsageError(f"`{name}` cannot be a name: @{name} already means something")
    return name
