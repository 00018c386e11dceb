"""What a program that is held elsewhere and who asked for it tell each other."""

from relaunch.trial.launch.forks import Noted
from relaunch.trial.launch.held import START, Spec
from relaunch.trial.launch.held_agent import ENDED, GO, Lines, line_of, spec_json, spec_of


def test_words_come_through_in_whatever_blocks_and_among_words_of_others():
    said = [(GO, {"seed": 3}), (ENDED, {"output": b"\n\0" * 5000})]
    data = b"Loading module...\n".join(line_of(*one) for one in said) + b"\x1erl no such word\n"
    for size in (1, 1000, len(data)):
        lines = Lines()
        blocks = [data[at : at + size] for at in range(0, len(data), size)]
        assert [one for block in blocks for one in lines.take(block)] == said


def test_where_to_hold_it_is_the_same_on_the_other_side():
    noted = Noted(argv=("python", "a.py"), path=("",), modules=(("json", "library", "x"),))
    for spec in (Spec(at=START, is_race=True), Spec(at=START, noted=noted, roots=("/a",))):
        assert spec_of(spec_json(spec)) == spec
