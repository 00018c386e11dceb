"""Whole lines: what comes out of a stream that many processes write to."""

import io
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.inside import ranked
from relaunch.inside.ranked import Lock, Ranked


class Stream:
    """A text stream over a pipe, as standard output is under rl."""

    def __init__(self, folder) -> None:
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)
        self.buffer = Ranked(io.FileIO(self.writing, "w", closefd=False), Lock(f"{folder}/lock"))
        self.text = io.TextIOWrapper(self.buffer, "utf-8", newline="\n", write_through=True)

    def read(self) -> str:
        try:
            return os.read(self.reading, 1 << 20).decode()
        except BlockingIOError:
            return ""

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.writing)


@pytest.fixture
def stream(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    one = Stream(tmp_path)
    yield one
    one.close()


def test_each_line_has_the_rank_before_it(stream):
    print("one", 2, file=stream.text)
    print("three\nfour", file=stream.text)
    assert stream.read() == "[rank 3] one 2\n[rank 3] three\n[rank 3] four\n"


def test_a_line_comes_out_when_it_is_whole(stream):
    print("half", end="", file=stream.text)
    assert stream.read() == ""
    print(" and half", file=stream.text)
    assert stream.read() == "[rank 3] half and half\n"


def test_what_is_flushed_is_seen_as_a_line(stream):
    print("a question? ", end="", file=stream.text, flush=True)
    assert stream.read() == "[rank 3] a question? \n"


def test_of_a_progress_bar_the_last_state_is_seen_once_in_a_while(stream, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(ranked, "_clock", lambda: clock[0])
    for percent in range(10):
        stream.text.write(f"\r{percent}%")
        stream.text.flush()
    assert stream.read() == "[rank 3] 0%\n"
    clock[0] += 2
    stream.text.write("\r50%")
    stream.text.flush()
    stream.text.write("\r100%\n")
    assert stream.read() == "[rank 3] 50%\n[rank 3] 100%\n"


def test_bytes_come_out_as_they_went_in_line_by_line(stream):
    stream.text.buffer.write(b"caf\xe9\nrest")
    stream.text.buffer.write(b" of it\n")
    assert os.read(stream.reading, 1000) == b"[rank 3] caf\xe9\n[rank 3] rest of it\n"


def test_threads_do_not_mix_their_lines(stream, monkeypatch):
    written = []
    monkeypatch.setattr(stream.buffer._lock, "write", lambda fd, data: written.append(data))

    def work(name: str) -> None:
        for _ in range(300):
            print(name, name, name, file=stream.text)

    threads = [threading.Thread(target=work, args=(name * 20,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = b"".join(written).decode().splitlines()
    assert len(lines) == 1200
    assert set(lines) == {f"[rank 3] {' '.join([c * 20] * 3)}" for c in "abcd"}


def test_what_is_left_at_the_end_is_given_on(stream):
    print("no end of line", end="", file=stream.text)
    stream.buffer.end()
    assert stream.read() == "[rank 3] no end of line\n"


def test_a_forked_child_does_not_write_what_its_parent_began(stream):
    print("of the parent", end="", file=stream.text)
    stream.buffer.forget()
    stream.buffer.end()
    assert stream.read() == ""


def test_a_lone_program_has_its_lines_as_they_are(tmp_path, monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    stream = Stream(tmp_path)
    print("plain", file=stream.text)
    assert stream.read() == "plain\n"
    stream.close()


def test_without_a_place_for_the_lock_lines_come_out_all_the_same(tmp_path):
    lock = Lock(str(tmp_path / "none" / "lock"))
    reading, writing = os.pipe()
    lock.write(writing, b"x" * 5000)
    assert os.read(reading, 9999) == b"x" * 5000
    os.close(reading)
    os.close(writing)


@given(st.lists(st.text(alphabet="ab\n \u00e9", max_size=12), max_size=20))
@examples(100)
def test_however_a_text_is_cut_the_same_lines_come_out(pieces):
    class Kept(Lock):
        def __init__(self) -> None:
            self.data = b""

        def write(self, fd: int, data: bytes) -> None:
            self.data += data

    kept = Kept()
    buffer = Ranked(io.FileIO(1, "w", closefd=False), kept)
    buffer._head = b"> "
    for piece in pieces:
        buffer.write(piece.encode())
    buffer.end()
    whole = "".join(pieces)
    lines = whole.split("\n")
    expected = "".join(f"> {line}\n" for line in (lines[:-1] if not lines[-1] else lines))
    assert kept.data.decode() == expected
