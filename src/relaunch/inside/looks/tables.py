"""Tables of pandas and polars on one line: `DataFrame (1000, 3) price float64 nan 4, name str`."""

from __future__ import annotations

from relaunch.inside.looks.choose import inner, name_of
from relaunch.inside.looks.nested import ALONE, joined
from relaunch.inside.looks.numbers import WHOLE, numbers_text, shape_text
from relaunch.inside.looks.plain import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from relaunch.inside.looks.choose import Above

ROWS = 100_000
"""Rows in which missing values are counted; of a longer table in its first ones."""


def frame(value: Any, room: int, above: Above) -> str:
    """Show a DataFrame of pandas: its columns, their types, and how much is missing."""
    shape = value.shape
    head = f"{name_of(type(value))} {shape_text(shape)}"
    if above:
        return head
    first = value if shape[0] <= ROWS else value.iloc[:ROWS]
    elements = _columns(first, value.columns, value.dtypes)
    note = "" if shape[0] <= ROWS else f" (nan in the first {ROWS:,} rows)"
    return joined(value, elements, shape[1], room, above, (f"{head} ", note)).rstrip()


def _columns(table: Any, names: Any, dtypes: Any) -> Iterable[tuple[str, object]]:
    for at in range(len(names)):
        missing = int(table.iloc[:, at].isna().sum())
        note = f" nan {missing:,}" if missing else ""
        yield f"{_label(names[at])} {one_line(str(dtypes.iloc[at]), 30)}{note}", ALONE


def column(value: Any, room: int, above: Above) -> str:
    """Show a Series or an Index of pandas: its type, its name, and its numbers."""
    size = len(value)
    name = getattr(value, "name", None)
    dtype = one_line(str(getattr(value, "dtype", "")), 30)
    head = f"{name_of(type(value))} {shape_text(value.shape)} {dtype}"
    if name is not None:
        head += f" {_label(name)}"
    if size <= WHOLE:
        elements = (("", one) for one in value.tolist())
        return joined(value, elements, size, room, above, (f"{head} [", "]"))
    if above:
        return head
    return one_line(head + numbers_text(_numbers(value, size)), room)


def _numbers(value: Any, size: int) -> dict[str, Any]:
    """Return the facts of a column: of numbers their range, of anything else what is missing."""
    if hasattr(value, "step"):  # a range: its numbers are nowhere yet
        return {"marks": (f"{value.start}..{value.stop} step {value.step}",)}
    kept: Any = getattr(value, "_values", None)
    if getattr(getattr(value, "dtype", None), "kind", "") in "Mm":
        kept = getattr(kept, "_ndarray", kept)
    if type(kept).__name__ == "ndarray" and kept.dtype.kind in "fiubcMm":
        from relaunch.inside.looks.arrays import facts

        return facts(kept)
    try:
        missing = int(value[:ROWS].isna().sum())
    except NotImplementedError:  # of several columns at once
        return {}
    if not missing:
        return {}
    return {"nan": missing, **({"sampled": ROWS, "size": size} if size > ROWS else {})}


def _label(name: object) -> str:
    return one_line(name, 40) if type(name) is str else inner(name, 40, ())


def polars_frame(value: Any, room: int, above: Above) -> str:
    """Show a DataFrame of polars, which knows how much is missing."""
    shape = value.shape
    head = f"{name_of(type(value))} {shape_text(shape)}"
    if above:
        return head
    elements = (_polars_column(one) for one in value.iter_columns())
    return joined(value, elements, shape[1], room, above, (f"{head} ", ""))


def _polars_column(column: Any) -> tuple[str, object]:
    missing = column.null_count()
    note = f" null {missing:,}" if missing else ""
    return f"{_label(column.name)} {one_line(str(column.dtype), 30)}{note}", ALONE


def polars_column(value: Any, room: int, above: Above) -> str:
    """Show a Series of polars."""
    text, _ = _polars_column(value)
    return one_line(f"{name_of(type(value))} {shape_text(value.shape)} {text}", room)


def _shape(value: Any) -> dict[str, Any]:
    return {"shape": tuple(value.shape)}


for _look in (frame, column, polars_frame, polars_column):
    _look.facts = _shape  # type: ignore[attr-defined]  # for `summary`
