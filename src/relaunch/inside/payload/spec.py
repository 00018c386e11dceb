"""`(2,3) float32`, `float32[2,3]`, `2x3`: a shape and a type as people write them."""

from __future__ import annotations

from relaunch.inside.payload.dtypes import dtype_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.inside.payload.dtypes import Dtype

DEFAULT = "float32"


def read_spec(text: str) -> tuple[tuple[int, ...], Dtype]:
    """Read a shape and a type, either of which may be left out."""
    import re

    sizes = r"[\d\s,x×*]*"  # noqa: RUF001  # the sign that some write
    inner = re.search(rf"\(({sizes})\)|\[({sizes})\]", text)
    if inner is None:
        inner = re.search(rf"(?<![\w.])(\d{sizes})(?![\w.])", text)
    rest = text
    shape: tuple[int, ...] = ()
    if inner is not None:
        rest = text[: inner.start()] + " " + text[inner.end() :]
        shape = tuple(int(one) for one in re.findall(r"\d+", inner.group()))
    words = rest.replace(",", " ").split()
    if len(words) > 1 or (inner is None and not words):
        raise ValueError(f"`{text}` is no shape and dtype, such as '(2,3) float32'")
    return shape, dtype_of(words[0] if words else DEFAULT)
