"""Comments are taken back out, also of a file that was edited elsewhere since."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.trial.shapes.undo import EditedSince, taken_back

BEFORE = b"a = 1\nb = 2\nc = 3\n"
AFTER = b"a = 1\nb = 2  # (B,)\nc = 3\n"


def test_an_untouched_file_is_put_back_byte_for_byte():
    assert taken_back(BEFORE, AFTER, AFTER) == BEFORE


def test_what_was_never_written_is_left_as_it_is():
    assert taken_back(BEFORE, AFTER, BEFORE) == BEFORE


def test_edits_elsewhere_stay():
    now = b"import os\na = 1\n\nb = 2  # (B,)\nc = 4\n"
    assert taken_back(BEFORE, AFTER, now) == b"import os\na = 1\n\nb = 2\nc = 4\n"


def test_a_line_that_was_edited_since_is_refused():
    with pytest.raises(EditedSince) as caught:
        taken_back(BEFORE, AFTER, b"a = 1\nb = 5  # (B,)\nc = 3\n")
    assert caught.value.line == 2


lines = st.lists(st.sampled_from([b"x = 1", b"y = 2", b"", b"z = 3"]), max_size=8)


@given(st.lists(st.booleans(), min_size=1, max_size=8), lines, lines)
def test_taking_back_is_the_inverse_of_writing(written, above, below):
    old = [b"v%d = f()" % n for n in range(len(written))]
    new = [line + b"  # (B,)" if on else line for line, on in zip(old, written, strict=True)]
    now = b"\n".join([*above, *new, *below])
    expected = b"\n".join([*above, *old, *below])
    assert taken_back(b"\n".join(old), b"\n".join(new), now) == expected
