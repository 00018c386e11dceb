"""How long snapshots live, whose they are, what they take; and that nothing of them is left."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.conftest import World
from tests.depth import takes_turns
from tests.needs import needs
from tests.supervising import PATIENCE_S, is_running, wait_until
from tests.warming import (
    edit,
    end_all,
    files,
    first,
    is_only_kept,
    of_this_world,
    on_terminal,
    plain,
    programs,
    read_until,
    run_folder,
    say,
    snapshots,
    told,
    wait_for_nobody,
)

import relaunch

LOOK_S = 15.0
"""A host looks round every two seconds, and ends one snapshot at a time."""
UID = 54321
"""Somebody whom nothing else runs as."""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


# --- how long


def test_idle_snapshots_end_and_leave_no_file(warm):
    edit(warm, "print('x')")
    first(warm)
    assert files(warm)
    say(warm, {"op": "ping", "spec": {"idle": 0.1}})
    wait_for_nobody(warm)
    wait_until(lambda: files(warm) == [])
    assert told(warm.rl("warm")) == told(plain(warm))


def test_a_program_that_runs_is_not_idle(warm):
    edit(warm, "print('ready', flush=True)", "sys.stdin.read()", "print('end')")
    words = ["rl", "warm", "--idle", "0.1", "--", sys.executable, "train.py"]
    process = warm.start(words, stdin=subprocess.PIPE)
    read_until(process, b"ready")
    process.communicate(timeout=PATIENCE_S)
    assert "resumed at" in warm.rl("warm").stderr
    wait_for_nobody(warm)


def test_all_end_at_logout_when_their_folder_goes(warm):
    edit(warm, "print('x')")
    first(warm)
    shutil.rmtree(warm.env["XDG_RUNTIME_DIR"])
    wait_for_nobody(warm)
    os.mkdir(warm.env["XDG_RUNTIME_DIR"], 0o700)
    done = warm.rl("warm")
    assert "rl: cold: no snapshots yet" in done.stderr
    assert told(done) == told(plain(warm))


def test_stop_leaves_neither_process_nor_file(warm):
    edit(warm, "print('x')")
    first(warm)
    warm.rl("warm")
    assert "rl: ended" in warm.rl("warm", "stop").stderr
    wait_for_nobody(warm)
    wait_until(lambda: files(warm) == [])


def test_snapshots_survive_the_terminal_that_started_them(warm):
    edit(warm, "print('old')", "input()")
    words = [sys.executable, "-m", "relaunch", "warm", "--", sys.executable, "train.py"]
    one = on_terminal(warm, words)
    one.until(b"old\r\n")
    kept = {program["pid"] for program in programs(warm)} | {s["pid"] for s in snapshots(warm)}
    os.close(one.fd)  # the window is closed, with all that runs in it
    wait_until(lambda: is_only_kept(warm))
    assert kept
    assert all(is_running(pid) for pid in kept)
    edit(warm, "print('new')")
    another = on_terminal(warm, words)
    shown = another.until(b"new\r\n")
    assert b"resumed at" in shown
    assert another.end() == 0
    another.close()
    os.waitpid(one.pid, 0)


# --- whose they are


@as_root
def test_nobody_else_can_talk_to_a_host(warm):
    needs("setpriv")
    edit(warm, "print('x')")
    first(warm)
    (path,) = run_folder(warm).glob("*.sock")
    assert path.stat().st_mode & 0o777 == 0o600
    assert run_folder(warm).stat().st_mode & 0o777 == 0o700
    client = (
        "import socket, sys\n"
        "link = socket.socket(socket.AF_UNIX); link.settimeout(10); link.connect(sys.argv[1])\n"
        "try:\n"
        "    link.sendall(b'\\x0d\\0\\0\\0{\"op\":\"stop\"}'); print(link.recv(100) or 'hung up')\n"
        "except (BrokenPipeError, ConnectionResetError): print('hung up')\n"
    )
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # one that everybody gets to
        os.chmod(folder, 0o755)
        link = Path(folder, "s")
        os.link(path, link)
        closed = _as_somebody("-c", client, str(link))
        assert "PermissionError" in closed.stderr
        os.chmod(link, 0o666)
        opened = _as_somebody("-c", client, str(link))
        assert (opened.stdout, opened.stderr) == ("hung up\n", "")
    assert snapshots(warm)


@pytest.mark.parametrize("way", ["open", "link", "foreign"])
def test_a_folder_that_is_not_ours_alone_is_refused_and_the_program_runs(warm, way):
    edit(warm, "print('x')")
    folder = run_folder(warm)
    if way == "link":
        (warm.root / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(warm.root / "elsewhere")
    else:
        folder.mkdir(mode=0o755 if way == "open" else 0o700)
    if way == "foreign":
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        os.chown(folder, UID, UID)
    done = first(warm)
    assert f"rl: cold: no place for snapshots: `{folder}` must be " in done.stderr
    assert told(done) == told(plain(warm))
    assert [*folder.iterdir()] == []
    assert of_this_world(warm) == {}


@as_root
def test_a_host_of_somebody_else_is_not_asked(warm):
    """As when a container shares the folder: the one who listens must be the same user."""
    needs("setpriv")
    edit(warm, "print('x')")
    first(warm)
    (path,) = run_folder(warm).glob("*.sock")
    end_all(warm)
    serve = (
        "import os, socket, sys\n"
        "link = socket.socket(socket.AF_UNIX); link.bind(sys.argv[1])\n"
        f"os.setresuid({UID}, {UID}, {UID})\n"
        "link.listen(9); print('ready', flush=True); os.read(0, 1)\n"
    )
    pipe = subprocess.PIPE
    words = [sys.executable, "-c", serve, path.name]  # an address has 107 characters
    folder = path.parent
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder) as other:
        read_until(other, b"ready")
        done = warm.rl("warm")
    assert "resumed" not in done.stderr
    assert told(done) == told(plain(warm))


@takes_turns
@as_root
@pytest.mark.parametrize("space", ["--mount", "--net", "--pid"])
def test_another_container_has_snapshots_of_its_own(warm, space):
    needs("unshare")
    apart = ["unshare", space, "--fork"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("there can be no container here")
    edit(warm, "print('x')")
    first(warm)
    words = ["-m", "relaunch", "warm", "--", sys.executable, "train.py"]
    done = subprocess.run(
        [*apart, sys.executable, *words], cwd=warm.project, env=warm.env,
        input="", capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert "rl: cold: " in done.stderr
    assert told(done) == told(plain(warm))
    again = warm.rl("warm")
    assert "resumed at" in again.stderr


def _as_somebody(*words):
    somebody = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
    return subprocess.run(
        [*somebody, sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


# --- what is left after a kill


@pytest.mark.parametrize("way", ["first", "resumed"])
@pytest.mark.parametrize("part", ["host", "snapshots", "program", "rl", "below rl"])
def test_nothing_is_left_when_a_part_is_killed(warm, part, way):
    edit(warm, "print('old')")
    words = ("--", sys.executable, "train.py")
    if way == "resumed":
        first(warm)
    edit(warm, "print('ready', flush=True)", "open('pid', 'w').write(str(os.getpid()))", "input()")
    process = warm.start(["rl", "warm", *words], stdin=subprocess.PIPE)
    read_until(process, b"ready")
    wait_until(lambda: (warm.project / "pid").exists() and (warm.project / "pid").read_text())
    (host,) = programs(warm)
    victims = {
        "host": [host["pid"]],
        "snapshots": [one["pid"] for one in host["snapshots"]],
        "program": [int((warm.project / "pid").read_text())],
        "rl": [process.pid],
        "below rl": _children(process.pid),
    }[part]
    assert victims
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    process.communicate(b"\n", timeout=PATIENCE_S)
    wait_until(lambda: is_only_kept(warm))
    (warm.project / "pid").unlink(missing_ok=True)
    edit(warm, "print('next')")
    done = warm.rl("warm")
    assert told(done) == told(plain(warm))
    assert is_only_kept(warm)
    end_all(warm)
    wait_until(lambda: files(warm) == [])


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


# --- memory and processes


class Machine:
    """Says itself how much memory it has."""

    def __init__(self, world):
        self.world = world
        self.file = world.root / "meminfo"
        self.file.write_text(Path("/proc/meminfo").read_text())
        mount = f"mount --bind {self.file} /proc/meminfo && echo ready && read line"
        pipe = subprocess.PIPE
        self.space = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", mount], stdin=pipe, stdout=pipe, stderr=pipe
        )

    def warm(self, *words):
        rl = [sys.executable, "-m", "relaunch", "warm", *words]
        return subprocess.run(
            ["nsenter", "-m", f"-t{self.space.pid}", f"--wd={self.world.project}", *rl],
            env=self.world.env,
            input="", capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    def first(self, *words):
        return self.warm(*words, "--", sys.executable, "train.py")

    def have(self, total_kb, available_kb):
        """Have so much memory from now on."""
        self.file.write_text(f"MemTotal: {total_kb} kB\nMemAvailable: {available_kb} kB\n")


@pytest.fixture
def machine(warm):
    """A machine for the world `warm`."""
    needs("unshare")
    machine = Machine(warm)
    assert machine.space.stdout
    if machine.space.stdout.readline() != b"ready\n":
        pytest.skip("nothing can be mounted here")
    yield machine
    machine.space.communicate(b"\n", timeout=PATIENCE_S)


STEPS = ["data = []"] + ["data.append(os.urandom(8 << 20))\ntime.sleep(0.25)\nprint(len(data))"] * 4


def test_snapshots_go_when_memory_gets_short(warm, machine):
    edit(warm, *STEPS)
    cold = machine.first("--at", "train.py:8")  # by itself too, but not on a machine that is busy
    assert told(cold) == told(plain(warm))
    wait_until(lambda: snapshots(warm) != [])  # each tells of itself, when it has a core
    machine.have(8 << 20, 1)
    wait_until(lambda: snapshots(warm) == [], patience_s=3 * LOOK_S)
    edit(warm, *STEPS, "print('new')")
    assert told(machine.warm()) == told(plain(warm))
    machine.have(8 << 20, 8 << 20)
    assert told(machine.warm()) == told(plain(warm))
    assert "resumed at" in machine.warm().stderr


def test_a_program_that_begins_with_little_memory_runs_as_ever(warm, machine):
    machine.have(8 << 20, 1)
    edit(warm, *STEPS)
    assert told(machine.first()) == told(plain(warm))
    assert told(machine.warm()) == told(plain(warm))
    wait_until(lambda: snapshots(warm) == [], patience_s=3 * LOOK_S)


def test_snapshots_take_a_quarter_of_the_memory_at_the_most(warm, machine):
    quarter_kb = 24 << 10
    machine.have(4 * quarter_kb, 4 * quarter_kb)
    edit(warm, *STEPS)
    assert told(machine.first()) == told(plain(warm))
    fits = lambda: sum(one["pss"] for one in snapshots(warm)) <= quarter_kb << 10  # noqa: E731
    wait_until(fits, patience_s=3 * LOOK_S)
    edit(warm, *STEPS, "print('new')")
    again = machine.warm()
    assert told(again) == told(plain(warm))


def test_a_later_run_may_allow_less_memory(warm):
    edit(warm, *STEPS)
    first(warm)
    assert snapshots(warm)
    say(warm, {"op": "ping", "spec": {"memory": 1}})
    wait_until(lambda: snapshots(warm) == [], patience_s=3 * LOOK_S)
    edit(warm, *STEPS, "print('new')")
    done = warm.rl("warm")
    assert "rl: cold: " in done.stderr
    assert told(done) == told(plain(warm))


class Somebody:
    """A user with a world, who can be kept from having processes; root always can."""

    def __init__(self, world, python):
        self.world, self.python = world, python

    def give(self):
        subprocess.run(["chown", "-R", f"{UID}:{UID}", str(self.world.root)], check=True)

    def run(self, *words):
        self.give()
        somebody = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "env"]
        return subprocess.run(
            [*somebody, self.python, *words], cwd=self.world.project, env=self.world.env,
            input="", capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    def warm(self, *words):
        return self.run("-m", "relaunch", "warm", *words)

    def first(self):
        return self.warm("--", self.python, "train.py")


@pytest.fixture
def somebody():
    """Somebody else, with a Python that everybody can run."""
    needs("setpriv")
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        world = World(Path(folder))
        (world.root / "run").mkdir(mode=0o700)
        world.env["XDG_RUNTIME_DIR"] = str(world.root / "run")
        world.env["PYTHONPATH"] = str(Path(relaunch.__file__).parents[1])
        found = [Somebody(world, python) for python in (sys.executable, "/usr/bin/python3")]
        able = [one for one in found if one.run("-c", "import relaunch").returncode == 0]
        if not able:
            pytest.skip("there is no Python that somebody else can run")
        yield able[0]
        able[0].warm("stop", "--all")
        wait_for_nobody(world)


def test_a_program_that_may_not_fork_runs_as_ever(somebody):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))"
    mask = "print(signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
    edit(somebody.world, "print('x')", limit, "time.sleep(0.3)", mask, "os.fork()")
    expected = told(somebody.run("train.py"))
    assert "BlockingIOError" in expected[2]
    for done in (somebody.first(), somebody.warm()):
        assert told(done) == expected


def test_a_program_for_which_no_host_can_be_forked_runs_as_ever(somebody):
    site = somebody.world.root / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import resource, sys\n"
        "if sys.orig_argv[-1] == 'train.py' and 'relaunch' not in sys.orig_argv:\n"
        "    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))\n"
    )
    somebody.world.env["PYTHONPATH"] += f":{site}"
    edit(somebody.world, "os.fork()")
    expected = told(somebody.run("train.py"))
    assert "BlockingIOError" in expected[2]
    for done in (somebody.first(), somebody.warm()):
        assert told(done) == expected
        assert "rl: cold: " in done.stderr
    assert of_this_world(somebody.world) == {}


def test_a_snapshot_that_may_not_fork_is_not_used(somebody):
    edit(somebody.world, "print('x')")
    expected = told(somebody.run("train.py"))
    assert told(somebody.first()) == expected
    there = of_this_world(somebody.world)
    waiting = [pid for pid, name in there.items() if name == "rl-snapshot"]
    assert waiting
    limit = "import resource as r, sys\nfor pid in sys.argv[1:]:\n"
    limit += "    r.prlimit(int(pid), r.RLIMIT_NPROC, (1, 1))\n"
    assert somebody.run("-c", limit, *map(str, waiting)).returncode == 0
    said = []
    for _ in range(3):  # one process may have been forked ahead of time
        done = somebody.warm()
        assert told(done) == expected
        said.append(done.stderr)
    assert "did not go on: no more processes" in "".join(said)
