"""Charts of blocks: columns of time, heights, axis and marks."""

from relaunch.cli.charts import Line, charts, in_columns, rows
from relaunch.cli.draw import Pen


def test_a_value_holds_until_the_next_one():
    assert in_columns([0, 5, 9.9], [1, 3, 2], 0, 10, 10) == [1] * 5 + [3] * 4 + [2]


def test_a_rate_is_that_of_all_the_time_before_it():
    found = in_columns([0, 5, 9.9], [0, 3, 2], 0, 10, 10, since_last=True)
    assert found == [0, 3, 3, 3, 3, 3, 2, 2, 2, 2]


def test_in_a_column_of_many_moments_the_largest_is_seen():
    assert in_columns([0, 1, 2, 3], [1, 9, 1, 1], 0, 4, 2) == [9, 1]


def test_blocks_fill_from_below_and_what_is_more_than_nothing_is_seen():
    assert rows([0, 0.001, 4, 8, None], 8, 2) == ["   █ ", " ▁██ "]
    assert rows([1, 2], 2, 1, utf8=False) == ["=@"]


def test_nothing_at_all_is_drawn_as_nothing():
    assert rows([0, None], 0, 1) == ["  "]


def test_a_chart_has_its_name_its_top_an_axis_and_marks():
    line = Line(name="memory", times=[0, 5], values=[1, 2], shown=lambda v: f"{v:.0f} GB", height=1)
    drawn = charts([line], first=0, last=10, width=37, pen=Pen(), marks=[5.0, 99.0])
    assert drawn == [
        "memory      2 GB ▄▄▄▄▄▄▄▄▄▄█",
        "                 0 s ──────▲1─── 10 s",
    ]


def test_in_ascii_the_axis_is_ascii():
    line = Line(name="cpu", times=[0, 5], values=[1, 2], shown=str)
    drawn = charts([line], first=0, last=10, width=37, pen=Pen(utf8=False), marks=[5.0])
    assert all(one.isascii() for one in drawn)
