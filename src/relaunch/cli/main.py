"""The door: finds the verb by hand, imports it alone, and turns our errors into exit codes."""

from __future__ import annotations

import errno
import gc
import os
import sys

from relaunch.errors import RelaunchError, UsageError
from relaunch.proc.standard import plug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any, NoReturn, TextIO

VERBS = {
    "run": "run it once, cleanly, and remember what was tested",
    "warm": "after an edit, go on from the last place that the edit leaves as it was",
    "probe": "what is x there? values, pauses, counts at a line, without editing it",
    "shapes": "which shapes? seen while it runs, written as comments, or checked",
    "blame": "which file, which call, which line ran out of space? what does it wait on?",
    "stacks": "where is it stuck? every thread of every process and rank, merged",
    "where": "is this file, function, line really run? if not, what is, and why",
    "py": "a line of Python: compound statements, imports of what it names",
    "replay": "only the call that failed, alone, with the code as it is now",
    "bisect": "which commit made the difference? ends first, in checkouts beside your tree",
    "sweep": "which of these settings fail, and which setting explains it?",
    "grow": "from which size on does it fail? and how do time and memory grow?",
    "shrink": "what is the smallest input that still fails the same way?",
    "repeat": "how rare is it? how sure is that? and what provokes it?",
    "race": "which order of its threads makes it fail? a seed does it every time",
    "tiny": "tiny data, models, tokenizers, payloads that stand out, and where they lie",
    "watch": "what is it using, right now? memory, CPU, GPU, files, IO; or a command",
    "squeeze": "less memory, disk, GPU memory for a command or shell; hold takes it away",
    "alloc": "one Slurm allocation, held for as many launches as it takes",
    "log": "what have I tried?",
    "show": "one trial: code, command, environment, outcome, output",
    "diff": "what differs between two trials?",
    "again": "the exact code and command of a trial, once more",
    "back": "the code of a trial, beside your tree",
    "mark": "your verdict on a trial: good, bad, unsure",
    "gc": "forget old trials and searches, never a marked one",
    "trust": "what the settings of a project run: shown, allowed, forgotten",
    "set": "config sets: new, ls, use, diff",
    "doctor": "what works on this machine, and what would make the rest work",
    "completion": "shell completion for bash, zsh and fish",
}

UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""What a standard output that is full, closed or broken says."""

USAGE = """\
rl gets you to the bug in seconds: reset + launch as one step, every attempt kept.

  rl [OPTIONS] -- CMD...     run it, judge it, remember it
  rl [OPTIONS]               again: last reset, last command, current code
  rl VERB ...                ask about what was tried

{verbs}

Options of a launch (all: rl run --help)
  -m WHY            what this attempt tests
  --reset CMD       run before each launch, as one step with it
  -s A,B  -n N      with these config sets, N times each: one table
  --until REGEX     what in the output is the critical point
  --frozen          run from a copy that edits cannot reach
  --timeout TIME    end the whole tree after 30, 5m or 2h

Examples
  rl --reset 'rm -rf data' -m "does it fail on one GPU?" -- python train.py
  rl -m "lr too high"        # after an edit
  rl log                     # then: rl diff 1 2, rl show 2, rl mark 2 good

Exit code: the program's own; 2 wrong words, 124 timed out, 125-127 rl's own faults.
"""


def enter() -> NoReturn:
    """Run this process's command line, and leave without the 2 ms that a tidy exit costs."""
    code = main()
    to_disk = sys.modules.get("relaunch.journal.to_disk")
    if to_disk is not None:
        to_disk.wait(to_disk.AT_EXIT_S)
        if to_disk.failed:
            what = f"the disk may lose what was kept of this: {to_disk.failed[0].strerror}"
            _say_error(RelaunchError(what, hint="rl show -1"))
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code or _say_unwritten(error)
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    _plug_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    gc.disable()  # we live briefly and make no cycles; collecting while importing costs 2 ms
    try:
        return _dispatch(words)
    except RelaunchError as error:
        _say_error(error)
        return error.exit_code
    except BrokenPipeError:
        # The reader of our report went away; nothing more to tell, and no traceback at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        # With the name of a file it is a fault of ours: what we cannot open is told where it is.
        if error.errno not in UNWRITTEN or error.filename is not None:
            if "RELAUNCH_DEBUG" in os.environ:
                raise
            return _say_fault(error)
        # What waits to be written would fail once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _say_unwritten(error)
    except Exception as error:  # a fault of ours: one line, the rest on request
        if "RELAUNCH_DEBUG" in os.environ:
            raise
        return _say_fault(error)


def _say_fault(error: Exception) -> int:
    what = f"internal fault, please report it: {type(error).__name__}: {error}"
    _say_error(RelaunchError(what, hint="RELAUNCH_DEBUG=1 rl ..."))
    return 125


def _say_unwritten(error: OSError) -> int:
    why = "it is closed" if error.errno == errno.EBADF else error.strerror
    _say_error(RelaunchError(f"standard output cannot be written: {why}"))
    return 1


def _plug_streams() -> None:
    """Fill closed standard streams, before any file of ours could take their number."""
    closed = plug()
    if 1 in closed and sys.stdout is None:  # what is written there fails, as it does for others
        os.dup2(os.open(os.devnull, os.O_RDONLY), 1)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _dispatch(words: list[str]) -> int:
    first = words[0] if words else ""
    if first in ("-h", "--help", "help"):
        rows = "\n".join(f"  {verb:<11}{text}" for verb, text in VERBS.items())
        _say(USAGE.format(verbs=rows), sys.stdout)
        return 0
    if first in ("-V", "--version"):
        from relaunch import __version__

        _say(f"rl {__version__}\n", sys.stdout)
        return 0
    if not first or first.startswith("-"):
        return _launch(words)
    if first == "run" and not {"-h", "--help"} & set(words[: _end_of_options(words)]):
        return _launch(words[1:])
    if first not in VERBS:
        raise _no_such_verb(words)
    if first in ("warm", "py"):
        return _quickly(lambda: _verb(first, words[1:]))
    return _verb(first, words[1:])


def _launch(words: list[str]) -> int:
    def launch() -> int:
        from relaunch.cli import run

        return run.launch(words)

    return _quickly(launch)


def _quickly(act: Callable[[], int]) -> int:
    """Do what somebody waits for with modules from the bundle."""
    from relaunch import hotload

    bundle = hotload.use()
    try:
        return act()
    finally:
        if bundle is not None:
            hotload.keep(bundle)


def _verb(name: str, words: list[str]) -> int:
    module = __import__(f"relaunch.cli.{name}", fromlist=["main"])
    quick = getattr(module, "quick", None)
    if quick is not None:
        code = quick(words)
        if code is not None:
            return int(code)
    args = parsed(module, words, called=f"rl {name}", about=VERBS[name])
    return args if isinstance(args, int) else int(module.main(args))


def parsed(module: ModuleType, words: list[str], *, called: str, about: str) -> Namespace | int:
    """Read the words of a verb, before, between and behind its options; a code: it was its help."""
    import argparse

    class Parser(argparse.ArgumentParser):
        """Speaks as the rest of rl does: one line, exit 2."""

        def _print_message(self, message: str, file: Any = None) -> None:
            _say(message, file or sys.stderr)

        def error(self, message: str) -> None:  # type: ignore[override]  # argparse says NoReturn
            raise UsageError(message, hint=f"{self.prog} --help")

    parser = Parser(
        prog=called,
        description=about,
        epilog=module.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.arguments(parser)
    try:
        args, unknown = parser.parse_known_args(words)
        if unknown and _may_mix(parser, words):
            args, unknown = parser.parse_known_intermixed_args(words)
    except SystemExit as stop:  # --help
        return int(stop.code or 0)
    if unknown:
        raise _unknown_words(unknown, parser)
    return args


def _may_mix(parser: ArgumentParser, words: list[str]) -> bool:
    """Tell whether all options are ours: those in a command to run are its own."""
    takes_command = any(one.dest == "command" for one in parser._get_positional_actions())
    return "--" not in words and parser._subparsers is None and not takes_command


def _unknown_words(words: list[str], parser: ArgumentParser) -> UsageError:
    """Name the option that there is not; argparse would name all that came after it too."""
    from relaunch.cli.launch_options import no_option

    hint = f"{parser.prog} --help"
    if not words[0].startswith("-"):
        return UsageError(f"unrecognized arguments: {' '.join(words)}", hint=hint)
    return no_option(words[0].partition("=")[0], [*parser._option_string_actions], hint)


def _end_of_options(words: list[str]) -> int:
    return words.index("--") if "--" in words else len(words)


def _no_such_verb(words: list[str]) -> UsageError:
    from relaunch.cli.launch_options import nearest

    word = words[0]
    near = nearest(word, list(VERBS))
    from relaunch.cli.draw import command_line

    def is_program(folder: str) -> bool:
        return os.access(os.path.join(folder, word), os.X_OK)

    if "/" in word or any(map(is_program, os.environ.get("PATH", "").split(os.pathsep))):
        return UsageError(f"`{word}` came without `--`", hint=f"rl -- {command_line(words)}")
    guess = f"; did you mean `rl {near}`?" if near else ""
    return UsageError(f"no verb `{word}`{guess}", hint="rl --help")


def _say_error(error: RelaunchError) -> None:
    from relaunch.cli.draw import clean

    hint = f"   try: {clean(error.hint)}" if error.hint else ""
    try:
        _say(f"rl: {clean(error.message)}{hint}\n", sys.stderr)
    except OSError:
        pass  # nobody can be told; the exit code says it


def _say(text: str, stream: TextIO) -> None:
    from relaunch.cli.draw import put

    put(stream, text)
