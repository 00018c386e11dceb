"""Installs relaunch and each peer in a virtual environment of its own, once, under `.bench/`."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.spend import Unmeasured

CHECKOUT = Path(__file__).resolve().parent.parent
ROOT = CHECKOUT / ".bench"

PEERS: dict[str, tuple[str, ...]] = {
    "dvc": ("dvc==3.67.1",),
    "guild": ("guildai==0.9.0", "setuptools<81"),  # it imports pkg_resources, gone from 81 on
    "wandb": ("wandb==0.31.0",),
    "sacred": ("sacred==0.8.7", "setuptools<81"),  # likewise
    "hydra": ("hydra-core==1.3.8",),
    "polars": ("polars==2.1.0",),
    "duckdb": ("duckdb==2.0.0",),
}


def venv(
    name: str,
    python: str,
    wanted: Sequence[str] = (),
    *,
    stamp: str = "",
    without: Sequence[str] = (),
) -> Path:
    """Return the environment's `bin`, made anew unless it already holds exactly this."""
    home = ROOT / name
    stamp = "\n".join([stamp, _version(python), *wanted, *without])
    note = home / "holds.txt"
    if not note.exists() or note.read_text() != stamp:
        print(f"installing {name} ...", file=sys.stderr, flush=True)
        shutil.rmtree(home, ignore_errors=True)
        _run(name, [python, "-m", "venv", str(home)])
        if wanted:
            pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet"]
            _run(name, [*pip, "--disable-pip-version-check", *wanted])
        if without:
            pip = [str(home / "bin" / "python"), "-m", "pip", "uninstall", "--quiet", "--yes"]
            _run(name, [*pip, *without])
        note.write_text(stamp)
    return home / "bin"


def peer(name: str, python: str) -> Path:
    """Install a peer at its pinned version."""
    return venv(name, python, PEERS[name])


def relaunch(python: str) -> Path:
    """Install this checkout as `uv tool` or `pipx` does: compiled, in an environment of its own.

    Those hold nothing else; the setuptools that `venv` adds before 3.12 slows every start there.
    """
    stamp = digest_of_the_source()
    wanted = [f"{CHECKOUT}[stacks]"]
    return venv("relaunch", python, wanted, stamp=stamp, without=("setuptools",))


def bare(python: str) -> Path:
    """Make an environment with nothing in it."""
    return venv("bare", python)


def with_torch() -> str:
    """Return a Python that has torch: the one that is named, or that of `make torch`."""
    python = os.environ.get("RELAUNCH_TORCH_PYTHON") or str(CHECKOUT / ".venv-torch/bin/python")
    if not shutil.which(python):
        raise Unmeasured("no Python with torch: make torch, or RELAUNCH_TORCH_PYTHON")
    return python


def plain_environment(home: Path, *bins: Path) -> dict[str, str]:
    """Return an environment in which nothing of this person's settings changes a figure."""
    path = os.pathsep.join([*map(str, bins), os.environ.get("PATH", os.defpath)])
    return {
        "PATH": path,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        "COLUMNS": "80",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "bench",
        "GIT_AUTHOR_EMAIL": "bench@example.com",
        "GIT_COMMITTER_NAME": "bench",
        "GIT_COMMITTER_EMAIL": "bench@example.com",
        "DVC_NO_ANALYTICS": "1",
        "WANDB_MODE": "offline",
        "DO_NOT_TRACK": "1",
    }


def git(cwd: Path, env: dict[str, str], *arguments: str) -> None:
    """Run git there; its fault is a measurement that could not be made."""
    _run("git", ["git", "-C", str(cwd), *arguments], env)


def command(cwd: Path, env: dict[str, str], *argv: str) -> None:
    """Run a preparing command there."""
    _run(argv[0], list(argv), env, cwd)


def _run(
    name: str, argv: list[str], env: dict[str, str] | None = None, cwd: Path | None = None
) -> None:
    if env is None:
        env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode:
        said = (done.stdout + done.stderr).decode(errors="replace").strip()[-600:]
        raise Unmeasured(
            f"{name}: `{' '.join(argv[-3:])}` ended with {done.returncode}: {said[-600:]}"
        )


def _version(python: str) -> str:
    return subprocess.check_output([python, "-VV"], text=True)


def digest_of_the_source() -> str:
    digest = hashlib.sha256()
    files = [CHECKOUT / "pyproject.toml"]
    for room in ("src", "bin"):
        files += sorted(path for path in (CHECKOUT / room).rglob("*") if path.is_file())
    for path in files:
        if path.suffix != ".pyc":
            digest.update(str(path.relative_to(CHECKOUT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
