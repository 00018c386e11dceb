"""What a failure quotes from its input: as that becomes smaller, something else may stand there."""

from __future__ import annotations

import ast
import mmap
import os
import re

from relaunch.trial.signature.alike import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from relaunch.outcome import Signature
    from relaunch.session.shrinking.told import Request

_WASHED = re.compile(r"<[a-z]+>|\.\.\.")
"""What stands in a message for a number, a path and the like, and for what was left out."""


def quotes_of_input(
    hunted: Signature, request: Request, besides: Sequence[str] = ()
) -> frozenset[str]:
    """Return those of the texts that a failure quotes which stand in the input, as whole words."""
    wanted = {one for one in quoted(hunted) if one}
    words = (*request.recipe.argv, *request.recipe.env.values())
    found = {one for one in wanted if any(_word(one).search(word.encode()) for word in words)}
    for path in (*_files(request), *besides):
        if wanted <= found:
            break
        found |= _in_file(path, wanted - found)
    return frozenset(found)


def _files(request: Request) -> Iterator[str]:
    for name in request.files:
        path = os.path.join(request.recipe.cwd, name)
        if not os.path.isdir(path):
            yield path
        for folder, _, files in os.walk(path):
            yield from (os.path.join(folder, one) for one in files)


def _in_file(path: str, wanted: set[str]) -> set[str]:
    """Look for words in a file, however large it is."""
    try:
        with open(path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                return set()
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return {one for one in wanted if _word(one).search(data)}
    except (OSError, ValueError):  # no file that can be mapped
        return set()


def _word(text: str) -> re.Pattern[bytes]:
    """Return a pattern for a text as the input has it: not washed, and not escaped."""
    parts = [_written(part) for part in _WASHED.split(text)]
    return re.compile(rb"(?<!\w)" + rb"[^\n]{0,200}?".join(parts) + rb"(?!\w)")


def _written(part: str) -> bytes:
    plain = re.escape(part.encode("utf-8", "surrogatepass"))
    try:
        meant = re.escape(ast.literal_eval(f'"""{part}"""').encode("utf-8", "surrogatepass"))
    except (ValueError, SyntaxError):
        return plain
    return plain if meant == plain else rb"(?:%b|%b)" % (plain, meant)
