"""Is a failure of a smaller input still the same one?"""

import pytest

from relaunch.outcome import Signature
from relaunch.trial.signature.alike import alike, quoted


def failure(message, *functions, kind="exception", type="TypeError"):
    return Signature(kind=kind, title=message, key=(type, message, *functions))


def test_a_failure_quotes_values_and_words_of_the_program():
    hunted = failure("cannot add 'NoneType' to \"abc\" in `total`")
    assert quoted(hunted) == ["NoneType", "abc", "total"]


@pytest.mark.parametrize(
    ("said", "is_same"),
    [
        ("bad operand for *: 'NoneType' and 'int'", True),
        ("bad operand for +: 'NoneType' and 'int'", False),
        ("bad operand for *: 'dict' and 'int'", False),
        ("bad operand for *: 'NoneType' and ''", False),
    ],
)
def test_what_the_program_says_itself_must_stay(said, is_same):
    hunted = failure("bad operand for *: 'NoneType' and 'int'", "load.py main")
    assert alike(failure(said, "load.py main"), hunted) is is_same


@pytest.mark.parametrize(
    ("said", "is_same"),
    [
        ("could not convert string to float: ''", True),
        ('could not convert string to float: "it\'s"', True),
        ("could not convert string to int: ''", False),
        ("could not convert string to float: '' in row", False),
    ],
)
def test_what_is_quoted_from_the_input_may_be_another_value(said, is_same):
    hunted = failure("could not convert string to float: 'abc'", "load.py main")
    assert alike(failure(said, "load.py main"), hunted, values={"abc"}) is is_same
    assert not alike(failure("could not convert string to float: ''", "load.py main"), hunted)


def test_the_functions_count_unless_they_are_the_input():
    hunted = failure("no", "load.py main", "load.py read")
    elsewhere = failure("no", "load.py main")
    assert not alike(elsewhere, hunted)
    assert alike(elsewhere, hunted, is_code=True)


def test_another_type_or_kind_is_another_failure():
    hunted = failure("no", type="KeyError")
    assert not alike(failure("no", type="ValueError"), hunted)
    assert not alike(failure("no", type="KeyError", kind="exit"), hunted)
    assert not alike(None, hunted)


def test_of_an_exit_the_code_and_the_last_words_count():
    hunted = Signature(kind="exit", title="", key=("exit 1", "cannot read the table: 'abc'"))
    read = Signature(kind="exit", title="", key=("exit 1", "cannot read the table: ''"))
    assert alike(read, hunted, values={"abc"})
    assert not alike(read, hunted)
    assert not alike(read.but(key=("exit 1", "fatal: out of memory")), hunted, values={"abc"})
    assert not alike(read.but(key=("exit 2", *hunted.key[1:])), hunted, values={"abc"})


def test_only_tests_that_failed_before_may_fail():
    tests = ("tests", "a.py::one ValueError x", "a.py::two ValueError y")
    hunted = Signature(kind="tests", title="", key=tests)
    assert alike(hunted.but(key=("tests", "a.py::two ValueError y")), hunted)
    assert not alike(hunted.but(key=("tests", "a.py::three ValueError y")), hunted)
    assert not alike(hunted.but(key=("tests", "a.py::two KeyError y")), hunted)
