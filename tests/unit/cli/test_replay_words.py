"""The words of `rl replay`: what was kept, and how a replay ended."""

from typing import Any

import pytest

from relaunch.cli import draw
from relaunch.cli.replay import exit_code, screen, tried_words, verdict_words
from relaunch.journal.store import Trial
from relaunch.session.calls import Choice, Tried
from relaunch.session.captures import Capture
from relaunch.session.replay import Report
from relaunch.trial.launch.replay import Replayed


def frame(name: str, **more: Any) -> dict[str, Any]:
    kept = {"bytes": 2048, "missing": [], "notes": [], "rebound": [], "lost": []}
    return {"qualname": name, "file": "/p/train.py", "line": 8, "kind": "function", **kept, **more}


def capture(*frames: dict[str, Any]) -> Capture:
    facts = {
        "error": {"type": "ValueError", "message": "loss is \x1b[31mnan"},
        "who": "DataLoader-1",
        "bytes": 3 << 20,
        "took_s": 0.04,
        "shapes_only_bytes": 5 << 30,
        "pickled": ["__main__.Net", "shop.Basket"],
        "frames": list(frames),
    }
    return Capture(path="/c/12-1", facts=facts, found={"chosen": {"frame": 1, "how": "call"}})


def report(
    verdict: str, ended: str = "raised", changed: tuple[str, ...] = (), **more: Any
) -> Report:
    replayed = Replayed(ended=ended, took_s=0.1, **more)
    title = "train.py:8 ValueError: no" if ended == "raised" else ""
    choice = Choice(frame=1, how="call")
    tried = Tried(choice=choice, verdict=verdict, replayed=replayed, title=title)
    trial = Trial(id="3", path="/t", start={}, end={"duration_s": 34.0})
    found = capture(frame("main"), frame("step"))
    return Report(trial=trial, capture=found, tried=(tried,), final=tried, changed=changed)


def words(one: Report) -> list[str]:
    assert one.final is not None
    return verdict_words(one, one.final)


def test_the_list_shows_what_is_not_as_it_was():
    found = capture(
        frame("main"),
        frame("step.<locals>.inner", rebound=["x"], notes=["lock: a new one"]),
        frame("load", missing=["self.link: a \x07socket"], lost=["y"]),
    )
    assert screen("3", found, width=80, pen=draw.Pen()) == [
        "#3 in DataLoader-1  ValueError: loss is \\x1b[31mnan",
        "  3.0 MiB kept in 0.04 s, 5.0 GiB as shapes only",
        "     call        at            bytes  not as it was",
        "  1  main        train.py:8  2.0 KiB",
        "* 2  step.inner  train.py:8  2.0 KiB  x may be rebound, lock: a new one",
        "  3  load        train.py:8  2.0 KiB  y is gone",
        "  plain data, but for pickles of Net, shop.Basket",
        "  load: not kept: self.link: a \\x07socket",
    ]


TOLD = "(step() of #3 alone: 0.10 s, the program 34 s)"


@pytest.mark.parametrize(
    ("one", "told", "code"),
    [
        (report("same"), f"still fails: train.py:8 ValueError: no   {TOLD}", 1),
        (report("almost"), f"still fails: train.py:8 ValueError: no   {TOLD}", 1),
        (report("other"), f"fails otherwise now: train.py:8 ValueError: no   {TOLD}", 1),
        (report("gone", "passed", ("/p/a.py",)), f"fixed: no longer fails   {TOLD}", 0),
        (report("gone", "passed"), f"does not fail, and nothing was edited   {TOLD}", 0),
        (
            report("neither", "timed_out"),
            f"has not failed after 0.10 s   try: rl replay --limit 1m   {TOLD}",
            124,
        ),
        (
            report("neither", "unready", why="it is gone"),
            f"cannot be replayed: it is gone   {TOLD}",
            2,
        ),
        (
            report("neither", "raised", needs="a socket"),
            f"cannot be replayed: a socket   {TOLD}",
            2,
        ),
    ],
)
def test_an_ending_has_its_words_and_its_exit_code(one, told, code):
    assert words(one) == [told]
    assert exit_code(one) == code


def test_edits_that_did_not_run_are_named_unless_it_is_mended():
    edited = ("Net.__init__", "prepare")
    assert words(report("same", not_run=edited))[0] == (
        "edited, but no part of this call: Net.__init__(), prepare()   try: rl"
    )
    assert len(words(report("gone", "passed", ("/p/a.py",), not_run=edited))) == 1


def test_a_try_is_told_in_a_few_words():
    found = [report("same"), report("gone", "passed"), report("neither", "timed_out")]
    assert [tried_words(one.tried[0]) for one in found] == [
        "fails so, 0.10 s",
        "does not fail alone",
        "takes too long (0.10 s)",
    ]
