"""The launch options, defined once: parsed by hand for speed, told to argparse for the help."""

from __future__ import annotations

from relaunch import settings
from relaunch.errors import UsageError
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from typing import Any


class Option(Record):
    """One launch option; without `metavar` it is a switch."""

    flags: tuple[str, ...]
    field: str
    help: str
    metavar: str = ""
    many: bool = False
    choices: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """Of a switch: words that may stand behind `=`, as in `--sync=compare`."""


OPTIONS = (
    Option(flags=("-m", "--note"), field="note", metavar="WHY", help="what this attempt tests"),
    Option(
        flags=("--reset",),
        field="resets",
        metavar="CMD",
        many=True,
        help='run before the launch, as one step with it; a shell line, or ["argv", "as", "JSON"]',
    ),
    Option(flags=("--no-reset",), field="no_reset", help="launch without any reset"),
    Option(
        flags=("--reset-continue",), field="reset_continue", help="launch even if a reset fails"
    ),
    Option(flags=("-s", "--set"), field="sets", metavar="A,B", help="config sets to run with"),
    Option(flags=("-n", "--times"), field="times", metavar="N", help="run it N times (each set)"),
    Option(
        flags=("--timeout",), field="timeout_s", metavar="TIME", help="end it after 30, 5m or 2h"
    ),
    Option(
        flags=("--hang",),
        field="hang",
        metavar="TIME",
        help="recognise a hang: at once where it is certain, else after so long without output",
    ),
    Option(
        flags=("--on-hang",),
        field="on_hang",
        metavar="WHAT",
        choices=("kill", "keep", "pdb"),
        help="what to do with one that hangs",
    ),
    Option(
        flags=("--until",), field="until", metavar="REGEX", help="output that is the critical point"
    ),
    Option(
        flags=("--match",), field="match", metavar="REGEX", help="output that is the failure hunted"
    ),
    Option(
        flags=("--exit-code",), field="exit_code", metavar="N", help="exit code that is the failure"
    ),
    Option(
        flags=("--src",),
        field="src",
        metavar="CLONE",
        many=True,
        help="run against this clone's package, and prove it",
    ),
    Option(
        flags=("--sections",),
        field="sections",
        metavar="FILE:10-40,FILE:FUNC",
        many=True,
        help="measure time and memory of these lines and functions",
    ),
    Option(
        flags=("--log-level",),
        field="log_level",
        metavar="[NAME=]LEVEL",
        many=True,
        help="turn logging up or down: debug, or mypkg.data=debug, or root=info",
    ),
    Option(flags=("--ranked",), field="ranked", help="whole lines of each rank, with its number"),
    Option(
        flags=("--disk",),
        field="disks",
        metavar="DIR=SIZE[,inodes=N]",
        many=True,
        help="make this folder look like a disk of so much; the real one stays as it is",
    ),
    Option(flags=("--keep",), field="keep", help="keep what was written to a small disk"),
    Option(
        flags=("--memory",),
        field="memory",
        metavar="SIZE",
        help="stop it, with its stacks, when all its processes together reach 5G or 500M",
    ),
    Option(
        flags=("--at-limit",),
        field="at_limit",
        metavar="WHAT",
        choices=("kill", "pause", "lift", "interrupt"),
        help="what to do when the memory is reached",
    ),
    Option(
        flags=("--memory-by",),
        field="memory_by",
        metavar="WAY",
        choices=("cgroup", "watch", "data"),
        help="limit memory in this way only; data makes allocations fail with MemoryError",
    ),
    Option(
        flags=("--track-memory",),
        field="track_memory",
        help="tell at the limit which lines allocated the most",
    ),
    Option(
        flags=("--pause-at-peak",),
        field="pause_at_peak",
        help="stop it near the peak of its last run with --watch, to look",
    ),
    Option(
        flags=("--gpu-free",),
        field="gpu_free",
        metavar="[N=]SIZE",
        many=True,
        help="leave only so much memory of each GPU free, or of GPU N",
    ),
    Option(
        flags=("--gpu-by",),
        field="gpu_by",
        metavar="WAY",
        choices=("hold", "share"),
        help="hold GPU memory, or only let each process of torch have a share",
    ),
    Option(
        flags=("--ranks",),
        field="ranks",
        metavar="N",
        help="run N ranks of a torch script as on a node of N GPUs, on the CPU",
    ),
    Option(
        flags=("--threads",),
        field="threads",
        help="with --ranks: as threads; a collective that does not match is named at once",
    ),
    Option(flags=("--watch",), field="watch", help="show and keep what it uses over time"),
    Option(
        flags=("--slow-motion",),
        field="slow_motion",
        metavar="FILE:LINE=TIME",
        many=True,
        help="wait so long before that line, each time, to look at what it uses",
    ),
    Option(flags=("--blame",), field="blame", help="name failed calls: path, line, space left"),
    Option(
        flags=("--sync",),
        field="sync",
        also=("compare", "off"),
        help="have failures come where they are made; =compare: plain and so, what differs?",
    ),
    Option(
        flags=("--single",),
        field="single",
        also=("off",),
        help="all in one process: torchrun, ranks, pools, workers; says what it collapsed",
    ),
    Option(flags=("--frozen",), field="frozen", help="run from a copy that edits cannot reach"),
    Option(flags=("--let-live",), field="let_live", help="let background processes outlive it"),
    Option(flags=("--pdb",), field="pdb", help="open the debugger where it fails"),
    Option(flags=("--nan",), field="nan", help="stop at the first line that makes a nan or inf"),
    Option(
        flags=("--who-calls",),
        field="who_calls",
        metavar="FUNC",
        many=True,
        help="print each way that leads to it, once",
    ),
    Option(flags=("--slurm",), field="slurm", help="run it in the allocation that rl alloc holds"),
    Option(
        flags=("--srun",),
        field="srun",
        metavar="WORDS",
        many=True,
        help="the same, with more words for srun: '-n 1 --cpu-bind=none'",
    ),
    Option(
        flags=("--env",), field="env", metavar="NAME=VALUE", many=True, help="set it for this trial"
    ),
    Option(
        flags=("--name",), field="name", metavar="NAME", help="name the trial, for rl show NAME"
    ),
    Option(
        flags=("--unsaved",),
        field="unsaved",
        metavar="MODE",
        choices=("ask", "warn", "refuse", "off"),
        help="what to do about unsaved editor buffers",
    ),
    Option(flags=("--no-input",), field="no_input", help="never ask"),
    Option(flags=("-y", "--yes"), field="yes", help="run anyway, without asking"),
    Option(
        flags=("-q", "--quiet"), field="quiet", help="no lines of rl's own unless something is off"
    ),
    Option(flags=("--json",), field="json", help="rl's own lines as JSON, on standard error"),
    Option(
        flags=("--color",),
        field="color",
        metavar="WHEN",
        choices=("auto", "always", "never"),
        help="colour rl's own lines",
    ),
)


def srun_words(values: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return what srun is told besides, if programs are to run in the held allocation."""
    given = values.get("srun")
    if not given:
        return () if values.get("slurm") else None
    import shlex

    try:
        return tuple(word for text in given for word in shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--srun: {error}", hint="--srun '-n 1'") from None


def parse(
    words: Sequence[str],
    options: Sequence[Option] = OPTIONS,
    rl: str = "rl",
    *,
    bare: bool = False,
) -> tuple[dict[str, Any], tuple[str, ...] | None]:
    """Split `[OPTIONS] [-- CMD...]` into option values and the command (None: repeat the last).

    `rl` is what was typed before the words, for what to type instead. With `bare`, the first word
    that is no option begins the command.
    """
    values, _, command = _read(words, options, rl, bare=bare)
    return values, command


def wants_help(words: Sequence[str]) -> bool:
    """Tell whether help is asked for, and not of the command behind `--`."""
    own = words[: words.index("--")] if "--" in words else words
    return "-h" in own or "--help" in own


def parse_with_words(
    words: Sequence[str], options: Sequence[Option], rl: str
) -> tuple[dict[str, Any], list[str], tuple[str, ...] | None]:
    """Split `WORDS [OPTIONS] [-- CMD...]` likewise, for verbs that take words of their own."""
    return _read(words, options, rl, takes_words=True)


def _read(
    words: Sequence[str],
    options: Sequence[Option],
    rl: str,
    *,
    takes_words: bool = False,
    bare: bool = False,
) -> tuple[dict[str, Any], list[str], tuple[str, ...] | None]:
    """Return the values, the other words, and the command."""
    by_flag = {flag: option for option in options for flag in option.flags}
    values: dict[str, Any] = {}
    stray: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            command = tuple(words[at:])
            if not bare and (not command or not command[0]):
                raise UsageError("no command after `--`", hint=f"{rl} -- python train.py")
            return values, stray, command
        if bare and not word.startswith("-"):
            return values, stray, tuple(words[at - 1 :])
        flag, value = _split(word, by_flag)
        option = by_flag.get(flag)
        if option is None and takes_words and not word.startswith("-"):
            stray.append(word)
            continue
        if option is None:
            raise _unknown(word, words, at - 1, list(by_flag), rl)
        if not option.metavar:
            if value is not None and value not in option.also:
                can = " or ".join(f"{flag}={one}" for one in option.also)
                words_of = f"takes no value but {can}" if can else "takes no value"
                raise UsageError(f"{flag} {words_of}: `{word}`")
            values[option.field] = value or True
            continue
        if value is None:
            if at >= len(words) or words[at] == "--":
                raise UsageError(f"{flag} needs a value: {option.metavar}", hint=_help(rl))
            value = words[at]
            at += 1
        if option.choices and value not in option.choices:
            raise UsageError(f"{flag} takes {', '.join(option.choices)}; not `{value}`")
        if option.many:
            values.setdefault(option.field, []).append(value)
        else:
            values[option.field] = value
    return values, stray, None


def _split(word: str, by_flag: dict[str, Option]) -> tuple[str, str | None]:
    """Take `--timeout=5`, `-n3` and `-m"why"` apart."""
    if word.startswith("--") and "=" in word:
        flag, _, value = word.partition("=")
        return flag, value
    if word[:1] == "-" and word[:2] in by_flag and len(word) > 2 and by_flag[word[:2]].metavar:
        return word[:2], word[2:]
    return word, None


def _help(rl: str) -> str:
    return f"{'rl run' if rl == 'rl' else rl} --help"


def _unknown(word: str, words: Sequence[str], at: int, flags: list[str], rl: str) -> UsageError:
    if not word.startswith("-"):
        right = " ".join([rl, *words[:at], "--", *words[at:]])
        return UsageError(f"`{word}` came before `--`", hint=right)
    if any(word in option.flags for option in OPTIONS):
        return UsageError(f"{word} is no option of `{rl}`", hint=" ".join(["rl", *words]))
    return no_option(word, flags, _help(rl))


def no_option(word: str, flags: Sequence[str], hint: str) -> UsageError:
    """Return what to say of an option that there is not."""
    names = {flag.lstrip("-"): flag for flag in flags}
    near = names.get(nearest(word.lstrip("-"), [*names]), "")
    guess = f"; did you mean {near}?" if near else ""
    return UsageError(f"no option `{word}`{guess}", hint=hint)


def nearest(word: str, known: Sequence[str]) -> str:
    """Return the known word most like this one, or nothing."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, known, n=1, cutoff=0.5)), "")


def budget(text: str | None) -> tuple[int | None, float | None]:
    """Read `--budget`: at most so many runs, or so long."""
    if not text:
        return None, None
    if not text.isdecimal():
        try:
            return None, settings.seconds(text)
        except ValueError:
            words = f"--budget takes a number of runs or a time, not `{text}`"
            raise UsageError(words, hint="--budget 40, or --budget 30m") from None
    if not int(text):
        raise UsageError("--budget 0: at least one run", hint="--budget 40, or --budget 30m")
    return int(text), None


def whole_number(text: str, flag: str) -> int:
    """Read a number of times or an exit code."""
    if not text.isdecimal():
        raise UsageError(f"{flag} takes a whole number, not `{text}`", hint=f"{flag} 3")
    return int(text)


def seconds(text: str, flag: str, *, joint: str = " ") -> float:
    """Read 30, 1.5, 90s, 5m, 2h or 1d as seconds; `joint` stands between them and the flag."""
    try:
        return settings.seconds(text)
    except ValueError:
        words = f"{flag} takes a time such as 30, 90s, 5m or 2h, not `{text}`"
        raise UsageError(words, hint=f"{flag}{joint}5m") from None


def memory(text: str, flag: str) -> str:
    """Check a size or a share of the memory: it is worked out where the program runs."""
    try:
        settings.memory_bytes(text, 0)
    except ValueError:
        words = f"{flag} takes a size or a share such as 4G or 30%, not `{text}`"
        raise UsageError(words) from None
    return text


def assignments(words: Sequence[str], flag: str) -> dict[str, str]:
    """Read NAME=VALUE words."""
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"{flag} takes NAME=VALUE, not `{word}`")
        pairs[name] = value
    return pairs


def reset_command(text: str) -> str | tuple[str, ...]:
    """Read a reset: a JSON list is an argv, anything else a shell line."""
    if not text.strip():
        raise UsageError("--reset is empty", hint="rl --no-reset")
    if text.startswith("["):
        from relaunch.jsontext import loads

        try:
            words = loads(text)
        except ValueError:
            return text
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            return tuple(words)
    return text


def regex(text: str, flag: str) -> str:
    """Check a regular expression now rather than after the run."""
    from relaunch.patterns import compiled

    try:
        compiled(text)
    except ValueError as error:
        raise UsageError(f"{flag}: `{text}` is no regular expression: {error}") from None
    return text


def arguments(parser: argparse.ArgumentParser, options: Sequence[Option] = OPTIONS) -> None:
    """Tell argparse the same options and the command, for help, docs and completion."""
    option_arguments(parser, options)
    parser.add_argument("command", nargs="*", metavar="-- CMD", help="the program and its words")


def _meant(option: Option) -> str:
    """Say what an option is for, and which words it takes."""
    if all(word in option.help for word in option.choices):
        return option.help
    words = ", ".join(option.choices)
    return f"{words} {option.help}" if option.help[0] == "(" else f"{option.help}: {words}"


def option_arguments(parser: argparse.ArgumentParser, options: Sequence[Option]) -> None:
    """Tell argparse the options alone."""
    for option in options:
        extra: dict[str, Any] = {"dest": option.field, "help": _meant(option)}
        if not option.metavar:
            extra["action"] = "store_true"
        else:
            extra["metavar"] = option.metavar
            extra["action"] = "append" if option.many else "store"
            if option.choices:
                extra["choices"] = option.choices
        with_words = [f"{option.flags[-1]}={word}" for word in option.also]
        parser.add_argument(*option.flags, *with_words, **extra)
