"""What is told of a program that hangs: one line, the page of its stacks, its identity."""

from __future__ import annotations

from relaunch.look.stacks import chain, functions, is_own
from relaunch.look.stacks.merge import leaves, merge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.look.stacks import Frame, ProcessStacks
    from relaunch.look.stacks.merge import Branch, Group
    from relaunch.look.waits.meaning import Wait
    from relaunch.trial.hang.grading import Finding, Seen

_PLACES, _DEEP, _FRAMES = 2, 3, 60


def headline(finding: Finding, roots: Sequence[str]) -> str:
    """Say it in one line: `hung (certain): 2 threads wait ... at q.py:9 put <- q.py:20 work`."""
    at = " and ".join(places(finding.stuck, roots))
    return f"hung ({finding.grade}): {finding.why}" + (f" at {at}" if at else "")


def waiting_line(finding: Finding, roots: Sequence[str], silent_s: float) -> str:
    """Say for whom a program waits that is not hung."""
    at = " and ".join(places(finding.stuck, roots)[:1])
    where = f", at {at}" if at else ""
    return f"no output for {silent_s:.0f} s; not hung: it waits for {finding.on}{where}"


def places(stuck: Sequence[Seen], roots: Sequence[str]) -> list[str]:
    """Return where the most telling threads are, each place once."""
    own = [one for one in stuck if one.frames and is_own(one.frames, roots)]
    deep = _DEEP if own else 1
    chains = [chain(one.frames, roots, deep) for one in (own or stuck) if one.frames]
    return list(dict.fromkeys(chains))[:_PLACES]


def key(stuck: Sequence[Seen], roots: Sequence[str]) -> list[str]:
    """Return the identity of a hang: the user's functions in which its threads are.

    Neither their order nor their number counts, nor how sure we are: a hang is found again.
    """
    own = [one for one in stuck if one.frames and is_own(one.frames, roots)]
    found = {" <- ".join(functions(one.frames, roots)[:_DEEP]) for one in (own or stuck)} - {""}
    return ["hang", *sorted(found or {f"a wait: {one.wait.what}" for one in stuck})]


def page(
    head: str, processes: Sequence[ProcessStacks], waits: Mapping[tuple[int, int], Wait]
) -> str:
    """Write the merged stacks down, for a person, with what each thread waits for."""
    merged = merge(processes)
    lines = [head]
    for group in merged.groups:
        lines += ["", _group_words(group)]
        for branch, frames in leaves([*group.main, *group.others]):
            lines += _branch_lines(group, branch, frames, waits)
    for one in merged.foreign:
        told = _wait_words([waits[one.pid, one.pid]]) if (one.pid, one.pid) in waits else ""
        lines += ["", f"process {one.pid}   {one.command}", *([f"  {told}"] if told else [])]
    return "\n".join(lines) + "\n"


def _group_words(group: Group) -> str:
    if len(group.processes) == 1:
        one = group.processes[0]
        return f"process {one.pid}   {one.command}"
    pids = " ".join(str(one.pid) for one in group.processes)
    return f"{len(group.processes)} processes {pids}   {group.processes[0].command}"


def _branch_lines(
    group: Group,
    branch: Branch,
    frames: tuple[Frame, ...],
    waits: Mapping[tuple[int, int], Wait],
) -> list[str]:
    members = [group.processes[at] for at in branch.members]
    names = ", ".join(branch.names[:4]) or "thread"
    who = "" if len(group.processes) == 1 else f" of {' '.join(str(one.pid) for one in members)}"
    several = f" x{branch.threads}" if branch.threads > 1 else ""
    at = [(t.id, one.pid) for one in members for t in one.threads if t.frames[::-1] == frames]
    told = _wait_words([waits[pid, tid] for tid, pid in at if (pid, tid) in waits])
    if branch.problem:
        told = f"no stack: {branch.problem}"
    lines = [f"  {names}{several}{who}" + (f": {told}" if told else "")]
    return lines + [f"    {one.file}:{one.line} {one.function}" for one in frames[::-1][:_FRAMES]]


def _wait_words(waits: Sequence[Wait]) -> str:
    return "; ".join(dict.fromkeys(map(wait_words, waits)))


def wait_words(wait: Wait) -> str:
    """Say what a thread waits for and who could end that."""
    if wait.what == "runs":
        return "runs"
    over = f" ({wait.over})" if wait.over and wait.over != f"a {wait.what}" else ""
    timed = " with a time limit" if wait.is_timed and wait.what != "sleep" else ""
    if wait.outside:
        return f"waits for {wait.outside}{over}{timed}"
    if wait.what == "sleep":
        return "sleeps"
    who = " ".join(map(str, sorted(wait.by)))
    by = (
        f", which process {who} could end"
        if len(wait.by) == 1
        else f", which one of {who} could end"
    )
    return f"waits for a {wait.what}{over}{timed}{by}"


def reached(
    finding: Finding,
    head: str,
    roots: Sequence[str],
    *,
    act: str,
    silent_s: float,
    waits: Mapping[tuple[int, int], Wait],
    commands: Mapping[int, str],
) -> dict[str, Any]:
    """Return what `Outcome.reached` says; only what was ended has a title: it is a failure.

    Of one that is kept, its end tells: it may go on by itself.
    """
    return {
        "what": "hang",
        "grade": finding.grade,
        "title": head if act == "kill" else "",
        "text": head,
        "key": key(finding.stuck, roots),
        "why": finding.why,
        "at": " and ".join(places(finding.stuck, roots)),
        "act": act,
        "by": "relaunch",
        "silent_s": round(silent_s, 1),
        "processes": [
            {
                "pid": pid,
                "command": command,
                "waits": list(
                    dict.fromkeys(wait_words(w) for (of, _), w in waits.items() if of == pid)
                ),
            }
            for pid, command in commands.items()
        ],
    }
