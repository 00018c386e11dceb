"""How to check what was found: the same search among two candidates alone, and git's own."""

from __future__ import annotations

from relaunch.cli import draw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.session.bisect.told import Request
    from relaunch.session.project import Project


def check_line(project: Project, request: Request, *between: str) -> str:
    """Return how to search `between` two candidates, in the same way."""
    from relaunch.session.bisect.told import RATES

    recipe = request.recipe
    words = [word for file in request.files for word in ("--with", file)]
    words += ["--build", request.build] if request.build else []
    words += _time("--build-timeout", request.build_timeout_s)
    words += ["--match", recipe.match] if recipe.match else []
    words += _time("--timeout", recipe.limits.timeout_s)
    words += ["--ends", str(request.ends)] if request.ends > 1 else []
    words += [
        f"--{name.replace('_', '-')}" for name in ("rebuild", *RATES) if getattr(request, name)
    ]
    words += [] if request.repair else ["--no-repair"]
    given = "".join(f"--env {one} " for one in _env_words(project, request))
    command = draw.quoted([*words, "--", *recipe.argv])
    return f"rl bisect {draw.quoted(between)} {given}{command}"


def git_line(project: Project, request: Request, before: str, commit: str) -> str:
    """Return how git would do it, if it can: it adds no files, reads no output, ends no hang."""
    if request.files or request.recipe.match or request.recipe.limits.timeout_s is not None:
        return ""
    env = _env_words(project, request)
    given = f"env {' '.join(env)} " if env else ""
    command = draw.quoted([*request.recipe.argv])
    if request.build:
        command = draw.quoted(["sh", "-c", f"{request.build} || exit 125; {command}"])
    return f"git bisect start {commit} {before} && git bisect run {given}{command}"


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
