"""What a person calls a trial finds that trial, or says in one line why not."""

import os

import pytest

from relaunch.errors import JournalError, UsageError
from relaunch.journal import refs
from relaunch.journal.store import Journal, write_json

PASSED = {"exit_code": 0, "signature": None}
FAILED = {
    "exit_code": 1,
    "signature": {"kind": "exit", "title": "exit 1", "key": [], "digest": "d"},
}


def add(journal, trial_id, *, at, end=None, mark=None):
    folder = os.path.join(journal.trials, trial_id)
    os.makedirs(folder)
    start = os.path.join(folder, "start.json")
    write_json(start, {"format": 1, "when": at, "command": ["true"], "rl": {"pid": 0}})
    os.utime(start, (at, at))
    if end is not None:
        write_json(os.path.join(folder, "end.json"), end)
    if mark is not None:
        write_json(os.path.join(folder, "mark.json"), mark)


@pytest.fixture
def journal(tmp_path):
    journal = Journal(str(tmp_path))
    add(journal, "1", at=100, end=FAILED)
    add(journal, "2", at=200, end=PASSED, mark={"verdict": "", "name": "baseline"})
    add(journal, "3", at=300, end=FAILED)
    add(journal, "4", at=400, end={"exit_code": 130, "interrupted": True})
    add(journal, "2.2", at=500, end=PASSED)
    return journal


@pytest.mark.parametrize(
    ("ref", "found"),
    [
        ("3", "3"),
        ("#3", "3"),
        (" 03 ", "3"),
        ("2.2", "2.2"),
        ("2.1", "2"),
        ("-1", "2.2"),
        ("@", "2.2"),
        ("-2", "4"),
        ("-5", "1"),
        ("@passed", "2.2"),
        ("@failed", "3"),
        ("@good", "2.2"),
        ("@bad", "3"),
        ("baseline", "2"),
        ("@baseline", "2"),
    ],
)
def test_a_word_finds_its_trial(journal, ref, found):
    assert refs.resolve(journal, ref) == found


def test_a_repeat_made_today_is_newer_than_a_higher_number_of_yesterday(journal):
    assert refs.newest(journal, 3) == ["3", "4", "2.2"]
    assert refs.newest(journal, 99) == ["1", "2", "3", "4", "2.2"]


def test_a_mark_goes_before_what_merely_passed(journal):
    add(journal, "5", at=600, end=PASSED)
    journal.set_mark(journal.load("1"), {"verdict": "good"})
    assert refs.resolve(journal, "@good") == "1"


def test_good_is_found_far_behind_many_others(tmp_path):
    journal = Journal(str(tmp_path))
    for number in range(1, 200):
        add(
            journal,
            str(number),
            at=number,
            end=FAILED,
            mark={"verdict": "good"} if number == 2 else None,
        )
    assert refs.resolve(journal, "@good") == "2"


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("9", "no trial #9: there are 1 to 4"),
        ("2.7", "no trial #2.7: there are 1 to 4"),
        ("-6", "no trial -6: there are only 5"),
        ("basline", "no trial is called `basline`; did you mean `baseline`?"),
        ("@god", "no trial is called `god`; did you mean `@good`?"),
        ("@unsure", "no trial for @unsure: none is marked unsure"),
        ("-0", "trials are counted from the newest with -1, -2, ..."),
        ("", "which trial? An empty word names none"),
        ("../../etc", "no trial is called `../../etc`; names: baseline"),
        ("٣", "no trial is called `٣`; names: baseline"),
    ],
)
def test_what_cannot_be_found_is_said_in_one_line(journal, ref, said):
    with pytest.raises((JournalError, UsageError)) as caught:
        refs.resolve(journal, ref)
    assert caught.value.message == said
    assert caught.value.exit_code == 2


def test_an_empty_journal_says_so(tmp_path):
    for ref in ("1", "-1", "@good", "name"):
        with pytest.raises(JournalError):
            refs.resolve(Journal(str(tmp_path)), ref)


def test_an_unreadable_trial_hides_no_other(journal):
    for name in ("end.json", "mark.json"):
        with open(os.path.join(journal.trials, "3", name), "w") as file:
            file.write("{")
    assert refs.resolve(journal, "@bad") == "1"
    assert refs.resolve(journal, "baseline") == "2"


@pytest.mark.parametrize("name", ["", "3", "-1", "@x", "#x", "a b", "good", "a/b", "a\n"])
def test_a_name_can_never_be_mistaken_for_something_else(name):
    with pytest.raises(UsageError):
        refs.check_name(name)


def test_names_are_letters_digits_and_a_few_signs():
    assert refs.check_name("lr-1e-3_works.2") == "lr-1e-3_works.2"
