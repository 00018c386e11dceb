"""Answers on the disk, names of small files, numbers of steps."""

from __future__ import annotations

import pytest

from relaunch.recipe import Recipe
from relaunch.session.shrinking.answers import Answers
from relaunch.session.shrinking.results import small_name
from relaunch.session.shrinking.steps import find


def test_answers_are_read_back_and_a_cut_end_is_not(tmp_path):
    answers = Answers(str(tmp_path))
    for number in range(5):
        answers.note(bytes([number]) * 16, number % 2 == 0, forked=number > 2)
    answers.flush()
    path = tmp_path / "tried"
    path.write_bytes(path.read_bytes()[:-3])
    again = Answers(str(tmp_path))
    assert again.known == {bytes([n]) * 16: n % 2 == 0 for n in range(4)}
    assert again.was_forked == {bytes([3]) * 16}
    again.note(b"x" * 16, True, forked=True)
    again.note(bytes([0]) * 16, False, forked=False)
    again.flush()
    last = Answers(str(tmp_path))
    assert last.known[b"x" * 16] is True
    assert last.known[bytes([0]) * 16] is False
    last.drop_forked()
    assert set(Answers(str(tmp_path)).known) == {bytes([n]) * 16 for n in range(3)}


@pytest.mark.parametrize(
    ("file", "small"),
    [
        ("data.jsonl", "data.small.jsonl"),
        ("in/data.csv.gz", "in/data.small.csv.gz"),
        ("folder/", "folder.small"),
        ("noend", "noend.small"),
    ],
)
def test_the_small_one_is_named_after_the_file(file, small):
    assert small_name(file) == small


@pytest.mark.parametrize(
    ("words", "value", "small"),
    [
        (("--max-steps", "50"), 50, ("--max-steps", "7")),
        (("--trainer.max_steps=50",), 50, ("--trainer.max_steps=7",)),
        (("-n", "5", "--epochs=9"), 9, ("-n", "5", "--epochs=7")),
    ],
)
def test_the_number_of_steps_is_found_among_the_words(words, value, small, monkeypatch):
    monkeypatch.setattr("os.environ", {})
    recipe = Recipe(argv=("train", *words), cwd="/")
    where, found = find(recipe)
    assert found == value
    assert where.put(recipe, 7).argv == ("train", *small)
