"""Lists of numbers as people write them: `0-4,6-7`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def ranges(numbers: Iterable[int]) -> str:
    """Write numbers in order, those in a row as `first-last`; each once."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def unfold(text: str) -> list[int]:
    """Read what `ranges` wrote. ValueError when it is no such thing."""
    found: list[int] = []
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        found += range(int(first), int(last if dash else first) + 1)
    return found
