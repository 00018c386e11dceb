"""Nothing that another program does in the folder of a small disk is ever changed by rl."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import second_writer
from tests.depth import examples
from tests.needs import needs
from tests.people import UID, Person, plain, root
from tests.second_writer import NAMES, Step, begin, do, seen
from tests.supervising import PATIENCE_S, is_running, kill_at_once, wait_until

__all__ = ["plain", "root"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="--disk needs Linux")

RUNGS = {"overlay": "", "tmpfs": "overlay"}
RUNGS_OF_EACH = pytest.mark.parametrize(
    ("who", "rung"), [("root", "overlay"), ("plain", "overlay"), ("root", "tmpfs")]
)


class Pair:
    """The program on the small disk, and somebody beside it in the real folder."""

    def __init__(self, who: Person, rung: str, *, keep: bool) -> None:
        self.who, self.folder = who, who.project / "ckpt"
        if self.folder.exists():
            shutil.rmtree(self.folder)
        begin(self.folder)
        shutil.copy(second_writer.__file__, who.project / "steps.py")
        who.owns()
        who.world.env["RELAUNCH_WITHOUT"] = RUNGS[rung]
        words = ["run", "-q", *(["--keep"] if keep else []), "--disk", "ckpt=9M", "--"]
        program = [who.python, "-I", "-S", "steps.py", "ckpt"]
        self.rl = who.world.start(who.words(*words, *program), stdin=subprocess.PIPE)
        self.theirs = seen(self.folder) if rung == "tmpfs" else {}
        """What the other one did, and what is not seen, by name: it must be there at the end."""
        self.held: list[int] = []
        self.texts: list[str] = []
        """What the program saw at its end."""
        self._says()

    def _says(self) -> str:
        assert self.rl.stdout is not None
        line = self.rl.stdout.readline().decode()
        assert line, self.rl.stderr and self.rl.stderr.read().decode()
        return line

    def program(self, step: Step) -> None:
        assert self.rl.stdin is not None
        self.rl.stdin.write(json.dumps(step).encode() + b"\n")
        self.rl.stdin.flush()
        self._says()

    def other(self, step: Step) -> None:
        was = seen(self.folder)
        if step[0] == "hold":
            self._hold(step[1])
        else:
            do(self.folder, step)
        now = seen(self.folder)
        for name in was.keys() - now.keys():
            self.theirs.pop(name, None)
        self.theirs.update({name: now[name] for name in now if now[name] != was.get(name)})

    def _hold(self, name: str) -> None:
        try:
            self.held.append(os.open(self.folder / name, os.O_WRONLY | os.O_APPEND))
        except OSError:
            pass

    def end(self, how: str) -> None:
        """End the program, or kill rl and all that is below it."""
        pids = [self.rl.pid]
        if how == "ends":
            assert self.rl.stdin is not None
            self.rl.stdin.close()
            self.rl.stdin = None
            self.texts = json.loads(self._says())
        else:
            pids = below(self.rl.pid)
            kill_at_once(self.rl.pid)
        self.err = self.rl.communicate(timeout=PATIENCE_S)[1].decode()
        wait_until(lambda: not any(is_running(pid) for pid in pids))

    def write_late(self) -> None:
        """Write to what is held open: it must still be where it was."""
        for fd in self.held:
            if os.fstat(fd).st_nlink:
                os.write(fd, b"late;")
                held = os.fstat(fd).st_ino
                assert [name for name, facts in seen(self.folder).items() if facts[1] == held]
            os.close(fd)

    def close(self) -> None:
        for stream in (self.rl.stdin, self.rl.stdout, self.rl.stderr):
            if stream is not None:
                stream.close()


def below(pid: int) -> list[int]:
    found = [pid]
    for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += below(int(one))
    return found


@contextmanager
def beside(who: Person, rung: str, *, keep: bool) -> Iterator[Pair]:
    pair = Pair(who, rung, keep=keep)
    try:
        yield pair
    finally:
        if pair.rl.poll() is None:
            kill_at_once(pair.rl.pid)
            pair.rl.wait()
        pair.close()


@pytest.mark.parametrize("how", ["folder moved", "folder removed", "project moved"])
@RUNGS_OF_EACH
def test_a_program_never_goes_on_in_a_folder_that_was_put_in_place_of_its_disk(
    request, who, rung, how
):
    """A mount goes with the folder that it is over: what has its name then is real."""
    person = request.getfixturevalue(who)
    with beside(person, rung, keep=False) as pair:
        pair.program(("write", "a", "on the disk"))
        (program,) = [pid for pid in below(pair.rl.pid) if not is_rl(pid)]
        if how == "folder removed":
            shutil.rmtree(pair.folder)
        else:
            moved = pair.folder if how == "folder moved" else person.project
            moved.rename(moved.with_name("away"))
        pair.folder.mkdir(parents=True)
        do(pair.folder, ("write", "a", "theirs"))
        before = seen(pair.folder)
        wait_until(lambda: not is_running(program), patience_s=60)
        assert pair.rl.stdin is not None
        pair.rl.stdin.close()
        pair.rl.stdin = None
        err = pair.rl.communicate(timeout=PATIENCE_S)[1].decode()
        assert "another program moved or replaced" in err
        assert "the program was ended, as it would write to what is there now" in err
        assert seen(pair.folder) == before


@pytest.mark.parametrize("since", ["before", "while it ran"])
@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
def test_what_was_written_through_a_map_stays_though_it_leaves_no_stamp(plain, root, place, since):
    """On a disk a page is stamped once until it is written out; in memory none need be."""
    for who in (root, *([] if since == "before" else [plain])):  # the maps are those of root
        with tempfile.TemporaryDirectory(dir=place) as name, contextlib.ExitStack() as maps:
            folder = Path(name)
            (folder / "d").mkdir()
            files = [folder / "a", folder / "d/b"]
            for path in files:
                path.write_text("before")
            if who.become:
                subprocess.run(["chown", "-R", f"{UID}:{UID}", name], check=True)
            theirs = [mapped(path, maps) for path in files] if since == "before" else []
            for one in theirs:
                one[:1] = b"B"
            line = f"echo program > {folder}/a; rm -r {folder}/d; echo; read go"
            words = who.words("run", "--keep", "--disk", f"{folder}=9M", "--", "sh", "-c", line)
            rl = who.world.start(words, stdin=subprocess.PIPE)
            rl.stdout.readline()
            for one in theirs or [mapped(path, maps) for path in files]:
                one[:] = b"theirs"
            maps.close()
            err = rl.communicate(b"go\n", timeout=PATIENCE_S)[1].decode()
            assert [path.read_text() for path in files] == ["theirs", "theirs"], err
            assert (folder / "a.kept").read_text() == "program\n"


def test_what_a_plain_user_writes_through_a_map_stays_though_it_leaves_no_stamp(plain):
    path = plain.project / "ckpt/a"
    path.parent.mkdir()
    path.write_text("before")
    plain.owns()
    lines = (
        "import mmap; file = open('ckpt/a', 'r+b'); found = mmap.mmap(file.fileno(), 0)",
        "file.close(); found[:1] = b'B'; print(flush=True); input(); found[:] = b'theirs'",
    )
    maps = [*plain.become, plain.python, "-c", "; ".join(lines)]
    other = plain.world.start(maps, stdin=subprocess.PIPE)
    other.stdout.readline()
    words = ["run", "--keep", "--disk", "ckpt=9M", "--", "sh", "-c", "rm ckpt/a; echo; read go"]
    rl = plain.world.start(plain.words(*words), stdin=subprocess.PIPE)
    rl.stdout.readline()
    other.communicate(b"\n", timeout=PATIENCE_S)
    err = rl.communicate(b"go\n", timeout=PATIENCE_S)[1].decode()
    assert path.read_text() == "theirs", err


def test_a_pipe_and_a_socket_that_another_program_has_open_stay(root):
    folder = root.project / "ckpt"
    (folder / "d").mkdir(parents=True)
    os.mkfifo(folder / "d/pipe")
    with socket.socket(socket.AF_UNIX) as theirs, (folder / "d/pipe").open("r+b", buffering=0):
        theirs.bind(str(folder / "socket"))
        theirs.listen()
        line = "rm -r ckpt/d; echo program > new; mv new ckpt/socket"
        done = root.rl("run", "--keep", "--disk", "ckpt=9M", "--", "sh", "-c", line)
    assert "d was not deleted" in done.stderr
    assert (folder / "d/pipe").is_fifo()
    assert (folder / "socket").is_socket()
    assert (folder / "socket.kept").read_text() == "program\n"


def mapped(path: Path, maps: contextlib.ExitStack) -> mmap.mmap:
    with path.open("r+b") as file:
        found = maps.enter_context(mmap.mmap(file.fileno(), 0))
    assert found[:1]  # a page that was read once can be written to unnoticed
    return found


def test_a_program_with_mounts_of_its_own_is_ended_too_when_its_disk_is_moved(root):
    needs("unshare")
    (root.project / "ckpt").mkdir()
    line = "echo $$; exec sleep 300"
    words = ["run", "--disk", "ckpt=9M", "--", "unshare", "-m", "sh", "-c", line]
    process = root.world.start(root.words(*words))
    program = int(process.stdout.readline())
    (root.project / "ckpt").rename(root.project / "away")
    (root.project / "ckpt").mkdir()
    try:
        wait_until(lambda: not is_running(program), patience_s=60)
    finally:
        if is_running(program):
            os.kill(program, signal.SIGKILL)
        err = process.communicate(timeout=PATIENCE_S)[1].decode()
    assert "the program was ended, as it would write to what is there now" in err


def is_rl(pid: int) -> bool:
    """Tell whether a process is rl, or one of its helpers."""
    return b"relaunch" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def steps(whose: str) -> st.SearchStrategy[Step]:
    """What one of the two does; each text that is written is another one, by its number."""
    name = st.sampled_from(NAMES)
    text = st.integers(0, 10**6).map(lambda n: f"{whose}{n};")
    kinds = [
        st.tuples(st.sampled_from(["write", "append", "save"]), name, text),
        st.tuples(st.sampled_from(["rename", "rename", "link", "symlink"]), name, name),
        st.tuples(st.sampled_from(["delete", "mkdir"]), name),
        st.tuples(st.just("chmod"), name, st.sampled_from(["700", "755"])),
    ]
    if whose == "o":
        kinds.append(st.tuples(st.just("hold"), name))
    return st.one_of(kinds)


def both() -> st.SearchStrategy[list[tuple[str, Step]]]:
    one = st.one_of(
        steps("p").map(lambda step: ("program", step)), steps("o").map(lambda step: ("other", step))
    )
    return st.lists(one, min_size=2, max_size=14)


@RUNGS_OF_EACH
def test_the_folder_is_what_others_made_of_it_whatever_the_program_does(request, who, rung):
    person = request.getfixturevalue(who)

    @examples(20)
    @given(both(), st.sampled_from(["ends", "killed"]), st.lists(steps("o"), max_size=4))
    def check(done: list[tuple[str, Step]], end: str, after: list[Step]) -> None:
        with beside(person, rung, keep=False) as pair:
            for whose, step in done:
                (pair.program if whose == "program" else pair.other)(step)
            left = seen(pair.folder)
            pair.end(end)
            assert seen(pair.folder) == left
            for step in after:
                pair.other(step)
            pair.write_late()
            left = seen(pair.folder)
            person.rl("run", "--", "true")
            assert seen(pair.folder) == left

    check()


@RUNGS_OF_EACH
def test_what_is_kept_changes_nothing_of_others_and_nothing_is_lost(request, who, rung):
    person = request.getfixturevalue(who)

    @examples(20)
    @given(both())
    def check(done: list[tuple[str, Step]]) -> None:
        with beside(person, rung, keep=True) as pair:
            for whose, step in done:
                (pair.program if whose == "program" else pair.other)(step)
            pair.end("ends")
            now = seen(pair.folder)
            assert {name: now.get(name) for name in pair.theirs} == pair.theirs, pair.err
            assert not [name for name in now if ".relaunch-" in name]
            assert "not kept" not in pair.err
            there = {inside for _, _, inside in now.values()}
            assert not [text for text in pair.texts if "p" in text and text not in there], pair.err
            pair.write_late()

    check()
