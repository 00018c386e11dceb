"""The store: numbers are never given twice, files are whole or absent, what is lost is said."""

import json
import multiprocessing
import os
import threading
import time

import pytest

from relaunch.errors import JournalError
from relaunch.journal import keep
from relaunch.journal.output import OutputWriter, read_chunks, read_output
from relaunch.journal.store import Journal, id_order, process_started, write_file


@pytest.fixture
def journal(tmp_path):
    return Journal(str(tmp_path / "journal"))


def test_numbers_count_up_and_repeats_hang_on_their_first(journal):
    assert journal.begin({}, identity="a").id == "1"
    assert journal.begin({}, identity="b").id == "2"
    assert [journal.begin({}, identity="a").id for _ in range(3)] == ["1.2", "1.3", "1.4"]
    assert journal.begin({}).id == "3"
    assert journal.ids() == ["1", "1.2", "1.3", "1.4", "2", "3"]
    assert journal.newest() == "3"


def test_each_trial_points_to_the_one_that_began_before_it(journal):
    first = journal.begin({}, identity="a")
    journal.begin({}, identity="b")
    repeat = journal.begin({}, identity="a")
    assert (first.start["previous"], repeat.start["previous"]) == ("", "2")
    assert journal.newest() == "1.2"


def test_without_its_shortcuts_the_journal_still_numbers_on(journal, tmp_path):
    journal.begin({}, identity="a")
    for name in ("last", "identities/a"):
        (tmp_path / "journal" / name).unlink()
    assert journal.begin({}, identity="a").id == "2"


def test_the_number_of_a_forgotten_repeat_is_not_given_again(journal):
    for _ in range(3):
        journal.begin({}, identity="a")
    journal.begin({}, identity="b")
    for trial_id in ("1.3", "1.2"):
        keep.forget(journal, keep.Plan(go=(keep.Held(id=trial_id, when=0.0, bytes=0),)))
    assert journal.ids() == ["1", "1.2", "1.3", "2"]  # they run
    for trial_id in ("1.3", "1.2"):
        journal.finish(journal.load(trial_id), {})
        keep.forget(journal, keep.Plan(go=(keep.Held(id=trial_id, when=0.0, bytes=0),)))
    assert journal.ids() == ["1", "2"]
    assert [journal.begin({}, identity="a").id for _ in range(2)] == ["1.4", "1.5"]


def test_what_a_trial_is_identical_to_agrees_with_its_number(journal):
    first = journal.begin({"identical_to": "9"}, identity="a")
    repeat = journal.begin({"identical_to": ""}, identity="a")
    alone = journal.begin({"identical_to": "1"})
    begun = [(trial.id, trial.start["identical_to"]) for trial in (first, repeat, alone)]
    assert begun == [("1", ""), ("1.2", "1"), ("2", "")]
    assert journal.load("1.2").start == repeat.start


def test_a_trial_begins_and_ends_also_when_no_short_cut_can_be_written(journal, tmp_path):
    (tmp_path / "journal" / "last").mkdir(parents=True)
    for name in ("running", "identities", "signatures"):
        (tmp_path / "journal" / name).write_text("in the way")
    trial = journal.begin({"note": "x"}, identity="a")
    journal.finish(trial, {"exit_code": 1, "signature": {"digest": "feed"}})
    assert journal.load("1").start["note"] == "x"
    assert journal.load("1").end == {"exit_code": 1, "signature": {"digest": "feed"}}
    assert journal.begin({}, identity="a").id == "2"
    names = sorted(os.listdir(journal.home))
    assert names == ["identities", "last", "running", "signatures", "trials"]


def _begin_many(home: str, count: int) -> None:
    for _ in range(count):
        Journal(home).begin({"who": os.getpid()}, identity="same")


def test_many_writers_at_once_never_share_a_number(journal):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_begin_many, args=(journal.home, 25)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    ids = journal.ids()
    assert len(ids) == len(set(ids)) == 100
    assert all(journal.load(trial_id).start["who"] for trial_id in ids)


def test_a_finished_trial_is_no_longer_running_and_its_failure_is_found(journal):
    trial = journal.begin({})
    assert journal.unfinished() == ["1"]
    assert journal.load("1").running
    journal.finish(trial, {"exit_code": 1, "signature": {"digest": "feed"}})
    assert journal.unfinished() == []
    assert not journal.load("1").running
    assert journal.last_with("feed") == "1"


def test_a_trial_whose_rl_is_dead_is_not_running(journal):
    trial = journal.begin({})
    path = os.path.join(trial.path, "start.json")
    start = journal.load("1").start
    start["rl"]["started"] += 1  # the pid was given to another process since
    write_file(path, json.dumps(start).encode())
    assert not journal.load("1").running


def test_without_proc_a_trial_runs_as_long_as_its_process_answers(journal, monkeypatch):
    monkeypatch.setattr("relaunch.journal.store._PROC", "/nowhere")
    trial = journal.begin({})
    assert trial.running
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    for pid in (gone, 0, -1, 1 << 80):
        rl = {**trial.start["rl"], "pid": pid}
        assert not trial.but(start={**trial.start, "rl": rl}).running


@pytest.mark.parametrize("what", ["host", "boot", "pids"])
def test_a_trial_of_another_place_runs_until_it_was_silent_for_a_day(journal, what):
    trial = journal.begin({})
    start = journal.load("1").start
    assert start["rl"][what]
    start["rl"].update({what: "another", "pid": 0})
    assert trial.but(start=start).running
    old = time.time() - 100_000
    start["when"] = old
    assert not trial.but(start=start).running
    writer = journal.output(trial)
    writer.chunk(time.monotonic(), 1, b"still here")
    writer.close()
    assert trial.but(start=start).running
    os.utime(os.path.join(trial.path, "output.0"), (old, old))
    os.utime(os.path.join(trial.path, "output.0.times"), (old, old))
    assert not trial.but(start=start).running


@pytest.mark.parametrize(
    "odd", [{}, {"rl": 7}, {"rl": {}, "when": "x"}, {"rl": {"host": os.uname().nodename}}]
)
def test_a_trial_that_does_not_say_who_runs_it_is_not_running(journal, odd):
    assert not journal.begin({}).but(start=odd).running


def test_a_zombie_is_no_longer_running():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert process_started(pid) == 0
    os.waitpid(pid, 0)


def test_a_broken_file_is_named_and_harms_no_other_trial(journal):
    for _ in range(2):
        journal.begin({})
    with open(os.path.join(journal.trials, "1", "start.json"), "w") as file:
        file.write('{"half')
    with pytest.raises(JournalError, match=r"1/start\.json is not JSON"):
        journal.load("1")
    assert journal.load("2").start["previous"] == "1"
    with pytest.raises(JournalError, match="no trial #7: there are 1 to 2"):
        journal.load("7")


def test_a_failed_write_leaves_the_old_file_and_no_temp(tmp_path):
    path = tmp_path / "file"
    write_file(str(path), b"old")
    path.with_name("dir").mkdir()
    with pytest.raises(IsADirectoryError):
        write_file(str(path.with_name("dir")), b"new")  # cannot be renamed onto
    assert sorted(p.name for p in tmp_path.iterdir()) == ["dir", "file"]
    assert path.read_bytes() == b"old"


def test_writers_that_share_a_pid_do_not_disturb_each_other(tmp_path):
    path = str(tmp_path / "file")
    failed = []

    def write():
        for _ in range(300):
            try:
                write_file(path, b"x" * 1000)
            except OSError as error:
                failed.append(error)

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failed == []
    assert os.listdir(tmp_path) == ["file"]


def test_ids_sort_by_number_then_repeat():
    assert sorted(["10", "2.10", "2", "x", "2.9"], key=id_order) == ["x", "2", "2.9", "2.10", "10"]


def test_output_comes_back_as_it_was_written_with_stream_and_time(tmp_path):
    writer = OutputWriter(str(tmp_path))
    now = time.monotonic()
    for n, (stream, data) in enumerate([(1, b"a\n"), (2, b"\x00\xff"), (1, b"b")]):
        writer.chunk(now + n, stream, data)
    writer.close()
    chunks = list(read_chunks(str(tmp_path)))
    assert [(c.stream, c.data) for c in chunks] == [(1, b"a\n"), (2, b"\x00\xff"), (1, b"b")]
    assert chunks[2].when_s - chunks[0].when_s == pytest.approx(2, abs=0.01)
    assert read_output(str(tmp_path)) == b"a\n\x00\xffb"


def test_endless_output_keeps_its_beginning_and_its_end(tmp_path):
    writer = OutputWriter(str(tmp_path), segment_bytes=1000)
    for n in range(1000):
        writer.chunk(time.monotonic(), 1, b"%09d\n" % n)
    writer.close()
    chunks = list(read_chunks(str(tmp_path)))
    lines = b"".join(c.data for c in chunks).split()
    assert lines[:100] == [b"%09d" % n for n in range(100)]
    assert lines[-100:] == [b"%09d" % n for n in range(900, 1000)]
    assert sum(c.lost for c in chunks) == 1
    assert sum(p.stat().st_size for p in tmp_path.glob("output.?")) <= 3000


@pytest.mark.parametrize("max_bytes", [0, 300 << 10])
def test_no_more_output_is_kept_than_allowed_however_large_its_blocks_are(journal, max_bytes):
    trial = journal.begin({})
    writer = journal.output(trial, max_bytes=max_bytes)
    sent = b"".join(b"%07d\n" % n for n in range(1 << 17))
    for at in range(0, len(sent), 250_000):
        writer.chunk(time.monotonic(), 1, sent[at : at + 250_000])
    writer.close()
    assert writer.failed == ""
    chunks = list(read_chunks(trial.path))
    kept = b"".join(chunk.data for chunk in chunks)
    third = max(64 << 10, max_bytes // 3)
    assert 2 * third < len(kept) <= 3 * third
    assert kept[:third] == sent[:third]
    assert sent.endswith(kept[third:])
    assert sum(chunk.lost for chunk in chunks) == 1


def test_files_that_cannot_be_closed_are_said_and_closed_only_once(tmp_path):
    writer = OutputWriter(str(tmp_path))
    writer.chunk(time.monotonic(), 1, b"x")
    os.close(writer._raw)
    times = writer._times
    writer.close()
    assert writer.failed == "Bad file descriptor"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(times)
    others = os.pipe()  # takes the numbers that are free now
    writer.close()
    for fd in others:
        os.close(fd)


@pytest.mark.parametrize("cut", range(0, 12))
def test_output_cut_off_by_a_kill_is_readable_up_to_the_cut(tmp_path, cut):
    writer = OutputWriter(str(tmp_path))
    writer.chunk(time.monotonic(), 1, b"first")
    writer.chunk(time.monotonic(), 2, b"second")
    writer.close()
    times = tmp_path / "output.0.times"
    times.write_bytes(times.read_bytes()[:-cut] if cut else times.read_bytes())
    assert read_output(str(tmp_path)) == b"firstsecond"


def test_the_blocks_of_a_flood_share_notes_and_a_small_one_is_noted_at_once(tmp_path):
    writer = OutputWriter(str(tmp_path))
    now = time.monotonic()
    block = b"x" * 5000
    for n in range(10):
        writer.chunk(now + n / 10_000, 1, block)
    times = tmp_path / "output.0.times"
    assert times.read_text() == ""
    writer.chunk(now + 0.001, 1, b"small")
    assert len(times.read_text().splitlines()) == 1
    writer.chunk(now + 0.002, 2, block)
    writer.chunk(now + 0.003, 1, block)
    writer.close()
    chunks = [(c.stream, len(c.data)) for c in read_chunks(str(tmp_path))]
    assert chunks == [(1, 50005), (2, 5000), (1, 5000)]


def test_a_full_disk_stops_the_recording_and_says_why(tmp_path):
    os.symlink("/dev/full", tmp_path / "output.0")
    writer = OutputWriter(str(tmp_path))
    writer.chunk(time.monotonic(), 1, b"x")
    writer.chunk(time.monotonic(), 1, b"y")
    assert writer.failed == "No space left on device"
