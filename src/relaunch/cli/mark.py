"""`rl mark N good "why"`: the person's verdict on a trial; a marked trial is never cleaned away."""

from __future__ import annotations

import os
import time

from relaunch.cli import draw, opened
from relaunch.errors import JournalError, UsageError
from relaunch.journal.refs import VERDICTS, check_name, resolve
from relaunch.session import look_back
from relaunch.session.facts import known_secrets
from relaunch.session.masks import REDACTED, mask_text
from relaunch.settings import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence
    from typing import Any

    from relaunch.journal.home import Home
    from relaunch.journal.store import Journal

EXAMPLES = """\
Examples
  rl mark good "lr 1e-3 trains"    the newest
  rl mark 3 bad
  rl mark 3 --name baseline        then: rl diff baseline -1
  rl mark 3 --clear
"""


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.usage = "rl mark [N] good|bad|unsure [TEXT] [--name NAME] [--clear] [--json]"
    add = parser.add_argument
    add("words", nargs="*", help="which trial (the newest), your verdict, and why")
    add("--name", help="call it by this name from now on; an empty one takes the name away")
    add("--clear", action="store_true", help="take verdict, text and name away")
    add("--json", action="store_true", help="as JSON: schema relaunch/mark/1")


def main(args: Namespace) -> int:
    """Write, change or clear the mark of one trial."""
    home, journal = opened.here()
    ref, verdict, text = read_words(args.words)
    if not (verdict or args.clear or args.name is not None):
        raise UsageError(
            "which verdict? good, bad or unsure", hint=f"rl mark {draw.quote(ref)} good"
        )
    if args.clear and (verdict or args.name):
        raise UsageError("--clear takes everything away: no verdict with it")
    trial = look_back.trial_of(journal, ref)
    if args.clear:
        trial = look_back.clear_mark(trial)
    else:
        text = _without_secrets(text, home)
        mark = changed_mark(trial.mark, verdict, text, args.name, now=time.time())
        if args.name:
            _must_be_free(journal, check_name(args.name), trial.id)
        if mark != trial.mark:
            trial = look_back.set_mark(journal, trial, mark)
    if args.json:
        draw.say_json("mark", {"id": trial.id, "mark": trial.mark})
    else:
        draw.remark(f"rl: #{trial.id} {_said(trial.mark)}")
    return 0


def read_words(words: Sequence[str]) -> tuple[str, str, str]:
    """Tell trial, verdict and text apart; the trial may be left out."""
    if words and words[0] in VERDICTS:
        words = ["-1", *words]
    ref, verdict, *text = [*words, "", ""] if len(words) < 2 else words
    if verdict and verdict not in VERDICTS:
        from difflib import get_close_matches

        near = get_close_matches(verdict.lower(), VERDICTS, n=1) or ["good"]
        raise UsageError(
            f"no verdict `{verdict}`: good, bad or unsure", hint=f"rl mark {ref} {near[0]}"
        )
    return ref or "-1", verdict, " ".join(text).strip()


def _without_secrets(text: str, home: Home) -> str:
    """Take the values of variables that are secrets out, and what looks like one."""
    redact = load(home.project, cache_dir=home.journal).record.redact
    return mask_text(text, dict.fromkeys(known_secrets(os.environ, redact), REDACTED))


def changed_mark(
    old: dict[str, Any], verdict: str, text: str, name: str | None, *, now: float
) -> dict[str, Any]:
    """Lay the new words over the old mark; saying the same again changes nothing."""
    new = {key: old.get(key, "") for key in ("verdict", "text", "name")}
    if verdict:
        kept = new["text"] if verdict == new["verdict"] else ""
        new.update(verdict=verdict, text=text or kept)
    if name is not None:
        new["name"] = name
    same = all(old.get(key, "") == value for key, value in new.items())
    return old if same and old else {**new, "when": now}


def _must_be_free(journal: Journal, name: str, trial_id: str) -> None:
    try:
        holder = resolve(journal, name)
    except JournalError:
        return
    if holder != trial_id:
        raise UsageError(f"#{holder} is called `{name}`", hint=f"rl mark {holder} --name ''")


def _said(mark: dict[str, Any]) -> str:
    name = f"[{mark['name']}]" if mark.get("name") else ""
    parts = [str(mark.get("verdict") or ""), name, str(mark.get("text") or "")]
    return "  ".join(part for part in parts if part) or "has no mark"
