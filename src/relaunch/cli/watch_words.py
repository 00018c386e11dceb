"""What a program used, in words; and memory as people compare it: in GB, three digits."""

from __future__ import annotations

from relaunch.cli import draw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def used_words(usage: Mapping[str, Any]) -> str:
    """Say in one line what a trial used in all."""
    parts = [f"peak {draw.size(usage['peak_bytes'])}"]
    if usage.get("gpu_peak_bytes"):
        parts.append(f"GPU {draw.size(usage['gpu_peak_bytes'])}")
    parts.append(f"CPU {draw.duration(usage.get('cpu_s', 0.0))}")
    for name, word in (("read_bytes", "read"), ("write_bytes", "wrote")):
        if usage.get(name):
            parts.append(f"{word} {draw.size(usage[name])}")
    if usage.get("processes", 1) > 1:
        parts.append(draw.plural(usage["processes"], "process"))
    return ", ".join(parts)


def in_gb(count: float) -> str:
    """Write bytes as GB (2 to the 30th) with three digits: `12.3`, `1.24`, `0.31`, `0.012`."""
    value = count / (1 << 30)
    if value >= 99.95:
        return f"{value:.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.0995 else f"{value:.3f}"


def per_second(count: float) -> str:
    """Write bytes in a second in a narrow column: `0`, `812K`, `1.2M`, `3.4G`."""
    if count < 512:
        return "0"
    for unit in ("K", "M", "G"):
        count /= 1024
        if count < 1000:
            return f"{count:.1f}{unit}" if count < 9.95 else f"{count:.0f}{unit}"
    return f"{count / 1024:.1f}T"
