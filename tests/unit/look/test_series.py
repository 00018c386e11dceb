"""A series stays small, keeps its peaks, and survives being cut off."""

from pathlib import Path

import pytest

from relaunch.look.series import COLUMNS, Writer, joined, rates, read, thinned


def moment(t: float, rss: float = 0, cpu_s: float = 0, busy: float = 0) -> list[float]:
    values = dict.fromkeys(COLUMNS, 0.0) | {"t": t, "rss": rss, "cpu_s": cpu_s, "gpu_percent": busy}
    return [values[name] for name in COLUMNS]


def test_of_two_moments_the_later_stays_with_the_most_of_each():
    one = joined(moment(1, rss=9, cpu_s=1, busy=100), moment(2, rss=5, cpu_s=3))
    assert one == moment(2, rss=9, cpu_s=3, busy=50)


def test_thinning_keeps_a_moment_for_each_step():
    points = [moment(t / 10, rss=t) for t in range(10)]
    assert [point[1] for point in thinned(points, 0.25)] == [2, 4, 7, 9]


@pytest.mark.parametrize("spike", [0, 1, 4_999, 9_998, 9_999])
def test_a_long_series_stays_small_and_its_peak_stays_in_it(tmp_path: Path, spike: int):
    path = tmp_path / "usage.jsonl"
    writer = Writer(str(path), 1000.0, most=100)
    for n in range(10_000):
        writer.add(moment(n * 0.05, rss=5_000_000 if n == spike else 1_000_000, cpu_s=n * 0.01))
    writer.close()
    series = read(str(path))
    assert series is not None
    assert len(series.points) <= 101
    assert series.peak_bytes == 5_000_000
    assert series.column("t")[-1] == pytest.approx(9_999 * 0.05)
    assert series.column("cpu_s")[-1] == pytest.approx(99.99)
    assert series.column("t") == sorted(series.column("t"))
    assert path.stat().st_size < 10_000


def test_a_new_record_is_written_at_once(tmp_path: Path):
    path = str(tmp_path / "usage.jsonl")
    writer = Writer(path, 1000.0)
    writer.step_s = 1000.0
    for rss in (100, 200, 300):
        writer.add(moment(rss, rss=rss))
    series = read(path)  # nobody closed it: as after a kill
    assert series is not None
    assert series.peak_bytes == 300


def test_what_a_kill_cut_off_is_passed_over(tmp_path: Path):
    path = tmp_path / "usage.jsonl"
    writer = Writer(str(path), 1000.0)
    for t in range(5):
        writer.add(moment(t, rss=1 + t))
    writer.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    series = read(str(path))
    assert series is not None
    assert len(series.points) == 4


@pytest.mark.parametrize("text", ["", "{}", "[]", "nonsense", '{"columns": 3, "when": 1}'])
def test_a_file_that_is_no_series_is_none(tmp_path: Path, text: str):
    path = tmp_path / "usage.jsonl"
    path.write_text(text)
    assert read(str(path)) is None
    assert read(str(tmp_path / "missing")) is None


def test_a_full_disk_stops_the_writing_and_not_the_watching(tmp_path: Path):
    writer = Writer(str(tmp_path / "no" / "usage.jsonl"), 0.0)
    writer.add(moment(1, rss=7))
    writer.close()
    assert writer.failed == "No such file or directory"
    assert [point[1] for point in writer.points] == [7]


def test_rates_are_what_came_in_each_second():
    assert rates([1.0, 2.0, 4.0], [10, 30, 30]) == [10, 20, 0]
