"""Which failures another version of Python may be without, and which versions are tried first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.session.bisect.outgrown import of_then, others, outgrown
from relaunch.trial.place.pythons import suitable

IN_2019, IN_2021, IN_2024 = 1_577_000_000, 1_620_000_000, 1_720_000_000
INSTALLED = [
    (f"3.{minor}.1", f"/opt/python3.{minor}") for minor in (13, 12, 11, 10, 9, 8, 7, 6)
] + [("2.7.18", "/opt/python2")]


@pytest.mark.parametrize(
    "text",
    [
        "app.py:1 ModuleNotFoundError: No module named 'imp'",
        "setup.py:3 ModuleNotFoundError: No module named 'distutils.core'",
        "a.py:1 AttributeError: module 'collections' has no attribute 'Mapping'",
        "a.py:1 AttributeError: module 'asyncio' has no attribute 'coroutine'",
        "a.py:1 ImportError: cannot import name 'Mapping' from 'collections' (/usr/lib/x.py)",
        "a.py:9 SyntaxError: invalid syntax",
        "a.py:9 TypeError: sleep() got an unexpected keyword argument 'loop'",
        "a.py:9 AttributeError: 'Thread' object has no attribute 'isAlive'",
    ],
)
def test_what_another_python_may_have_is_told(text):
    assert outgrown(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "app.py:1 ModuleNotFoundError: No module named 'numpy'",
        "app.py:1 ModuleNotFoundError: No module named 'improved'",
        "a.py:1 AttributeError: module 'numpy' has no attribute 'bool'",
        "a.py:1 ImportError: cannot import name 'x' from 'collectionsof' (/usr/lib/x.py)",
        "a.py:9 ValueError: broken",
        "a.py:9 TypeError: work() got an unexpected keyword argument 'size'",
    ],
)
def test_what_is_no_fault_of_the_python_is_not(text):
    assert not outgrown(text)


def versions(mine, *, when, requires="", newer=False):
    found = others(INSTALLED, mine, requires=requires, when=when, newer=newer)
    return [int(version.split(".")[1]) for version, _ in found]


def test_the_python_of_the_time_comes_first():
    assert of_then(IN_2019) == 8
    assert versions("3.12.4", when=IN_2019) == [8, 9, 7]
    assert versions("3.12.4", when=IN_2021) == [9, 10, 8]
    assert versions("3.12.4", when=0) == [6, 7, 8]


def test_newer_ones_only_where_they_may_help():
    assert versions("3.11.7", when=IN_2024) == [10, 9, 8]
    assert versions("3.11.7", when=IN_2024, newer=True) == [12, 13, 10]
    assert versions("3.11.7", when=IN_2024, requires=">=3.12") == [12, 13]


@given(
    mine=st.integers(6, 14),
    when=st.floats(0, 2e9),
    requires=st.sampled_from(("", ">=3.8", "<3.10", ">=3.7,<3.9", "==3.12.*", "nonsense")),
    newer=st.booleans(),
)
def test_only_what_is_installed_allowed_and_another_is_tried(mine, when, requires, newer):
    found = others(INSTALLED, f"3.{mine}.0", requires=requires, when=when, newer=newer)
    assert set(found) <= set(suitable(requires, INSTALLED))
    minors = [int(version.split(".")[1]) for version, _ in found]
    assert mine not in minors
    assert len(minors) == len(set(minors)) <= 3
    assert all(version.startswith("3.") for version, _ in found)
