"""Say which failure this was: one `Signature` from everything a finished program left behind.

What makes two failures the same: the exception's type, its washed message and the user's own
functions around the place, innermost three, with what was called there; never a line number, a
path or the library's frames.

Which exception counts:
- `raise A from B`: B, the cause, is the failure; A only says how it was passed on.
- "During handling of B, another exception occurred: A": A, because B had been caught.
- A group: all its members, in no order, since tasks finish in any.
- One process: the last exception nobody caught; one that was only logged gives way to it.
- Several processes: the first that failed by itself, not the launcher that noticed
  (ChildFailedError, CalledProcessError), nor the neighbour that lost its connection.
- Exit 0: a traceback in the output is a failure of kind `logged`, except in a test run that passed
  and for `Exception ignored in`, which the interpreter itself shrugs off.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from relaunch.outcome import Signature
from relaunch.patterns import Patience, compiled
from relaunch.trial.signature import native, tests
from relaunch.trial.signature.normalise import plain, wash
from relaunch.trial.signature.python import Frame, Raised, raised_in, told_by

_HEAD, _TAIL = 300_000, 2_000_000
_LINE = 2_000
_FRAMES = 3
_LAST_LINES = 4
_TITLE = 160

_LIBRARY = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python\d(?:\.\d+)?[/\\]"
    r"|[/\\]Lib[/\\](?!.*[/\\]Lib[/\\])|^<(?!string>|stdin>|ipython|console>|stdin-\d|python-input)"
    r"|[/\\]bin[/\\](?:pytest|torchrun|ipython|py\.test|accelerate|deepspeed)$"
)
_STAND_IN = "/relaunch/inside/single/"
"""Our code between the program and what would run in a process of its own."""
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
_NO_NAME = frozenset(("<module>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"))
_CALL = re.compile(r"([A-Za-z_][\w.]*(?:\[[^\[\]()]*\])*)\s*\(")
_DEF = re.compile(r"^(?:async )?def .*?\) *(?:->[^:]*)?:")
_KEYWORDS = frozenset(keyword.kwlist)
_WRAPPERS = frozenset(
    (
        "ChildFailedError",
        "CalledProcessError",
        "ProcessRaisedException",
        "ProcessExitedException",
        "BrokenProcessPool",
        "RemoteTraceback",
        "_RemoteTraceback",
        "SystemExit",
    )
)
_NEIGHBOURS = re.compile(
    r"[Cc]onnection (?:closed|reset|refused|was closed)|Broken pipe|EOF|peer", re.ASCII
)
_NEIGHBOUR_TYPES = frozenset(
    ("DistNetworkError", "DistBackendError", "BrokenPipeError", "ConnectionResetError", "EOFError")
)
_ELASTIC_RANK = re.compile(r"Root Cause \(first observed failure\):(?:\n.*?)*?rank *: (\d+)")
_ADVICE = re.compile(r"\.? (?:Did you mean: .*\?|Did you forget to import .*\?|Or did you .*\?)$")
_ERRORISH = re.compile(
    r"(?i)error|exception|fatal|fail|cannot|can't|abort|assert|panic|undefined|denied|no such"
    r"|not found|unable|invalid|usage:|unexpected|missing|bad |refused|died|killed"
    r"|requires?\b|must\b|expected|illegal|unknown|mismatch|overflow|exceed|unresolved|corrupt|broken|unsupported"
    r"|limit"
)
_AT = re.compile(
    r"^[ \t]+at (?:async )?(?P<name>[\w.$<>\[\] /]+?) ?\((?P<place>[^)]*)\)", re.MULTILINE
)
_RUNTIME = re.compile(r"^(?:node:|internal/|java\.|jdk\.|sun\.|Native|Unknown)|^java\.base/")


def identify(
    *,
    text: str,
    exit_code: int | None,
    signal: int | None,
    timed_out: bool = False,
    reports: Sequence[Mapping[str, Any]] = (),
    match: str = "",
    pinned_exit: int | None = None,
    project: Sequence[str] = (),
    patience: Patience | None = None,
) -> Signature | None:
    """Return the identity of the failure, or None when nothing failed.

    NotFinished if it takes more `patience` to tell whether `match` is in the text.
    """
    seen = plain(text)
    look = (patience or Patience()).first
    if (pinned := _pinned(seen, exit_code, match, pinned_exit, look)) is not None:
        return pinned
    seen = _within_reason(seen)
    if timed_out:
        return _timeout(seen, project)
    if signal is not None:
        return _killed(seen, signal, reports, project)
    if exit_code is None:
        return None
    if exit_code == 0:
        return _logged(seen, project)
    return _failed(seen, exit_code, reports, project)


def _within_reason(text: str) -> str:
    if len(text) > _HEAD + _TAIL:
        text = text[:_HEAD] + "\n" + text[-_TAIL:]
    return "\n".join(line[:_LINE] for line in text.split("\n"))


def _pinned(
    text: str,
    exit_code: int | None,
    match: str,
    pinned: int | None,
    look: Callable[[re.Pattern[str], str], re.Match[str] | None],
) -> Signature | None:
    if not match and pinned is None:
        return None
    if pinned is not None and exit_code != pinned:
        return None
    title, key = (f"exit {pinned}", (f"exit {pinned}",)) if pinned is not None else ("", ())
    if match:
        found = look(compiled(match, multiline=True), text)
        if found is None:
            return None
        line = text[text.rfind("\n", 0, found.start()) + 1 :].partition("\n")[0]
        title, key = line.strip() or found[0], (*key, match)
    return Signature(kind="pinned", title=_short(title), key=("pinned", *key))


def _timeout(text: str, project: Sequence[str]) -> Signature:
    frames = _functions(native.last_words(text).frames, project)
    where = f" in {frames[0]}" if frames else ""
    return Signature(kind="timeout", title=f"timeout{where}", key=("timeout", *frames))


def _killed(
    text: str, number: int, reports: Sequence[Mapping[str, Any]], project: Sequence[str]
) -> Signature:
    """Tell a death by signal, unless a Python exception came first and the crash was its echo."""
    name = native.name_of(number)
    if name in ("SIGABRT", "SIGSEGV") and not native.is_fatal(text):
        raised = _told(reports, text)
        if raised is not None:
            return _of_exception(raised, project, text)
    said = native.last_words(text)
    functions = _functions(said.frames, project)
    what = said.what if name in ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE") else ""
    title = " ".join(filter(None, (_place(said.frames, project), name, what)))
    where = wash(said.where) if what else ""
    return Signature(kind="signal", title=_short(title), key=(name, wash(what), where, *functions))


def _logged(text: str, project: Sequence[str]) -> Signature | None:
    if tests.all_passed(text):
        return None
    found = [one for one in raised_in(text) if one.type and one.frames and one.how != "ignored"]
    if not found:
        return None
    strong = [one for one in found if not _weak(one)]
    return _of_exception((strong or found)[0], project, text).but(kind="logged")


def _failed(
    text: str, exit_code: int, reports: Sequence[Mapping[str, Any]], project: Sequence[str]
) -> Signature:
    if (failing := tests.failing(text)) is not None:
        return _of_tests(failing)
    raised = _told(reports, text) or _chosen(raised_in(text), text)
    if raised is not None and (raised.type or raised.frames) and not _only_noticed(raised, text):
        return _of_exception(raised, project, text)
    number = native.signal_behind(exit_code, text)
    if number is not None:
        return _killed(text, number, (), project)
    if raised is not None and (raised.type or raised.frames):
        return _of_exception(raised, project, text)
    if native.is_fatal(text):
        return _killed(text, 6, (), project)
    return _of_exit(text, exit_code)


def _only_noticed(raised: Raised, text: str) -> bool:
    """Tell a launcher's or a neighbour's exception about a process that died of a signal."""
    return _weak(raised) > 0 and native.signal_behind(0, text) is not None


def _told(reports: Sequence[Mapping[str, Any]], text: str) -> Raised | None:
    """Choose among what the processes said themselves: the first of those that ran together."""
    told: list[tuple[float, float, Raised]] = []
    for report in reports:
        if report.get("runner"):
            continue  # a test runner keeps the last exception of any test, skipped ones too
        for error in report.get("exceptions", ()):
            started, time = float(report.get("started") or 0), float(error.get("time") or 0)
            told.append((started, time, told_by(error)))
    told = [one for one in told if _visible(one[2], text)] or told
    main = [one for one in told if one[2].how != "thread"] or told
    if not main:
        return None
    start_of_last, end_of_last, _ = max(main, key=lambda one: one[1])
    together = [one for one in main if one[1] >= start_of_last and one[0] <= end_of_last]
    return min(together, key=lambda one: (_weak(one[2]), one[1]))[2]


def _visible(raised: Raised, text: str) -> bool:
    name = raised.type.rpartition(".")[2]
    return name in text and raised.message[:30] in text


def _chosen(found: Sequence[Raised], text: str) -> Raised | None:
    """Choose among tracebacks in the output, by the rules at the top of this file."""
    if not found:
        return None
    told = [one for one in found if one.how not in ("ignored", "cut")] or list(found)
    several = any(one.stream or one.how == "process" or _weak(one) >= 2 for one in told)
    if several:
        rank = _ELASTIC_RANK.search(text)
        mine = [one for one in told if rank and re.search(rf"\D{rank[1]}\D*$", one.stream)]
        return min(told, key=lambda one: (_weak(one), one not in mine, one.how == "logged", one.at))
    for ways, last in ((("",), True), (("thread", "process"), False), (("logged",), True)):
        those = [one for one in told if one.how in ways]
        if those:
            return those[-1 if last else 0]
    return told[-1]


def _weak(raised: Raised) -> int:
    """Say how little an exception explains: 2 a launcher's, 1 a neighbour's, 0 its own."""
    name = raised.type.rpartition(".")[2]
    if raised.cause is not None:
        return 0
    if name in _WRAPPERS:
        return 2
    return int(name in _NEIGHBOUR_TYPES or bool(_NEIGHBOURS.search(raised.message)))


def _of_exception(raised: Raised, project: Sequence[str], text: str) -> Signature:
    root = _with_own_frames(raised, project)
    key = _exception_key(root, project)
    outer = _last(raised.type)
    if outer not in (_last(root.type), "") and outer not in _WRAPPERS:
        key = (*key, f"as {outer}")
    if "device-side assert" in root.message:  # CUDA's own line says which one; frames come late
        said = native.last_words(text)
        key = (_last(root.type), "device-side assert", wash(said.what), said.where)
    message = root.message or (_innermost(root.frames, project) or Frame(file="", name="")).source
    title = " ".join(filter(None, (_place(root.frames, project), _named(root.type, message))))
    return Signature(kind="exception", title=_short(title), key=key)


def _root(raised: Raised) -> Raised:
    while raised.cause is not None:
        raised = raised.cause
    while len(raised.members) == 1:
        raised = _root(raised.members[0])
    return raised


def _with_own_frames(raised: Raised, project: Sequence[str]) -> Raised:
    """Return the root; if it was raised deep in a library, with the frames of who passed it on."""
    raised = _as_in_a_process(raised)
    root = _root(raised)
    chain = [raised]
    while chain[-1].cause is not None:
        chain.append(chain[-1].cause)
    for one in reversed([*chain, root]):
        if any(_is_own(frame.file, project) for frame in one.frames):
            return root.but(frames=one.frames)
    return root


def _as_in_a_process(raised: Raised) -> Raised:
    """Take off who called work that ran in one process (`--single`) and has its own otherwise."""
    cause = _as_in_a_process(raised.cause) if raised.cause is not None else None
    at = max((n for n, one in enumerate(raised.frames) if _STAND_IN in one.file), default=-1)
    frames = raised.frames[at + 1 :] or raised.frames
    return raised if cause is None and at < 0 else raised.but(cause=cause, frames=frames)


def _exception_key(raised: Raised, project: Sequence[str]) -> tuple[str, ...]:
    name = _last(raised.type) or "?"
    if raised.members:
        leaves = sorted(
            {_exception_key(_with_own_frames(one, project), project) for one in raised.members}
        )
        told = (" | ".join(leaf) for leaf in leaves)
        return (name, *told, *_functions(raised.frames, project))
    message = wash(_ADVICE.sub("", raised.message))
    if name == "RecursionError":
        message = message.partition(" exceeded")[0]
        mine = {frame.name for frame in _own(raised.frames[-60:], project)} - _NO_NAME
        return (name, message, *sorted(mine))
    if raised.frames and not raised.frames[-1].name:
        return (name, message, wash(raised.frames[-1].source))
    inner = _innermost(raised.frames, project) or Frame(file="", name="")
    source = "" if inner.file.startswith("<") else inner.source
    return (
        name,
        message or wash(source),
        *_functions(raised.frames, project),
        *_called(source),
    )


def _called(source: str) -> tuple[str, ...]:
    """Return what the line called, if it did not raise by itself.

    `self.fc1(x)` and `self.fc2(x)` fail with the same words in the same `forward`. Only the first
    name counts, so that arguments can be edited.
    """
    if source.startswith(("raise", "assert")):
        return ()
    names = (found[1] for found in _CALL.finditer(_DEF.sub("", source)))
    first = next((name for name in names if name not in _KEYWORDS), "")
    return (f"calling {first}",) if first else ()


def _own(frames: Iterable[Frame], project: Sequence[str]) -> list[Frame]:
    """Return the frames of the user's own code; all of them if there is none."""
    frames = list(frames)
    return [frame for frame in frames if _is_own(frame.file, project)] or frames


def _is_own(file: str, project: Sequence[str]) -> bool:
    for root in project:
        if file.startswith(root.rstrip("/") + "/"):
            return not _INSTALLED.search(file[len(root) :])
    return not _LIBRARY.search(file)


def _functions(frames: Sequence[Frame], project: Sequence[str]) -> tuple[str, ...]:
    """Return the innermost functions of the user's own, innermost first, each once."""
    own = [_last(frame.name) for frame in reversed(_own(frames, project))]
    named = list(dict.fromkeys(name for name in own if name not in _NO_NAME))
    return tuple(named[:_FRAMES] or own[:1])


def _innermost(frames: Sequence[Frame], project: Sequence[str]) -> Frame | None:
    own = _own(frames, project)
    return own[-1] if own else None


def _of_tests(failing: tests.Failing) -> Signature:
    first = failing.tests[0]
    more = f" and {len(failing.tests) - 1} more" if len(failing.tests) > 1 else ""
    why = _named(first.type, first.message)
    title = f"{first.id}{more}" + (f": {why}" if why else "")
    told = (f"{tests.washed_id(one.id)} {one.type} {wash(one.message)}" for one in failing.tests)
    key = ("tests", *told)
    return Signature(kind="tests", title=_short(title), key=key)


def _of_exit(text: str, exit_code: int) -> Signature:
    """Fall back on the exit code, the last lines that speak of an error, the innermost function."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    stack = [one for one in _AT.finditer(text) if not _RUNTIME.search(one["place"])]
    inner = [_last(one["name"]) for one in stack if not _RUNTIME.search(one["name"])][:1]
    candidates = [line for line in lines[-40:] if not re.match(r"at \S", line)]
    errors = [line for line in candidates if _ERRORISH.search(line)][-_LAST_LINES:]
    said = errors or candidates[-_LAST_LINES:]
    if (words := native.last_words(text)).what:  # a sanitizer ends with an exit code
        said, errors, inner = [words.what], [words.what], [words.where]
    title = f"exit {exit_code}" + (f": {said[0] if errors else said[-1]}" if said else "")
    key = (f"exit {exit_code}", *(wash(line) for line in said), *inner)
    return Signature(kind="exit", title=_short(title), key=key)


def _place(frames: Sequence[Frame], project: Sequence[str]) -> str:
    inner = _innermost(frames, project)
    if inner is None:
        return ""
    return f"{inner.file.replace(chr(92), '/').rpartition('/')[2]}:{inner.line}"


def _named(kind: str, message: str) -> str:
    return ": ".join(filter(None, (_last(kind), message)))


def _last(dotted: str) -> str:
    return dotted.rpartition(".")[2]


def _short(title: str) -> str:
    title = " ".join(title.split())
    return title if len(title) <= _TITLE else title[: _TITLE - 3] + "..."
