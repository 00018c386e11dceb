"""A command whose ranks are imitated: torchrun is taken off, what is no script is refused."""

from __future__ import annotations

import sys

import pytest

from relaunch.errors import UsageError
from relaunch.inside.node.collectives import instead_of
from relaunch.inside.node.rank import environment
from relaunch.recipe import Recipe
from relaunch.trial.launch.ranked_words import Ranked, read_ranked

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ranks are for Linux")


@pytest.fixture
def read(tmp_path):
    (tmp_path / "train.py").write_text("print(1)\n")
    torchrun = tmp_path / "torchrun"
    torchrun.write_text(f"#!{sys.executable}\n")
    torchrun.chmod(0o755)

    def read(*argv: str, ranks: int = 8) -> Ranked:
        words = tuple(sys.executable if word == "python" else word for word in argv)
        recipe = Recipe(argv=words, cwd=str(tmp_path), ranks=ranks)
        return read_ranked(recipe, {"PATH": f"{tmp_path}:/usr/bin:/bin"})

    return read


def test_a_script_keeps_its_words_and_options_of_python(read):
    found = read("python", "-u", "-X", "dev", "train.py", "--lr", "1")
    assert (found.kind, found.target, found.words) == ("script", "train.py", ("--lr", "1"))
    assert found.options == (sys.executable, "-u", "-X", "dev")
    assert found.remarks == ()


def test_a_module_is_a_module(read):
    found = read("python", "-m", "pkg.train", "x")
    assert (found.kind, found.target, found.words) == ("module", "pkg.train", ("x",))


@pytest.mark.parametrize(
    "launcher",
    [
        ("torchrun", "--nproc-per-node", "8", "--master-port", "29501"),
        ("torchrun", "--standalone", "--nproc-per-node=gpu"),
        ("python", "-m", "torch.distributed.run", "--nproc_per_node=8"),
    ],
)
def test_the_words_of_torchrun_are_taken_off(read, launcher):
    found = read(*launcher, "train.py", "--lr", "1")
    assert (found.kind, found.words) == ("script", ("--lr", "1"))
    assert found.target.endswith("/train.py")
    assert found.remarks == ("torchrun is not needed: its words are taken off",)


def test_another_number_of_ranks_than_torchrun_was_told_is_said(read):
    found = read("torchrun", "--nproc-per-node", "4", "train.py", ranks=2)
    assert found.remarks == ("torchrun asks for 4 ranks, --ranks for 2: 2 are run",)


def test_what_sets_variables_is_known_and_what_changes_the_process_stays(read):
    assert read("env", "A=1", "python", "train.py").before == ()
    assert read("env", "A=1", "python", "train.py").env["A"] == "1"
    assert read("nice", "-n", "5", "python", "train.py").before == ("nice", "-n", "5")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("ls",), "--ranks: `ls` is no Python program that can be read"),
        (("python", "-c", "1"), "--ranks takes a script or a module"),
        (("python", "gone.py"), "--ranks: no script `"),
    ],
)
def test_what_is_no_script_is_refused_in_a_line(read, argv, said):
    with pytest.raises(UsageError) as found:
        read(*argv)
    assert found.value.message.startswith(said)
    assert found.value.exit_code == 2


def test_a_rank_has_what_torchrun_gives_it():
    base = {"HOME": "/h", "RELAUNCH_NODE_HOOK": "/r", "CUDA_VISIBLE_DEVICES": ""}
    found = environment(base, 3, 8, 29500)
    said = {"RANK": "3", "LOCAL_RANK": "3", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "OMP_NUM_THREADS": "1",
            "HOME": "/h", "RELAUNCH_HOOK": "/r"}  # fmt: skip
    assert {name: found.get(name) for name in said} == said
    assert "CUDA_VISIBLE_DEVICES" not in found
    assert environment({"OMP_NUM_THREADS": "4"}, 0, 8, 1)["OMP_NUM_THREADS"] == "4"


@pytest.mark.parametrize(
    ("asked", "made"),
    [("nccl", "gloo"), ("undefined", "gloo"), ("cpu:gloo,cuda:nccl", "gloo"), ("gloo", "gloo"),
     ("mpi", "mpi")],
)  # fmt: skip
def test_groups_of_nccl_are_made_with_gloo(asked, made):
    assert instead_of(asked) == made
