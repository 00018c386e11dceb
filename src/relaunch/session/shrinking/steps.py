"""The number of steps as a part: found among the words or variables, and made less by halving."""

from __future__ import annotations

import os
import re
from hashlib import blake2b

from relaunch.errors import UsageError
from relaunch.record import Record
from relaunch.search.shrink.model import Smaller

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from collections.abc import Sequence

    from relaunch.recipe import Recipe
    from relaunch.search.shrink.model import Pass

_NAME = re.compile(
    r"(?i)^-*(?:[a-z]+[-_.])*(?:steps?|epochs?|iters?|iterations?|batches|n_iter)(?:[-_][a-z]+)*$"
)
_HINT = "rl shrink --steps -- python train.py --max-steps 5000"


class Where(Record):
    """Where the number stands."""

    word: int = -1
    """Which word; -1: it is a variable."""
    before: str = ""
    """What stands before it in the word, `--steps=`, or the name of the variable."""

    def put(self, recipe: Recipe, value: int) -> Recipe:
        """Return what to run with another number."""
        if self.word < 0:
            return recipe.but(env={**recipe.env, self.before: str(value)})
        argv = recipe.argv
        word = f"{self.before}{value}"
        return recipe.but(argv=(*argv[: self.word], word, *argv[self.word + 1 :]))


def find(recipe: Recipe) -> tuple[Where, int]:
    """Return where the number is, and what it is; UsageError if there is none, or several."""
    found = [*_in_words(recipe.argv), *_in_variables(recipe)]
    if not found:
        raise UsageError("--steps: the command names no number of steps", hint=_HINT)
    if len(found) > 1:
        names = ", ".join(_name(recipe, where) for where, _ in found)
        raise UsageError(f"--steps: there are several: {names}", hint=_HINT)
    return found[0]


def _in_words(argv: Sequence[str]) -> list[tuple[Where, int]]:
    found = []
    for number, word in enumerate(argv[1:], 1):
        name, equals, value = word.partition("=")
        if equals and value.isdecimal() and _NAME.match(name):
            found.append((Where(word=number, before=f"{name}="), int(value)))
        elif (
            word.isdecimal() and argv[number - 1].startswith("-") and _NAME.match(argv[number - 1])
        ):
            found.append((Where(word=number), int(word)))
    return found


def _in_variables(recipe: Recipe) -> list[tuple[Where, int]]:
    env = {**os.environ, **recipe.env}
    return [
        (Where(before=name), int(value))
        for name, value in env.items()
        if value.isdecimal() and value.isascii() and _NAME.match(name)
    ]


def _name(recipe: Recipe, where: Where) -> str:
    if where.word < 0:
        return where.before
    return where.before.rstrip("=") or recipe.argv[where.word - 1]


class Steps:
    """A number that can be less."""

    def __init__(self, value: int) -> None:
        """Begin with what is known to fail."""
        self.value = value

    @property
    def measure(self) -> tuple[int, ...]:
        """The number itself."""
        return (self.value,)

    @property
    def bytes(self) -> int:
        """How large it is: the number, as nothing of it is written."""
        return self.value

    @property
    def key(self) -> builtins.bytes:
        """A digest of it."""
        return blake2b(b"%d" % self.value, digest_size=16).digest()

    def write(self, path: str) -> None:
        """Write it down."""
        with open(path, "x", encoding="ascii") as file:
            file.write(str(self.value))

    def passes(self) -> Sequence[Pass]:
        """Return the only one."""
        return [_Halving()]


class _Halving:
    """One first; then what lies between one that fails and one that does not, halved."""

    name = "steps"

    def begin(self, model: Steps) -> tuple[int, int] | None:
        """Return the number to try, and the greatest that is known not to fail."""
        return (1, 0) if model.value > 1 else None

    def attempt(self, model: Steps, cursor: tuple[int, int]) -> Smaller | None:
        """Return the number in between."""
        if cursor[0] >= model.value:
            return None
        return Smaller(model=Steps(cursor[0]), what=f"{cursor[0]:,} of {model.value:,}")

    def failed(self, model: Steps, cursor: tuple[int, int]) -> tuple[int, int] | None:
        """Look above it."""
        return self._between(cursor[0], model.value)

    def passed(self, model: Steps, cursor: tuple[int, int]) -> tuple[int, int] | None:
        """Look below it."""
        return self._between(cursor[1], model.value)

    @staticmethod
    def _between(low: int, high: int) -> tuple[int, int] | None:
        if high - low <= 1:
            return None
        # Far apart, the middle is that of their powers: most failures come early.
        middle = int((max(low, 1) * high) ** 0.5) if high > 4 * max(low, 1) else (low + high) // 2
        return max(low + 1, min(middle, high - 1)), low
