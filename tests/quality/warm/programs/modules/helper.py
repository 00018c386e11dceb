# mypy: ignore-errors
"""A module of the project."""

state = {"loaded": True}
FACTOR = 2


def double(n):
    state["calls"] = state.get("calls", 0) + 1
    return n * FACTOR


def describe():
    parts = []
    for key, value in state.items():
        parts.append(f"{key}={value}")
    return " ".join(parts)
