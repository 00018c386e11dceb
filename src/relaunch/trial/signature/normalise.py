"""Wash a message of everything that changes from run to run and says nothing about the failure.

Washing is idempotent: each placeholder (`<n>`, `<path>`, ...) is left alone by every rule.
"""

from __future__ import annotations

import re

_ANSI = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles and links
    r"|\x1b[\[(][0-?]*[ -/]*[@-~]"
    r"|\x1b[@-Z\\^_=>]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

_ROUNDS = 6
_LONGEST = 2_000
_HEX = "0-9a-fA-F"
_MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_TURN = (
    "rank|worker|thread|process|pid|tid|port|node|gpu|host|step|epoch|iter|iteration|attempt|job"
)

# In order: a rule may rely on what the earlier ones have taken away.
_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), put)
    for pattern, put in (
        (rf"\b[{_HEX}]{{8}}-[{_HEX}]{{4}}-[{_HEX}]{{4}}-[{_HEX}]{{4}}-[{_HEX}]{{12}}\b", "<uuid>"),
        (r"\b(?:https?|tcp|ftp|file|s3|gs|ssh|git)://[^\s'\"<>)\]]+", "<url>"),
        # 2026-11-15T13:00:00.123Z, 2026/11/15 13:00, 2026-11-15_13:00:00, 15 Nov 2026
        (
            r"\b\d{4}[-/]\d\d[-/]\d\d"
            r"(?:[ T_]\d\d?:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?",
            "<time>",
        ),
        (
            rf"\b(?:{_MONTH}) +\d{{1,2}}(?:,? \d{{4}})? \d\d:\d\d:\d\d(?:\.\d+)?(?: \d{{4}})?",
            "<time>",
        ),
        (r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b", "<time>"),
        # The directory goes, the file's own name stays: `config.yaml` missing is not `vocab.json`.
        (
            r"(?<![\w.<>/~\\-])(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.+@%=~-]*[\w+@%=~-])*[/\\]"
            r"([\w.+@%=~-]*[\w+@%=~-])[/\\]?(?=$|[^\w/\\])",
            r"<path>/\1",
        ),
        (r"(?<![\w.<>/~-])(?:[\w.+@%=~-]+/)+([\w+@%=~-]+\.[A-Za-z]\w{0,5})\b", r"<path>/\1"),
        # A word of its own: one in the middle of another would uncover the next, round for round.
        (r"(?<![\w-])tmp[\w-]{6,12}(?![\w-])", "<temp>"),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b", "<host>"),
        (r"\blocalhost:\d+", "<host>"),
        (r"\b0[xX][0-9a-fA-F]+\b", "<address>"),
        # A hash mixes letters and digits; a word such as `defaced` or a number alone is no hash.
        (r"\b(?=[a-f0-9]*[a-f])(?=[a-f0-9]*\d)[a-f0-9]{7,64}\b", "<hash>"),
        (r"\bcuda:\d+", "cuda:<n>"),
        (
            r"(?<![\w.<])[-+]?\d[\d_,]*(?:\.\d+)?(?:[eE][-+]?\d+)?"
            r"\s?(?:[KMGTP]i?B?|[kKMGT]?[bB]ytes|bytes?|B)\b",
            "<size>",
        ),
        (
            r"(?<![\w.<])[-+]?\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?"
            r"\s?(?:ns|us|µs|ms|s|secs?|seconds?|min|minutes?|h|hours?|days?)\b",
            "<duration>",
        ),
        (r"(?<![\w.<])[-+]?(?:\d[\d_,]*\d|\d)?\.\d+(?:[eE][-+]?\d+)?(?![\w.])", "<n>"),
        (r"(?<![\w.<])[-+]?\d+(?:_\d+)*(?:\.(?!\w))?(?:[eE][-+]?\d+)?(?!\w)", "<n>"),
        (r"\b\d+(?:x\d+)+\b", "<n>"),
        # Digits inside a name are part of it (`float16`), unless it names a place or a turn.
        (rf"(?i)\b((?:{_TURN})[_#-]?)\d+(?![A-Za-z])", r"\1<n>"),
        (r"<n>(?:(?:\.|, ?|:| x |x)<n>)+", "<n>"),
        (r"[ \t]+", " "),
    )
)


def plain(text: str) -> str:
    """Return the text as a terminal would leave it to the eye: no colours, no rewritten lines."""
    text = _ANSI.sub("", text) if "\x1b" in text else text
    text = text.replace("\r\n", "\n")
    if "\r" in text:  # a progress bar rewrote its line: the last state is what was seen
        text = "\n".join(line.rsplit("\r", 1)[-1] for line in text.split("\n"))
    return _CONTROL.sub("", text)


def wash(text: str) -> str:
    """Return one line or message without addresses, numbers, paths, times, ids and colours."""
    text = plain(text)
    for _ in range(_ROUNDS):  # one rule may uncover work for an earlier one
        before = text = text[:_LONGEST]
        for pattern, put in _RULES:
            text = pattern.sub(put, text)
        if text == before:
            break
    return text.strip()
