"""Watching: the critical point is timed, secrets do not pass, the telling parts stay."""

import time

from hypothesis import given
from hypothesis import strategies as st

from relaunch.trial import watch as watching
from relaunch.trial.watch import Watch

TRACE = b'Traceback (most recent call last):\n  File "t.py", line 1\nValueError: nan\n'


def watch_of(chunks, **options):
    kept = []
    watch = Watch(record=lambda *chunk: kept.append(chunk), started=100.0, **options)
    for n, (stream, data) in enumerate(chunks):
        watch.chunk(101.0 + n, stream, data)
    return watch, kept


def test_the_first_failing_event_is_timed_and_later_ones_are_not():
    watch, _ = watch_of([(1, b"step 1\n"), (2, TRACE), (2, TRACE)])
    assert watch.failing_s == 2.0


@given(st.integers(1, 7))
def test_a_failing_event_cut_in_pieces_by_the_pipe_is_still_seen(size):
    pieces = [(2, TRACE[at : at + size]) for at in range(0, len(TRACE), size)]
    watch, _ = watch_of(pieces)
    assert watch.failing_s is not None


def test_until_is_timed_at_its_first_match():
    watch, _ = watch_of([(1, b"step 1\n"), (1, b"step 20 "), (1, b"loss nan\n")], until="loss nan")
    assert watch.reached_s == 3.0
    assert watch.failing_s is None


def test_metrics_are_the_last_match_first_group_or_all():
    watch, _ = watch_of([(1, b"loss 3.5\nloss 2.5 acc=0.1\n"), (2, b"lr 7\n")])
    patterns = {
        "opt": r"acc(?:=(x))?",
        "loss": r"loss (\S+)",
        "acc": r"acc=\S+",
        "lr": r"lr (\d+)",
        "none": "zzz",
    }
    assert watch.metrics(patterns) == {"loss": "2.5", "acc": "acc=0.1", "lr": "7"}


def test_a_failure_at_the_end_of_a_flood_is_timed_too(monkeypatch):
    monkeypatch.setattr(watching, "HEAD_BYTES", 1000)
    monkeypatch.setattr(watching, "FLOOD_BYTES", 1000)
    monkeypatch.setattr(watching, "FLOOD_BYTES_PER_S", 0)
    noise = [(1, b"noise %06d\n" % n) for n in range(500)]
    watch, _ = watch_of([*noise, (1, TRACE[:20]), (1, TRACE[20:]), *noise])
    assert watch.failing_s is None
    watch.finish()
    assert watch.failing_s == 502.0


def test_of_endless_output_beginning_failure_and_end_are_kept(monkeypatch):
    monkeypatch.setattr(watching, "HEAD_BYTES", 1000)
    monkeypatch.setattr(watching, "TAIL_BYTES", 1000)
    noise = [(1, b"noise %06d\n" % n) for n in range(5000)]
    watch, kept = watch_of([(1, b"BEGIN\n"), *noise, (1, TRACE), *noise, (1, b"END\n")])
    assert "BEGIN" in watch.text
    assert "ValueError: nan" in watch.text
    assert watch.text.endswith("END\n")
    assert len(watch.text) < 8000
    assert sum(len(data) for _, _, data in kept) > 100_000


def test_what_was_prepared_before_the_launch_is_no_part_of_the_critical_point():
    watch = Watch(record=lambda *_: None, started=time.monotonic() - 100, until="ready")
    watch.launched(1)
    watch.chunk(time.monotonic(), 1, b"ready\n")
    assert watch.reached_s is not None
    assert watch.reached_s < 50
