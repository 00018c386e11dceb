"""Both ends of a search: run until it is known what one of them shows and the other does not."""

from __future__ import annotations

from relaunch.session.bisect.hunt import NotReproduced, hunt_of
from relaunch.session.bisect.told import RATES, Learnt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.outcome import Outcome
    from relaunch.session.bisect.driver import Driver
    from relaunch.session.bisect.hunt import Hunt

_MOST_RUNS = 30
"""So often an end is run that is known to fail only at times."""
_HALF = 0.5
"""An old end that fails more often, of which nothing is said, is none that passes."""


class Ends:
    """An old end and a new one, run by a driver."""

    def __init__(self, driver: Driver, old: str, new: str, names: tuple[str, str]) -> None:
        """Begin with what the driver has seen of them."""
        self._driver, self._seen, self._request = driver, driver.seen, driver.request
        self._old, self._new, self._names = old, new, names

    def learnt(self, hint: str) -> Hunt:
        """Run both, and learn what is hunted; NotReproduced, with `hint`, where they are alike."""
        wanted = max(1, self._request.ends)
        both = self._old, self._new
        due = [end for end in both for _ in range(wanted - len(self._seen.get(end, ())))]
        self._driver.run_all(due)
        while True:
            try:
                return self._told(hint)
            except NotReproduced:
                if self._run_untraced() or self._run_harder():
                    continue
                due = self._to_repeat()
                if not due:
                    raise
                self._driver.run_all(due)

    def _told(self, hint: str) -> Hunt:
        old, new = self._typical()
        hunt = hunt_of(old, new, self._names, hint)
        self._check(hunt, self._new if hunt.is_reversed else self._old)
        self._driver.tell(Learnt(hunt=hunt, old=old, new=new))
        return hunt

    def _run_untraced(self) -> bool:
        """Run those ends once more that were only looked on; says whether there are any.

        It might have been the looking that made them alike.
        """
        self._driver.traced = frozenset()
        due = [end for end in (self._old, self._new) if not self._seen.is_plain(end)]
        self._driver.run_instead(due)
        return bool(due)

    def _run_harder(self) -> bool:
        """Run those ends once more that another environment may help; says if there are any."""
        due = [end for end in (self._old, self._new) if end in self._driver.outgrown]
        if not due:
            return False
        self._driver.outgrown.clear()
        self._driver.last_resort()
        self._driver.run_instead(due)
        return True

    def _check(self, hunt: Hunt, passing: str) -> None:
        """Refuse to hunt what the end that passes showed too, before another Python helped it."""
        if passing in self._at_times:
            return
        if any(map(hunt.is_it, self._seen.replaced.get(passing, ()))):
            raise NotReproduced(
                f"both ends fail alike: {hunt.failure.title}",
                hint=f"rl bisect --good OLDER --bad {self._names[1]}",
            )

    # --- ends that do not always do the same

    @property
    def _at_times(self) -> dict[str, bool]:
        """Name the end that may waver, and whether failing is what it has to be seen doing.

        What is said of one side leaves open what the other one does: that is at the other end.
        """
        asked = self._request
        is_old_known = asked.never_fails_before or asked.always_fails_before
        is_new_known = asked.always_fails_after or asked.never_fails_after
        if is_old_known == is_new_known:
            return {}
        if is_old_known:
            return {self._new: asked.never_fails_before}
        return {self._old: asked.never_fails_after}

    def _to_repeat(self) -> list[str]:
        """Return the ends of which one more run may show that they differ after all."""
        if any(getattr(self._request, name) for name in RATES):
            wavering = [
                end
                for end, is_failing in self._at_times.items()
                if all(one.passed is is_failing for one in self._outcomes(end))
            ]
        else:
            wavering = [self._old, self._new] if self._request.ends > 1 else []
        return [end for end in wavering if len(self._seen[end]) < _MOST_RUNS]

    def _typical(self) -> tuple[Outcome, Outcome]:
        """Return the outcomes that the ends stand for: a failure of the one, a pass of the other.

        Where nothing is said, the end that failed more often stands for failing.
        """
        asked, at_times = self._request, self._at_times
        old, new = self._outcomes(self._old), self._outcomes(self._new)
        is_mended = asked.always_fails_before or asked.never_fails_after
        if not any(getattr(asked, name) for name in RATES):
            is_mended = _share_failed(old) > _share_failed(new)
        if is_mended:
            return _one(old, passed=False), _one(new, passed=True)
        is_open = at_times.get(self._old) is False or _share_failed(old) <= _HALF
        return _one(old, passed=is_open), _one(new, passed=False)

    def _outcomes(self, end: str) -> list[Outcome]:
        return [one.outcome for one in self._seen[end]]


def _share_failed(outcomes: Sequence[Outcome]) -> float:
    return sum(not one.passed for one in outcomes) / len(outcomes)


def _one(outcomes: Sequence[Outcome], *, passed: bool) -> Outcome:
    """Return the first that passed, or failed; if none did, the first."""
    return next((one for one in outcomes if one.passed is passed), outcomes[0])
