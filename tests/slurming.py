"""A real Slurm for tests, started once for all of them, and what they ask of it."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.conftest import World
from tests.needs import missing

_SCRIPT = Path(__file__).parent.parent / "scripts" / "slurm.py"
NODES, CPUS = 4, 16
"""More than this machine has: tests at once do not wait for each other."""


def script() -> ModuleType:
    """Load scripts/slurm.py."""
    spec = importlib.util.spec_from_file_location("slurm_script", _SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Cluster:
    """The Slurm of this test run."""

    def __init__(self, folder: Path, state: Mapping[str, Any]) -> None:
        self.folder = folder
        self.conf: str = state["conf"]
        self.nodes: list[str] = state["nodes"]
        self.is_apart: bool = state["apart"]
        self.env = {
            "SLURM_CONF": self.conf,
            "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin",
        }

    def run(self, *words: str, **more: str) -> str:
        """Run a command of Slurm; returns what it prints."""
        done = subprocess.run(
            words,
            env={**self.env, **more},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def job(self, job: str) -> list[dict[str, str]]:
        """Return the fields of a job; of a heterogeneous one, of each component."""
        lines = self.run("scontrol", "--oneliner", "show", "job", job).splitlines()
        return [_fields(line) for line in lines if line.strip()]

    def state(self, job: str) -> str:
        """Return the state of a job."""
        return self.job(job)[0]["JobState"]

    def steps(self, job: str) -> list[str]:
        """Return the steps of ours that run in a job."""
        said = self.run("squeue", "--steps", "--noheader", "--format=%i %j", f"--jobs={job}")
        return [line for line in said.splitlines() if " rl-" in line]

    def until(self, holds: Any, seconds: float = 300) -> None:
        """Wait until something holds that Slurm tells nobody of."""
        until = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < until, "it did not come to hold"
            time.sleep(0.05)

    def lose(self, node: str) -> None:
        """Have a node die with all that runs on it, unseen by anybody; `bring_back` it."""
        (self.folder / "run" / f"lost-{node}").touch()
        state = script().running(self.folder)
        os.kill(state["pids"][node], signal.SIGKILL)

    def bring_back(self, node: str) -> None:
        """Have a lost node again."""
        (self.folder / "run" / f"lost-{node}").unlink(missing_ok=True)
        words = ("sinfo", "--noheader", "--Node", f"--nodes={node}", "--format=%T")

        def is_back() -> bool:
            state = self.run(*words).split()
            if "down" in state[0]:
                subprocess.run(
                    ["scontrol", "update", f"NodeName={node}", "State=RESUME"],
                    env=self.env, capture_output=True, check=False,
                )  # fmt: skip
            return state[0] in ("idle", "mixed", "allocated")

        self.until(is_back, 60)


def _fields(line: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for word in line.split(" "):
        before, equals, value = word.partition("=")
        if equals and before[:1].isupper():
            name = before
            found.setdefault(name, value)
        elif name:
            found[name] += f" {word}"
    return {name: value.strip() for name, value in found.items()}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One Slurm for the whole run, whoever asks first; it ends with who started the run."""
    slurm = script()
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    owner = os.getppid() if is_worker else os.getpid()
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if is_worker else shared
    folder = Path(tempfile.gettempdir()) / f"rl-slurm-{owner}"
    with open(shared / "slurm.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        why = slurm.up(folder, nodes=NODES, cpus=CPUS, while_pid=owner)
    if why:
        missing(f"no Slurm for this test: {why}")
    state = slurm.running(folder)
    assert state is not None
    yield Cluster(folder, state)
    if not is_worker:
        slurm.down(folder)


@pytest.fixture
def slurm(world: World, cluster: Cluster) -> Iterator[World]:
    """A world in which Slurm is there; nothing of it may be held at the end."""
    with _using(world, cluster, fcntl.LOCK_SH):
        yield world


@pytest.fixture
def slurm_quiet(world: World, cluster: Cluster) -> Iterator[World]:
    """The same without the jobs of other tests: where tasks go depends on the room beside them."""
    with _using(world, cluster, fcntl.LOCK_EX):
        yield world


@pytest.fixture
def slurm_alone(world: World, cluster: Cluster) -> Iterator[World]:
    """The same, for a test that takes nodes away: no other test uses them meanwhile."""
    if not cluster.is_apart:
        missing("nodes that share a host cannot be lost alone; as root they do not")
    with _using(world, cluster, fcntl.LOCK_EX):
        yield world


@contextmanager
def _using(world: World, cluster: Cluster, how: int) -> Iterator[None]:
    """Have Slurm in a world, with or without others; nothing of it is held afterwards."""
    world.env.update(cluster.env, PATH=f"{world.bin}{os.pathsep}{cluster.env['PATH']}")
    with open(cluster.folder / "users.lock", "w") as lock:
        fcntl.flock(lock, how)
        yield
        world.rl("alloc", "--release")


def job_of(world: World) -> str:
    """Return the job that is held."""
    import json

    return str(json.loads(world.rl("alloc", "--json").stdout)["job"])
