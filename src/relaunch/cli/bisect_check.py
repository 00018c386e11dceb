"""How to check what was found: the same search among two candidates alone, and git's own."""

from __future__ import annotations

import os

from relaunch.cli import draw
from relaunch.history.revision import SHORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.session.bisect.bisection import Bisection
    from relaunch.session.bisect.told import Found, Request
    from relaunch.session.project import Project

_SKIPPED = 125
"""What tells git to skip a commit; above are those that end its search."""


def check_line(project: Project, request: Request, *between: str) -> str:
    """Return how to search `between` two candidates, in the same way."""
    from relaunch.session.bisect.told import RATES

    recipe = request.recipe
    words = [word for file in request.files for word in ("--with", file)]
    words += ["--build", request.build] if request.build else []
    words += _time("--build-timeout", request.build_timeout_s)
    words += ["--match", recipe.match] if recipe.match else []
    words += _time("--timeout", recipe.limits.timeout_s)
    words += _time("--hang", recipe.limits.hang_s)
    words += ["--ends", str(request.ends)] if request.ends > 1 else []
    words += [
        f"--{name.replace('_', '-')}" for name in ("rebuild", *RATES) if getattr(request, name)
    ]
    words += [] if request.repair else ["--no-repair"]
    given = "".join(f"--env {one} " for one in _env_words(project, request))
    command = draw.quoted([*words, "--", *recipe.argv])
    return f"rl bisect {draw.quoted(between)} {given}{command}"


def git_line(bisection: Bisection, found: Found) -> str:
    """Return how git would do it, if it can: it adds no files, reads no output, ends no hang."""
    from relaunch.history.span import span_around

    request, repo = bisection.request, bisection.repo
    limits = request.recipe.limits
    is_ended = limits.timeout_s is not None or limits.hang_s is not None
    if request.files or request.recipe.match or is_ended:
        return ""
    span = span_around(repo, found.parent, found.suspects[0][0].id, bisection.new)
    if span is None:
        return ""
    terms = "--term-old=broken --term-new=mended " if found.hunt.is_reversed else ""
    ends = " ".join(one[:SHORT] for one in (span.new, *span.old))
    command = _for_git(bisection, found)
    line = f"git bisect start {terms}{ends} && git bisect run {command}; git bisect reset"
    top = os.path.relpath(repo.top, request.recipe.cwd)
    # Before git 2.40 it has to be started at the top.
    return line if top == os.curdir else f"(cd {draw.quote(top)} && {line})"


def _for_git(bisection: Bisection, found: Found) -> str:
    """Return the command as git wants it: 0 is old, 1 is new, and little else is understood."""
    request = bisection.request
    env = _env_words(bisection.project, request)
    given = f"env {' '.join(env)} " if env else ""
    command = inner = draw.quoted([*request.recipe.argv])
    if found.hunt.is_reversed:
        inner = f"! {command}"
    elif found.with_it is None or not 0 < (found.with_it.exit_code or 0) < _SKIPPED:
        inner = f"{command} || exit 1"
    folder = os.path.relpath(request.recipe.cwd, bisection.repo.top)
    if folder != os.curdir:
        inner = f"cd {draw.quote(folder)} || exit {_SKIPPED}; {inner}"
    if request.build:
        inner = f"{request.build} || exit {_SKIPPED}; {inner}"
    return given + (command if inner == command else draw.quoted(["sh", "-c", inner]))


def _time(option: str, seconds: float | None) -> list[str]:
    return [] if seconds is None else [option, f"{seconds:g}"]


def _env_words(project: Project, request: Request) -> list[str]:
    """Write the variables that were given, ready to paste; of a secret only its name."""
    from relaunch.session.facts import secret_names

    env = request.recipe.env
    secret = secret_names(env, project.settings.record.redact)
    return [
        f'{name}="${name}"' if name in secret else draw.quote(f"{name}={value}")
        for name, value in env.items()
    ]
