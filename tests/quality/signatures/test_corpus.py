"""Are failures told apart and recognised? Over every pair of the corpus, with figures."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
from __future__ import annotations

import itertools
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from relaunch.outcome import Signature
from relaunch.trial.signature.marker import looks_failing
from relaunch.trial.signature.read import identify

CORPUS = Path(__file__).parent / "corpus"


class Told:
    """One output of the corpus and what `identify` says about it."""

    def __init__(self, case: str, head: dict[str, Any], text: str) -> None:
        self.case, self.head, self.text = case, head, text
        self.name = f"{case}:{head['variant']}"
        self.group = head["group"]
        self.signature: Signature | None = identify(
            text=text,
            exit_code=head["exit_code"],
            signal=head["signal"],
            timed_out=head["timed_out"],
            reports=head.get("reports", ()),
        )
        self.digest = self.signature.digest if self.signature else ""


def read_case(path: Path) -> list[tuple[dict[str, Any], str]]:
    """Return the outputs in one file with their heads."""
    parts: list[tuple[dict[str, Any], list[str]]] = []
    for line in path.read_bytes().decode("utf-8").split("\n"):
        if line.startswith("%% "):
            parts.append((json.loads(line[3:]), []))
        else:
            parts[-1][1].append(line)
    return [(head, "\n".join(lines)) for head, lines in parts]


@pytest.fixture(scope="module")
def corpus() -> list[Told]:
    return [
        Told(path.stem, head, text)
        for path in sorted(CORPUS.glob("*.txt"))
        for head, text in read_case(path)
    ]


def scores(told: list[Told]) -> tuple[float, float, list[str]]:
    """Return precision, recall and the pairs judged wrongly, over all pairs."""
    right = wrongly_same = missed = 0
    wrong = []
    for one, other in itertools.combinations(told, 2):
        same, said = one.group == other.group, one.digest == other.digest
        right += same and said
        wrongly_same += said and not same
        missed += same and not said
        if same != said:
            what = "missed" if same else "mixed up"
            wrong.append(
                f"{what}: {one.name} {one.signature}\n        {other.name} {other.signature}"
            )
    return right / max(1, right + wrongly_same), right / max(1, right + missed), wrong


def test_every_pair_of_the_corpus_is_judged_rightly(corpus, capsys):
    precision, recall, wrong = scores(corpus)
    pairs = len(corpus) * (len(corpus) - 1) // 2
    with capsys.disabled():
        print(
            f"\n{len(corpus)} outputs of {len({t.case for t in corpus})} programs, {pairs} pairs:"
            f" precision {precision:.1%}, recall {recall:.1%}"
        )
    assert not wrong, "\n".join(wrong)
    assert (precision, recall) == (1.0, 1.0)


def test_the_corpus_is_as_large_and_mixed_as_promised(corpus):
    groups = defaultdict(list)
    for told in corpus:
        groups[told.group].append(told)
    assert len({told.case for told in corpus}) >= 60
    assert sum(len(members) > 1 for members in groups.values()) >= 60
    kinds = {told.signature.kind for told in corpus if told.signature}
    assert kinds >= {"exception", "logged", "signal", "tests", "timeout", "exit"}


def test_every_output_of_the_corpus_is_a_failure_with_a_title(corpus):
    for told in corpus:
        assert told.signature is not None, told.name
        assert told.signature.title
        assert len(told.signature.title) <= 160


def test_what_fails_with_exit_0_shows_a_marker_in_its_output(corpus):
    logged = [told for told in corpus if told.head["exit_code"] == 0]
    assert logged
    for told in logged:
        assert looks_failing(told.text.encode()), told.name


def test_the_hook_and_the_text_give_the_same_identity(corpus):
    hooked = [told for told in corpus if told.head.get("reports")]
    assert len(hooked) > 30
    for told in hooked:
        from_text = identify(
            text=told.text, exit_code=told.head["exit_code"], signal=told.head["signal"]
        )
        assert from_text is not None
        assert from_text.key == told.signature.key, told.name
