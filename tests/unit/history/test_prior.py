"""How likely a commit is the one, from what it touched."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.history.line import Commit
from relaunch.history.prior import ANYTHING, BY_THE_MERGE, is_aside, weights, weights_on_line

FILES = st.sampled_from(["pkg/a.py", "pkg/b.py", "docs/x.md", "tests/test_a.py", "setup.cfg"])
COUNTS = st.one_of(st.just(0), st.integers(1, 10**6))


def commit(name: str) -> Commit:
    return Commit(id=name, parents=(), tree="", author="", when=0, subject="")


def weighed(touched, blamed=None, vanished=None, ran=()):
    return weights([commit(name) for name in touched], touched, blamed or {}, vanished or {}, ran)


@given(st.lists(st.tuples(st.sets(FILES), COUNTS, COUNTS), min_size=1), st.sets(FILES))
def test_weights_sum_to_one_and_are_zero_for_empty_diffs_alone(rows, ran):
    touched = {str(at): tuple(files) for at, (files, _, _) in enumerate(rows)}
    blamed = {str(at): count for at, (_, count, _) in enumerate(rows)}
    vanished = {str(at): count for at, (_, _, count) in enumerate(rows)}
    found = weighed(touched, blamed, vanished, ran)
    assert math.isclose(math.fsum(found), 1)
    idle = [not files for files, _, _ in rows]
    assert [weight == 0 for weight in found] == ([False] * len(idle) if all(idle) else idle)


@given(st.integers(0, 1000), st.integers(1, 1000))
def test_more_executed_lines_make_a_commit_likelier(few, more):
    found = weighed({"a": ["x.py"], "b": ["x.py"]}, {"a": few}, {"b": few + more}, ["x.py"])
    assert found[0] < found[1]


def test_lines_that_ran_count_most_then_files_that_ran_then_source_then_papers():
    touched = {
        "docs": ["docs/a.md"], "source": ["b.py"], "file": ["a.py"], "lines": ["a.py"], "none": [],
    }  # fmt: skip
    docs, source, file, lines, none = weighed(touched, {"lines": 1}, {}, ["a.py"])
    assert none == 0 < docs < source < file < lines
    assert math.isclose(docs, ANYTHING / 4)


def test_a_thousand_lines_do_not_hide_a_commit_of_one():
    touched = {"big": ["a.py"], "small": ["a.py"]}
    big, small = weighed(touched, {"big": 1000, "small": 1}, {}, ["a.py"])
    assert big < 12 * small


def test_a_commit_of_which_nothing_is_known_may_be_the_one():
    found = weights([commit("known"), commit("unknown")], {"known": ["a.py"]}, {}, {}, ["a.py"])
    assert found == [0.5, 0.5]


def on_line(touched, sides, blamed=None, vanished=None, ran=()):
    line = [commit(name) for name in touched if name.isupper()]
    those = {name: [commit(one) for one in names] for name, names in sides.items()}
    return weights_on_line(line, those, touched, blamed or {}, vanished or {}, ran)


def test_a_merge_weighs_as_much_as_all_that_it_brought_in():
    touched = dict.fromkeys("ABxyz", ("a.py",))
    alone, merge = on_line(touched, {"B": "xyz"})
    assert math.isclose(merge, 3 * alone * (1 + BY_THE_MERGE))


def test_of_what_a_merge_brought_in_each_counts_for_what_it_did_itself():
    touched = {"A": ("a.py",), "B": ("a.py", "docs/a.md"), "x": ("a.py",), "y": ("docs/a.md",)}
    papers = on_line(touched, {"B": "y"}, {"A": 1}, {}, ["a.py"])
    lines = on_line(touched, {"B": "xy"}, {"A": 1, "x": 1}, {}, ["a.py"])
    assert papers[1] < papers[0] / 5
    assert lines[1] > lines[0]


def test_lines_that_vanished_in_a_merge_count_for_all_that_it_brought_in():
    touched = dict.fromkeys("ABxy", ("a.py",))
    without = on_line(touched, {"B": "xy"}, {"A": 1})
    assert on_line(touched, {"B": "xy"}, {"A": 1}, {"B": 2})[1] > without[1]


def test_a_merge_that_changed_nothing_has_no_weight_and_one_of_empty_commits_has():
    touched = {"A": ("a.py",), "B": (), "C": ("a.py",), "x": ("a.py",), "y": ()}
    alone, nothing, empty = on_line(touched, {"B": "x", "C": "y"})
    assert nothing == 0
    assert math.isclose(alone, empty)


def test_an_empty_range_has_no_weights():
    assert weights([], {}, {}, {}, []) == []


@pytest.mark.parametrize(
    "path",
    ["README.md", "docs/conf.py", "a/tests/x.py", "test_a.py", "pkg/a_test.py", "conftest.py",
     ".github/workflows/ci.yml", ".pre-commit-config.yaml", "tox.ini", "CHANGES.rst", "LICENSE",
     "logo.svg", "AUTHORS.txt", "changelog.d/1.feature"],
)  # fmt: skip
def test_papers_tests_and_upkeep_lie_aside(path):
    assert is_aside(path)


@pytest.mark.parametrize(
    "path",
    ["pkg/a.py", "pkg/a.pyx", "src/x.c", "kernels/k.cu", "pyproject.toml", "setup.cfg", "setup.py",
     "requirements.txt", "requirements-dev.txt", "constraints.txt", "environment.yml", "uv.lock",
     "pkg/config.json", "pkg/testament.py", "Dockerfile", "pkg/document.py", "latest.py",
     "pkg/history.py", "vocab.txt", "CMakeLists.txt", "Makefile"],
)  # fmt: skip
def test_code_and_what_it_depends_on_do_not(path):
    assert not is_aside(path)
