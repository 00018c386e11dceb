"""Looks at the shapes of a text while it runs, here in the test's own process."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relaunch.inside.probe import lines
from relaunch.inside.shapes.book import Book
from relaunch.inside.shapes.calls import Watch
from relaunch.inside.shapes.inject import RUNTIME, add_sites
from relaunch.inside.shapes.sites import functions_of
from relaunch.trial.shapes.plan import Plan, plan
from relaunch.trial.shapes.seen import Call, read_calls
from relaunch.trial.shapes.source import Source


class Runtime:
    """What injected code calls."""

    def __init__(self, folder: Path) -> None:
        self.troubles: list[BaseException] = []
        self.watch = Watch(Book(str(folder)), self.troubles.append)
        self.entered = self.watch.entered
        self.at = self.watch.at
        self.compiling = bool


def run(
    text: str,
    folder: Path,
    names: Mapping[str, Any] | None = None,
    *,
    after: str = "",
    wanted: tuple[str, ...] = ("",),
) -> tuple[list[Call], dict[str, Any]]:
    """Run a text, then `after` without us; return what was seen, and the names."""
    tree = lines.parse(text, "model.py")
    add_sites(tree, 0, wanted, ())
    runtime = Runtime(folder)
    space: dict[str, Any] = {RUNTIME: runtime, "__name__": "model", **(names or {})}
    exec(compile(tree, "model.py", "exec", dont_inherit=True), space)
    exec(after, space)
    runtime.watch.book.flush()
    assert runtime.troubles == []
    return read_calls(str(folder), 0), space


def planned(text: str, calls: list[Call], **options: Any) -> Plan:
    """Decide what to write into a text."""
    source = Source(text.encode())
    return plan(source, functions_of(source.tree), calls, **options)


def commented(text: str, calls: list[Call], **options: Any) -> str:
    """Return the text with its comments; no more than comments differ."""
    source = Source(text.encode())
    found = plan(source, functions_of(source.tree), calls, **options)
    new = source.with_comments(found.comments).decode()
    assert ast.dump(ast.parse(new)) == ast.dump(source.tree)
    return new


def comments(text: str, calls: list[Call], **options: Any) -> dict[str, str]:
    """Return the new comment of each line, by the line's own text."""
    lines_ = text.splitlines()
    found = planned(text, calls, **options)
    return {lines_[n - 1].strip(): comment for n, comment in found.comments.items()}
