"""Read Python tracebacks out of output: every style, chained, grouped, interleaved, cut short.

Nothing here decides which traceback matters; `read.py` does. The readers are forgiving: a line that
fits nowhere is somebody else's output, and the search for the exception goes on behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from relaunch.record import Record
from relaunch.trial.signature.normalise import plain


class Frame(Record):
    """One level of a stack."""

    file: str
    name: str
    """Empty for the place of a SyntaxError, which is in no function."""
    line: int = 0
    source: str = ""


class Raised(Record):
    """One exception with the one that caused it and, for a group, its members."""

    type: str
    """As printed: `ValueError`, `torch.OutOfMemoryError`; empty when its line was cut off."""
    message: str = ""
    frames: tuple[Frame, ...] = ()
    """Outermost first."""
    cause: Raised | None = None
    context: Raised | None = None
    members: tuple[Raised, ...] = ()
    at: int = 0
    """Line of the output where it begins: the order of events."""
    stream: str = ""
    """Label of the process that said it: `[rank0]:`; empty for unlabelled output."""
    how: str = ""
    """uncaught (empty), thread, ignored, logged, process, cut"""


# Labels before every line: torch, torchrun, mpirun, ray, srun, compose, pytest.
_LABEL = re.compile(
    r"\[(?:rank|default|trainer|worker)\w*?-?\d+\]:? ?"
    r"|\[\d+,\d+\]<std(?:err|out)>: ?"
    r"|\([\w.-]+(?:\([^()]*\))? pid=\d+[^()]*\) ?"
    r"|\d{1,4}: (?=\s|\S)"
    r"|[\w.-]+ +\| "
    r"|INTERNALERROR> ?"  # pytest, of a fault in a plugin or a conftest
)
_HEADER = re.compile(
    r"^(?P<before>.*?)Traceback \(most recent call last\)(?::?\s*| [─-]+[╮+┐]\s*)$"
)
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<name>.+?))?\s*$')
_RAISED = re.compile(
    r"^(?P<type>(?:[A-Za-z_]\w*\.)*(?:<locals>\.)?[A-Za-z_]\w*)(?:: ?(?P<message>.*))?\s*$"
)
_ENDING = ("Error", "Exception", "Interrupt", "Exit", "Warning", "Group", "Iteration", "Failure")
_CARETS = re.compile(r"^\s*[\^~]+\s*$")
_REPEATED = re.compile(r"^\s*\[Previous line repeated \d+ more times?\]")
_BOX = re.compile(r"^(?P<indent>\s*)[|] ?(?P<rest>.*)$")
_MEMBER = re.compile(r"^\s*\+-\+?-+ (?:\d+|\.\.\.) -+\s*$")
_GROUP_HEADER = re.compile(r"^\s*\+ Exception Group Traceback \(most recent call last\):")
_BOX_END = re.compile(r"^\s*\+-{10,}\s*$")
_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"
_STAMPED = re.compile(
    r"^(?P<stamp>[^\n]{4,160}?)Traceback \(most recent call last\):$", re.MULTILINE
)
_STAMPS = 8
_LOOK_ON = 40
"""Lines of other people's output tolerated between the frames and the exception."""
_CONTINUED = 3
"""Indented lines after the exception that still belong to its message."""


def raised_in(text: str) -> list[Raised]:
    """Return the exceptions told in the text, in order; each is the end of its chain."""
    found: list[Raised] = []
    for label, lines in _streams(_unfolded(plain(text))).items():
        found += [one.but(stream=label) for one in _Reader(lines).read()]
    return sorted(found, key=lambda one: one.at)


def told_by(report: Mapping[str, Any]) -> Raised:
    """Return the exception of one entry of a hook's report."""
    cause, context = report.get("cause"), report.get("context")
    message = str(report.get("message", ""))
    inner = _inner_text(message)
    raised = Raised(
        type=str(report.get("type", "")),
        message=first_of(message.split("Original Traceback")[0].split("\n")),
        frames=tuple(_frames_told(report.get("frames", ()))),
        cause=told_by(cause) if cause else inner,
        context=told_by(context) if context else None,
        members=tuple(told_by(member) for member in report.get("members", ())),
        how="thread" if report.get("thread") else "",
    )
    if inner is not None and raised.type.endswith("RemoteTraceback"):
        return inner
    return raised


def _inner_text(message: str) -> Raised | None:
    """Return the exception another process sent along as text."""
    if "Traceback (most recent call last)" not in message:
        return None
    inner = raised_in(message)
    return inner[-1] if inner else None


def _frames_told(frames: Iterable[Mapping[str, Any]]) -> Iterator[Frame]:
    for frame in frames:
        name = str(frame.get("name", "")).rpartition(".")[2]
        yield Frame(
            file=str(frame.get("file", "")),
            name=name,
            line=int(frame.get("line") or 0),
            source=str(frame.get("source", "")),
        )


def first_of(lines: Sequence[str]) -> str:
    """Return what of a message counts: its first line, or the second if that is empty, and the
    indented ones behind it.
    """
    kept: list[str] = []
    for line in lines[1:] if lines and not lines[0].strip() else lines:
        if not kept and not line.strip():
            break
        if kept and (not line[:1].isspace() or not line.strip() or len(kept) > _CONTINUED):
            break
        if line.strip():
            kept.append(line.strip())
    return " ".join(kept)


def _streams(text: str) -> dict[str, list[tuple[int, str]]]:
    """Part the output by the label its launcher put on each line."""
    streams: dict[str, list[tuple[int, str]]] = {"": []}
    stamps = _stamps(text)
    for number, line in enumerate(text.split("\n")):
        label = ""
        while (peeled := _LABEL.match(line)) is not None:
            label += peeled[0].strip()
            line = line[peeled.end() :]
        for stamp in stamps:
            if (stamped := stamp.match(line)) is not None:
                label += stamp.pattern
                line = line[stamped.end() :]
                break
        streams.setdefault(label, []).append((number, line))
    return streams


def _stamps(text: str) -> list[re.Pattern[str]]:
    """Return the prefixes, times and numbers open, of logs that stamp each line of a traceback."""
    stamps: dict[str, re.Pattern[str]] = {}
    for header in _STAMPED.finditer(text):
        shape = re.sub(r"\d+", r"\\d+", re.escape(header["stamp"]))
        if "\\d" in shape and shape not in stamps and len(stamps) < _STAMPS:
            following = re.compile(shape + r'(?=\s+File ")')
            if following.match(text, header.end() + 1):
                stamps[shape] = re.compile(shape)
    return list(stamps.values())


def _unfolded(text: str) -> str:
    """Unfold tracebacks that a log has written as one line of JSON."""
    if "Traceback (most recent call last):\\n" not in text:
        return text
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if "Traceback (most recent call last):\\n" in line:
            lines[i] = line.replace("\\n", "\n").replace('\\"', '"')
    return "\n".join(lines)


class _Reader:
    """Reads one stream from top to bottom; `here` is the line under the eye."""

    def __init__(self, lines: Sequence[tuple[int, str]]) -> None:
        self.lines = lines
        self.here = 0
        self.found: list[Raised] = []
        self.link = ""

    def read(self) -> list[Raised]:
        while self.here < len(self.lines):
            line = self.lines[self.here][1]
            if _GROUP_HEADER.match(line):
                self._add(self._group(indent=len(line) - len(line.lstrip())))
            elif (header := _HEADER.match(line)) is not None:
                self._under(header["before"])
            elif _FRAME.match(line) and line.startswith("  "):
                self._add(self._plain(how=self._how()))
            else:
                if _CAUSE in line or _CONTEXT in line:
                    self.link = "cause" if _CAUSE in line else "context"
                self.here += 1
        return self.found

    def _under(self, before: str) -> None:
        if before.lstrip()[:1] in ("╭", "+", "┌") and set(before.strip()) <= set("╭+┌─- "):
            self._add(self._rich())
        elif re.search(r"\w\s{2,}$", before) and _RAISED.match(before.strip()):
            self._add(self._ipython(before.strip()))
        elif before.strip().startswith("Original"):
            self.here += 1
            self._original(self._plain(how=""))
        else:
            how = self._how()
            self.here += 1
            indent = len(before) if not before.strip() else 0
            self._add(self._plain(how=how or ("logged" if before.strip() else ""), base=indent))

    def _add(self, raised: Raised) -> None:
        if self.link and self.found:
            earlier = self.found.pop()
            raised = raised.but(
                **{self.link: earlier}, at=earlier.at, how=raised.how or earlier.how
            )
        self.link = ""
        self.found.append(raised)

    def _original(self, inner: Raised) -> None:
        """Hang the traceback of a DataLoader's worker under the exception that brought it."""
        if self.found:
            outer = self.found.pop()
            self.found.append(outer.but(cause=inner))
        else:
            self.found.append(inner)

    def _how(self) -> str:
        """Say from the few lines above in which way this traceback came out."""
        above = [line for _, line in self.lines[max(0, self.here - 4) : self.here]]
        last = next((line for line in reversed(above) if line.strip()), "")
        if any(line.startswith("Exception ignored in") for line in above[-2:]):
            return "ignored"
        if last.startswith("Exception in thread "):
            return "thread"
        if re.match(r"Process [\w:-]+:$", last):
            return "process"
        if any("exception was never retrieved" in line for line in above):
            return "logged"
        if _LOGGED.search(last):
            return "logged"
        return ""

    def _plain(self, *, how: str, base: int = 0) -> Raised:
        """Read frames, then the exception at the indentation of the header."""
        at = self.lines[min(self.here, len(self.lines) - 1)][0]
        frames: list[Frame] = []
        skipped = 0
        while self.here < len(self.lines):
            line = self.lines[self.here][1]
            if base and not line[:base].strip():
                line = line[base:]
            if (frame := _FRAME.match(line)) is not None:
                self.here += 1
                _append(frames, self._frame(frame))
                skipped = 0
                continue
            if _HEADER.match(line):
                if frames:
                    break  # the end was cut off, or another process talked in between
                self.here += 1
                continue
            if _CAUSE in line or _CONTEXT in line or skipped > _LOOK_ON:
                break
            raised = None if line[:1].isspace() else _RAISED.match(line)
            if raised is not None and _is_exception(raised, skipped):
                message = self._message(raised["message"], base)
                return Raised(
                    type=raised["type"], message=message, frames=tuple(frames), at=at, how=how
                )
            self.here += 1
            skipped += bool(line.strip()) and not _REPEATED.match(line) and not line[:1].isspace()
        return Raised(type="", frames=tuple(frames), at=at, how=how or "cut")

    def _frame(self, found: re.Match[str]) -> Frame:
        source = ""
        deep = len(found[0]) - len(found[0].lstrip())
        while self.here < len(self.lines):
            line = self.lines[self.here][1]
            if len(line) - len(line.lstrip()) <= deep or not line.strip():
                break
            if _FRAME.match(line) or _REPEATED.match(line):
                break
            if not source and not _CARETS.match(line):
                source = line.strip()
            self.here += 1
        return Frame(
            file=found["file"],
            name=(found["name"] or "").strip(),  # none: the place of a SyntaxError
            line=int(found["line"]),
            source=source,
        )

    def _message(self, first: str | None, base: int) -> str:
        self.here += 1
        if first is None:
            return ""
        rest = [line for _, line in self.lines[self.here : self.here + _CONTINUED + 1]]
        rest = [line[base:] if not line[:base].strip() else line for line in rest]
        if not first.strip() and rest and rest[0].startswith('"""'):
            return ""  # a RemoteTraceback: what follows in the quotes is read on its own
        return first_of([first, *rest])

    def _group(self, indent: int) -> Raised:
        """Read a group's box: its own frames, then the members one level deeper."""
        at = self.lines[self.here][0]
        self.here += 1
        own = self._boxed(indent)
        members: list[Raised] = []
        while self.here < len(self.lines):
            line = self.lines[self.here][1]
            if _MEMBER.match(line):
                deeper = line.index("+") + (2 if "+-+" in line else 0)
                if deeper <= indent:
                    break
                self.here += 1
                members.append(self._member(deeper))
            elif _BOX_END.match(line):
                if line.index("+") <= indent:
                    break
                self.here += 1
                if line.index("+") <= indent + 2:
                    break
            else:
                break
        whole = own[-1] if own else Raised(type="ExceptionGroup", at=at)
        return whole.but(members=tuple(members), at=at)

    def _member(self, indent: int) -> Raised:
        line = self.lines[self.here][1] if self.here < len(self.lines) else ""
        if _GROUP_HEADER.match(line) or _GROUP_HEADER.match(line.replace("|", "+", 1)):
            return self._group(indent)
        inside = self._boxed(indent)
        if inside and "Group" in inside[-1].type and self.here < len(self.lines):
            deeper = self.lines[self.here][1]
            if _MEMBER.match(deeper) and "+-+" in deeper:
                self.here -= 1  # a nested group without a header of its own
                return inside[-1].but(members=self._group(indent).members)
        return inside[-1] if inside else Raised(type="", how="cut")

    def _boxed(self, indent: int) -> list[Raised]:
        """Take the lines of one box and read them as output of their own."""
        inner: list[tuple[int, str]] = []
        while self.here < len(self.lines):
            number, line = self.lines[self.here]
            box = _BOX.match(line)
            if box is None or len(box["indent"]) != indent:
                break
            inner.append((number, box["rest"]))
            self.here += 1
        if inner and not any(_HEADER.match(line) for _, line in inner):
            return [_Reader(inner)._plain(how="")]
        return _Reader(inner).read()

    def _rich(self) -> Raised:
        """Read rich's box: `path:line in name`, then the exception below the box."""
        at, top = self.lines[self.here]
        width = len(top.strip())
        self.here += 1
        frames: list[Frame] = []
        wrapped = ""
        while self.here < len(self.lines):
            line = self.lines[self.here][1].strip()
            self.here += 1
            if line[:1] in ("╰", "+", "└"):
                break
            inner = line.strip("│|").strip()
            found = _RICH_FRAME.match(wrapped + inner) or _RICH_FRAME.match(inner)
            if found is not None:
                _append(frames, Frame(file=found[1], name=found[3], line=int(found[2])))
            elif frames and (code := re.match(r"❱\s*\d+ (.*)", inner)) is not None:
                frames[-1] = frames[-1].but(source=code[1].strip("│ ").strip())
            wrapped = inner if inner.startswith(("/", "~")) and found is None else ""
        while self.here < len(self.lines) and not self.lines[self.here][1].strip():
            self.here += 1
        if self.here >= len(self.lines):
            return Raised(type="", frames=tuple(frames), at=at, how="cut")
        raised = _RAISED.match(self._unwrapped(width))
        if raised is None:
            return Raised(type="", frames=tuple(frames), at=at, how="cut")
        return Raised(
            type=raised["type"],
            message=first_of([raised["message"] or ""]),
            frames=tuple(frames),
            at=at,
        )

    def _unwrapped(self, width: int) -> str:
        """Join the lines that rich broke at the width of its box."""
        whole = last = self.lines[self.here][1].rstrip()
        self.here += 1
        while self.here < len(self.lines):
            line = self.lines[self.here][1].rstrip()
            word = line.split(" ", 1)[0]
            if not line.strip() or line[:1].isspace() or len(last) + 1 + len(word) <= width:
                break
            whole, last = f"{whole} {line}", line
            self.here += 1
        return whole

    def _ipython(self, kind: str) -> Raised:
        """Read IPython's style: `File path:3, in f(x)` or `Cell In[1], line 3`."""
        at = self.lines[self.here][0]
        self.here += 1
        frames: list[Frame] = []
        while self.here < len(self.lines):
            line = self.lines[self.here][1]
            if (found := _IPYTHON_FRAME.match(line)) is not None:
                name = found["name"] or found["cell_name"] or "<module>"
                number = found["line"] or found["cell_line"] or 0
                file = found["file"] or "<ipython-input>"
                _append(frames, Frame(file=file, name=name, line=int(number)))
            elif frames and line.startswith("-") and (code := re.match(r"-+> \d+ (.*)", line)):
                frames[-1] = frames[-1].but(source=code[1].strip())
            elif (raised := _RAISED.match(line)) is not None and raised["type"] == kind:
                message = self._message(raised["message"], 0)
                return Raised(type=kind, message=message, frames=tuple(frames), at=at)
            self.here += 1
        return Raised(type=kind, frames=tuple(frames), at=at, how="cut")


_LOGGED = re.compile(r"\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL|EXCEPTION)\b")
_RICH_FRAME = re.compile(r"^(.+?):(\d+) in (\S+)$")
_IPYTHON_FRAME = re.compile(
    r"^(?:File )?(?P<file>[^\s:,].*?):(?P<line>\d+), in (?P<name>[\w<>.]+)(?:\(.*)?$"
    r"|^(?:Cell |Input )?In ?\[\d+\](?:, line (?P<cell_line>\d+))?"
    r"(?:, in (?P<cell_name>[\w<>.]+)(?:\(.*)?)?:?(?:\s|$)"
)


def _append(frames: list[Frame], frame: Frame) -> None:
    """Add a frame unless it is the last one again: recursion, or a second process talking along."""
    if not frames or (frames[-1].file, frames[-1].name) != (frame.file, frame.name):
        frames.append(frame)
    else:
        frames[-1] = frame


def _is_exception(raised: re.Match[str], skipped: int) -> bool:
    """Tell an exception's line from other output that happens to look like a name."""
    name = raised["type"].rpartition(".")[2]
    if name.endswith(_ENDING) or (skipped == 0 and "." in raised["type"]):
        return True
    return skipped == 0 and (name[:1].isupper() or raised["message"] is not None)
