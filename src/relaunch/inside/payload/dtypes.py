"""Element types by name, without numpy: from numbers to bytes and back, and the bits at the edges.

Bytes are little-endian, as machines are and as files of tensors want them.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_ALIASES = {
    "float": "float32", "fp32": "float32", "f32": "float32", "f4": "float32",
    "double": "float64", "fp64": "float64", "f64": "float64", "f8": "float64",
    "half": "float16", "fp16": "float16", "f16": "float16", "f2": "float16",
    "bf16": "bfloat16", "int": "int64", "long": "int64", "i64": "int64", "i8": "int64",
    "i32": "int32", "i4": "int32", "short": "int16", "i16": "int16", "i2": "int16",
    "i1": "int8", "byte": "uint8", "u8": "uint8", "u1": "uint8", "u16": "uint16", "u2": "uint16",
    "u32": "uint32", "u4": "uint32", "u64": "uint64", "b1": "bool", "?": "bool", "c8": "complex64",
    "cfloat": "complex64", "c16": "complex128", "cdouble": "complex128", "bool_": "bool",
    "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2",
}  # fmt: skip


class Dtype:
    """One element type."""

    def __init__(
        self, name: str, size: int, family: str, code: str = "", exponent: int = 0
    ) -> None:
        """Take its name, how many bytes it has, and how `struct` calls it, if it does."""
        self.name = name
        self.size = size
        self.family = family
        self.code = code
        self.exponent = exponent
        """How many bits of a float are the exponent's."""

    @property
    def mantissa(self) -> int:
        """How many bits of a float are behind the point."""
        return self.size * 8 - 1 - self.exponent

    @property
    def limit(self) -> int:
        """The greatest whole number up to which this type has all of them."""
        if self.family == "bool":
            return 1
        if self.family == "float":
            return 1 << (self.mantissa + 1)
        if self.family == "complex":
            return self.part.limit
        return int((1 << (self.size * 8 - (self.family == "int"))) - 1)

    @property
    def part(self) -> Dtype:
        """The type of the two parts of a complex number."""
        return DTYPES["float32" if self.size == 8 else "float64"]

    def pack(self, values: Sequence[Any]) -> bytes:
        """Write numbers as bytes."""
        if self.family == "complex":
            pairs = [part for value in values for part in (value.real, value.imag)]
            return self.part.pack(pairs)
        if self.code:
            return struct.pack(f"<{len(values)}{self.code}", *values)
        if self.name == "bfloat16":
            return b"".join(struct.pack("<H", _to_bfloat16(value)) for value in values)
        table = _eight_bits(self)
        return bytes(_nearest(table, value) for value in values)

    def unpack(self, data: bytes) -> list[Any]:
        """Read numbers from bytes."""
        if self.family == "complex":
            parts = self.part.unpack(data)
            return [complex(*parts[n : n + 2]) for n in range(0, len(parts), 2)]
        if self.code:
            return list(struct.unpack(f"<{len(data) // self.size}{self.code}", data))
        if self.name == "bfloat16":
            halves = struct.unpack(f"<{len(data) // 2}H", data)
            words = struct.pack(f"<{len(halves)}I", *(half << 16 for half in halves))
            return list(struct.unpack(f"<{len(halves)}f", words))
        table = _eight_bits(self)
        return [table[byte] for byte in data]

    def edges(self) -> list[tuple[str, int]]:
        """Return the bit patterns that programs trip over, with their names."""
        bits = self.size * 8
        if self.family == "bool":
            return [("false", 0), ("true", 1)]
        if self.family == "uint":
            return [("0", 0), ("max", (1 << bits) - 1), ("1", 1), ("half", 1 << (bits - 1))]
        if self.family == "int":
            top = 1 << (bits - 1)
            return [("0", 0), ("-1", (1 << bits) - 1), ("min", top), ("max", top - 1),
                    ("1", 1), ("-max", top + 1)]  # fmt: skip
        sign = 1 << (bits - 1)
        top = ((1 << self.exponent) - 1) << self.mantissa
        one = ((1 << (self.exponent - 1)) - 1) << self.mantissa
        if self.name == "float8_e4m3fn":  # it has one nan, no infinity, and numbers up to there
            high, endless = 0x7E, [("nan", 0x7F)]
        else:
            high = top - 1
            endless = [("nan", top | 1 << (self.mantissa - 1)), ("inf", top), ("-inf", sign | top)]
        return [*endless, ("-0", sign), ("denormal", 1), ("-denormal", sign | 1), ("max", high),
                ("-max", sign | high), ("least normal", 1 << self.mantissa), ("0", 0),
                ("1 and a bit", one | 1)]  # fmt: skip


def _to_bfloat16(value: float) -> int:
    (word,) = struct.unpack("<I", struct.pack("<f", value))
    if value != value:
        return int(word >> 16) | 0x40
    return int((word + 0x7FFF + ((word >> 16) & 1)) >> 16)


def _eight_bits(dtype: Dtype) -> list[float]:
    """Return the value of each byte."""
    found = []
    bias = (1 << (dtype.exponent - 1)) - 1
    for byte in range(256):
        sign = -1.0 if byte & 0x80 else 1.0
        exponent = (byte & 0x7F) >> dtype.mantissa
        fraction = (byte & ((1 << dtype.mantissa) - 1)) / (1 << dtype.mantissa)
        if dtype.name == "float8_e4m3fn" and byte & 0x7F == 0x7F:
            found.append(float("nan"))
        elif dtype.name == "float8_e5m2" and exponent == 31:
            found.append(sign * float("inf") if not fraction else float("nan"))
        elif exponent == 0:
            found.append(sign * fraction * 2.0 ** (1 - bias))
        else:
            found.append(sign * (1 + fraction) * 2.0 ** (exponent - bias))
    return found


def _nearest(table: list[float], value: float) -> int:
    finite = [byte for byte in range(256) if abs(table[byte]) < float("inf")]
    return min(finite, key=lambda byte: (abs(table[byte] - value), byte))


DTYPES = {
    one.name: one
    for one in (
        Dtype("bool", 1, "bool", "?"),
        Dtype("uint8", 1, "uint", "B"), Dtype("uint16", 2, "uint", "H"),
        Dtype("uint32", 4, "uint", "I"), Dtype("uint64", 8, "uint", "Q"),
        Dtype("int8", 1, "int", "b"), Dtype("int16", 2, "int", "h"),
        Dtype("int32", 4, "int", "i"), Dtype("int64", 8, "int", "q"),
        Dtype("float16", 2, "float", "e", 5), Dtype("float32", 4, "float", "f", 8),
        Dtype("float64", 8, "float", "d", 11), Dtype("bfloat16", 2, "float", "", 8),
        Dtype("float8_e4m3fn", 1, "float", "", 4), Dtype("float8_e5m2", 1, "float", "", 5),
        Dtype("complex64", 8, "complex"), Dtype("complex128", 16, "complex"),
    )
}  # fmt: skip


def dtype_of(name: Any) -> Dtype:
    """Find a type by what it is called anywhere: `torch.float32`, `<f4`, `bf16`, `np.int8`."""
    text = str(getattr(name, "name", None) or getattr(name, "__name__", None) or name)
    text = text.strip().rpartition(".")[2].lstrip("<=|>").lower()
    found = DTYPES.get(_ALIASES.get(text, text))
    if found is None:
        from difflib import get_close_matches

        near = get_close_matches(text, DTYPES, n=1)
        known = f"did you mean {near[0]}?" if near else f"there are {', '.join(DTYPES)}"
        raise ValueError(f"no dtype `{name}`; {known}")
    return found
