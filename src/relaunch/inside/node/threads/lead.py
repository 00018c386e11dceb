"""The one process of all ranks: a thread for each, and the word that ends them together."""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from relaunch.inside.node import rank as process
from relaunch.inside.node.cuda import gpus
from relaunch.inside.node.threads import local
from relaunch.inside.node.threads.group import Threads, lacks
from relaunch.inside.node.threads.meeting import identity, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from relaunch.inside.node.script import Program
    from relaunch.inside.node.threads.meeting import Place, Trouble

FILE = "node.json"
"""In the folder of the trial: why the ranks could not go on."""
_TRIAL = "RELAUNCH_TRIAL"
_UNREADY = 2
_STACK_BYTES = 16 << 20
_NEWCOMERS_S, _GATHERING_S = 1.0, 20.0
"""What ranks that are on their way get to arrive, for the whole picture: the next, and all."""
_AT_WORK_S, _ENOUGH_S = 0.002, 4.0
"""CPU time that only ranks on their way use: between two looks; and in all, when it is enough."""


def be(program: Program, *, env: Mapping[str, str], ranks: int, mode: Any, tell: int) -> NoReturn:
    """Run all ranks, in a process of their own. Never returns."""
    code = 1
    try:
        process.settle(env, "rl-threads", program)
        torch: Any = sys.modules["torch"]
        why = lacks(torch)
        if why:
            sys.stderr.write(f"rl: no ranks as threads: {why}; without --threads they are forked\n")
            process.leave(_UNREADY)
        process.start_hook()
        process.renew(env)
        gpus.begin(ranks, 0)
        os.chdir(program.cwd)
        program.settle()
        local.begin()
        code = _Ranks(torch, program, ranks, tell).run()
    except Exception as error:
        process.cannot(error)
    finally:
        process.leave(code)


class _Ranks:
    """All of them."""

    def __init__(self, torch: Any, program: Program, ranks: int, tell: int) -> None:
        self._program = program
        self._count = ranks
        self._tell = tell
        self._once = threading.Lock()
        self._idents: dict[int, int] = {}
        self._group = Threads(torch, ranks, self._stuck)
        self._group.install()
        _no_workers(torch)

    def run(self) -> int:
        program = self._program
        if program.kind != "module":
            program.code()
        threading.stack_size(_STACK_BYTES)
        threads = []
        for rank in range(self._count):
            thread = threading.Thread(target=self._run, args=(rank,), name=f"rank {rank}")
            vars(thread)[local._RANK] = rank
            threads.append(thread)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        _end_lines()
        return 0

    def _run(self, rank: int) -> None:
        """Be one rank, to its end."""
        self._idents[rank] = threading.get_ident()
        try:
            self._execute()
        except SystemExit as error:
            if error.code not in (None, 0):
                self._failed(error)
        except BaseException as error:
            self._failed(error)
        trouble = self._group.meeting.leave(rank)
        if trouble is not None:
            self._stuck(trouble)

    def _execute(self) -> None:
        program = self._program
        if program.kind == "module":
            import runpy

            runpy.run_module(program.target, run_name="__main__", alter_sys=False)
            return
        main = program.module()
        sys.modules["__main__"] = main  # the last one's: they differ only in what they hold
        exec(program.code(), vars(main))

    def _failed(self, error: BaseException) -> None:
        """One rank failed: that is the end of all; never returns."""
        self._once.acquire()  # the first one only; the others wait here until all is over
        os.write(self._tell, process.FAILED)
        code = 1
        if isinstance(error, SystemExit):
            code = error.code & 0xFF if isinstance(error.code, int) else 1
            if not isinstance(error.code, int):
                sys.stderr.write(f"{error.code}\n")
        else:
            from relaunch.inside.node.script import without_ours

            args = (type(error), error, without_ours(error), threading.current_thread())
            threading.excepthook(threading.ExceptHookArgs(args))
        _end_lines()
        os._exit(code)

    def _stuck(self, trouble: Trouble) -> None:
        """Say who cannot go on, and end; never returns."""
        self._once.acquire()
        os.write(self._tell, process.FAILED)
        meeting = self._group.meeting
        self._gather()
        with meeting.lock:
            lines, key = told(meeting, trouble, self._running()), identity(meeting, trouble)
        folder = os.environ.get(_TRIAL, "")
        facts = {"what": trouble.kind, "title": trouble.title, "key": key, "stacks": lines[1:]}
        if os.path.isdir(folder):
            with open(os.path.join(folder, FILE), "w", encoding="utf-8") as file:
                json.dump(facts, file)
        _end_lines()
        data = "\n".join([*lines, ""]).encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(2, data) :]
        os._exit(1)

    def _running(self) -> dict[int, list[Place]]:
        """Return where those are that wait for nobody."""
        frames = sys._current_frames()
        busy = {*range(self._count)} - self._group.meeting.waiting.keys()
        return {
            rank: self._group.stack(frames[ident])
            for rank, ident in self._idents.items()
            if rank in busy and ident in frames
        }

    def _gather(self) -> None:
        """Wait for those who are still on their way, as long as some arrive or use the CPU.

        The clock alone tells nothing: on a busy machine a rank may stand still for a second.
        """
        meeting = self._group.meeting
        last, count = time.monotonic(), -1
        until, used = last + _GATHERING_S, _others_cpu_s()
        enough = used + _ENOUGH_S
        while not meeting.is_at_rest and time.monotonic() < min(until, last + _NEWCOMERS_S):
            here = len(meeting.waiting) + len(meeting.gone)
            others = _others_cpu_s()
            if others > enough:
                return
            if here != count or others - used > _AT_WORK_S:
                last, count, used = time.monotonic(), here, others
            time.sleep(0.005)


def _others_cpu_s() -> float:
    """Return the CPU time of all threads but this one."""
    return time.process_time() - time.thread_time()


def _end_lines() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, local.Lines):
            stream.end()


def _no_workers(torch: Any) -> None:
    """Have data loaders work in their own thread: a fork would have one thread of hundreds."""
    kind = torch.utils.data.DataLoader
    theirs = kind.__init__

    def begin(self: Any, *args: Any, **words: Any) -> None:
        words = {**words, "num_workers": 0, "persistent_workers": False, "prefetch_factor": None}
        words.update(multiprocessing_context=None, timeout=0)
        theirs(self, *args, **words)

    kind.__init__ = begin
