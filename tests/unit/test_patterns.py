"""Patterns of the user's: found as `re` finds them, and given up where `re` would not end."""

from __future__ import annotations

import re
import signal

import pytest

from relaunch import patterns
from relaunch.patterns import NotFinished, Patience, compiled

ENDLESS = compiled("(a+)+b")
TEXT = "a" * 60


def test_a_pattern_that_never_ends_is_given_up_and_named_with_the_length_of_the_text():
    with pytest.raises(
        NotFinished, match=r"^`\(a\+\)\+b` was not through 60 characters after 1 s$"
    ):
        Patience().first(ENDLESS, TEXT)
    with pytest.raises(NotFinished):
        Patience().all(ENDLESS, TEXT)


def test_other_patterns_find_what_re_finds():
    text = "loss 3\nloss 2.5\nend"
    for words in ("loss", r"loss (\S+)", "^end$", "(x)?", "nothing|of it"):
        pattern = compiled(words, multiline=True)
        ours = [(found.span(), found.groups()) for found in Patience().all(pattern, text)]
        assert ours == [(found.span(), found.groups()) for found in pattern.finditer(text)]
        first = Patience().first(pattern, text)
        assert (first and first.span()) == (ours[0][0] if ours else None)


def test_timers_and_handlers_of_others_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(patterns, "LIMIT_S", 0.05)
    stops = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = [signal.getsignal(one) for one in stops]
    before = signal.signal(signal.SIGVTALRM, _never)
    signal.setitimer(signal.ITIMER_VIRTUAL, 900.0, 7.0)
    try:
        for text in ("aab", TEXT):
            try:
                Patience(holds_stops=True).first(ENDLESS, text)
            except NotFinished:
                assert text == TEXT
            assert signal.getsignal(signal.SIGVTALRM) is _never
            left, again = signal.getitimer(signal.ITIMER_VIRTUAL)
            assert 0 < left <= 901  # the kernel counts in ticks
            assert again == 7.0
            assert [signal.getsignal(one) for one in stops] == handlers
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _never(*_: object) -> None:
    raise AssertionError("the timer of somebody else came to us")


def test_once_stopped_nothing_more_is_looked_for(monkeypatch):
    monkeypatch.setattr(patterns, "LIMIT_S", 600.0)
    patience = Patience(holds_stops=True)
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with pytest.raises(NotFinished, match="stopped"):
            patience.first(ENDLESS, TEXT)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert patience.stopped_by == signal.SIGTERM
    with pytest.raises(NotFinished, match="stopped"):
        patience.first(compiled("a"), TEXT)


def test_what_cannot_be_compiled_is_a_fault_in_a_few_words():
    for words in (
        "(",
        "[",
        "a{1",
        "(?P<n>a)(?P<n>b)",
        "(" * 20_000 + ")" * 20_000,
        "a{99999999999}",
    ):
        try:
            re.compile(words)
        except (re.error, RecursionError, OverflowError):
            with pytest.raises(ValueError, match=r"^.+$"):
                compiled(words)
