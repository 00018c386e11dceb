"""Output of many ranks: whole lines, each with its rank."""

from __future__ import annotations

from relaunch.inside.node.lines import Screen, Speaker, label_of


class Shown:
    """A screen, and two ranks that speak on it."""

    def __init__(self) -> None:
        self.data = b""
        screen = Screen(self.take)
        self.one = Speaker(screen, label_of(0), b"[rank0]: ")
        self.two = Speaker(screen, label_of(1), b"[rank1]: ")

    def take(self, data: bytes) -> None:
        self.data += data


def test_lines_are_shown_whole_and_with_their_rank():
    shown = Shown()
    shown.one.take(b"loss ", 0.0)
    shown.two.take(b"one\ntwo\n", 0.0)
    shown.one.take(b"1.5\n", 0.1)
    assert shown.data == b"[rank 1] one\n[rank 1] two\n[rank 0] loss 1.5\n"


def test_a_question_is_shown_after_a_moment_and_whoever_speaks_next_begins_a_line():
    shown = Shown()
    shown.one.take(b"(Pdb) ", 5.0)
    assert shown.one.since == 5.0
    shown.one.hurry()
    assert shown.data == b"[rank 0] (Pdb) "
    assert shown.one.since == 0.0
    shown.two.take(b"hello\n", 6.0)
    shown.one.take(b"41\n", 7.0)
    assert shown.data == b"[rank 0] (Pdb) \n[rank 1] hello\n[rank 0] 41\n"


def test_who_goes_on_in_a_line_that_is_shown_gets_no_second_label():
    shown = Shown()
    shown.one.take(b"a", 0.0)
    shown.one.hurry()
    shown.one.take(b"b\n", 0.5)
    assert shown.data == b"[rank 0] ab\n"


def test_of_a_progress_bar_the_last_state_is_shown():
    shown = Shown()
    shown.one.take(b"\r 10%\r 50%\r", 0.0)
    shown.one.hurry()
    assert shown.data == b""
    shown.one.take(b"100%\n", 0.0)
    assert shown.data == b"[rank 0] 100%\n"


def test_the_label_that_torch_puts_before_tracebacks_is_taken_off():
    shown = Shown()
    shown.one.take(b"[rank0]: Traceback (most recent call last):\n[rank1]: other\n", 0.0)
    assert shown.data == b"[rank 0] Traceback (most recent call last):\n[rank 0] [rank1]: other\n"


def test_the_time_of_what_waits_is_that_of_its_beginning():
    shown = Shown()
    shown.one.take(b"a", 1.0)
    shown.one.take(b"b", 2.0)
    assert shown.one.since == 1.0
    shown.one.take(b"\nc", 3.0)
    assert shown.one.since == 3.0


def test_what_is_left_at_the_end_is_a_line():
    shown = Shown()
    shown.one.take(b"no newline", 0.0)
    shown.one.end()
    assert shown.data == b"[rank 0] no newline\n"


def test_a_line_without_an_end_is_not_kept_for_ever():
    shown = Shown()
    shown.one.take(b"x" * 100_000, 0.0)
    assert shown.data == b"[rank 0] " + b"x" * 100_000
