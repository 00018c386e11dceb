"""`rl bisect --release`: small real packages of the registry that this machine is set up for."""

from __future__ import annotations

import json
import os
import sys

import pytest
from tests.conftest import World
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


@pytest.mark.parametrize("package", CASES)
def test_the_first_release_that_fails_is_found(registry: World, package: str) -> None:
    text, wanted, before, release = CASES[package]
    registry.write("my.py", text)
    command = ("bisect", "--release", wanted, "--json", "--", sys.executable, "my.py")
    done = registry.rl(*command, timeout=200)
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
