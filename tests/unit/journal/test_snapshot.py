"""The thinking half of snapshots: reading git's words, choosing files, identity, JSON."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from relaunch.journal.home import find_home
from relaunch.journal.snapshot.borrow import read_head
from relaunch.journal.snapshot.choose import choose, sample_digest
from relaunch.journal.snapshot.code import Caps, Code, LeftOut, Root, from_json, to_json
from relaunch.journal.snapshot.folders import Folders
from relaunch.journal.snapshot.listing import folders_of, read_listing, walk
from relaunch.journal.snapshot.restore import places
from relaunch.jsontext import dumps, loads

NAMES = st.text(st.characters(blacklist_characters="\0/"), min_size=1).filter(
    lambda name: name not in (".", "..")
)


def root(path: str = "/work/p", **values: Any) -> Root:
    return Root(path=path, kind="project", base="", tree="t" * 40).but(**values)


@given(st.lists(NAMES), st.lists(NAMES), st.lists(NAMES))
def test_any_name_is_read_from_the_words_of_git(
    touched: list[str], files: list[str], folders: list[str]
) -> None:
    words = [f"C {name}" for name in touched] + [f"? {name}" for name in files]
    words += [f"? {name}/" for name in folders] + [f"R {name}" for name in touched]
    out = "".join(f"{word}\0" for word in words).encode("utf-8", "surrogatepass")
    if any("\ud800" <= char <= "\udfff" for word in words for char in word):
        return  # no file can have half a character for its name
    listing = read_listing(out)
    assert listing.touched == frozenset(touched)
    assert listing.files == tuple(files)
    assert listing.folders == tuple(folders)


@given(st.lists(st.text()), st.lists(st.tuples(st.text(), st.integers(0), st.text())), st.text())
def test_a_snapshot_survives_json(
    names: list[str], left: list[tuple[str, int, str]], problem: str
) -> None:
    outs = tuple(LeftOut(path=p, size=n, digest=d, why="over") for p, n, d in left)
    code = Code(roots=(root(changed=tuple(names), left_out=outs, problem=problem), root("/x")))
    assert from_json(loads(dumps(to_json(code)))) == code


def test_a_name_of_bytes_survives_json() -> None:
    code = Code(roots=(root(new=(os.fsdecode(b"byte\xff.py"),)),))
    assert from_json(loads(dumps(to_json(code)))) == code


def test_the_identity_is_of_the_files_not_of_their_place_or_base() -> None:
    inner = root("/work/p/nested", kind="nested", tree="n" * 40)
    moved = Code(roots=(root("/else/q", base="b"), inner.but(path="/else/q/nested", base="c")))
    code = Code(roots=(root(), inner))
    assert code.digest == moved.digest
    out = LeftOut(path="big", size=5, digest="d", why="over")
    others = [
        Code(roots=(root(tree="u" * 40), inner)),
        Code(roots=(root(), inner.but(path="/work/p/other"))),
        Code(roots=(root(empty_dirs=("out",)), inner)),
        Code(roots=(root(left_out=(out,)), inner)),
        Code(roots=(root(left_out=(out.but(digest="e"),)), inner)),
        Code(roots=(root(),)),
    ]
    assert len({code.digest, *(other.digest for other in others)}) == len(others) + 1


def test_small_files_are_chosen_first_and_the_rest_is_named(tmp_path: Path) -> None:
    for name, size in (("a", 10), ("b", 30), ("c", 20), ("huge", 200)):
        (tmp_path / name).write_bytes(b"x" * size)
    (tmp_path / "folder").mkdir()
    names = ["a", "b", "c", "huge", "folder", "gone"]
    choice = choose(str(tmp_path), names, {}, Caps(max_file=100, max_new=35))
    assert set(choice.add) == {"a", "c"}
    assert {path: why for path, (_, _, _, why) in choice.left.items()} == {
        "b": "over 3.33786e-05 MiB of new files at once",
        "huge": "over 9.53674e-05 MiB",
    }
    assert (choice.gone, choice.covered) == ({"gone"}, True)
    again = choose(str(tmp_path), names, choice.left, Caps())
    assert again.left == choice.left  # unchanged: not hashed again, not let in by the back door


def test_samples_tell_versions_of_a_big_file_apart(tmp_path: Path) -> None:
    path = tmp_path / "big"
    seen = set()
    for at in (0, 500_000, 999_999):
        data = bytearray(1_000_000)
        data[at] = 1
        path.write_bytes(data)
        seen.add(sample_digest(str(path), len(data)))
    assert len(seen) >= 2  # the ends are always looked at
    assert sample_digest(str(tmp_path / "missing"), 5) == ""


def test_the_folders_on_the_way_to_files() -> None:
    assert folders_of(["a/b/c.py", "a/d.py", "e.py"]) == {"", "a", "a/b"}


def test_a_walk_finds_empty_folders_and_stops_when_there_is_too_much(tmp_path: Path) -> None:
    (tmp_path / "x" / "hollow").mkdir(parents=True)
    os.mkfifo(tmp_path / "x" / "pipe")
    found = walk(str(tmp_path), "x", 100)
    assert found.hollow == ("x/hollow",)
    assert found.named == (("x/pipe", "a pipe, socket or device"),)
    assert not found.has_files
    assert walk(str(tmp_path), "x", 1).too_many


def test_folders_are_quiet_only_when_their_times_are_known_and_old(tmp_path: Path) -> None:
    folders = Folders(str(tmp_path), {})
    folders.add([""])
    assert not folders.look()
    while not folders.look():  # a folder that is too young is not trusted
        pass
    same = Folders(str(tmp_path), loads(dumps(folders.as_data())))
    assert same.look()
    (tmp_path / "new").write_text("")
    assert not same.look()


def test_roots_from_outside_get_places_that_do_not_clash() -> None:
    code = Code(
        roots=(
            root("/work/p"),
            root("/work/p/nested", kind="nested"),
            root("/a/lib", kind="editable"),
            root("/b/lib", kind="pythonpath"),
        )
    )
    assert [place for _, place in places(code, "/t")] == [
        "/t",
        "/t/nested",
        "/t/.relaunch-roots/lib",
        "/t/.relaunch-roots/lib_",
    ]


def test_head_is_read_from_its_files_loose_packed_detached_and_unborn(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    home = find_home(str(tmp_path))
    assert read_head(home) == ""
    (git / "packed-refs").write_text(f"# pack-refs\n{'a' * 40} refs/heads/main\n^{'c' * 40}\n")
    assert read_head(home) == "a" * 40
    (git / "refs" / "heads" / "main").write_text("b" * 40 + "\n")
    assert read_head(home) == "b" * 40
    (git / "HEAD").write_text("d" * 64 + "\n")
    assert read_head(home) == "d" * 64
