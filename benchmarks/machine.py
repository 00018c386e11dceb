"""The facts of the machine that a reader needs to judge a figure; no names, no paths."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path


def facts(python: str) -> list[str]:
    """Say what the figures were measured on, and how busy it was."""
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return [
        f"date: {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}",
        f"cpus: {len(os.sched_getaffinity(0))} x {_cpu_model()}",
        f"system: {platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        f"python: {_said([python, '-V'])}",
        f"git: {_said(['git', '--version'])}",
        f"script: {_said(['script', '--version'])}",
        f"load when this was printed (1, 5, 15 minutes): {load}",
    ]


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _said(argv: list[str]) -> str:
    try:
        out = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "absent"
    return next((word for word in out.split() if word[0].isdigit()), out.strip())
