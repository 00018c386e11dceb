"""Writes so many MB of 80-column lines in 64 KB blocks, then what it saw on the other side."""

from __future__ import annotations

import os
import sys
import termios

BLOCK = (b"0123456789" * 7 + b"abcdefghi\n") * 819


def main(size_mb: int) -> None:
    """Write, and end with a word on whether the terminal turns newlines into CR LF."""
    for _ in range(size_mb * 1_000_000 // len(BLOCK)):
        left = memoryview(BLOCK)
        while left:
            left = left[os.write(1, left) :]
    seen = "pipe"
    if os.isatty(1):
        processed = termios.OPOST | termios.ONLCR
        seen = "onlcr" if termios.tcgetattr(1)[1] & processed == processed else "raw"
    os.write(1, f"end {seen}\n".encode())


if __name__ == "__main__":
    main(int(sys.argv[1]))
