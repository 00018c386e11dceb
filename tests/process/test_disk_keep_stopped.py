"""What another program does between two steps of `rl run --disk --keep` stays as well."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.needs import needs
from tests.people import Person, root
from tests.supervising import PATIENCE_S, kill_at_once, wait_until

__all__ = ["root"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="--disk needs Linux")

STOPPED = "--- stopped by SIGSTOP ---"
RENAMES = "renameat,renameat2"


class Keeper:
    """A run whose keeping is stopped after each system call of one kind."""

    def __init__(self, who: Person, line: str, call: str) -> None:
        self.folder = who.project / "ckpt"
        self._log = who.project / "calls"
        words = ["run", "--keep", "--disk", "ckpt=9M", "--", "sh", "-c", f"{line}; echo; read go"]
        self.rl = who.world.start(who.words(*words), stdin=subprocess.PIPE)
        assert self.rl.stdout is not None
        self.rl.stdout.readline()
        here = os.readlink("/proc/self/ns/mnt")
        children = Path(f"/proc/{self.rl.pid}/task/{self.rl.pid}/children").read_text().split()
        (self._pid,) = [
            int(pid)
            for pid in children
            if os.readlink(f"/proc/{pid}/ns/mnt") != here
            and b"relaunch" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        stop = ["-e", f"trace={call}", "-e", f"inject={call}:signal=SIGSTOP"]
        self._log.touch()
        strace = ["strace", "-o", str(self._log), *stop, "-p", str(self._pid)]
        self._strace = subprocess.Popen(strace, stderr=subprocess.PIPE)
        assert self._strace.stderr is not None
        assert b"attached" in self._strace.stderr.readline()
        self._stops = 0

    def is_stopped(self) -> bool:
        """Let it go on to its next stop; False at its end."""
        if self._stops:
            os.kill(self._pid, signal.SIGCONT)
        else:
            assert self.rl.stdin is not None
            self.rl.stdin.write(b"go\n")
            self.rl.stdin.flush()
        self._stops += 1
        wait_until(lambda: self._has_stopped() or self._strace.poll() is not None, patience_s=60)
        return self._has_stopped()

    def _has_stopped(self) -> bool:
        return self._log.read_text().count(STOPPED) >= self._stops

    def end(self) -> str:
        """Let it go on to its end; return what rl said."""
        while self.is_stopped():
            pass
        return self.rl.communicate(timeout=PATIENCE_S)[1].decode()

    def close(self) -> None:
        for process in (self.rl, self._strace):
            if process.poll() is None:
                kill_at_once(process.pid)
            process.communicate()


@pytest.fixture
def keeper(root: Person) -> Iterator[Callable[[str, str], Keeper]]:
    """A function that starts one, in a folder with files."""
    needs("strace")
    folder = root.project / "ckpt"
    for name in ("d", "e", "../theirs"):
        (folder / name).mkdir(parents=True)
    for name in ("a", "d/x", "d/y", "e/x"):
        (folder / name).write_text("before")
    for name in ("x", "y"):
        (root.project / "theirs" / name).write_text("theirs")
    os.link(folder / "a", folder / "c")
    made = []

    def make(line: str, call: str) -> Keeper:
        made.append(Keeper(root, line, call))
        return made[-1]

    yield make
    for one in made:
        one.close()


def put_in_place_of(folder: Path) -> None:
    """Another program has files that are older than the disk, and now takes the folder's name."""
    shutil.rmtree(folder)
    (folder.parents[1] / "theirs").rename(folder)


def test_a_folder_that_takes_the_name_of_one_while_it_is_kept_is_left_alone(keeper):
    one = keeper("echo 1 > ckpt/a; echo program > ckpt/d/x; rm ckpt/d/y", RENAMES)
    assert one.is_stopped()  # `a` has its place, and nothing else
    put_in_place_of(one.folder / "d")
    err = one.end()
    assert "d/x is the other program's, x.kept this one's" in err
    assert "d/y was not deleted" in err
    found = {path.name: path.read_text() for path in (one.folder / "d").iterdir()}
    assert found == {"x": "theirs", "y": "theirs", "x.kept": "program\n"}


def test_a_folder_that_takes_the_name_of_one_that_was_moved_is_not_moved(keeper):
    one = keeper("mv ckpt/d ckpt/d2; mv ckpt/e ckpt/e2; echo program > ckpt/d2/x", RENAMES)
    assert one.is_stopped()  # `e` is on its way, and nothing else
    put_in_place_of(one.folder / "d")
    assert "d stays, and d2 has only what is new in it" in one.end()
    assert [(one.folder / "d" / name).read_text() for name in ("x", "y")] == ["theirs"] * 2
    assert (one.folder / "d2/x").read_text() == "program\n"
    assert (one.folder / "e2/x").read_text() == "before"


def test_a_file_that_is_written_to_while_one_of_its_names_is_deleted_keeps_the_others(keeper):
    one = keeper("rm ckpt/a ckpt/c", "unlinkat")
    assert one.is_stopped()
    assert not (one.folder / "a").exists()
    (one.folder / "c").write_text("theirs")
    assert "c was not deleted" in one.end()
    assert (one.folder / "c").read_text() == "theirs"


def test_attributes_that_a_folder_gets_while_it_is_kept_stay(root, keeper):
    """Lists of rights (ACLs) are such attributes, and leave the mode as it is."""
    folder = root.project / "ckpt/d"
    try:
        os.setxattr(folder, "user.of", b"before")
    except OSError as error:
        pytest.skip(f"no attributes on the file system of {folder}: {error.strerror}")
    one = keeper("echo x > ckpt/d/x", RENAMES)
    assert one.is_stopped()
    os.setxattr(folder, "user.of", b"theirs")
    one.end()
    assert os.getxattr(folder, "user.of") == b"theirs"


def test_the_newest_file_has_the_name_though_the_one_before_it_is_still_written_to(keeper):
    one = keeper("echo program > ckpt/a", RENAMES)
    assert one.is_stopped()  # the program's file has the name
    (theirs,) = one.folder.glob(".relaunch-*")
    with theirs.open("a") as file:
        (one.folder / "new").write_text("saved")
        (one.folder / "new").rename(one.folder / "a")
        assert one.is_stopped()  # the file of before has the name
        file.write("late")
    err = one.end()
    assert (one.folder / "a").read_text() == "saved", err
    assert (one.folder / "a.kept").read_text() == "program\n"
    (left,) = one.folder.glob(".relaunch-*")
    assert left.read_text() == "beforelate"
    assert f"a was made anew, {left.name} is what was there" in err
