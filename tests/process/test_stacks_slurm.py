"""Stacks of all nodes of an allocation, merged here; a node that is lost costs only its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from tests.conftest import World
from tests.process.test_slurm import hold, processes_with
from tests.slurming import Cluster

_RANKS = """\
import os, time

def all_reduce():
    step = 3
    open(f"there-{rank}", "w").close()
    time.sleep(300)

def barrier():
    open(f"there-{rank}", "w").close()
    time.sleep(300)

rank = int(os.environ["SLURM_PROCID"])
barrier() if rank == 5 else all_reduce()
"""


@pytest.fixture
def stuck(slurm_alone: World, cluster: Cluster):
    """Eight ranks on two nodes, one of which waits for something else."""
    slurm = slurm_alone
    job = hold(slurm, "-N2", "-n8", "-t9")
    slurm.write("ranks.py", _RANKS)
    running = slurm.start(["rl", "run", "--slurm", "-q", "--", sys.executable, "ranks.py"])
    cluster.until(lambda: all((slurm.project / f"there-{n}").exists() for n in range(8)))
    yield slurm, job
    running.terminate()
    running.communicate(timeout=300)


def test_the_odd_rank_of_eight_on_two_nodes_is_named(stuck: tuple[World, str]):
    world, job = stuck
    done = world.rl("stacks", "--slurm", "--locals")
    assert done.returncode == 0, done.stderr
    assert f"allocation {job} (2 nodes)" in done.stdout
    assert "7/8" in done.stdout
    assert "1/8" in done.stdout
    assert "all_reduce" in done.stdout
    assert "barrier" in done.stdout
    assert "odd one out" in done.stdout


def test_a_node_that_is_lost_is_named_and_the_others_are_shown(
    stuck: tuple[World, str], cluster: Cluster
):
    world, job = stuck
    nodes = json.loads(world.rl("stacks", "--slurm", "--json").stdout)["processes"]
    lost = sorted({one["node"] for one in nodes})[-1]
    cluster.lose(lost)
    try:
        done = world.rl("stacks", "--slurm", "--timeout", "1")
        assert done.returncode == 0, done.stderr
        assert f"rl: {lost}: " in done.stderr
        assert "all_reduce" in done.stdout
        assert len(cluster.steps(job)) == 1, "that of the ranks: nobody is left who was asked"
        assert f"allocation {job}: running" in world.rl("alloc").stdout
    finally:
        cluster.bring_back(lost)


_WAIT = """\
#!/bin/sh
[ "$SLURMD_NODENAME" = "$LOST" ] || exit 0
: > "$MET"
cat "$MET.fifo"
"""
"""Slurm runs it on each node before the step that asks: the lost one never gets to answer."""


def test_a_node_that_is_lost_while_it_is_asked_is_named_and_nobody_is_left_there(
    stuck: tuple[World, str], cluster: Cluster
):
    world, job = stuck
    first = json.loads(world.rl("stacks", "--slurm", "--json").stdout)["processes"]
    lost = sorted({one["node"] for one in first})[-1]
    prolog, srun = world.write("../wait.sh", _WAIT), world.bin / "srun"
    srun.write_text(f'#!/bin/sh\nexec {shutil.which("srun")} --task-prolog={prolog} "$@"\n')
    for script in (prolog, srun):
        script.chmod(0o755)
    met = world.root / "met"
    os.mkfifo(f"{met}.fifo")
    env = {"LOST": lost, "MET": str(met)}
    for seconds in ("1", "5", "25", "125"):  # on a busy machine it may give up before it is met
        asking = world.start(["rl", "stacks", "--slurm", "--timeout", seconds], env=env)
        cluster.until(lambda asking=asking: met.exists() or asking.poll() is not None)
        asked = [step.split()[1] for step in cluster.steps(job) if "trials" not in step]
        if asked and asking.poll() is None:
            break
        asking.communicate()
        met.unlink(missing_ok=True)
    cluster.lose(lost)
    try:
        shown, said = asking.communicate(timeout=300)
        assert asking.returncode == 0, said
        assert f"rl: {lost}: no answer within ".encode() in said
        assert b"all_reduce" in shown
        for name in asked:
            assert not processes_with(b"srun", name.encode())
        cluster.run("scontrol", "update", f"NodeName={lost}", "State=DOWN", "Reason=lost")
        cluster.until(lambda: cluster.state(job) == "NODE_FAIL")
        after = world.rl("stacks", "--slurm")
        assert after.returncode == 2
        assert f"allocation {job}" in after.stderr
        assert f"allocation {job} is over (node_fail)" in world.rl("alloc").stderr
        cluster.until(lambda: not cluster.steps(job))  # until then Slurm waits for the node itself
    finally:
        cluster.bring_back(lost)


def test_the_nodes_of_all_components_of_a_job_are_read(slurm: World, cluster: Cluster):
    hold(slurm, "-N1", "-n1", "-t9", ":", "-N2", "-n2")
    slurm.write("ranks.py", _RANKS)
    running = slurm.start(["rl", "run", "--slurm", "-q", "--", sys.executable, "ranks.py"])
    cluster.until(lambda: all((slurm.project / f"there-{n}").exists() for n in range(3)))
    try:
        done = slurm.rl("stacks", "--slurm", "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found.get("problems", []) == []
        ranks = [one for one in found["processes"] if "ranks.py" in one["command"]]
        assert sorted(one["rank"] for one in ranks) == [0, 1, 2]
        assert len({one["node"] for one in ranks}) == 3
    finally:
        running.terminate()
        running.communicate(timeout=300)


def submitted(world: World, cluster: Cluster, *words: str, ranks: int, srun: str = "srun") -> str:
    """Have a job that nobody of ours holds; returns it when so many ranks run."""
    world.write("ranks.py", _RANKS)
    script = world.write("job.sh", f"#!/bin/sh\n{srun} {sys.executable} ranks.py\n")
    words = ("sbatch", "--parsable", "-o", "job.out", *words, str(script))
    said = subprocess.run(
        words, cwd=world.project, env=world.env, capture_output=True, text=True, check=True
    )
    cluster.until(lambda: all((world.project / f"there-{n}").exists() for n in range(ranks)))
    return said.stdout.strip()


def test_a_job_that_rl_does_not_hold_is_read_on_all_its_nodes(slurm: World, cluster: Cluster):
    job = submitted(slurm, cluster, "-N2", "-n8", "-t9", ranks=8)
    try:
        done = slurm.rl("stacks", "--job", job)
        assert done.returncode == 0, done.stderr
        assert f"job {job} (2 nodes)" in done.stdout
        assert "7/8" in done.stdout
        assert "odd one out" in done.stdout
        found = json.loads(slurm.rl("stacks", "--job", job, "--json").stdout)["processes"]
        ranks = [one for one in found if one["rank_from"] == "SLURM_PROCID" and one["is_python"]]
        assert sorted(one["rank"] for one in ranks) == [*range(8)]
        assert len({one["node"] for one in ranks}) == 2
        assert not cluster.steps(job)
    finally:
        cluster.run("scancel", job)


def test_a_task_of_an_array_and_the_components_of_a_job_are_read_too(
    slurm: World, cluster: Cluster
):
    several = "srun --het-group=0,1"
    job = submitted(slurm, cluster, "-N1", "-n1", "-t9", ":", "-N1", "-n1", ranks=2, srun=several)
    try:
        done = slurm.rl("stacks", "--job", job)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert f"job {job} (2 nodes)" in done.stdout
        assert "2/2" in done.stdout
    finally:
        cluster.run("scancel", job)
    for rank in range(2):
        (slurm.project / f"there-{rank}").unlink()
    job = submitted(slurm, cluster, "-N2", "-n2", "-t9", "--array=3,5", ranks=2)
    try:
        cluster.until(lambda: [one["JobState"] for one in cluster.job(job)] == ["RUNNING"] * 2)
        which = slurm.rl("stacks", "--job", job)
        assert which.returncode == 2
        assert f"job {job} is an array, of which 2 tasks run: which one?" in which.stderr
        assert f"rl stacks --job {job}_" in which.stderr
        title = f"job {job}_5 (2 nodes)"
        cluster.until(lambda: title in slurm.rl("stacks", "--job", f"{job}_5").stdout)
    finally:
        cluster.run("scancel", job)


def test_a_job_of_which_nothing_runs_is_said_in_one_line(slurm: World, cluster: Cluster):
    said = slurm.rl("stacks", "--job", "987654")
    assert said.returncode == 2
    assert said.stderr == "rl: Slurm knows no job 987654   try: squeue --me\n"
    words = ["sbatch", "--parsable", "-N1", "-t5", "--begin=now+1hour", "--wrap=true"]
    job = cluster.run(*words).strip()
    try:
        waits = slurm.rl("stacks", "--job", job)
        assert waits.returncode == 2
        assert f"job {job} is pending: nothing of it runs" in waits.stderr
        assert len(waits.stderr.splitlines()) == 1
    finally:
        cluster.run("scancel", job)
