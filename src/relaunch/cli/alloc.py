"""`rl alloc`: one Slurm allocation, held for as many launches as it takes."""

from __future__ import annotations

import os
import time

from relaunch.cli import draw
from relaunch.cli.launch_options import Option, option_arguments, parse_with_words, wants_help
from relaunch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.session.alloc import Shown
    from relaunch.session.project import Project
    from relaunch.trial.launch.slurm.asked import Asked

EXAMPLES = """\
Examples
  rl alloc job.sbatch                its directives, as one allocation that is held
  rl alloc job.sbatch -- -t 30       the same, for half an hour
  rl alloc -- -N 2 -t 60             words of salloc instead of a file
  rl run --slurm -- python train.py  in it: all its nodes and tasks; again and again
  rl alloc                           what is held, and for how long
  rl alloc --release                 give it back
  rl alloc --while-here job.sbatch   given back when this shell ends
"""
ALLOC_OPTIONS = (
    Option(flags=("--release",), field="release", help="give the allocation back"),
    Option(
        flags=("--while-here",),
        field="while_here",
        help="give it back when this shell or script ends",
    ),
    Option(
        flags=("--dry-run",), field="dry_run", help="print the words of salloc, ask for nothing"
    ),
    Option(flags=("-q", "--quiet"), field="quiet", help="only what goes wrong"),
    Option(flags=("--json",), field="json", help="as JSON: schema relaunch/alloc/1"),
    Option(
        flags=("--color",),
        field="color",
        metavar="WHEN",
        choices=("auto", "always", "never"),
        help="(auto)",
    ),
)
NONE_HELD = 1


def arguments(parser: ArgumentParser) -> None:
    """Declare the options, for help, docs and completion."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="a batch script")
    option_arguments(parser, ALLOC_OPTIONS)
    parser.add_argument("command", nargs="*", metavar="-- WORDS", help="words of salloc")


def main(args: Namespace) -> int:
    """Reached only by `rl alloc --help`, which argparse answers itself."""
    raise UsageError("no file", hint="rl alloc --help")


def quick(words: list[str]) -> int | None:
    """Do it all without argparse, but for the help."""
    if wants_help(words):
        return None
    bare = words[-1:] == ["--"]
    values, files, given = parse_with_words(
        words[:-1] if bare else words, ALLOC_OPTIONS, "rl alloc"
    )
    from relaunch.cli.opened import open_project

    if len(files) > 1:
        hint = f"rl alloc {files[0]} -- {draw.command_line(files[1:])}"
        raise UsageError(f"one file at a time: `{files[1]}`", hint=hint)
    project = open_project()
    asks = bool(files) or given is not None
    if values.get("release"):
        if asks:
            raise UsageError("--release gives back, and asks for none", hint="rl alloc --release")
        return _release(project, values)
    if asks:
        return _ask_for_it(project, files, given or (), values)
    if values.get("while_here") or values.get("dry_run"):
        raise UsageError("an allocation of what?", hint="rl alloc --while-here job.sbatch")
    return _show(project, values)


# --- asking for one -------------------------------------------------------------------------------


def _ask_for_it(
    project: Project, files: Sequence[str], words: Sequence[str], values: Mapping[str, Any]
) -> int:
    from relaunch.session import alloc
    from relaunch.trial.launch.slurm.held import stale
    from relaunch.trial.launch.slurm.words import stale_words

    asked = _asked(files, words)
    if values.get("dry_run"):
        parts = (draw.command_line(part) for part in asked.components)
        draw.say("salloc " + " : ".join(parts) + "\n")
        _remark([*asked.remarks], values)
        return 0
    _remark([*stale_words(stale(os.environ)), *asked.remarks], values)
    began = time.monotonic()
    found = alloc.allocate(
        project,
        asked,
        while_pid=os.getppid() if values.get("while_here") else 0,
        tell=lambda text: _remark([text], values),
        keep_own=not files,
    )
    shown = alloc.show(found)
    took = time.monotonic() - began
    if values.get("json"):
        draw.say_json("alloc", as_json(shown))
    elif not values.get("quiet"):
        draw.say(f"granted in {draw.duration(took)}: {_line(shown)}\n")
        draw.say("  rl run --slurm -- CMD     rl alloc --release\n")
    return 0


def _asked(files: Sequence[str], words: Sequence[str]) -> Asked:
    from relaunch.trial.launch.slurm.asked import asked_by_file, asked_by_words

    if not files:
        return asked_by_words(words)
    path = os.path.abspath(files[0])
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read()
    except OSError as error:
        raise UsageError(
            f"{files[0]} cannot be read: {error.strerror}", hint="rl alloc job.sbatch"
        ) from None
    return asked_by_file(text, path, words=words, env=os.environ)


def _remark(texts: Sequence[str], values: Mapping[str, Any]) -> None:
    if not values.get("quiet"):
        for text in texts:
            draw.remark(f"rl: {text}")


# --- looking, and giving back ---------------------------------------------------------------------


def _show(project: Project, values: Mapping[str, Any]) -> int:
    from relaunch.session import alloc
    from relaunch.trial.launch.slurm.held import ASK_FOR_ONE, of_this_shell

    shown, over = alloc.look(project)
    own = of_this_shell(os.environ)
    if shown is None and own is not None:
        here = alloc.show(own)
        shown = None if here.state.is_over else here
    if values.get("json"):
        draw.say_json("alloc", as_json(shown) if shown else {"job": None, "over": over})
        return 0 if shown else NONE_HELD
    if shown is None:
        why = f" ({over})" if over else ""
        draw.remark(f"rl: no allocation is held{why}   try: {ASK_FOR_ONE}")
        return NONE_HELD
    draw.say("".join(f"{line}\n" for line in (_line(shown), *_more(shown))))
    return 0


def _line(shown: Shown) -> str:
    from relaunch.trial.launch.slurm.words import left_words

    state = shown.state
    if state.unknown:
        return f"allocation {shown.held.job}: {draw.clean(state.unknown)}"
    tasks = sum(part.tasks for part in shown.held.parts)
    left = left_words(state.ends) or ", no time limit"
    nodes = draw.plural(state.nodes, "node")
    where = f" ({draw.clean(state.node_list)})" if state.node_list else ""
    return (
        f"allocation {shown.held.job}: {state.word.lower()}, {nodes}{where},"
        f" {draw.plural(tasks, 'task')}, {draw.plural(state.cpus, 'CPU')}{left}"
    )


def _more(shown: Shown) -> list[str]:
    held = shown.held
    found = []
    if not held.folder:
        found.append("this shell is in it; nothing of rl holds it")
    if held.file:
        found.append(f"from {draw.clean(os.path.relpath(held.file))}")
    if held.while_pid:
        found.append(f"given back when process {held.while_pid} ends")
    if shown.steps:
        names = ", ".join(f"{step} {draw.clean(name)}" for step, name in shown.steps.items())
        found.append(f"running: {names}")
    return [f"  {line}" for line in found]


def _release(project: Project, values: Mapping[str, Any]) -> int:
    from relaunch.session import alloc

    over = alloc.last_words(project)
    found = alloc.release(project)
    if found is None:
        if values.get("json"):
            draw.say_json("alloc", {"job": None})
        else:
            draw.remark("rl: no allocation is held")
        return NONE_HELD
    if values.get("json"):
        draw.say_json("alloc", {"job": found.job, "released": True})
    elif not values.get("quiet"):
        draw.say(f"{over or f'allocation {found.job} is given back'}\n")
    return 0


def as_json(shown: Shown) -> dict[str, Any]:
    """Return what is known of an allocation."""
    held, state = shown.held, shown.state
    return {
        "job": held.job,
        "state": state.word,
        "unknown": state.unknown,
        "nodes": state.nodes,
        "node_list": state.node_list,
        "cpus": state.cpus,
        "tasks": sum(part.tasks for part in held.parts),
        "components": len(held.parts),
        "left_s": max(0.0, state.ends - time.time()) if state.ends else None,
        "file": held.file,
        "while_pid": held.while_pid,
        "variables": dict(held.variables),
        "steps": dict(shown.steps),
    }
