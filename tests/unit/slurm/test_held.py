"""What is known of an allocation from its environment alone."""

import os

import pytest

from relaunch.errors import PlaceError, UsageError
from relaunch.recipe import Elsewhere
from relaunch.trial.launch.slurm.ask import read_shares, read_state
from relaunch.trial.launch.slurm.held import (
    Held,
    forget,
    inside,
    keep,
    kept,
    node_names,
    scrubbed,
    stale,
)
from relaunch.trial.launch.slurm.seats import Seat
from relaunch.trial.launch.slurm.step import Step, step_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node1", ["node1"]),
        ("node[1-3]", ["node1", "node2", "node3"]),
        ("a[08-11],b", ["a08", "a09", "a10", "a11", "b"]),
        ("n[1,3-4]x", ["n1x", "n3x", "n4x"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ],
)
def test_node_lists_are_read(text, expected):
    assert node_names(text) == expected


@pytest.mark.parametrize("text", ["n[1-", "n[a-b]", "n[]"])
def test_a_node_list_that_cannot_be_read_is_said_in_one_line(text):
    with pytest.raises(UsageError, match="cannot be read"):
        node_names(text)


def held(**env: str) -> Held:
    return Held(job="7", env={"SLURM_JOB_ID": "7", **env})


@pytest.mark.parametrize(
    ("env", "nodes", "tasks"),
    [
        ({"SLURM_NNODES": "2"}, 2, 2),
        ({"SLURM_NNODES": "2", "SLURM_NTASKS": "8"}, 2, 8),
        ({"SLURM_NNODES": "2", "SLURM_NTASKS_PER_NODE": "4"}, 2, 8),
        ({"SLURM_JOB_NODELIST": "n[1-3]"}, 3, 3),
    ],
)
def test_how_large_it_is(env, nodes, tasks):
    (part,) = held(**env).parts
    assert (part.nodes, part.tasks) == (nodes, tasks)


@pytest.mark.parametrize("env", [{}, {"SLURM_NNODES": "0"}, {"SLURM_NNODES": "many"}])
def test_an_allocation_without_nodes_is_said_in_one_line(env):
    with pytest.raises(UsageError, match="allocation 7 has no nodes"):
        _ = held(**env).parts


def test_components_have_variables_of_their_own():
    env = {"SLURM_HET_SIZE": "2", "SLURM_NNODES_HET_GROUP_0": "1", "SLURM_NTASKS_HET_GROUP_0": "1",
           "SLURM_NNODES_HET_GROUP_1": "2", "SLURM_NTASKS_HET_GROUP_1": "4"}  # fmt: skip
    assert [(part.nodes, part.tasks) for part in held(**env).parts] == [(1, 1), (2, 4)]


def test_all_that_another_job_left_is_scrubbed_but_where_slurm_is():
    env = {"SLURM_JOB_ID": "3", "SLURM_CPU_BIND": "x", "SLURM_CONF": "/c", "HOME": "/h"}
    assert scrubbed(env) == {"SLURM_CONF": "/c", "HOME": "/h"}
    assert stale(env, held()) == ["SLURM_CPU_BIND", "SLURM_JOB_ID"]
    assert stale({"SLURM_JOB_ID": "7", "SLURM_NNODES": "2"}, held()) == []


def test_inside_it_a_program_has_its_variables_and_those_of_its_script():
    found = held(SLURM_NNODES="2", SLURM_CONF="/there").but(variables={"A": "1"})
    env = inside({"SLURM_JOB_ID": "3", "SLURM_CPU_BIND": "x", "HOME": "/h"}, found)
    assert env == {"HOME": "/h", "SLURM_CONF": "/there", "SLURM_JOB_ID": "7", "SLURM_NNODES": "2",
                   "A": "1"}  # fmt: skip
    assert inside({"SLURM_CONF": "/mine"}, found)["SLURM_CONF"] == "/mine"


def test_what_is_kept_is_read_back_and_forgotten(tmp_path):
    (tmp_path / "env").write_bytes(b"SLURM_JOB_ID=7\0SLURM_NNODES=2\0HOME=/x\0")
    assert kept(str(tmp_path)) == held(SLURM_NNODES="2").but(folder=str(tmp_path)), "not noted yet"
    found = held(SLURM_NNODES="2").but(folder=str(tmp_path), ends=5.0, srun=("-K",), pid=3)
    keep(found, str(tmp_path))
    assert kept(str(tmp_path)) == found
    forget(str(tmp_path))
    assert kept(str(tmp_path)) is None


def step(words=(), spread=False, **env) -> list[str]:
    env = {"SLURM_JOB_ID": "7", "RELAUNCH_TRIAL": "m", **env}
    return [*Step(Elsewhere(words=tuple(words), spread=spread), env, ["prog", "x"]).argv()]


def test_srun_is_told_how_many_nodes_and_tasks_always():
    words = step(SLURM_NNODES="2", SLURM_NTASKS="8", SLURM_CPUS_PER_TASK="3")
    assert words[0] == "srun"
    assert words[-2:] == ["prog", "x"]
    assert {"--overlap", "-N2", "-n8", "-c3", "--label"} <= {*words}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["-N1"], {"-N1", "-n4"}),
        (["-n", "1"], {"-N1", "-n1"}),
        (["--ntasks=2"], {"-N2", "-n2"}),
        (["--nodes=2", "-n2"], {"-N2", "-n2"}),
    ],
)
def test_typed_words_say_how_many_of_them(given, expected):
    assert expected <= {*step(given, SLURM_NNODES="2", SLURM_NTASKS="8")}


def test_one_task_is_not_labelled():
    assert "--label" not in step(["-n1"], SLURM_NNODES="2", SLURM_NTASKS="8")


def test_components_run_in_one_step():
    words = step(SLURM_HET_SIZE="2", SLURM_NNODES_HET_GROUP_0="1", SLURM_NNODES_HET_GROUP_1="2")
    cut = words.index(":")
    assert "--het-group=0" in words[:cut]
    assert {"--het-group=1", "-N2"} <= {*words[cut:]}
    assert words[cut - 2 : cut] == words[-2:] == ["prog", "x"]


def test_programs_of_a_search_go_to_nodes_in_turn(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    seats = [Seat(str(tmp_path / "seats"), ["a", "b"]) for _ in range(3)]
    assert [one.node for one in seats] == ["a", "b", "a"]
    seats[1].close()
    assert Seat(str(tmp_path / "seats"), ["a", "b"]).node == "b"
    words = step(spread=True, SLURM_NNODES="2", SLURM_JOB_NODELIST="a,b")
    assert {"-N1", "-n1", "--nodelist=a"} <= {*words}


def test_the_name_of_a_step_is_made_of_the_marker():
    assert step_name("/a/b") == "rl-.a.b"


def test_the_answer_of_scontrol_is_read():
    text = (
        "JobId=7 JobName=a b=c UserId=me(1) JobState=RUNNING Reason=None RunTime=00:00:01"
        " TimeLimit=00:10:00 EndTime=2026-01-02T03:04:05 NodeList=n[1-2] NumNodes=2 NumCPUs=8"
        " CPUs/Task=1 Comment=two words\n"
    )
    state = read_state(text)
    assert (state.word, state.reason, state.nodes, state.cpus) == ("RUNNING", "", 2, 8)
    assert state.node_list == "n[1-2]"
    assert state.ends > 0
    assert state.is_live
    assert not read_state("").is_live


def test_a_batch_script_is_run_once_with_the_variables_of_the_job(tmp_path):
    (tmp_path / "job.sbatch").write_text("#!/bin/bash\n#SBATCH -N2\nsrun hostname\n")
    env = {"SLURM_JOB_ID": "7", "SLURM_NNODES": "2", "SLURM_JOB_NODELIST": "n[1-2]"}
    for argv in (["bash", "job.sbatch", "x"], ["./job.sbatch", "x"]):
        found = Step(Elsewhere(), env, argv, str(tmp_path))
        words = found.argv()
        assert found.tasks == 1
        assert {"-N1", "-n1", "--nodelist=n1", "SLURM_NNODES=2", "SLURM_OVERLAP=1"} <= {*words}
        assert words[-len(argv) :] == tuple(argv)
    assert not Step(Elsewhere(), env, ["cat", "job.sbatch"], str(tmp_path)).is_script


def test_a_component_is_named_to_srun_with_its_nodes():
    env = {"SLURM_HET_SIZE": "2"}
    for number, nodes in enumerate(("n1", "n[2-3]")):
        env[f"SLURM_JOB_NODELIST_HET_GROUP_{number}"] = nodes
    assert Held(job="7", env=env).on_each == {
        "n1": ("-N1", "-n1", "--het-group=0", "--nodelist=n1"),
        "n2": ("-N1", "-n1", "--het-group=1", "--nodelist=n2"),
        "n3": ("-N1", "-n1", "--het-group=1", "--nodelist=n3"),
    }
    alone = {"SLURM_JOB_NODELIST": "n1"}
    assert Held(job="7", env=alone).on_each == {"n1": ("-N1", "-n1", "--nodelist=n1")}


def test_where_the_components_and_tasks_of_a_job_run_is_read():
    text = (
        "JobId=8 HetJobId=7 HetJobOffset=1 JobName=a JobState=RUNNING NodeList=n[2-3]\n"
        "JobId=12 ArrayJobId=9 ArrayTaskId=5 JobName=b c JobState=PENDING NodeList=(null)\n"
    )
    component, task = read_shares(text)
    assert (component.job, component.group, component.node_list) == ("7", 1, "n[2-3]")
    assert (task.job, task.task, task.node_list, task.word) == ("12", "5", "", "PENDING")
    assert read_shares("") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
@pytest.mark.parametrize("is_link", [False, True])
def test_nothing_is_noted_in_a_folder_that_another_user_made(tmp_path, monkeypatch, is_link):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    theirs, mine = tmp_path / f"rl-seats-{os.getuid()}-7", tmp_path / "mine"
    mine.mkdir()
    theirs.symlink_to(mine) if is_link else theirs.mkdir()
    os.lchown(theirs, 54321, 54321)
    step = Step(Elsewhere(), {"SLURM_JOB_ID": "7", "SLURM_NNODES": "1"}, ["true"])
    with pytest.raises(PlaceError, match="belongs to uid 54321"):
        step.prepare()
    assert os.listdir(theirs) == []
