"""What is told of failed calls."""

from __future__ import annotations

from relaunch.cli import draw
from relaunch.cli.blame_told import blame_lines
from relaunch.trial.blame.hits import Hit, to_json


def test_calls_of_our_own_are_not_counted_among_those_that_are_not_shown():
    full = Hit(error="ENOSPC", call="write", path="/ck/new", pid=7, when=3.0)
    theirs = Hit(error="ENOENT", call="open", path="/etc/x", hidden="system", when=2.0)
    ours = Hit(error="ENOENT", call="open", path="/rl/y", hidden="relaunch", when=1.0)
    pen = draw.Pen()

    def said(*hits: Hit) -> str:
        return "\n".join(blame_lines({"hits": [to_json(one) for one in hits]}, pen, trial_id="3"))

    assert "1 failed call more: rl show 3 --blame" in said(full, theirs, ours)
    assert "more" not in said(full, ours)
