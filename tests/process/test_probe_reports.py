"""What others report of a program is the same with a probe at every line: coverage, pytest."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig

import pytest
from tests.depth import takes_turns
from tests.needs import PYTHONS, every_python

from relaunch.inside.probe import lines
from relaunch.inside.protocol import hooked_env
from relaunch.recipe import Probe
from relaunch.trial.probe.asked import write_asked
from relaunch.trial.probe.seen import read_seen

WORK = '''\
"""Work of many kinds."""
import asyncio
import contextlib
import functools


@functools.cache
def fib(n):
    """Count."""
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


def choose(word):
    match word:
        case "a" | "b":
            return 1
        case str() if len(word) > 3:
            return 2
        case _:
            pass
    for letter in word:
        if letter == "x": break
    else:
        return 3
    while word:
        word = word[1:]
        if word.startswith("y"):
            continue
    return 4


def careful(value):
    try:
        found = 10 / value
    except ZeroDivisionError:
        return "zero"
    except TypeError as error: return str(error)[:5]
    else:
        found += 1
    finally:
        value = None
    return found


@contextlib.contextmanager
def around():
    yield from (n for n in range(1))


class Thing:
    kind = "thing"; other = 3

    @property
    def name(self):
        return (
            self.kind
            + "!"
        )

    def __init__(self, *, never=False):
        if never: raise ValueError(
            "never")
        self.total = sum(
            n
            for n in range(5)
            if n % 2
        )


async def later():
    async def ticks():
        for n in range(3):
            await asyncio.sleep(0)
            yield n
    return [n async for n in ticks()]


def unused():
    return lambda: 1
'''
TESTS = """\
import asyncio
import pytest
import work

@pytest.mark.parametrize("word", ["a", "long", "xy", "q", 3])
def test_choose(word):
    assert work.choose(word) in (1, 2, 3)

def test_rest():
    with work.around():
        assert work.fib(9) == 34
    assert [work.careful(v) for v in (0, "a", 5)] == ["zero", "unsup", 3.0]
    assert work.Thing().name == "thing!"
    assert asyncio.run(work.later()) == [0, 1, 2]

def test_raises():
    work.Thing(never=True)
"""


def _ask(folder, file) -> tuple[str, int]:
    tree = lines.parse(file.read_bytes(), str(file))
    found = []
    for line in lines.lines_with_code(tree):
        found.append(Probe(kind="count", file=str(file), line=line, label="before"))
        found.append(Probe(kind="peek", file=str(file), line=line, after=True, exprs=("1",),
                           last=1, label="after"))  # fmt: skip
    return write_asked(str(folder), found), len(found)


@takes_turns
@every_python
@pytest.mark.parametrize("core", ["ctrace", "pytrace", "sysmon"])
def test_coverage_and_pytest_report_the_same_with_every_line_probed(python, core, tmp_path):
    if (core == "ctrace") != (python == sys.executable) and core != "sysmon":
        pytest.skip("it is compiled for the Python of these tests")
    if core == "sysmon" and "3.11" in PYTHONS and python == PYTHONS["3.11"]:
        pytest.skip("Python has that from 3.12 on")
    project = tmp_path / "project"
    project.mkdir()
    file = project / "work.py"
    file.write_text(WORK)
    (project / "test_work.py").write_text(TESTS)
    reports = []
    for name in ("plain", "probed"):
        seen = tmp_path / name
        seen.mkdir()
        env = {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib"), "COVERAGE_CORE": core,
               "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "100"}  # fmt: skip
        env.pop("PYTEST_ADDOPTS", None)
        if name == "probed":
            asked, count = _ask(seen, file)
            env = hooked_env(env, str(seen), (), asked)
        branches = ["--branch"] if core != "sysmon" else []  # not before 3.14
        run = [python, "-m", "coverage", "run", *branches, "--include", "work.py", "-m", "pytest",
               "-q", "-p", "no:cacheprovider", "-p", "no:relaunch", "--color=no"]  # fmt: skip
        done = subprocess.run(
            run, cwd=project, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1, done.stdout + done.stderr
        told = [line for line in done.stdout.splitlines() if not line.endswith("s ==")]
        told = [re.sub(r"0x[0-9a-f]+| in [0-9.]+s$", "", line) for line in told]
        subprocess.run([python, "-m", "coverage", "json", "-o", "report.json"], cwd=project,
                       env=env, check=True, capture_output=True)  # fmt: skip
        report = json.loads((project / "report.json").read_text())["files"]["work.py"]
        reports.append((told, report, sorted(path.name for path in project.iterdir())))
        if name == "probed":
            hits = read_seen(str(seen), count).hits
            assert len(hits) > 60
    plain, probed = reports
    assert probed[0] == plain[0]
    assert probed[1] == plain[1]
    assert probed[2] == plain[2]


SCRIPT = """\
import os
def work(n):
    os.close(os.open(os.devnull, os.O_RDONLY))
    if n:
        return n
    return None
total = 0
for n in range(3):
    total += work(n) or 0
    with open(os.devnull) as file:
        file.read()
print(total)
if total > 9:
    print("never")
"""


@every_python
def test_a_script_that_is_traced_from_its_start_is_traced_with_probes_too(python, tmp_path):
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    (tmp_path / "sitecustomize.py").write_text("import coverage\ncoverage.process_startup()\n")
    settings = f"[run]\nbranch = true\ninclude = {file}\n"
    (tmp_path / "settings").write_text(settings)
    reports = []
    for name in ("plain", "probed"):
        seen = tmp_path / name
        seen.mkdir()
        path = f"{tmp_path}{os.pathsep}{sysconfig.get_path('purelib')}"
        env = {**os.environ, "PYTHONPATH": path, "COVERAGE_FILE": str(seen / "data"),
               "COVERAGE_CORE": "ctrace" if python == sys.executable else "pytrace"}  # fmt: skip
        traced = {**env, "COVERAGE_PROCESS_START": str(tmp_path / "settings")}
        if name == "probed":
            asked, count = _ask(seen, file)
            traced = hooked_env(traced, str(seen), (), asked)
        done = subprocess.run([python, file], env=traced, capture_output=True, text=True,
                              check=True)  # fmt: skip
        assert done.stdout == "3\n"
        report = seen / "report.json"
        subprocess.run([python, "-m", "coverage", "json", "-o", report], env=env, check=True,
                       cwd=tmp_path, capture_output=True)  # fmt: skip
        (found,) = json.loads(report.read_text())["files"].values()
        reports.append(found)
        if name == "probed":
            assert len(read_seen(str(seen), count).hits) > 15
    assert reports[0]["missing_lines"] == [14]
    assert reports[1] == reports[0]
