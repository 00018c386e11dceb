"""What changed between two outputs, word by word."""

from relaunch.cli.changes import changed, changed_words
from relaunch.cli.draw import Pen, shown
from relaunch.cli.screen import keys_in
from relaunch.cli.watch_command import Output, lines_in, news, painted

BEFORE = ("name size", "a 10", "b 20")


def test_the_words_that_differ_are_found_in_their_line():
    assert changed(BEFORE, ("name size", "a 11", "b 20")) == {1: [(2, 4)]}
    assert changed(BEFORE, BEFORE) == {}


def test_a_line_more_does_not_shift_the_others():
    assert changed(BEFORE, ("name size", "new 1", "a 10", "b 20")) == {1: [(0, 5)]}


def test_a_word_more_in_a_line_is_the_one_that_changed():
    assert changed_words("a b", "a x b") == [(2, 3)]
    assert changed_words("a b c", "a c") == [(0, 3)]


def test_a_changed_line_has_a_sign_before_it_where_there_are_no_colours():
    assert painted("a 11", [(2, 4)], 80, Pen()) == "▌a 11"
    assert painted("a 11", None, 80, Pen()) == " a 11"
    assert painted("a 11", [(2, 4)], 80, Pen(utf8=False)) == ">a 11"


def test_changed_words_are_painted_and_a_long_line_is_cut():
    assert shown(painted("a 11 b", [(2, 4)], 80, Pen(colour=True))) == (
        "\x1b[33m▌\x1b[0ma \x1b[1;33m11\x1b[0m b"
    )
    assert painted("x" * 100, None, 10, Pen()) == " " + "x" * 8 + "…"


def test_piped_the_first_output_is_whole_and_then_comes_what_is_new_or_gone():
    one, two = Output(lines=BEFORE, code=0), Output(lines=("name size", "a 11"), code=1)
    assert news(None, one, "12:00:00") == ["12:00:00", "  name size", "  a 10", "  b 20"]
    assert news(one, two, "12:00:02") == ["12:00:02  exit 1", "+ a 11", "- a 10", "- b 20"]


def test_colours_and_tabs_of_a_command_do_not_reach_the_screen():
    assert lines_in("\x1b[31mred\x1b[0m\tx\n\x07\n") == ("red     x", "\\x07")


def test_keys_are_told_from_what_a_terminal_sends():
    assert keys_in(b"q\x1b[A\x1bOB\r\x7f\x1b") == ["q", "up", "down", "enter", "back", "escape"]
    assert keys_in("ü\x1b[15~x".encode()) == ["ü", "x"]
    assert keys_in(b"\x1b[5~\x1b[6~") == ["page up", "page down"]
