"""The power goes while trials run: none that was announced is lost, and none later is harmed."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.conftest import World
from tests.depth import IS_DEEP, rounds
from tests.needs import needs
from tests.power import disk
from tests.supervising import PATIENCE_S, wait_until

RL = (sys.executable, "-m", "relaunch")
REMOTE = "https://example.org/project.git"
_ANNOUNCED = re.compile(r"#(\d+)")


class Worker(threading.Thread):
    """Edits and launches without a pause; `announced` has number, moment and code of each trial."""

    def __init__(self, project: Path, env: dict[str, str]) -> None:
        super().__init__(daemon=True)
        self.project = project
        self.env = env
        self.announced: dict[str, tuple[float, str]] = {}
        self.is_over = False
        self.fault = ""
        self._news = threading.Condition()

    def run(self) -> None:
        """Launch until told to stop."""
        rounds = 0
        while not self.is_over and not self.fault:
            rounds += 1
            code = f"print({rounds})\n# {random.random()}\n"
            (self.project / "inner" / "train.py").write_text(code)
            if rounds % 5 == 0:
                (self.project / f"new{rounds}.py").write_text(code)
            if rounds % 4 == 0:
                subprocess.run([*RL, "gc"], cwd=self.project, env=self.env, capture_output=True)
            self._launch(code)

    def _launch(self, code: str) -> None:
        argv = [*RL, "--", "sh", "-c", "echo said; sleep 0.2; exit 3"]
        running = subprocess.Popen(
            argv, cwd=self.project, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert running.stderr is not None
        told = ""
        for line in running.stderr:
            told += os.fsdecode(line)
            found = _ANNOUNCED.search(told)
            if found and found[1] not in self.announced:
                self._note(found[1], code)
        running.communicate()
        if running.returncode != 3 or "not recorded" in told:
            self.fault = told
            self._note("", "")

    def _note(self, trial_id: str, code: str) -> None:
        with self._news:
            self.announced[trial_id] = (time.monotonic(), code)
            self._news.notify_all()

    def wait_for(self, more: int) -> None:
        """Wait until so many more trials were announced."""
        with self._news:
            enough = len(self.announced) + more
            self._news.wait_for(lambda: self.fault or len(self.announced) >= enough)
        assert not self.fault, self.fault


def rl(at: Path, env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run our command in the project on a disk."""
    return subprocess.run(
        [*RL, *words],
        cwd=at / "project",
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def see(at: Path, env: dict[str, str], old: dict[str, str]) -> None:
    """Read all that was announced long before the cut, and go on working after it."""
    for words in (("log", "--all", "-1"), ("gc", "-q"), ("fsck", "--connectivity-only")):
        git = ["git", "-C", str(at / "project"), *words]
        users = subprocess.run(git, env=env, capture_output=True, text=True)
        assert users.returncode == 0, users.stderr
    assert REMOTE in (at / "project" / ".git" / "config").read_text()
    log = rl(at, env, "log", "--all", "--json")
    assert log.returncode == 0, log.stderr
    rows = {row["id"]: row for row in json.loads(log.stdout)["trials"]}
    for trial_id in old:
        assert "problem" not in rows.get(trial_id, {"problem": "lost"}), rows.get(trial_id)
    for trial_id in random.sample(sorted(old), min(rounds(1, 3), len(old))):
        assert rl(at, env, "show", trial_id).returncode == 0
        assert code_of(at, env, trial_id) == old[trial_id]
    now = (at / "project" / "inner" / "train.py").read_text()
    for code in (now, "print('after the cut')\n"):
        (at / "project" / "inner" / "train.py").write_text(code)
        done = rl(at, env, "--", "true")
        assert (done.returncode, "not " in done.stderr) == (0, False), done.stderr
        assert code_of(at, env, "-1") == code
    gc = rl(at, env, "gc")
    assert (gc.returncode, "not packed" in gc.stderr) == (0, False), gc.stderr
    git = ["git", "-C", str(at / "project"), "fsck", "--no-dangling"]
    store = at / "project" / ".git" / "relaunch" / "git"
    borrow = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(at / "project" / ".git" / "objects")}
    fsck = subprocess.run(
        git, env={**env, **borrow, "GIT_DIR": str(store)}, capture_output=True, text=True
    )
    assert fsck.returncode == 0, fsck.stderr


def code_of(at: Path, env: dict[str, str], trial_id: str) -> str:
    """Return the edited file as `rl back` gives it."""
    target = at / "back"
    done = rl(at, env, "back", trial_id, "--to", str(target))
    assert (done.returncode, "lost" in done.stderr) == (0, False), done.stderr
    code = (target / "inner" / "train.py").read_text()
    shutil.rmtree(target)
    return code


def test_no_trial_is_lost_and_no_store_is_poisoned_when_the_power_goes(tmp_path: Path) -> None:
    chance = random.Random() if IS_DEEP else random.Random(1)
    with disk(tmp_path) as real:
        project = real.at / "project"
        (project / "inner").mkdir(parents=True)
        env = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            env.pop(name, None)
        settings = tmp_path / ".config" / "relaunch" / "config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text("[record]\nalso = []\n")
        for n in range(20):
            (project / "inner" / f"file{n}.py").write_text(f"print({n})\n" * 9)
        (project / "inner" / "train.py").write_text("")
        person = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        remote = ("remote", "add", "origin", REMOTE)
        for words in (("init", "-q"), remote, ("add", "-A"), (*person, "commit", "-qm", "start")):
            subprocess.run(["git", *words], cwd=project, env=env, check=True)
        os.sync()
        worker = Worker(project, env)
        worker.start()
        try:
            for number in range(rounds(3, 100)):
                worker.wait_for(chance.randint(2, 8))
                time.sleep(chance.uniform(0, 0.2))  # anywhere in a trial
                now = time.monotonic()
                old = {
                    trial_id: code
                    for trial_id, (when, code) in list(worker.announced.items())
                    if when < now - 1
                }
                with real.cut(f"cut{number}") as at:
                    see(at, env, old)
                if len(old) > 100:  # the disk is small
                    rl(real.at, env, "gc", "--keep-size", "2M")
                    worker.announced.clear()
        finally:
            worker.is_over = True
            worker.join()


def test_a_set_that_a_trial_put_in_place_is_put_back_after_a_power_cut(tmp_path: Path) -> None:
    """What the links were is on the disk before they are moved: else they would stay moved."""
    with disk(tmp_path) as real:
        project = real.at / "project"
        (project / "conf").mkdir(parents=True)
        env = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
        assert rl(real.at, env, "set", "new", "bf16", "--from", "conf").returncode == 0
        words = [*RL, "-s", "bf16", "--", "sh", "-c", "echo ready; read it"]
        running = subprocess.Popen(
            words, cwd=project, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        with open(real.at / "other", "wb") as other:  # all names are on the disk with this
            os.fsync(other.fileno())
        with real.cut("cut") as at:
            assert os.readlink(at / "project" / "conf") == "conf@bf16"
            said = json.loads((at / "project" / ".relaunch" / "sets.json").read_text())
            assert said["links"] == {str(project / "conf"): "conf@base"}
        running.communicate(b"\n")
        assert os.readlink(project / "conf") == "conf@base"


def test_a_new_set_is_whole_after_a_power_cut(tmp_path: Path) -> None:
    with disk(tmp_path) as real:
        (real.at / "project" / "conf").mkdir(parents=True)
        (real.at / "project" / "conf" / "a.yaml").write_text("lr: 1\n")
        os.sync()
        env = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
        assert rl(real.at, env, "set", "new", "bf16", "--from", "conf").returncode == 0
        with open(real.at / "other", "wb") as other:  # all names are on the disk with this
            os.fsync(other.fileno())
        with real.cut("cut") as at:
            for place in ("conf", "conf@base", "conf@bf16"):
                assert (at / "project" / place / "a.yaml").read_text() == "lr: 1\n"


def test_an_old_trial_that_was_just_masked_is_whole_after_a_power_cut(tmp_path: Path) -> None:
    with disk(tmp_path) as real:
        (real.at / "project").mkdir()
        env = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
        assert rl(real.at, env, "-m", "WHY", "--", "true").returncode == 0
        start = real.at / "project" / ".relaunch" / "trials" / "1" / "start.json"
        start.write_text(start.read_text().replace("WHY", "password=hunter2hunter2"))
        os.sync()
        assert "masked: 1 secret" in rl(real.at, env, "gc", "--secrets").stderr
        with open(real.at / "other", "wb") as other:  # all names are on the disk with this
            os.fsync(other.fileno())
        with real.cut("cut") as at:
            assert (at / start.relative_to(real.at)).read_bytes() == start.read_bytes()


def test_code_that_was_given_back_is_whole_after_a_power_cut(tmp_path: Path) -> None:
    with disk(tmp_path) as real:
        (real.at / "project").mkdir()
        (real.at / "project" / "train.py").write_text("print(1)\n")
        env = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
        assert rl(real.at, env, "--", "true").returncode == 0
        assert rl(real.at, env, "back", "1").returncode == 0
        with open(real.at / "other", "wb") as other:  # all names are on the disk with this
            os.fsync(other.fileno())

        def is_whole() -> bool:
            with real.cut("cut") as at:
                return (at / "project@1" / "train.py").read_text() == "print(1)\n"

        wait_until(is_whole, 20)  # a slow disk is waited for no longer than a second


def test_what_shrink_found_is_whole_after_a_power_cut(tmp_path: Path) -> None:
    with disk(tmp_path) as real:
        (real.at / "project").mkdir()
        (real.at / "project" / "data.txt").write_text("a\nbad\nc\n")
        env = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
        grep = ("sh", "-c", "! grep bad data.txt")
        assert rl(real.at, env, "shrink", "data.txt", "--", *grep).returncode == 0
        with open(real.at / "other", "wb") as other:  # all names are on the disk with this
            os.fsync(other.fileno())

        def is_whole() -> bool:
            with real.cut("cut") as at:
                return "bad" in (at / "project" / "data.small.txt").read_text()

        wait_until(is_whole, 20)  # a slow disk is waited for no longer than a second


def test_the_code_that_a_reset_made_is_on_the_disk_while_the_program_runs(tmp_path: Path) -> None:
    with disk(tmp_path) as real:
        project = real.at / "project"
        project.mkdir()
        (project / "train.py").write_text("before = 1\n")
        env = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
        assert rl(real.at, env, "--", "true").returncode == 0
        os.sync()
        # The kernel itself writes nothing within this test.
        subprocess.run(["mount", "-o", "remount,commit=900", real.at], check=True)
        words = ["--reset", "echo made = 2 > train.py", "--", "sh", "-c", "echo ready; read it"]
        running = subprocess.Popen(
            [*RL, *words], cwd=project, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"

        def has_new_code() -> bool:
            with real.cut("cut") as at:
                done = rl(at, env, "back", "2", "--to", str(at / "back"))
                train = at / "back" / "train.py"
                return done.returncode == 0 and train.read_text() == "made = 2\n"

        wait_until(has_new_code, 20)  # a slow disk is waited for beside the program
        running.communicate(b"\n")


def test_a_trial_is_kept_where_a_sandbox_refuses_the_advice_to_write(world: World) -> None:
    needs("strace")
    refused = f"strace -qq -o /dev/null -e inject=fadvise64:error=EPERM {shlex.join(RL)}"
    done = world.shell(f"{refused} -- sh -c 'exit 3'")
    assert (done.returncode, "recorded" in done.stderr) == (3, False), done.stderr
    assert world.rl("show", "1").returncode == 0


@pytest.mark.parametrize(("error", "is_told"), [("EIO", True), ("EINVAL", False)])
def test_a_disk_that_did_not_take_what_was_kept_is_told(
    world: World, error: str, is_told: bool
) -> None:
    """A file system that cannot wait at all, as some in user space, is no news."""
    needs("strace")
    words = ("-e", "trace=fdatasync", "-e", f"inject=fdatasync:error={error}", *RL, "--", "true")
    done = world.shell(shlex.join(("strace", "-f", "-q", "-o", "/dev/null", *words)))
    assert done.returncode == 0, done.stderr
    told = "rl: the disk may lose what was kept of this: Input/output error   try: rl show -1"
    assert (told in done.stderr.splitlines()) == is_told, done.stderr


def test_the_code_of_a_trial_is_given_back_where_a_cut_filled_the_head_of_its_store(
    world: World,
) -> None:
    world.write("train.py", "print(1)\n")
    assert world.rl("--", "true").returncode == 0
    head = world.journal / "git" / "HEAD"
    head.write_bytes(bytes(head.stat().st_size))
    done = world.rl("back", "1", "--to", "../back")
    assert done.returncode == 0, done.stderr
    assert (world.project.parent / "back" / "train.py").read_text() == "print(1)\n"
