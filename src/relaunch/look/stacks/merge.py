"""Many processes as few trees: stacks with the same beginning are one, with who is in it.

Pure. Processes that do the same work are compared with each other: the ranks of a job, the workers
of these ranks, and of the rest those with the same command. In each such group the first threads
make one tree, and all other threads another.
"""

from __future__ import annotations

import re

from relaunch.look.stacks.frames import Frame, ProcessStacks, Thread
from relaunch.look.stacks.native import washed
from relaunch.look.stacks.variables import compared
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from relaunch.look.stacks.variables import Variable

RANK_VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "LOCAL_RANK")
"""Who says the rank, best first: below Slurm, torchrun itself is a task and has a number."""
_ODD_SHARE = 4
"""At most one in so many are odd ones out, when more than half of the rest agree."""


class Branch(Record):
    """A run of frames, outermost first, that the same threads are in; and where they part."""

    frames: tuple[Frame, ...]
    members: tuple[int, ...]
    """Positions in `Group.processes`, in order."""
    threads: int
    """How many: a process may have several threads in the same place."""
    names: tuple[str, ...]
    """The names of these threads, each once."""
    below: Sequence[Branch] = ()
    ends: bool = False
    """They all are here: nobody is deeper."""
    doing: tuple[str, ...] = ()
    """What the kernel says of those that are here, each once."""
    problem: str = ""
    """Why nothing is known of them."""
    is_odd: bool = False
    variables: tuple[tuple[Variable, ...], ...] = ()
    """Of each frame, where they were asked for."""
    gil: tuple[int, ...] = ()
    """Who of the members holds the GIL here."""


class Group(Record):
    """Processes that are compared with each other."""

    kind: str
    """`ranks`, `workers` (of ranks), or `processes`."""
    world: str = ""
    processes: tuple[ProcessStacks, ...]
    main: Sequence[Branch]
    others: Sequence[Branch]
    missing: tuple[int, ...] = ()
    """Ranks that should be there and are not, where it is known how many there are."""


class Merged(Record):
    """All of it: groups of Python processes, and what else was found."""

    groups: tuple[Group, ...]
    foreign: tuple[ProcessStacks, ...] = ()
    """Processes that are no Python, and such as have ended."""

    @property
    def processes(self) -> int:
        """Count the processes in it."""
        return sum(len(group.processes) for group in self.groups) + len(self.foreign)


def merge(processes: Iterable[ProcessStacks]) -> Merged:
    """Merge processes, of this host or of many, whatever order they come in."""
    everyone = sorted(processes, key=lambda one: (one.node, one.pid))
    ranked = _ranked(everyone)
    parts: dict[tuple[str, str, int], list[ProcessStacks]] = {}
    foreign = []
    above = {(one.node, one.pid): one for one in everyone}
    for one in everyone:
        if not one.is_python or one.has_ended:
            foreign.append(one)
            continue
        is_rank = (one.node, one.pid) in ranked
        name = f"{one.world} {one.rank}" if is_rank else _washed_command(one.command)
        generation = _generation(one, name, above, ranked)
        kind = ("workers" if generation else "ranks") if is_rank else "processes"
        key = (kind, one.world, 0) if is_rank else (kind, name, generation)
        parts.setdefault(key, []).append(one)
    order = sorted(parts.items(), key=lambda part: (_KINDS.index(part[0][0]), part[0]))
    groups = tuple(_group(kind, several) for (kind, _, _), several in order)
    return Merged(groups=groups, foreign=tuple(foreign))


_KINDS = ("ranks", "workers", "processes")


def _ranked(everyone: Sequence[ProcessStacks]) -> set[tuple[str, int]]:
    """Return who has a rank by the best variable that its world knows: node and pid."""
    best: dict[str, int] = {}
    for one in everyone:
        if one.rank is not None and one.is_python:
            best[one.world] = min(best.get(one.world, 99), _preference(one.rank_from))
    return {
        (one.node, one.pid)
        for one in everyone
        if one.rank is not None and _preference(one.rank_from) == best.get(one.world)
    }


def _preference(variable: str) -> int:
    return RANK_VARIABLES.index(variable) if variable in RANK_VARIABLES else 0


def _generation(
    one: ProcessStacks,
    name: str,
    above: dict[tuple[str, int], ProcessStacks],
    ranked: set[tuple[str, int]],
) -> int:
    """Count who above is Python and of the same name: workers are one below who started them."""
    found, at = 0, above.get((one.node, one.parent))
    seen = {one.pid}
    while at is not None and at.pid not in seen:
        seen.add(at.pid)
        is_rank = (at.node, at.pid) in ranked
        at_name = f"{at.world} {at.rank}" if is_rank else _washed_command(at.command)
        found += at.is_python and at_name == name
        at = above.get((at.node, at.parent))
    return found


def _washed_command(command: str) -> str:
    """Return a command without what tells equal workers apart: their numbers."""
    return re.sub(r"\d+", "0", command)


def _group(kind: str, several: list[ProcessStacks]) -> Group:
    if kind != "processes":
        several = sorted(several, key=lambda one: (one.rank or 0, one.node, one.pid))
    firsts: list[_Stack] = []
    others: list[_Stack] = []
    unread: dict[str, list[int]] = {}
    for position, one in enumerate(several):
        main = one.main
        if not one.is_read:
            unread.setdefault(one.problem or "nothing was read", []).append(position)
            continue
        for thread in one.threads:
            (firsts if thread is main else others).append(_Stack(position, thread))
    ranks = {one.rank for one in several if one.rank is not None}
    size = max(one.world_size for one in several)
    missing = tuple(rank for rank in range(size) if rank not in ranks) if kind == "ranks" else ()
    unseen = [_unread(several, why, who) for why, who in unread.items()]
    return Group(
        kind=kind,
        world=several[0].world if kind != "processes" else "",
        processes=tuple(several),
        main=_all_marked([*_tree(firsts), *unseen]),
        others=_tree(others),  # whose threads do different work: none of them is odd
        missing=missing,
    )


def _unread(several: Sequence[ProcessStacks], why: str, who: Sequence[int]) -> Branch:
    """Return a branch of those that could not be read, with what the kernel says of them."""
    firsts = [several[at].main for at in who]
    doing = dict.fromkeys(one.doing for one in firsts if one is not None and one.doing)
    return Branch(
        frames=(),
        members=tuple(who),
        threads=0,
        names=(),
        ends=True,
        doing=tuple(doing),
        problem=why,
    )


# --- the tree of a group --------------------------------------------------------------------------


class _Stack:
    """One thread of the process at a position, its frames from the outermost."""

    __slots__ = ("frames", "keys", "position", "thread")

    def __init__(self, position: int, thread: Thread) -> None:
        frames = thread.frames
        if any(frame.is_native for frame in frames):
            frames = washed(frames)
        self.position = position
        self.thread = thread
        self.frames = frames[::-1]
        self.keys = [_key(one) for one in self.frames]


def _tree(stacks: list[_Stack]) -> list[Branch]:
    """Return the prefix tree of stacks; without recursion, as stacks may be as deep as they like.

    Who is nowhere (no frame at all) is a branch without frames.
    """
    roots: list[Branch] = []
    todo: list[tuple[list[_Stack], int, list[Branch]]] = [(stacks, 0, roots)]
    while todo:
        here, depth, found = todo.pop()
        for part in _parted(here, depth):
            end = _end_of_run(part, depth)
            below: list[Branch] = []
            is_end = all(len(one.keys) == end for one in part)
            if not is_end:
                todo.append((part, end, below))
            found.append(_branch(part, depth, end, below, is_end))
        found.sort(
            key=lambda one: (-len(one.members), one.members, [*map(_key, one.frames)], one.doing)
        )
    return roots


def _key(frame: Frame) -> tuple[str, int, str]:
    """Return what is the same in every process, however it was read: only py-spy tells classes."""
    name = frame.function
    return frame.file, frame.line, name if frame.is_native else name.rpartition(".")[2]


def _parted(stacks: list[_Stack], depth: int) -> list[list[_Stack]]:
    """Part stacks by their frame at this depth; those that end before it are a part too."""
    parts: dict[tuple[str, int, str] | str, list[_Stack]] = {}
    for one in stacks:
        is_over = len(one.keys) <= depth
        key = one.keys[depth] if not is_over else one.thread.doing if not one.keys else ""
        parts.setdefault(key, []).append(one)
    return list(parts.values())


def _end_of_run(part: list[_Stack], depth: int) -> int:
    """Return the depth up to which all of them have the same frames."""
    first = part[0].keys
    end = min(len(one.keys) for one in part)
    for one in part:
        keys = one.keys
        at = depth
        while at < end and keys[at] == first[at]:
            at += 1
        end = at
    return max(end, min(depth, len(first)))


def _branch(part: list[_Stack], depth: int, end: int, below: list[Branch], ends: bool) -> Branch:
    members = tuple(sorted({one.position for one in part}))
    variables: tuple[tuple[Variable, ...], ...] = ()
    if any(one.frames[at].locals for one in part for at in range(depth, min(end, len(one.keys)))):
        variables = tuple(
            compared([(one.position, one.frames[at].locals) for one in part])
            for at in range(depth, end)
        )
    return Branch(
        frames=tuple(part[0].frames[depth:end]),
        members=members,
        threads=len(part),
        names=tuple(dict.fromkeys(one.thread.name for one in part if one.thread.name)),
        below=below,
        ends=ends,
        doing=tuple(dict.fromkeys(one.thread.doing for one in part if one.thread.doing)),
        variables=variables,
        gil=tuple(sorted({one.position for one in part if one.thread.has_gil})),
    )


def _all_marked(roots: list[Branch]) -> list[Branch]:
    """Mark the odd ones out wherever branches part; `below` are lists, filled by now."""
    todo = [roots]
    while todo:
        branches = todo.pop()
        branches[:] = _marked(branches, sum(len(one.members) for one in branches))
        todo += [one.below for one in branches if isinstance(one.below, list)]
    return roots


def _marked(branches: list[Branch], total: int) -> list[Branch]:
    """Mark those that few are in while most are in one of the others."""
    most = max((len(one.members) for one in branches), default=0)
    if len(branches) < 2 or total < 3 or 2 * most <= total:
        return branches
    return [
        one.but(is_odd=len(one.members) == 1 or _ODD_SHARE * len(one.members) <= total)
        if len(one.members) < most
        else one
        for one in branches
    ]


# --- what it says in a line -----------------------------------------------------------------------


def leaves(branches: Sequence[Branch]) -> list[tuple[Branch, tuple[Frame, ...]]]:
    """Return the ends of a tree, each with the whole stack from the outermost frame."""
    found = []
    todo: list[tuple[Branch, tuple[Frame, ...]]] = [(one, ()) for one in reversed(branches)]
    while todo:
        branch, before = todo.pop()
        stack = (*before, *branch.frames)
        if branch.ends:
            found.append((branch, stack))
        todo += [(one, stack) for one in reversed(branch.below)]
    return found
