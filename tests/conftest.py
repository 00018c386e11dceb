"""What any test may ask for: a `world` of its own, a `small_disk`, `golden` files (`--update`)."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.again import Again
from tests.depth import load_profile
from tests.reading import Reader, is_read
from tests.turns import Turns

load_profile()

GOLDEN = Path(__file__).parent / "golden"
READER = Reader()
LONGEST_S = float(os.environ.get("RELAUNCH_LONGEST_TEST_S", "900"))
"""A test that takes longer hangs."""


def pytest_configure(config: pytest.Config) -> None:
    """Heed signals: a shell's background job ignores them, and so would all that tests start."""
    marker = "takes_turns: it takes so long that each commit runs a third of these"
    config.addinivalue_line("markers", marker)
    config.pluginmanager.register(Turns())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Again(config))
    for one in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(one) is signal.SIG_IGN:
            is_interrupt = one is signal.SIGINT
            signal.signal(one, signal.default_int_handler if is_interrupt else signal.SIG_DFL)


def pytest_unconfigure() -> None:
    """Leave no process."""
    READER.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the golden files")


@pytest.fixture(autouse=True)
def _never_a_hang(request: pytest.FixtureRequest) -> Iterator[None]:
    def end(*_: object) -> None:
        pytest.fail(f"{request.node.name} hangs: it took over {LONGEST_S:g} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


class World:
    """A project with a git repository, in a home of its own that nothing else can see.

    `shell` runs a line through the real shell; `rl` runs our command without one in between;
    `start` hands out the running process. `rl` on this PATH is this checkout.
    """

    def __init__(self, root: Path, template: Path | None = None) -> None:
        self.root = root
        self.home = root / "home"
        self.project = root / "project"
        self.bin = root / "bin"
        self.env = self._env()
        if template is None:
            self._make()
            return
        for folder in (self.home, self.project, self.bin, root / "tmp"):
            shutil.copytree(template / folder.name, folder)

    def _make(self) -> None:
        for folder in (self.home, self.project, self.bin, self.root / "tmp"):
            folder.mkdir()
        script = self.bin / "rl"
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m relaunch "$@"\n')
        script.chmod(0o755)
        # These tests run on an editable install of this very checkout: leave it out of snapshots.
        # On a busy machine it may take long to keep a failed call.
        self.settings("[record]\nalso = []\n[capture]\nlimit = 60\n")
        # Without the samples of hooks, which cost as much as all else.
        self.git("init", "-q", "-b", "main", "--template=")
        self.write("README.md", "a project\n")
        self.commit("start")

    def _env(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {
            **kept,
            "PATH": f"{self.bin}{os.pathsep}{kept.get('PATH', os.defpath)}",
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "XDG_DATA_HOME": str(self.home / ".local/share"),
            "XDG_STATE_HOME": str(self.home / ".local/state"),
            "XDG_RUNTIME_DIR": str(self.root / "tmp"),
            "TMPDIR": str(self.root / "tmp"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "A Person",
            "GIT_AUTHOR_EMAIL": "person@example.org",
            "GIT_COMMITTER_NAME": "A Person",
            "GIT_COMMITTER_EMAIL": "person@example.org",
            "PYTHONDONTWRITEBYTECODE": "1",
            # What tests of a project are started with takes as long as pytest itself.
            "PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:xdist",
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm-256color",
        }

    def settings(self, text: str) -> None:
        """Write the user's own settings."""
        path = Path(self.env["XDG_CONFIG_HOME"]) / "relaunch" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    @property
    def journal(self) -> Path:
        """The folder of the journal."""
        return self.project / ".git" / "relaunch"

    def write(self, name: str, text: str | bytes) -> Path:
        """Put a file into the project."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def git(self, *words: str, cwd: Path | None = None) -> str:
        """Run git in the project and return what it says."""
        done = subprocess.run(
            ["git", *words],
            cwd=cwd or self.project,
            env=self.env,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def commit(self, message: str = "more") -> str:
        """Commit everything and return the commit."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def shell(
        self,
        line: str,
        *,
        input: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Run a line of shell to its end; its standard input is empty unless given."""
        return self._finish(["sh", "-c", line], input, env, cwd, timeout)

    def rl(
        self,
        *words: str,
        input: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Run our command to its end, no shell in between: signals and exit codes are its own."""
        if is_read(words):
            whole = {**self.env, **(env or {})}
            done = READER.read(words, input or "", whole, cwd or self.project, timeout)
            if done is not None:
                return done
        return self._finish([sys.executable, "-m", "relaunch", *words], input, env, cwd, timeout)

    def _finish(
        self,
        argv: list[str],
        text: str | None,
        env: Mapping[str, str] | None,
        cwd: Path | None,
        timeout: float,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv,
            input=text or "",
            env={**self.env, **(env or {})},
            cwd=cwd or self.project,
            timeout=timeout,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
        )

    def start(
        self,
        argv: list[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
    ) -> subprocess.Popen[bytes]:
        """Start `argv` (`rl` is ours) in a process group of its own; the test ends it."""
        if argv[0] == "rl":
            argv = [sys.executable, "-m", "relaunch", *argv[1:]]
        return subprocess.Popen(
            argv,
            env={**self.env, **(env or {})},
            cwd=cwd or self.project,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )


@pytest.fixture(scope="session")
def _first_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "first-world", World)


@pytest.fixture
def world(tmp_path: Path, _first_world: Path) -> World:
    """A project and a home that belong to this test alone: a copy, made without running git."""
    return World(tmp_path, _first_world)


@contextmanager
def mounted(disk: Path, mib: int) -> Iterator[Path]:
    """Have a real file system of so many MiB; only root can."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", disk], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 24 MiB; only root can have one."""
    with mounted(tmp_path / "disk", 24) as disk:
        yield disk


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that `make` has filled: once, whichever worker comes first."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(f"{folder}.made"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            Path(f"{folder}.made").touch()
    return folder


@pytest.fixture(scope="session")
def native_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which the shim of `rl blame` is compiled, where it can be."""
    from relaunch.trial.blame.shim import library

    def compile_it(folder: Path) -> None:
        library(str(folder / "relaunch" / "native"))

    return made_once(tmp_path_factory, "native-cache", compile_it)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with `tests/golden/NAME`; `pytest --update` writes it instead."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "surrogateescape"))
            return
        assert path.exists(), f"no golden file {name}: pytest --update writes it"
        assert text == path.read_bytes().decode("utf-8", "surrogateescape")

    return compare
