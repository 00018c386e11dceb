"""Was it really run? One word, why, and what to do about it. Pure: from what the processes told."""

from __future__ import annotations

import os

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.recipe import Probe
    from relaunch.trial.probe.seen import Seen

EXECUTED = "EXECUTED"
NOT_REACHED = "LINE NOT REACHED"
NOT_CALLED = "NOT CALLED"
WRONG_FILE = "WRONG FILE"
NEVER_IMPORTED = "NEVER IMPORTED"
NO_PROBE = "NO PROBE POSSIBLE"
_COMPILED = (".so", ".pyd", ".pyx", ".c", ".cpp", ".pyc", ".pyo")
_DEAF = {"I": "isolates itself", "E": "ignores the environment", "S": "loads no site"}


class Verdict(Record):
    """What became of one place."""

    word: str
    cause: str
    fix: str = ""
    details: tuple[str, ...] = ()


class Around(Record):
    """What leads to a line: a probe at the entry of its function, or at a statement around it."""

    number: int
    line: int
    text: str
    """The first line of that statement."""
    function: str = ""


def verdict(
    number: int,
    probe: Probe,
    seen: Seen,
    *,
    around: Sequence[Around] = (),
    command: Sequence[str] = (),
) -> Verdict:
    """Say whether the place of a probe was run; `around` are further probes, outermost first."""
    stale = [note for note in seen.noted("stale") if note.get("file") == probe.file]
    if stale:
        cached = str(stale[0]["cached"])
        return Verdict(
            word=WRONG_FILE,
            cause=f"Python runs bytecode that is not of this source: {cached}",
            fix=f"rm {cached}",
        )
    if seen.count(number):
        return _executed(number, seen)
    if probe.file.endswith(_COMPILED):
        return Verdict(
            word=NO_PROBE,
            cause=f"{os.path.basename(probe.file)} is compiled: only Python source has lines",
            fix="name the .py file that calls it",
        )
    return (
        _out_of_reach(seen, command)
        or _unprobed(number, probe, seen)
        or _not_come_to(number, probe, seen, around)
        or _not_loaded(probe, seen)
    )


def _executed(number: int, seen: Seen) -> Verdict:
    hits = seen.hits[number]
    details = []
    for note in seen.noted("hit", number)[:5]:
        chain = [str(one) for one in note.get("chain", ())]
        thread = f", thread {note['thread']}" if note.get("thread") else ""
        details.append(f"process {note['pid']}{thread}: " + " < ".join(chain[:8]))
    count = seen.count(number)
    exact = all(one != _limit() for one in hits.values())
    times = _times(count) if exact else f"{count:,} times and more"
    where = f" in {len(hits)} processes" if len(hits) > 1 else ""
    return Verdict(word=EXECUTED, cause=times + where, details=tuple(details))


def _times(count: int) -> str:
    return f"{count:,} time{'' if count == 1 else 's'}"


def _limit() -> int:
    from relaunch.inside.probe.counts import ENOUGH

    return ENOUGH


def _out_of_reach(seen: Seen, command: Sequence[str]) -> Verdict | None:
    old = seen.noted("old")
    if seen.processes:
        return None
    if old:
        return Verdict(
            word=NO_PROBE,
            cause=f"it runs in Python {old[0]['python']}, and probes need 3.11 or newer",
            fix="run it with a newer Python",
        )
    for letter, what in _DEAF.items():
        for word in _own_flags(command):
            if letter in word:
                return Verdict(
                    word=NO_PROBE,
                    cause=f"python {word} {what}: no code of ours comes in",
                    fix=f"run it without {word}",
                )
    return Verdict(
        word=NO_PROBE,
        cause="no Python process began that we could enter",
        fix="is the program Python? does it clear its environment, or run elsewhere?",
    )


def _own_flags(command: Sequence[str]) -> list[str]:
    """Return the short options of Python itself in a command."""
    found = []
    for at, word in enumerate(command):
        if "python" in os.path.basename(word):
            for flag in command[at + 1 :]:
                if not flag.startswith("-") or flag.startswith("--") or flag[1:2] in "cm":
                    break
                found.append(flag)
            break
    return found


def _unprobed(number: int, probe: Probe, seen: Seen) -> Verdict | None:
    name = os.path.basename(probe.file)
    for note in seen.noted("translated"):
        if note.get("file") and os.path.realpath(str(note["file"])) == probe.file:
            return Verdict(
                word=NO_PROBE,
                cause=f"an import hook of {note['by']} compiles {name} itself",
                fix=f"turn that hook off for {name}",
            )
    for note in seen.noted("unprobed"):
        if note.get("file") == probe.file:
            return Verdict(word=NO_PROBE, cause=f"{name} does not compile: {note['why']}")
    for note in seen.noted("unplaced", number):
        return Verdict(word=NO_PROBE, cause=str(note["why"]))
    return None


def _not_come_to(number: int, probe: Probe, seen: Seen, around: Sequence[Around]) -> Verdict | None:
    loaded = [note for note in seen.noted("loaded") if note.get("file") == probe.file]
    if not loaded:
        return None
    instead = tuple(dict.fromkeys(str(note["text"]) for note in seen.noted("instead", number)))
    for one in around:
        instead += tuple(str(note["text"]) for note in seen.noted("instead", one.number))
    instead = tuple(dict.fromkeys(instead))
    reached = [one for one in around if seen.count(one.number)]
    missed = [one for one in around if not seen.count(one.number)]
    called = [one for one in missed if one.function]
    if probe.function or called:
        function = probe.function or called[0].function
        cause = instead[0] if instead else f"{function} is loaded, and nothing called it"
        fix = "" if instead else "who should? try: rl probe CALLER:LINE --who"
        return Verdict(word=NOT_CALLED, cause=cause, fix=fix, details=instead[1:])
    if reached:
        last = reached[-1]
        times = _times(seen.count(last.number))
        what = (
            f"{last.function} was called {times}"
            if last.function
            else (f"line {last.line} `{last.text}` was run {times}")
        )
        after = f", never {missed[0].line} `{missed[0].text}`" if missed else ", never this line"
        return Verdict(
            word=NOT_REACHED,
            cause=what + after,
            fix=f"rl probe {_at(probe, last.line)} to see why",
        )
    return Verdict(
        word=NOT_REACHED,
        cause=f"{os.path.basename(probe.file)} was loaded, and did not come to this line",
    )


def _at(probe: Probe, line: int) -> str:
    return f"{probe.label.rpartition(':')[0]}:{line}"


def _not_loaded(probe: Probe, seen: Seen) -> Verdict:
    others = [note for note in seen.noted("other") if note.get("file") == probe.file]
    if others:
        note = others[0]
        path = str(note["path"])
        if path.endswith((".so", ".pyd")):
            fix = "remove the compiled file, or build it anew"
        else:
            fix = _way_to(probe.file, path)
        return Verdict(
            word=WRONG_FILE,
            cause=f"{note['module']} was loaded from {path}: {note['origin']}",
            fix=fix,
        )
    module = _module_of(probe, seen)
    would = [note for note in seen.noted("would") if note.get("file") == probe.file]
    if would:
        note = would[0]
        return Verdict(
            word=NEVER_IMPORTED,
            cause=f"nothing imported {note['module']}; an import would load {note['path']}: "
            f"{note['origin']}",
            fix=_way_to(probe.file, str(note["path"])),
        )
    never = [note for note in seen.noted("never") if note.get("file") == probe.file]
    if never and not never[0].get("found"):
        cause = f"nothing imported {module}, and no entry of sys.path leads to it"
        return Verdict(word=NEVER_IMPORTED, cause=cause, fix=f"PYTHONPATH={_root(probe.file)}")
    return Verdict(
        word=NEVER_IMPORTED,
        cause=f"nothing imported {module}",
        fix=f"grep -rn 'import.*{module.rpartition('.')[2]}'",
    )


def _module_of(probe: Probe, seen: Seen) -> str:
    for note in (*seen.noted("never"), *seen.noted("would")):
        if note.get("file") == probe.file:
            return str(note["module"])
    return os.path.basename(probe.file)


def _root(file: str) -> str:
    folder = os.path.dirname(file)
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


def _way_to(file: str, instead: str) -> str:
    """Return what makes Python load a file, and not another one."""
    checkout = _checkout(file)
    if instead.startswith(checkout + os.sep) or checkout == _root(file):
        return f"PYTHONPATH={_root(file)}"
    return f"rl --src {checkout} -- ..."


def _checkout(file: str) -> str:
    """Return the clone that a file lies in, or the folder above its packages."""
    folder = root = _root(file)
    while folder != os.path.dirname(folder):
        if any(os.path.exists(os.path.join(folder, name)) for name in (".git", "pyproject.toml")):
            return folder
        folder = os.path.dirname(folder)
    return root


def as_json(number: int, probe: Probe, seen: Seen, found: Verdict) -> Mapping[str, Any]:
    """Return a verdict as data."""
    return {
        "place": probe.label,
        "file": probe.file,
        "verdict": found.word,
        "cause": found.cause,
        "fix": found.fix,
        "details": list(found.details),
        "hits": {str(pid): count for pid, count in seen.hits.get(number, {}).items()},
    }
