"""What builds made is put back exactly, within a limit, and never half."""

from __future__ import annotations

import os

import pytest

from relaunch.trial.place.builds import Builds, changed, files_below, forget_bytecode


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "source").write_text("source")
    (folder / "was-file").write_text("file")
    return folder


@pytest.fixture
def builds(tmp_path):
    return Builds(str(tmp_path / "builds"), 1 << 20)


def built(builds, key, tree, build):
    """Let a build run in a tree and keep what it did."""
    before = files_below(str(tree))
    build()
    with builds.lock(key):
        builds.keep(key, str(tree), before, files_below(str(tree)))


def look(tree):
    """Return all that can be seen of a tree but the times of its folders and links."""
    return {
        name: (seen.st_mode, seen.st_mtime_ns if os.path.isfile(tree / name) else 0)
        for name, seen in files_below(str(tree)).items()
        if name != "link"
    }


def test_a_file_that_becomes_a_folder_is_put_back_as_one(tmp_path, tree, builds):
    def build():
        (tree / "was-file").unlink()
        (tree / "was-file").mkdir(mode=0o750)
        (tree / "was-file/inner").write_text("inner")
        (tree / "source").chmod(0o444)
        os.utime(tree / "source", ns=(5, 7_000_000_001))
        (tree / "link").symlink_to("source")

    built(builds, "key", tree, build)
    other = tmp_path / "other"
    other.mkdir()
    (other / "source").write_text("source")
    (other / "was-file").write_text("file")
    found = builds.find("key", str(other))
    found.put_into(str(other))
    assert look(other) == look(tree)
    assert os.readlink(other / "link") == "source"
    assert (other / "was-file/inner").read_text() == "inner"


def test_what_names_its_tree_is_only_found_for_that_tree(tree, builds):
    built(builds, "key", tree, lambda: (tree / "made").write_bytes(b"\0" + os.fsencode(tree)))
    assert builds.find("key", str(tree)) is not None
    assert builds.find("key", "/elsewhere") is None


def test_what_was_not_used_for_longest_makes_room(tree, builds):
    for number, key in enumerate(("one", "two", "three", "four")):
        if key == "four":
            assert builds.find("one", str(tree)) is not None  # used again
        built(builds, key, tree, lambda: (tree / "made").write_bytes(os.urandom(300_000)))
        if key != "four":
            os.utime(os.path.join(builds.folder, key), (1, 1 + number))
    left = [key for key in ("one", "two", "three", "four") if builds.find(key, str(tree))]
    assert left == ["one", "three", "four"]


def test_what_is_larger_than_the_limit_is_not_kept(tree, builds):
    with pytest.raises(OSError, match="more than"):
        built(builds, "key", tree, lambda: (tree / "made").write_bytes(bytes(2 << 20)))
    assert builds.find("key", str(tree)) is None


def test_a_pipe_in_the_tree_is_not_kept_and_nothing_is_left_of_it(tree, builds):
    with pytest.raises(OSError, match="neither"):
        built(builds, "key", tree, lambda: os.mkfifo(tree / "pipe"))
    assert [name for name in os.listdir(builds.folder) if not name.endswith(".lock")] == []


def test_half_of_one_is_as_none(tree, builds):
    built(builds, "key", tree, lambda: (tree / "made").write_text("made"))
    os.unlink(os.path.join(builds.folder, "key", "made.json"))
    assert builds.find("key", str(tree)) is None
    built(builds, "key", tree, lambda: (tree / "made").write_text("made again"))
    assert builds.find("key", str(tree)) is not None


def test_a_change_that_keeps_size_and_time_is_seen(tree):
    before = files_below(str(tree))
    seen = os.stat(tree / "source")
    (tree / "source").write_text("SOURCE")
    os.utime(tree / "source", ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert changed(before, files_below(str(tree))) == ["source"]


def test_bytecode_of_what_was_written_goes_and_other_bytecode_stays(tree):
    cache = tree / "__pycache__"
    cache.mkdir()
    for name in ("a.cpython-311.pyc", "a.cpython-312.opt-1.pyc", "b.cpython-311.pyc"):
        (cache / name).write_bytes(b"")
    forget_bytecode(str(tree), ["a.py", "source"])
    assert sorted(os.listdir(cache)) == ["b.cpython-311.pyc"]
