"""The keys of a config file as blocks of its lines: YAML, TOML and INI. Pure, and no parser.

Blocks follow each other without a gap, so that any of them can be taken out or put in as lines. A
comment belongs to what comes after it. What is not understood is refused: then lines must do.
"""

from __future__ import annotations

import re

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_YAML_KEY = re.compile(
    r"""("[^"]*"|'[^']*'|[^\s#&*!|>%@`"'\[\]{},?-][^#]*?|-[^\s#][^#]*?|<<)\s*:(?=\s|$)"""
)
_YAML_OPEN = re.compile(r"(?:[&!]\S+\s*)*(?:#.*)?$")
"""After a key: nothing, or a tag or an anchor; what belongs to it stands below."""
_TOML_TABLE = re.compile(r"\s*(\[\[?)\s*(.*?)\s*\]\]?\s*(?:#.*)?$")
_INI_SECTION = re.compile(r"\[([^\]]+)\]\s*(?:[#;].*)?$")
_INI_KEY = re.compile(r"(?:export\s+)?([\w.-]+)\s*[=:]")
_MOST_LINES = 200
"""A TOML value that is longer is not looked for."""


class NotKeyed(Exception):
    """The lines are not laid out as keys."""


class Block(Record):
    """One key, its comments before it and all that is below it: lines from `start` up to `end`."""

    key: str
    start: int
    begin: int
    """The line of the key itself, after its comments."""
    end: int
    inner: tuple[Block, ...] = ()
    """Blocks of the keys below it; they end where it ends."""
    indent: int = 0
    is_item: bool = False
    """It is an item of a list: its key is no more than what it says."""

    @property
    def body(self) -> int:
        """Return where what is below it begins."""
        return self.inner[0].start if self.inner else self.end


def outline(name: str, lines: Sequence[str]) -> tuple[Block, ...]:
    """Return the blocks of a file, by what its name ends with; NotKeyed if it has none."""
    end = name.rpartition(".")[2].lower()
    if end in ("yaml", "yml"):
        return yaml_blocks(lines)
    if end == "toml":
        return toml_blocks(lines)
    if end in ("ini", "cfg", "conf", "env", "properties"):
        return ini_blocks(lines)
    raise NotKeyed(name)


# --- YAML


def yaml_blocks(lines: Sequence[str]) -> tuple[Block, ...]:
    """Read block style by its indentation; flow style and long texts are values of their key."""
    first = 0
    for number, line in enumerate(lines):
        if line.startswith(("---", "...", "%")):
            if any(not _is_bare(one) for one in lines[first:number]):
                raise NotKeyed("several documents")
            first = number + 1
    blocks = _level(lines, first, len(lines))
    if first and blocks:  # what comes before the first key goes with it
        blocks = (blocks[0].but(start=0), *blocks[1:])
    return blocks


def _level(lines: Sequence[str], start: int, end: int) -> tuple[Block, ...]:
    """Read the blocks between two lines, which are the keys of one mapping or items of one list."""
    full = [at for at in range(start, end) if not _is_bare(lines[at])]
    if not full:
        raise NotKeyed("nothing there")
    indent = _indent(lines[full[0]])
    is_list = _is_item(lines[full[0]])
    heads: list[tuple[int, str]] = []
    for at in full:
        here = _indent(lines[at])
        if here < indent:
            raise NotKeyed(lines[at])
        if here == indent and (is_list or not _is_item(lines[at])):
            heads.append((at, _key(lines[at], is_list=is_list)))
        elif not heads:
            raise NotKeyed(lines[at])
    return _blocks(lines, heads, start, end, indent, is_list=is_list)


def _blocks(
    lines: Sequence[str], heads: list[tuple[int, str]], start: int, end: int, indent: int, *,
    is_list: bool,
) -> tuple[Block, ...]:  # fmt: skip
    found = []
    begins = [at for at, _ in heads]
    starts = [start, *(_back_over_comments(lines, at, indent) for at in begins[1:])]
    ends = [*starts[1:], end]
    for (at, key), first, last in zip(heads, starts, ends, strict=True):
        text = "\n".join(line.rstrip() for line in lines[at:last]) if is_list else key
        block = Block(key=text, start=first, begin=at, end=last, indent=indent, is_item=is_list)
        found.append(block.but(inner=_below(lines, block)))
    return tuple(found)


def _below(lines: Sequence[str], block: Block) -> tuple[Block, ...]:
    """Return what is below a key, where each line of it is a key or an item; else nothing."""
    head = lines[block.begin].strip()
    if not block.is_item:
        found = _YAML_KEY.match(head)
        if found is None or not _YAML_OPEN.match(head[found.end() :].strip()):
            return ()
    elif not _YAML_KEY.match(head.lstrip("- ")):
        return ()
    try:
        return _level(lines, block.begin + 1, block.end)
    except NotKeyed:
        return ()


def _back_over_comments(lines: Sequence[str], at: int, indent: int) -> int:
    """Return where the comments right before a key begin, at its own indentation."""
    while at and lines[at - 1].lstrip().startswith("#") and _indent(lines[at - 1]) == indent:
        at -= 1
    return at


def _key(line: str, *, is_list: bool) -> str:
    if is_list:
        return ""
    found = _YAML_KEY.match(line.strip())
    if found is None:
        raise NotKeyed(line)
    return found[1].strip("\"'")


def _is_item(line: str) -> bool:
    text = line.strip()
    return text == "-" or text.startswith("- ")


def _is_bare(line: str) -> bool:
    text = line.strip()
    return not text or text.startswith("#")


def _indent(line: str) -> int:
    gap = line[: len(line) - len(line.lstrip())]
    if "\t" in gap:
        raise NotKeyed("a tab")
    return len(gap)


# --- TOML and INI: sections, each with keys


def toml_blocks(lines: Sequence[str]) -> tuple[Block, ...]:
    """Read tables, and the keys in each; the first one has the keys before any table."""
    import tomllib

    try:
        tomllib.loads("\n".join(line.rstrip("\r\n") for line in lines))
    except tomllib.TOMLDecodeError as error:
        raise NotKeyed(str(error)) from None
    heads: list[tuple[int, str, bool]] = []
    counts: dict[str, int] = {}
    at = 0
    while at < len(lines):
        table = _TOML_TABLE.match(lines[at])
        if _is_bare(lines[at]):
            at += 1
        elif table:
            key = table[2]
            if table[1] == "[[":
                counts[key] = counts.get(key, -1) + 1
                key = f"{key}[{counts[key]}]"
            heads.append((at, key, True))
            at += 1
        else:
            heads.append((at, lines[at].partition("=")[0].strip(), False))
            at = _statement_end(lines, at)
    return _sections(lines, heads)


def _statement_end(lines: Sequence[str], at: int) -> int:
    """Return the line after a `key = value`, which may go over several."""
    import tomllib

    for end in range(at + 1, min(len(lines), at + _MOST_LINES) + 1):
        try:
            tomllib.loads("\n".join(line.rstrip("\r\n") for line in lines[at:end]))
        except tomllib.TOMLDecodeError:
            continue
        return end
    raise NotKeyed(lines[at])


def ini_blocks(lines: Sequence[str]) -> tuple[Block, ...]:
    """Read `[section]`, `key = value` and lines that go on, which are indented."""
    heads: list[tuple[int, str, bool]] = []
    for at, line in enumerate(lines):
        if _is_bare(line) or line.startswith(";"):
            continue
        section, key = _INI_SECTION.match(line), _INI_KEY.match(line)
        if section or key:
            heads.append((at, (section or key or ("", ""))[1].strip(), bool(section)))
        elif not heads or not line[0].isspace():
            raise NotKeyed(line)
    return _sections(lines, heads)


def _sections(lines: Sequence[str], heads: list[tuple[int, str, bool]]) -> tuple[Block, ...]:
    """Put the keys into their sections; what comes before the first section is one without name."""
    if not heads:
        raise NotKeyed("no key")
    begins = [at for at, _, _ in heads]
    starts = [0, *(_back_over_comments(lines, at, _indent(lines[at])) for at in begins[1:])]
    ends = [*starts[1:], len(lines)]
    found: list[Block] = []
    if heads[0][2]:
        starts[0] = _back_over_comments(lines, begins[0], 0)
    found.append(Block(key="", start=0, begin=0, end=starts[0]))
    for (at, key, is_section), start, end in zip(heads, starts, ends, strict=True):
        block = Block(key=key, start=start, begin=at, end=end)
        if is_section:
            found.append(block)
        else:
            last = found[-1]
            found[-1] = last.but(end=end, inner=(*last.inner, block))
    return tuple(found)
