"""What shrinking found: how small it is, what it looks like, and how to run it."""

from __future__ import annotations

import os
from textwrap import fill

from relaunch.cli import draw
from relaunch.cli.searches import after
from relaunch.cli.shrink_live import chart
from relaunch.errors import UsageError
from relaunch.session.shrinking.told import CALL, STEPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from relaunch.session.shrinking.told import Found, Request, Written

_MOST_BYTES, _MOST_LINES = 2000, 24
_FEW_LINES = 5
"""Of what is not small yet: the rest of what is told must stay on the screen."""
_DUMPED = 128
_NOTHING = (b"", b"\n", b"0", b'""', b"[]", b"{}")
_LEAST_SHARE = 0.001
_CHART = 40
_NAMES = 10
"""The columns before a text."""
_WHOLE = ("small", "run it", "again")


def lines(found: Found, width: int, pen: draw.Pen, redact: Sequence[str] = ()) -> list[str]:
    """Draw all that was found; of a config set not the values of secrets."""
    why = f"{found.stopped}: " if found.stopped else ""
    told = [pen("bold", f"{why}{sentence(found)}")]
    pairs = [
        ("failure", draw.clean(found.failure.title)),
        ("attempts", _attempts(found)),
        ("how", draw.clean(found.way)),
    ]
    if found.rate is not None and found.rate[0] < found.rate[1]:
        pairs.append(("fails in", f"{found.rate[0]} of {found.rate[1]} runs"))
    for one in found.parts:
        if one.path and one.name != CALL:
            pairs.append(("small", f"{one.path} ({_sizes(one)})"))
    pairs.append(("run it", _run(found)))
    if found.bundle:
        said = "fails there too" if found.is_bundle_good else "does not fail there in the same way"
        pairs.append(("bundle", f"{found.bundle}: {said}"))
    if found.last_trial:
        pairs.append(("again", f"rl again {found.last_trial}{_input(found)}"))
    told += draw.facts(
        [(name, _folded(name, text, width)) for name, text in pairs if text], width, pen
    )
    if len(found.history) > 2:
        bars = chart(found.history, found.attempts, min(_CHART, width - 2), utf8=pen.utf8)
        told += ["", f"  {pen('cyan', bars)}"]
    for one in found.parts:
        most = _FEW_LINES if found.stopped else _MOST_LINES
        shown = payload(one, width - 2, pen, redact if found.config_set else (), most=most)
        if shown:
            head = [pen("dim", one.path or one.name)] if len(found.parts) > 1 else []
            told += ["", *head, *(f"  {line}" for line in shown)]
    return [*told, after(found.stopped, "shrink", pen)] if found.stopped else told


def _folded(name: str, text: str, width: int) -> str:
    """Fold what is to be read; what is to be pasted stays as it is."""
    if name in _WHOLE:
        return text
    return fill(text, width - _NAMES, break_long_words=False, break_on_hyphens=False)


def sentence(found: Found) -> str:
    """Say how small it is."""
    if found.bytes >= found.of:
        return "nothing could be taken away"
    if [one.name for one in found.parts] == [STEPS]:
        return f"{found.bytes:,} of {found.of:,} steps are enough"
    share = percent(found.bytes, found.of)
    said = f"{draw.size(found.bytes)} of {draw.size(found.of)} are enough ({share})"
    is_unread = found.parts[0].path and _is_nothing(found.parts[0])
    return f"{said}: is {found.parts[0].name} read at all?" if is_unread else said


def percent(part: int, whole: int) -> str:
    """Say a share in two digits: `0.2%`, `35%`."""
    share = 100 * part / whole
    if 0 < share < _LEAST_SHARE:
        return f"under {_LEAST_SHARE}%"
    return f"{share:.2g}%" if share < 10 else f"{share:.0f}%"


def _is_nothing(one: Written) -> bool:
    """Tell whether what is left is the least that its format can be."""
    if one.bytes > len(_NOTHING[-1]) or not os.path.isfile(one.path):
        return not one.bytes
    with open(one.path, "rb") as file:
        return file.read() in _NOTHING


def _attempts(found: Found) -> str:
    now = f" ({found.new_attempts:,} of them now)" if found.new_attempts != found.attempts else ""
    rate = f", {found.per_s:,.0f} per second" if found.per_s >= 1 else ""
    return f"{found.attempts:,} in {draw.duration(found.seconds)}{now}{rate}"


def _sizes(one: Written) -> str:
    return f"{draw.size(one.bytes)} of {draw.size(one.of)}"


def _run(found: Found) -> str:
    """Return the line that fails; without all other variables where these were made fewer."""
    line = draw.quoted(found.command)
    if found.config_set:
        line = f"rl -s {draw.quote(found.config_set)} -- {line}"
    if found.env is not None:
        pairs = [f"{name}={value}" for name, value in found.env.items()]
        line = f"env -i {draw.quoted(pairs)} {line}"
    line += _input(found)
    if found.in_place:
        there = [one.path for one in found.parts if one.path]
        where = "its place" if len(there) == 1 else "their places"
        line += f"\n(with {', '.join(map(draw.clean, there))} in {where})"
    return line


def _input(found: Found) -> str:
    return f" < {draw.quoted([found.stdin])}" if found.stdin else ""


# --- the payload


def payload(
    one: Written,
    width: int,
    pen: draw.Pen,
    redact: Sequence[str] = (),
    *,
    most: int = _MOST_LINES,
) -> list[str]:
    """Show what is left: of a folder each file by its name, of a call its variables."""
    if one.name == CALL:
        return _variables(one.model, width, pen, most)
    if not os.path.isdir(one.path):
        return _content(one.path, width, pen, redact, most)
    told: list[str] = []
    for path in _files(one.path):
        if len(told) >= most:
            return [*told, pen("dim", "... and more files")]
        shown = [f"  {line}" for line in _content(path, width - 2, pen, redact, most)]
        told += [pen("dim", draw.clean(os.path.relpath(path, one.path))), *shown]
    return told


def _variables(model: Any, width: int, pen: draw.Pen, most: int) -> list[str]:
    from relaunch.search.shrink.formats.captured_words import variables

    told = [(name, draw.clean(text)) for name, text in variables(model)]
    wide = max((len(name) for name, _ in told), default=0)
    shown = [draw.clip(f"{name:<{wide}}  {text}", width, utf8=pen.utf8) for name, text in told]
    more = len(shown) - most
    return shown if more <= 0 else [*shown[:most], pen("dim", f"... {more} more")]


def _files(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (os.path.join(place, name) for name in sorted(names))


def _content(path: str, width: int, pen: draw.Pen, redact: Sequence[str], most: int) -> list[str]:
    """Show a file: text as it is, bytes as a dump; the beginning of what is long."""
    if not path or not os.path.isfile(path):
        return []
    data, is_cut, whole = _beginning(path)
    if not data:
        return [pen("dim", "(empty)")]
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if error.start < len(data) - 4 or not is_cut:
            return _dump(data, whole, pen)
        text = data[: error.start].decode()
    if any(ord(char) < 32 and char not in "\n\t\r\x1b\x0c" for char in text):
        return _dump(data, whole, pen)
    if redact:
        from relaunch.session.config_secrets import without_secrets

        text = without_secrets(text, redact)
    shown = [draw.clip(draw.clean(line), width, utf8=pen.utf8) for line in text.splitlines()]
    if len(shown) > most or is_cut:
        shown = [*shown[:most], pen("dim", f"... {whole}")]
    return shown


def _beginning(path: str) -> tuple[bytes, bool, str]:
    """Return the first bytes of a file, or of what is packed in it; is there more; how much."""
    with open(path, "rb") as file:
        size = draw.size(os.fstat(file.fileno()).st_size)
        data, is_cut = file.read(_MOST_BYTES), bool(file.read(1))
    from relaunch.search.shrink.packed import is_damaged, kind_of, opened

    if kind := kind_of(data):
        try:
            with opened(path, kind) as packed:
                return packed.read(_MOST_BYTES), bool(packed.read(1)), f"{size} packed"
        except Exception as error:
            if not isinstance(error, UsageError) and not is_damaged(error):
                raise
    return data, is_cut, f"{size} in all"


def _dump(data: bytes, whole: str, pen: draw.Pen) -> list[str]:
    """Write bytes as sixteen numbers in a row, with what is readable of them."""
    found = []
    for at in range(0, min(len(data), _DUMPED), 16):
        row = data[at : at + 16]
        codes = " ".join(f"{one:02x}" for one in row)
        text = "".join(chr(one) if 32 <= one < 127 else "." for one in row)
        found.append(f"{pen('dim', f'{at:04x}')}  {codes:<47}  {text}")
    if len(data) > _DUMPED:
        found.append(pen("dim", f"... {whole}"))
    return found


# --- for programs


def ended(found: Found) -> dict[str, Any]:
    """Return what a list of searches shows of this one."""
    return {
        "told": sentence(found),
        "found": found.bytes < found.of,
        "failure": found.failure.title,
        "signature": found.failure.digest,
        "runs": found.attempts,
        "seconds": found.seconds,
        "stopped": found.stopped,
    }


def as_json(number: int, request: Request, found: Found) -> dict[str, Any]:
    """Return what was found, for programs."""
    return {
        "search": number,
        "found": found.bytes < found.of,
        "stopped": found.stopped,
        "failure": found.failure.title,
        "signature": found.failure.digest,
        "bytes": found.bytes,
        "bytes_before": found.of,
        "parts": [
            {"name": one.name, "path": one.path, "bytes": one.bytes, "bytes_before": one.of}
            for one in found.parts
        ],
        "command": [*found.command],
        "stdin": found.stdin or None,
        "set": found.config_set or None,
        "variables": sorted(found.env) if found.env is not None else None,
        "command_before": [*request.recipe.argv],
        "attempts": found.attempts,
        "new_attempts": found.new_attempts,
        "fresh": found.fresh,
        "seconds": found.seconds,
        "per_second": found.per_s,
        "way": found.way,
        "rate": list(found.rate) if found.rate else None,
        "bundle": found.bundle,
        "bundle_fails": found.is_bundle_good,
        "first_trial": found.first_trial,
        "last_trial": found.last_trial,
        "history": [list(one) for one in found.history],
    }
