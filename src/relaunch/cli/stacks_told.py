"""How merged stacks look: a tree with who is where, frames of libraries folded, 80 columns."""

from __future__ import annotations

import os

from relaunch.cli import draw
from relaunch.cli.stacks_words import member_words, thread_words, values_words
from relaunch.look.stacks.frames import is_library, place
from relaunch.look.stacks.native import UNKNOWN
from relaunch.look.stacks.ranges import ranges
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.look.stacks.frames import Frame, ProcessStacks
    from relaunch.look.stacks.merge import Branch, Group, Merged
    from relaunch.look.stacks.variables import Variable

_STEP = 2
_DEEPEST = 12
"""Further to the right there would be no room for words."""
_FOLDED = 4
"""So many frames of libraries in a row are told in one line."""
_LAST = 2
"""Of those that a stack ends with, so many are shown."""
_VARIABLES = 12
_NAMES = 4


class Told(Record):
    """What is drawn, and on what."""

    merged: Merged
    width: int
    pen: draw.Pen
    cwd: str
    full: bool = False

    def lines(self, title: str, took_s: float = 0.0) -> list[str]:
        """Draw all of it."""
        found = [self.pen("dim", self._head(title, took_s))]
        for group in self.merged.groups:
            found += ["", *_Drawn(self, group).lines()]
        if self.merged.foreign:
            found += ["", *self._foreign()]
        return found

    def _head(self, title: str, took_s: float) -> str:
        words = [draw.plural(self.merged.processes, "process")]
        nodes = {one.node for group in self.merged.groups for one in group.processes if one.node}
        words += [f"{len(nodes)} hosts"] if len(nodes) > 1 else []
        ways = {one.read_by for group in self.merged.groups for one in group.processes}
        words += [f"read by {', '.join(sorted(ways - {''}))}"] if ways - {""} else []
        words += [draw.duration(took_s)] if took_s else []
        told = ", ".join(words)
        room = max(20, self.width - len(told) - 2)
        name = draw.clip(draw.clean(title), room, utf8=self.pen.utf8)
        return draw.clip(f"{name}: {told}", self.width, utf8=self.pen.utf8)

    def _foreign(self) -> list[str]:
        """Tell what is no Python, or ended: the same in one line."""
        found: dict[tuple[str, str], list[ProcessStacks]] = {}
        for one in self.merged.foreign:
            main = one.main
            doing = one.problem or (main.doing if main is not None else "")
            found.setdefault((one.command, doing), []).append(one)
        rows = [
            [
                ("", ("pid " if len(who) == 1 else "pids ") + ranges(one.pid for one in who)),
                ("", draw.clean(command)),
                ("dim", draw.clean(doing)),
            ]
            for (command, doing), who in found.items()
        ]
        titles = ("not Python", "command", "doing")
        columns = [draw.Column(title, flexible=True, least=9) for title in titles]
        return draw.table(columns, rows, self.width, self.pen)


class _Drawn:
    """One group, drawn."""

    def __init__(self, told: Told, group: Group) -> None:
        """Take the screen from `told`."""
        self._told = told
        self._group = group
        self._pen = told.pen
        self._lines: list[str] = []

    def lines(self) -> list[str]:
        """Draw the title, the tree of the first threads, and that of all others."""
        group = self._group
        self._title()
        self._tree(group.main, 0)
        if group.others:
            count = sum(branch.threads for branch in group.others)
            self._lines.append(self._pen("dim", f"  {draw.plural(count, 'other thread')}"))
            self._tree(group.others, 1)
        return self._lines

    def _title(self) -> None:
        group = self._group
        everyone = range(len(group.processes))
        words = member_words(group, everyone, long=True)
        of = f" of {group.world}" if group.world and group.kind == "ranks" else ""
        program, blank, rest = group.processes[0].command.partition(" ")
        command = draw.clean(os.path.basename(program) + blank + rest)
        if group.missing:
            several = "ranks" if len(group.missing) > 1 else "rank"
            gone = f"not here: {several} {ranges(group.missing)} of {group.processes[0].world_size}"
            self._put(0, "bold", f"{words}{of}, {gone}")
            self._put(1, "dim", command)
            return
        self._put(0, "bold", f"{words}{of}   {command}")

    def _tree(self, branches: Sequence[Branch], indent: int) -> None:
        """Draw branches and all below them; without recursion, as they may be as many as ranks."""
        is_alone = len(branches) == 1 and len(self._group.processes) == 1
        todo = [(branch, indent, is_alone) for branch in reversed(branches)]
        while todo:
            branch, depth, is_alone = todo.pop()
            if not is_alone or branch.problem or self._notes(branch):
                self._put(depth, _style(branch), self._header(branch))
            self._frames(branch, depth + 1)
            todo += [(one, depth + 1, False) for one in reversed(branch.below)]

    def _header(self, branch: Branch) -> str:
        """Say who is in a branch: of one process its threads, else how many of all, and who."""
        total = len(self._group.processes)
        words = [thread_words(branch)]
        if total > 1 or branch.problem:
            who = member_words(self._group, branch.members)
            words.insert(0, f"[{len(branch.members)}/{total}] {who}")
        if branch.problem:
            words.append(f"not read: {branch.problem}")
        elif branch.ends:
            words.append(_path_words(branch))
        text = "  ".join(filter(None, words))
        notes = self._notes(branch)
        text += f"  ({', '.join(notes)})" if notes else ""
        return text + ("   <- odd one out" if branch.is_odd else "")

    def _notes(self, branch: Branch) -> list[str]:
        """Say what else is known of those that end here."""
        found = []
        states = [self._group.processes[at].state for at in branch.members]
        for state, word in (("T", "stopped"), ("t", "held by a debugger")):
            count = states.count(state)
            if count and branch.ends:
                found.append(word if count == len(states) else f"{count} {word}")
        if branch.gil and branch.ends:
            found.append("has the GIL")
        if branch.ends and len(branch.doing) == 1:
            found.append(branch.doing[0])
        return found

    def _frames(self, branch: Branch, depth: int) -> None:
        for start, stop in self._shown(branch):
            if start < 0:
                folded = branch.frames[-start - 1 : stop]
                self._put(
                    depth, "dim", f"{self._dots} {len(folded)} frames of {_libraries(folded)}"
                )
                continue
            frame = branch.frames[start]
            is_own = not (frame.is_native or is_library(frame.file))
            self._put(depth, "" if is_own else "dim", self._frame(frame, depth))
            if branch.variables and (is_own or self._told.full):
                self._variables(branch.variables[start], depth + 2)

    def _shown(self, branch: Branch) -> list[tuple[int, int]]:
        """Part the frames: one by one, or `(-first - 1, end)` for those told in one line."""
        frames = branch.frames
        if self._told.full:
            return [(at, at + 1) for at in range(len(frames))]
        found: list[tuple[int, int]] = []
        at = 0
        while at < len(frames):
            end = at
            while end < len(frames) and _is_foldable(frames[end]):
                end += 1
            stop = end - _LAST if end == len(frames) else end
            if stop - at >= _FOLDED:
                found.append((-at - 1, stop))
                at = stop
            else:
                found.append((at, at + 1))
                at += 1
        return found

    def _frame(self, frame: Frame, depth: int) -> str:
        path = shown_path(frame.file, self._told.cwd)
        at = f"{path}:{frame.line}" if frame.line else path
        function = draw.clean(frame.function.rpartition("<locals>.")[2])
        room = self._told.width - _indent(depth) - draw.columns_of(function) - 1
        if draw.columns_of(at) > max(room, 16):
            at = self._dots + at[-max(room, 16) + 1 :]
        return f"{draw.clean(at)} {function}"

    def _variables(self, variables: Sequence[Variable], depth: int) -> None:
        """Draw those that differ first: they are what a person looks for."""
        ordered = sorted(variables, key=lambda one: not one.differs)
        for one in ordered if self._told.full else ordered[:_VARIABLES]:
            words = f"{one.name} = {values_words(self._group, one)}"
            self._put(depth, "yellow" if one.differs else "dim", words)
        if len(ordered) > _VARIABLES and not self._told.full:
            self._put(depth, "dim", f"{self._dots} {len(ordered) - _VARIABLES} more: --full")

    @property
    def _dots(self) -> str:
        return "…" if self._pen.utf8 else "..."

    def _put(self, depth: int, style: str, text: str) -> None:
        blanks = " " * _indent(depth)
        room = self._told.width - len(blanks)
        self._lines.append(blanks + self._pen(style, _fitting(draw.clean(text), room, self._pen)))


def _fitting(text: str, room: int, pen: draw.Pen) -> str:
    """Cut text to fit; what is said of an odd one out stays."""
    end = "   <- odd one out"
    if not text.endswith(end):
        return draw.clip(text, room, utf8=pen.utf8)
    return draw.clip(text.removesuffix(end), room - len(end), utf8=pen.utf8) + end


def _indent(depth: int) -> int:
    return _STEP * min(depth, _DEEPEST)


def _style(branch: Branch) -> str:
    if branch.is_odd:
        return "bold red"
    return "yellow" if branch.problem else "cyan"


def _path_words(branch: Branch) -> str:
    """Say where they are from where they part from the others: `step > all_reduce`."""
    if not branch.frames:
        return "here" if not branch.doing else ""
    own = [one for one in branch.frames if not (one.is_native or is_library(one.file))]
    python = [one for one in branch.frames if not one.is_native]
    native = [one for one in branch.frames if one.is_native and one.function != UNKNOWN]
    shown = [*own, *(one for one in python[-1:] if one not in own[-1:]), *native[-1:]]
    shown = shown or [*branch.frames[-1:]]
    if len(shown) == 1:
        return place(shown[0]) if own else _name(shown[0])
    names = [_name(one) for one in shown]
    return " > ".join(names if len(names) <= _NAMES else [*names[:1], *names[1 - _NAMES :]])


def _name(frame: Frame) -> str:
    return frame.function if frame.is_native else frame.function.rpartition(".")[2]


def _is_foldable(frame: Frame) -> bool:
    return not frame.is_native and (is_library(frame.file) or frame.file.startswith("<"))


def _libraries(frames: Sequence[Frame]) -> str:
    names = dict.fromkeys(_library(one.file) for one in frames)
    return ", ".join([*names][:3]) + (", and others" if len(names) > 3 else "")


def _library(file: str) -> str:
    """Name the library of a file: `torch`, `threading`."""
    first = _below_library(file).partition("/")[0]
    return first.removesuffix(".py").strip("<>")


def _below_library(file: str) -> str:
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in file:
            return file.rpartition(folder)[2]
    before, found, after = file.partition("/lib/python3")
    return after.partition("/")[2] if found else os.path.basename(before)


def shown_path(file: str, cwd: str) -> str:
    """Shorten a path to what tells it apart: from the current folder, or from its library on."""
    if is_library(file):
        return _below_library(file)
    if file.startswith(cwd.rstrip("/") + "/"):
        return file[len(cwd.rstrip("/")) + 1 :]
    return os.path.basename(file) if ".so" in os.path.basename(file) else file


def remarks(processes: Sequence[ProcessStacks]) -> list[str]:
    """Say what was not read and what would help, each once."""
    found: dict[tuple[str, str], list[int]] = {}
    for one in processes:
        if one.problem and one.is_python and not one.has_ended:
            found.setdefault((one.problem, one.fix.replace(str(one.pid), "PID")), []).append(
                one.pid
            )
    lines = []
    for (problem, fix), pids in found.items():
        who = f"process {pids[0]}" if len(pids) == 1 else f"processes {ranges(pids)}"
        hint = f"   try: {fix.replace('PID', str(pids[0]))}" if fix else ""
        lines.append(f"rl: {who}: {problem}{hint}")
    return lines
