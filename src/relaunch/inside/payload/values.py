"""What the elements of a payload are: counting, coded, random, at the edges, or a sentinel."""

from __future__ import annotations

from math import prod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from relaunch.inside.payload.dtypes import Dtype

KINDS = ("count", "coded", "random", "adversarial")
STRINGS = (
    "", " ", "\t\n", "\0", "null", "NaN", "-0", "'\"\\", "a" * 10_000, "\u00e9e\u0301",
    "\u202eright to left", "\ufeffmark", "\U0001f469\u200d\U0001f52c", "\U0010ffff",
    "../../etc/passwd", "%s%n{}", "<b>&amp;",
)  # fmt: skip
_PIECE = 1 << 16
_GREATEST_RANDOM = 99


class Array:
    """Elements of one type in C order, as bytes; what it becomes is decided later."""

    __slots__ = ("data", "dtype", "shape")

    def __init__(self, shape: Sequence[int], dtype: Dtype, data: bytes) -> None:
        """Take all three."""
        self.shape = tuple(shape)
        self.dtype = dtype
        self.data = data

    def values(self) -> list[Any]:
        """Return all elements in one list."""
        return self.dtype.unpack(self.data)

    def nested(self) -> Any:
        """Return lists in lists; of no dimension, the element itself."""
        return _nest(self.values(), self.shape)


def _nest(values: list[Any], shape: Sequence[int]) -> Any:
    if not shape:
        return values[0]
    step = prod(shape[1:])
    return [_nest(values[n * step : (n + 1) * step], shape[1:]) for n in range(shape[0])]


def made(
    shape: Sequence[int], dtype: Dtype, kind: str, *, seed: int = 0, sentinel: bytes = b""
) -> Array:
    """Make an array of a kind; a sentinel goes before any kind."""
    count = prod(shape)
    if sentinel:
        return Array(shape, dtype, _marked(count, dtype, sentinel))
    if kind == "count":
        return Array(shape, dtype, _packed(dtype, _Counting(count, dtype.limit)))
    if kind == "coded":
        return Array(shape, dtype, _packed(dtype, Coded(shape, dtype)))
    if kind == "random":
        return Array(shape, dtype, _packed(dtype, _random(count, dtype, seed)))
    if kind == "adversarial":
        return Array(shape, dtype, _edges(count, dtype))
    raise ValueError(f"no kind `{kind}`; there are {', '.join(KINDS)}")


def _packed(dtype: Dtype, values: Any) -> bytes:
    pieces = []
    for at in range(0, len(values), _PIECE):
        pieces.append(dtype.pack([values[n] for n in range(at, min(at + _PIECE, len(values)))]))
    return b"".join(pieces)


class _Counting:
    """1, 2, 3, ...; where the type has no further number, 1 again."""

    def __init__(self, count: int, limit: int) -> None:
        self._count = count
        self._limit = limit

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, n: int) -> int:
        return (n + 1) % 2 if self._limit == 1 else n % self._limit + 1


class Coded:
    """Numbers whose decimal digits are the index: a 1, then each index with the same width.

    1203 in an array of (3, 4, 5) is [2, 0, 3]. Where the type cannot hold such numbers, it is the
    place in C order, counted from 1; where it cannot even hold these, they begin again.
    """

    def __init__(self, shape: Sequence[int], dtype: Dtype) -> None:
        """See which code fits."""
        self._shape = tuple(shape)
        self._limit = dtype.limit
        self._widths = [len(str(max(0, size - 1))) for size in shape]
        self._count = prod(shape)
        largest = self._number(tuple(max(0, size - 1) for size in shape))
        self.is_digits = largest <= dtype.limit
        self.is_unique = self.is_digits or self._count <= dtype.limit

    def __len__(self) -> int:
        """Count the elements."""
        return self._count

    def __getitem__(self, n: int) -> int:
        """Return the number of one element."""
        if self.is_digits:
            return self._number(self.index(n))
        return (n + 1) % 2 if self._limit == 1 else n % self._limit + 1

    def index(self, n: int) -> tuple[int, ...]:
        """Return the index of an element by its place in C order."""
        found = []
        for size in reversed(self._shape):
            n, rest = divmod(n, size)
            found.append(rest)
        return tuple(reversed(found))

    def _number(self, index: Sequence[int]) -> int:
        digits = "".join(f"{one:0{width}d}" for one, width in zip(index, self._widths, strict=True))
        return int(f"1{digits}")

    def reading(self) -> str:
        """Say how a number is read, by the last of them."""
        if not self._count:
            return "no elements"
        last = self._count - 1
        if self.is_digits:
            return f"{self[last]} is [{', '.join(map(str, self.index(last)))}]"
        if self.is_unique:
            return "a number is the place in C order, from 1; the digits of indexes do not fit"
        return f"a number is the place in C order, from 1, and begins again behind {self._limit}"


def _random(count: int, dtype: Dtype, seed: int) -> list[Any]:
    from random import Random

    random = Random(seed)
    if dtype.family == "bool":
        return [random.random() < 0.5 for _ in range(count)]
    if dtype.family == "complex":
        return [complex(random.gauss(0, 1), random.gauss(0, 1)) for _ in range(count)]
    if dtype.family == "float":
        return [random.gauss(0, 1) for _ in range(count)]
    return [random.randint(0, min(_GREATEST_RANDOM, dtype.limit)) for _ in range(count)]


def _edges(count: int, dtype: Dtype) -> bytes:
    part = dtype.part if dtype.family == "complex" else dtype
    patterns = [bits.to_bytes(part.size, "little") for _, bits in part.edges()]
    wanted = count * dtype.size // part.size
    whole = b"".join(patterns) * (wanted // len(patterns) + 1)
    return whole[: wanted * part.size]


def _marked(count: int, dtype: Dtype, sentinel: bytes) -> bytes:
    """Fill memory with the sentinel: its bytes are the same for every type."""
    if dtype.family == "bool":  # any other byte in a bool is undefined
        return b"\1" * count
    size = count * dtype.size
    return (sentinel * (size // len(sentinel) + 1))[:size]


def sentinel_bytes(sentinel: int | str) -> bytes:
    """Return a sentinel as it lies in memory, little-endian: 0xDEADBEEF is EF BE AD DE."""
    text = str(sentinel).strip().replace("_", "") if isinstance(sentinel, str) else ""
    try:
        number = int(text, 0) if text else int(sentinel)
    except ValueError:
        raise ValueError(f"a sentinel is a number such as 0xDEADBEEF, not `{sentinel}`") from None
    if number < 0:
        raise ValueError(f"a sentinel is not negative: `{sentinel}`")
    digits = len(text) - 2 if text[:2].lower() == "0x" else 0
    size = max(1, (number.bit_length() + 7) // 8, (digits + 1) // 2)
    size = next((width for width in (1, 2, 4, 8) if size <= width), size)
    return number.to_bytes(size, "little")
