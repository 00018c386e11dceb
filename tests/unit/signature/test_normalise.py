"""Washing takes away what changes from run to run and keeps what tells failures apart."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from relaunch.trial.signature.normalise import plain, wash

SAME = [
    ("<Thing object at 0x7f12ab34cd>", "<Thing object at 0x55d0>"),
    ("No such file: '/tmp/alpha/data/config.yaml'", "No such file: '/srv/b-2/config.yaml'"),
    ("No such file: 'data/config.yaml'", "No such file: '/srv/b-2/config.yaml'"),
    ("in /tmp/tmpab12cd34/x.bin", "in /var/tmp/tmpzz00_9k1/x.bin"),
    ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-e89b-12d3-a456-4266141740ff"),
    ("at 2026-11-15 13:00:00,123 gone", "at 2025-01-02T03:04:05.6Z gone"),
    ("took 3.5 s", "took 120 s"),
    ("took 12ms", "took 3 seconds"),
    ("Tried to allocate 20.00 MiB", "Tried to allocate 1.50 GiB"),
    ("port 8080 on 127.0.0.1:8080", "port 1 on 10.1.2.3:99"),
    ("rank 0: cuda:0", "rank 7: cuda:3"),
    ("worker3 died", "worker12 died"),
    ("Thread-1 (work)", "Thread-29 (work)"),
    ("commit 0a1b2c3d4e", "commit fffe123"),
    ("shapes (4x10 and 8x2)", "shapes (16x20 and 3x1)"),
    ("index 5 of [1, 2, 3]", "index 7 of [4, 5]"),
    ("lr=1e-05", "lr=0.3"),
    ("\x1b[31mred\x1b[0m 1", "red 2"),
]
DIFFERENT = [
    ("expected Float16", "expected Float32"),
    ("No such file: '/a/config.yaml'", "No such file: '/a/vocab.json'"),
    ("no module named 'foo2'", "no module named 'foo3'"),
    ("loss is nan", "loss is inf"),
    ("cuda:0 and cpu", "cpu and cuda:0"),
    ("took 3 s", "took 3 MiB"),
    ("missing key: fc1.weight", "missing key: fc2.weight"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_changes_from_run_to_run_is_washed_away(one, other):
    assert wash(one) == wash(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_tells_failures_apart_stays(one, other):
    assert wash(one) != wash(other)


PIECES = st.sampled_from(
    [
        *"abcxyz019 .,:;-_/\\'\"()[]{}<>=+#@~\n\t",
        "/tmp/",
        "0x",
        "7fab",
        "12:30:01",
        "2026-11-15",
        "<n>",
        "<path>",
        "<path>/",
        "rank",
        "GiB",
        "ms",
        "1e-5",
        "tmp",
        "http://",
        "\x1b[0m",
        "é",
        "127.0.0.1",
        "1_000",
    ]
)


@given(st.lists(PIECES, max_size=25).map("".join))
def test_washing_twice_is_washing_once(text):
    assert wash(wash(text)) == wash(text)


@given(st.text(max_size=80))
def test_washing_any_text_twice_is_washing_it_once(text):
    assert wash(wash(text)) == wash(text)


@example("a0tmp", 100)
@example("/a\\", 100)
@given(st.lists(PIECES, min_size=3, max_size=12).map("".join), st.integers(100, 1000))
def test_washing_a_long_text_twice_is_washing_it_once(text, times):
    assert wash(wash(text * times)) == wash(text * times)


@given(st.integers(0, 2**62), st.integers(0, 2**62))
def test_numbers_do_not_count(one, other):
    assert wash(f"step {one} failed") == wash(f"step {other} failed")
    assert wash(f"<X at {one:#x}>") == wash(f"<X at {other:#x}>")


def test_a_rewritten_line_is_read_as_it_was_last_seen():
    assert plain("1/3\r2/3\r3/3 done\nnext\r\n") == "3/3 done\nnext\n"
