"""Runs a program in a fresh process and in forks of one that has its libraries; for comparing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.conftest import World

from relaunch.inside.protocol import IMPORTED, hooked_env
from relaunch.proc import workers
from relaunch.proc.tree import MARKER
from relaunch.recipe import Limits, Recipe
from relaunch.trial import engine
from relaunch.trial.launch import forks
from relaunch.trial.place.syspath import asking_pytest

LEARNING = "learning"
"""A file that is there while a program only shows what it imports."""
_PACKAGES = ".pytest-packages.pth"


def environment(world: World, **libraries: str) -> str:
    """Make an environment with these modules installed, and pytest; returns its Python."""
    folder = world.root / "env"
    venv.create(folder, with_pip=False, symlinks=True)
    site = next((folder / "lib").iterdir()) / "site-packages"
    (site / _PACKAGES).write_text(sysconfig.get_paths()["purelib"] + "\n")
    for name, text in libraries.items():
        (site / f"{name}.py").write_text(text)
    return str(folder / "bin/python")


def both(world: World, argv: Sequence[str], **more: Any) -> tuple[Any, list[Any]]:
    """Run a command in the project, fresh and in two forks; returns what was seen each time."""
    root = tempfile.mkdtemp(dir=world.root)
    spec = {"argv": list(argv), "cwd": str(world.project), "root": root, **more}
    here = str(Path(__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", "from tests.forking import main; main()", json.dumps(spec)],
        env={**world.env, "PYTHONPATH": here}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    cold, *forked = json.loads(done.stdout)
    return cold, forked


def main() -> None:
    """Run what the one argument says."""
    spec = json.loads(sys.argv[1])
    forks.WORTH_S = 0.0
    recipe = Recipe(
        argv=tuple(spec["argv"]), cwd=spec["cwd"], limits=Limits(timeout_s=spec.get("timeout_s"))
    )
    env = {**os.environ, **spec.get("env", {})}
    env.pop("PYTHONPATH")
    env = asking_pytest(env, recipe.argv, recipe.cwd)
    learning = os.path.join(spec["cwd"], LEARNING)
    with open(learning, "w", encoding="ascii"):
        learnt = _in_worker(spec, recipe, env, "0-learning", None)
    os.unlink(learning)
    noted, start = learnt["noted"], learnt["start"]
    for name, text in spec.get("later", {}).items():
        Path(spec["cwd"], name).write_text(text, encoding="utf-8")
    cold = _in_worker(spec, recipe, env, "1-cold", None)
    zygote = forks.Zygote(
        forks.Start(argv=recipe.argv, cwd=recipe.cwd, env=start),
        forks.Noted(
            argv=tuple(noted["argv"]),
            path=tuple(noted["path"]),
            modules=tuple(tuple(one) for one in noted["modules"]),
        ),
        (spec["cwd"], spec["cwd"]),
        os.path.join(spec["root"], "forks"),
    )
    try:
        found = [_in_worker(spec, recipe, env, f"{n}-forked", zygote.fork) for n in (2, 3)]
    finally:
        zygote.close()
    print(json.dumps([{**cold, "noted": None, "start": None}, *found]))


def _in_worker(
    spec: dict[str, Any], recipe: Recipe, env: dict[str, str], name: str, fork: forks.Fork | None
) -> dict[str, Any]:
    """Run it where `rl bisect` would: in a worker."""
    reports = os.path.join(spec["root"], "probes", name, "reports")
    os.makedirs(reports)

    def work(marker: str) -> bytes:
        roots = os.pathsep.join((spec["cwd"], spec["cwd"]))
        told = _run(recipe, {**env, IMPORTED: roots, MARKER: marker}, reports, fork)
        return json.dumps(told).encode()

    worker = workers.Worker(work)
    while True:
        workers.wait([worker])
        answer = worker.read()
        if answer is not None:
            return dict(json.loads(answer))


def _run(
    recipe: Recipe, env: dict[str, str], reports: str, fork: forks.Fork | None
) -> dict[str, Any]:
    output: list[tuple[int, bytes]] = []
    world = engine.World(env=env, reports=reports, project=(recipe.cwd,), quiet=True, fork=fork)
    try:
        result = engine.run_trial(
            recipe, world, record=lambda _, stream, data: output.append((stream, data))
        )
    except forks.NotForked as error:
        return {"why": str(error)}
    outcome, signature = result.outcome, result.outcome.signature
    told: dict[str, Any] = {
        "code": outcome.exit_code,
        "signal": outcome.signal,
        "timed_out": outcome.timed_out,
        "signature": [signature.kind, signature.title, signature.digest] if signature else None,
        "output": [
            b"".join(data for stream, data in output if stream == wanted).decode()
            for wanted in (1, 2)
        ],
        "left": len(outcome.ended_processes),
    }
    noted = forks.read_noted(reports, os.getpid()) if fork is None else None
    told["noted"] = dict(vars(noted)) if noted else None
    told["start"] = hooked_env(env, reports) if fork is None else None
    return told
