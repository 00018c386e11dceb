"""Warm relaunch against cold: every shape of program, edited at random, must do the same both ways.

`RELAUNCH_WARM_PAIRS=20000` says how many pairs in all, `RELAUNCH_WARM_SEED` which edits,
`RELAUNCH_WARM_PYTHON` which Python the programs run on. Without the last, the other Pythons that we
support have their turn too, with a fifth of all pairs each. What differs is kept, with the command
that repeats it.
"""

import dataclasses
import fcntl
import json
import os
import random
import sys
import tempfile
from pathlib import Path

import pytest
from tests.depth import rounds
from tests.needs import in_turn, missing
from tests.quality.warm import edits, harness

PAIRS = int(os.environ.get("RELAUNCH_WARM_PAIRS") or rounds(260, 8000))
SEED = int(os.environ.get("RELAUNCH_WARM_SEED", "1"))
KEEP = Path(os.environ.get("RELAUNCH_WARM_KEEP", Path(tempfile.gettempdir()) / "warm_mismatches"))
FEW = 5
"""Of fewer edits none may leave a place to resume at."""
SHAPES = harness.programs()
OWN = harness.version_of(harness.python_of_tests())
OTHERS = in_turn([one for one in ("3.11", "3.12", "3.13") if one != OWN])
if "RELAUNCH_WARM_PYTHON" in os.environ:
    OTHERS = []


@pytest.mark.parametrize("program", SHAPES, ids=lambda program: program.name)
def test_an_edited_program_relaunched_warm_does_what_it_does_cold(
    program, tmp_path_factory, capfd
) -> None:
    tallies = tmp_path_factory.getbasetemp().parent / "tallies"
    pairs = PAIRS - len(OTHERS) * (PAIRS // 5)
    _try(program, harness.python_of_tests(), pairs, tallies, capfd)


@pytest.mark.parametrize(
    ("program", "version"),
    [(program, version) for version in OTHERS for program in SHAPES],
    ids=lambda one: getattr(one, "name", one),
)
def test_it_does_so_on_the_other_pythons(program, version, tmp_path_factory, capfd) -> None:
    python = harness.other_python(version)
    if python is None:
        missing(f"there is no Python {version} here, beside this one or on the path")
    tallies = tmp_path_factory.getbasetemp().parent / f"tallies-{version}"
    _try(program, python, PAIRS // 5, tallies, capfd)


def _try(
    program: Path, python: str, pairs: int, tallies: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    share = -(-pairs // len(SHAPES))
    tally = harness.session(program, SEED, share, python, KEEP)
    _count(tally, tallies, python, capfd)
    assert not tally.mismatches, "\n\n".join(tally.mismatches)
    assert tally.resumed > 0 or share < FEW, f"nothing was resumed: {tally}"


def _count(
    tally: harness.Tally, file: Path, python: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Add to what was counted by all workers; the last one prints the sum."""
    with file.open("a+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.write(json.dumps(harness.to_json(tally)) + "\n")
        stream.flush()
        stream.seek(0)
        tallies = [harness.from_json(json.loads(line)) for line in stream]
    if len(tallies) == len(SHAPES):
        total = harness.Tally()
        for one in tallies:
            total.add(one)
        version = harness.version_of(python)
        with capfd.disabled():
            print(f"\nwarm against cold on Python {version}, {total}", file=sys.stderr)


def test_there_are_enough_shapes_of_programs() -> None:
    assert len(SHAPES) >= 28


@pytest.mark.parametrize("label", [*edits.EDITS])
def test_an_edit_fits_some_program_and_still_compiles(label) -> None:
    texts = [path.read_text() for path in sorted(harness.PROGRAMS.rglob("*.py"))]
    made = (
        (text, edits.EDITS[label](text, random.Random(seed))) for seed in range(8) for text in texts
    )
    assert any(new not in (None, text) and edits.compiles(new or "") for text, new in made)


def test_the_same_random_numbers_make_the_same_edits() -> None:
    text = (harness.PROGRAMS / "trainer" / "main.py").read_text()
    one, other = (edits.edit(text, random.Random(5)) for _ in range(2))
    assert one == other
    assert one[0] != text


def test_a_difference_is_seen_kept_and_can_be_repeated(tmp_path, monkeypatch) -> None:
    """Warm runs that say too much are made up here, to see that they would not pass."""
    honest = harness.Warm.warm

    def boasting(self, argv, give_up=lambda: False):
        result = honest(self, argv, give_up)
        return dataclasses.replace(result, out=result.out + b"and more\n")

    monkeypatch.setattr(harness.Warm, "warm", boasting)
    program = harness.PROGRAMS / "defaults"
    tally = harness.session(program, 1, 1, harness.python_of_tests(), tmp_path)
    assert "+and more" in tally.mismatches[0]
    (case,) = tmp_path.iterdir()
    assert "repeats" in (case / "README").read_text()
    assert harness.repeat(case) == 1
    monkeypatch.undo()
    assert harness.repeat(case) == 0
