"""`rl -- CMD` and bare `rl`: words in, the program's own exit out, our few lines on stderr."""

from __future__ import annotations

import os
import sys

from relaunch.cli import draw
from relaunch.cli.launch_options import (
    arguments,
    assignments,
    parse,
    regex,
    reset_command,
    seconds,
    srun_words,
    whole_number,
)
from relaunch.cli.opened import open_project
from relaunch.errors import PlaceError, UsageError
from relaunch.events import (
    Announced,
    Blamed,
    Collapsed,
    Finished,
    Measured,
    Prepared,
    Warmed,
    Warned,
)
from relaunch.inside.protocol import LOG, RANKED
from relaunch.session.request import Request

__all__ = ["EXAMPLES", "arguments", "launch", "main"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from relaunch.events import Event
    from relaunch.outcome import Outcome
    from relaunch.recipe import Probe
    from relaunch.session.attempt import Attempt
    from relaunch.session.consent import Wanted
    from relaunch.session.project import Project
    from relaunch.trial.place.unsaved import Unsaved
    from relaunch.trial.probe.seen import Seen

EXAMPLES = """\
Examples
  rl --reset 'rm -rf data' -m "does it fail on one GPU?" -- python train.py --steps 50
  rl -m "lr too high"                    last reset, last command, current code
  rl -s base,bf16 -n 3                   each config set three times, one table
  rl --until 'step 1 ' -- python train.py     how long to the critical point?
  rl --src ../transformers -- pytest -q  against that clone, proven afterwards
  rl --frozen -- python train.py         edit on while it runs
  rl run --sections train.py:10-40,model.py:GPT.forward -- python train.py
  rl run --log-level debug --ranked -- torchrun train.py
  rl run --hang 60 -- python train.py    is it hung? its stacks, then --on-hang
  rl run --sync=compare -- python train.py    does the failure move or vanish?
  rl run --single -- torchrun --nproc-per-node 8 train.py --workers 8
  rl run --ranks 8 -- python train.py    eight GPUs that are not there
"""


def main(args: argparse.Namespace) -> int:
    """Reached only by `rl run --help`, which argparse answers itself."""
    raise UsageError("no command", hint="rl run --help")


def launch(words: Sequence[str]) -> int:
    """Run what the words say; returns the exit code, or dies of the program's own signal."""
    values, command = parse(words)
    request = request_of(values, command)
    lines = lines_of(values)
    return run_request(open_project(lines.tell), request, lines)


def lines_of(values: Mapping[str, Any]) -> Lines:
    """Return what draws the events, as the options say."""
    lines = Lines(json=values.get("json", False), color=values.get("color", "auto"))
    lines.quiet = values.get("quiet", False)
    return lines


def run_request(project: Project, request: Request, lines: Lines) -> int:
    """Run what was asked for: one attempt, or a table of them."""
    if request.compare_sync:
        from relaunch.cli.sync import run_compared

        return run_compared(project, request, lines)
    if request.times > 1 or len(request.sets or ()) > 1:
        from relaunch.cli.table import run_table

        return run_table(project, request, lines)
    return run_one(project, request, lines)


def run_one(project: Project, request: Request, lines: Lines) -> int:
    """Run one attempt and leave as the program left; once more where no call explains its end."""
    attempt = prepare(project, request, lines)
    outcome = attempt.run()
    if attempt.seen is not None and any(probe.kind == "sleep" for probe in request.probes):
        _tell_never_slow(request.probes, attempt.seen, lines)
    if attempt.unexplained:
        outcome = _once_more(project, request, lines) or outcome
    if attempt.recipe.sync:
        from relaunch.cli.sync import tell_against_plain

        tell_against_plain(project, attempt, outcome, lines)
    return leave(outcome)


def _once_more(project: Project, request: Request, lines: Lines) -> Outcome | None:
    """Run it again with the surest eye on its calls; None where that is not possible."""
    try:
        return prepare(project, request.but(blame_by="tracer"), lines).run()
    except PlaceError as error:
        lines.remark(error.message)
        return None


def _tell_never_slow(probes: Sequence[Probe], seen: Seen, lines: Lines) -> None:
    """Say of each line that was to be slow and never came why that is."""
    from relaunch.trial.probe.verdict import verdict

    for number, probe in enumerate(probes):
        if probe.kind == "sleep" and not seen.count(number):
            found = verdict(number, probe, seen)
            lines.remark(f"{probe.label} never came: {found.word}, {found.cause}")


def prepare(project: Project, request: Request, lines: Lines) -> Attempt:
    """Do what comes before one attempt, and return it, ready to run."""
    from relaunch.session.attempt import Attempt
    from relaunch.session.gate import pass_unsaved
    from relaunch.session.plan import plan
    from relaunch.session.repair import repair

    if request.compare_sync:
        raise UsageError("--sync=compare is of `rl run` alone", hint="rl run --sync=compare -- CMD")
    repair(project, tell=lines.tell)
    (recipe,) = plan(project, request, tell=lines.tell, ask=consent_of(request))
    ask = (lambda found: ask_about(project, found)) if request.may_ask else None
    unsaved = pass_unsaved(project, request.unsaved, ask=ask, tell=lines.tell)
    if project.settings.run.clear and sys.stdout.isatty():
        draw.steer(sys.stdout, "\x1b[H\x1b[2J")
    return Attempt(
        project,
        recipe,
        tell=lines.tell,
        note=request.note,
        name=request.name,
        unsaved=unsaved,
        repeated=request.argv is None,
    )


def consent_of(request: Request) -> Callable[[Wanted], bool] | None:
    """Return how to ask before somebody else's commands run; nothing where nobody could answer."""
    if not request.may_ask:
        return None
    from relaunch.cli.trust import ask_to_run

    return ask_to_run


def leave(outcome: Outcome) -> int:
    """Return the program's exit code; killed by a signal: die of the same one.

    Output that got lost behind the program counts: it would have failed to write it itself.
    """
    if outcome.signal is not None:
        from relaunch.proc.supervise import die_of

        die_of(outcome.signal)
    return outcome.exit_code or int(bool(outcome.not_passed_on))


def request_of(values: dict[str, Any], command: tuple[str, ...] | None) -> Request:
    """Check the values of the options and say what was asked for."""
    resets: tuple[str | tuple[str, ...], ...] | None = None
    if values.get("no_reset"):
        resets = ()
    elif "resets" in values:
        resets = tuple(reset_command(text) for text in values["resets"])
    sets = None
    if "sets" in values:
        sets = tuple(name for name in values["sets"].split(",") if name)
        if not sets:
            raise UsageError("-s names no set", hint="rl set ls")
    times = whole_number(values.get("times", "1"), "-n")
    if times < 1:
        raise UsageError("-n takes 1 or more")
    both = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    return Request(
        argv=command,
        resets=resets,
        reset_continue=values.get("reset_continue"),
        note=values.get("note", ""),
        name=_name(values["name"]) if "name" in values else "",
        sets=sets,
        times=times,
        env=_environment(values),
        timeout_s=seconds(values["timeout_s"], "--timeout") if "timeout_s" in values else None,
        until=regex(values["until"], "--until") if "until" in values else None,
        match=regex(values["match"], "--match") if "match" in values else None,
        exit_code=(
            whole_number(values["exit_code"], "--exit-code") if "exit_code" in values else None
        ),
        limits=_limits(values),
        watch=values.get("watch"),
        blame=values.get("blame"),
        sync=None if "sync" not in values else values["sync"] != "off",
        single=None if "single" not in values else values["single"] != "off",
        compare_sync=values.get("sync") == "compare",
        ranks=_ranks(values),
        threads=values.get("threads"),
        src=tuple(map(os.path.abspath, values["src"])) if "src" in values else None,
        frozen=values.get("frozen"),
        let_live=values.get("let_live"),
        nan=values.get("nan", False),
        pdb=values.get("pdb", False),
        probes=_probes(values),
        srun=srun_words(values),
        unsaved="warn" if values.get("yes") else values.get("unsaved", ""),
        may_ask=both and not values.get("no_input"),
        quiet=values.get("quiet", False),
    )


_MOST_RANKS = 4096
_LIMITS = frozenset(
    (
        "disks",
        "keep",
        "memory",
        "at_limit",
        "hang",
        "on_hang",
        "memory_by",
        "track_memory",
        "pause_at_peak",
        "gpu_free",
        "gpu_by",
    )
)


def _ranks(values: dict[str, Any]) -> int | None:
    """Return how many ranks there are to be."""
    if "ranks" not in values:
        if values.get("threads"):
            raise UsageError("--threads is about ranks", hint="rl run --ranks 64 --threads -- CMD")
        return None
    found = whole_number(values["ranks"], "--ranks")
    if not 1 <= found <= _MOST_RANKS:
        words = f"--ranks takes 1 to {_MOST_RANKS}, not {found}"
        raise UsageError(words, hint="rl run --ranks 8 -- python train.py")
    for flag in ("at_limit", "memory_by", "track_memory", "pause_at_peak"):
        if flag in values:
            words = f"--{flag.replace('_', '-')} is about all processes together, not about ranks"
            raise UsageError(words, hint="rl run --ranks 8 --memory 2G -- python train.py")
    return found


def _limits(values: dict[str, Any]) -> dict[str, Any] | None:
    """Return what of the machine the program may take, where options say so."""
    if _LIMITS.isdisjoint(values):
        return None
    from relaunch.cli.limit_words import limits_of

    return limits_of(values)


def _probes(values: dict[str, Any]) -> tuple[Probe, ...]:
    """Return what the options of a launch look at while it runs."""
    found: tuple[Probe, ...] = ()
    if "who_calls" in values:
        found += _who_calls(values["who_calls"])
    if "sections" in values:
        from relaunch.cli.sections import read_sections

        found += read_sections(values["sections"])
    if "slow_motion" in values:
        found += tuple(_slow_motion(word) for word in values["slow_motion"])
    return found


def _slow_motion(word: str) -> Probe:
    from relaunch.cli.places import looks_like_place, read_place
    from relaunch.recipe import Probe

    where, equals, time = word.rpartition("=")
    if not equals or not looks_like_place(where):
        words = f"--slow-motion takes FILE:LINE=TIME or FILE:FUNCTION=TIME, not `{word}`"
        raise UsageError(words, hint="rl run --slow-motion train.py:88=20s -- python train.py")
    place = read_place(where, verb="rl run --slow-motion", rest=f"={time}")
    return Probe(
        kind="sleep",
        file=place.file,
        line=place.line,
        function=place.function,
        seconds=seconds(time, f"--slow-motion {where}", joint="="),
        label=draw.clean(place.label),
    )


def _who_calls(words: Sequence[str]) -> tuple[Probe, ...]:
    from relaunch.cli.places import function_place
    from relaunch.recipe import Probe

    places = [function_place(word, verb="rl --who-calls") for word in words]
    return tuple(
        Probe(kind="who", file=one.file, function=one.function, label=one.label) for one in places
    )


def _environment(values: dict[str, Any]) -> dict[str, str] | None:
    """Return what is set for the program: what was given, and what options of ours become."""
    found = assignments(values.get("env", ()), "--env")
    if "log_level" in values:
        from relaunch.cli.levels import read_levels

        found[LOG] = read_levels(values["log_level"])
    if values.get("ranked"):
        found[RANKED] = "1"
    return found or None


def _name(text: str) -> str:
    from relaunch.journal.refs import check_name

    return check_name(text)


def ask_about(project: Project, found: Sequence[Unsaved]) -> str:
    """Show the unsaved buffers and let the person choose; end of input quits."""
    from relaunch.session.gate import QUIT, RUN, WAIT, describe

    for buffer in found:
        draw.remark(f"rl: {describe(project, buffer)}. You would test the OLD code.")
    choices = {"w": WAIT, "r": RUN, "q": QUIT, "": WAIT}
    while True:
        draw.put(
            sys.stderr, "    [w]ait until saved   [r]un anyway (recorded as such)   [q]uit  > "
        )
        line = sys.stdin.readline()
        answer = QUIT if not line else choices.get(line.strip().lower()[:1])
        if answer:
            return answer


class Lines:
    """Draws what the session tells on standard error: for people, or as JSON lines."""

    def __init__(self, *, json: bool = False, color: str = "auto") -> None:
        """Draw for people unless `json`."""
        self.json = json
        self.quiet = False
        self.brief = False
        """Say nothing of a trial that passed."""
        self.all_calls = False
        """Tell of failed calls that do not matter too."""
        self._pen = draw.pen(sys.stderr, color)

    def tell(self, event: Event) -> None:
        """Draw one event; a closed or full standard error is no reason to stop."""
        try:
            if self.json:
                self._tell_json(event)
            elif isinstance(event, Warned):
                hint = f"   try: {event.hint}" if event.hint else ""
                self._write(self._pen("yellow", "rl:") + f" {draw.clean(event.text)}{hint}")
            elif isinstance(event, Measured):
                from relaunch.cli.sections import show

                show(event.sections, event.missed, self._pen, quiet=self.quiet)
            elif isinstance(event, Blamed):
                from relaunch.cli.blame_told import show_blame

                show_blame(event, self._pen, everything=self.all_calls)
            elif (self.quiet and not _is_our_doing(event)) or (self.brief and _is_plain(event)):
                pass
            elif isinstance(event, Collapsed):
                from relaunch.cli.sync import collapsed_lines

                for line in collapsed_lines(event.collapsed):
                    self._write(self._pen("bold", "rl: ") + f"single: {line}")
            elif isinstance(event, Announced):
                self._announced(event)
            elif isinstance(event, Prepared):
                self._prepared(event)
            elif isinstance(event, Warmed):
                self._warmed(event)
            else:
                self._finished(event)
        except OSError:
            pass

    def remark(self, text: str) -> None:
        """Say something that is no event of a trial, unless nobody wants to hear it."""
        if self.json:
            from relaunch.jsontext import dumps

            self._write(dumps({"schema": "relaunch/run/1", "event": "remarked", "text": text}))
        elif not self.quiet:
            draw.remark(f"rl: {draw.clean(text)}")

    def _announced(self, event: Announced) -> None:
        parts = [("", event.code)]
        if event.config_set:
            parts.append(("", f"set {event.config_set}"))
        if event.note:
            parts.append(("", f'"{draw.clean(event.note)}"'))
        if event.repeated:
            parts.append(("dim", f"$ {draw.command_line(event.command)}"))
            parts.extend(("dim", draw.clean(word)) for word in event.setting)
        self._flow(event.trial_id, parts)

    def _prepared(self, event: Prepared) -> None:
        text = draw.clean(event.text)
        if sys.stderr.isatty():
            from textwrap import fill

            text = fill(text, draw.width(sys.stderr) - 4, break_on_hyphens=False)
        self._write(self._pen("bold", "rl: ") + text.replace("\n", "\n    "))

    def _warmed(self, event: Warmed) -> None:
        words = warmed_words(event)
        if sys.stderr.isatty() and draw.columns_of(words) + 4 > draw.width(sys.stderr):
            words = words.replace(", because", ",\n    because", 1)
        self._write(self._pen("bold", "rl: ") + words)

    def _finished(self, event: Finished) -> None:
        outcome = event.outcome
        if event.refused:
            return
        if event.in_line and sys.stderr.isatty() and sys.stdout.isatty():
            self._write("")
        parts = [*_ending(outcome)]
        if outcome.signature is not None:
            parts.append(("", outcome.signature.title))
        if outcome.reached.get("text") and not outcome.reached["title"]:
            parts.append(("", outcome.reached["text"]))
        if event.told:
            parts.append(("bold", event.told))
        parts.extend(("", f"{name} {text}") for name, text in outcome.metrics.items())
        if outcome.usage:
            from relaunch.cli.watch_words import used_words

            parts.append(("", used_words(outcome.usage)))
        if not outcome.passed and event.trial_id:
            again = "rl warm" if outcome.resumed or outcome.cold else "rl"
            replay = ", rl replay" if event.replayable else ""
            blame = ", rl blame" if event.blamable else ""
            words = f"next: rl show {event.trial_id}{replay}{blame}, or edit and {again}"
            parts.append(("dim", words))
        self._flow(event.trial_id, parts)
        for name, why in outcome.unknown.items():
            self._write(f"rl: {draw.clean(name)} is unknown: {draw.clean(why)}")
        if outcome.reached.get("by") == "kernel" and not outcome.reached.get("at"):
            self._write(f"rl: {_before_the_kernel(outcome.reached)}")
        if outcome.code_changed:
            names = _some(outcome.code_changed)
            is_warm = outcome.resumed or outcome.cold
            advice = "" if is_warm else "; --frozen keeps such edits out"
            self._write(f"rl: {names} changed while it ran{advice}")
        if outcome.ended_processes:
            count = draw.plural(len(outcome.ended_processes), "process")
            names = _some(outcome.ended_processes)
            self._write(f"rl: ended {count} that outlived it: {names}   (meant to? --let-live)")

    def _flow(self, trial_id: str, parts: Sequence[draw.Cell]) -> None:
        """Put the parts on one line, or several when the screen is narrow."""
        head = f"rl #{trial_id}  " if trial_id else "rl  "
        room = draw.width(sys.stderr) - len(head)
        line, used = "", 0
        for style, text in ((style, draw.clean(text)) for style, text in parts):
            columns = draw.columns_of(text)
            if line and used + 3 + columns > room:
                self._write(self._pen("bold", head) + line)
                head, line, used = " " * len(head), "", 0
            line += ("   " if line else "") + self._pen(style, text)
            used += columns + (3 if used else 0)
        self._write(self._pen("bold", head) + line)

    def _tell_json(self, event: Event) -> None:
        from relaunch.jsontext import dumps
        from relaunch.session.past import outcome_json

        value: dict[str, Any] = {"schema": "relaunch/run/1", "event": type(event).__name__.lower()}
        for name in type(event)._fields:
            field = getattr(event, name)
            value[name] = list(field) if isinstance(field, tuple) else field
        if isinstance(event, Measured):
            from relaunch.cli.sections import in_short

            value["sections"] = in_short(event.sections)
        if isinstance(event, Finished):
            value["outcome"] = outcome_json(event.outcome)
            value["outcome"]["passed"] = event.outcome.passed
        self._write(dumps(value))

    def write(self, line: str) -> None:
        """Write a line of our own as it is."""
        try:
            self._write(line)
        except OSError:
            pass

    def _write(self, line: str) -> None:
        draw.put(sys.stderr, line.rstrip() + "\n")


def _is_our_doing(event: Event) -> bool:
    """Tell what no output of a program tells: it was ended at a limit, or by the kernel."""
    return isinstance(event, Finished) and bool(event.outcome.reached.get("title"))


def _is_plain(event: Event) -> bool:
    """Tell what is no news to somebody who looks at the output: it began, and all went well."""
    if not isinstance(event, Finished):
        return True
    outcome = event.outcome
    return outcome.passed and not (outcome.code_changed or outcome.ended_processes)


def warmed_words(event: Warmed) -> str:
    """Say where a warm run goes on and what that saves, or why it does not."""
    if event.cold:
        return f"cold: {draw.clean(event.cold)}"
    took, saved = draw.duration(event.took_s), draw.duration(event.saved_s)
    because = f", because {draw.clean(event.because)}" if event.because else ""
    return f"resumed at {draw.clean(event.at)} ({took} instead of {saved}){because}"


def _ending(outcome: Outcome) -> list[draw.Cell]:
    """Say how it ended and how long it took."""
    took = draw.duration(outcome.duration_s)
    if outcome.not_started:
        return [("red", f"not started: {draw.clean(outcome.not_started)}")]
    if outcome.lost:
        return [("red", f"lost after {took}: {draw.clean(outcome.lost)}")]
    if outcome.timed_out:
        return [("red", f"timed out after {took}")]
    if outcome.interrupted:
        return [("yellow", f"interrupted after {took}")]
    if outcome.reached.get("act") == "kill":
        return [("red", f"stopped after {took}")]
    if outcome.signal is not None:
        return [("red", f"killed by {draw.signal_name(outcome.signal)} after {took}")]
    parts = [("green" if outcome.passed else "red", f"exit {outcome.exit_code} in {took}")]
    critical = outcome.critical_s
    if critical is not None and outcome.duration_s - critical > 0.5:
        parts.append(("", f"critical point at {draw.duration(critical)}"))
    return parts


def _before_the_kernel(reached: Mapping[str, Any]) -> str:
    """Say how to see where a program is that the kernel killed."""
    count = (reached.get("limit_bytes") or reached.get("bytes") or 1 << 30) >> 20
    return f"where it was, nobody saw; to stop it before that: rl --memory {count}M -- CMD"


def _some(names: Sequence[str]) -> str:
    more = len(names) - 3
    return ", ".join(map(draw.clean, names[:3])) + (f" and {more} more" if more > 0 else "")
