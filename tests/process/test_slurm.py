"""Launches in a held allocation, in a real Slurm: exits, output, losses, and nothing left."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import World
from tests.racing import path_of
from tests.slurming import Cluster, job_of
from tests.watching import is_alive

from relaunch.proc.tree import below, processes

PYTHON = sys.executable
_STILL = """\
import os, sys, time
if "RELAUNCH_TRIAL" in os.environ:  # what marks it here marks nothing on another machine
    del os.environ["RELAUNCH_TRIAL"]
    os.execv(sys.executable, [sys.executable, *sys.argv])
open(f"there-{os.environ['SLURM_PROCID']}", "w").write(os.uname().nodename)
time.sleep(300)
"""


def hold(world: World, *words: str) -> str:
    """Hold an allocation; returns its job."""
    done = world.rl("alloc", "--json", "--", *words)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["job"])


def wait_there(world: World, cluster: Cluster, count: int = 1) -> None:
    """Wait until so many tasks of `still.py` run."""
    cluster.until(lambda: all((world.project / f"there-{n}").exists() for n in range(count)))


def tasks_left(world: World) -> list[str]:
    """Return the processes of `still.py` of this world that run, on whichever node."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                is_ours = os.readlink(entry / "cwd") == str(world.project)
            except OSError:
                continue
            if is_ours and words[1:2] == [b"still.py"]:
                found.append(entry.name)
    return found


# --- how it ends ----------------------------------------------------------------------------------


def test_the_exit_code_of_the_program_is_ours(slurm: World):
    hold(slurm, "-N1", "-t5")
    done = slurm.rl("run", "--slurm", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout) == (3, "out\n")
    assert "\nerr\n" in f"\n{done.stderr}"
    assert "srun:" not in done.stderr
    assert re.search(r"in allocation \d+: 1 node, 1 task, [45] min left", done.stderr)


def test_a_program_that_a_signal_kills_ends_us_likewise(slurm: World):
    hold(slurm, "-N1", "-t5")
    done = slurm.rl("run", "--slurm", "--", "sh", "-c", "kill -SEGV $$")
    assert done.returncode == -signal.SIGSEGV
    done = slurm.rl("run", "--slurm", "--", "sh", "-c", "exit 139")
    assert done.returncode == 139, "that is an exit code, no signal"


def test_the_failing_rank_is_the_failure(slurm: World):
    hold(slurm, "-N2", "-n4", "-t5")
    slurm.write(
        "train.py",
        "import os\nrank = int(os.environ['SLURM_PROCID'])\n"
        "if rank == 2:\n    raise ValueError('loss is nan')\n",
    )
    done = slurm.rl("run", "--slurm", "--", PYTHON, "train.py")
    assert done.returncode == 1
    assert "[rank2]: ValueError: loss is nan\n" in done.stderr
    assert "train.py:4 ValueError: loss is nan" in done.stderr.splitlines()[-2] + done.stderr


def test_a_program_that_is_not_there_is_said_in_one_line(slurm: World):
    hold(slurm, "-N1", "-t5")
    done = slurm.rl("run", "--slurm", "--", "/no/such/program")
    assert done.returncode == 2
    assert "not on the node: /no/such/program: No such file or directory" in done.stderr


def test_a_timeout_ends_the_step_on_all_nodes(slurm: World, cluster: Cluster):
    job = hold(slurm, "-N2", "-t5")
    slurm.write("still.py", _STILL)
    done = slurm.rl("run", "--slurm", "--timeout", "2", "--", PYTHON, "still.py")
    assert done.returncode == 124
    assert "timed out after" in done.stderr
    cluster.until(lambda: not tasks_left(slurm) and not cluster.steps(job))
    assert cluster.state(job) == "RUNNING"


# --- what it writes -------------------------------------------------------------------------------


def test_long_lines_of_many_ranks_are_not_mixed(slurm: World):
    hold(slurm, "-N2", "-n8", "-t5")
    slurm.write(
        "lines.py",
        "import os, sys\nrank = os.environ['SLURM_PROCID']\n"
        "for size in (10, 1023, 1024, 1025, 7000, 50000):\n"
        "    sys.stdout.write(rank * size + '\\n'); sys.stdout.flush()\n",
    )
    done = slurm.rl("run", "--slurm", "-q", "--", PYTHON, "lines.py")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 48
    for rank in "01234567":
        mine = [line for line in lines if line.startswith(f"[rank{rank}]: ")]
        sizes = [10, 1023, 1024, 1025, 7000, 50000]
        assert mine == [f"[rank{rank}]: {rank * size}" for size in sizes]


def test_all_nodes_and_tasks_take_part(slurm: World):
    hold(slurm, "-N3", "--ntasks-per-node=2", "-t5")
    done = slurm.rl("run", "--slurm", "-q", "--", "sh", "-c", "echo $SLURM_NODEID $SLURM_NTASKS")
    assert sorted(done.stdout.splitlines()) == [f"[rank{n}]: {n // 2} 6" for n in range(6)]
    done = slurm.rl("run", "--srun=-N1 -n2", "-q", "--", "sh", "-c", "echo $SLURM_NNODES")
    assert sorted(done.stdout.splitlines()) == ["[rank0]: 1", "[rank1]: 1"]


def test_standard_input_reaches_the_program(slurm: World):
    hold(slurm, "-N1", "-t5")
    assert slurm.rl("run", "--slurm", "-q", "--", "cat", input="one\ntwo\n").stdout == "one\ntwo\n"


def test_what_was_done_is_done_again_there(slurm: World):
    hold(slurm, "-N1", "-t5")
    slurm.rl("run", "--srun=--comment=x", "--", "sh", "-c", "echo $SLURM_STEP_ID")
    done = slurm.rl()
    assert done.stdout.strip().isdecimal(), "no variable of a step where none is"
    assert "slurm" in done.stderr


def test_components_of_a_job_run_together(slurm: World):
    hold(slurm, "-N1", "-n1", "-t5", ":", "-N2", "-n2")
    done = slurm.rl("run", "--slurm", "-q", "--", "sh", "-c", "echo $SLURM_HET_SIZE")
    assert done.returncode == 0, done.stderr
    assert [line.rpartition(" ")[2] for line in done.stdout.splitlines()] == ["2", "2", "2"]
    assert slurm.rl("alloc", "--release").returncode == 0
    assert not processes_with(b"salloc", str(slurm.journal).encode())


def test_the_runs_of_a_search_go_to_the_nodes_of_all_components(slurm: World):
    hold(slurm, "-N1", "-n1", "-t5", ":", "-N2", "-n2")
    line = "echo $SLURMD_NODENAME >> nodes"
    done = slurm.rl("repeat", "9", "--slurm", "--", "sh", "-c", line)
    assert done.returncode == 0, done.stderr + done.stdout
    nodes = (slurm.project / "nodes").read_text().split()
    assert len(nodes) == 9
    assert len({*nodes}) == 3


def test_a_batch_script_runs_as_sbatch_runs_it_and_starts_its_own_steps(slurm: World):
    slurm.write(
        "job.sbatch",
        "#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=2 -t 5\necho $SLURM_NNODES on $(hostname)\n"
        "srun sh -c 'echo $SLURM_PROCID of $SLURM_NTASKS'\nexit 4\n",
    )
    assert slurm.rl("alloc", "-q", "job.sbatch").returncode == 0
    done = slurm.rl("run", "--slurm", "--", "bash", "job.sbatch")
    assert done.returncode == 4, done.stderr
    first, *steps = done.stdout.splitlines()
    assert first.startswith("2 on ")
    assert sorted(steps) == [f"{n} of 4" for n in range(4)]


# --- where it is asked from -----------------------------------------------------------------------


def test_variables_of_another_job_do_not_reach_the_program(slurm: World):
    hold(slurm, "-N2", "-n2", "-t5")
    left = {"SLURM_JOB_ID": "9999", "SLURM_NTASKS": "64", "SLURM_CPU_BIND": "mask_cpu:0x1",
            "SLURM_NTASKS_PER_NODE": "32"}  # fmt: skip
    done = slurm.rl("run", "--slurm", "--", "sh", "-c", "echo $SLURM_NTASKS", env=left)
    assert sorted(done.stdout.splitlines()) == ["[rank0]: 2", "[rank1]: 2"]
    assert (
        "4 SLURM_* variables of job 9999 are in this shell; they are not passed on" in done.stderr
    )


def test_a_new_allocation_is_not_harmed_by_variables_of_another_job(slurm: World):
    left = {"SLURM_JOB_ID": "9999", "SLURM_NTASKS": "9999", "SLURM_NNODES": "77"}
    done = slurm.rl("alloc", "--", "-N1", "-t5", env=left)
    assert done.returncode == 0
    assert "3 SLURM_* variables of job 9999" in done.stderr
    assert re.match(r"granted in .*: allocation \d+: running, 1 node", done.stdout)


def test_another_shell_needs_not_know_where_slurm_is(slurm: World):
    hold(slurm, "-N1", "-t5")
    conf = slurm.env.pop("SLURM_CONF")
    done = slurm.rl("run", "--slurm", "-q", "--", "sh", "-c", "echo $SLURM_CONF")
    slurm.env["SLURM_CONF"] = conf
    assert done.stdout.strip() == conf


def test_in_a_shell_of_an_allocation_none_needs_to_be_held(slurm: World):
    line = "salloc -Q -N2 -t5 sh -c 'rl alloc && rl run --slurm -q -- hostname'"
    done = slurm.shell(line)
    assert done.returncode == 0, done.stderr
    assert "this shell is in it" in done.stdout
    assert len([line for line in done.stdout.splitlines() if line.startswith("[rank")]) == 2


def test_from_a_node_the_allocation_can_be_used_too(slurm: World):
    hold(slurm, "-N2", "-t5")
    line = f"srun --overlap -N1 -n1 {PYTHON} -m relaunch run --slurm -q -- hostname"
    held = {
        name: value
        for name, value in _held_env(slurm).items()
        if name in ("SLURM_JOB_ID", "SLURM_CONF")
    }
    done = slurm.shell(line, env=held)
    assert len([line for line in done.stdout.splitlines() if line.startswith("[rank")]) == 2, (
        done.stderr
    )


def _held_env(world: World) -> dict[str, str]:
    data = (world.journal / "allocation" / "env").read_text()
    return dict(word.split("=", 1) for word in data.split("\0") if "=" in word)


# --- holding --------------------------------------------------------------------------------------


def test_what_is_held_is_shown_and_given_back(slurm: World, cluster: Cluster):
    job = hold(slurm, "-N2", "-n4", "-t5")
    shown = slurm.rl("alloc")
    assert re.match(
        rf"allocation {job}: running, 2 nodes \(node\[\d-\d\]|node\d,node\d\), 4 tasks, 4 CPUs",
        shown.stdout,
    )
    assert "min left" in shown.stdout
    again = slurm.rl("alloc", "--", "-N1")
    assert again.returncode == 2
    assert f"allocation {job} is held already" in again.stderr
    pid = json.loads((slurm.journal / "allocation" / "allocation.json").read_text())["pid"]
    assert slurm.rl("alloc", "--release").stdout == f"allocation {job} is given back\n"
    cluster.until(lambda: cluster.state(job) == "CANCELLED")
    cluster.until(lambda: not is_alive(pid))
    none = slurm.rl("alloc")
    assert none.returncode == 1
    assert "no allocation is held" in none.stderr


def test_an_allocation_that_somebody_ended_is_not_shown_as_held(slurm: World, cluster: Cluster):
    job = hold(slurm, "-N1", "-t5")
    cluster.run("scancel", job)
    cluster.until(lambda: cluster.state(job) == "CANCELLED")
    shown = slurm.rl("alloc")
    assert shown.returncode == 1
    assert f"no allocation is held (allocation {job} is over (cancelled))" in shown.stderr
    assert not (slurm.journal / "allocation" / "env").exists()


def test_an_allocation_that_ends_while_it_is_asked_about_is_not_forgotten_without_a_word(
    slurm: World, cluster: Cluster
):
    """The real one cannot be had to end between two questions: one that ends it after the first."""
    job = hold(slurm, "-N1", "-t5")
    real = shutil.which("scontrol", path=slurm.env["PATH"])
    ending = slurm.bin / "scontrol"
    ending.write_text(
        f'#!/bin/sh\n{real} "$@"\ncode=$?\nscancel {job}\n'
        f"while {real} show job {job} | grep -q JobState=RUNNING; do :; done\nexit $code\n"
    )
    ending.chmod(0o755)
    assert f"allocation {job}: running" in slurm.rl("alloc").stdout
    assert f"allocation {job} is over (cancelled)" in slurm.rl("alloc").stderr


def test_it_is_given_back_when_the_shell_ends_if_that_was_asked(slurm: World, cluster: Cluster):
    line = "rl alloc --json --while-here -- -N1 -t5; rl run --slurm -q -- echo in it"
    done = slurm.shell(line)
    assert done.stdout.endswith("in it\n"), done.stderr
    job = str(json.loads(done.stdout.rpartition("}")[0] + "}")["job"])
    cluster.until(lambda: cluster.state(job) != "RUNNING")
    assert slurm.rl("alloc").returncode == 1


@pytest.mark.parametrize("kept", [True, False])
def test_when_the_holder_is_killed(slurm: World, cluster: Cluster, kept: bool):
    """It stays until its time is over, unless it was asked for only while somebody is here."""
    here = [] if kept else ["--while-here"]
    slurm.rl("alloc", *here, "--", "-N1", "-t5")
    job = job_of(slurm)
    for pid in processes_with(b"salloc", str(slurm.journal).encode()):
        os.kill(pid, signal.SIGKILL)
    if kept:
        assert slurm.rl("run", "--slurm", "-q", "--", "echo", "still").stdout == "still\n"
        assert slurm.rl("alloc", "--release").returncode == 0
    cluster.until(lambda: cluster.state(job) == "CANCELLED")


def processes_with(name: bytes, word: bytes) -> list[int]:
    """Return the processes of a program with a word in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if line.split(b"\0")[0].endswith(name) and word in line:
                found.append(int(entry.name))
    return found


def test_a_request_that_waits_is_taken_back_by_ctrl_c(slurm: World, cluster: Cluster):
    asking = slurm.start(["rl", "alloc", "--", "-N99", "-t5"])
    assert asking.stderr is not None
    said = asking.stderr.readline().decode()
    asking.send_signal(signal.SIGINT)
    asking.communicate(timeout=300)
    assert asking.returncode == 130
    found = re.search(r"Pending job allocation (\d+)", said)
    assert found, said
    cluster.until(lambda: cluster.state(found[1]) == "CANCELLED")
    assert slurm.rl("alloc").returncode == 1


def test_what_slurm_refuses_is_said_in_one_line(slurm: World):
    done = slurm.rl("alloc", "--", "-N1", "-p", "nowhere")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "no allocation: " in done.stderr
    assert "invalid partition specified: nowhere" in done.stderr


def test_a_request_that_waits_goes_when_who_asked_is_killed(slurm: World, cluster: Cluster):
    asking = slurm.start(["rl", "alloc", "--", "-N99", "-t5"])
    assert asking.stderr is not None
    found = re.search(r"Pending job allocation (\d+)", asking.stderr.readline().decode())
    assert found
    asking.kill()
    asking.communicate(timeout=300)
    cluster.until(lambda: cluster.state(found[1]) == "CANCELLED")
    assert slurm.rl("alloc").returncode == 1


# --- what goes wrong while it runs ----------------------------------------------------------------


def test_ctrl_c_ends_the_step_and_not_the_allocation(slurm: World, cluster: Cluster):
    job = hold(slurm, "-N2", "-t5")
    slurm.write("still.py", _STILL)
    running = slurm.start(["rl", "run", "--slurm", "--", PYTHON, "still.py"])
    wait_there(slurm, cluster, 2)
    assert len(tasks_left(slurm)) == 2
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=300)
    assert running.returncode == -signal.SIGINT, said  # as here: a shell calls it 130
    assert b"interrupted after" in said
    cluster.until(lambda: not tasks_left(slurm) and not cluster.steps(job))
    assert cluster.state(job) == "RUNNING"
    assert slurm.rl("run", "--srun=-n1", "-q", "--", "echo", "next").stdout == "next\n"


def test_when_rl_is_killed_nothing_runs_on(slurm: World, cluster: Cluster):
    job = hold(slurm, "-N2", "-t5")
    slurm.write("still.py", _STILL)
    running = slurm.start(["rl", "run", "--slurm", "--", PYTHON, "still.py"])
    wait_there(slurm, cluster, 2)
    running.kill()
    running.communicate(timeout=300)
    cluster.until(lambda: not tasks_left(slurm) and not cluster.steps(job))
    assert cluster.state(job) == "RUNNING"
    after = slurm.rl("run", "--srun=-n1", "--", "echo", "next")
    assert after.stdout == "next\n"
    assert "was killed; its record is kept" in after.stderr


def test_what_an_rl_and_its_guard_left_is_ended_by_the_next(slurm: World, cluster: Cluster):
    job = hold(slurm, "-N1", "-t5")
    slurm.write("still.py", _STILL)
    running = slurm.start(["rl", "run", "--slurm", "--", PYTHON, "still.py"])
    wait_there(slurm, cluster)
    os.killpg(running.pid, signal.SIGKILL)  # srun too
    running.communicate(timeout=300)
    assert cluster.steps(job)
    slurm.rl("run", "--", "true")
    cluster.until(lambda: not tasks_left(slurm) and not cluster.steps(job))
    assert cluster.state(job) == "RUNNING"


def test_a_step_that_is_cancelled_from_outside_is_lost_not_failed(slurm: World, cluster: Cluster):
    job = hold(slurm, "-N1", "-t5")
    slurm.write("still.py", _STILL)
    running = slurm.start(["rl", "run", "--slurm", "--", PYTHON, "still.py"])
    wait_there(slurm, cluster)
    cluster.run("scancel", cluster.steps(job)[0].split()[0])
    _, said = running.communicate(timeout=300)
    assert running.returncode == 125
    assert f"its step in allocation {job} was cancelled from outside".encode() in said
    assert cluster.state(job) == "RUNNING"


def test_an_allocation_that_is_cancelled_while_it_is_used(slurm: World, cluster: Cluster):
    job = hold(slurm, "-N2", "-t5")
    slurm.write("still.py", _STILL)
    running = slurm.start(["rl", "run", "--slurm", "--", PYTHON, "still.py"])
    wait_there(slurm, cluster, 2)
    cluster.run("scancel", job)
    _, said = running.communicate(timeout=300)
    assert running.returncode == 125
    assert f"lost after {''}".encode() in said
    assert f"allocation {job} was cancelled".encode() in said
    cluster.until(lambda: not tasks_left(slurm))
    after = slurm.rl("run", "--slurm", "--", "true")
    assert after.returncode == 2
    assert f"allocation {job} is over" in after.stderr


def test_a_node_that_is_lost_while_it_is_used(slurm_alone: World, cluster: Cluster):
    slurm = slurm_alone
    job = hold(slurm, "-N2", "-t5")
    slurm.write("still.py", _STILL)
    running = slurm.start(["rl", "run", "--slurm", "--", PYTHON, "still.py"])
    wait_there(slurm, cluster, 2)
    node = (slurm.project / "there-1").read_text()
    cluster.lose(node)
    try:
        cluster.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=lost")
        _, said = running.communicate(timeout=300)
        assert running.returncode == 125
        assert re.search(rf"lost after .*node.* of allocation {job} was lost".encode(), said)
        cluster.until(lambda: not tasks_left(slurm) and cluster.state(job) == "NODE_FAIL")
        shown = slurm.rl("alloc")
        assert f"allocation {job} is over (node_fail)" in shown.stderr
    finally:
        cluster.bring_back(node)


def test_an_allocation_whose_time_is_over_while_it_is_used(slurm: World, cluster: Cluster):
    job = hold(slurm, "-N1", "-t5")
    slurm.write("still.py", _STILL)
    running = slurm.start(["rl", "run", "--slurm", "--", PYTHON, "still.py"])
    wait_there(slurm, cluster)
    cluster.run("scontrol", "update", f"JobId={job}", "EndTime=now")
    _, said = running.communicate(timeout=300)
    assert running.returncode == 125
    assert f"allocation {job} reached its time limit".encode() in said
    cluster.until(lambda: not tasks_left(slurm) and cluster.state(job) == "TIMEOUT")
    shown = slurm.rl("alloc")
    assert shown.returncode == 1
    assert f"allocation {job} is over (timeout)" in shown.stderr


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "env", "said"),
    [
        (["run", "--slurm", "--", "true"], {}, "no allocation is held"),
        (["stacks", "--slurm"], {}, "no allocation is held"),
        (
            ["run", "--slurm", "--", "true"],
            {"SLURM_JOB_ID": "77"},
            "allocation 77 has no nodes: it is over, or not granted yet",
        ),
        (
            ["run", "--slurm", "--", "true"],
            {"SLURM_JOB_ID": "77", "SLURM_JOB_NODELIST": "node[1-"},
            "how many nodes are `node[1-`? It cannot be read",
        ),
        (["run", "--srun", "'", "--", "true"], {}, "--srun: No closing quotation"),
        (["alloc", "no-such.sbatch"], {}, "no-such.sbatch cannot be read: No such file"),
        (["alloc", "README.md"], {}, "README.md is no batch script"),
        (["alloc", "--release", "x.sbatch"], {}, "--release gives back, and asks for none"),
        (["alloc", "--while-here"], {}, "an allocation of what?"),
        (["alloc", "--", "-Z"], {}, "no option -Z"),
    ],
)
def test_bad_input_is_one_line_with_what_to_do(slurm: World, words, env, said):
    done = slurm.rl(*words, env=env)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr


def test_what_is_about_this_machine_does_not_go_with_slurm(slurm: World):
    hold(slurm, "-N1", "-t5")
    options = (["--memory", "5G"], ["--watch"], ["--pdb"], ["--blame"], ["--hang", "9"],
               ["--ranks", "2"], ["--single"], ["--disk", ".=1G"], ["--gpu-free", "3G"],
               ["--pause-at-peak"], ["--let-live"])  # fmt: skip
    for option in options:
        done = slurm.rl("run", "--slurm", *option, "--", sys.executable, "-c", "1")
        assert done.returncode == 2
        assert f"{option[0]} is about this machine, and --slurm is not" in done.stderr


def test_without_slurm_it_is_said_in_one_line(world: World):
    world.env["PATH"] = f"{world.bin}"
    for words in (["alloc", "--", "-N1"], ["run", "--slurm", "--", "x"], ["stacks", "--slurm"]):
        done = world.rl(*words)
        assert done.returncode == 2
        assert re.fullmatch(r"rl: there is no Slurm here: `\w+` is not on PATH .*\n", done.stderr)


def test_a_controller_that_does_not_answer_is_said_in_one_line(slurm: World, tmp_path: Path):
    conf = Path(slurm.env["SLURM_CONF"]).read_text()
    deaf = re.sub(r"(?m)^SlurmctldPort=.*", "SlurmctldPort=1", conf)
    (tmp_path / "slurm.conf").write_text(f"{deaf}MessageTimeout=1\n")
    done = slurm.rl("alloc", "--", "-N1", env={"SLURM_CONF": str(tmp_path / "slurm.conf")})
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "no allocation: " in done.stderr


# --- many at once ---------------------------------------------------------------------------------


def test_the_runs_of_a_sweep_go_to_all_nodes_at_once(slurm: World):
    hold(slurm, "-N3", "-t5")
    slurm.write(
        "meet.py",
        "import os, sys, time\nopen('here-' + sys.argv[1], 'w').write(os.environ['SLURM_NODEID'])\n"
        "until = time.monotonic() + 40\n"
        "while sum(n.startswith('here-') for n in os.listdir()) < 3:\n"
        "    assert time.monotonic() < until, 'nobody else came'\n    time.sleep(0.02)\n"
        "print(os.environ['SLURM_STEP_NODELIST'])\n",
    )
    done = slurm.rl("sweep", "--slurm", "--arg", "n=1,2,3", "--", PYTHON, "meet.py", "{n}")
    assert done.returncode == 0, done.stderr + done.stdout
    outputs = slurm.journal.glob("trials/*/output*")
    seen = {name for path in outputs for name in re.findall(rb"node\d", path.read_bytes())}
    assert len(seen) == 3


def on_nodes(world: World, name: str) -> str:
    """Return a line for a program that notes its node, for `nodes_of` this name."""
    (world.root / name).mkdir()
    return (
        f"import os\nopen({str(world.root / name)!r} + '/' + os.environ['SLURMD_NODENAME'], 'w')\n"
    )


def nodes_of(world: World, name: str) -> list[str]:
    return sorted(one.name for one in (world.root / name).iterdir())


def test_a_bisection_runs_on_several_nodes(slurm: World):
    hold(slurm, "-N2", "-t5")
    noting = on_nodes(slurm, "bisect")
    slurm.write("x.py", noting)
    good = slurm.commit("good")
    for number in range(6):
        slurm.write("n.txt", str(number))
        slurm.commit(f"step {number}")
    slurm.write("x.py", f"{noting}raise ValueError('bad')\n")
    bad = slurm.commit("the bad one")
    found = slurm.rl("bisect", "--slurm", "--good", good, "--", PYTHON, "x.py")
    assert found.returncode == 0, found.stderr
    assert bad[:7] in found.stdout
    assert len(nodes_of(slurm, "bisect")) == 2


def test_a_growth_runs_on_several_nodes(slurm: World):
    hold(slurm, "-N2", "-t5")
    slurm.write("grow.py", f"{on_nodes(slurm, 'grow')}import sys\nassert int(sys.argv[1]) < 20\n")
    grown = slurm.rl("grow", "n=1..64", "--slurm", "--", PYTHON, "grow.py", "{n}")
    assert grown.returncode == 0, grown.stderr
    assert "20" in grown.stdout
    assert len(nodes_of(slurm, "grow")) == 2


def test_a_shrinking_runs_on_several_nodes(slurm: World):
    hold(slurm, "-N2", "-t5")
    slurm.write("rows.txt", "".join(f"{n}\n" for n in range(40)))
    slurm.write(
        "load.py",
        f"{on_nodes(slurm, 'shrink')}import sys\n"
        "if '17' in open(sys.argv[1]).read().split(): raise ValueError('row 17')\n",
    )
    shrunk = slurm.rl("shrink", "rows.txt", "--slurm", "--", PYTHON, "load.py", "rows.txt")
    assert shrunk.returncode == 0, shrunk.stderr
    assert (slurm.project / "rows.small.txt").read_text().strip() == "17"
    assert len(nodes_of(slurm, "shrink")) == 2


def test_repetitions_go_to_all_nodes(slurm: World):
    hold(slurm, "-N3", "-t5")
    slurm.write("x.py", on_nodes(slurm, "repeat"))
    done = slurm.rl("repeat", "9", "--slurm", "--json", "--", PYTHON, "x.py")
    assert done.returncode == 0, done.stderr + done.stdout
    assert json.loads(done.stdout)["rates"][0]["runs"] == 9
    assert len(nodes_of(slurm, "repeat")) == 3


@pytest.mark.parametrize("next_one", [(), ("run",), ("repeat", "1", "--slurm")])
def test_when_the_rl_of_a_search_is_killed_nothing_runs_on(
    slurm: World, cluster: Cluster, next_one: tuple[str, ...]
):
    """Also when nobody of ours is left to end it, as with the machine that it was asked from."""
    job = hold(slurm, "-N2", "-t5")
    slurm.write("still.py", _STILL.replace("SLURM_PROCID", "SLURMD_NODENAME"))
    running = slurm.start(["rl", "repeat", "8", "--slurm", "--", PYTHON, "still.py"])
    cluster.until(lambda: len([*slurm.project.glob("there-*")]) == 2)
    others = [one.pid for one in below(running.pid, processes())] if next_one else []
    for end in (signal.SIGSTOP, signal.SIGKILL):  # so that none can act on the end of another
        for pid in (running.pid, *others):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, end)
    running.communicate(timeout=300)
    if next_one:
        assert len(others) >= 6, "workers, guards and sruns"
        assert len(tasks_left(slurm)) == 2
        after = slurm.rl(*next_one, "--", "true")
        assert after.returncode == 0, after.stderr
    cluster.until(lambda: not tasks_left(slurm) and not cluster.steps(job))
    assert cluster.state(job) == "RUNNING"


def test_a_busy_machine_would_be_this_one_and_not_the_nodes(slurm: World):
    hold(slurm, "-N1", "-t5")
    for mode in ("load", "core+load", "all"):
        done = slurm.rl("repeat", "2", "--slurm", "--perturb", mode, "--", "true")
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert (
            "--perturb load keeps this machine busy, and --slurm runs it on others" in done.stderr
        )
        assert "--perturb switch,lines,core" in done.stderr


def test_one_core_of_a_node_holds_for_a_program_that_is_not_python(slurm: World):
    hold(slurm, "-N1", "-c2", "-t5")
    line = "echo $(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status) >> cpus"
    words = ("--srun=-c2", "--perturb", "core", "--", "sh", "-c", line)
    done = slurm.rl("repeat", "2", *words)
    assert done.returncode == 0, done.stderr + done.stdout
    said = (slurm.project / "cpus").read_text().split()
    assert len([one for one in said if one.isdecimal()]) == 2, said
    assert len(said) == 4


def test_the_orders_of_a_race_are_searched_on_all_nodes(slurm: World, cluster: Cluster):
    job = hold(slurm, "-N2", "-t5")
    slurm.write(
        "pay.py",
        "import os, threading\nopen('on-' + os.environ['SLURMD_NODENAME'], 'w').close()\n"
        + path_of("lost_update").read_text(),
    )
    done = slurm.rl("race", "--slurm", "--json", "--", PYTHON, "pay.py")
    assert done.returncode == 1, done.stderr + done.stdout
    seed = json.loads(done.stdout)["failing"]["seed"]
    assert "AssertionError: balance" in done.stdout
    assert len([*slurm.project.glob("on-node*")]) == 2
    again = slurm.rl("race", "--seed", str(seed), "-n", "4", "--json")
    assert json.loads(again.stdout)["failing"]["seed"] == seed, again.stderr
    assert not cluster.steps(job)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_race_that_is_ended_leaves_nothing_on_the_nodes(
    slurm: World, cluster: Cluster, end: signal.Signals
):
    job = hold(slurm, "-N2", "-t5")
    slurm.write(
        "still.py",
        "import threading\nthreads = [threading.Thread(target=print) for _ in range(2)]\n"
        "[one.start() for one in threads]\n[one.join() for one in threads]\n",
    )
    running = slurm.start(["rl", "race", "--slurm", "-n", "100000", "--", PYTHON, "still.py"])
    cluster.until(lambda: (slurm.journal / "searches/1/probes.jsonl").exists())
    assert len(cluster.steps(job)) == 2
    os.kill(running.pid, end)
    running.communicate(timeout=300)
    assert running.returncode == (130 if end is signal.SIGINT else -end)
    cluster.until(lambda: not tasks_left(slurm) and not cluster.steps(job))
    assert cluster.state(job) == "RUNNING"


def test_a_race_whose_allocation_is_cancelled_ends_and_says_so(slurm: World, cluster: Cluster):
    job = hold(slurm, "-N2", "-t5")
    slurm.write(
        "long.py",
        "import os, threading, time\n"
        "if os.path.exists('on'):\n    open('held', 'w').close()\n    open('fifo').close()\n"
        "threads = [threading.Thread(target=print) for _ in range(2)]\n"
        "[one.start() for one in threads]\n[one.join() for one in threads]\n",
    )
    os.mkfifo(slurm.project / "fifo")
    running = slurm.start(["rl", "race", "--slurm", "-n", "100000", "--", PYTHON, "long.py"])
    cluster.until(lambda: (slurm.journal / "searches/1/probes.jsonl").exists())
    (slurm.project / "on").touch()
    cluster.until(lambda: (slurm.project / "held").exists())
    cluster.run("scancel", job)
    told, said = running.communicate(timeout=300)
    assert running.returncode == 0, said
    assert f"allocation {job} was cancelled".encode() in told
    assert b"rl race --resume" in told
    assert b"Traceback" not in said


# --- the fixture itself ---------------------------------------------------------------------------


def test_the_slurm_of_a_run_that_was_killed_ends_with_it(cluster: Cluster, tmp_path: Path):
    folder = Path(f"/tmp/rl-slurm-test-{os.getpid()}")
    script = Path(__file__).parent.parent.parent / "scripts" / "slurm.py"
    owner = subprocess.Popen(["sleep", "60"])
    words = [PYTHON, str(script), "up", "--dir", str(folder), "--nodes", "2"]
    done = subprocess.run([*words, "--while", str(owner.pid)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"export SLURM_CONF={folder}/slurm.conf\n"
    pids = json.loads((folder / "state.json").read_text())["pids"].values()
    owner.kill()
    owner.wait()
    cluster.until(lambda: not folder.exists())
    assert not [*filter(is_alive, pids)]


def test_it_is_brought_up_and_taken_down_by_hand(cluster: Cluster):
    folder = Path(f"/tmp/rl-slurm-hand-{os.getpid()}")
    script = Path(__file__).parent.parent.parent / "scripts" / "slurm.py"

    def by_hand(what: str, *words: str) -> subprocess.CompletedProcess[str]:
        line = [PYTHON, str(script), what, "--dir", str(folder), *words]
        return subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)

    done = by_hand("up", "--nodes", "3")
    try:
        assert (done.returncode, done.stdout) == (0, f"export SLURM_CONF={folder}/slurm.conf\n")
        pids = json.loads((folder / "state.json").read_text())["pids"].values()
        env = {**cluster.env, "SLURM_CONF": f"{folder}/slurm.conf"}
        there = subprocess.run(
            ["srun", "-N3", "sh", "-c", "echo $SLURMD_NODENAME"],
            env=env, capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
        assert len({*there.stdout.split()}) == 3
        assert by_hand("up", "--nodes", "3").returncode == 0, "it is up already"
    finally:
        down = by_hand("down")
    assert down.returncode == 0, down.stderr
    assert not folder.exists()
    assert not [*filter(is_alive, pids)]
    assert by_hand("down").stdout == "none is running\n"
