"""A cheap look at raw output for the first sign of failure; on the hot path, so no `re`."""

from __future__ import annotations

MARKERS: tuple[bytes, ...] = (
    b"Traceback (most recent call last)",  # Python, and rich's box without colour
    b"Traceback \x1b[",  # rich and 3.13 put colours between the words
    b"Exception Group Traceback",
    b"Fatal Python error",
    b"\nSyntaxError: ",
    b"terminate called",  # C++
    b"Segmentation fault",
    b"CUDA error",
    b"AddressSanitizer",
    b"runtime error: ",
    b"Assertion `",
    b"= FAILURES =",  # pytest
    b"= ERRORS =",
    b"Out of memory: Killed process",
)


def looks_failing(data: bytes) -> bool:
    """Tell whether a chunk of output shows a failing event; `identify` has the last word."""
    return any(marker in data for marker in MARKERS)
