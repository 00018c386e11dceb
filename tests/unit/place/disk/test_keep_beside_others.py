"""What is kept of a small disk never changes what another program did in the folder."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples
from tests.second_writer import NAMES, Step, begin, do, seen

if sys.platform != "linux":
    pytest.skip("small disks need Linux", allow_module_level=True)

from relaunch.proc import renaming
from relaunch.proc.renaming import exchange, rename_new
from relaunch.trial.place.disk import keep, others
from relaunch.trial.place.disk.keep import Keeping
from relaunch.trial.place.disk.mounted import Layer
from relaunch.trial.place.disk.others import Moment, now

OPAQUE = "user.overlay.opaque"


class Two:
    """A real folder with something in it, and what a program wrote over it."""

    def __init__(self, around: Path) -> None:
        self.written, self.real = around / "written", around / "real"
        self.written.mkdir()
        begin(self.real)
        stamps = [path.lstat().st_ctime_ns for path in (self.real, *self.real.rglob("*"))]
        self.began = now()
        while self.began.stamp_ns <= max(stamps):  # a tick of the kernel
            self.began = now()

    def fill(self, name: str, count: int) -> None:
        """Have many files in a folder before."""
        for number in range(count):
            (self.real / name / f"{number}").write_text("before")
        last = (self.real / name / f"{count - 1}").stat().st_ctime_ns
        while self.began.stamp_ns <= last:
            self.began = now()

    def keep(self, attributes: str = "user.overlay.") -> Keeping:
        """Bring it; without `attributes` from a disk that looked empty."""
        layer = Layer(
            written=os.open(self.written, os.O_RDONLY), real=os.open(self.real, os.O_PATH),
            attributes=attributes, seen=-1, began=self.began,
        )  # fmt: skip
        keeping = Keeping(layer, owners=False)
        keeping.run()
        os.close(layer.written)
        os.close(layer.real)
        return keeping


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


def delete(two: Two, name: str) -> None:
    """Have the program delete it, as overlay notes that."""
    if os.geteuid():
        pytest.skip("only root can make what overlay leaves for a deleted file")
    (two.written / name).parent.mkdir(parents=True, exist_ok=True)
    os.mknod(two.written / name, stat.S_IFCHR, 0)


def test_a_file_that_both_changed_is_there_twice(two: Two):
    (two.written / "a").write_text("program")
    (two.real / "a").write_text("other")
    keeping = two.keep()
    assert (two.real / "a").read_text() == "other"
    assert (two.real / "a.kept").read_text() == "program"
    assert keeping.conflicts == ["a is the other program's, a.kept this one's"]


def test_a_file_that_both_made_is_there_twice_and_no_name_is_taken(two: Two):
    (two.written / "new").write_text("program")
    (two.real / "new").write_text("other")
    (two.real / "new.kept").write_text("theirs too")
    two.keep()
    assert [(two.real / f"new{end}").read_text() for end in ("", ".kept", ".kept-2")] == [
        "other", "theirs too", "program",
    ]  # fmt: skip


def test_a_file_that_was_saved_anew_with_an_old_time_is_another_programs_all_the_same(two: Two):
    (two.written / "a").write_text("program")
    was = (two.real / "a").stat()
    (two.real / "saved").write_text("a of other;")
    (two.real / "saved").rename(two.real / "a")
    os.utime(two.real / "a", ns=(was.st_atime_ns, was.st_mtime_ns))
    two.keep()
    assert (two.real / "a").read_text() == "a of other;"


def test_a_file_that_another_program_changed_is_not_deleted(two: Two):
    delete(two, "a")
    delete(two, "d/a")
    (two.real / "a").write_text("other")
    keeping = two.keep()
    assert (two.real / "a").read_text() == "other"
    assert not (two.real / "d/a").exists()
    assert (keeping.conflicts, keeping.deleted) == (["a was not deleted"], 1)


def test_a_folder_in_which_another_program_wrote_is_not_deleted(two: Two):
    delete(two, "e")
    (two.real / "e/d/other").write_text("other")
    before = seen(two.real)
    assert two.keep().conflicts == ["e was not deleted"]
    assert seen(two.real) == before


def test_a_folder_that_was_made_anew_over_work_of_others_comes_beside_it(two: Two):
    (two.written / "e").mkdir()
    os.setxattr(two.written / "e", OPAQUE, b"y")
    (two.written / "e/new").write_text("program")
    (two.real / "e/d/a").write_text("other")
    before = seen(two.real)
    two.keep()
    assert (two.real / "e.kept/new").read_text() == "program"
    assert {name: facts for name, facts in seen(two.real).items() if ".kept" not in name} == before


def test_a_file_that_somebody_has_open_to_write_stays_the_one_they_write_to(two: Two):
    (two.written / "a").write_text("program")
    delete(two, "e/c")
    with (two.real / "a").open("a") as one, (two.real / "e/c").open("a") as other:
        two.keep()
        for file in (one, other):
            file.write("late;")
    assert (two.real / "a").read_text() == "a of before;late;"
    assert (two.real / "e/c").read_text() == "e/c of before;late;"
    assert (two.real / "a.kept").read_text() == "program"


@pytest.mark.parametrize("ahead_s", [-3600, -1, 1, 3600])
def test_it_is_the_same_where_the_clock_was_set_meanwhile(two: Two, ahead_s: int):
    stamp = two.began.stamp_ns + ahead_s * 10**9  # what the clock said before it was set
    two.began = Moment(stamp_ns=stamp, running_ns=two.began.running_ns + 2 * 10**8)
    (two.written / "a").write_text("program")
    (two.written / "d").mkdir(mode=0o755)
    (two.written / "d/a").write_text("program")
    until = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + 2 * 10**8
    while time.clock_gettime_ns(time.CLOCK_BOOTTIME) < until:
        (two.real / "a").write_text("other")
    two.keep()
    assert (two.real / "a").read_text() == "other"
    assert (two.real / "d/a").read_text() == "program"


def test_what_was_there_and_not_seen_is_neither_replaced_nor_deleted_nor_given_rights(two: Two):
    """On a disk that looked empty, who appends to a log makes a new one."""
    (two.written / "a").write_text("program")
    (two.written / "d").mkdir(mode=0o700)
    (two.written / "d/a").symlink_to("a")
    (two.written / "e").write_text("program, where a folder is")
    if os.geteuid() == 0:  # no sign of a deleted file, as nothing can be deleted that is not seen
        os.mknod(two.written / "d/b", stat.S_IFCHR, 0)
    before = seen(two.real)
    keeping = two.keep(attributes="")
    after = seen(two.real)
    assert {name: after.get(name) for name in before} == before
    assert (two.real / "a.kept").read_text() == "program"
    assert (two.real / "e.kept").read_text() == "program, where a folder is"
    assert os.readlink(two.real / "d/a.kept") == "a"
    assert "a was there and was not seen: what was written is a.kept" in keeping.beside
    assert (keeping.conflicts, keeping.problems, keeping.deleted) == ([], [], 0)


def test_what_may_not_be_replaced_stays_and_nothing_is_counted_that_was_not_kept(two: Two):
    """A file with a lease, as file servers give their clients, cannot even be opened."""
    (two.written / "a").write_text("program")
    with (two.real / "a").open("r+") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        keeping = two.keep()
        signal.signal(signal.SIGIO, signal.SIG_DFL)
    assert ((two.real / "a").read_text(), (two.real / "a.kept").read_text()) == (
        "a of before;", "program",
    )  # fmt: skip
    assert keeping.problems == []
    assert len(keeping.beside) == 1
    assert (keeping.files, keeping.bytes) == (1, len("program"))


def test_rights_that_another_program_gave_a_folder_stay(two: Two):
    (two.written / "d").mkdir(mode=0o755)
    (two.written / "d/new").write_text("program")
    (two.real / "d").chmod(0o700)
    keeping = two.keep()
    assert stat.S_IMODE((two.real / "d").stat().st_mode) == 0o700
    assert (two.real / "d/new").read_text() == "program"
    assert keeping.conflicts == ["d has the rights that the other program left"]


@pytest.mark.parametrize("folder", ["d", "."])
def test_rights_that_a_folder_is_given_while_it_is_kept_stay(
    two: Two, monkeypatch: pytest.MonkeyPatch, folder: str
):
    (two.written / "d").mkdir(mode=0o755)
    (two.written / "d/new").write_text("program")

    def rename(*words: str, **folders: Any) -> None:
        (two.real / folder).chmod(0o710)
        rename_new(*words, **folders)

    monkeypatch.setattr(keep, "rename_new", rename)
    keeping = two.keep()
    assert stat.S_IMODE((two.real / folder).stat().st_mode) == 0o710
    assert keeping.conflicts == [f"{folder} has the rights that the other program left"]


def test_both_names_of_a_file_can_be_deleted(two: Two):
    delete(two, "a")
    delete(two, "e/a too")
    keeping = two.keep()
    assert (keeping.deleted, keeping.conflicts) == (2, [])


def test_no_link_that_somebody_put_there_is_followed(two: Two, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("theirs")
    (two.written / "d").mkdir(mode=0o700)
    (two.written / "d/a").write_text("program")
    (two.real / "d").rename(two.real / "gone")
    (two.real / "d").symlink_to(outside)
    before = seen(outside)
    two.keep()
    assert seen(outside) == before
    assert (two.real / "d").is_symlink()
    assert (two.real / "d.kept/a").read_text() == "program"


def test_what_is_in_a_folder_that_was_put_in_place_of_another_is_not_replaced_or_deleted(two: Two):
    (two.written / "d").mkdir()
    (two.written / "d/a").write_text("program")
    delete(two, "d/b")
    (two.real / "d").rename(two.real / "gone")
    (two.real / "e/d").rename(two.real / "d")  # its files bear stamps of before
    (two.real / "gone/b").rename(two.real / "d/b")
    keeping = two.keep()
    assert (two.real / "d/a").read_text() == "e/d/a of before;"
    assert (two.real / "d/b").read_text() == "d/b of before;"
    assert (two.real / "d/a.kept").read_text() == "program"
    assert "d/b was not deleted" in keeping.conflicts


def test_nothing_is_deleted_deep_in_a_folder_that_was_put_in_place_of_another(two: Two):
    (two.written / "b/d").mkdir(parents=True)
    delete(two, "b/d/a")
    (two.real / "e").rename(two.real / "b")
    before = seen(two.real)
    assert two.keep().conflicts == ["b/d/a was not deleted"]
    assert seen(two.real) == before


def test_a_name_that_a_killed_one_with_the_same_id_left_is_in_nobodys_way(two: Two):
    left = two.real / f".relaunch-{os.getpid()}-1"
    left.write_text("left")
    (two.written / "a").write_text("program")
    assert two.keep().problems == []
    assert ((two.real / "a").read_text(), left.read_text()) == ("program", "left")


def test_a_name_that_is_as_long_as_names_can_be_is_kept_beside(two: Two):
    name = "é" * 127
    (two.written / name).write_text("program")
    (two.real / name).write_text("other")
    keeping = two.keep()
    assert keeping.problems == []
    found = sorted(path.read_text() for path in two.real.glob("é*"))
    assert found == ["other", "program"]


def beside(act: Callable[[], None]) -> int:
    """Do it in another process, which ends with it."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(0)
    return pid


def test_what_is_made_in_a_folder_while_it_is_deleted_stays(two: Two):
    two.fill("e", 3000)
    delete(two, "e")
    started, made = two.real.parent / "started", two.real.parent / "made"

    def makes() -> None:
        os.chdir(two.real / "e")
        count = len(os.listdir("."))
        started.touch()
        while len(os.listdir(".")) == count:
            pass
        with open("new", "w", encoding="utf-8") as file:
            file.write("other")
        made.touch()

    other = beside(makes)
    while not started.exists():
        pass
    keeping = two.keep()
    os.waitpid(other, 0)
    assert keeping.problems == []
    if made.exists():  # else all was deleted before it came to it
        assert (two.real / "e/new").read_text() == "other"
        assert os.listdir(two.real / "e") == ["new"]
        assert keeping.conflicts == ["e was not deleted"]


@pytest.mark.parametrize("saves", [(1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)])
def test_of_a_file_that_is_saved_over_and_over_the_last_has_the_name(
    two: Two, monkeypatch: pytest.MonkeyPatch, saves: tuple[int, ...]
):
    """Here just before two names are swapped for the first time, the second and so on."""
    (two.written / "a").write_text("program")
    swaps = 0

    def swap(*words: str, **folders: Any) -> None:
        nonlocal swaps
        swaps += 1
        if swaps in saves:
            do(two.real, ("save", "a", f"other {swaps}"))
        exchange(*words, **folders)

    monkeypatch.setattr(keep, "exchange", swap)
    assert two.keep().problems == []
    assert swaps >= len(saves)
    assert (two.real / "a").read_text() == f"other {saves[-1]}"
    assert (two.real / "a.kept").read_text() == "program"
    assert not [name for name in os.listdir(two.real) if name.startswith(".relaunch-")]


@pytest.mark.parametrize("step", ["look_at", "__init__"])
def test_a_folder_that_is_moved_here_while_the_folders_are_looked_at_is_left_alone(
    two: Two, monkeypatch: pytest.MonkeyPatch, step: str
):
    """Here before the first folder, and while the root is looked at."""
    (two.written / "d").mkdir()
    (two.written / "d/a").write_text("program")
    theirs = two.real.parent / "theirs"
    (two.real / "e/d").rename(theirs)
    two.began = now()
    monkeypatch.setattr(others, "_since", _then(others._since, two, theirs, step == "__init__"))
    look = others.Others.look_at
    monkeypatch.setattr(others.Others, "look_at", _then(look, two, theirs, step == "look_at"))
    keeping = two.keep()
    assert (two.real / "d/a").read_text() == "e/d/a of before;"
    assert (two.real / "d/a.kept").read_text() == "program"
    assert keeping.problems == []


def _then(step: Callable[..., Any], two: Two, theirs: Path, is_now: bool) -> Callable[..., Any]:
    """Move a folder in place of `d` before a step."""

    def then(*words: Any) -> Any:
        if is_now and theirs.exists():
            (two.real / "d").rename(two.real.parent / "gone")
            theirs.rename(two.real / "d")
        return step(*words)

    return then


def test_a_folder_that_is_moved_while_it_is_kept_is_not_taken_for_ours(
    two: Two, monkeypatch: pytest.MonkeyPatch
):
    (two.written / "d").mkdir(mode=0o755)
    (two.written / "d/x").write_text("program")
    (two.written / "new").write_text("program")

    def rename(*words: str, **folders: Any) -> None:
        rename_new(*words, **folders)
        if words[1] == "x":
            (two.real / "d").rename(two.real / "new")

    monkeypatch.setattr(keep, "rename_new", rename)
    two.keep()
    assert (two.real / "new/b").read_text() == "d/b of before;"
    assert (two.real / "new.kept").read_text() == "program"


def cannot(*_: object, **__: object) -> None:
    """Do what a file system does that has only plain renames, as network ones do."""
    raise OSError(errno.EINVAL, "Invalid argument")


def test_a_file_that_is_made_just_before_one_gets_its_name_stays_on_any_file_system(
    two: Two, monkeypatch: pytest.MonkeyPatch
):
    (two.written / "new").write_text("program")
    lexists = os.path.lexists

    def look(path: str) -> bool:
        is_there = lexists(path)
        if path.endswith("/new"):
            (two.real / "new").write_text("other")
        return is_there

    link = os.link

    def make(old: str, new: str, **folders: Any) -> None:
        if new == "new":
            (two.real / "new").write_text("other")
        link(old, new, **folders)

    monkeypatch.setattr(renaming, "_rename", cannot)
    monkeypatch.setattr(os.path, "lexists", look)
    monkeypatch.setattr(os, "link", make)
    keeping = two.keep()
    assert (two.real / "new").read_text() == "other"
    assert (two.real / "new.kept").read_text() == "program"
    assert keeping.problems == []


def test_a_file_keeps_its_name_where_what_replaces_it_cannot_get_it(
    two: Two, monkeypatch: pytest.MonkeyPatch
):
    """On a file system that cannot swap names, and fails between two renames."""
    (two.written / "a").write_text("program")
    fails = iter([True])

    def rename(*words: str, **folders: Any) -> None:
        if words[1] == "a" and next(fails, False):
            raise OSError(errno.EIO, "Input/output error")
        rename_new(*words, **folders)

    monkeypatch.setattr(keep, "exchange", cannot)
    monkeypatch.setattr(keep, "rename_new", rename)
    two.keep()
    assert (two.real / "a").read_text() == "a of before;"
    assert (two.real / "a.kept").read_text() == "program"


def written_steps() -> st.SearchStrategy[list[tuple[str, str, str]]]:
    kinds = st.sampled_from(["file", "folder", "opaque", "gone", "link"])
    text = st.integers(0, 10**6).map(lambda n: f"p{n};")
    return st.lists(st.tuples(kinds, st.sampled_from(NAMES), text), max_size=6)


def write(written: Path, kind: str, name: str, text: str) -> None:
    """Leave what overlay leaves."""
    path = written / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind in ("folder", "opaque"):
            path.mkdir(exist_ok=True)
            if kind == "opaque":
                os.setxattr(path, OPAQUE, b"y")
        elif kind == "file":
            path.write_text(text)
        elif kind == "link":
            path.symlink_to(text)
        elif os.geteuid() == 0:
            os.mknod(path, stat.S_IFCHR, 0)
    except OSError:  # a file is where a folder would have to be
        pass


def other_steps() -> st.SearchStrategy[list[Step]]:
    name = st.sampled_from(NAMES)
    text = st.integers(0, 10**6).map(lambda n: f"o{n};")
    one: st.SearchStrategy[Step] = st.one_of(
        st.tuples(st.sampled_from(["write", "append", "save"]), name, text),
        st.tuples(st.sampled_from(["rename", "link", "symlink"]), name, name),
        st.tuples(st.sampled_from(["delete", "mkdir"]), name),
        st.tuples(st.just("chmod"), name, st.sampled_from(["700", "755"])),
    )
    return st.lists(one, max_size=6)


@examples(200)
@given(written_steps(), other_steps())
def test_whatever_both_did_the_other_ones_work_stays_and_the_programs_comes(
    program: list[tuple[str, str, str]], other: list[Step]
):
    with tempfile.TemporaryDirectory() as around:
        two = Two(Path(around))
        before = seen(two.real)
        for step in other:
            do(two.real, step)
        now = seen(two.real)
        theirs = {name: facts for name, facts in now.items() if before.get(name) != facts}
        for kind, name, text in program:
            write(two.written, kind, name, text)
        texts = [inside for _, _, inside in seen(two.written).values() if inside]
        keeping = two.keep()
        end = seen(two.real)
        assert {name: end.get(name) for name in theirs} == theirs
        assert keeping.problems == []
        assert not set(texts) - {inside for _, _, inside in end.values()}
        assert not [name for name in end if ".relaunch-" in name]
        if not other:
            assert keeping.conflicts == []
