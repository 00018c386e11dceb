"""`rl watch` on a real terminal: what it draws, its keys, and that it leaves nothing behind."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.needs import needs
from tests.watching import Holder, Tmux, wait_for


@pytest.fixture
def tmux(world) -> Iterator[Tmux]:
    needs("tmux")
    tmux = Tmux(world)
    yield tmux
    tmux.close()


def test_trees_are_drawn_at_80_columns_sorted_and_with_charts(world, tmux):
    with (
        Holder(world, mib=96, name="big_it.py") as big,
        Holder(world, 24, 1, name="tiny_it.py") as small,
    ):
        tmux.type("rl watch '_it.py' --disk /tmp --every 200ms", "Enter")
        shown = tmux.wait("big_it.py", "tiny_it.py", "memory", "cpu")
        lines = shown.splitlines()
        assert all(len(line) <= 80 for line in lines)
        assert lines[0].startswith("rl watch _it.py   2 trees, 3 processes")
        assert "rss GB▾" in lines[1]
        assert lines[2].split()[0] == str(big.pid)
        assert re.search(r"disk    /tmp  .* free of ", shown)
        assert lines[23].startswith("q quit  s sort: rss GB")
        tmux.type("r")
        tmux.wait(f"command\n{small.pid}")
        tmux.type("t")
        tmux.wait("  python", "tiny_it.py")
        tmux.type("s")
        tmux.wait("sort: pss GB", "pss GB▾")
        tmux.type("?")
        tmux.wait("choose the tree that is drawn below")
        tmux.type("?")
        tmux.type("p")
        tmux.wait("PAUSED")
        tmux.type("q")
        tmux.wait("rl watch", without="rss GB▾")
    assert_terminal_is_as_before(tmux)


def test_while_it_is_paused_nothing_but_the_last_line_changes(world, tmux):
    with (
        Holder(world, mib=96, name="big_it.py"),
        Holder(world, mib=24, name="tiny_it.py") as small,
    ):
        tmux.type("rl watch '_it.py' --every 200ms", "Enter")
        tmux.wait("2 trees", "big_it.py", "tiny_it.py", "memory")
        tmux.type("p")
        before = tmux.wait("PAUSED", "sort: rss GB").splitlines()
        small.let_go()
        tmux.type("s")
        tmux.wait("PAUSED", "sort: pss GB")
        # It looks again before it takes another key: what it draws then is after the end.
        tmux.type("s")
        shown = tmux.wait("PAUSED", "sort: peak").splitlines()
        assert shown[:-1] == before[:-1]
        assert shown[0].startswith("rl watch _it.py   2 trees, 2 processes")
        tmux.type("p")
        tmux.wait("1 tree, 1 process", without="PAUSED")
        tmux.type("q")


def assert_terminal_is_as_before(tmux: Tmux) -> None:
    tmux.type("clear; stty -a | tr ' ;' '\\n\\n' | grep -E '^-?(icanon|echo)$' | tr '\\n' ' '",
              "Enter")  # fmt: skip
    shown = tmux.wait("icanon")
    assert "-icanon" not in shown
    assert "-echo" not in shown
    assert tmux.run("display-message", "-p", "-t", "t.0", "#{cursor_flag}").strip() == "1"
    assert tmux.run("display-message", "-p", "-t", "t.0", "#{alternate_on}").strip() == "0"


def test_ctrl_c_and_ctrl_z_give_the_terminal_back(world, tmux):
    with Holder(world, 16) as holder:
        tmux.type(f"rl watch {holder.pid}; echo left with $?", "Enter")
        tmux.wait("holder.py", "q quit")
        tmux.type("C-z")
        tmux.wait("Stopped", without="q quit")
        assert_terminal_is_as_before(tmux)
        tmux.type("fg", "Enter")
        tmux.wait("holder.py", "q quit")
        tmux.type("C-c")
        tmux.wait("fg", without="q quit")
    assert_terminal_is_as_before(tmux)


def test_a_resized_screen_is_drawn_anew(world, tmux):
    with Holder(world, 16) as holder:
        tmux.type(f"rl watch {holder.pid} --every 5s", "Enter")
        tmux.wait("q quit")
        tmux.run("resize-window", "-t", "t", "-x", "160", "-y", "50")
        shown = tmux.wait("user", "state", "procs")
        assert shown.splitlines()[49].startswith("q quit")
        tmux.run("resize-window", "-t", "t", "-x", "60", "-y", "12")
        tmux.wait("q quit", without="state")
        assert all(len(line) <= 60 for line in tmux.shown().splitlines())
        tmux.run("resize-window", "-t", "t", "-x", "40", "-y", "10")
        tmux.wait(f"rl watch {holder.pid} ", "cpu%  command", "memory", without="/s")
        tmux.type("q")


def test_of_many_trees_the_chosen_one_is_in_view(world, tmux):
    with ExitStack() as stack:
        held = {
            stack.enter_context(Holder(world, 1, name=f"many_{n:02}.py")).pid: f"many_{n:02}.py"
            for n in range(16)
        }
        first, last = min(held), max(held)  # numbers of processes begin anew at some point
        tmux.type("rl watch 'many_' --sort pid --every 200ms", "Enter")
        tmux.run("resize-window", "-t", "t", "-x", "80", "-y", "16")
        shown = tmux.wait("16 trees", held[first], " more\n")
        assert held[last] not in shown
        tmux.type("Up")  # from the first to the last
        tmux.wait(f"\n{last} python {held[last]} 1", without=held[first])
        tmux.type("q")


def test_without_colours_nothing_is_painted(world, tmux):
    with Holder(world, 16) as holder:
        tmux.type(f"NO_COLOR=1 rl watch {holder.pid}", "Enter")
        tmux.wait("q quit", "holder.py")
        assert "\x1b[" not in tmux.shown(escapes=True)
        tmux.type("q")
        tmux.wait("rl watch", without="q quit")
        tmux.type(f"rl watch {holder.pid}", "Enter")
        tmux.wait("q quit", "holder.py")
        assert "\x1b[" in tmux.shown(escapes=True)
        tmux.type("q")


def test_nothing_matches_yet_is_said_and_the_program_then_comes(world, tmux):
    tmux.type("rl watch '[l]ate.py' --every 100ms", "Enter")
    tmux.wait("no process matches `[l]ate.py` yet; waiting for one")
    with Holder(world, 16, name="late.py"):
        tmux.wait("late.py 16", "memory")
    tmux.wait("0 trees", "late.py 16")
    tmux.type("q")


def test_a_command_is_drawn_with_its_changes_highlighted(world, tmux):
    world.write("table", "name size\na 10\nb 20\n")
    tmux.type("rl watch --cmd 'cat table' --every 100ms", "Enter")
    tmux.wait("every 0.1 s: cat table", " b 20")
    tmux.type("p")
    tmux.wait("paused")
    world.write("table", "name size\na 10\nb 21\n")
    tmux.type("d")
    tmux.type("Space")
    tmux.wait("▌b 21", "changed", "d since last")
    assert re.search(r"\x1b\[1m\x1b\[33m21", tmux.shown(escapes=True))
    tmux.type("q")
    tmux.wait("cat table", without="▌b 21")
    assert_terminal_is_as_before(tmux)


def test_a_command_that_hangs_does_not_hold_the_keys_and_is_ended(world, tmux):
    tmux.type("rl watch --cmd 'echo begun > begun; sleep 987'; echo left", "Enter")
    tmux.wait("every 2 s", "runs ...")
    tmux.type("?")
    tmux.wait("run it now")
    tmux.type("q")
    tmux.wait("left", without="run it now")
    assert not world.shell("pgrep -f '^sleep 987'").stdout


def test_beside_the_program_a_pane_shows_what_it_uses_and_keeps_marks(world, tmux):
    world.write(
        "train.py",
        "import sys\nx = b'x' * (80 << 20)\nprint('ready', flush=True)\nsys.stdin.readline()\n",
    )
    tmux.run("resize-window", "-t", "t", "-x", "100", "-y", "40")
    tmux.type(f"rl watch --tmux -m 'how much?' -- {sys.executable} train.py", "Enter")
    tmux.wait("ready")
    shown = tmux.wait("rl watch #1   1 tree", "train.py", "memory", pane="1")
    assert "0.0" in shown
    tmux.type("m", pane="1")
    tmux.wait("mark this moment as: _", pane="1")
    tmux.type("f", "u", "l", "l", "Enter", pane="1")
    tmux.wait("kept with #1", pane="1")
    tmux.type("Enter")
    shown = tmux.wait("rl #1  exit 0", "peak ")
    # The program's own screen was never drawn over, and the pane goes with the program.
    wait_for(lambda: len(tmux.run("list-panes", "-t", "t").splitlines()) == 1, "the pane stays")
    (mark,) = [json.loads(line) for line in
               (world.journal / "trials/1/marks.jsonl").read_text().splitlines()]  # fmt: skip
    assert mark["text"] == "full"
    card = world.rl("show", "1").stdout
    assert re.search(r"▲1 at [\d.]+ s  full", card)
    assert "why       how much?" in card


def test_in_tmux_a_pane_can_be_opened_beside_a_shell(world, tmux):
    with Holder(world, 16) as holder:
        tmux.type(f"rl watch --tmux {holder.pid} --each; echo opened", "Enter")
        tmux.wait("opened")
        tmux.wait("holder.py", "q quit", pane="1")
        tmux.type("q", pane="1")
