"""Which environments go together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from relaunch.trial.place.kept_environments import Kept, resting_on

FORESTS = st.lists(st.integers(-1, 30), max_size=12).map(
    lambda below: [
        Kept(key=str(at), used=0.0, bytes=1, below=str(one) if 0 <= one < at else "")
        for at, one in enumerate(below)
    ]
)


@given(every=FORESTS, data=st.data())
def test_nothing_is_left_that_rests_on_what_goes_and_it_goes_first(every, data):
    keys = [one.key for one in every]
    chosen = data.draw(st.lists(st.sampled_from(keys), unique=True)) if keys else []
    going = resting_on(chosen, every)
    assert set(chosen) <= set(going)
    assert len(going) == len(set(going))
    for one in every:
        if one.below in going:
            assert going.index(one.key) < going.index(one.below)
        elif one.key in going:
            assert one.key in chosen
