"""The commits of a range by their places in a search of the whole graph."""

from __future__ import annotations

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaunch.history.line import Commit


class Graph(Record):
    """Commits by their places: first those that are not in question, then parents first."""

    ids: tuple[str, ...]
    parents: tuple[tuple[int, ...], ...]
    ruled_out: frozenset[int]
    """They changed nothing themselves."""


def graph_of(start: str, commits: Mapping[str, Commit]) -> Graph:
    """Say what is built upon what, with what the commits of a range begin with at the old end.

    A commit with the tree of one of its parents does what that one does: the others tell nothing.
    """
    outer = {up: None for one in commits.values() for up in one.parents if up not in commits}
    ids = (*dict.fromkeys((start, *outer)), *commits)
    places = {commit: place for place, commit in enumerate(ids)}
    parents: list[tuple[int, ...]] = [() for _ in range(len(ids) - len(commits))]
    ruled_out = {*range(len(parents))}
    for one in commits.values():
        same = [up for up in one.parents if up in commits and commits[up].tree == one.tree]
        parents.append(tuple(places[up] for up in same[:1] or one.parents))
        if same:
            ruled_out.add(places[one.id])
    return Graph(ids=ids, parents=tuple(parents), ruled_out=frozenset(ruled_out))
