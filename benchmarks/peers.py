"""The smallest use of each peer that its own documentation shows, for the same one-line program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.install import command

SAID = "loss 1.0"
BARE = f'print("{SAID}")\n'

WANDB = f"""import wandb
with wandb.init(project="bench") as run:
    run.log({{"loss": 1.0}})
    print("{SAID}")
"""

SACRED = f"""from sacred import Experiment
from sacred.observers import FileStorageObserver
ex = Experiment("train")
ex.observers.append(FileStorageObserver("runs"))
@ex.automain
def main():
    print("{SAID}")
"""

HYDRA = f"""import hydra
@hydra.main(version_base=None)
def main(cfg):
    print("{SAID}")
main()
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Peer:
    """How one peer is put around the program."""

    name: str
    argv: tuple[str, ...]
    script: str = BARE
    set_up: Callable[[Path, dict[str, str]], None] = lambda _cwd, _env: None
    """Done once in the repository, not measured."""
    leaves: str = ""
    """A pattern, from the repository, of what a run leaves: the proof that it recorded."""
    what: str = ""


def _dvc(cwd: Path, env: dict[str, str]) -> None:
    command(cwd, env, "dvc", "init", "--quiet")
    command(cwd, env, "dvc", "config", "core.analytics", "false")
    command(cwd, env, "dvc", "config", "core.check_update", "false")
    command(cwd, env, "dvc", "stage", "add", "-n", "train", "-d", "train.py", "python train.py")


PEERS = [
    Peer(
        name="dvc",
        argv=("dvc", "exp", "run"),
        set_up=_dvc,
        leaves=".git/refs/exps/*/*/*",
        what="dvc exp run",
    ),
    Peer(
        name="guild",
        argv=("guild", "run", "train.py", "--yes"),
        leaves="../home-guild/.guild/runs/*",
        what="guild run",
    ),
    Peer(
        name="wandb",
        argv=("python", "train.py"),
        script=WANDB,
        leaves="wandb/offline-run-*",
        what="W&B offline",
    ),
    Peer(name="sacred", argv=("python", "train.py"), script=SACRED, leaves="runs/*", what="Sacred"),
    Peer(
        name="hydra", argv=("python", "train.py"), script=HYDRA, leaves="outputs/*/*", what="Hydra"
    ),
]
