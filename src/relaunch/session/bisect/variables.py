"""What differs between two files of variables, as `env` writes them."""

from __future__ import annotations

import os

from relaunch.errors import UsageError
from relaunch.session import facts
from relaunch.session.bisect.changes import Differences, Setting
from relaunch.session.masks import REDACTED
from relaunch.textfile import read_text
from relaunch.trial.place.frozen_packages import changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.session.bisect.told import Request
    from relaunch.session.project import Project
    from relaunch.trial.place.frozen_packages import Change


def read_env(path: str) -> dict[str, str]:
    """Read `NAME=VALUE` lines, as of `env > good.env`."""
    try:
        lines = read_text(path).splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint=f"env > {path}") from None
    found = {}
    for line in lines:
        name, equals, value = line.removeprefix("export ").partition("=")
        if equals and name.strip() and not line.lstrip().startswith("#"):
            found[name.strip()] = value.strip().strip("\"'")
    return found


def variables(project: Project, request: Request, good: str, bad: str) -> Differences:
    """Return what differs between two files of variables, named from the command's folder."""
    old, new = (read_env(os.path.join(request.recipe.cwd, path)) for path in (good, bad))
    found = changed(old, new)
    if not found:
        raise UsageError(f"{good} and {bad} set the same", hint=f"env > {bad}")

    def apply(numbers: frozenset[int]) -> Setting:
        taken = [one for number, one in enumerate(found) if number in numbers]
        env = {**old, **{one.name: one.new for one in taken if one.name in new}}
        gone = {one.name for one in taken if one.name not in new}
        gone |= {
            one.name
            for number, one in enumerate(found)
            if number not in numbers and one.name not in old
        }
        return Setting(env={n: v for n, v in env.items() if n not in gone}, without=gone)

    def shown(change: Change) -> Change:
        values = {"old": change.old, "new": change.new}
        redact = project.settings.record.redact
        names = [n for n in values if facts.secret_names({change.name: values[n]}, redact)]
        return change.but(**dict.fromkeys(names, REDACTED)) if names else change

    return Differences(
        changes=tuple(found),
        apply=apply,
        names=(good, bad),
        source=("env", good, bad),
        shown=shown,
        hint=f"env > {good}  # where it passes, and env > {bad} where it fails",
    )
