"""`rl bisect` over commits that the command's Python cannot run, and another one can."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tests.bisecting import REPRO, add_commits, bisect, outside
from tests.building import Package
from tests.depth import takes_turns
from tests.needs import INSTALLED, missing

NEWER = next((path for version, path in INSTALLED.items() if version != "3.11"), "")
OLD = "import imp\n"
"""What only Python 3.11 and older can import."""


@pytest.fixture
def both(world):
    """A world in which Python 3.11 is found, for commands of a newer one."""
    if "3.11" not in INSTALLED or not NEWER:
        missing("this test needs Python 3.11 and a newer one")
    for version, path in INSTALLED.items():
        (world.root / "pyenv/versions" / version / "bin").mkdir(parents=True)
        (world.root / "pyenv/versions" / version / "bin/python").symlink_to(path)
    world.env["PYENV_ROOT"] = str(world.root / "pyenv")
    world.env["UV_OFFLINE"] = world.env["PIP_NO_INDEX"] = "1"
    world.env["PATH"] = f"{os.path.dirname(sys.executable)}{os.pathsep}{world.env['PATH']}"
    return world


def found(world, ids, *words, command):
    return json.loads(bisect(world, ids[0], ids[-1], "--json", *words, command=command))


def work(number, culprit, head=""):
    fails = "raise ValueError('broken')" if number >= culprit else "pass"
    return f"{head}def work():\n    {fails}\n\n\nversion = {number}\n"


@takes_turns
def test_commits_for_an_older_python_are_run_with_one(both):
    ids = add_commits(both, lambda n: work(n, 5, OLD if n < 9 else ""), 12)
    command = [NEWER, outside(both, REPRO)]
    answer = found(both, ids, command=command)
    assert answer["commit"] == ids[5]
    assert answer["found"]
    assert answer["environment"]["rung"] == "Python 3.11"
    assert answer["needed"]["Python 3.11"] >= 2
    shown = bisect(both, ids[0], ids[-1], command=command)
    assert "needed   Python 3.11 (this commit and " in shown


@takes_turns
def test_that_an_environment_is_made_is_said_when_it_begins(both):
    ids = add_commits(both, lambda n: work(n, 5, OLD), 8)
    done = both.rl("bisect", "--good", ids[0], "--", NEWER, outside(both, REPRO))
    making = [line for line in done.stderr.splitlines() if "making an environment" in line]
    assert len(making) == 1  # the same serves all commits
    assert making[0].startswith(f"rl:   {ids[0][:10]}: making an environment with no ")
    assert "(Python 3.11." in making[0]
    quiet = both.rl("bisect", "--good", ids[0], "--json", "--", NEWER, outside(both, REPRO))
    assert quiet.stderr == ""


def test_where_the_newer_commits_need_a_newer_python_they_get_it(both):
    head = "type Number = int\n"
    ids = add_commits(both, lambda n: work(n, 8, head if n >= 4 else ""), 10)
    answer = found(both, ids, command=[INSTALLED["3.11"], outside(both, REPRO)])
    # The old end passes, the new end fails: at the syntax, which is what is looked for.
    assert answer["commit"] == ids[4]
    assert answer["needed"] == {}
    more = found(both, [ids[4], ids[-1]], command=[INSTALLED["3.11"], outside(both, REPRO)])
    assert more["commit"] == ids[8]
    assert more["environment"]["rung"].startswith("Python 3.1")


def test_a_module_that_is_gone_is_not_mended_where_it_is_what_is_hunted(both):
    ids = add_commits(both, lambda n: work(n, 99, OLD if n >= 6 else ""), 9)
    answer = found(both, ids, command=[NEWER, outside(both, REPRO)])
    assert answer["commit"] == ids[6]
    assert "No module named 'imp'" in answer["failure"]
    assert answer["needed"] == {}


def needing_an_old_package(world):
    """Ask for a package that cannot be had for the newer Python."""
    package = Package(
        world.root / "packages",
        "sample",
        "import sys\nassert sys.version_info < (3, 12), 'too new'\n",
    )
    world.write("requirements.txt", f"sample @ {package.folder.as_uri()}\n")
    world.commit()
    return package


@takes_turns
def test_packages_that_this_python_cannot_have_bring_one_that_can(both):
    needing_an_old_package(both)
    ids = add_commits(both, lambda n: work(n, 4, "import sample\n"), 7)
    answer = found(both, ids, command=[NEWER, outside(both, REPRO)])
    assert answer["commit"] == ids[4]
    assert answer["environment"]["rung"] == "Python 3.11"


@takes_turns
def test_the_environment_of_the_answer_can_be_made_again(both):
    package = needing_an_old_package(both)
    ids = add_commits(both, lambda n: work(n, 2, "import sample\n"), 3)
    script = outside(both, REPRO)
    used = found(both, ids, command=[NEWER, script])["environment"]
    assert used["packages"] == {"sample": f"sample @ {package.folder.as_uri()}"}
    assert used["python"].startswith("3.11.")
    assert used["inherits"] == ""
    listed = both.journal / "searches/1/environment.txt"
    assert listed.read_text().splitlines() == [*used["packages"].values()]
    for line in used["install"]:
        assert both.shell(line).returncode == 0, line
    for python in ("env/bin/python", f"{used['path']}/bin/python"):
        done = both.shell(f"{python} {script}")
        assert "ValueError: broken" in done.stderr


def test_packages_of_the_revision_are_told_beside_those_it_inherits(both):
    package = Package(both.root / "packages", "sample")
    both.write("requirements.txt", f"sample @ {package.folder.as_uri()}\n")
    both.commit()
    ids = add_commits(both, lambda n: work(n, 2, "import sample\n"), 3)
    command = [NEWER, outside(both, REPRO)]
    used = found(both, ids, command=command)["environment"]
    assert used["rung"] == "packages"
    assert list(used["packages"]) == ["sample"]
    assert os.path.realpath(NEWER).startswith(os.path.realpath(used["inherits"]))
    shown = bisect(both, ids[0], ids[-1], command=command)
    assert f"rebuild  uv venv -p {os.path.realpath(NEWER)} env && uv pip install -p env" in shown
    assert f"or use   {used['path']}/bin/python, which has the packages of " in shown
    plain = found(both, add_commits(both, lambda n: work(n, 2), 3), command=command)
    assert plain["environment"]["install"] == []


def test_what_the_revision_allows_decides_and_only_a_failure_asks(both):
    both.write(
        "pyproject.toml", "[project]\nname = 'x'\nversion = '1'\nrequires-python = '<3.12'\n"
    )
    both.commit()
    check = "import sys\nif sys.version_info >= (3, 12):\n    raise OSError('not for me')\n"
    ids = add_commits(both, lambda n: work(n, 3, check if n != 0 else ""), 5)
    answer = found(both, ids, "--no-prior", command=[NEWER, outside(both, REPRO)])
    assert answer["commit"] == ids[1]  # the old end passes with the command's own Python
    ids = ids[1:]
    answer = found(both, ids, command=[NEWER, outside(both, REPRO)])
    assert answer["commit"] == ids[2]
    assert answer["environment"]["rung"] == "Python 3.11"


def test_a_failure_that_no_python_helps_stays_what_it_was(both):
    def program(number):
        return "no python at all\n" if number in (3, 4) else work(number, 7)

    ids = add_commits(both, program, 9)
    answer = found(both, ids, "--no-prior", command=[NEWER, outside(both, REPRO)])
    assert answer["commit"] == ids[7]
    assert answer["needed"] == {}


def test_ends_that_fail_alike_are_refused_although_a_python_helps_one(both):
    guard = "import sys\nif sys.version_info >= (3, 12) or {}:\n    raise SyntaxError('no')\n"
    ids = add_commits(both, lambda n: work(n, 99, guard.format(n >= 3)), 5)
    done = both.rl("bisect", "--good", ids[0], "--", NEWER, outside(both, REPRO))
    assert done.returncode == 2
    assert "both ends fail alike: " in done.stderr


@takes_turns
def test_what_a_test_imports_besides_is_there_too(both):
    """What the command's Python has and the revision does not state is added."""
    package = Package(both.root / "packages", "sample")
    env = {**both.env, "VIRTUAL_ENV": ""}
    venv = both.root / "venv"
    subprocess.run([NEWER, "-m", "venv", str(venv)], check=True, env=env)
    python = str(venv / "bin/python")
    subprocess.run([python, "-m", "pip", "install", "-q", str(package.folder)], check=True, env=env)
    wheels = both.root / "wheels"
    words = ("-m", "pip", "wheel", "-q", "-w", str(wheels), str(package.folder))
    subprocess.run([python, *words], check=True, env=env)
    both.env["UV_FIND_LINKS"] = both.env["PIP_FIND_LINKS"] = str(wheels)
    ids = add_commits(both, lambda n: work(n, 4, OLD), 7)
    script = outside(both, REPRO.replace("app.work()", "import sample\napp.work()"))
    answer = found(both, ids, command=[python, script])
    assert answer["commit"] == ids[4]
    lines = (both.journal / "searches/1/probes.jsonl").read_text().splitlines()
    probes = [json.loads(line) for line in lines]
    assert probes[-1]["extra"] == ["sample"]
    assert probes[-1]["runs"] == 2  # what the first one learnt


def test_without_repair_no_other_python_is_tried(both):
    ids = add_commits(both, lambda n: work(n, 5, OLD if n < 9 else ""), 12)
    command = [NEWER, outside(both, REPRO)]
    done = both.rl("bisect", "--good", ids[0], "--no-repair", "--", *command)
    assert done.returncode == 2
    assert "both ends fail" in done.stderr
    assert not (both.journal / "environments").exists()


def test_an_interrupted_search_goes_on_with_what_it_learnt(both):
    ids = add_commits(both, lambda n: work(n, 5, OLD if n < 9 else ""), 12)
    command = [NEWER, outside(both, REPRO)]
    done = both.rl("bisect", "--good", ids[0], "--budget", "4", "--", *command)
    assert done.returncode == 1
    answer = json.loads(both.rl("bisect", "--resume", "--json").stdout)
    assert answer["commit"] == ids[5]
    assert answer["environment"]["rung"] == "Python 3.11"
