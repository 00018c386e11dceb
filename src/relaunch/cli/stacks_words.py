"""Ranks, processes and values in words: `ranks 0-4,6-7`, `step = 2 (rank 3); 3 (0); 4 (1-2)`."""

from __future__ import annotations

from relaunch.cli import draw
from relaunch.look.stacks.frames import MAIN
from relaunch.look.stacks.ranges import ranges
from relaunch.look.stacks.variables import numeric

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.look.stacks.merge import Branch, Group
    from relaunch.look.stacks.variables import Variable

_MOST_VALUES = 6
_SHOWN_VALUES = 4
_LONGEST_LIST = 34
_LONGEST_VALUE = 40
_NAMES = 2


def member_words(group: Group, members: Sequence[int], *, long: bool = False) -> str:
    """Say who they are: `ranks 0-3`, `2 workers of rank 1`, `pids 12,14`; `long` counts first."""
    several = [group.processes[at] for at in members]
    numbers = _numbers(group, members)
    if group.kind == "processes":
        if long and len(several) > 1:
            return draw.plural(len(several), "process")
        return f"pid {numbers}" if len(several) == 1 else f"pids {_cut(numbers)}"
    ranks = f"rank{'s' if _is_many(numbers) else ''} {_cut(numbers)}"
    if group.kind == "workers":
        return f"{draw.plural(len(several), 'worker')} of {ranks}"
    return draw.plural(len(several), "rank") if long and len(several) > 1 else ranks


def thread_words(branch: Branch) -> str:
    """Say which threads they are: `3 threads consumer-*`; nothing of first threads."""
    names = dict.fromkeys(_numberless(name) for name in branch.names if name != MAIN)
    words = [draw.plural(branch.threads, "thread")] if branch.threads > len(branch.members) else []
    words += [", ".join([*names][:_NAMES]) + (", ..." if len(names) > _NAMES else "")]
    return " ".join(filter(None, words))


def _numberless(name: str) -> str:
    return name.rstrip("0123456789") + "*" if name[-1:].isdigit() else name


def _numbers(group: Group, members: Sequence[int]) -> str:
    """List ranks, or pids; with their hosts where pids are of several."""
    several = [group.processes[at] for at in members]
    if group.kind != "processes":
        return ranges(one.rank or 0 for one in several)
    if len({one.node for one in group.processes}) < 2:
        return ranges(one.pid for one in several)
    nodes: dict[str, list[int]] = {}
    for one in several:
        nodes.setdefault(one.node, []).append(one.pid)
    return " ".join(f"{node}:{ranges(pids)}" for node, pids in nodes.items())


def _is_many(numbers: str) -> bool:
    return "," in numbers or "-" in numbers


def _cut(numbers: str) -> str:
    """Cut a long list between two of its numbers."""
    if len(numbers) <= _LONGEST_LIST:
        return numbers
    return numbers[:_LONGEST_LIST].rpartition(",")[0] + ",..."


def values_words(group: Group, variable: Variable) -> str:
    """Say a value that all have, or who has which."""
    values = variable.values
    if len(values) == 1:
        return values[0].text
    if group.kind == "ranks" and _is_the_rank(group, variable):
        return "its own rank, in each"
    if len(values) <= _MOST_VALUES:
        return _listed(group, variable, len(values))
    numbers = numeric(value.text for value in values)
    if numbers is None:
        rest = len(values) - _SHOWN_VALUES
        return _listed(group, variable, _SHOWN_VALUES) + f"; {rest} other values"
    low, high = values[0], values[-1]  # numbers come in their order
    first, last = _numbers(group, low.members), _numbers(group, high.members)
    kind = "pid" if group.kind == "processes" else "rank"
    return f"{low.text} ({kind} {_cut(first)}) to {high.text} ({_cut(last)}), {len(values)} values"


def _is_the_rank(group: Group, variable: Variable) -> bool:
    return all(
        value.text == str(group.processes[at].rank)
        for value in variable.values
        for at in value.members
    )


def _listed(group: Group, variable: Variable, count: int) -> str:
    """List values with who has them; the first says what the numbers are."""
    words: list[str] = []
    shown = variable.values[:count]
    if all(value.members == shown[0].members for value in shown):  # threads of the same processes
        return "; ".join(draw.clip(value.text, _LONGEST_VALUE) for value in shown)
    for value in shown:
        who = _cut(_numbers(group, value.members))
        if not words:
            kind = "pid" if group.kind == "processes" else "rank"
            who = f"{kind}{'s' if _is_many(who) else ''} {who}"
        words.append(f"{draw.clip(value.text, _LONGEST_VALUE)} ({who})")
    return "; ".join(words)
