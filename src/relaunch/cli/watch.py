"""`rl watch`: what is it using, right now? Only what matches, also what is not started yet."""

from __future__ import annotations

import os
import sys
import time

from relaunch.cli import draw, opened
from relaunch.cli.launch_options import OPTIONS, Option, seconds, wants_help
from relaunch.errors import UsageError
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from relaunch.journal.store import Trial
    from relaunch.look.eyes import Eyes
    from relaunch.look.gpus import Gpu
    from relaunch.look.trees import Matches

EXAMPLES = """\
Examples
  rl watch python              every tree of processes with that in its command
  rl watch 12345 --each        one tree, each process of it below
  rl watch last                the trial that runs here, or ran last
  rl watch 'train.*--rank 0' --user me --gpu --disk /tmp
  rl watch "df -h /tmp"        a shell command, changes highlighted
  rl watch --cmd nvidia-smi --every 5s
  rl watch python --json --every 1 --times 60 > usage.jsonl
  rl watch --tmux -- python train.py       run it, watched in a pane beside it

A word is a pid, `last`, or a regular expression in name or command line. Several
words that begin with a program are a shell command, unless that program runs
others (python, bash, ...): --cmd and --match say what is meant.
Keys: q quit  s sort  r reverse  t processes  p pause  m mark a moment  ? help
"""
QUICKEST_S = 0.02
_LOOK_S = 0.25
"""So often it is looked at least, to see peaks between two lines."""
TMUX = Option(flags=("--tmux",), field="tmux", help="watch in a pane beside the program")


class Watch(Record):
    """What is watched and how; ready to be drawn."""

    title: str
    eyes: Eyes
    every_s: float
    times: int = 0
    """End after so many rounds; 0: never."""
    until_end: bool = False
    """End when all that is watched has."""
    trial: Trial | None = None
    sort: str = "rss GB"
    each: bool = False
    gpu: bool = False
    """Show every GPU, also when nothing that is watched is on one."""
    color: str = "auto"
    waiting: str = ""
    """What is waited for, while nothing matches."""
    aside: str = ""
    """What else may have been meant."""

    @property
    def look_s(self) -> float:
        """How often to look."""
        return min(self.every_s, _LOOK_S)

    @property
    def gpus(self) -> Sequence[Gpu]:
        """The GPUs that are shown: where they were asked for, or what is watched is on them."""
        is_used = any(tree.gpu_bytes for tree in self.eyes.trees)
        return self.eyes.gpus if self.gpu or is_used else ()

    def is_over(self) -> bool:
        """Tell whether nothing more can come."""
        if not self.until_end or self.eyes.trees:
            return False
        if self.trial is None:
            return bool(self.eyes.ended)
        from relaunch.journal.store import read_json

        end = os.path.join(self.trial.path, "end.json")
        return read_json(end) is not None or not self.trial.running


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("what", nargs="*", metavar="PID|last|REGEX|CMD", help="what to watch")
    add("--match", metavar="REGEX", help="processes with this in name or command line")
    add("--user", metavar="NAME", help="only processes of this user")
    add("--trial", metavar="TRIAL", help="the processes of this trial: 3, -1, a name")
    add("--cmd", metavar="LINE", help="a shell command, run again and again")
    add("--every", metavar="TIME", help="how often: 2, 0.5, 100ms (1; a command and lines: 2)")
    add("--times", metavar="N", help="end after so many rounds")
    add("--until-end", action="store_true", help="end when what is watched has ended")
    add("--each", action="store_true", help="each process, not only each tree")
    add("--sort", metavar="COLUMN", help="rss, pss, peak, cpu, gpu, procs, thr, fds, read, write")
    add("--gpu", action="store_true", help="each GPU: memory, how busy")
    add("--disk", metavar="PATH", action="append", default=[], help="how full the disk there is")
    add("--tmux", action="store_true", help="in a pane beside this one")
    add("--json", action="store_true", help="lines of JSON: schema relaunch/watch/1")
    add("--color", choices=("auto", "always", "never"), default="auto", help="(auto)")


def quick(words: list[str]) -> int | None:
    """Run `rl watch [LAUNCH OPTIONS] -- CMD`; all else goes on to `main`."""
    if "--" not in words or wants_help(words):
        return None
    from relaunch.cli.launch_options import parse
    from relaunch.cli.watch_tmux import launch_beside

    values, command = parse(words, (TMUX, *OPTIONS), "rl watch")
    return launch_beside(values, command or (), words)


def main(args: Namespace) -> int:
    """Watch until it is enough."""
    every_s = interval(args.every) if args.every else 0.0
    times = _times(args.times) if args.times else 0
    line = _command_line(args)
    if args.tmux:
        from relaunch.cli.watch_tmux import open_beside

        _check(args, line)
        return open_beside([word for word in sys.argv[2:] if word != "--tmux"])
    if line:
        from relaunch.cli.watch_command import Repeated, watch_command

        repeated = Repeated(line=line, every_s=every_s or 2.0, times=times, color=args.color)
        return watch_command(repeated, json=args.json)
    watch = _watch(args, every_s, times)
    if watch is None:
        return 0
    from relaunch.cli import screen

    is_live = screen.is_possible() and not args.json
    watch = watch.but(every_s=every_s or (1.0 if is_live else 2.0))
    try:
        if is_live:
            from relaunch.cli.watch_live import watch_live

            return watch_live(watch)
        from relaunch.cli.watch_lines import watch_lines

        return watch_lines(watch, json=args.json)
    finally:
        watch.eyes.close()


def _check(args: Namespace, line: str) -> None:
    """Find wrong words here, not in a pane that is gone at once."""
    if not line:
        watch = _watch(args, 1.0, 0)
        if watch is not None:
            watch.eyes.close()


def interval(text: str) -> float:
    """Read `2`, `0.5`, `5s`, `1m` or `100ms`."""
    number = text.removesuffix("ms")
    try:
        found = float(number) / 1000 if number != text else 0.0
    except ValueError:
        found = -1.0
    if found <= 0:
        if number != text:
            raise UsageError(f"--every takes a time such as 2, 0.5, 5s or 100ms, not `{text}`")
        found = seconds(text, "--every")
    if found < QUICKEST_S:
        raise UsageError(f"--every {text}: at least 20ms", hint="rl watch --every 50ms")
    return found


def _times(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise UsageError(f"--times takes 1 or more, not `{text}`")
    return int(text)


def _command_line(args: Namespace) -> str:
    """Return the shell command that is meant, if one is."""
    if args.cmd is not None:
        if args.what or args.match or args.trial:
            raise UsageError("--cmd alone, or processes alone", hint="rl watch --cmd 'df -h /tmp'")
        if not args.cmd.strip():
            raise UsageError("--cmd is empty", hint="rl watch --cmd 'df -h /tmp'")
        return str(args.cmd)
    from relaunch.look.matching import is_command

    if len(args.what) == 1 and is_command(args.what[0], os.environ.get("PATH", os.defpath)):
        return str(args.what[0])
    return ""


def _watch(args: Namespace, every_s: float, times: int) -> Watch | None:
    """Find what is meant; None when all of it is said already."""
    from relaunch.look.eyes import Eyes, Wanted

    trial = _trial(args)
    if trial is not None and not trial.running:
        _tell_ended(trial, args.color)
        return None
    named = _matches(args, trial)
    matches, title, is_certain = named if named else (None, "", False)
    if matches is not None and not os.path.exists("/proc/self/stat"):
        raise UsageError("processes are read from /proc, which this system does not have")
    if matches is None and not (args.gpu or args.disk):
        raise UsageError("what to watch?", hint="rl watch python, or rl watch last")
    for path in args.disk:
        if not os.path.exists(path):
            raise UsageError(f"--disk {path}: no such path")
    wanted = Wanted(matches=matches, without=(os.getpid(),), disks=args.disk)
    eyes = Eyes(wanted, began=time.monotonic())
    sees_gpus = args.gpu and eyes.has_gpus
    if args.gpu and not sees_gpus:
        none = "--gpu: the driver shows no GPU here"
        if matches is None and not args.disk:
            raise UsageError(none, hint="rl doctor")
        draw.remark(f"rl: {none}; the rest is watched   try: rl doctor")
    return Watch(
        title=title or " ".join([*(["gpu"] if sees_gpus else []), *args.disk]),
        eyes=eyes,
        every_s=every_s,
        times=times,
        until_end=args.until_end or (is_certain and not sys.stdout.isatty()),
        trial=trial,
        sort=_sort(args.sort),
        each=args.each,
        gpu=sees_gpus,
        color=args.color,
        waiting="" if matches is None else title,
        aside=_aside(args.what),
    )


def _aside(words: Sequence[str]) -> str:
    """Say how a word that is a program would be run itself."""
    if len(words) != 1 or not words[0].isascii() or " " in words[0]:
        return ""
    from relaunch.look.matching import is_command

    meant = is_command(f"{words[0]} x", os.environ.get("PATH", os.defpath))
    return f"the command itself: rl watch --cmd {draw.quote(words[0])}" if meant else ""


def _sort(text: str | None) -> str:
    if text is None:
        return "rss GB"
    from relaunch.cli.watch_rows import SORTS

    for title in SORTS:
        if text in (title, title.split()[0].rstrip("%").removesuffix("/s")):
            return title
    short = (title.split()[0].rstrip("%").removesuffix("/s") for title in SORTS)
    names = ", ".join(dict.fromkeys(short))
    raise UsageError(f"--sort takes {names}; not `{text}`")


def _trial(args: Namespace) -> Trial | None:
    words = [word for word in args.what if word == "last" or word.startswith("#")]
    if args.trial is None and not words:
        return None
    if len(args.what) > (args.trial is None):
        raise UsageError("a trial is watched alone", hint="rl watch last")
    from relaunch.session.watched import trial_to_watch

    return trial_to_watch(opened.here()[1], args.trial or words[0])


def _matches(args: Namespace, trial: Trial | None) -> tuple[Matches, str, bool] | None:
    """Return who matches, how that is called, and whether only those can match that are there."""
    from relaunch.look.matching import any_of, by_pattern, by_pid

    uid = _uid(args.user) if args.user is not None else None
    if trial is not None:
        from relaunch.session.watched import processes_of

        return processes_of(trial), f"#{trial.id}", True
    several: list[Matches] = []
    texts = [*args.what, *([args.match] if args.match is not None else [])]
    for text in texts:
        if text.isdecimal() and text != args.match:
            found = by_pid(int(text))
            if found is None:
                raise UsageError(f"no process {text}", hint=f"rl watch --match {text}")
            several.append(found)
        else:
            several.append(by_pattern(_regex(text), uid))
    if not several and uid is not None:
        several.append(by_pattern(None, uid))
    if not several:
        return None
    title = " ".join(texts) + (f" of {args.user}" if args.user else "")
    is_certain = all(text.isdecimal() for text in texts) and args.match is None
    return any_of(several), title.strip(), is_certain and bool(texts)


def _regex(text: str) -> re.Pattern[str]:
    from relaunch.patterns import compiled

    if not text:
        raise UsageError("an empty pattern matches everything", hint="rl watch --user $USER")
    try:
        return compiled(text)
    except ValueError as error:
        import re

        hint = f"rl watch {draw.quote(re.escape(text))}"
        raise UsageError(f"`{text}` is no regular expression: {error}", hint=hint) from None


def _uid(text: str) -> int:
    if text.isdecimal():
        return int(text)
    import pwd

    try:
        return pwd.getpwnam(text).pw_uid
    except KeyError:
        raise UsageError(f"no user `{text}`", hint="rl watch --user $USER") from None


def _tell_ended(trial: Trial, color: str) -> None:
    """Draw what a trial that is over used."""
    from relaunch.cli.watch_told import told

    lines = told(trial, width=draw.width(), pen=draw.pen(choice=color), height=6)
    if lines:
        draw.remark(f"rl: #{trial.id} has ended; what it used:")
        draw.say("\n".join(lines) + "\n")
    else:
        draw.remark(f"rl: #{trial.id} has ended, and nobody watched it   try: rl run --watch")
