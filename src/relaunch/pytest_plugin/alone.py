"""The command that runs one test alone, as it was run among the others."""

from __future__ import annotations

import os
import shutil
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

_WITH_A_WORD = frozenset(
    ("-k", "-m", "-n", "--numprocesses", "--maxfail", "--dist", "--tx", "--deselect", "--ignore",
     "--ignore-glob", "--durations", "--junitxml", "--junit-xml", "--relaunch-peek", "--lfnf",
     "--last-failed-no-failures", "--maxprocesses", "--pastebin")
)  # fmt: skip
_WITHOUT = frozenset(
    ("-x", "--exitfirst", "--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first",
     "--sw", "--stepwise", "--sw-skip", "--stepwise-skip", "--pdb", "--co", "--collect-only",
     "--cache-clear", "-f", "--looponfail")
)  # fmt: skip
"""Options that choose among tests, or say how many at once: of one alone they mean nothing."""


def command(config: pytest.Config, test: str) -> list[str]:
    """Return the command for the test with this id."""
    typed = _typed(config)
    names = {str(name) for name in config.getoption("file_or_dir") or ()}
    return [*_program(typed), *_options(typed[1:], names), _from_here(config, test)]


def _typed(config: pytest.Config) -> list[str]:
    """Return the words that pytest was started with, the program first; also in a worker."""
    given = getattr(config, "workerinput", {}).get("mainargv")
    if given:
        return [str(word) for word in given]
    args = [str(word) for word in config.invocation_params.args]
    return [sys.argv[0] if sys.argv else "", *args]


def _program(typed: Sequence[str]) -> list[str]:
    program = typed[0]
    if os.path.basename(program) in ("pytest", "py.test"):
        name = os.path.basename(program)
        return [name if shutil.which(name) == program else program]
    python = sys.executable
    return ["python" if shutil.which("python") == python else python, "-m", "pytest"]


def _options(words: Sequence[str], names: set[str]) -> list[str]:
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        name = word.partition("=")[0]
        if word in _WITH_A_WORD:
            next(rest, None)
        elif name in _WITH_A_WORD or word in _WITHOUT or word in names:
            continue
        elif word[:2] in ("-n", "-k", "-m"):
            continue  # as `-n4`
        elif word != "--":
            found.append(word)
    return found


def _from_here(config: pytest.Config, test: str) -> str:
    """Return the id as seen from where pytest was started; ids begin at its root."""
    file, colons, inner = test.partition("::")
    path = os.path.join(str(config.rootpath), file)
    return os.path.relpath(path, str(config.invocation_params.dir)) + colons + inner
