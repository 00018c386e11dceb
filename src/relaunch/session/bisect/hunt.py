"""What is hunted: learnt from both ends, and told of each run between them."""

from __future__ import annotations

from relaunch.errors import RelaunchError
from relaunch.record import Record
from relaunch.search.line import Side
from relaunch.trial.signature.match import Verdict, akin, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.outcome import Outcome, Signature


class NotReproduced(RelaunchError):
    """The two ends do not differ in the way that could be searched."""


class Hunt(Record):
    """The failure at one end, and at which: it passes at the other."""

    failure: Signature
    is_reversed: bool = False
    """It fails at the old end: what is looked for is the change that mended it."""
    is_onset: bool = False
    """What is looked for is since when it fails so, whatever it did before."""

    is_strict: bool = False
    """Of what is mended: only what fails as hunted was not mended yet; the rest tells nothing."""

    def side_of(self, outcome: Outcome) -> Side:
        """Say on which side of the change a run was; a different failure is on neither.

        Where a mended failure is looked for, all that fails was not mended yet: an old program
        fails in many ways, and the one at the old end need not be the last of them.
        """
        seen = verdict(outcome, self.failure)
        if seen is Verdict.UNTESTABLE:
            return Side.OTHER
        if seen is Verdict.PASSED:
            return Side.NEW if self.is_reversed else Side.OLD
        if self.is_reversed:
            return Side.OTHER if self.is_strict and not self.is_it(outcome) else Side.OLD
        if self.is_it(outcome):
            return Side.NEW
        return Side.OLD if self.is_onset else Side.OTHER

    def is_it(self, outcome: Outcome) -> bool:
        """Tell whether a run failed as it is hunted."""
        return verdict(outcome, self.failure) is Verdict.SAME or (
            outcome.signature is not None and akin(outcome.signature, self.failure)
        )


def hunt_of(old: Outcome, new: Outcome, names: tuple[str, str], hint: str = "") -> Hunt:
    """Learn from both ends what is hunted, and in which direction."""
    if old.passed and new.signature is not None and not new.not_started:
        return Hunt(failure=new.signature)
    if new.passed and old.signature is not None and not old.not_started:
        return Hunt(failure=old.signature, is_reversed=True)
    raise NotReproduced(_refusal(old, new, names), hint=_hint(old, new, names, hint))


def _refusal(old: Outcome, new: Outcome, names: tuple[str, str]) -> str:
    seen = [told(old), told(new)]
    if old.passed and new.passed:
        return f"it passes at both ends ({names[0]} and {names[1]}): there is nothing to find"
    if seen[0] == seen[1]:
        return f"both ends fail alike: {seen[0]}"
    return f"both ends fail: {names[0]}: {seen[0]}; {names[1]}: {seen[1]}"


def _hint(old: Outcome, new: Outcome, names: tuple[str, str], hint: str) -> str:
    if old.exit_code == 127 or new.exit_code == 127:
        return "name the program by its whole path, or activate its environment"
    if all("can't open file" in told(one) for one in (old, new)):
        return "name a file that your tree has: what an old revision lacks is put there"
    if hint:
        return hint
    if old.passed and new.passed:
        return "rl bisect --bad REVISION, or repeat it: --ends 5"
    return f"rl bisect --good OLDER --bad {names[1]}"


def told(outcome: Outcome) -> str:
    """Say in a few words what a run showed."""
    if outcome.passed:
        return "passes"
    if outcome.not_started:
        return outcome.not_started
    if "match" in outcome.unknown:
        return outcome.unknown["match"]
    if outcome.signature is not None:
        return outcome.signature.title
    if outcome.signal is not None:
        return f"signal {outcome.signal}"
    return f"exit {outcome.exit_code}"
