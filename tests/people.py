"""Root and a plain user, each with a world of their own that they can reach."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import World
from tests.needs import missing, needs

import relaunch

UID = 54321


class Person:
    """Somebody who types `rl` in a project."""

    def __init__(self, world: World, python: str, become: tuple[str, ...] = ()) -> None:
        self.world, self.python, self.become = world, python, become
        self.project = world.project

    @property
    def is_root(self) -> bool:
        """Tell whether everything is allowed."""
        return not self.become and os.geteuid() == 0

    def words(self, *words: str) -> list[str]:
        """The command line of `rl WORDS` as this person."""
        return [*self.become, self.python, "-m", "relaunch", *words]

    def rl(
        self, *words: str, env: Mapping[str, str] | None = None, before: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end; `before` are words in front, as `unshare -Urm`."""
        return subprocess.run(
            [*self.become, *before, *self.words(*words)[len(self.become) :]],
            cwd=self.project, env={**self.world.env, **(env or {})},
            input="", capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start it in a process group of its own, its output on a pipe."""
        return self.world.start(self.words(*words))

    def owns(self) -> None:
        """Give the person all of the world."""
        if self.become:
            subprocess.run(["chown", "-R", f"{UID}:{UID}", str(self.world.root)], check=True)


@contextmanager
def plain_user() -> Iterator[Person]:
    """Somebody without any privilege, with a Python that everybody can run."""
    if os.geteuid() != 0:
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            yield Person(World(Path(folder)), sys.executable)
        return
    needs("setpriv")
    become = ("setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups")
    folder = tempfile.mkdtemp(dir="/tmp")
    try:
        os.chmod(folder, 0o755)
        world = World(Path(folder))
        world.env["PYTHONPATH"] = str(Path(relaunch.__file__).parents[1])
        for python in (sys.executable, "/usr/bin/python3"):
            person = Person(world, python, become)
            person.owns()
            # Through a shell: setpriv itself still has root's rights when it starts a program.
            if person.rl("--version", before=("sh", "-c", 'exec "$0" "$@"')).returncode == 0:
                yield person
                return
        missing("there is no Python that a plain user can run")
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def plain() -> Iterator[Person]:
    """A plain user."""
    with plain_user() as person:
        yield person


@pytest.fixture
def root(world: World) -> Person:
    """Root; a test that needs it is skipped without."""
    if os.geteuid() != 0:
        pytest.skip("this test needs root")
    return Person(world, sys.executable)


@pytest.fixture(params=["root", "plain"])
def person(request: pytest.FixtureRequest) -> Person:
    """Root, and a plain user."""
    found: Person = request.getfixturevalue(request.param)
    return found
