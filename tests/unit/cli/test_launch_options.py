"""The words of a launch: each form is understood, each wrong one gets one clear line."""

import pytest

from relaunch.cli.launch_options import OPTIONS, parse, reset_command, seconds
from relaunch.errors import UsageError


def test_options_and_the_command_are_told_apart_by_the_two_dashes():
    values, command = parse(["-m", "why", "--reset=rm x", "--reset", "rm y", "--", "a", "-m", "--"])
    assert values == {"note": "why", "resets": ["rm x", "rm y"]}
    assert command == ("a", "-m", "--")


def test_without_a_command_the_last_is_meant():
    assert parse(["-n3", "--frozen"]) == ({"times": "3", "frozen": True}, None)
    assert parse([]) == ({}, None)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--"], "no command after `--`"),
        (["--", ""], "no command after `--`"),
        (["--timeot", "3"], "no option `--timeot`; did you mean --timeout?"),
        (["-m"], "-m needs a value: WHY"),
        (["-m", "--", "true"], "-m needs a value: WHY"),
        (["--frozen=1"], "--frozen takes no value: `--frozen=1`"),
        (["-m", "x", "python", "train.py"], "`python` came before `--`"),
        (["--unsaved", "maybe"], "--unsaved takes ask, warn, refuse, off; not `maybe`"),
    ],
)
def test_wrong_words_are_named(words, line):
    with pytest.raises(UsageError) as caught:
        parse(words)
    assert caught.value.message == line


def test_a_command_before_the_dashes_is_shown_where_it_belongs():
    with pytest.raises(UsageError) as caught:
        parse(["-m", "x", "python", "train.py"])
    assert caught.value.hint == "rl -m x -- python train.py"


@pytest.mark.parametrize(
    ("text", "value"), [("30", 30), ("1.5", 1.5), ("90s", 90), ("5m", 300), ("2h", 7200)]
)
def test_times_are_read_with_their_units(text, value):
    assert seconds(text, "--timeout") == value


@pytest.mark.parametrize("text", ["", "m", "-3", "0", "5 minutes", "inf", "nan"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(UsageError, match="--timeout takes a time"):
        seconds(text, "--timeout")


def test_a_reset_is_a_shell_line_or_an_argv_in_json():
    assert reset_command("rm -rf data && mkdir data") == "rm -rf data && mkdir data"
    assert reset_command('["rm", "-rf", "a b"]') == ("rm", "-rf", "a b")
    assert reset_command("[ -d data ]") == "[ -d data ]"


def test_no_flag_is_defined_twice():
    flags = [flag for option in OPTIONS for flag in option.flags]
    assert len(flags) == len(set(flags))


def test_a_bare_command_begins_with_the_first_word_that_is_no_option():
    assert parse(["-m", "why", "x = 1", "-n", "--"], bare=True) == (
        {"note": "why"},
        ("x = 1", "-n", "--"),
    )
    assert parse(["-q", "--", "-1"], bare=True) == ({"quiet": True}, ("-1",))
    assert parse(["--"], bare=True) == ({}, ())
