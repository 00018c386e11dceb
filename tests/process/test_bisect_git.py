"""The line for plain git on the card of `rl bisect`: git runs it and names the same commit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.bisecting import PYTHON, REPRO, add_commits, bisect, outside, steady, user_state
from tests.conftest import World


def git_line(shown: str) -> str:
    """Return the line of a card that is for plain git; nothing if there is none."""
    (line,) = [one for one in shown.splitlines() if one.startswith("or ")] or [""]
    return line.removeprefix("or").strip()


def check(world: World, line: str, cwd: Path | None = None) -> str:
    """Let git search, and return the commit that it names."""
    done = world.shell(line, cwd=cwd)
    named = {one for one in done.stdout.splitlines() if " is the first " in one}
    return named.pop() if len(named) == 1 else done.stdout + done.stderr


def noting(world: World) -> tuple[str, Path]:
    """Return a script that notes which commits it runs, and where."""
    runs = world.root / "runs"
    return outside(world, REPRO.replace("app.work", NOTING.format(runs=str(runs)))), runs


NOTING = "open({runs!r}, 'a').write(f'{{app.version}} ')\napp.work"


def mended(number: int) -> str:
    return steady(0 if number < 5 else 99)(number)


@pytest.mark.parametrize("is_mended", [False, True])
def test_git_runs_the_commit_and_its_parent_and_names_it(world: World, is_mended: bool) -> None:
    ids = add_commits(world, mended if is_mended else steady(5), 9)
    script, runs = noting(world)
    line = git_line(bisect(world, ids[0], ids[-1], "--no-prior", command=[PYTHON, script]))
    before = user_state(world)
    runs.write_text("")
    named = check(world, line)
    assert named == f"{ids[5]} is the first {'mended' if is_mended else 'bad'} commit"
    assert sorted(runs.read_text().split()) == ["4", "5"]
    assert user_state(world)["head"] == before["head"]


@pytest.mark.parametrize(("good", "bad", "run"), [(4, 9, "4 5"), (0, 5, "4"), (4, 5, "4")])
def test_at_the_edge_of_a_range_git_still_has_something_to_run(
    world: World, good: int, bad: int, run: str
) -> None:
    ids = add_commits(world, steady(5), 9)
    script, runs = noting(world)
    line = git_line(bisect(world, ids[good], ids[bad], "--no-prior", command=[PYTHON, script]))
    runs.write_text("")
    assert check(world, line) == f"{ids[5]} is the first bad commit"
    assert sorted(runs.read_text().split()) == run.split()


HELPED = """\
import sys
sys.path.insert(0, '.')
try:
    import helper
except ImportError:
    sys.exit()
if helper.BROKEN:
    raise ValueError('broken')
"""


@pytest.mark.parametrize("broken_from", [1, 3, 4])
def test_inside_a_merge_git_names_the_commit_too(world: World, broken_from: int) -> None:
    ids = add_commits(world, steady(99), 6)
    world.git("checkout", "-q", "-b", "side", ids[3])
    inner = []
    for number in range(4):
        world.write("helper.py", f"BROKEN = {number >= broken_from}\n")
        world.write("other.txt", str(number))
        inner.append(world.commit(f"side {number}"))
    world.git("checkout", "-q", "main")
    world.git("merge", "-q", "--no-ff", "--no-commit", "side")
    world.write("helper.py", "BROKEN = True\n")
    inner.append(world.commit("bring it in"))
    world.write("notes.txt", "more")
    world.commit()
    shown = bisect(world, ids[0], "HEAD", command=[PYTHON, outside(world, HELPED)])
    assert check(world, git_line(shown)) == f"{inner[broken_from]} is the first bad commit"


def test_a_build_a_variable_and_a_folder_below_the_top_are_in_the_line(world: World) -> None:
    world.write("below/keep.txt", "")
    world.commit()
    ids = add_commits(world, steady(5), 9)
    script = f"import os, sys; sys.path[:0] = ['..']; import app; {BUILT}; app.work()"
    words = ("--no-prior", "--build", "touch built", "--env", "MODE=a b")
    command = ("bisect", "--good", ids[0], *words, "--", PYTHON, "-Bc", script)
    below = world.project / "below"
    done = world.rl(*command, cwd=below)
    assert done.returncode == 0, done.stderr
    shown = done.stdout
    assert check(world, git_line(shown), cwd=below) == f"{ids[5]} is the first bad commit"


BUILT = "assert os.path.exists('../built') and os.environ['MODE'] == 'a b'"


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "os._exit(125)", "os._exit(200)"])
def test_an_end_that_git_takes_for_something_else_is_a_failure(world: World, end: str) -> None:
    def program(number: int) -> str:
        return f"import os\n\ndef work():\n    {end if number >= 5 else 'pass'}\n# {number}\n"

    ids = add_commits(world, program, 9)
    shown = bisect(world, ids[0], ids[-1], "--no-prior", command=[PYTHON, outside(world, REPRO)])
    assert os.path.basename(PYTHON) in git_line(shown)
    assert check(world, git_line(shown)) == f"{ids[5]} is the first bad commit"
