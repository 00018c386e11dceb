"""Sections of real programs: the table, what is kept of killed ones, children, ranks and leaks."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile

import pytest
from tests.conftest import World
from tests.depth import takes_turns
from tests.needs import python_with_torch

import relaunch

PYTHON = sys.executable
BASIC = """\
import time
from relaunch import section

for step in range(3):
    with section("step"):
        with section("load"):
            time.sleep(0.002)
print("done")
"""


def table(text: str) -> list[list[str]]:
    """The rows of a table, cell by cell."""
    lines = text.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("section "))
    rows = []
    for line in lines[first:]:
        if not re.search(r"\S  +\S", line):
            break
        rows.append(re.split(r"  +", line.strip()))
    return rows


def sections(world: World, trial: str = "-1") -> dict[str, dict[str, dict[str, object]]]:
    """Who to section, by its path, to its numbers."""
    done = world.rl("show", trial, "--json")
    value = json.loads(done.stdout)["sections"]
    return {
        str(one["pid"] if one["rank"] is None else one["rank"]): {
            " > ".join(section["path"]): section for section in one["sections"]
        }
        for one in value["processes"]
    }


def only(world: World) -> dict[str, dict[str, object]]:
    (found,) = sections(world).values()
    return found


# --- as a library ---------------------------------------------------------------------------------


def test_under_rl_the_table_comes_at_the_end_and_stays_with_the_trial(world: World):
    world.write("prog.py", BASIC)
    done = world.rl("--", PYTHON, "prog.py")
    assert done.stdout == "done\n"
    rows = table(done.stderr)
    assert [row[:2] for row in rows] == [["section", "times"], ["step", "3"], ["load", "3"]]
    assert "\n  load " in done.stderr
    assert done.stderr.count("section  ") == 1
    card = world.rl("show").stdout
    assert "sections  section" in card
    assert "load" in world.rl("show", "--sections").stdout
    assert {name: one["times"] for name, one in only(world).items()} == {
        "step": 3, "step > load": 3,
    }  # fmt: skip
    (trial,) = (world.journal / "trials").iterdir()
    assert (trial / "sections.json").exists()
    assert not (trial / "sections").exists()


def test_without_rl_the_program_draws_its_table_itself(world: World):
    world.write("prog.py", BASIC)
    done = world.shell(f"{PYTHON} prog.py")
    assert done.stdout == "done\n"
    assert [row[0] for row in table(done.stderr)] == ["section", "step", "load"]


def test_without_rl_only_the_first_rank_draws(world: World):
    world.write("prog.py", BASIC)
    ranks = [
        world.shell(f"{PYTHON} prog.py", env={"RANK": str(n), "WORLD_SIZE": "2"}) for n in (0, 1)
    ]
    assert "section" in ranks[0].stderr
    assert ranks[1].stderr == ""


def test_quietly_only_what_is_odd_is_said(world: World):
    world.write("prog.py", BASIC.replace("time.sleep(0.002)", "time.sleep(0.002); 1 / 0"))
    done = world.rl("-q", "--", PYTHON, "prog.py")
    theirs = (" ", "Traceback", "ZeroDivisionError")
    lines = [line for line in done.stderr.splitlines() if not line.startswith(theirs)]
    assert lines == ["step: failed once", "load: failed once"]


def test_as_json_the_run_tells_its_sections_without_each_iteration(world: World):
    world.write("prog.py", BASIC)
    done = world.rl("--json", "--", PYTHON, "prog.py")
    events = [json.loads(line) for line in done.stderr.splitlines()]
    (told,) = [one for one in events if one["event"] == "measured"]
    (process,) = told["sections"]["processes"]
    assert [one["path"] for one in process["sections"]] == [["step"], ["step", "load"]]
    assert "iterations" not in process["sections"][0]


def test_a_program_without_sections_has_no_table_and_no_file(world: World):
    done = world.rl("--", "true")
    assert "section" not in done.stderr
    (trial,) = (world.journal / "trials").iterdir()
    assert not [name for name in os.listdir(trial) if "section" in name]


def test_importing_relaunch_costs_no_module(world: World):
    code = "import sys; before = {*sys.modules}; import relaunch; print({*sys.modules} - before)"
    done = world.shell(f"{PYTHON} -c '{code}'")
    assert done.stdout == "{'relaunch'}\n"
    done = world.shell(f"{PYTHON} -c 'import relaunch; relaunch.nothing'")
    assert done.stderr.endswith("module 'relaunch' has no attribute 'nothing'\n")


def test_section_imports_nothing_that_python_has_not_loaded_but_its_own(world: World):
    code = (
        "import sys; before = set(sys.modules); from relaunch import section\n"
        "with section('x'): pass\n"
        "print(sorted(n for n in set(sys.modules) - before if not n.startswith('relaunch')))"
    )
    world.write("prog.py", code)
    done = world.shell(f"{PYTHON} prog.py")
    found = set(eval(done.stdout))
    assert found <= {"__future__", "_contextvars", "fcntl", "_struct", "atexit"}


# --- what is killed -------------------------------------------------------------------------------


def test_of_a_killed_program_all_is_kept_and_where_it_was_is_said(world: World):
    world.write(
        "prog.py",
        """\
import os, signal
from relaunch import section

for step in range(5):
    with section("step"):
        with section("load"):
            if step == 4:
                os.kill(os.getpid(), signal.SIGKILL)
""",
    )
    done = world.rl("--", PYTHON, "prog.py")
    assert done.returncode == -signal.SIGKILL
    assert re.search(r"^load: never left, begun .* before$", done.stderr, re.MULTILINE)
    assert "step: never left" not in done.stderr
    found = only(world)
    assert (found["step"]["times"], found["step"]["open"]) == (4, 1)
    assert (found["step > load"]["times"], found["step > load"]["open"]) == (4, 1)


def test_a_program_that_leaves_by_os_exit_has_its_sections(world: World):
    world.write("prog.py", BASIC + "import os; os._exit(3)\n")
    assert world.rl("--", PYTHON, "prog.py").returncode == 3
    assert only(world)["step"]["times"] == 3


def test_a_running_program_can_be_looked_at(world: World):
    world.write("prog.py", BASIC + "import sys; sys.stdout.flush(); sys.stdin.read()\n")
    run = world.start(["rl", "--", PYTHON, "prog.py"], stdin=subprocess.PIPE)
    try:
        assert run.stdout is not None
        assert run.stdout.readline() == b"done\n"
        assert only(world)["step"]["times"] == 3
    finally:
        run.communicate()


# --- children and ranks ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_have_rows_of_their_own_and_one_table(world: World, method: str):
    # The server's socket lies there: its path may have 107 characters.
    world.env["TMPDIR"] = tempfile.gettempdir()
    world.write(
        "prog.py",
        f"""\
import multiprocessing as mp
from relaunch import section

def work(n):
    with section("work"):
        return n

if __name__ == "__main__":
    with section("all"):
        with mp.get_context("{method}").Pool(2) as pool:
            print(sum(pool.map(work, range(6), chunksize=1)))
""",
    )
    done = world.rl("--", PYTHON, "-W", "ignore", "prog.py")
    assert done.stdout == "15\n", done.stderr
    count: dict[str, int] = {}
    for one in sections(world).values():
        for name, section in one.items():
            last = name.rpartition(" > ")[2]
            count[last] = count.get(last, 0) + int(str(section["times"]))
    assert count == {"all": 1, "work": 6}
    assert done.stderr.count("section  ") == 1


def test_ranks_are_joined_with_the_least_and_the_most(world: World):
    world.write(
        "prog.py",
        """\
import os, subprocess, sys, time
from relaunch import section

rank = os.environ.get("RANK")
if rank is None:
    for n in range(3):
        env = {**os.environ, "RANK": str(n), "WORLD_SIZE": "3"}
        subprocess.run([sys.executable, __file__], env=env, check=True)
else:
    with section("step"):
        time.sleep(0.01 * (1 + int(rank)))
    if rank == "1":
        with section("only here"):
            pass
""",
    )
    done = world.rl("--", PYTHON, "prog.py")
    rows = table(done.stderr)
    assert rows[0][:5] == ["section", "procs", "times", "total", "min-max"]
    assert rows[1][:3] == ["step", "3", "3"]
    least, most = (int(word.split()[0]) for word in rows[1][4].split("-"))
    assert 10 <= least < 30 <= most
    assert rows[2][:3] == ["only here", "1", "1"]
    assert list(sections(world)) == ["0", "1", "2"]
    each = world.rl("show", "--sections").stdout
    assert [line.split("  ")[0] for line in each.splitlines() if line.startswith("rank")] == [
        "rank 0", "rank 1", "rank 2",
    ]  # fmt: skip


@takes_turns
def test_ranks_of_torchrun_are_joined(world: World):
    python = python_with_torch()
    world.env["PYTHONPATH"] = os.path.dirname(relaunch.__path__[0])
    world.write(
        "prog.py",
        """\
import torch
import torch.distributed as dist
from relaunch import section

dist.init_process_group("gloo")
for step in range(4):
    with section("reduce"):
        dist.all_reduce(torch.ones(8))
dist.destroy_process_group()
""",
    )
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "prog.py"]
    done = world.rl("--", python, *words, env={"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert {rank: one["reduce"]["times"] for rank, one in sections(world).items()} == {
        "0": 4, "1": 4,
    }  # fmt: skip


# --- leaks ----------------------------------------------------------------------------------------

LOOP = """\
import sys
from relaunch import section

kept = []
for step in range(12):
    with section("load"):
        batch = bytearray(4 << 20).replace(b"\\0", b"x")
    with section("train"):
        {leak}
    del batch
"""


def test_a_real_leak_is_found_in_the_section_that_has_it(world: World):
    source = LOOP.format(leak="kept.append(bytearray(3 << 20).replace(b'\\0', b'y'))")
    # What a section takes from memory that another one freed is not seen to grow.
    world.write("prog.py", source.replace("    del batch\n", "").replace("4 << 20", "4 << 10"))
    done = world.rl("--", PYTHON, "prog.py")
    (said,) = re.findall(r"^(\w+): \+(\S+) MiB per iteration: leak\?$", done.stderr, re.MULTILINE)
    assert said[0] == "train"
    assert 2.5 < float(said[1]) < 3.5
    (leak,) = json.loads(world.rl("show", "--json").stdout)["sections"]["processes"][0]["leaks"]
    assert leak["path"] == ["train"]
    assert leak["inside"] is True


@takes_turns
@pytest.mark.parametrize(
    "steady",
    [
        "pass",
        "bytearray(8 << 20).replace(b'\\0', b'y')",
        "kept = [bytearray((step % 4) << 20).replace(b'\\0', b'y')]",
        "kept or kept.append(bytearray(50 << 20).replace(b'\\0', b'y'))",
        "a = []; a.append(a); a.append(bytearray(1 << 20).replace(b'\\0', b'y')); del a",
    ],
    ids=["nothing", "comes and goes", "varies", "a cache", "cycles for the collector"],
)
def test_a_steady_program_is_not_called_a_leak(world: World, steady: str):
    source = LOOP.format(leak=steady).replace("range(12)", "range(40)")
    if "a.append(a)" in steady:
        source = source.replace("    del batch\n", "    del batch\n    import gc; gc.collect()\n")
    world.write("prog.py", source)
    done = world.rl("--", PYTHON, "prog.py")
    assert done.returncode == 0
    assert "leak" not in done.stderr


def test_a_thread_of_ours_sees_peaks_where_the_kernel_tells_none(world: World):
    world.write(
        "prog.py",
        """\
import mmap, time
from relaunch import section
from relaunch.inside.sections.record import recorder

def taken(size):
    block = mmap.mmap(-1, size)
    for at in range(0, size, 4096):
        block[at] = 1
    return block

taken(300 << 20).close()  # a record that no section comes near
with section("peak"):
    block = taken(60 << 20)
    began = time.monotonic()
    while max(one.high for one in recorder().open) < 60 << 20 and time.monotonic() < began + 20:
        time.sleep(0.001)
    block.close()
""",
    )
    env = {"RELAUNCH_SECTIONS_PEAK": "record", "RELAUNCH_SECTIONS_SAMPLE": "0.001"}
    done = world.rl("--", PYTHON, "prog.py", env=env)
    found = only(world)["peak"]
    assert 60 << 20 < int(str(found["rss_peak"])) < 200 << 20
    assert int(str(found["rss"])) < 60 << 20
    assert "memory: a peak is known where it is a new record of the process" in done.stderr


# --- --sections: without editing ------------------------------------------------------------------

TRAIN = """\
import time

def load(n):
    for i in range(n):
        time.sleep(0.001)
        yield i

class GPT:
    def forward(self, x):
        \"\"\"Go.\"\"\"
        if x == 2:
            return None
        return x

model = GPT()
for step in load(6):
    y = model.forward(step)
    if step == 3:
        continue
    if step == 4:
        break
print("done", model.forward.__doc__)
"""


def test_lines_and_functions_are_measured_without_an_edit(world: World):
    world.write("train.py", TRAIN)
    names = "train.py:16-21,train.py:17-21,train.py:GPT.forward,train.py:load"
    done = world.rl("run", "--sections", names, "--", PYTHON, "train.py")
    assert done.stdout == "done Go.\n"
    found = {name: one["times"] for name, one in only(world).items()}
    assert found == {
        "train.py:16-21": 1,
        "train.py:16-21 > train.py:load": 5,
        "train.py:16-21 > train.py:17-21": 5,
        "train.py:16-21 > train.py:17-21 > train.py:GPT.forward": 5,
    }
    assert world.project.joinpath("train.py").read_text() == TRAIN


def test_a_line_stands_for_its_whole_statement(world: World):
    world.write("train.py", TRAIN)
    world.rl("run", "--sections", "train.py:16", "--", PYTHON, "train.py")
    assert only(world)["train.py:16"]["times"] == 1


def test_sections_of_the_program_and_of_the_command_line_are_one_tree(world: World):
    world.write("train.py", BASIC)
    done = world.rl("run", "--sections", "train.py:7", "--", PYTHON, "train.py")
    assert done.returncode == 0, done.stderr
    assert list(only(world)) == ["step", "step > load", "step > load > train.py:7"]


def test_tracebacks_and_exit_codes_are_those_of_the_program_alone(world: World):
    source = "def f(x):\n    y = 1 / x\n    return y\n\nf(1)\nf(0)\n"
    world.write("prog.py", source)
    plain = world.shell(f"{PYTHON} prog.py")
    names = "prog.py:f,prog.py:5-6"
    done = world.rl("run", "-q", "--sections", names, "--", PYTHON, "prog.py")
    assert done.returncode == plain.returncode == 1
    assert done.stderr.startswith(plain.stderr)
    assert done.stderr[len(plain.stderr) :] == (
        "prog.py:5-6: failed once\nprog.py:f: failed 1 of 2 times\n"
    )


def test_sections_reach_pytest_modules_and_spawned_children(world: World):
    world.write("pkg/__init__.py", "")
    world.write("pkg/work.py", "def work(n):\n    return n * 2\n")
    world.write(
        "test_it.py",
        "from concurrent.futures import ProcessPoolExecutor\n"
        "import multiprocessing as mp\nfrom pkg.work import work\n"
        "def test_it():\n"
        "    with ProcessPoolExecutor(1, mp.get_context('spawn')) as pool:\n"
        "        assert list(pool.map(work, [1, 2])) == [2, 4]\n"
        "    assert work(3) == 6\n",
    )
    words = ("--sections", "pkg/work.py:work", "--", PYTHON, "-m", "pytest", "-q", "-p", "no:xdist")
    done = world.rl("run", *words, env={"PYTHONPATH": "."})
    assert done.returncode == 0, done.stdout + done.stderr
    times = [int(str(one["pkg/work.py:work"]["times"])) for one in sections(world).values()]
    assert sorted(times) == [1, 2]


def test_a_section_that_never_ran_is_told_with_the_reason(world: World):
    world.write("prog.py", "def f():\n    return 1\nif False:\n    f()\n")
    done = world.rl("run", "--sections", "prog.py:f,prog.py:4", "--", PYTHON, "prog.py")
    assert done.returncode == 0
    assert "rl: prog.py:f never ran: NOT CALLED, f is loaded, and nothing called it" in done.stderr
    assert "rl: prog.py:4 never ran: LINE NOT REACHED, " in done.stderr


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("train.py:16-18", "lines 16-18 cut the statement of lines 16-21; near is train.py:16-21"),
        ("train.py:GPT.forwad", "no function `GPT.forwad`; near is train.py:GPT.forward"),
        ("trian.py:1-2", "trian.py: No such file or directory; did you mean train.py?"),
        ("train.py:300-400", "lines 300-400 have no code"),
        ("train.py:9-3", "lines 9-3 go backwards"),
        ("train.py", "`train.py` is no section: FILE:FIRST-LAST or FILE:FUNCTION"),
        ("", "--sections names none"),
    ],
)
def test_bad_sections_are_one_line_and_nothing_runs(world: World, asked: str, said: str):
    world.write("train.py", TRAIN)
    done = world.rl("run", "--sections", asked, "--", "touch", "ran")
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (world.project / "ran").exists()


def test_a_warm_run_says_that_it_takes_no_sections(world: World):
    world.write("train.py", TRAIN)
    done = world.rl("warm", "--sections", "train.py:16", "--", PYTHON, "train.py")
    assert done.returncode == 2
    assert "--sections is no option of `rl warm`" in done.stderr


def test_a_program_on_a_full_disk_goes_on_without_its_table(world: World):
    world.write(
        "prog.py",
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + BASIC,
    )
    done = world.rl("--", PYTHON, "prog.py")
    assert (done.returncode, done.stdout) == (0, "done\n")


def test_secrets_in_names_do_not_reach_the_trial(world: World):
    world.write("prog.py", BASIC.replace('"load"', '"load sesame-open-12345"'))
    world.rl("--", PYTHON, "prog.py", env={"MY_TOKEN": "sesame-open-12345"})
    (trial,) = (world.journal / "trials").iterdir()
    assert "sesame" not in (trial / "sections.json").read_text()
