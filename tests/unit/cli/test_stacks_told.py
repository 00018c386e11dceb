"""How merged stacks look: who is where, what is folded, what fits."""

from __future__ import annotations

import re
from typing import Any

from tests.unit.look.stacks.test_merge import BARRIER, REDUCE, plain, rank

from relaunch.cli.draw import Pen, columns_of, shown
from relaunch.cli.stacks_told import Told, remarks
from relaunch.look.stacks import Frame, ProcessStacks, Thread
from relaunch.look.stacks.merge import merge


def told(everyone, *, width: int = 80, full: bool = False, pen: Pen | None = None) -> list[str]:
    merged = merge(everyone)
    return Told(merged=merged, width=width, pen=pen or Pen(), cwd="/home/me", full=full).lines("x")


def test_eight_ranks_of_which_one_is_elsewhere(golden):
    everyone = [
        rank(n, *(BARRIER if n == 5 else REDUCE), values={"step": str(n // 4)}) for n in range(8)
    ]
    everyone.append(ProcessStacks(pid=9, command="tee log", is_python=False, threads=(
        Thread(id=9, name="", frames=(), doing="read 0 pipe"),)))  # fmt: skip
    golden("stacks/ranks.txt", "\n".join(told(everyone)) + "\n")


def test_no_line_is_wider_than_the_screen_and_the_odd_one_is_named_on_any():
    long = "a_very_long_function_name_that_goes_on_and_on"
    everyone = [
        rank(
            n,
            "t.py:9 main",
            f"{'deep/' * 20}d.py:{n % 7} {long}{n % 7}",
            values={"v" * 50: "x" * n},
        )
        for n in range(0, 64, 3)
    ]
    everyone += [rank(n, "t.py:9 main", *BARRIER) for n in range(1, 64, 3)]
    everyone += [rank(n, "t.py:9 main", *BARRIER) for n in range(2, 64, 3)]
    for width in (40, 80, 200):
        lines = told(everyone, width=width)
        assert max(map(columns_of, lines)) <= max(width, 60)
        assert any(line.endswith("<- odd one out") for line in lines)


def test_frames_of_libraries_in_a_row_are_one_line_unless_all_are_wanted():
    library = [f"/usr/lib/python3.11/site-packages/torch/m{n}.py:3 call" for n in range(9)]
    everyone = [rank(0, "/home/me/t.py:9 main", *library, "/home/me/u.py:2 forward", *library)]
    lines = [line.strip() for line in told(everyone)]
    assert lines.count("… 9 frames of torch") == 1
    assert lines.count("… 7 frames of torch") == 1
    assert lines[-2:] == ["torch/m7.py:3 call", "torch/m8.py:3 call"]
    assert "u.py:2 forward" in lines
    assert len(told(everyone, full=True)) == len(lines) + 8 + 6


def test_one_process_needs_no_brackets():
    lines = told([plain(7, "/usr/bin/python a.py")])
    assert lines[2:] == ["pid 7   python a.py", "  w.py:3 get"]


def test_values_of_many_ranks_are_told_by_their_ends():
    everyone = [rank(n, *REDUCE, values={"loss": f"{n / 8}", "name": f"'{n}'"}) for n in range(64)]
    lines = [line.strip() for line in told(everyone)]
    assert "loss = 0.0 (rank 0) to 7.875 (63), 64 values" in lines
    assert "name = '0' (rank 0); '1' (1); '2' (2); '3' (3); 60 other values" in lines


def test_colours_only_where_they_are_wanted():
    everyone = [rank(n, *(BARRIER if n == 2 else REDUCE)) for n in range(4)]
    assert not any("\x1b" in line for line in told(everyone))
    coloured = told(everyone, pen=Pen(colour=True))
    assert any(re.search(r"\x1b\[1;31m\[1/4\] rank 2", shown(line)) for line in coloured)


def test_names_from_outside_cannot_speak_to_the_terminal():
    thread = Thread(id=7, name="MainThread", frames=(
        Frame(file="/home/me/\x1b[2J.py", line=1, function="f\x1b]0;x"),))  # fmt: skip
    lines = told([ProcessStacks(pid=7, command="python \x1b[31m", threads=(thread,))])
    assert not any("\x1b" in line for line in lines)


def test_a_thousand_ranks_that_all_are_elsewhere_can_be_drawn():
    lines = told([rank(n, *(f"r.py:{at} f" for at in range(n))) for n in range(1, 300)])
    assert len(lines) > 300


def test_what_was_not_read_is_told_once_with_what_to_type():
    refused: dict[str, Any] = {"threads": (), "problem": "no permission", "read_by": "/proc"}
    one, two = (
        rank(1, fix="sudo rl stacks 101", **refused),
        rank(2, fix="sudo rl stacks 102", **refused),
    )
    assert remarks([one, two, rank(0, *REDUCE)]) == [
        "rl: processes 101-102: no permission   try: sudo rl stacks 101"
    ]
