"""What differs between two trials is named: lines, words, files."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.session.two_trials import (
    changes,
    file_changes,
    line_differences,
    patch_of,
    washed,
    word_changes,
)


def test_the_first_differing_line_has_its_number_and_both_texts():
    (found,) = line_differences(b"a\nstep nan\n", b"a\nstep ok\n", stream="stdout")
    assert (found.line, found.old, found.new, found.passing) == (2, "step nan", "step ok", False)


def test_a_difference_of_numbers_is_told_as_such_and_the_next_real_one_found():
    first, beyond = line_differences(
        b"took 1.2 s\nat 0x7f00\nok\n", b"took 3.4 s\nat 0x8e11\nfailed\n", stream="stdout"
    )
    assert (first.line, first.passing) == (1, True)
    assert (beyond.line, beyond.old, beyond.new) == (3, "ok", "failed")


def test_output_that_ends_early_differs_where_it_ends():
    (found,) = line_differences(b"a\n", b"a\nb\n", stream="stdout")
    assert (found.line, found.old, found.new) == (2, None, "b")


@given(st.binary(max_size=40))
def test_equal_output_does_not_differ(data):
    assert line_differences(data, data, stream="stdout") == []


@given(st.text(max_size=40))
def test_washing_twice_is_washing_once(line):
    assert washed(washed(line)) == washed(line)


def test_words_of_a_command_are_compared_one_by_one():
    assert word_changes(["a", "--n", "3"], ["a", "--n", "4", "-v"]) == (
        ("equal", ("a", "--n"), ("a", "--n")),
        ("replace", ("3",), ("4", "-v")),
    )
    assert word_changes(["a"], ["a"]) == ()


def test_added_removed_and_changed_names():
    found = changes({"a": "1", "b": "2", "c": "3"}, {"b": "2", "c": "4", "d": "5"})
    assert [(one.name, one.old, one.new) for one in found] == [
        ("a", "1", None),
        ("c", "3", "4"),
        ("d", None, "5"),
    ]


lines = st.lists(st.sampled_from(["a", "b", "- x", "+ y", "@@ -1 +1 @@", "diff --git a/z b/z", ""]))


@examples(25)
@given(lines, lines)
def test_a_diff_of_any_text_is_read_as_git_means_it(tmp_path_factory, old, new):
    folder = tmp_path_factory.mktemp("diff")
    for name, text in (("old", old), ("new", new)):
        (folder / name).write_text("".join(line + "\n" for line in text))
    words = ["git", "diff", "--no-index", "old", "new"]
    text = subprocess.run(words, cwd=folder, capture_output=True, text=True).stdout
    counts = subprocess.run(
        [*words, "--numstat"], cwd=folder, capture_output=True, text=True
    ).stdout
    added, removed = map(int, counts.split()[:2]) if counts else (0, 0)
    files = file_changes(text)
    assert (sum(f.added for f in files), sum(f.removed for f in files)) == (added, removed)
    for file in files:
        for sign, number, line in file.lines:
            assert (old if sign == "-" else new)[number - 1] == line


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n",
            "new",
        ),
        (
            "diff --git a/x b/x\ndeleted file mode 1\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
            "deleted",
        ),
        ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "binary"),
        ("x: absent -> 3,000 bytes, over 1 KiB\n", "absent -> 3,000 bytes, over 1 KiB"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "mode"),
    ],
)
def test_what_happened_to_a_file(text, what):
    (file,) = file_changes(text)
    assert (file.path, file.what) == ("x", what)


def test_a_patch_has_no_line_that_git_does_not_know():
    patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a: b -> c\n+a: b -> d\n"
    note = "big.bin: absent -> 3,000 bytes, too large\n"
    assert patch_of(patch + note) == patch
    assert patch_of(note) == ""
