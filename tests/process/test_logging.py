"""Loggers of real programs: the trial's log, levels from outside, children, pytest, odd endings."""

import os
import sys
from pathlib import Path

import pytest
from tests.conftest import World
from tests.depth import takes_turns
from tests.needs import python_with_torch

import relaunch
from relaunch.inside.ranked import lock_path

PYTHON = sys.executable
PROGRAM = """\
import logging
from relaunch import get_logger

log = get_logger("mypkg.data")
log.info("loaded %d", 3)
log.debug("details")
logging.getLogger("theirs").debug("theirs")
logging.getLogger("theirs").info("theirs too")
"""


def said(text: str) -> list[str]:
    """Lines of loggers without their times."""
    return [line.partition(" ")[2] for line in text.splitlines() if line[2:3] == ":"]


def log_of(world: World) -> list[str]:
    """The log of the newest trial, without days and times."""
    lines = world.rl("show", "--log").stdout.splitlines()
    return [line.split(" ", 2)[2] if line[4:5] == "-" else line for line in lines]


def test_records_go_to_the_terminal_and_into_the_trial(world: World):
    world.write("prog.py", PROGRAM)
    done = world.rl("--", PYTHON, "prog.py")
    assert done.stdout == ""
    assert said(done.stderr) == ["INFO  mypkg.data: loaded 3"]
    assert log_of(world) == ["INFO  mypkg.data: loaded 3"]
    assert "rl show 1 --log" in world.rl("show").stdout


def test_without_rl_they_go_to_the_terminal_alone(world: World):
    world.write("prog.py", PROGRAM)
    done = world.shell(f"{PYTHON} prog.py")
    assert said(done.stderr) == ["INFO  mypkg.data: loaded 3"]
    assert not list(world.project.glob("*.txt"))


def test_a_trial_without_loggers_has_no_log(world: World):
    world.rl("--", "true")
    done = world.rl("show", "--log")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "rl: no logger of #1 said anything\n"
    assert "--log" not in world.rl("show").stdout


@pytest.mark.parametrize(
    ("level", "heard"),
    [
        ("debug", ["INFO  mypkg.data: loaded 3", "DEBUG mypkg.data: details"]),
        ("error", []),
        ("mypkg=debug", ["INFO  mypkg.data: loaded 3", "DEBUG mypkg.data: details"]),
        ("error,theirs=info", ["INFO  theirs: theirs too"]),
        (
            "root=debug",
            [
                "INFO  mypkg.data: loaded 3",
                "DEBUG mypkg.data: details",
                "DEBUG theirs: theirs",
                "INFO  theirs: theirs too",
            ],
        ),
    ],
)
def test_the_level_is_set_from_outside(world: World, level: str, heard: list[str]):
    world.write("prog.py", PROGRAM)
    done = world.rl("run", "--log-level", level, "--", PYTHON, "prog.py")
    assert said(done.stderr) == heard
    assert log_of(world) == heard


def test_loggers_of_programs_that_know_nothing_of_us_are_turned_up_too(world: World):
    source = "import logging\nlogging.basicConfig(level=logging.ERROR, format='%(message)s')\n"
    world.write("prog.py", source + "logging.getLogger('a.b').debug('deep')\n")
    plain = world.rl("-q", "--", PYTHON, "prog.py")
    assert plain.stderr == ""
    done = world.rl("run", "-q", "--log-level", "a=debug", "--", PYTHON, "prog.py")
    assert done.stderr == "deep\n"  # by their handler, in their words


def test_a_file_of_the_user_named_logging_is_theirs(world: World):
    world.write("logging.py", "print('mine')\n")
    world.write("prog.py", "import logging\n")
    done = world.rl("run", "-q", "--log-level", "a=debug", "--", PYTHON, "prog.py")
    assert (done.stdout, done.stderr) == ("mine\n", "")


def test_bad_levels_are_one_line_and_nothing_runs(world: World):
    for words, hint in (("debg", "debug"), ("a=lodu", "--log-level"), ("=info", "mypkg=info")):
        done = world.rl("run", "--log-level", words, "--", "touch", "ran")
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert hint in done.stderr
    assert not (world.project / "ran").exists()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_say_who_they_are_and_share_the_log(world: World, method: str):
    world.write(
        "prog.py",
        f"""\
import multiprocessing as mp
from relaunch import get_logger

log = get_logger("work")

def work(n):
    log.info("in %d", n)

if __name__ == "__main__":
    log.info("begin")
    kids = [mp.get_context("{method}").Process(target=work, args=(n,)) for n in range(2)]
    for kid in kids:
        kid.start()
    for kid in kids:
        kid.join()
    print(*(kid.pid for kid in kids))
""",
    )
    done = world.rl("--", PYTHON, "-W", "ignore", "prog.py")
    first, second = done.stdout.split()
    expected = ["INFO  work: begin", f"[{first}] INFO  work: in 0", f"[{second}] INFO  work: in 1"]
    assert sorted(said(done.stderr)) == sorted(expected)
    assert sorted(log_of(world)) == sorted(expected)


def test_pytest_sees_the_records_and_captures_the_lines(world: World):
    world.write(
        "test_it.py",
        "import logging\nfrom relaunch import get_logger\nlog = get_logger('mypkg')\n"
        "def test_seen(caplog):\n"
        "    log.info('one')\n"
        "    with caplog.at_level(logging.DEBUG):\n"
        "        log.debug('two')\n"
        "    assert [r.getMessage() for r in caplog.records] == ['one', 'two']\n"
        "def test_captured(capsys):\n"
        "    log.warning('three')\n"
        "    assert capsys.readouterr().err.endswith('WARN  mypkg: three\\n')\n"
        "def test_captured_below(capfd):\n"
        "    log.warning('four')\n"
        "    assert capfd.readouterr().err.endswith('WARN  mypkg: four\\n')\n",
    )
    done = world.rl("--", PYTHON, "-m", "pytest", "-q", "-p", "no:xdist")
    assert done.returncode == 0, done.stdout


def test_at_the_very_end_and_without_standard_error_nothing_breaks(world: World):
    world.write(
        "prog.py",
        "import atexit, os, sys\nfrom relaunch import get_logger\nlog = get_logger('late')\n"
        "class Late:\n    def __del__(self): log.info('deleted')\n"
        "late = Late()\natexit.register(log.info, 'at exit')\n"
        "if sys.argv[1:]: os.close(2)\nlog.info('now')\n",
    )
    done = world.rl("--", PYTHON, "prog.py")
    assert (done.returncode, done.stdout) == (0, "")
    assert said(done.stderr)[:2] == ["INFO  late: now", "INFO  late: at exit"]
    closed = world.rl("--", PYTHON, "prog.py", "closed")
    assert closed.returncode == 0
    assert log_of(world)[:2] == ["INFO  late: now", "INFO  late: at exit"]
    without = world.shell(f"{PYTHON} prog.py 2>&-")
    assert (without.returncode, without.stdout) == (0, "")


def test_records_of_many_processes_are_never_mixed_within_a_line(world: World):
    world.write(
        "prog.py",
        """\
import os, sys
from relaunch import get_logger

log = get_logger("many")
for n in range(6):
    if not os.fork():
        for i in range(400):
            log.info("%d %s %d", n, "x" * (i % 200), i)
        os._exit(0)
for n in range(6):
    os.wait()
""",
    )
    done = world.rl("--", PYTHON, "prog.py")
    expected = sorted(
        f"INFO  many: {n} {'x' * (i % 200)} {i}" for n in range(6) for i in range(400)
    )

    def whole(lines: list[str]) -> list[str]:
        return sorted(line.partition("] ")[2] for line in lines)

    assert whole(said(done.stderr)) == expected
    assert whole(log_of(world)) == expected


def test_secrets_do_not_stay_in_the_log(world: World):
    world.write(
        "prog.py", "from relaunch import get_logger\nget_logger('x').info('sesame-open-12345')\n"
    )
    world.rl("--", PYTHON, "prog.py", env={"MY_TOKEN": "sesame-open-12345"})
    (trial,) = (world.journal / "trials").iterdir()
    assert "sesame" not in (trial / "log.txt").read_text()


@takes_turns
def test_torch_distributed_ranks_are_named_however_torch_was_told(world: World):
    python = python_with_torch()
    world.env["PYTHONPATH"] = str(Path(relaunch.__path__[0]).parent)
    world.write(
        "prog.py",
        """\
import os
import torch.distributed as dist
import torch.multiprocessing as mp
from relaunch import get_logger

log = get_logger("work")

def work(rank):
    meet = f"file://{os.getcwd()}/meet"
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=2)
    log.info("here")
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
""",
    )
    done = world.rl("--", python, "prog.py", env={"OMP_NUM_THREADS": "1"})
    assert sorted(said(done.stderr)) == ["[rank 0] INFO  work: here", "[rank 1] INFO  work: here"]


# --- whole lines of ranks -------------------------------------------------------------------------

MANY = """\
import os, subprocess, sys

if "RANK" not in os.environ:
    env = [{**os.environ, "RANK": str(n), "WORLD_SIZE": "8"} for n in range(8)]
    kids = [subprocess.Popen([sys.executable, __file__], env=one) for one in env]
    for kid in kids:
        kid.wait()
else:
    for i in range(400):
        print("line", i, "x" * (i % 90), "end", file=sys.stderr if i % 3 else sys.stdout)
        if i % 100 == 7:
            print("long", "y" * 20_000, "end")
"""


def test_prints_of_eight_ranks_come_line_by_line_and_none_is_torn(world: World):
    world.write("prog.py", MANY)
    done = world.shell(f"rl run -q --ranked -- {PYTHON} prog.py 2>&1")
    found = sorted(done.stdout.splitlines())
    expected = [
        f"[rank {n}] line {i} {'x' * (i % 90)} end" for n in range(8) for i in range(400)
    ] + [f"[rank {n}] long {'y' * 20_000} end" for n in range(8) for _ in range(4)]
    assert found == sorted(expected)
    (trial,) = (world.journal / "trials").iterdir()
    assert not os.path.exists(lock_path(str(trial)))


def test_a_lone_program_prints_as_ever(world: World):
    world.write(
        "prog.py",
        "import sys\nprint('a', end='', flush=True)\nprint('b')\nprint('\\r1%\\r2%', end='')\n"
        "sys.stdout.flush(); sys.stdout.buffer.write(b'\\xff\\n')\n"
        "print(sys.stdout.isatty(), sys.stdout.encoding)\n"
        "print(sys.stdout.fileno(), sys.stdout.name, sys.stdout.mode, sys.stdout.errors)\n"
        "sys.exit('bye')\n",
    )
    plain = world.rl("-q", "--", PYTHON, "prog.py")
    done = world.rl("run", "-q", "--ranked", "--", PYTHON, "prog.py")
    assert plain.stdout.startswith("ab\n")
    assert (done.stdout, done.stderr, done.returncode) == (
        plain.stdout, plain.stderr, plain.returncode,
    )  # fmt: skip


def test_what_a_child_prints_last_without_an_end_of_line_is_not_lost(world: World):
    world.write(
        "prog.py",
        "import multiprocessing as mp, os, sys\n"
        "def work():\n    print('last words', end='')\n"
        "if __name__ == '__main__':\n"
        "    kid = mp.get_context('fork').Process(target=work)\n    kid.start(); kid.join()\n"
        "    print('mine too', end='')\n",
    )
    done = world.rl("run", "-q", "--ranked", "--", PYTHON, "prog.py")
    first, second = done.stdout.splitlines()
    assert first.endswith("] last words")
    assert second == "mine too"


def test_loggers_and_prints_of_a_rank_name_it_once(world: World):
    world.write(
        "prog.py", "from relaunch import get_logger\nget_logger('x').info('a')\nprint('b')\n"
    )
    env = {"RANK": "1", "WORLD_SIZE": "2"}
    done = world.rl("run", "-q", "--ranked", "--", PYTHON, "prog.py", env=env)
    assert done.stdout == "[rank 1] b\n"
    assert done.stderr.startswith("[rank 1] ")
    assert done.stderr.count("rank 1") == 1
