"""What `rl shrink` shows: what it does before the first attempt, and texts that fit the screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from relaunch.cli import draw
from relaunch.cli.shrink_live import Live
from relaunch.cli.shrink_told import lines, percent
from relaunch.outcome import Signature
from relaunch.search.shrink.document import Document
from relaunch.search.shrink.formats.lines import Raw
from relaunch.session.shrinking.told import Doing, Found, Written

PEN = draw.Pen(colour=False, utf8=True)


def test_what_runs_before_the_first_attempt_is_drawn_on_a_terminal_and_goes_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    live = Live(quiet=False, pen=PEN)
    live.tell(Doing(text="runs as it is: python train.py"))
    assert "rl: runs as it is: python train.py" in capsys.readouterr().err
    live.close()
    assert capsys.readouterr().err == "\r\x1b[J"


def test_nothing_is_drawn_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    live = Live(quiet=False, pen=PEN)
    live.tell(Doing(text="runs as it is: python train.py"))
    live.close()
    assert capsys.readouterr().err == ""


def test_of_what_is_not_small_yet_a_few_lines_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "rows.small.txt"
    path.write_text("".join(f"row {number}\n" for number in range(90)))
    one = Written(name="rows.txt", path=str(path), bytes=690, of=9000, model=Document(b"", Raw()))
    found = Found(
        failure=Signature(kind="exception", title="f.py:1 ValueError", key=()),
        parts=(one,),
        command=("python", "load.py", "rows.small.txt"),
        stdin="",
        env=None,
        in_place=False,
        attempts=9,
        new_attempts=9,
        fresh=1,
        seconds=1.0,
        per_s=2.0,
        way="each attempt is a process of its own (21 ms)",
    )
    assert "  row 23" in lines(found, 80, PEN)
    told = lines(found.but(stopped="interrupted"), 80, PEN)
    assert "  row 4" in told
    assert "  row 5" not in told
    assert told[-1] == "next: rl shrink --resume"


def test_long_texts_are_folded_and_a_command_to_paste_is_not() -> None:
    command = ("python", "train.py", *(f"--option-{number}" for number in range(12)))
    found = Found(
        failure=Signature(kind="exception", title="f.py:1 ValueError: " + "a b " * 30, key=()),
        parts=(),
        command=command,
        stdin="",
        env=None,
        in_place=False,
        attempts=2,
        new_attempts=2,
        fresh=1,
        seconds=1.0,
        per_s=2.0,
        way="attempts start where rows.jsonl is first read: 170 ms instead of 582 ms",
    )
    told = lines(found, 80, PEN)
    (whole,) = [line for line in told if line.startswith("run it")]
    assert whole.endswith(" ".join(command))
    assert all(len(line) <= 80 for line in told if line != whole)
    assert "          ms" in told


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [
        (0, 900, "0%"),
        (3, 1500, "0.2%"),
        (77, 1000, "7.7%"),
        (488, 1400, "35%"),
        (999, 1000, "100%"),
        (10, 52_988_890, "under 0.001%"),
    ],
)
def test_what_is_kept_is_told_in_two_digits_of_percent(part: int, whole: int, said: str) -> None:
    assert percent(part, whole) == said
