"""`rl repeat` with real programs: how often, how sure, what provokes it, and nothing left."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest
from tests.needs import missing
from tests.racing import path_of
from tests.supervising import wait_until

PYTHON = sys.executable
EVERY_FOURTH = (
    "sh",
    "-c",
    "n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) > n; test $((n%4)) != 3",
)


def repeated(world, *words, code=0):
    done = world.rl("repeat", "--json", *words)
    assert done.returncode == code, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def with_a_slow_library(world):
    lib = world.root / "lib/site-packages"
    lib.mkdir(parents=True)
    (lib / "heavy.py").write_text("import time\ntime.sleep(0.4)\n")
    return f"PYTHONPATH={lib}"


def probes(world, number=1):
    path = world.journal / f"searches/{number}/probes.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def left_running(word):
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if word.encode() in file.read():
                    found.append(int(name))
        except OSError:
            pass
    return [pid for pid in found if pid != os.getpid()]


def test_what_never_fails_is_bounded_from_above(world):
    done = world.rl("repeat", "200", "-j", "4", "--", "true")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0 of 200 fail: below 1.5% with 95%")


def test_failures_are_counted_by_their_signature_and_their_output_is_kept(world):
    world.write(
        "flaky.py",
        "import os, sys\nn = len(os.listdir('runs'))\nopen(f'runs/{n}', 'w').close()\n"
        "if n % 4 == 1: raise ValueError('bad luck')\nif n % 4 == 2: sys.exit(3)\n",
    )
    (world.project / "runs").mkdir()
    done = world.rl("repeat", "8", "--", PYTHON, "flaky.py")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("4 of 8 fail: 50%, 16% to 84% with 95%")
    assert "    2  flaky.py:4 ValueError: bad luck" in done.stdout
    assert "    2  exit 3" in done.stdout
    output = next(line for line in done.stdout.splitlines() if line.endswith("output.0")).strip()
    assert "ValueError: bad luck" in (world.project / output).read_text()


def test_it_stops_at_the_first_failure_when_that_is_asked_for(world):
    found = repeated(world, "100", "--until-fail", "--", *EVERY_FOURTH, code=1)
    assert found["rates"][0]["failed"] == 1
    assert found["rates"][0]["runs"] == 4


def test_a_budget_ends_it_and_resume_goes_on(world):
    first = repeated(world, "10", "--budget", "4", "--", *EVERY_FOURTH, code=1)
    assert (first["stopped"], first["left"]) == ("the budget of 4 runs is used up", 6)
    rest = repeated(world, "--resume", code=1)
    assert (rest["left"], rest["rates"][0]["runs"], rest["rates"][0]["failed"]) == (0, 10, 2)
    assert [one["number"] for one in probes(world)] == [*range(1, 11)]


def test_what_provokes_it_is_told_with_how_likely_chance_is(world):
    world.write("lost_update.py", path_of("lost_update").read_text())
    command = ("--", PYTHON, "lost_update.py")
    found = repeated(world, "20", "-j", "2", "--perturb", "lines,core", *command, code=1)
    rates = {one["with"]: one for one in found["rates"]}
    assert [*rates] == ["plain", "lines", "core"]
    assert all(one["runs"] == 20 for one in rates.values())
    assert rates["lines"]["failed"] > rates["plain"]["failed"]
    assert rates["lines"]["chance"] < 0.05


def need_cpus():
    if len(os.sched_getaffinity(0)) < 2:
        missing("with one CPU, everything is on one")


def test_one_core_holds_for_a_program_that_is_not_python(world):
    need_cpus()
    line = "echo $(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status) >> cpus"
    repeated(world, "4", "--perturb", "core", "--", "sh", "-c", line)
    said = (world.project / "cpus").read_text().split()
    alone = [one for one in said if one.isdecimal()]
    assert len(said) == 8
    assert len(alone) == 4, "the runs without it have all"


def test_one_core_holds_for_a_fork_too(world):
    need_cpus()
    env = with_a_slow_library(world)
    line = "print(len(os.sched_getaffinity(0)), file=open('cpus', 'a'))"
    world.write("uses.py", f"import heavy, os\n{line}\n")
    found = repeated(world, "6", "--perturb", "core", "--env", env, "--", PYTHON, "uses.py")
    assert found["forked"] >= 6
    said = (world.project / "cpus").read_text().split()
    assert sorted(said)[:6] == ["1"] * 6
    assert "1" not in sorted(said)[6:]


def test_a_busy_machine_is_busy_only_meanwhile(world):
    done = world.rl("repeat", "3", "--perturb", "load", "--", "true")
    assert done.returncode == 0, done.stderr
    assert "none of these provokes it" in done.stdout
    assert left_running("relaunch repeat 3 --perturb load") == []


def seen(world):
    """Return what the runs of a program wrote down, one after the other, and forget it."""
    path = world.project / "seen"
    lines = path.read_text().splitlines()
    path.unlink()
    return [json.loads(line) for line in lines]


SAYS = "\nimport json\nwith open('seen', 'a') as file: print(json.dumps(what), file=file)\n"


def test_switch_makes_python_look_for_another_thread_all_the_time(world):
    world.write("p.py", "import sys\nwhat = sys.getswitchinterval()" + SAYS)
    repeated(world, "2", "--perturb", "switch", "--", PYTHON, "p.py")
    assert sorted(seen(world)) == [1e-06, 1e-06, 0.005, 0.005]


SLEEPS = """\
import sys
what, line = [], 1
if sys.version_info >= (3, 12):
    line = sys.monitoring.events.LINE
    ours = sys.monitoring.register_callback(3, line, None)
    sys.monitoring.register_callback(3, line, ours)
else:
    ours = sys.gettrace()
if ours is not None:
    ours.__globals__["_sleep"] = what.append
for number in range(200):
    number += 1
"""


def test_the_sleeps_between_lines_are_those_of_the_number_of_the_run(world):
    world.write("p.py", SLEEPS + SAYS)
    words = ("3", "--perturb", "lines", "--", PYTHON, "p.py")
    repeated(world, *words)
    first = seen(world)
    repeated(world, *words)
    assert seen(world) == first  # run by run
    slept = [one for one in first if one]
    assert len(slept) == 3  # the others were plain
    assert len({tuple(one) for one in slept}) == 3
    assert all(0 < second < 0.001 for one in slept for second in one)


LOADED = """\
import os, time
def burners():
    worker = os.getppid()
    with open(f"/proc/{worker}/stat") as file:
        rl = int(file.read().rpartition(")")[2].split()[1])
    with open(f"/proc/{rl}/task/{rl}/children") as file:
        others = {int(pid) for pid in file.read().split()} - {worker}
    return {pid: used(pid) for pid in others}
def used(pid):
    with open(f"/proc/{pid}/stat") as file:
        words = file.read().rpartition(")")[2].split()
    return int(words[11]) + int(words[12])
before = burners()
until = time.monotonic() + 60
while before and time.monotonic() < until:
    if all(now > before[pid] for pid, now in burners().items()):
        break
what = [len(before), time.monotonic() < until]
"""


def test_load_keeps_all_cpus_busy_while_a_run_is_on(world):
    world.write("p.py", LOADED + SAYS)
    repeated(world, "1", "--no-forks", "--perturb", "load", "--", PYTHON, "p.py")
    assert sorted(seen(world)) == [[0, True], [2 * (os.cpu_count() or 1), True]]


@pytest.mark.parametrize(
    ("asked", "modes"),
    [
        ("all", ["plain", "switch", "lines", "core", "load"]),
        ("core+switch", ["plain", "core+switch"]),
    ],
)
def test_all_of_them_and_several_at_once_run(world, asked, modes):
    world.write(
        "p.py",
        "import os, sys\nwhat = [len(os.sched_getaffinity(0)) == 1, sys.getswitchinterval()]"
        + SAYS,
    )
    found = repeated(world, "2", "--perturb", asked, "--", PYTHON, "p.py")
    assert [one["with"] for one in found["rates"]] == modes
    assert all((one["runs"], one["failed"]) == (2, 0) for one in found["rates"])
    both = [one for one in seen(world) if one == [True, 1e-06]]
    is_one_core = len(os.sched_getaffinity(0)) == 1
    assert len(both) == 2 or asked == "all" or is_one_core


def test_runs_at_once_really_overlap(world):
    for name in ("to_odd", "to_even"):
        os.mkfifo(world.project / name)
    world.write(
        "p.py",
        "import os\n"
        "try: os.mkdir('first')\n"
        "except FileExistsError: os.rmdir('first'); mine, other = 'to_odd', 'to_even'\n"
        "else: mine, other = 'to_even', 'to_odd'\n"
        "if mine == 'to_odd':\n"
        "    open(other, 'w').write('here'); assert open(mine).read() == 'too'\n"
        "else:\n"
        "    assert open(mine).read() == 'here'; open(other, 'w').write('too')\n",
    )
    command = ("--timeout", "60", "--", PYTHON, "p.py")
    found = repeated(world, "6", "-j", "2", *command)
    assert (found["rates"][0]["runs"], found["rates"][0]["failed"]) == (6, 0)


def test_a_program_with_slow_imports_is_forked_from_them(world):
    env = with_a_slow_library(world)
    world.write("uses.py", "import heavy, os\nprint(os.getpid())\n")
    found = repeated(world, "8", "--env", env, "--", PYTHON, "uses.py")
    assert found["forked"] >= 4
    anew = repeated(world, "2", "--no-forks", "--env", env, "--", PYTHON, "uses.py")
    assert anew["forked"] == 0


def test_an_interrupted_repetition_tells_what_it_has(world):
    command = ("sh", "-c", "sleep 0.05 # unlikely-word")
    process = world.start(["rl", "repeat", "1000", "--", *command])
    wait_until(lambda: len(probes(world)) >= 2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    assert out.startswith(b"interrupted: 0 of ")
    assert b"next: rl repeat --resume" in out
    assert left_running("unlikely-word") == []


def test_it_is_seen_in_the_journal(world):
    repeated(world, "2", "--", "true")
    listed = world.rl("log", "--searches")
    assert "repeat" in listed.stdout
    shown = world.rl("show", "search/1")
    assert "0 of 2 fail" in shown.stdout
    logged = world.rl("repeat", "--log")
    assert "run 2" in logged.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "rl: how often?"),
        (("200",), "rl: what is to be run?"),
        (("x", "--", "true"), "rl: `x` is no number of runs"),
        (("0", "--", "true"), "rl: `0` is no number of runs"),
        (("3", "--perturb", "lnes", "--", "true"), "rl: --perturb takes switch, lines, core, load"),
        (("3", "-j", "0", "--", "true"), "rl: --jobs 0: at least one"),
        (("3", "--", "no-such-program"), "rl: `no-such-program`: command not found on PATH"),
        (("3", "true"), "rl: `true` came before `--`"),
        (("--resume",), "rl: nothing was repeated yet"),
        (("--log",), "rl: nothing was repeated yet"),
    ],
)
def test_what_cannot_be_repeated_is_one_line_and_exit_2(world, words, said):
    done = world.rl("repeat", *words)
    assert done.returncode == 2
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1
