"""What is said to be harmless has no secret, whatever its digits are; logs of training are."""

import random
import re

from hypothesis import given
from hypothesis import strategies as st
from tests.planted import NAMED, password, tokens

from relaunch.inside.secret_shapes import has_anchor, pending, spans
from relaunch.trial.redact import Redactor
from relaunch.trial.seen_lines import SeenLines

STEP = b"2024-01-01 12:00:%02d INFO step %d loss=%.4f tokens/s=%d.5 max_tokens=512 lr_r=%d\n"
PLANTED = [
    *(f"got {token} now" for token in tokens().values()),
    *(line.format(password()) for line in NAMED),
]


def log(first: int, count: int) -> bytes:
    """Return lines that differ in their digits."""
    return b"".join(STEP % (i % 60, i, 1 / (i + 1), i, i % 7) for i in range(first, first + count))


def test_lines_that_come_again_with_other_digits_are_harmless():
    seen = SeenLines(())
    for first in (0, 500, 123_456):
        assert seen.are_harmless(log(first, 500))
    assert seen.are_harmless(b"100%\r200%\r300%")


def test_what_has_no_secret_is_handed_on_as_it_is():
    got = []
    redactor = Redactor(lambda _when, _stream, data: got.append(data), (b"hunter2-hunter2",))
    data = log(0, 500)
    redactor.chunk(0.0, 1, b"a line\nepoch ")
    redactor.chunk(0.0, 1, data)
    assert got[1] is data


def test_no_planted_secret_is_called_harmless_among_lines_that_were_seen():
    for planted in PLANTED:
        raw = planted.encode()
        if not spans(raw):
            continue
        seen = SeenLines(())
        assert seen.are_harmless(log(0, 400))
        for data in (raw, log(0, 400) + raw, log(400, 10) + raw + b"\n" + log(0, 400)):
            for _ in range(3):
                assert not seen.are_harmless(data), planted
        assert seen.are_harmless(log(900, 400))


def test_a_known_secret_is_found_with_and_without_letters():
    seen = SeenLines((b"1234-5678-9", b"0ab1cd2ef3", b"line one\nlonger line two"))
    for secret in (b"1234-5678-9", b"0ab1cd2ef3", b"line one\nlonger line two"):
        for _ in range(3):
            assert not seen.are_harmless(log(0, 30) + secret + b"\n")
            assert not seen.are_harmless(b"x " + secret)
    assert seen.are_harmless(log(0, 30))


def test_a_token_that_is_a_part_of_a_path_is_no_harmless_word():
    for token in tokens().values():
        line = f"saved /x/{token} now\n".encode()
        assert not SeenLines(()).are_harmless(line * 20)


@given(st.lists(st.sampled_from(PLANTED), min_size=1, max_size=3), st.integers(0, 2**32))
def test_what_has_nothing_that_a_secret_begins_with_has_none(planted, seed):
    """Pieces of secrets, put together anew, so that many only nearly have one."""
    chance = random.Random(seed)
    pieces = [piece for one in planted for piece in re.split(r"(?<=[=:_ .-])|(?=[@/])", one)]
    words = chance.choices([*pieces, "tokens", "5", "s", " ", "\n", "secret", "curl "], k=12)
    text = "".join(words).encode()
    bare = text.translate(None, b"0123456789")
    if not has_anchor(bare):
        assert not spans(text)
        assert not pending(text)


def test_of_lines_that_never_come_again_a_bounded_amount_is_kept():
    seen = SeenLines(())
    chance = random.Random(1)
    for _ in range(300):
        lines = ["".join(chance.choices("abcdefgh", k=60)) for _ in range(100)]
        seen.are_harmless("\n".join(lines).encode())
    kept = (seen._harmless, seen._suspects, seen._once)
    assert sum(sum(map(len, lines)) for lines in kept) < 2 << 20
