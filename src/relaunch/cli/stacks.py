"""`rl stacks`: where is it stuck? Every thread of every process, ranks that agree as one."""

from __future__ import annotations

import os
import sys

from relaunch.cli import draw
from relaunch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from relaunch.look.stacks.ladder import Asked
    from relaunch.session.stacks import Chosen, Taken

EXAMPLES = """\
Examples
  rl stacks                    of the trial that runs here, and all its processes
  rl stacks 12345              a process and all below it; or a trial that runs
  rl stacks train.py           who has that in its command line, and all below
  rl stacks train.py --locals  with variables: `step = 2 (rank 3); 3 (0); 4 (1-2)`
  rl stacks 12345 --native     with the frames of C and C++
  rl stacks --all              every Python process of yours
  rl stacks --job 1234         a Slurm job, on all nodes where it runs
  rl stacks --slurm            all nodes of the allocation that rl alloc holds
  rl stacks --json > a.json    to be kept, or merged with those of other hosts:
  rl stacks --from a.json --from b.json

The same stacks are one, with the ranks that are in it; few beside many are named
as the odd ones out. A process is stopped for some milliseconds while it is read.
"""


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("what", nargs="*", metavar="PID|TRIAL|NAME", help="whose stacks (the trial that runs)")
    add("--trial", metavar="TRIAL", help="the processes of this trial: 3, -1, a name")
    add("--job", metavar="ID", help="the processes of a Slurm job, on all its nodes")
    add("--here", action="store_true", help="of a job: only those on this host")
    add("--slurm", action="store_true", help="all nodes of the allocation that rl alloc holds")
    add("--all", action="store_true", help="every Python process of yours; of all, for root")
    add("--from", dest="kept", metavar="FILE", action="append", default=[],
        help="what --json wrote, here or elsewhere; - is standard input")  # fmt: skip
    add("-l", "--locals", action="store_true", help="variables too, and how they differ")
    add("--native", action="store_true", help="frames of C and C++ too")
    add("--full", action="store_true", help="every frame and variable, also of libraries")
    add("--no-pause", action="store_true", help="read them while they run")
    add("--signal", metavar="SIG", help="where nothing else works: your own faulthandler's signal")
    add("--timeout", metavar="TIME", help="what reading one process may take (5)")
    add("--json", action="store_true", help="all of it as JSON: schema relaunch/stacks/1")
    add("--color", choices=("auto", "always", "never"), default="auto", help="(auto)")


def main(args: Namespace) -> int:
    """Read, merge and draw."""
    taken = _taken(args)
    if args.json:
        _say_json(taken)
        return 0
    from relaunch.cli.stacks_told import Told, remarks
    from relaunch.look.stacks.merge import merge

    told = Told(
        merged=merge(taken.processes),
        width=draw.width(),
        pen=draw.pen(choice=args.color),
        cwd=os.getcwd(),
        full=args.full,
    )
    if not taken.processes:
        where = "on this host" if args.here else "there"
        draw.remark(f"rl: {taken.title}: nothing of it runs {where}")
        for line in taken.problems:
            draw.remark(f"rl: {line}")
        return 0
    draw.say("\n".join(told.lines(taken.title, taken.took_s)) + "\n")
    for line in remarks(taken.processes):
        draw.remark(line)
    for line in taken.problems:
        draw.remark(f"rl: {line}")
    return 0


def _taken(args: Namespace) -> Taken:
    from relaunch.session import stacks

    ways = [bool(args.what), bool(args.trial), bool(args.job), args.slurm, args.all,
            bool(args.kept)]  # fmt: skip
    if sum(ways) > 1:
        raise UsageError("one of: PID|TRIAL|NAME, --trial, --job, --slurm, --all, --from",
                         hint="rl stacks --help")  # fmt: skip
    if args.here and not args.job:
        raise UsageError("--here goes with --job", hint="rl stacks --job 1234 --here")
    if args.kept:
        stdin = sys.stdin.read() if "-" in args.kept else ""
        return stacks.kept(args.kept, stdin)
    if args.slurm:
        return _from_nodes(args)
    if not os.path.exists("/proc/self/stat"):
        raise UsageError("processes are read from /proc, which this system does not have",
                         hint="py-spy dump --pid PID")  # fmt: skip
    asked = _asked(args)
    chosen = _chosen(args)
    if args.job and not args.here:
        from relaunch.session.stacks_slurm import take_of_job

        taken = take_of_job(args.job, _words(args), asked.limit_s)
        if taken is not None:
            return taken
    return stacks.take(chosen, asked)


def _from_nodes(args: Namespace) -> Taken:
    """Let each node of the allocation read its own processes, in the same way."""
    from relaunch.cli.opened import open_project
    from relaunch.session.stacks_slurm import take_from_nodes

    asked = _asked(args)  # a word that is off is told here, not by each node
    return take_from_nodes(open_project(), _words(args), asked.limit_s)


def _words(args: Namespace) -> list[str]:
    """Return the options for who reads elsewhere."""
    words = [f"--{name}" for name in ("locals", "native", "no_pause") if getattr(args, name)]
    words = [word.replace("_", "-") for word in words]
    words += ["--signal", args.signal] if args.signal else []
    words += ["--timeout", args.timeout] if args.timeout else []
    return words


def _chosen(args: Namespace) -> Chosen:
    from relaunch.session import stacks

    if args.trial:
        return stacks.of_trial(args.trial)
    if args.job:
        return stacks.of_slurm_job(args.job)
    if args.all:
        return stacks.of_everyone()
    if not args.what:
        return stacks.of_trial()
    several = [stacks.by_word(word) for word in args.what]
    pids = dict.fromkeys(pid for one in several for pid in one.pids)
    title = several[0].title if len(several) == 1 else f"{several[0].title} and others"
    return several[0].but(title=title, pids=[*pids])


def _asked(args: Namespace) -> Asked:
    from relaunch.cli.launch_options import seconds
    from relaunch.look.stacks.ladder import Asked
    from relaunch.proc.left_out import left_out

    return Asked(
        values=args.locals,
        native=args.native,
        pause=not args.no_pause,
        signal=_signal(args.signal) if args.signal else 0,
        limit_s=seconds(args.timeout, "--timeout") if args.timeout else 5.0,
        without=left_out(),
    )


def _signal(text: str) -> int:
    import signal

    name = text.upper().removeprefix("SIG")
    found = signal.Signals.__members__.get(f"SIG{name}")
    if found is None and text.isdecimal() and int(text) in {*signal.valid_signals()}:
        return int(text)
    if found is None or found in (signal.SIGKILL, signal.SIGSTOP):
        raise UsageError(f"--signal takes the signal that you gave to faulthandler.register, not "
                         f"`{text}`", hint="rl stacks PID --signal USR1")  # fmt: skip
    return int(found)


def _say_json(taken: Taken) -> None:
    import socket

    from relaunch.look.stacks.merge import merge
    from relaunch.look.stacks.wire import merged_json, process_json

    draw.say_json(
        "stacks",
        {
            "title": taken.title,
            "node": socket.gethostname(),
            "took_s": round(taken.took_s, 3),
            **({"problems": [*taken.problems]} if taken.problems else {}),
            "processes": [process_json(one) for one in taken.processes],
            "merged": merged_json(merge(taken.processes)),
        },
    )
