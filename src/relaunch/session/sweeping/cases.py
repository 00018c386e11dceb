"""Which combinations a sweep runs, and what each of them makes of the command."""

from __future__ import annotations

import re
from math import prod

from relaunch.errors import UsageError
from relaunch.search.combine import combinations, order_for_learning, pairwise
from relaunch.session import facts
from relaunch.session.masks import REDACTED, hidden_words
from relaunch.session.sweeping.told import SEED_VARIABLES, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from relaunch.recipe import Recipe
    from relaunch.session.sweeping.told import Factor, Request, Settings

MOST = 10_000
"""More combinations are only run if somebody says how many."""
NAME = r"[A-Za-z_][\w.-]*"
_PLACE = re.compile(r"\{\{(" + NAME + r")\}\}|(?<!\$)\{(" + NAME + r")\}")
"""`{{lr}}` stands for `{lr}` itself; `${lr}` is a matter of the shell."""


def cases_of(request: Request) -> list[dict[str, str]]:
    """Return the combinations to run, the telling ones first; UsageError if they are too many."""
    factors = {one.name: one.values for one in request.factors}
    total = _count(request)
    if total > MOST and (request.limit is None or request.pairwise):
        limit = f"--limit {MOST}"
        raise UsageError(
            f"these are {total:,} combinations, more than {MOST:,}",
            hint=f"{limit} without --pairwise" if request.pairwise else f"--pairwise, or {limit}",
        )
    if request.pairwise:
        found = order_for_learning(pairwise(factors))[: request.limit]
    else:
        found = order_for_learning(_combined(request))
    return [*{key_of(case): case for case in found}.values()]


def _count(request: Request) -> int:
    """Count the combinations; where pairs are enough, at least so many are needed."""
    sizes = {one.name: len(one.values) for one in request.factors}
    if request.pairwise:
        return prod(sorted(sizes.values())[-2:])
    followers = [name for group in request.paired for name in group[1:]]
    return prod(size for name, size in sizes.items() if name not in followers)


def _combined(request: Request) -> list[dict[str, str]]:
    factors = {one.name: one.values for one in request.factors}
    try:
        return combinations(factors, paired=request.paired, limit=request.limit)
    except ValueError as error:
        raise UsageError(str(error), hint="rl sweep --help") from None


def key_of(settings: Settings) -> frozenset[tuple[str, str]]:
    """Return what makes two combinations the same."""
    return frozenset(settings.items())


# --- what is wrong with the words


def check(argv: Sequence[str], factors: Sequence[Factor]) -> None:
    """Refuse a `{name}` that nothing fills, and an argument that goes nowhere."""
    used = [*dict.fromkeys(name for word in argv for name in names_in(word))]
    known = {one.name for one in factors}
    for name in used:
        if name not in known:
            raise UsageError(
                f"the command has {{{name}}}, and nothing says what it is",
                hint=f"--arg {name}=A,B, or {{{{{name}}}}} for the word itself",
            )
    for one in factors:
        if one.kind is Kind.ARG and one.name not in used:
            raise UsageError(
                f"--arg {one.name}: the command has no {{{one.name}}}",
                hint=f"-- ... --{one.name} {{{one.name}}}",
            )


def names_in(word: str) -> list[str]:
    """Return the factors that a word of the command names."""
    return [found[2] for found in _PLACE.finditer(word) if found[2]]


# --- what a combination makes of the command


def recipe_for(base: Recipe, factors: Iterable[Factor], settings: Settings) -> Recipe:
    """Return what to run for one combination."""
    env = {**base.env}
    config_set = base.config_set
    for one in factors:
        value = settings[one.name]
        if one.kind is Kind.SET:
            config_set = value
        elif one.kind is Kind.SEED:
            env |= dict.fromkeys(SEED_VARIABLES, value)
        elif one.kind is Kind.ENV:
            env[one.name] = value
    return base.but(argv=filled(base.argv, settings), env=env, config_set=config_set)


def secrets_among(
    factors: Iterable[Factor], argv: Sequence[str], redact: Sequence[str]
) -> dict[str, str]:
    """Return the values that are secrets, by their variable or their place in the command.

    Each goes with what is kept in its place, which tells it from the others.
    """
    found = {}
    for one in factors:
        for number, value in enumerate(one.values, 1):
            if one.kind is Kind.ENV:
                is_secret = bool(facts.secret_names({one.name: value}, redact))
            else:
                words = [_PLACE.sub(_only(one.name, value), word) for word in argv]
                is_secret = one.kind is Kind.ARG and value in hidden_words(words)
            if is_secret:
                found[value] = f"{REDACTED} {number}"
    return found


def _only(name: str, value: str) -> Callable[[re.Match[str]], str]:
    return lambda found: value if found[2] == name else found[0]


def filled(argv: Sequence[str], settings: Settings) -> tuple[str, ...]:
    """Put the values in; a word that is nothing but an empty value is left out."""
    words = [(word, _fill(word, settings)) for word in argv]
    return tuple(new for word, new in words if new or not names_in(word))


def _fill(word: str, settings: Settings) -> str:
    return _PLACE.sub(lambda found: f"{{{found[1]}}}" if found[1] else settings[found[2]], word)
