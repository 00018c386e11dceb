"""How everything looks: width, colour, tables, times and quoting, for every verb; costs no import.

What is drawn is safe to show: control characters and undecodable bytes come out as `\\x1b`. Every
verb writes by `put`, `say`, `remark` and `say_bytes`, and these let no escape sequence through but
the colours that a pen of this process drew.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TextIO

DEFAULT_WIDTH = 80
_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
}
_OURS = f"\x1b[{os.urandom(8).hex()}:"
"""How a colour of a pen begins until it is written: no text of others can contain it."""
_PAINTS = frozenset(("0", *_CODES.values()))
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")
_BARS = "▁▂▃▄▅▆▇█"
_ASCII_BARS = "_.-=+*#@"


class Pen:
    """Colours text, or leaves it alone."""

    def __init__(self, *, colour: bool = False, utf8: bool = True) -> None:
        """Draw with or without colour, with or without characters beyond ASCII."""
        self.colour = colour
        self.utf8 = utf8

    def __call__(self, style: str, text: str) -> str:
        """Paint `text` with a style such as `red` or `bold red`; no style is no paint."""
        if not (self.colour and style and text):
            return text
        codes = ";".join(_CODES[word] for word in style.split())
        return f"{_OURS}{codes}m{text}{_OURS}0m"

    @property
    def arrow(self) -> str:
        """Return the arrow between an old and a new value."""
        return "→" if self.utf8 else "->"


def pen(stream: TextIO | None = None, choice: str = "auto") -> Pen:
    """Choose the pen for a stream; `choice` is what `--color` said: auto, always or never."""
    stream = sys.stdout if stream is None else stream
    return Pen(colour=_colour_wanted(stream, choice), utf8=speaks_utf8())


def _colour_wanted(stream: TextIO, choice: str) -> bool:
    if choice != "auto":
        return choice == "always"
    env = os.environ
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return env.get("TERM") != "dumb" and _is_terminal(stream)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def speaks_utf8() -> bool:
    """Tell whether the locale can show more than ASCII."""
    env = os.environ
    locale = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    return locale.lower().replace("-", "").endswith("utf8")


def width(stream: TextIO | None = None) -> int:
    """Return how many columns there are: the terminal's, else $COLUMNS, else 80."""
    stream = sys.stdout if stream is None else stream
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError, AttributeError):
        text = os.environ.get("COLUMNS", "")
        columns = int(text) if text.isdigit() else 0
    return columns if columns > 0 else DEFAULT_WIDTH


def put(stream: TextIO, text: str) -> None:
    """Write to a stream what may be shown of a text: characters, lines, and a pen's colours."""
    _pass(stream, shown(text))


def shown(text: str) -> str:
    """Return what a terminal is to get of a text: clean, with the colours of a pen."""
    first, *rest = text.split(_OURS)
    painted = (piece.partition("m") for piece in rest)
    parts = (f"\x1b[{codes}m{_each_line(after, clean)}" for codes, _, after in painted)
    return "".join([_each_line(first, clean), *parts])


def steer(stream: TextIO, sequence: str) -> None:
    """Write a sequence that moves the cursor; never with a text in it."""
    _pass(stream, sequence)


def _pass(stream: TextIO, text: str) -> None:
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        stream.write(text)
    else:
        stream.flush()
        buffer.write(text.encode(stream.encoding or "ascii", "backslashreplace"))
    stream.flush()


def say(text: str) -> None:
    """Write data to stdout; a reader that went away (`| head`) ends us quietly."""
    try:
        put(sys.stdout, text)
    except BrokenPipeError:
        leave_quietly()


def say_bytes(data: bytes) -> None:
    """Write bytes to stdout, as paths and code need not be text."""
    try:
        put_bytes(1, data)
    except BrokenPipeError:
        leave_quietly()


def put_bytes(fd: int, data: bytes) -> None:
    """Write what somebody else wrote: as it is, but on a terminal only the text of it."""
    sys.stdout.flush()
    if os.isatty(fd):
        text = unpainted(data.decode("utf-8", "surrogateescape"))
        data = text.encode(sys.stdout.encoding or "ascii", "backslashreplace")
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def unpainted(text: str) -> str:
    """Return the text of what a program once wrote: without colours, and all else to be seen."""
    return _each_line(text.replace("\r\n", "\n").replace("\r", "\n"), bare)


def _each_line(text: str, make: Callable[[str], str]) -> str:
    lines = text.split("\n")
    return "\n".join("\t".join(map(make, line.split("\t"))) for line in lines)


def leave_quietly() -> None:
    """End as SIGPIPE would, without Python's complaint at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    raise SystemExit(141)


def say_json(verb: str, value: dict[str, Any]) -> None:
    """Write one JSON object with the versioned name of its schema first."""
    import json

    text = json.dumps({"schema": f"relaunch/{verb}/1", **value}, indent=2, ensure_ascii=True)
    say(text + "\n")


def remark(text: str) -> None:
    """Say one line about the data on stderr, where it disturbs no pipe; it comes out clean."""
    try:
        data = f"{clean(text)}\n".encode(sys.stderr.encoding or "ascii", "backslashreplace")
        os.write(sys.stderr.fileno(), data)
    except (OSError, ValueError, AttributeError):
        pass


def clean(text: str, *, lines: bool = False) -> str:
    """Make text safe to show on one line (or, with `lines`, on several)."""
    if text.isprintable():
        return text
    if lines:
        return "\n".join(clean(line) for line in text.split("\n"))
    return "".join(char if char.isprintable() else _visible(char) for char in text)


def bare(text: str) -> str:
    """Take the colours out of a line; nothing else in it can be one."""
    return "".join(clean(part) for part, _ in _painted(text))


def repainted(text: str) -> str:
    """Return a line that was kept as it was shown, with what can be colours of a pen."""
    return "".join(f"{clean(part)}{_repainted(paint)}" for part, paint in _painted(text))


def _repainted(paint: str) -> str:
    codes = paint[2:-1]
    return f"{_OURS}{codes}m" if codes and _PAINTS.issuperset(codes.split(";")) else clean(paint)


def _painted(text: str) -> list[tuple[str, str]]:
    """Divide a line into pieces of text, each with the colour that begins behind it."""
    first, *rest = text.split("\x1b[")
    found = [first]
    paints = []
    for piece in rest:
        codes, end, after = piece.partition("m")
        is_paint = end and codes.replace(";", "").isdecimal()
        paints.append(f"\x1b[{codes}m" if is_paint else "")
        found.append(after if is_paint else f"\x1b[{piece}")
    return list(zip(found, [*paints, ""], strict=True))


def _visible(char: str) -> str:
    code = ord(char)
    if char in "\n\t\r":
        return " "
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not text
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def columns_of(text: str) -> int:
    """Count the terminal columns `text` takes; wide and combining characters are not one."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text
    )


def clip(text: str, columns: int, *, utf8: bool = True) -> str:
    """Cut text to fit, with a sign that it was cut."""
    if columns_of(text) <= columns:
        return text
    sign = "…" if utf8 else "~"
    if columns <= 1:
        return sign[:columns]
    kept = text[: columns - 1]
    while columns_of(kept) > columns - 1:
        kept = kept[:-1]
    return kept + sign


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Fill up with blanks, on the left when the text goes to the right."""
    blanks = " " * (columns - columns_of(text))
    return blanks + text if right else text + blanks


class Column:
    """One column of a table. A `flexible` one gives way when the table is too wide.

    On a screen too narrow even then, columns with an `optional` number go, the highest first.
    """

    def __init__(
        self,
        title: str,
        *,
        right: bool = False,
        flexible: bool = False,
        least: int = 4,
        optional: int = 0,
    ) -> None:
        """Name the column and say how it behaves."""
        self.title = clean(title)
        self.right = right
        self.flexible = flexible
        self.least = least
        self.optional = optional


Cell = tuple[str, str]
"""A style and a text; a table shows it clean."""


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], total: int, pen: Pen
) -> list[str]:
    """Lay out rows under their titles in `total` columns; only flexible columns are cut."""
    rows = [[(style, clean(text)) for style, text in row] for row in rows]
    widths = natural_widths(columns, rows)
    shown = _affordable(columns, widths, total)
    columns = [columns[n] for n in shown]
    widths = [widths[n] for n in shown]
    rows = [[row[n] for n in shown] for row in rows]
    _squeeze(columns, widths, total)
    lines = [_line(columns, widths, [("dim", column.title) for column in columns], pen)]
    lines.extend(_line(columns, widths, row, pen) for row in rows)
    return lines


def natural_widths(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[int]:
    """Return how wide each column would be with all the room there is."""
    return [
        max([columns_of(column.title), *(columns_of(row[n][1]) for row in rows)])
        for n, column in enumerate(columns)
    ]


def _affordable(columns: Sequence[Column], widths: list[int], total: int) -> list[int]:
    """Choose the columns that fit when every flexible one is as narrow as it may be."""
    shown = list(range(len(columns)))
    least = [
        min(wide, column.least) if column.flexible else wide
        for column, wide in zip(columns, widths, strict=True)
    ]
    while sum(least[n] for n in shown) + 2 * (len(shown) - 1) > total:
        victim = max(shown, key=lambda n: columns[n].optional)
        if not columns[victim].optional:
            break
        shown.remove(victim)
    return shown


def _squeeze(columns: Sequence[Column], widths: list[int], total: int) -> None:
    """Take columns from the widest flexible one until the line fits."""
    flexible = [n for n, column in enumerate(columns) if column.flexible]
    over = sum(widths) + 2 * (len(widths) - 1) - total
    while over > 0:
        able = [n for n in flexible if widths[n] > columns[n].least]
        if not able:
            return
        widths[max(able, key=lambda n: widths[n])] -= 1
        over -= 1


def _line(columns: Sequence[Column], widths: list[int], row: Sequence[Cell], pen: Pen) -> str:
    parts: list[str] = []
    blanks = ""
    for column, columns_wide, (style, text) in zip(columns, widths, row, strict=True):
        text = clip(text, columns_wide, utf8=pen.utf8)
        fill = " " * (columns_wide - columns_of(text))
        if column.right:
            parts += [blanks, fill, pen(style, text)]
            blanks = "  "
        else:
            parts += [blanks, pen(style, text)]
            blanks = fill + "  "
    return "".join(parts).rstrip(" ")


def facts(pairs: Sequence[tuple[str, str]], total: int, pen: Pen) -> list[str]:
    """Lay out `name  value` lines; long values go on under themselves."""
    wide = max([7, *(len(name) for name, _ in pairs)])
    lines = []
    for name, value in pairs:
        head = pen("dim", name) + " " * (wide - len(name) + 2)
        for part in value.split("\n"):
            lines.append((head + part).rstrip(" "))
            head = " " * (wide + 2)
    return lines


def ago(seconds: float) -> str:
    """Say how long ago: `5m ago`."""
    return f"{age(seconds)} ago"


def age(seconds: float) -> str:
    """Say how old, in one short unit: `5m`, `30h`, `12d`."""
    for limit, size, unit in (
        (60, 1, "s"),
        (3600, 60, "m"),
        (2 * 86400, 3600, "h"),
        (60 * 86400, 86400, "d"),
    ):
        if seconds < limit:
            return f"{max(0, int(seconds / size))}{unit}"
    return f"{int(seconds / (7 * 86400))}w"


def duration(seconds: float) -> str:
    """Say how long something took: `0.12 s`, `4.2 s`, `21 s`, `3 min 5 s`, `2 h 10 min`."""
    if seconds < 0.995:
        return f"{seconds:.2f} s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    minutes = whole % 3600 // 60
    return f"{whole // 3600} h {minutes} min" if minutes else f"{whole // 3600} h"


def short_duration(seconds: float) -> str:
    """Say how long in a narrow column: `21 s`, `3m05s`, `2h10m`."""
    if seconds < 119.5:
        return duration(seconds)
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def size(count: float) -> str:
    """Say how many bytes: `12 B`, `3.4 KiB`, `120 MiB`."""
    if count < 1024:
        return f"{int(count)} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1023.95:
            return f"{count:.1f} {unit}" if count < 99.95 else f"{count:.0f} {unit}"
    return f"{count / 1024:.1f} TiB"


def plural(count: int, noun: str) -> str:
    """Say `1 file`, `3 files`, `2 copies`, `2 replays`, `2 processes`."""
    if count == 1:
        return f"1 {noun}"
    many = noun + ("es" if noun.endswith(("s", "ch", "sh")) else "s")
    if noun[-1] == "y" and noun[-2] not in "aeiou":
        many = noun[:-1] + "ies"
    return f"{count:,} {many}"


def quote(word: str) -> str:
    """Quote one word for a shell, ready to paste; odd bytes become bash's `$'...'`."""
    if word and _SAFE.issuperset(word):
        return word
    if word.isprintable():
        return "'" + word.replace("'", "'\"'\"'") + "'"
    inner = "".join(
        char if char.isprintable() and char not in "\\'" else _shell_escape(char) for char in word
    )
    return f"$'{inner}'"


def _shell_escape(char: str) -> str:
    code = ord(char)
    plain = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", "'": "\\'"}.get(char)
    if plain:
        return plain
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))


def quoted(argv: Sequence[str]) -> str:
    """Quote a whole command, ready to paste."""
    return " ".join(quote(word) for word in argv)


command_line = quoted


def sparkline(values: Sequence[float], *, utf8: bool = True) -> str:
    """Draw values as a row of small bars, the largest full, nothing lowest."""
    bars = _BARS if utf8 else _ASCII_BARS
    top = max(values, default=0.0)
    if top <= 0:
        return bars[0] * len(values)
    return "".join(
        bars[min(len(bars) - 1, int(value / top * (len(bars) - 1) + 0.5))] for value in values
    )


def signal_name(number: int) -> str:
    """Name a signal without the `signal` module, whose enums cost four milliseconds."""
    if TYPE_CHECKING:
        import signal as _signal
    else:
        import _signal

    for name, value in vars(_signal).items():
        known = value == number and name.startswith("SIG") and name[3] != "_"
        if known and name not in ("SIGIOT", "SIGCLD", "SIGPOLL"):  # older names of others
            return str(name)
    return f"signal {number}"
