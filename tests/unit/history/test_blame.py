"""Which commits changed or removed the lines that a run executed."""

import pytest
from tests.histories import History, own_settings  # noqa: F401

from relaunch.history.blame import (
    changed_by_file,
    changed_lines,
    read_blame,
    vanished_by_file,
    vanished_lines,
)

TEXT = "".join(f"value_{n} = compute_something(number={n})\n" for n in range(1, 11))


def edited(text: str, *lines: int) -> str:
    """The text with these lines changed."""
    split = text.splitlines(keepends=True)
    return "".join(f"other_{line}" if n in lines else line for n, line in enumerate(split, 1))


def without(text: str, *lines: int) -> str:
    split = text.splitlines(keepends=True)
    return "".join(line for n, line in enumerate(split, 1) if n not in lines)


@pytest.fixture
def history(tmp_path):
    made = History(tmp_path / "p")
    made.commit(a=TEXT, same=TEXT)
    return made


def test_executed_lines_count_for_the_commit_that_changed_them(history):
    old = history.git("rev-parse", "HEAD")
    one = history.commit(a=edited(TEXT, 1, 2, 3))
    two = history.commit(a=edited(edited(TEXT, 1, 2, 3), 3, 9))
    ran = {"a.py": [1, 2, 3, 5], "same.py": range(1, 11)}
    assert changed_lines(history.repo, old, two, ran) == {one: 2, two: 1}
    assert changed_lines(history.repo, one, two, ran) == {two: 1}
    assert changed_lines(history.repo, old, two, {"a.py": [5]}) == {}


def test_only_spaces_changed_is_not_changed(history):
    old = history.git("rev-parse", "HEAD")
    new = history.commit(a="if True:\n" + TEXT.replace("value", "    value"))
    assert changed_lines(history.repo, old, new, {"a.py": range(1, 12)}) == {new: 1}


def test_lines_keep_their_commits_when_the_file_is_renamed(history):
    old = history.git("rev-parse", "HEAD")
    one = history.commit(a=edited(TEXT, 1))
    history.git("mv", "a.py", "b.py")
    moved = history.commit("moved")
    two = history.commit(b=edited(edited(TEXT, 1), 2))
    assert changed_lines(history.repo, old, two, {"b.py": range(1, 11)}) == {one: 1, two: 1}
    gone = history.commit(b=without(edited(edited(TEXT, 1), 2), 7))
    assert moved not in vanished_lines(history.repo, old, gone, {"a.py": range(1, 11)})
    assert vanished_lines(history.repo, old, gone, {"a.py": [1, 2, 3, 7]}) == {
        one: 1, two: 1, gone: 1,
    }  # fmt: skip


def test_a_change_that_was_taken_back_counts_nothing(history):
    old = history.git("rev-parse", "HEAD")
    history.commit(a=edited(TEXT, 1))
    new = history.commit(a=TEXT)
    assert changed_lines(history.repo, old, new, {"a.py": [1]}) == {}
    assert vanished_lines(history.repo, old, new, {"a.py": [1]}) == {}


def test_removed_lines_count_for_the_commit_that_removed_them(history):
    old = history.git("rev-parse", "HEAD")
    one = history.commit(a=without(TEXT, 2, 3))
    history.commit("nothing")
    two = history.commit(a=without(TEXT, 2, 3, 9))
    assert vanished_lines(history.repo, old, two, {"a.py": [1, 2, 9]}) == {one: 1, two: 1}
    (history.top / "a.py").unlink()
    three = history.commit("gone")
    found = vanished_lines(history.repo, old, three, {"a.py": [1, 2, 4]})
    assert found == {one: 1, three: 2}


def test_a_new_file_counts_whole_though_its_root_is_in_the_range(history):
    old = history.git("rev-parse", "HEAD")
    history.git("checkout", "-q", "--orphan", "other")
    history.git("rm", "-qrf", ".")
    root = history.commit(c=TEXT)
    history.git("checkout", "-q", "main")
    history.git("merge", "-q", "--allow-unrelated-histories", "-m", "join", "other")
    new = history.git("rev-parse", "HEAD")
    found = changed_lines(history.repo, old, new, {"c.py": range(1, 11)})
    assert found == {root: 10}


def test_lines_of_side_branches_count_for_their_own_commit_and_lost_ones_for_the_merge(history):
    old = history.git("rev-parse", "HEAD")
    history.branch("side")
    side = history.commit(a=edited(TEXT, 1, 2))
    history.git("checkout", "-q", "main")
    trunk = history.commit(b="x = 1\n")
    merge = history.merge("side")
    ran = {"a.py": [1, 2], "b.py": [1]}
    found = changed_lines(history.repo, old, merge, ran)
    assert found == {side: 2, trunk: 1}
    assert vanished_lines(history.repo, old, merge, ran) == {merge: 2}


def test_an_old_end_beside_the_line_has_no_vanished_lines(history):
    history.branch("side")
    side = history.commit(b="1\n")
    history.git("checkout", "-q", "main")
    history.commit(a=edited(TEXT, 1))
    merge = history.merge("side")
    assert vanished_lines(history.repo, side, merge, {"a.py": [1]}) == {}


def test_names_and_lines_that_are_not_there_do_no_harm(history):
    old = history.git("rev-parse", "HEAD")
    odd = b"dir/byte\xff :(glob)*.py".decode("utf-8", "surrogateescape")
    history.write(odd, b"caf\xe9 = 1\r\n\0\n")
    history.commit(a=edited(TEXT, 1))
    (history.top / "same.py").unlink()
    new = history.commit()
    ran = {odd: {1, 2}, "a.py": [0, 1, 99], "same.py": [1], "missing.py": [1], "..": [1]}
    found = changed_lines(history.repo, old, new, ran)
    assert sorted(found.values()) == [3]
    assert vanished_lines(history.repo, old, new, {"a.py": [0, 1, 99], "none": [1]}) == {
        history.git("rev-parse", "HEAD~1"): 1
    }


def test_a_list_of_revisions_to_ignore_is_not_obeyed(history, tmp_path, monkeypatch):
    old = history.git("rev-parse", "HEAD")
    new = history.commit(a=edited(TEXT, 1))
    history.write(".git-blame-ignore-revs", f"{new}\n")
    history.git("config", "blame.ignoreRevsFile", ".git-blame-ignore-revs")
    assert changed_lines(history.repo, old, new, {"a.py": [1]}) == {new: 1}
    (tmp_path / "settings").write_text("[blame]\n\tignoreRevsFile = missing\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "settings"))
    assert changed_lines(history.repo, old, new, {"a.py": [1]}) == {new: 1}


def test_when_the_time_is_up_there_is_what_was_found(history):
    old = history.git("rev-parse", "HEAD")
    new = history.commit(a=edited(TEXT, 1, 2, 3), same=edited(TEXT, 1))
    ran = {"same.py": [1], "a.py": [1, 2, 3]}
    by_file = [("a.py", {new: 3}), ("same.py", {new: 1})]
    assert list(changed_by_file(history.repo, old, new, ran)) == by_file
    assert list(vanished_by_file(history.repo, old, new, ran)) == by_file
    assert changed_lines(history.repo, old, new, ran, limit_s=0) == {new: 3}
    assert vanished_lines(history.repo, old, new, ran, limit_s=0) == {new: 3}
    assert changed_lines(history.repo, old, new, ran, limit_s=60) == {new: 4}


def test_the_words_of_blame_are_read_whatever_the_lines_say():
    one, two = "1" * 40, "2" * 40
    out = f"{one} 1 1 2\nsummary {two} 3 3\nboundary\nfilename a\n\tboundary\n"
    out += f"{one} 2 2\n\t{two} 9 9\n"
    out += f"{two} 5 3 1\nprevious {one} a\nfilename a\n\t\n"
    assert read_blame(out.encode()) == ({1: one, 2: one, 3: two}, {one})
    assert read_blame(b"") == ({}, set())
