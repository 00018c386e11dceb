"""`rl run --sync`: what is set, what stays, and what `=compare` says about a failure.

No GPU is needed: a program that fails late unless CUDA_LAUNCH_BLOCKING is set stands for one whose
kernels do.
"""

import json

import pytest
from tests.depth import takes_turns

SHOWS = "import os; print(*(f'{n}={os.environ.get(n)}' for n in %r))"
NAMES = ["CUDA_LAUNCH_BLOCKING", "TORCH_NCCL_BLOCKING_WAIT", "PYTHONASYNCIODEBUG",
         "TOKENIZERS_PARALLELISM", "OMP_NUM_THREADS"]  # fmt: skip
LATE = """\
import os, sys

pending = []


def launch(index):
    if index >= 10:
        if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
            raise RuntimeError("CUDA error: device-side failure")
        pending.append(index)


def item():
    if pending:
        raise RuntimeError("CUDA error: device-side failure")


def embed():
    launch(12)


def step():
    embed()
    item()


how = sys.argv[1]
blocking = os.environ.get("CUDA_LAUNCH_BLOCKING") == "1"
if how == "moves":
    step()
elif how == "vanishes" and not blocking:
    raise SystemExit(7)
elif how == "clears":
    os.abort() if not blocking else step()
elif how == "stays":
    raise ValueError("as ever")
"""


def test_it_sets_what_is_not_set_and_says_so_in_one_line(world):
    world.write("p.py", SHOWS % NAMES)
    done = world.rl("run", "--sync", "--", "python3", "p.py", env={"OMP_NUM_THREADS": "5"})
    assert done.stdout == (
        "CUDA_LAUNCH_BLOCKING=1 TORCH_NCCL_BLOCKING_WAIT=1 PYTHONASYNCIODEBUG=1 "
        "TOKENIZERS_PARALLELISM=false OMP_NUM_THREADS=5\n"
    )
    said = [line for line in done.stderr.splitlines() if "rl: sync:" in line]
    assert len(said) == 1
    assert "CUDA_LAUNCH_BLOCKING=1" in said[0]
    assert said[0].endswith("yours stay: OMP_NUM_THREADS=5")
    again = world.rl()  # repeated as it was, and named
    assert "CUDA_LAUNCH_BLOCKING=1" in again.stdout
    assert "sync" in again.stderr.splitlines()[1]
    assert "CUDA_LAUNCH_BLOCKING=None" in world.rl("run", "--sync=off").stdout
    assert "--sync" in world.rl("show", "1").stdout


@pytest.mark.parametrize(
    ("how", "code", "verdict", "says"),
    [
        ("moves", 1, "moved", "the failure moved, from p.py:15 to p.py:9"),
        ("vanishes", 7, "vanished", "a race, or an overlap"),
        ("clears", -6, "clearer", "SIGABRT"),
        ("stays", 1, "same", "at the same place"),
        ("passes", 0, "passed", "it passed both times"),
    ],
)
def test_compare_runs_plain_and_sync_and_leaves_as_plain_left(world, how, code, verdict, says):
    world.write("p.py", LATE)
    line = ["run", "--sync=compare", "--json", "--reset", "echo reset >> resets", "--"]
    done = world.rl(*line, "python3", "p.py", how)
    assert done.returncode == code
    told = json.loads(done.stderr.splitlines()[-1])
    assert told["event"] == "compared"
    assert told["verdict"] == verdict
    assert says in told["text"]
    assert (told["plain"], told["sync"]) == ("1", "2")
    assert (world.project / "resets").read_text() == "reset\nreset\n"
    kept = json.loads(world.rl("show", "2", "--json").stdout)
    assert kept["start"]["sync"] is True
    assert "sync" not in json.loads(world.rl("show", "1", "--json").stdout)["start"]


IN_ONE_FUNCTION = """\
import os


def step():
    late = os.environ.get("CUDA_LAUNCH_BLOCKING") != "1"
    if not late:
        raise RuntimeError("CUDA error: device-side failure")
    raise RuntimeError("CUDA error: device-side failure")


step()
"""


@takes_turns
@pytest.mark.parametrize(
    ("how", "code", "verdict", "says"),
    [
        ("stays", 1, "same", "the same failure at the same place"),
        ("moves", 1, "moved", "the failure moved, from p.py:15 to p.py:9"),
        ("clears", 1, "clearer", "SIGABRT"),
        ("vanishes", 0, "vanished", "a race, or an overlap"),
        ("passes", 0, "passed", "it passed both times"),
    ],
)
def test_a_sync_run_says_what_it_tells_of_the_last_plain_one(world, how, code, verdict, says):
    world.write("p.py", LATE)
    world.rl("run", "--", "python3", "p.py", how)
    done = world.rl("run", "--sync", "--", "python3", "p.py", how)
    assert done.returncode == code
    last = done.stderr.splitlines()[-1]
    assert last.startswith("rl: #1 plain, #2 sync: ")
    assert says in last
    assert "gone" not in done.stderr  # which would read like a fix
    assert "failure as #1" not in done.stderr
    told = json.loads(world.rl("run", "--sync", "--json").stderr.splitlines()[-1])
    assert (told["event"], told["verdict"]) == ("compared", verdict)
    assert told["plain"] == "1"


def test_a_failure_that_moves_within_its_function_is_not_called_the_same(world):
    world.write("p.py", IN_ONE_FUNCTION)
    world.rl("run", "--", "python3", "p.py")
    done = world.rl("run", "--sync")
    assert "the failure moved, from p.py:8 to p.py:7" in done.stderr
    assert "same failure" not in done.stderr
    assert "same failure as #1" in world.rl("run", "--sync=off").stderr


def test_a_sync_run_without_a_plain_one_says_what_to_type(world):
    world.write("p.py", LATE)
    line = (
        "rl: no plain trial of this command and code says whether the failure changes or vanishes"
    )
    done = world.rl("run", "--sync", "--", "python3", "p.py", "moves")
    assert done.stderr.splitlines()[-1] == f"{line}   try: rl run --sync=compare"
    world.rl("run", "--sync=off")
    assert "#2 plain" in world.rl("run", "--sync").stderr
    world.write("p.py", LATE + "# edited")
    assert line in world.rl("run", "--sync").stderr  # the plain one was of other code
    assert "no plain trial" not in world.rl("run", "--sync=compare").stderr
    assert "plain" not in world.rl("run", "--sync", "--quiet").stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--sync=maybe"], "--sync takes no value but --sync=compare or --sync=off: `--sync=m"),
        (["--single=x"], "--single takes no value but --single=off: `--single=x`"),
        (["--sync=compare", "-n", "3"], "--sync=compare runs it twice itself"),
        (["--single"], "no script among the words of `torchrun`"),
    ],
)
def test_bad_words_get_one_line_and_no_trial(world, words, line):
    done = world.rl("run", *words, "--", "torchrun", "--nproc-per-node", "8")
    assert done.returncode == 2
    assert line in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "no trials" in world.rl("log").stdout + world.rl("log").stderr


def test_other_verbs_say_where_compare_belongs(world):
    done = world.rl("probe", "p.py:1=x", "--sync=compare", "--", "true")
    assert done.returncode == 2
