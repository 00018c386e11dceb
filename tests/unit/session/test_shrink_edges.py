from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.small import shrink

from relaunch.outcome import Outcome
from relaunch.search.shrink.document import Document
from relaunch.search.shrink.formats.jsonfile import Json
from relaunch.search.shrink.model import Attempt
from relaunch.search.shrink.packed import Packed
from relaunch.session.shrinking.asking import Asked
from relaunch.session.shrinking.confirming import Confirming
from relaunch.session.shrinking.crew import FRESH
from relaunch.session.shrinking.edge import Edge
from relaunch.session.shrinking.gains import bytes_of
from relaunch.session.shrinking.seat import Job, Ran
from relaunch.session.shrinking.shrink import Shrink


class Sized:
    """A payload of which only the size is known."""

    def __init__(self, size: int) -> None:
        self.bytes = size


def step(size: int) -> Attempt:
    model: Any = Sized(size)
    return Attempt(number=1, parts={"it": model}, changed="it", what="", key=b"")


@given(st.sets(st.integers(1, 1200), min_size=1), st.sets(st.integers(1, 1200)))
def test_what_is_kept_is_larger_than_what_was_doubted_if_that_costs_little(sizes, doubted):
    falling = sorted(sizes, reverse=True)
    edge = Edge()
    for size in doubted:
        edge.doubt(step(size))
    kept = falling[edge.clear_of([step(size) for size in falling]) - 1]
    clear = [size for size in falling if max(doubted, default=0) < size <= 1.02 * falling[-1]]
    assert kept == min(clear, default=falling[-1])


def test_where_nothing_was_taken_nothing_is_kept():
    assert Edge().clear_of([]) == 0


class Crew:
    """All that is started in it fails, at once."""

    way = FRESH
    aside = None

    def __init__(self):
        self.running: list[Job] = []
        self.ran = 0

    def start_anywhere(self, job):
        self.running.append(job)
        return len(self.running) == 1

    def wait(self, seconds):
        job, self.running = self.running[0], []
        self.ran += 1
        outcome = Outcome(exit_code=1, signal=None, duration_s=0.01)
        return [Ran(job=job, outcome=outcome, forked=False, seconds=0.01)], []

    def cancel(self, jobs):
        pass


class Asking:
    """Answers for the crew; what it was asked is noted."""

    def __init__(self, holds=lambda size: True):
        self.crew = Crew()
        self.asked: list[tuple[int, bool]] = []
        self.answer = holds

    def holds(self, parts, *, already=0, in_doubt=False):
        self.asked.append((bytes_of(parts), in_doubt))
        return self.answer(bytes_of(parts))

    def aside(self, parts):
        raise AssertionError("nothing is run here")

    def give_up(self, engine):
        pass


class Search:
    """The rest of a search: it fails each time, as far as is known, and nothing is written."""

    tries, seconds, is_plain = 1, 0.01, False
    known: dict[bytes, bool] = {}
    was_forked: set[bytes] = set()

    def is_flaky(self, run):
        return False

    def is_same(self, outcome):
        return outcome.exit_code == 1

    def fails_by_chance(self, run):
        self.tries = 2

    def ignore(self, *words, **named):
        pass

    write = note = back_to = begin_at = drop_passing = ignore


def confirming(engine, asking, search=None, original=None):
    one: Any = search or Search()
    return Confirming(
        engine, asking, one, original=original or {}, hunt=one, results=one, gains=one,
        tell=lambda event: None, hold_anew=lambda: None,
    )  # fmt: skip


def nested(levels=6_000):
    return Document(b"[" * levels + b"]" * levels, Json())


def fails(model):
    return model.bytes >= 9_000


def search_on(engine):
    while not engine.is_done:
        for attempt in engine.propose(1):
            engine.learn(attempt, fails(attempt.parts["it"]))


def test_at_the_end_a_result_keeps_clear_of_what_failed_only_now_and_then():
    engine, asking = shrink(nested(), fails), Asking()
    subject = confirming(engine, asking)
    subject.refuted(Asked(engine.accepted[-1], 1))
    assert subject.is_settled(lambda parts: True)
    assert bytes_of(subject.parts) == 9_002
    assert asking.asked == [(9_000, True)]


def test_when_it_is_stopped_a_result_keeps_clear_and_is_asked_more_often():
    engine, asking = shrink(nested(), fails), Asking()
    subject = confirming(engine, asking)
    subject.refuted(Asked(engine.accepted[-1], 1))
    subject.settle_down(in_haste=True)
    assert bytes_of(subject.parts) == 9_002
    assert asking.crew.ran == 30


def test_what_was_taken_back_once_is_kept_clear_of_though_what_is_smaller_holds_later():
    original = {"it": nested(7_000)}
    engine = shrink(original["it"], fails)
    asking = Asking()
    subject = confirming(engine, asking, original=original)
    asking.answer = lambda size: size >= 9_160 or subject._edges > 1
    while not subject.is_settled(lambda parts: True):
        search_on(engine)
    assert bytes_of(engine.best) == 9_003
    assert bytes_of(subject.parts) == 9_086  # 9,084 did not hold
    assert all(in_doubt for _, in_doubt in asking.asked)


def test_where_all_of_it_does_not_hold_either_it_is_chance_and_the_search_begins_anew():
    original = {"it": nested()}
    engine, asking, search = shrink(original["it"], fails), Asking(lambda size: False), Search()
    subject = confirming(engine, asking, search, original)
    assert not subject.is_settled(lambda parts: True)
    assert search.tries == 2
    assert asking.asked[-1] == (12_000, True)
    assert engine.accepted == []
    assert not engine.is_done


def test_who_is_stopped_after_the_search_began_anew_still_has_what_held_before():
    original = {"it": nested()}
    engine, asking, search = shrink(original["it"], fails), Asking(), Search()
    subject = confirming(engine, asking, search, original)
    subject.hold(len(engine.accepted))
    asking.answer = lambda size: False
    assert not subject.is_settled(lambda parts: True)
    subject.settle_down(in_haste=True)
    assert bytes_of(subject.parts) == 9_000


def test_at_the_last_edge_too_a_search_that_begins_anew_is_not_at_its_end():
    original = {"it": nested()}
    engine, asking, search = shrink(original["it"], fails), Asking(), Search()
    subject = confirming(engine, asking, search, original)
    subject._edges = 2
    asking.answer = lambda size: False
    assert not subject.is_settled(lambda parts: True)
    assert subject._edges == 0


def test_what_chance_refutes_is_no_reason_not_to_believe_forks():
    engine, search = shrink(nested(), fails), Search()
    search.tries = 4
    subject = confirming(engine, Asking(), search)
    assert not any(subject.refuted(Asked(engine.accepted[-1], 4)) for _ in range(20))


def test_who_must_fail_once_more_by_chance_is_given_as_many_runs_as_at_first():
    engine, search = shrink(nested(), fails), Search()
    search.tries = 4
    one: Any = Shrink.__new__(Shrink)
    one.hunt, one.confirming = search, confirming(engine, Asking(), search)
    one.confirming._is_doubtful = True
    asked = Asked(engine.accepted[-1], 4)
    asked.left = 1
    assert one._next_question(asked).fresh
    assert (asked.is_confirming, asked.left) == (True, 4)


def test_what_is_not_deep_and_was_not_doubted_is_asked_less_often_and_stays_as_small():
    flat = shrink(Document(b"[" + b"1," * 3_000 + b"1]", Json()), lambda m: m.bytes >= 4_000)
    asking = Asking()
    subject = confirming(flat, asking)
    subject.refuted(Asked(flat.accepted[-1], 1))
    assert subject.is_settled(lambda parts: True)
    assert subject.parts is flat.accepted[-1].parts
    assert asking.asked == [(bytes_of(subject.parts), False)]


def test_what_is_packed_is_as_deep_as_what_is_in_it():
    assert Packed(nested(), "gz").is_deep
    assert not Packed(nested(3_999), "gz").is_deep


def test_what_cannot_be_read_is_not_deep():
    assert not Document(b"[" * 6_000, Json()).is_deep
