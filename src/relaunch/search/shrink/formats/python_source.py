"""Python source that becomes smaller and compiles all the while, if it ever did.

Statements go first, by chunks and from the outside in; then blocks take the place of what they are
in, clauses, decorators and annotations go, elements of lists, expressions become plain ones. What
fails by how it is written needs more: tokens, spaces, single characters. A source that does not
compile is cut by the indents of its lines, and then likewise.
"""

from __future__ import annotations

import re
import tokenize
from fnmatch import fnmatchcase
from functools import cached_property
from io import BytesIO
from pathlib import Path

from relaunch.errors import UsageError
from relaunch.search.shrink.formats import python_tokens
from relaunch.search.shrink.formats.cuts import Cuts, Ways
from relaunch.search.shrink.formats.python_tree import Tree, applied, compiles
from relaunch.search.shrink.formats.whole import AS_BYTES, Whole
from relaunch.search.shrink.model import Smaller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.search.shrink.formats.python_tokens import Listed, Token
    from relaunch.search.shrink.formats.python_tree import Edit
    from relaunch.search.shrink.model import Pass

_INDENTED = re.compile(rb"([ \t\f]*)([^\r\n]*)(\r\n|\r|\n|$)")
_CHARACTER = re.compile(rb"[\x00-\x7f]|[\xc0-\xff][\x80-\xbf]*|[\x80-\xbf]")
_DEFINED = re.compile(rb"\b(?:def|class)[ \t]+([A-Za-z_\x80-\xff][\w\x80-\xff]*)")
_WORD = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*")
_TOKEN_CHUNK, _CHARACTER_CHUNK = 16, 8


def read(path: str, *, keep: Sequence[str] = ()) -> PythonSource:
    """Read a source; `keep` are patterns of functions and classes that stay."""
    data = Path(path).read_bytes()
    try:
        text = data.decode(_encoding(data)).encode()
    except (SyntaxError, UnicodeError, LookupError):
        raise UsageError(f"`{path}` is not text of Python", hint=AS_BYTES) from None
    strictly = compiles(text)
    valid = strictly or compiles(text, strictly=False)
    held = {name for name in _DEFINED.findall(text) if _matches(name.decode(), keep)}
    return PythonSource(text, valid=valid, strictly=strictly, held=frozenset(held), original=data)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _encoding(data: bytes) -> str:
    return tokenize.detect_encoding(BytesIO(data).readline)[0]


class PythonSource(Whole):
    """A source as text, with its tokens and its tree when they are asked for."""

    def __init__(
        self,
        text: bytes,
        *,
        valid: bool,
        strictly: bool = True,
        held: frozenset[bytes] = frozenset(),
        original: bytes | None = None,
    ) -> None:
        """Take the text as UTF-8; `valid`: whatever is made of it has to compile."""
        self.text = text
        self.valid = valid
        self.strictly = strictly
        self.held = held
        self._original = original

    @cached_property
    def data(self) -> bytes:
        """What is written: in the encoding that the source names."""
        if self._original is not None:
            return self._original
        try:
            encoding = _encoding(self.text)
            return self.text if encoding == "utf-8" else self.text.decode().encode(encoding)
        except (SyntaxError, UnicodeError, LookupError):
            return self.text

    def passes(self) -> Sequence[Pass]:
        """Return the passes: by the tree if there is one, then by how it is written."""
        return [*(_BY_TREE if self.valid else _BY_LINES), *_AS_WRITTEN]

    @cached_property
    def tokens(self) -> list[Token]:
        """All tokens of the text."""
        return python_tokens.tokens(self.text)

    @cached_property
    def words(self) -> list[Token]:
        """The tokens but for spaces."""
        return [token for token in self.tokens if token.kind not in ("space", "comment")]

    @cached_property
    def tree(self) -> Tree:
        """The syntax tree, parsed once."""
        return Tree(self.text)

    @cached_property
    def lists(self) -> list[Listed]:
        """The comma lists."""
        return python_tokens.lists(self.tokens)

    @cached_property
    def names(self) -> list[bytes]:
        """The names that could be shorter."""
        return python_tokens.names(self.tokens)

    @cached_property
    def blanks(self) -> list[Edit]:
        """Comments and spaces that are more than enough."""
        return python_tokens.blanks(self.tokens)

    @cached_property
    def parts(self) -> list[list[Edit]]:
        """Clauses, decorators, annotations, other names."""
        return self.tree.parts()

    @cached_property
    def parameters(self) -> list[list[Edit]]:
        """Parameters with the arguments for them."""
        return self.tree.parameters(self.lists) if self.valid else []

    @cached_property
    def brackets(self) -> list[list[Edit]]:
        """Brackets that what is in them may do without."""
        return python_tokens.brackets(self.text, self.lists)

    @cached_property
    def simpler(self) -> list[list[Edit]]:
        """Shorter expressions, place by place."""
        return self.tree.simpler()

    @cached_property
    def line_blocks(self) -> list[list[tuple[int, int]]]:
        """Lines with the deeper lines after them, level by level."""
        return _line_blocks(self.text)

    @cached_property
    def characters(self) -> list[Edit]:
        """Characters of which fewer may do: names that have to be so long are none of them."""
        kinds = ("string", "number", "comment", "space", "newline")
        return [
            (token.start + found.start(), token.start + found.end(), b"")
            for token in self.tokens
            if token.kind in kinds or not self.valid
            for found in _CHARACTER.finditer(token.text)
        ]

    @cached_property
    def measure(self) -> tuple[int, ...]:
        """Fewer bytes, then fewer words: a name that is a number needs nothing else."""
        return (self.bytes, len(_WORD.findall(self.text)))

    def edited(self, edits: list[Edit], what: str, *, sure: bool = False) -> Smaller | None:
        """Return the source with edits, if it is shorter and compiles as it has to."""
        return self.but(applied(self.text, edits), what, sure=sure)

    def but(self, text: bytes, what: str, *, sure: bool = False) -> Smaller | None:
        """Return another text of the source, if it is no longer and compiles as it has to."""
        if len(text) > len(self.text) or text == self.text:
            return None
        if self.held and not self.held.issubset(_DEFINED.findall(text)):
            return None
        if self.valid and not sure and not compiles(text, strictly=self.strictly):
            return None
        smaller = PythonSource(text, valid=self.valid, strictly=self.strictly, held=self.held)
        return Smaller(model=smaller, what=what)


# --- statements


def _block_sizes(model: PythonSource) -> list[int]:
    return [
        0 if not module and model.tree.source(body[0]) == b"pass" and len(body) == 1 else len(body)
        for body, module in model.tree.blocks
    ]


def _without_statements(model: PythonSource, block: int, low: int, high: int) -> Smaller | None:
    edit = model.tree.without(block, low, high)
    # Statements are needed by no other one to compile, but for what `nonlocal` refers to.
    sure = b"nonlocal" not in model.text
    return model.edited([edit], f"without {_lines_of(model, edit)}", sure=sure)


def _lines_of(model: PythonSource, edit: Edit) -> str:
    first = model.text.count(b"\n", 0, edit[0]) + 1
    last = first + model.text[edit[0] : edit[1]].rstrip().count(b"\n")
    return f"line {first:,}" if first == last else f"lines {first:,}-{last:,}"


def _hoisted(model: PythonSource, place: int, way: int) -> Smaller | None:
    edit = model.tree.hoisted(place, model.tokens)
    return model.edited([edit], f"the body alone of {_lines_of(model, edit)}")


# --- parts, elements, expressions


def _without_parts(model: PythonSource, kind: int, low: int, high: int) -> Smaller | None:
    names = ("clauses", "decorators", "annotations and defaults", "other names")
    return model.edited(model.parts[kind][low:high], f"without {high - low} {names[kind]}")


def _without_elements(model: PythonSource, group: int, low: int, high: int) -> Smaller | None:
    start, end = model.lists[group].span(low, high)
    return model.edited([(start, end, b"")], f"without `{_excerpt(model.text[start:end])}`")


def _simpler(model: PythonSource, place: int, way: int) -> Smaller | None:
    edit = model.simpler[place][way]
    old, new = _excerpt(model.text[edit[0] : edit[1]]), _excerpt(edit[2])
    return model.edited([edit], f"`{new}` for `{old}`")


def _without_parameter(model: PythonSource, place: int, way: int) -> Smaller | None:
    edits = model.parameters[place]
    name = _excerpt(model.text[edits[0][0] : edits[0][1]]) if edits else ""
    return model.edited(edits, f"without the parameter `{name}`")


def _without_brackets(model: PythonSource, place: int, way: int) -> Smaller | None:
    edits = model.brackets[place]
    inner = _excerpt(model.text[edits[0][1] : edits[1][0]])
    return model.edited(edits, f"`{inner}` without brackets")


def _excerpt(text: bytes) -> str:
    shown = " ".join(text.decode(errors="replace").split())
    return shown if len(shown) <= 30 else f"{shown[:29]}…"


# --- as written


def _without_blanks(model: PythonSource, _: int, low: int, high: int) -> Smaller | None:
    return model.edited(model.blanks[low:high], f"without {high - low} comments and spaces")


def _narrowed(model: PythonSource, place: int, way: int) -> Smaller | None:
    return model.but(python_tokens.narrow(model.text, model.tokens), "indented by one space")


def _renamed(model: PythonSource, place: int, way: int) -> Smaller | None:
    name, short = model.names[place], next(python_tokens.short_names(model.tokens), None)
    if short is None:
        return None
    edits = [(t.start, t.end, short) for t in model.tokens if t.text == name]
    return model.edited(edits, f"`{short.decode()}` for `{name.decode()}`")


def _without_tokens(model: PythonSource, _: int, low: int, high: int) -> Smaller | None:
    start, end = model.words[low].start, model.words[high - 1].end
    return model.edited([(start, end, b"")], f"without `{_excerpt(model.text[start:end])}`")


def _without_characters(model: PythonSource, _: int, low: int, high: int) -> Smaller | None:
    edits = model.characters[low:high]
    return model.edited(edits, f"without {high - low} characters")


# --- what does not compile


def _line_blocks(text: bytes) -> list[list[tuple[int, int]]]:
    """Return groups of spans of lines, a line and the deeper ones after it, outer ones first."""
    lines = [
        (len(found[1].expandtabs()) if found[2] else None, found.start(), found.end())
        for found in _INDENTED.finditer(text)
        if found.end() > found.start()
    ]
    groups: list[list[tuple[int, int]]] = []
    _group(lines, groups)
    return groups


def _group(
    lines: list[tuple[int | None, int, int]], groups: list[list[tuple[int, int]]], deep: int = 0
) -> None:
    if not lines or deep > 100:
        return
    least = min((one[0] for one in lines if one[0] is not None), default=0)
    heads = [at for at, one in enumerate(lines) if one[0] is not None and one[0] <= least]
    heads = sorted({0, *heads})
    ends = [*heads[1:], len(lines)]
    groups.append([(lines[a][1], lines[b - 1][2]) for a, b in zip(heads, ends, strict=True)])
    for a, b in zip(heads, ends, strict=True):
        if b - a > 1:
            _group(lines[a + 1 : b], groups, deep + 1)


def _without_lines(model: PythonSource, group: int, low: int, high: int) -> Smaller | None:
    spans = model.line_blocks[group]
    edit = (spans[low][0], spans[high - 1][1], b"")
    return model.edited([edit], f"without {_lines_of(model, edit)}")


def _kinds(model: PythonSource) -> list[int]:
    return [len(edits) for edits in model.parts]


def _token_count(model: PythonSource) -> list[int]:
    return [len(model.words)]


_BY_TREE: list[Pass] = [
    Cuts("statements", _block_sizes, _without_statements),
    Ways("bodies", lambda model: [1] * len(model.tree.hoists), _hoisted),
    Cuts("parts", _kinds, _without_parts),
]
_BY_LINES: list[Pass] = [
    Cuts("lines", lambda model: [len(group) for group in model.line_blocks], _without_lines),
    Cuts("all tokens", _token_count, _without_tokens, phase=1),
]
_AS_WRITTEN: list[Pass] = [
    Cuts("elements", lambda model: [len(one.elements) for one in model.lists], _without_elements),
    Ways(
        "expressions",
        lambda model: [len(ways) for ways in model.simpler] if model.valid else [],
        _simpler,
        phase=1,
    ),
    Ways("parameters", lambda model: [1] * len(model.parameters), _without_parameter, phase=1),
    Ways("brackets", lambda model: [1] * len(model.brackets), _without_brackets, phase=1),
    Cuts("comments and spaces", lambda model: [len(model.blanks)], _without_blanks, phase=1),
    Ways("names", lambda model: [1] * len(model.names), _renamed, phase=2),
    Ways("indents", lambda model: [1], _narrowed, phase=2),
    Cuts("tokens", _token_count, _without_tokens, largest=_TOKEN_CHUNK, phase=2),
    Cuts(
        "characters",
        lambda model: [len(model.characters)],
        _without_characters,
        largest=_CHARACTER_CHUNK,
        phase=3,
    ),
]
