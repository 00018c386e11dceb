"""The allocation of a batch script equals what sbatch itself gives, in a real Slurm."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.conftest import World
from tests.depth import takes_turns
from tests.slurming import Cluster

from relaunch.trial.launch.slurm.held import Held, kept


class File(NamedTuple):
    """A script, what is in the shell, and what is typed with it."""

    lines: tuple[str, ...]
    env: dict[str, str] = {}
    words: tuple[str, ...] = ()


def file(*lines: str, words: tuple[str, ...] = (), **env: str) -> File:
    return File(lines, env, words)


FILES = {
    "nothing": file(),
    "nodes": file("#SBATCH --nodes=2"),
    "short options": file("#SBATCH -N2 -n 3 -t5 -Jname"),
    "a range of nodes": file("#SBATCH -N 1-2"),
    "tasks": file("#SBATCH --ntasks=5"),
    "tasks of each node": file("#SBATCH --nodes=2 --ntasks-per-node=3"),
    "cores of a task": file("#SBATCH -n 2", "#SBATCH --cpus-per-task=4"),
    "memory": file("#SBATCH --mem=500M"),
    "memory of a core": file("#SBATCH --mem-per-cpu=100M -n 2"),
    "time in days": file("#SBATCH --time=1-02:03:04"),
    "gres": file("#SBATCH --gres=gpu:2"),
    "GPUs of each node": file("#SBATCH -N2 --gpus-per-node=3"),
    "GPUs of a task": file("#SBATCH -n2 --gpus-per-task=1"),
    "a constraint": file("#SBATCH --constraint=fast"),
    "a list of nodes": file("#SBATCH -w node2"),
    "without a node": file("#SBATCH -N2 --exclude=node1"),
    "a partition": file("#SBATCH -p short"),
    "shares": file("#SBATCH --oversubscribe --overcommit -n 4"),
    "the place of tasks": file("#SBATCH -N2 -n4 --distribution=cyclic --contiguous"),
    "quotes": file('#SBATCH --job-name=\'two words\' --comment="it\'s \\"it\\""'),
    "a hash in quotes": file("#SBATCH --comment='#1' -N2 # and a comment"),
    "a hash in a word": file("#SBATCH -N2#two"),
    "tabs and no blank": file("#SBATCH\t-N\t2", "#SBATCH--ntasks=4"),
    "an empty word ends a line": file('#SBATCH -n 2 "" -N 2'),
    "late directives": file("#SBATCH -N2", "", "  # on", "#SBATCH -n 4", "true", "#SBATCH -t 3"),
    "commented directives": file("##SBATCH -N2", "# SBATCH -N3", "#SBATCH -n 2", "#sbatch -n 9"),
    "twice": file("#SBATCH -n 2 -t 9", "#SBATCH -n 3"),
    "abbreviated": file("#SBATCH --part=short --ntasks-per-n=2 --nodes 2"),
    "an array": file("#SBATCH --array=3-9:2%2 -n 2"),
    "an array by words": file("#SBATCH -a 1,4 -N2", words=("-t", "7")),
    "where its output goes": file("#SBATCH -o out.%j --error=err -i /dev/null", "#SBATCH -N2"),
    "what only sbatch has": file("#SBATCH --requeue --parsable --open-mode=append -n 2"),
    "variables for the job": file("#SBATCH --export=ALL,MINE=1 -n 2"),
    "limits that are passed on": file("#SBATCH --propagate=NOFILE -n 2"),
    "a signal for the shell": file("#SBATCH --signal=B:USR1@60 -n 2"),
    "a folder": file("#SBATCH --chdir=/tmp"),
    "mail and nice": file("#SBATCH --mail-user=me@example.org --mail-type=NONE --nice=5"),
    "a variable of sbatch": file("#SBATCH -n 2", SBATCH_PARTITION="short"),
    "a variable over a directive": file("#SBATCH -t 9", SBATCH_TIMELIMIT="4"),
    "a word over a variable": file("#SBATCH -t 9", SBATCH_TIMELIMIT="4", words=("-t", "3", "-N2")),
    "variables that salloc reads": file("#SBATCH -n 2", SALLOC_PARTITION="short"),
    "what another job left": file("#SBATCH -n 2", SLURM_NTASKS_PER_NODE="1", SLURM_JOB_ID="9999"),
    "a heterogeneous job": file("#SBATCH -N1 -n2", "#SBATCH hetjob", "#SBATCH -N2 -n4 --mem=100M"),
    "components in one line": file("#SBATCH -n1 -t 9", "#SBATCH packjob -n3", "#SBATCH hetjob"),
}
_VOLATILE = {
    "JobId", "HetJobId", "HetJobIdSet", "ArrayJobId", "ArrayTaskId", "ArrayTaskThrottle",
    "JobState", "Reason", "Requeue", "Restarts", "BatchFlag", "BatchHost", "ExitCode", "RunTime",
    "SubmitTime", "EligibleTime", "AccrueTime", "StartTime", "EndTime", "LastSchedEval",
    "PreemptEligibleTime", "PreemptTime", "Deadline", "SuspendTime", "SecsPreSuspend", "Scheduler",
    "AllocNode:Sid", "Priority", "NodeList", "Command", "StdErr", "StdIn", "StdOut", "Power",
}  # fmt: skip
"""What differs between any two jobs, or only a batch job has."""
_COMPARED = (
    "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_TASKS_PER_NODE",
    "SLURM_CPUS_PER_TASK", "SLURM_NTASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE", "SLURM_JOB_NAME",
    "SLURM_JOB_PARTITION", "SLURM_MEM_PER_CPU", "SLURM_MEM_PER_NODE", "SLURM_GPUS_PER_NODE",
    "SLURM_GPUS_PER_TASK", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN",
    "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP", "SLURM_HET_SIZE", "SLURM_DISTRIBUTION", "MINE",
)  # fmt: skip


def text_of(one: File, out: Path) -> str:
    body = [f"o={out}$SLURM_ARRAY_TASK_ID", "env -0 >$o.part", "mv $o.part $o", ""]
    return "\n".join(["#!/bin/sh", *one.lines, *body])


@takes_turns
@pytest.mark.parametrize("name", FILES)
def test_the_allocation_equals_what_sbatch_gives(
    slurm_quiet: World, cluster: Cluster, tmp_path: Path, name: str
):
    one = FILES[name]
    theirs, batch_env = _batched(cluster, one, tmp_path)
    ours_job, ours, held = _held(slurm_quiet, cluster, one)
    assert ours == theirs
    ours_env = {**held.env, **held.variables}
    for variable in _COMPARED:
        pair = [env.get(variable, "") for env in (ours_env, batch_env)]
        if variable.endswith("S_PER_NODE"):  # which node has how many is a matter of the moment
            pair = [str(_total(value)) for value in pair]
        assert pair[0] == pair[1], variable
    assert held.parts[0].nodes == int(batch_env["SLURM_NNODES"])
    released = slurm_quiet.rl("alloc", "--release")
    assert released.stdout == f"allocation {ours_job} is given back\n"


def _batched(
    cluster: Cluster, one: File, folder: Path
) -> tuple[list[dict[str, str]], dict[str, str]]:
    """Hand it to sbatch; returns what Slurm says of the job, and what the job had as variables."""
    path = folder / "job.sbatch"
    path.write_text(text_of(one, folder / "out"))
    clean = {n: v for n, v in one.env.items() if not n.startswith(("SLURM_", "SALLOC_"))}
    done = subprocess.run(
        ["sbatch", "--parsable", *one.words, path.name],
        env={**cluster.env, **clean}, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    job = done.stdout.strip().partition(";")[0]
    assert job.isdecimal(), f"sbatch itself refuses it: {done.stderr}"
    cluster.until(lambda: _is_over(cluster, job), 60)
    first = min(folder.glob("out*"), key=lambda path: (len(path.name), path.name))
    words = first.read_text().split("\0")
    env = dict(word.split("=", 1) for word in words if "=" in word)
    return _compared(cluster.job(job), folder), env


def _held(slurm: World, cluster: Cluster, one: File) -> tuple[str, list[dict[str, str]], Held]:
    """Have rl hold it; returns the job, what Slurm says of it, and what rl keeps."""
    slurm.write("job.sbatch", text_of(one, slurm.root / "never"))
    words = ("--", *one.words) if one.words else ()
    done = slurm.rl("alloc", "--json", "job.sbatch", *words, env=one.env)
    assert done.returncode == 0, done.stderr
    job = str(json.loads(done.stdout)["job"])
    held = kept(str(slurm.journal / "allocation"))
    assert held is not None
    return job, _compared(cluster.job(job), slurm.project), held


def _total(text: str) -> int:
    """Add up `2(x3),1`; what is no number of things counts nothing."""
    found = re.findall(r"(\d+)(?:\(x(\d+)\))?", text)
    return sum(int(count) * int(times or 1) for count, times in found)


def _is_over(cluster: Cluster, job: str) -> bool:
    """Tell whether a job gave back its nodes: until then Slurm counts only those it still has."""
    return all(one["JobState"] in ("COMPLETED", "FAILED", "CANCELLED") for one in cluster.job(job))


def _compared(job: list[dict[str, str]], folder: Path) -> list[dict[str, str]]:
    """Return what must be equal; of an array, of one element."""
    if "ArrayJobId" in job[0]:
        job = job[:1]
    found = [{n: v for n, v in part.items() if n not in _VOLATILE} for part in job]
    for part in found:
        if part.get("WorkDir") == str(folder):
            part["WorkDir"] = "(where it was typed)"
    return sorted(found, key=str) if len(found) > 1 else found


def test_there_are_at_least_thirty_files():
    assert len(FILES) >= 30
