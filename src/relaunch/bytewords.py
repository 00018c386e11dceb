"""Says a number of bytes as sizes on the command line are meant: a GB has 1024 MB."""

from __future__ import annotations


def in_words(count: int) -> str:
    """Say `5.0 GB`, `512 MB` or `900 KB`."""
    value = count / (1 << 10)
    for unit in ("KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} TB"
