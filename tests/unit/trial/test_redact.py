"""Redaction holds however the output is cut, and loses no other byte."""

import html
import json

from hypothesis import given
from hypothesis import strategies as st

from relaunch.trial.redact import REDACTED, Redactor, forms, redact, redact_all

SECRETS = (b"hunter2-hunter2", b"ababab-x", b"abab-key")


@given(
    st.lists(st.sampled_from([*SECRETS, b"ab", b"hunter2", b"-", b"x", b"\n"]), max_size=12),
    st.lists(st.integers(1, 9), min_size=1, max_size=40),
)
def test_however_it_is_cut_the_same_is_kept_as_in_one_piece(words, cuts):
    text = b"".join(words)
    got: list[bytes] = []
    redactor = Redactor(lambda _when, _stream, data: got.append(data), SECRETS)
    at = 0
    for cut in cuts:
        redactor.chunk(0.0, 1, text[at : at + cut])
        at += cut
    redactor.chunk(0.0, 1, text[at:])
    redactor.flush()
    out = b"".join(got)
    assert not any(secret in out for secret in SECRETS)
    assert (REDACTED in out) == any(secret in text for secret in SECRETS)
    if REDACTED not in out:
        assert out == text


def test_without_a_secret_every_byte_comes_through_on_its_stream():
    got = []
    redactor = Redactor(lambda when, stream, data: got.append((when, stream, data)), SECRETS)
    redactor.chunk(1.0, 1, b"hun")
    redactor.chunk(2.0, 2, b"other")
    redactor.chunk(3.0, 1, b"ger")
    redactor.flush()
    assert got == [(2.0, 2, b"other"), (3.0, 1, b"hunger")]


def test_lines_and_terminal_forms_of_a_long_secret():
    found = forms((b"first line of sixteen\nx",))
    assert b"first line of sixteen\r\nx" in found
    assert b"first line of sixteen" in found
    assert b"x" not in found


def test_a_secret_is_known_in_a_page_and_in_a_text_within_a_text():
    secret = 'it\'s "so" & so'
    found = forms((secret.encode(),))
    for shown in (html.escape(secret), json.dumps(json.dumps(secret)), repr(repr(secret))):
        assert b"so" not in redact(shown.encode(), found)


def test_texts_anywhere_in_plain_data():
    value = {"a hunter2-hunter2": [1, None, "x ababab-x y"]}
    assert redact_all(value, SECRETS) == {"a <redacted>": [1, None, "x <redacted> y"]}


@given(
    st.lists(st.sampled_from([*SECRETS, b"a", b"ab", b"aba", b"hunter2-hunter", b"\n"]), max_size=9)
)
def test_what_may_be_the_beginning_of_a_secret_waits_and_nothing_more(words):
    text = b"".join(words)
    got: list[bytes] = []
    redactor = Redactor(lambda _when, _stream, data: got.append(data), SECRETS)
    redactor.chunk(0.0, 1, text)
    shown = text
    for secret in sorted(SECRETS, key=len, reverse=True):
        shown = shown.replace(secret, REDACTED)
    sizes = range(max(map(len, SECRETS)))
    begun = [n for n in sizes if n and any(one[:n] == shown[-n:] != one for one in SECRETS)]
    assert b"".join(got) == shown[: len(shown) - max(begun, default=0)]
