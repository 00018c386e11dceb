"""What is said of an allocation: how long it is still held, and what is not passed on into it."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def left_words(ends: float) -> str:
    """Say how long it is still held, if that is known."""
    if not ends:
        return ""
    left = max(0, round(ends - time.time()))
    if left < 120:
        return f", {left} s left"
    minutes = left // 60
    return f", {minutes} min left" if minutes < 120 else f", {minutes / 60:.1f} h left"


def stale_words(names: Sequence[str]) -> list[str]:
    """Say that variables of another job are not passed on."""
    if not names:
        return []
    job = os.environ.get("SLURM_JOB_ID") or os.environ.get("SLURM_JOBID")
    whose = f"of job {job}" if job else "of another job"
    count = f"{len(names)} SLURM_* variables" if len(names) > 1 else names[0]
    return [f"{count} {whose} are in this shell; they are not passed on"]
