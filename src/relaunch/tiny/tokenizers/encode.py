"""Which tokens a word becomes: pairs merged by rank, the longest piece first, or the best path."""

from __future__ import annotations

from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    Pair = tuple[str, str]


def merged(
    letters: list[str], ranks: Mapping[Pair, int], prefix: str = ""
) -> tuple[list[str], list[Pair]]:
    """Merge pairs, the lowest rank first; return the tokens and the merges that were made."""
    used: list[Pair] = []
    while len(letters) > 1:
        pairs = [pair for pair in pairwise(letters) if pair in ranks]
        if not pairs:
            break
        best = min(pairs, key=ranks.__getitem__)
        used.append(best)
        letters = _together(letters, best, prefix)
    return letters, used


def _together(letters: list[str], pair: Pair, prefix: str) -> list[str]:
    made, at = [], 0
    while at < len(letters):
        if at + 1 < len(letters) and (letters[at], letters[at + 1]) == pair:
            made.append(joined(pair, prefix))
            at += 2
        else:
            made.append(letters[at])
            at += 1
    return made


def joined(pair: Pair, prefix: str) -> str:
    """Return the token that a pair becomes."""
    left, right = pair
    return left + (right.removeprefix(prefix) if prefix else right)


def longest(word: str, vocab: Container[str], prefix: str) -> list[str]:
    """Cut a word into the longest pieces from the left; nothing when a part has none."""
    found, at = [], 0
    while at < len(word):
        lead = prefix if at else ""
        for end in range(len(word), at, -1):
            if lead + word[at:end] in vocab:
                found.append(lead + word[at:end])
                at = end
                break
        else:
            return []
    return found


def best_path(word: str, scores: Mapping[str, float], longest_piece: int) -> list[str]:
    """Return the pieces of a word with the greatest sum of scores; letters unknown are left out."""
    worst = min(scores.values(), default=0.0) - 10.0
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(word) + 1):
        ways = [(best[end - 1][0] + worst, end - 1)]
        for start in range(max(0, end - longest_piece), end):
            score = scores.get(word[start:end])
            if score is not None:
                ways.append((best[start][0] + score, start))
        best.append(max(ways, key=lambda way: way[0]))
    found, end = [], len(word)
    while end:
        start = best[end][1]
        if word[start:end] in scores:
            found.append(word[start:end])
        end = start
    return found[::-1]
