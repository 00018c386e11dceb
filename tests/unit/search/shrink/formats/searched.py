"""A search to its end with one part, one attempt at a time."""

from __future__ import annotations

from relaunch.search.shrink.shrinking import Shrinking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Shrunk:
    """What came of it."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.attempts = 0
        self.steps: list[Any] = [model]
        self.log: list[str] = []


def shrink(model: Any, fails: Callable[[Any], bool], *, most: int = 5_000) -> Shrunk:
    """Return the smallest model that the passes reach."""
    search = Shrinking({"part": model})
    done = Shrunk(model)
    while attempts := search.propose():
        (attempt,) = attempts
        done.attempts += 1
        assert done.attempts <= most, f"more than {most} attempts"
        one: Any = attempt.parts["part"]
        took = bool(fails(one))
        done.log.append(f"{attempt.what}: {took} {one.bytes}")
        search.learn(attempt, took)
    done.steps += (step.parts["part"] for step in search.accepted)
    done.model = search.best["part"]
    return done
