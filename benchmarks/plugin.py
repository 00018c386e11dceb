"""What the plugin costs a run of pytest in which nothing fails and nothing is asked."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from statistics import median

from benchmarks import install
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

NEEDS = ("pytest==9.2.0", "pytest-cov==7.1.0", "pytest-xdist==3.8.0", "hypothesis==6.170.15")
NAMES = {
    "relaunch": "relaunch",
    "xdist": "pytest-xdist",
    "pytest_cov": "pytest-cov",
    "hypothesispytest": "hypothesis",
}
MOST_MS = 2.0
PROJECT = '[project]\nname = "pkg"\nversion = "1"\n[tool.pytest.ini_options]\ntestpaths = ["."]\n'
TIMER = """\
import importlib.metadata, json, time

BEFORE = ("pytest_addoption", "pytest_addhooks", "pytest_load_initial_conftests",
          "pytest_configure", "pytest_sessionstart")
OF = {"relaunch-session": "relaunch", "_cov": "pytest_cov", "dsession": "xdist"}
spent = {}
load = importlib.metadata.EntryPoint.load

def add(name, began):
    spent[name] = spent.get(name, 0) + time.perf_counter() - began

def timed(entry):
    began = time.perf_counter()
    try:
        return load(entry)
    finally:
        add(entry.name, began)

importlib.metadata.EntryPoint.load = timed

def pytest_plugin_registered(plugin, plugin_name, manager):
    name = OF.get(plugin_name, plugin_name)
    if name not in spent:
        return
    for caller in manager.get_hookcallers(plugin) or ():
        for hook in caller.get_hookimpls():
            is_plain = not (hook.wrapper or hook.hookwrapper)
            if hook.plugin is plugin and is_plain and caller.name in BEFORE:
                hook.function = wrapped(hook.function, name)

def wrapped(function, name):
    def call(*args):
        began = time.perf_counter()
        try:
            return function(*args)
        finally:
            add(name, began)
    return call

def pytest_unconfigure():
    print("spent", json.dumps(spent))
"""


def of_a_run(run: Run) -> Table:
    """Time what each plugin does, loading and hooks, in a run of one test that passes."""
    stamp = install.digest_of_the_source()
    env = install.venv("plugin", run.python, [*NEEDS, str(install.CHECKOUT)], stamp=stamp)
    folder = run.work / "plugin"
    (folder / "src" / "pkg").mkdir(parents=True)
    (folder / "src" / "pkg" / "__init__.py").write_text("")
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "test_it.py").write_text("import pkg\n\ndef test():\n    assert pkg\n")
    (folder / "timer.py").write_text(TIMER)
    took: dict[str, list[float]] = {name: [] for name in NAMES}
    for _ in range(run.rounds + 1):
        spent = _run_once(run, folder, str(env / "python"))
        for name, times in took.items():
            times.append(spent[name])
    table = Table(
        name="plugin",
        title="A plugin of pytest that is not used",
        columns=("plugin", "median ms"),
        figure="least ms",
        notes=[
            "Loading it and its hooks up to the first test, in a run of one that imports the",
            "project's package; from wheels. The first run, which writes bytecode, does not count.",
        ],
    )
    run.samples["plugin"] = {name: [{"s": one} for one in times] for name, times in took.items()}
    for name, times in took.items():
        cells = (NAMES[name], f"{median(times[1:]) * 1e3:.2f}")
        at_most = MOST_MS if name == "relaunch" else None
        table.rows.append(Row(cells=cells, ratio=min(times[1:]) * 1e3, at_most=at_most))
    return table


def _run_once(run: Run, folder: Path, python: str) -> dict[str, float]:
    env = {**install.plain_environment(run.work), "PYTHONPATH": str(folder)}
    command = [python, "-m", "pytest", "-q", "-s", "-p", "timer", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("spent "):
            found: dict[str, float] = json.loads(line.removeprefix("spent "))
            return found
    raise Unmeasured(f"pytest: {(done.stdout + done.stderr)[-300:]}")
