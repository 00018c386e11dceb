"""Writes the program that a line stands for: plain text for `python -c`, nothing of ours in it.

What the person wrote stays on lines of its own, so that a traceback shows it as it was typed.
"""

from __future__ import annotations

from relaunch.desk.oneliner.expand import expand
from relaunch.desk.oneliner.imports import statements
from relaunch.desk.oneliner.names import Names, parse, read
from relaunch.desk.oneliner.scan import STRING, scan
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from relaunch.desk.oneliner.imports import Find

LINE, LINES, NUMBER = "line", "lines", "n"
_STEP = "    "
_VALUE = """\
{value} = (
{body}
)
"""
_SHOWN = """\
if {value} is not None:
    print({value} if isinstance({value}, str) else repr({value}))
"""
_SHOWN_PRETTY = """\
if isinstance({value}, (dict, list, tuple, set, frozenset)) and len(repr({value})) > 80:
    from pprint import pformat
    {value} = pformat({value}, sort_dicts=False)
"""
_STREAMS = """\
{sys}.stdin.reconfigure(errors="surrogateescape")
{sys}.stdout.reconfigure(errors="surrogateescape")
"""
_LINES = """\
lines = [line.rstrip("\\n") for line in {sys}.stdin]
"""
_EACH = """\
try:
    for {target}:
        line = line.rstrip("\\n")
{body}
    {sys}.stdout.flush()
except BrokenPipeError:
    import select
    out = select.poll()
    out.register(1, 0)
    if not out.poll(0):
        raise
    {sys}.stdout = None  # whoever read it has had enough
"""
_ASYNC = """\
async def {main}():
{body}
{asyncio}.run({main}())
"""


class Program(Record):
    """The program that a line stands for."""

    text: str
    imports: tuple[str, ...] = ()
    """The statements that were added to import what it names."""
    missing: tuple[str, ...] = ()
    """Names that are neither bound nor known."""
    is_code: bool = True
    """Python can read it; the Python that was asked, that is."""
    each_line: bool = False
    """It runs once for each line of standard input."""


def write(line: str, find: Find) -> Program:
    """Return the program for a line; `find` knows the modules of the Python that will run it."""
    text = _reading(line)
    names = read(text)
    if names is None:
        return Program(text=text, is_code=False)
    if names.after_future > 1:
        text = expand(text)  # so that imports can stand behind the one of `__future__`
        names = read(text) or names
    each, whole = LINE in names.free, LINES in names.free
    given = {LINE, LINES, NUMBER} if each else {LINES}
    wanted = {name: use for name, use in names.free.items() if name not in given}
    imports, missing = statements(wanted, find)
    program = _Writer(text, names, imports, names.rebound & wanted.keys() - {*missing})
    return Program(
        text=program.written(each=each, whole=whole),
        imports=tuple(imports),
        missing=tuple(name for name in missing if name not in names.rebound),
        each_line=each,
    )


def _reading(line: str) -> str:
    """Return the first reading of a line that is Python: as typed, dedented, expanded."""
    plain = _dedented(line)
    for text in (line, plain):
        if parse(text) is not None:
            return text
    return expand(plain)


class _Writer:
    """Puts the parts together; names of ours give way to the person's."""

    def __init__(
        self, text: str, names: Names, imports: Iterable[str], outer: Iterable[str]
    ) -> None:
        """`outer` are names that are imported, and bound again by the text."""
        self.text = text.rstrip("\n")
        self.names = names
        self.imports = list(imports)
        self.outer = sorted(outer)

    def written(self, *, each: bool, whole: bool) -> str:
        names = self.names
        head, body = self._split()
        if names.is_expression:
            shown = _VALUE + ("" if each else _SHOWN_PRETTY) + _SHOWN
            body = shown.format(value=self._own("_value"), body=body).rstrip("\n")
        if each or whole:
            sys = self._module("sys")
            body = self._loop(body, sys, whole=whole) if each else body
            lines = _LINES.format(sys=sys) if whole else ""
            body = _STREAMS.format(sys=sys) + lines + body
        if names.awaits:
            main, asyncio = self._own("_main"), self._module("asyncio")
            if self.outer:
                body = f"global {', '.join(self.outer)}\n{body}"
            body = _ASYNC.format(main=main, asyncio=asyncio, body=_indented(body, 1))
        return "\n".join([*head, *self.imports, body]).rstrip("\n")

    def _split(self) -> tuple[list[str], str]:
        """Part what must come first, the imports from `__future__`, from the rest."""
        lines = self.text.split("\n")
        at = self.names.after_future - 1
        return lines[:at], "\n".join(lines[at:])

    def _loop(self, body: str, sys: str, *, whole: bool) -> str:
        source = "lines" if whole else f"{sys}.stdin"
        target = f"line in {source}"
        if NUMBER in self.names.free:
            target = f"n, line in enumerate({source}, 1)"
        return _EACH.format(target=target, body=_indented(body, 2), sys=sys).rstrip("\n")

    def _own(self, name: str) -> str:
        """Return a name of ours that is none of the person's."""
        while name in self.names.taken:
            name += "_"
        return name

    def _module(self, name: str) -> str:
        """Import a module for ourselves; where the name is bound, under another."""
        if name in self.names.free or name not in self.names.taken:
            if f"import {name}" not in self.imports:
                self.imports.insert(0, f"import {name}")
            return name
        own = self._own(name)
        self.imports.insert(0, f"import {name} as {own}")
        return own


# --- lines; what a string holds is none of them, though it may go over several


def _lines(text: str) -> list[str]:
    """Part a program where an indentation is only that."""
    held = [token for token in scan(text) if token.kind == STRING and "\n" in token.text]
    lines, start, at = [], 0, text.find("\n")
    while at >= 0:
        if not any(token.start < at < token.end for token in held):
            lines.append(text[start:at])
            start = at + 1
        at = text.find("\n", at + 1)
    return [*lines, text[start:]]


def _indented(text: str, steps: int) -> str:
    return "\n".join(_STEP * steps + line if line.strip() else line for line in _lines(text))


def _dedented(text: str) -> str:
    """Take the blanks away that all lines begin with."""
    lines = _lines(text)
    blanks = [line[: len(line) - len(line.lstrip())] for line in lines if line.strip()]
    common = min(blanks, key=len, default="")
    if not all(blank.startswith(common) for blank in blanks):
        return text
    return "\n".join(line[len(common) :] for line in lines)
