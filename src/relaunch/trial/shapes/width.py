"""How long a line may be, by what the project tells its formatter."""

from __future__ import annotations

import os
import tomllib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WIDTH = 100


def width_for(file: str) -> int:
    """Return the limit of ruff or black in the nearest settings above a file; 100 without one."""
    folder = os.path.dirname(os.path.abspath(file))
    while True:
        for name, tables in (
            ("ruff.toml", ((),)),
            (".ruff.toml", ((),)),
            ("pyproject.toml", (("tool", "ruff"), ("tool", "black"))),
        ):
            for table in tables:
                width = _read(os.path.join(folder, name), table)
                if width:
                    return width
        parent = os.path.dirname(folder)
        if parent == folder or os.path.exists(os.path.join(folder, ".git")):
            return WIDTH
        folder = parent


def _read(path: str, table: tuple[str, ...]) -> int:
    try:
        with open(path, "rb") as file:
            values: Any = tomllib.load(file)
    except (OSError, ValueError):
        return 0
    for name in table:
        values = values.get(name, {}) if isinstance(values, dict) else {}
    width = values.get("line-length") if isinstance(values, dict) else None
    return width if type(width) is int and width > 0 else 0
