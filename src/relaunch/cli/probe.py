"""`rl probe`: what is x there? Values, pauses and counts at a line, without editing it."""

from __future__ import annotations

from relaunch.cli import draw
from relaunch.cli.launch_options import (
    OPTIONS,
    Option,
    parse_with_words,
    seconds,
    wants_help,
    whole_number,
)
from relaunch.cli.launch_options import arguments as launch_arguments
from relaunch.cli.opened import open_project
from relaunch.cli.places import (
    check_expression,
    looks_like_place,
    natural_expressions,
    read_place,
)
from relaunch.cli.run import leave, lines_of, prepare, request_of
from relaunch.errors import UsageError
from relaunch.recipe import Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.cli.places import Place
    from relaunch.trial.probe.seen import Seen

EXAMPLES = """\
Examples
  rl probe train.py:88 loss 'x.shape' -- python train.py
  rl probe train.py:88 loss --if 'step > 100' --every 10
  rl probe model.py:GPT.forward --after       what it returns, each time
  rl probe train.py:88 --break -- python train.py      pdb there, in children too
  rl probe model.py:GPT.forward --sleep 20 -- torchrun train.py
  rl probe train.py:88 --log 'step {step}: {loss:.3f}'
  rl probe train.py:88 --count -- pytest -q

A line is probed after it was run, unless it stops the program; --before and
--after say otherwise. Without expressions it shows what the line sets or uses.
"""
_NOT_IN_A_GRAPH = "attempted to reorder a debugging function"
"""What torch says of a probe whose values it cannot carry out of a graph."""
_KINDS = ("break", "die", "count", "who")
PROBE_OPTIONS = (
    Option(flags=("--if",), field="if", metavar="COND", help="only when this is true there"),
    Option(flags=("--every",), field="every", metavar="N", help="only every N-th time"),
    Option(flags=("--first",), field="first", metavar="N", help="only the first N times"),
    Option(flags=("--last",), field="last", metavar="N", help="only the last N, at the end"),
    Option(flags=("--before",), field="before", help="before the line is run"),
    Option(flags=("--after",), field="after", help="after it, or when the function returns"),
    Option(flags=("--break",), field="break", help="open the debugger there"),
    Option(flags=("--sleep",), field="sleep", metavar="TIME", help="wait there so long"),
    Option(flags=("--die",), field="die", help="end that process there, with exit code 71"),
    Option(flags=("--log",), field="log", metavar="TEXT", help="say it, with {expressions} in it"),
    Option(flags=("--count",), field="count", help="only count how often"),
    Option(flags=("--who",), field="who", help="print each way that leads there, once"),
    *(option for option in OPTIONS if option.field not in ("sets", "times")),
)


def arguments(parser: ArgumentParser) -> None:
    """Declare the options, for help, docs and completion."""
    parser.add_argument("place", metavar="FILE:LINE|FILE:FUNCTION", help="where")
    parser.add_argument("exprs", nargs="*", metavar="EXPR", help="what to show, in its scope")
    launch_arguments(parser, PROBE_OPTIONS)


def main(args: Namespace) -> int:
    """Reached only by `rl probe --help`, which argparse answers itself."""
    raise UsageError("no place", hint="rl probe --help")


def quick(words: list[str]) -> int | None:
    """Run it all without argparse, but for the help."""
    if wants_help(words):
        return None
    values, asked, command = parse_with_words(words, PROBE_OPTIONS, "rl probe")
    probes = read_probes(asked, values)
    request = request_of(values, command)
    request = request.but(probes=(*probes, *request.probes))
    lines = lines_of(values)
    attempt = prepare(open_project(lines.tell), request, lines)
    outcome = attempt.run()
    if attempt.seen is not None:
        for line in told(probes, attempt.seen):
            lines.remark(line)
        if outcome.signature is not None and _NOT_IN_A_GRAPH in outcome.signature.title:
            lines.remark("torch.compile(fullgraph=True) lets a probe show tensors and numbers only")
    return leave(outcome)


def read_probes(words: Sequence[str], values: Mapping[str, Any]) -> tuple[Probe, ...]:
    """Read `PLACE [EXPR...] [PLACE...]` and what is to be done there."""
    if not words or not looks_like_place(words[0]):
        what = f"`{words[0]}` is no place" if words else "no place"
        raise UsageError(f"{what}: FILE:LINE or FILE:FUNCTION", hint="rl probe train.py:88 loss")
    groups: list[tuple[str, list[str]]] = []
    for word in words:
        if looks_like_place(word):
            groups.append((word, []))
        else:
            check_expression(word)
            groups[-1][1].append(word)
    kind = _kind(values)
    after = bool(values.get("after")) or (kind in ("peek", "log") and not values.get("before"))
    common = _common(values)
    return tuple(_probe(word, exprs, kind, after, common, values) for word, exprs in groups)


def _probe(
    word: str,
    exprs: Sequence[str],
    kind: str,
    after: bool,
    common: Mapping[str, Any],
    values: Mapping[str, Any],
) -> Probe:
    is_function = not word.rpartition(":")[2].isdecimal()
    if is_function and not values.get("after"):
        after = False  # its arguments are what one looks at
    place = read_place(word, verb="rl probe", after=after)
    if exprs and kind not in ("peek", "log"):
        raise UsageError(
            f"`{exprs[0]}`: --{kind} shows no values", hint=f"rl probe {word} {exprs[0]}"
        )
    if kind == "peek" and not exprs and not (is_function and after):
        exprs = natural_expressions(place)
        kind = "peek" if exprs else "count"
    return Probe(
        kind=kind,
        file=place.file,
        line=place.line,
        function=place.function,
        label=_label(place),
        after=after,
        exprs=tuple(exprs),
        **common,
    )


def _label(place: Place) -> str:
    return draw.clean(place.label)


def _kind(values: Mapping[str, Any]) -> str:
    asked = [kind for kind in (*_KINDS, "sleep", "log") if values.get(kind)]
    if len(asked) > 1:
        raise UsageError(f"--{asked[0]} and --{asked[1]} at once", hint="rl probe --help")
    if values.get("before") and values.get("after"):
        raise UsageError("--before and --after at once", hint="rl probe --help")
    return asked[0] if asked else "peek"


def _common(values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"condition": values.get("if", ""), "text": values.get("log", "")}
    if found["condition"]:
        check_expression(found["condition"])
    if found["text"]:
        _check_text(found["text"])
    if "sleep" in values:
        found["seconds"] = seconds(values["sleep"], "--sleep")
    for name in ("every", "first", "last"):
        if name in values:
            found[name] = whole_number(values[name], f"--{name}")
            if not found[name]:
                raise UsageError(f"--{name} takes 1 or more")
    if "first" in found and "last" in found:
        raise UsageError("--first and --last at once", hint="rl probe --help")
    return found


def _check_text(text: str) -> None:
    from relaunch.trial.probe.asked import log_expression

    try:
        compile(log_expression(text), "<probe>", "eval")
    except SyntaxError as error:
        raise UsageError(f"--log `{text}`: {error.msg}", hint="--log 'loss {loss:.3f}'") from None


def told(probes: Sequence[Probe], seen: Seen) -> list[str]:
    """Say how often each probe was hit, its last lines, or why it never was."""
    from relaunch.trial.probe.verdict import verdict

    lines: list[str] = []
    for number, probe in enumerate(probes):
        lines += seen.last.get(number, ())
        count, processes = seen.count(number), len(seen.hits.get(number, {}))
        if count:
            where = f" in {draw.plural(processes, 'process')}" if processes > 1 else ""
            lines.append(f"{probe.label} hit {draw.plural(count, 'time')}{where}")
        elif seen.passed.get(number):
            often = draw.plural(seen.passed[number], "time")
            lines.append(f"{probe.label} came by {often}; --if {probe.condition} was never true")
        else:
            found = verdict(number, probe, seen)
            lines.append(f"{probe.label} never hit: {found.word}, {found.cause}")
    return lines
