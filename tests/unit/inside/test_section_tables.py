"""The table of sections: order, joining, words; and which section is blamed for a leak."""

from hypothesis import given
from hypothesis import strategies as st

from relaunch.inside.sections.layout import FIELDS, Numbers
from relaunch.inside.sections.tables import (
    Process,
    cells,
    how_long,
    how_much,
    leaks,
    merged,
    remarks,
    screen,
    titles,
)
from relaunch.trial.sections import thinned

MB = 1 << 20


def numbers(rows=(), **known: int) -> Numbers:
    values = dict.fromkeys(FIELDS, 0) | {"times": 1} | known
    return Numbers([values[name] for name in FIELDS], rows)


def course(memory: list[float], taken: list[float], gpu: bool = False) -> list[list[int]]:
    """Iterations with this memory at their ends, and so much of it taken inside the section."""
    rows, total = [], 0.0
    for n, (now, one) in enumerate(zip(memory, taken, strict=True)):
        total += one
        mine = [int(now * MB), int(one * MB), int(now * MB), int(total * MB)]
        none = [0, 0, 0, 0]
        first, second = (none, mine) if gpu else (mine, none)
        rows.append(
            [n, 1000, first[0], first[1], first[2], first[3], second[0], second[2], second[3], 0]
        )
    return rows


def test_each_section_stands_below_the_one_around_it_where_it_was_first_entered():
    one = Process(1, 0, {("b",): numbers(), ("b", "x"): numbers(), ("a",): numbers()})
    two = Process(2, 1, {("a",): numbers(), ("a", "y"): numbers(), ("b", "z"): numbers()})
    assert [row.path for row in merged([one, two])] == [
        ("b",), ("b", "x"), ("b", "z"), ("a",), ("a", "y"),
    ]  # fmt: skip


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple), unique=True))
def test_joining_processes_loses_no_section_and_no_time(paths):
    processes = [
        Process(pid, None, {path: numbers(times=2, total_ns=10) for path in paths})
        for pid in range(3)
    ]
    rows = merged(processes)
    assert sorted(row.path for row in rows) == sorted(paths)
    assert all(row.times == 6 and row.total_ns == 10 and row.each_ns == 5 for row in rows)


def test_times_are_means_over_processes_and_memory_is_the_largest():
    one = Process(1, 0, {("step",): numbers(total_ns=2_000_000_000, rss=3 * MB, rss_delta=-MB)})
    two = Process(2, 1, {("step",): numbers(total_ns=4_000_000_000, rss=9 * MB, rss_delta=5 * MB)})
    (row,) = merged([one, two])
    shown = dict(zip(titles([row]), cells(row, titles([row])), strict=True))
    assert shown["total"] == "3.0 s"
    assert shown["min-max"] == "2.0 s-4.0 s"
    assert (shown["procs"], shown["now"], shown["delta"]) == ("2", "9.0M", "+5.0M")


def test_gpu_columns_are_there_only_where_a_gpu_was_used():
    assert "gpu" not in titles(merged([Process(1, None, {("a",): numbers()})]))
    used = Process(1, None, {("a",): numbers(gpu=MB, gpu_peak=2 * MB)})
    assert "gpu peak" in titles(merged([used]))


def rising(per: float, count: int = 30, base: float = 100) -> list[float]:
    return [base + per * n for n in range(count)]


def test_the_section_that_keeps_the_memory_is_blamed_and_not_those_beside_it():
    sections = {
        ("step",): numbers(course(rising(2), [2.0] * 30)),
        ("step", "forward"): numbers(course(rising(2, base=200), [100.0] * 30)),
        ("step", "backward"): numbers(course(rising(2), [-100.0] * 30)),
        ("step", "log"): numbers(course(rising(2), [2.0] * 30)),
    }
    (found,) = leaks(Process(1, None, sections))
    assert found.path == ("step", "log")
    assert found.words == "log: +2.0 MiB per iteration: leak?"


def test_memory_that_is_kept_between_the_runs_of_a_section_is_told_as_such():
    rows = course(rising(3), [0.0] * 30)
    (found,) = leaks(Process(1, None, {("step",): numbers(rows)}))
    assert found.words == "step: +3.0 MiB per iteration, outside of this section: leak?"


def test_gpu_memory_can_leak_too():
    rows = course(rising(3), [3.0] * 30, gpu=True)
    (found,) = leaks(Process(1, None, {("step",): numbers(rows)}))
    assert found.words == "step: GPU memory +3.0 MiB per iteration: leak?"


def test_what_is_odd_is_said_below_the_table_with_the_ranks_it_was_seen_on():
    ranks = [
        Process(n, n, {("all",): numbers(open=1), ("all", "load"): numbers(times=5, failed=2)})
        for n in range(5)
    ]
    assert remarks(ranks) == [
        "all: never left (rank 0, rank 1, rank 2 and 2 more)",
        "load: failed 2 of 5 times (rank 0, rank 1, rank 2 and 2 more)",
    ]


def test_of_sections_that_were_never_left_the_innermost_is_named_and_since_when():
    one = Process(
        1, None, {("all",): numbers(open=1), ("all", "load"): numbers(open=1, open_since_ns=10**9)}
    )
    assert remarks([one], now_ns=4 * 10**9) == ["load: never left, begun 3.0 s before"]


def test_the_table_of_a_program_without_rl_fits_80_columns():
    name = "a very long name of a section that nobody would ever write down like this"
    many = Process(1, None, {(name,): numbers(times=10**6, total_ns=10**12), ("b",): numbers()})
    lines = screen([many], 80)
    assert all(len(line) <= 80 for line in lines)
    assert "~" in lines[1]


def test_times_and_sizes_take_few_letters():
    said = [
        how_long(ns) for ns in (0, 999, 1000, 12_345, 2_500_000, 340_000_000, 4.2e9, 185e9, 8e12)
    ]
    assert said == [
        "0 ns",
        "999 ns",
        "1 us",
        "12 us",
        "2.5 ms",
        "340 ms",
        "4.2 s",
        "3m05s",
        "2h13m",
    ]
    sizes = [how_much(count) for count in (0, 512, 4096, 3.4 * MB, 120 * MB, 1.25 * 1024 * MB)]
    assert sizes == ["0", "512B", "4K", "3.4M", "120M", "1.2G"]


@given(st.floats(0, 1e16))
def test_no_time_and_no_size_is_longer_than_seven_letters(value):
    assert len(how_long(min(value, 3e15))) <= 7
    assert len(how_much(value)) <= 7


@given(st.lists(st.integers()), st.integers(1, 50))
def test_thinned_rows_are_few_in_order_and_end_with_the_last(rows, most):
    kept = thinned(rows, most)
    assert len(kept) <= most
    assert kept == [] if not rows else kept[-1] == rows[-1]
