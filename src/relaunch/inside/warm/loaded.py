"""One version of a source file in a running program: its sites by number, place and code."""

from __future__ import annotations

from . import morph, sites

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterable
    from types import CodeType, FrameType
    from typing import Any

    from . import compare

    Rewrite = Callable[[ast.Module, str], object]


class CannotResume(Exception):
    """This snapshot cannot go on with these sources."""


class Loaded:
    """A version that is or was in use."""

    def __init__(
        self,
        source: compare.Source,
        first: int,
        code: CodeType,
        stencil: sites.Stencil,
        skips: sites.Skips,
        rewrite: Rewrite | None,
    ) -> None:
        _, _, lines, doors = stencil
        self.rewrite = rewrite
        self.source = source
        self.first = first
        self.end = first + len(lines)
        self.code = code
        self.stale = False
        self.doors = frozenset(first + number for number in doors)
        """The first sites of functions and loops: by them comes what runs for long."""
        self._lines = lines
        self._skips = skips
        self._closed: dict[int, list[CodeType]] = {}

    def close(self, number: int, code: CodeType, openly: bool = False) -> None:
        """Ask no more at a site, in this code: it runs there as if there were none.

        `openly`, so that who reads the code sees that too.
        """
        skip = self._skips.get(number)
        if skip and skip[2]:
            self._closed.setdefault(number, []).append(code)  # first: a handler may raise any time
            morph.rewrite(code, *skip)
            if openly:
                morph.show(code, skip[0], skip[2])

    def open(self, numbers: Iterable[int] | None = None) -> None:
        """Ask again at sites that were closed, all if none are named."""
        for number in [*self._closed] if numbers is None else numbers:
            for code in self._closed.pop(number, ()):
                at, question, skip = self._skips[number] or (0, b"", b"")
                if not any(morph.rewrite(code, at, old, question) for old in (skip, question)):
                    raise CannotResume(f"{code.co_qualname} is being watched")

    def site(self, path: tuple[Any, ...], index: int) -> int:
        """Return the number of a site in this version."""
        for block in self.source.blocks:
            if block.path == path and index <= len(block.body):
                return self.first + block.first + index
        raise CannotResume(f"{self.source.file} has no such place any more")

    def at(self, line: int) -> int:
        """Return the site before the first statement that begins at a line or below it."""
        found = [
            (statement.lineno, -block.first, self.first + block.first + index)
            for block in self.source.blocks
            for index, statement in enumerate(block.body)
            if statement.lineno >= line and not sites.is_prelude(index, statement)
        ]
        return min(found)[2] if found else -1

    def statement(self, line: int) -> int:
        """Return the line where the innermost statement begins that a line is in."""
        found = [
            statement.lineno
            for block in self.source.blocks
            for statement in block.body
            if statement.lineno <= line <= (statement.end_lineno or 0)
        ]
        return max(found, default=line)

    def place(self, number: int) -> tuple[tuple[Any, ...], int]:
        """Return block and index of a site."""
        number -= self.first
        for block in reversed(self.source.blocks):
            if block.first <= number:
                return block.path, number - block.first
        raise CannotResume("no such place")

    def line(self, number: int) -> int:
        """Return the line of a site."""
        return self._lines[number - self.first]

    def is_named(self, name: str) -> bool:
        """Tell whether a person would call the file so: by its path, or the end of it."""
        file = self.source.file
        return file == name or file.endswith(f"/{name}")

    def carried(self, new: compare.Source, seen: bytearray) -> bytes:
        """Return what is known to have been executed, for the sites of another version."""
        first = {block.path: block for block in new.blocks}
        carried = bytearray(new.size)
        for block in self.source.blocks:
            twin = first.get(block.path)
            if twin is None:
                continue
            for index in range(min(len(block.body), len(twin.body)) + 1):
                if seen[block.first + index]:
                    at_end = index == len(block.body)
                    carried[twin.first + (len(twin.body) if at_end else index)] = 1
        return bytes(carried)

    def check(self, stack: list[FrameType]) -> None:
        """CannotResume if a function of this file that is running cannot go on in this version."""
        for frame in stack:
            if frame.f_code.co_filename == self.source.file and has_sites(frame.f_code):
                twin = self._named(frame.f_code)
                why = morph.fits(frame.f_code, twin) if twin else "it is not there any more"
                if why:
                    raise CannotResume(f"{frame.f_code.co_qualname}: {why}")

    def call_at(self, number: int, like: CodeType) -> tuple[CodeType, int]:
        """Find the code of a function in which a site is, and where in it."""
        for one in sites.codes_of(self.code):
            if one.co_qualname == like.co_qualname:
                call = sites.stop_calls(one).get(number)
                if call is not None:
                    return one, call
        raise morph.CannotMorph(f"{like.co_qualname} has no such place")

    def _named(self, like: CodeType) -> CodeType | None:
        """Find the code of the same function, by its name."""
        for one in sites.codes_of(self.code):
            if one.co_qualname == like.co_qualname:
                return one
        return None


def has_sites(code: CodeType) -> bool:
    """Tell whether code comes by sites: lambdas and comprehensions do not."""
    return code.co_name[:1] != "<" or code.co_name == "<module>"
