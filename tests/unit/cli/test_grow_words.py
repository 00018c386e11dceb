"""What `rl grow` reads and draws: sizes, ranges, one clear line where they are off, the axis."""

from __future__ import annotations

import pytest

from relaunch.cli import grow_live, grow_told
from relaunch.cli.draw import Pen
from relaunch.cli.grow_words import dimension, number, options, request
from relaunch.errors import UsageError
from relaunch.search.grown import Look
from relaunch.search.ladder import Scale
from relaunch.search.order import Curve, Fit, Order
from relaunch.search.seen import Seen
from relaunch.session.growing.curve import telling
from relaunch.session.growing.told import Dimension, State

COMMAND = ("true", "{batch}", "{seq}")


@pytest.mark.parametrize(
    ("text", "value"),
    [("8", 8), ("1e6", 1_000_000), ("4k", 4096), ("1M", 1 << 20), ("1.5k", 1536), ("-3", -3),
     ("0.5", 0.5), ("1.0", 1.0), ("1e-4", 0.0001), ("1_000", 1000)],
)  # fmt: skip
def test_a_size_is_read_as_people_write_it(text, value):
    assert number(text, "batch") == value
    assert type(number(text, "batch")) is type(value)


@pytest.mark.parametrize("text", ["", "x", "4kb", "1e", "nan", "inf", "1e999", "0x10", "1..2"])
def test_what_is_no_number_is_said_so(text):
    with pytest.raises(UsageError):
        number(text, "batch")


def test_ends_of_which_one_is_not_whole_are_both_not():
    one = dimension("lr=0.5..2", "/")
    assert (one.low, one.high, type(one.high)) == (0.5, 2.0, float)


@pytest.mark.parametrize(
    ("words", "more", "said"),
    [
        ([], {}, "which size is to grow"),
        (["batch"], {}, "NAME=LOW..HIGH"),
        (["=1..2"], {}, "NAME=LOW..HIGH"),
        (["batch@=1..2"], {}, "NAME=LOW..HIGH"),
        (["batch="], {}, "has no range"),
        (["batch=1.."], {}, "has no range"),
        (["batch=7"], {}, "has no range"),
        (["batch=1..many"], {}, "`many` is no number"),
        (["batch=64..1"], {}, "runs backwards"),
        (["batch=8..8"], {}, "nothing to grow"),
        (["depth=1..8"], {}, "no `{depth}`"),
        (["batch=1..8", "batch=2..4"], {}, "named twice"),
        (["rows@none.jsonl=1..8"], {}, "`none.jsonl` does not exist"),
        (["batch@data.bin=1..8"], {}, "cannot be cut"),
        (["batch@data.json=1..8"], {}, "cannot be cut"),
        (["batch@few.txt=3..8"], {}, "has 3 rows"),
        (["batch@few.txt=0.5..8"], {}, "rows are whole numbers"),
        (["batch=1..8"], {"at": ["depth=2"]}, "no `{depth}`"),
        (["batch=1..8"], {"at": ["batch=2"]}, "the one that grows"),
        (["batch=1..8"], {"at": ["seq=x"]}, "`x` is no number"),
        (["batch=1..8"], {"at": ["seq"]}, "NAME=VALUE"),
        (["batch=1..8"], {"step": "0"}, "above 0"),
        (["batch=-1..8"], {"doubling": True}, "nothing doubles"),
        (["batch=1..8"], {"match": "("}, "no regular expression"),
        (["batch=1..8"], {"timeout": "soon"}, "takes a time"),
    ],
)
def test_wrong_words_are_refused_with_what_is_off(tmp_path, words, more, said):
    (tmp_path / "data.bin").write_bytes(b"\0\1\2")
    (tmp_path / "data.json").write_text("[1, 2]")
    (tmp_path / "few.txt").write_text("a\nb\nc\n")
    with pytest.raises(UsageError, match=said.replace("{", "\\{")) as caught:
        request(words, COMMAND, more, str(tmp_path))
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("values", "said"),
    [({"jobs": "0"}, "at least one"), ({"jobs": "two"}, "whole number"),
     ({"budget": "0"}, "at least one"), ({"budget": "much"}, "of runs or a time"),
     ({"memory": "lots"}, "takes a size"), ({"time": "long"}, "takes a time"),
     ({"doubling": True, "linear": True}, "at once")],
)  # fmt: skip
def test_wrong_options_are_refused(values, said):
    with pytest.raises(UsageError, match=said):
        options(values)


def test_a_file_has_no_more_rows_than_it_has(tmp_path):
    (tmp_path / "few.txt").write_text("a\nb\nc\n")
    found = request(["n@few.txt=1..1e6"], ("cat", "--x=./few.txt"), {}, str(tmp_path))
    assert found.dimensions == (Dimension(name="n", low=1, high=3, file="few.txt"),)


def test_sizes_lie_along_the_axis_as_their_scale_has_it():
    one = Dimension(name="batch", low=1, high=1024)
    seen: dict[float, Seen] = {1: Seen.PASSED, 32: Seen.FAILED, 1024: Seen.OTHER}
    state = State(dimension=one, scale=Scale.LOG, seen=seen, running=(4,))
    plain = grow_live.axis(state, 49, Pen(utf8=False))
    assert plain.startswith("batch 1 o")
    assert plain.endswith("! 1,024  3 runs, 1 running")
    cells = plain.split(" ")[2]
    assert (cells[0], cells[-1]) == ("o", "!")
    assert abs(cells.index("x") - len(cells) // 2) <= 1
    assert cells.index("*") < cells.index("x")
    assert len(plain) <= 49
    assert "●" in grow_live.axis(state, 49, Pen())


def test_a_size_that_is_only_known_roughly_has_two_digits():
    assert [grow_told.rounded(one) for one in (5123.0, 62_800.4, 7.77, 0.0123)] == [
        "5,100", "63,000", "7.8", "0.012",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("best", "rivals", "said"),
    [
        (Order.N, [], "grows perhaps like n"),
        (Order.N, [Order.N_LOG_N, Order.N_SQUARED], "grows perhaps like n, or like n log n or n²"),
        (Order.TWO_TO_N, [Order.CONSTANT, Order.LOG_N],
         "stays the same, or grows like 2ⁿ or log n: the runs do not tell"),
    ],
)  # fmt: skip
def test_what_may_not_grow_at_all_is_not_said_to_grow(best, rivals, said):
    curves = [Curve(order=one, offset=1, factor=1, error=0, score=0) for one in rivals]
    fit = Fit(order=best, rivals=tuple(curves))
    assert grow_told.perhaps(fit, Pen()) == said


def test_runs_that_failed_tell_nothing_of_time_unless_all_did():
    passed, failed = Look(value=1, seen=Seen.PASSED), Look(value=2, seen=Seen.FAILED)
    assert telling([passed, failed]) == [passed]
    assert telling([failed]) == [failed]


def test_files_are_named_from_where_the_command_runs(tmp_path):
    (tmp_path / "rows.csv").write_text("h\n1\n2\n")
    assert dimension("r@rows.csv=1..9", str(tmp_path)).high == 2
