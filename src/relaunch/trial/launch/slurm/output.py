"""What srun writes: whole lines of each rank, and its own words apart from the program's. Pure."""

from __future__ import annotations

_OURS = (b"srun: ", b"slurmstepd: ", b"slurmstepd-")
_FRAGMENT = 1024
"""Bytes after which slurmstepd sends a line that has no end yet; srun then adds an end to it."""


class Output:
    """Takes both streams of srun as they come; gives back what the program wrote."""

    def __init__(self, *, labelled: bool) -> None:
        """With `labelled`, srun was started with -l: each line begins with its task."""
        self._labelled = labelled
        self._rest: dict[int, bytes] = {}
        self._begun: dict[tuple[int, bytes], bytes] = {}
        """Of each stream and task: the beginning of a line that came in fragments."""
        self._in_line: set[int] = set()
        self.said: list[str] = []
        """What Slurm said itself."""

    def take(self, stream: int, data: bytes) -> bytes:
        """Return what can be shown now; no data is the end of the stream."""
        if not data:
            return self._end(stream)
        data = self._rest.pop(stream, b"") + data
        return self._labelled_lines(stream, data) if self._labelled else self._plain(stream, data)

    def _end(self, stream: int) -> bytes:
        data = self._rest.pop(stream, b"")
        shown = self._labelled_lines(stream, data + b"\n") if data and self._labelled else data
        for where in [*self._begun]:
            if where[0] == stream:
                shown += _with_label(where[1], self._begun.pop(where)) + b"\n"
        return shown

    def _plain(self, stream: int, data: bytes) -> bytes:
        """Pass everything on at once, but for lines of Slurm itself."""
        shown = []
        *lines, last = data.split(b"\n")
        for line in [*(one + b"\n" for one in lines), *([last] if last else [])]:
            is_whole = line.endswith(b"\n")
            if stream not in self._in_line and _could_be_ours(line):
                if not is_whole:
                    self._rest[stream] = line
                    break
                if line.startswith(_OURS) and self._take_word(line):
                    continue
            shown.append(line)
            if is_whole:
                self._in_line.discard(stream)
            else:
                self._in_line.add(stream)
        return b"".join(shown)

    def _labelled_lines(self, stream: int, data: bytes) -> bytes:
        *lines, rest = data.split(b"\n")
        if rest:
            self._rest[stream] = rest
        shown = []
        for line in lines:
            task, text = _labelled(line)
            if text.startswith(_OURS) and self._take_word(text):
                continue
            if not task:
                shown.append(line + b"\n")
                continue
            begun = self._begun.pop((stream, task), b"") + text
            if len(text) == _FRAGMENT:
                self._begun[stream, task] = begun
            else:
                shown.append(_with_label(task, begun) + b"\n")
        return b"".join(shown)

    def _take_word(self, line: bytes) -> bool:
        """Keep what Slurm said; what nobody here understands is left for the person to read."""
        text = line.decode("utf-8", "replace").strip()
        if not is_understood(text):
            return False
        self.said.append(text)
        return True


_UNDERSTOOD = (
    ": task ",
    ": tasks ",
    "CANCELLED AT ",
    "Force Terminated",
    "Job step aborted",
    "forcing job termination",
    "sending Ctrl-C to",
    "Node failure",
    "Unable to confirm allocation",
    "Unable to create step",
    "has expired",
    "Job allocation",
    "Terminating StepId=",
    "Terminating job",
    "execve():",
    "step creation temporarily disabled",
    "step creation still disabled",
    "Step created for",
    "task launch for",
    "launch/slurm: ",
    "Timed out waiting for job step",
    "Socket timed out",
    "got SIGCONT",
    "Application launch failed",
    "couldn't chdir to",
    "interrupt (one more",
    "abort",
)


def is_understood(text: str) -> bool:
    """Tell whether a line of Slurm is told in our own words, so that it need not be shown."""
    return any(one in text for one in _UNDERSTOOD)


def _could_be_ours(line: bytes) -> bool:
    return any(line.startswith(one) or one.startswith(line) for one in _OURS)


def _labelled(line: bytes) -> tuple[bytes, bytes]:
    """Split `03: text`, or `P1 03: text` of a component; no task if it is not so."""
    label, colon, text = line.partition(b": ")
    if not colon and line.endswith(b":"):  # an empty line whose blank went
        label, colon, text = line[:-1], b":", b""
    number = label.rpartition(b" ")[2] if label.startswith(b"P") else label
    if not colon or not number.isdigit():
        return b"", line
    return (b"%d" % int(number)), text


def _with_label(task: bytes, text: bytes) -> bytes:
    """Name the rank as torch does, which does it itself for tracebacks."""
    if text.startswith(b"[rank"):
        return text
    return b"[rank" + task + b"]: " + text
