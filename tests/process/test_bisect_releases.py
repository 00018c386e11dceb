"""`rl bisect --release`: small real packages of the registry that this machine is set up for."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

import pytest
from tests.building import install_from_wheels, package
from tests.conftest import World
from tests.depth import takes_turns
from tests.needs import missing

ATTRS = """\
import attr

@attr.s(slots=True)
class A:
    a = attr.ib()

one = A.__new__(A)
one.__setstate__((1,))
assert getattr(one, "a", None) == 1, "the old state is lost"
"""
CLICK = "import click._unicodefun\n"
CASES = {
    "attrs": (ATTRS, "attrs==21.2.0..22.2.0", "22.1.0", "22.2.0"),
    "click": (CLICK, "click==7.1.2..8.1.3", "8.0.4", "8.1.0"),
}


@pytest.fixture
def registry(world: World) -> World:
    """A world with uv and a registry; the test does not run, or fails in CI, without."""
    for name, value in os.environ.items():  # how installers are set up here
        if name.startswith(("PIP_", "UV_", "SSL_", "REQUESTS_")) or name.lower().endswith("_proxy"):
            world.env[name] = value
    beside = os.path.dirname(sys.executable)
    world.env["PATH"] = os.pathsep.join([world.env["PATH"], beside])
    world.env["HOME"] = os.environ.get("HOME", world.env["HOME"])
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        world.env.pop(name)
    listed = world.shell(f"{sys.executable} -m pip index versions attrs")
    if listed.returncode:
        missing(f"this test takes small packages from the registry: {listed.stderr[-200:]}")
    return world


@takes_turns
@pytest.mark.parametrize("package", CASES)
def test_the_first_release_that_fails_is_found(registry: World, package: str) -> None:
    text, wanted, before, release = CASES[package]
    registry.write("my.py", text)
    command = ("bisect", "--release", wanted, "--json", "--", sys.executable, "my.py")
    done = registry.rl(*command)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["before"], found["release"]) == (before, release)
    assert found["found"]


def test_a_release_that_never_was_is_told_with_those_near_it(registry: World) -> None:
    done = registry.rl("bisect", "--release", "attrs==21.9..22.2.0", "--", sys.executable, "my.py")
    assert done.returncode == 2
    assert "there is no attrs 21.9 for this Python; near it: 21.2.0, 21.3.0, 21.4.0" in done.stderr


def test_a_range_that_is_none_gets_one_line(world: World) -> None:
    done = world.rl("bisect", "--release", "attrs>=3", "--", sys.executable, "my.py")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "PACKAGE==OLD..NEW" in done.stderr


# --- releases of a folder of wheels, and a repository of the package


def releases(world: World) -> list[str]:
    """Make four releases, of which the third does not work, and return how to search them."""
    for number in range(4):
        package(world, "thing", f"1.{number}", works=number < 2)
    install_from_wheels(world)
    script = world.root / "my.py"
    script.write_text("import thing\nassert thing.works, 'broken'\n")
    return ["bisect", "--release", "thing==1.0..", "--", sys.executable, str(script)]


def code(world: World, *, works: bool, tag: str = "") -> str:
    """Commit a state of the package, and name it."""
    world.write("pyproject.toml", "[project]\nname = 'thing'\nversion = '1'\n")
    count = world.git("rev-list", "--count", "--all").strip()
    world.write("src/thing.py", f"works = {works}  # {count}\n")
    commit = world.commit(f"state {count}")
    if tag:
        world.git("tag", tag)
    return commit


@takes_turns
def test_an_open_range_of_releases_goes_up_to_the_last(world: World) -> None:
    done = world.rl(*releases(world))
    assert done.returncode == 0, done.stderr
    assert "thing 1.2 is the first release where it fails" in done.stdout
    assert "3 releases, 1.0 to 1.3" in done.stderr


@takes_turns
def test_the_commit_between_two_releases_is_named(world: World) -> None:
    words = releases(world)
    code(world, works=True, tag="v1.1")
    culprit = code(world, works=False)
    code(world, works=False, tag="v1.2")
    done = world.rl(*words)
    assert done.returncode == 0, done.stderr
    assert "thing 1.2 is the first release where it fails" in done.stdout
    assert f"{culprit[:10]} is the first commit where it fails" in done.stdout


def apart(world: World) -> str:
    """Tag two releases of which neither is built upon the other."""
    start = code(world, works=True)
    code(world, works=True, tag="v1.1")
    world.git("checkout", "-q", "-b", "next", start)
    code(world, works=False, tag="v1.2")
    return "v1.1 is not an ancestor of v1.2"


def alike(world: World) -> str:
    """Tag two releases of which the code passes, as what was published is another."""
    code(world, works=True, tag="v1.1")
    code(world, works=True, tag="v1.2")
    return "it passes at both ends (v1.1 and v1.2)"


@takes_turns
@pytest.mark.parametrize("tagged", [apart, alike])
def test_a_release_is_told_also_where_its_commits_cannot_be_searched(
    world: World, tagged: Callable[[World], str]
) -> None:
    words = releases(world)
    why = tagged(world)
    done = world.rl(*words)
    assert done.returncode == 0, done.stderr
    assert "thing 1.2 is the first release where it fails" in done.stdout
    (line,) = [one for one in done.stderr.splitlines() if "no commit between" in one]
    assert line.startswith("rl: no commit between v1.1 and v1.2 is named: ")
    assert why in line
    done = world.rl(words[0], "--json", *words[1:])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["before"], found["release"], found["found"]) == ("1.1", "1.2", True)
    assert why in found["unsearched"]
