"""The words of launchers: the one program behind them, and the world of one it is told of."""

import pytest

from relaunch.errors import UsageError
from relaunch.inside.single.environ import WORLD_OF_ONE
from relaunch.trial.place.oneprocess import collapse

PYTHON = "/venv/bin/python"


def collapsed(line, env=None):
    return collapse(line.split(), env or {}, python=lambda _words: PYTHON)


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("torchrun --nproc-per-node 8 train.py --workers 8", "-u train.py --workers 8"),
        ("torchrun --nproc_per_node=8 --nnodes 2 --rdzv-id 3 train.py", "-u train.py"),
        ("torchrun --standalone --nproc-per-node gpu -m pkg.train a", "-u -m pkg.train a"),
        ("torchrun -t 3 -r 1 train.py -m x", "-u train.py -m x"),
        ("python -m torch.distributed.run --nproc-per-node=2 t.py -x", "-u t.py -x"),
        ("python3 -u -m torch.distributed.launch --nnodes 1 t.py a", "-u t.py --local-rank=0 a"),
        ("python -m torch.distributed.launch --use-env t.py a", "-u t.py a"),
        ("accelerate launch --multi_gpu --num_processes 8 t.py --lr 1", "-u t.py --lr 1"),
        ("accelerate launch -m pkg.train", "-u -m pkg.train"),
        ("deepspeed --num_gpus 8 t.py --deepspeed ds.json",
         "-u t.py --local_rank=0 --deepspeed ds.json"),
        ("deepspeed --no_local_rank --include localhost:1 t.py", "-u t.py"),
    ],
)  # fmt: skip
def test_a_launcher_of_python_becomes_one_python(line, program):
    found = collapsed(line)
    assert " ".join(found.argv) == f"{PYTHON} {program}"
    assert found.env["WORLD_SIZE"] == "1"
    assert found.env["RANK"] == found.env["LOCAL_RANK"] == "0"


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("mpirun -np 8 -H a:4,b:4 -x LR=3 --mca btl tcp python t.py -n 4", "python t.py -n 4"),
        ("mpirun --allow-run-as-root --oversubscribe -n 2 ./solver", "./solver"),
        ("mpiexec -n 2 python a.py : -n 2 python b.py", "python a.py"),
        ("srun -n8 -N 2 --gpus-per-node=4 --exclusive python t.py -n 1", "python t.py -n 1"),
        ("srun --ntasks 4 -lu -- python t.py", "python t.py"),
        ("torchrun --no-python --nproc-per-node 4 ./run.sh a", "./run.sh a"),
        ("uv run torchrun --nproc-per-node 4 t.py", "uv run python -u t.py"),
        ("env A=1 nice -n 5 timeout -k 3 60 torchrun t.py",
         f"env A=1 nice -n 5 timeout -k 3 60 {PYTHON} -u t.py"),
        ("srun -N 2 torchrun --nnodes 2 --nproc-per-node 4 t.py", f"{PYTHON} -u t.py"),
    ],
)  # fmt: skip
def test_other_launchers_and_words_in_front_of_them(line, program):
    assert " ".join(collapsed(line).argv) == program


@pytest.mark.parametrize(
    "line", ["python train.py --nproc-per-node 8", "python -m pytest -n 8", "./torchrun.sh", "true"]
)
def test_a_command_without_a_launcher_stays_as_it_is(line):
    found = collapsed(line, {"HOME": "/h"})
    assert " ".join(found.argv) == line
    assert not found.env
    assert not found.said


def test_what_was_collapsed_is_said():
    assert collapsed("torchrun --nproc-per-node 8 --nnodes 2 t.py").said == (
        "torchrun: 8 processes on 2 nodes -> 1, a world of one",
    )
    assert collapsed("mpirun -np 4 python t.py").said == (
        "mpirun: 4 processes -> 1, a world of one",
    )


def test_torchrun_limits_the_threads_as_it_does_itself_and_the_users_number_stays():
    assert collapsed("torchrun --nproc-per-node 8 t.py").env["OMP_NUM_THREADS"] == "1"
    assert "OMP_NUM_THREADS" not in collapsed("torchrun t.py").env
    own = collapsed("torchrun --nproc-per-node 8 t.py", {"OMP_NUM_THREADS": "4"})
    assert "OMP_NUM_THREADS" not in own.env


def test_what_mpirun_sets_for_the_program_is_set():
    assert collapsed("mpirun -n 2 -x LR=3 -genv A b python t.py").env == {"LR": "3", "A": "b"}


def test_a_larger_world_around_us_is_told_as_one():
    found = collapsed("python t.py", {"WORLD_SIZE": "8", "RANK": "5", "SLURM_NTASKS": "4",
                                      "SLURM_PROCID": "3"})  # fmt: skip
    assert found.env == {"WORLD_SIZE": "1", "RANK": "0", "SLURM_NTASKS": "1", "SLURM_PROCID": "0"}
    assert found.said == (
        "WORLD_SIZE=8 in the environment -> 1",
        "SLURM_NTASKS=4 in the environment -> 1",
    )
    assert not collapsed("python t.py", {"WORLD_SIZE": "1", "RANK": "0"}).env


def test_what_accelerate_is_told_reaches_the_program(tmp_path):
    config = tmp_path / "accelerate.yaml"
    config.write_text(
        "distributed_type: FSDP\nmixed_precision: 'bf16'\nnum_processes: 8\nfsdp_config:\n  a: 1\n"
    )
    found = collapsed(f"accelerate launch --config_file {config} t.py", {"HOME": str(tmp_path)})
    assert found.env["ACCELERATE_MIXED_PRECISION"] == "bf16"
    assert found.said == (
        "accelerate launch: 8 processes -> 1, a world of one",
        "accelerate: FSDP is not applied to one process",
    )
    given = collapsed(f"accelerate launch --config_file {config} --mixed_precision fp16 --cpu t.py")
    assert given.env["ACCELERATE_MIXED_PRECISION"] == "fp16"
    assert given.env["ACCELERATE_USE_CPU"] == "true"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("torchrun --nproc-per-node 8", "no script among the words of `torchrun`"),
        ("accelerate launch --multi_gpu", "no script among the words of `accelerate launch`"),
        ("mpirun -n 8", "no program among the words of `mpirun`"),
        ("srun -n 8", "no program among the words of `srun`"),
        ("mpirun --sparkle python t.py", "does not know mpirun's `--sparkle`"),
        ("torchrun --help", "starts no program"),
    ],
)
def test_a_launcher_without_a_program_gets_one_line(line, words):
    with pytest.raises(UsageError, match=words):
        collapsed(line)


def test_the_world_of_one_is_what_torchrun_gives_to_a_single_rank():
    names = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK",
             "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE", "ROLE_NAME", "MASTER_ADDR", "MASTER_PORT",
             "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
             "TORCHELASTIC_MAX_RESTARTS"}  # fmt: skip
    assert set(WORLD_OF_ONE) == names
