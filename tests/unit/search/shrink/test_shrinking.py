from __future__ import annotations

from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples
from tests.small import shrink

from relaunch.search.shrink.document import Document
from relaunch.search.shrink.formats.choose import read_bytes
from relaunch.search.shrink.formats.jsonfile import Json
from relaunch.search.shrink.formats.lines import Lines
from relaunch.search.shrink.formats.words import Words
from relaunch.search.shrink.shrinking import Shrinking

TEXT = b"".join(b"line %d of the text\n" % number for number in range(40))


def has(*needles):
    return lambda model: all(needle in model.data for needle in needles)


@examples(25)
@given(st.sets(st.integers(0, 39), min_size=1, max_size=4), st.integers(2, 6))
def test_several_workers_and_a_resumed_search_come_to_the_same(needed, workers):
    fails = has(*(b"line %d " % number for number in needed))
    alone = shrink(Document(TEXT, Lines()), fails)
    together = shrink(Document(TEXT, Lines()), fails, workers=workers)
    assert [step.key for step in alone.accepted] == [step.key for step in together.accepted]
    half = dict(list(alone.known.items())[: len(alone.known) // 2])
    resumed = shrink(Document(TEXT, Lines()), fails, known=half)
    assert resumed.best["it"].key == alone.best["it"].key
    assert resumed.tried == alone.tried - len(half)
    again = shrink(Document(TEXT, Lines()), fails, known=together.known)
    assert again.tried == 0
    assert again.best["it"].key == alone.best["it"].key


def test_the_first_in_order_is_taken_though_a_later_one_answers_first():
    search = Shrinking({"it": Document(TEXT, Lines())})
    nothing, first, second = search.propose(3)
    search.learn(second, True)
    search.learn(first, True)
    assert not search.accepted
    assert [one.key for one in search.useless()] == []
    search.learn(nothing, False)
    assert [step.key for step in search.accepted] == [first.key]
    assert search.best["it"].key == first.parts["it"].key


def test_what_an_answer_makes_pointless_is_named():
    search = Shrinking({"it": Document(TEXT, Lines())})
    attempts = search.propose(4)
    search.learn(attempts[1], True)
    assert [one.key for one in search.useless()] == [one.key for one in attempts[2:]]
    for useless in search.useless():
        search.forget(useless)
    assert search.useless() == []
    assert search.propose(1)[0].parts["it"].bytes < attempts[1].parts["it"].bytes


def test_steps_that_do_not_hold_are_taken_back_and_the_search_goes_on_before_them():
    # Found beside others `line 7` is enough, alone in a fresh process `line 30` is needed too.
    search = shrink(Document(TEXT, Lines()), has(b"line 7 "))
    really = has(b"line 7 ", b"line 30 ")
    good = [really(step.parts["it"]) for step in search.accepted].index(False)
    search.reject_since(good)
    assert not search.is_done
    assert really(search.best["it"]) or not search.accepted
    while not search.is_done:
        for attempt in search.propose(1):
            search.learn(attempt, really(attempt.parts["it"]))
    assert really(search.best["it"])
    assert search.best["it"].data == b"line 7 line 30 "


def test_all_parts_shrink_together_until_none_has_anything_left():
    parts: dict[str, Any] = {
        "data.json": Document(b'{"a": [1, 2, {"b": "xyz"}], "c": 3}', Json()),
        "words": Words(["--fast", "--size", "10", "file.txt", "--name=u"]),
    }

    def fails(attempt):
        data, words = attempt.parts["data.json"].data, attempt.parts["words"].words
        return b'"b"' in data and "--size" in words and (b"x" in data or "--fast" in words)

    search = Shrinking(parts)
    while not search.is_done:
        for attempt in search.propose(2):
            search.learn(attempt, fails(attempt))
    best: Any = search.best
    assert (best["data.json"].data, best["words"].words) == (b'{"b":"x"}', ("--size",))
    assert search.progress.bytes_now < search.progress.bytes_first


def test_progress_says_where_it_is():
    search = Shrinking({"it": Document(TEXT, Lines())})
    search.learn(search.propose(1)[0], False)
    search.propose(1)
    progress = search.progress
    assert (progress.part, progress.doing, progress.tried) == ("it", "lines", 1)
    assert progress.place == "without lines 21-40 of 40"
    assert (progress.bytes_now, progress.bytes_first) == (len(TEXT), len(TEXT))


def test_a_failure_that_needs_everything_ends_and_changes_nothing():
    search = shrink(Document(b"a\nb\nc\n", Lines()), lambda model: False)
    assert search.accepted == []
    assert search.best["it"].data == b"a\nb\nc\n"


@pytest.mark.parametrize("seed", range(6))
def test_a_failure_at_random_ends_too(seed):
    def fails(model):
        return (model.key[0] + seed) % 3 == 0

    one = shrink(Document(TEXT[:200], Lines()), fails)
    three = shrink(Document(TEXT[:200], Lines()), fails, workers=3)
    assert one.best["it"].key == three.best["it"].key


def could_go(model, fails):
    """Return what any pass, walked from its start to its end, could still take away."""
    found = []
    for doing in model.passes():
        cursor = doing.begin(model)
        while cursor is not None:
            smaller = doing.attempt(model, cursor)
            if smaller is not None and smaller.model.measure < model.measure:
                found += [smaller.what] if fails(smaller.model) else []
            cursor = doing.failed(model, cursor)
    return found


@pytest.mark.parametrize("seed", [1, 2, 4, 5])
def test_what_chance_left_goes_when_all_is_asked_once_more(seed):
    """Every other payload that does fail does not when it is asked first."""
    asked = set()

    def fails(model):
        is_shy = crc32(b"%d " % seed + model.data) % 2 == 0 and model.data not in asked
        asked.add(model.data)
        return has(b"line 7 ", b"line 30 ")(model) and not is_shy

    search = shrink(Document(TEXT, Lines()), fails)
    assert could_go(search.best["it"], has(b"line 7 ", b"line 30 "))
    while search.look_again():
        while not search.is_done:
            for attempt in search.propose(1):
                search.learn(attempt, fails(attempt.parts["it"]))
    assert could_go(search.best["it"], has(b"line 7 ", b"line 30 ")) == []


def test_what_was_taken_back_is_not_asked_for_again_and_nothing_is_looked_at_twice():
    search = shrink(Document(TEXT, Lines()), has(b"line 7 "))
    best = search.best["it"].key
    assert search.look_again()
    search.reject_since(len(search.accepted) - 1)
    while not search.is_done:
        for attempt in search.propose(1):
            search.learn(attempt, False)
    before = search.best["it"].key
    assert search.look_again()
    while not search.is_done:
        for attempt in search.propose(1):
            assert attempt.parts["it"].key != best
            search.learn(attempt, False)
    assert search.best["it"].key == before
    assert not search.look_again()


TEXTS = {
    "a.txt": b"".join(b"line %d of some\n" % number for number in range(12)),
    "a.jsonl": b"".join(b'{"id": %d, "tags": [1, 2]}\n' % number for number in range(8)),
    "a.csv": b"id,name\n" + b"".join(b"%d,n%d\n" % (number, number) for number in range(10)),
    "a.toml": b"a = 1\n[b]\nc = [1, 2, 3]\nd = 'text'\n[b.e]\nf = true\n",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("odds", [4, 20, 60])
def test_whatever_the_failure_no_unit_of_any_pass_can_go_in_the_end(name, workers, odds):
    """One of so many fails, by chance: larger ones pass where smaller ones fail."""

    def fails(model):
        return crc32(model.data) % odds == 0

    best = shrink(read_bytes(TEXTS[name], name), fails, workers=workers).best["it"]
    assert could_go(best, fails) == []


@pytest.mark.parametrize("odds", [4, 10, 20, 30, 40, 50, 60])
def test_whatever_the_failure_no_line_can_go_in_the_end(odds):
    def fails(data):
        return crc32(data) % odds == 0

    best = shrink(read_bytes(TEXTS["a.txt"], "a.txt"), lambda model: fails(model.data)).best["it"]
    left = best.data.splitlines(keepends=True)
    assert not any(fails(b"".join(left[:at] + left[at + 1 :])) for at in range(len(left)))
