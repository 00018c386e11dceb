"""Runs the program in the world it would have without us, and sees every byte and its end."""

from __future__ import annotations

import os
import stat
import time

from relaunch.proc.guard import Guard
from relaunch.proc.launch import Start, find_program, fork_program
from relaunch.proc.prctl import (
    become_subreaper,
    forbid_core_dump,
    is_subreaper,
    stop_being_subreaper,
)
from relaunch.proc.relay import Relay
from relaunch.proc.signals import Signals
from relaunch.proc.standard import are_one_file, enlarge, let_go_of_stdin, plug
from relaunch.proc.tree import MARKER, Tree, end_marked, is_below, processes, send
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import NoReturn

    from relaunch.proc.companion import Companion
    from relaunch.proc.tape import Control

    ChunkSink = Callable[[float, int, bytes], object]
else:
    import _signal

__all__ = ["Ended", "Supervision", "die_of", "find_program", "supervise"]

DOUBLE_INTERRUPT_S = 2.0
TIMEOUT_GRACE_S = 5.0
_INTERRUPT_TAIL_S = 5.0
_TO_END = (_signal.SIGTERM, _signal.SIGHUP)
"""Who sends us these wants the program to end: that it does is no failure of its own."""
_JOB_STOPS = (_signal.SIGTSTP, _signal.SIGTTIN, _signal.SIGTTOU)


class Ended(Record):
    """How the program ended: `exit_code`, or `signal` when one killed it."""

    pid: int = 0
    """Who it was; nobody any more."""
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    interrupted: bool = False
    duration_s: float = 0.0
    ended_processes: tuple[str, ...] = ()
    """Processes that outlived the program and were ended: `pid command`."""
    relay_failed: str = ""
    """Why output could not be passed on, as on a full disk; a reader that left is no reason."""


def supervise(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    chunk: ChunkSink,
    timeout_s: float | None = None,
    let_live: bool = False,
    quiet: bool = False,
    stdin: bool = True,
    control: Control | None = None,
    become: Callable[[int], NoReturn] | None = None,
    started: Callable[[], object] | None = None,
    held: Collection[int] = (),
    companions: Sequence[Companion] = (),
    is_shell: bool = False,
    through: Callable[[int, bytes], bytes] | None = None,
) -> Ended:
    """Run `argv` to its end, show each block of output to `chunk`, and leave nothing running.

    Call it from the main thread; nothing else may start or wait for children meanwhile.
    `chunk(monotonic time, stream 1 or 2, data)` is called after the block was passed on.
    `quiet` records without passing on. Without `stdin` it reads nothing, and what is in our
    standard input stays there for who comes next. `control` records all output on a tape, and
    answers the program's questions about it. `become` runs in the new process instead of exec, and
    NotResumed is raised when it says that it cannot. `started()` is called before any output is
    passed on. The program begins with the signals in `held` blocked. `companions` are beside it
    from before its start until all of its tree is gone. Of a shell, Ctrl-C twice is no order to
    end it. What is passed on goes `through` a function, and never over a terminal then. Raises
    LaunchError when it cannot be started.
    """
    kind = Supervision
    if not quiet and through is None and os.isatty(1) and 1 not in plug():
        from relaunch.proc.onterminal import TerminalSupervision

        kind = TerminalSupervision
    if control is not None:
        chunk = control.recording(chunk)
    if companions:
        chunk = _heard_by(companions, chunk)
    run = kind(argv, cwd=cwd, env=env, chunk=chunk, stdin=stdin)
    run.control, run.start.become, run.started = control, become, started
    run.start.held = held
    run.companions = companions
    run.is_shell = is_shell
    run.relay.through = through
    return run.run(timeout_s=timeout_s, let_live=let_live, quiet=quiet)


def _heard_by(companions: Sequence[Companion], chunk: ChunkSink) -> ChunkSink:
    """Let companions know that something was written, before anybody works on it."""

    def hear(when: float, stream: int, data: bytes) -> object:
        for one in companions:
            one.output_came(when)
        return chunk(when, stream, data)

    return hear


def die_of(signal: int) -> NoReturn:
    """End this process as the program ended, so that our parent sees the same."""
    forbid_core_dump()
    if signal not in (_signal.SIGKILL, _signal.SIGSTOP):
        _signal.signal(signal, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [signal])
    os.kill(os.getpid(), signal)
    os._exit(128 + signal)  # only for signals that do not end a process


class Supervision:
    """One program on pipes, in our own process group: the terminal and the shell see one job."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        chunk: ChunkSink,
        stdin: bool = True,
    ) -> None:
        """Find the program; raise LaunchError before anything was changed."""
        self.stdin = stdin
        self.closed = plug()
        self.marker = env.get(MARKER) or f"{os.getpid()}.{time.time_ns()}"
        self.start = Start(argv, cwd, {**env, MARKER: self.marker})
        self.relay = Relay(chunk)
        self.signals = Signals(self._act)
        helpers = set(_children())
        self._was_subreaper = is_subreaper()
        self.tree = Tree(subreaper=become_subreaper(), marker=self.marker, helpers=helpers)
        self._helpers = helpers
        self.status: int | None = None
        self._was = 0
        self._interrupts: list[float] = []
        self._told_to_end: set[int] = set()
        self._killed = self._timed_out = False
        self._deadline = 0.0
        self.control: Control | None = None
        self.started: Callable[[], object] | None = None
        self.companions: Sequence[Companion] = ()
        self._prepared: list[Companion] = []
        self.is_shell = False

    @property
    def pid(self) -> int:
        """The program; 0 when it does not run."""
        return self.tree.program

    @pid.setter
    def pid(self, pid: int) -> None:
        self.tree.program = pid

    def run(self, *, timeout_s: float | None, let_live: bool, quiet: bool) -> Ended:
        """Start it, relay until it ends, end who is left, and put everything back."""
        self.signals.install()
        guard: Guard | None = None
        try:
            self._prepare()
            guard = self._guard = Guard(lambda: self.after_our_death(let_live))
            self._helpers.add(guard.pid)
            self.start.mask = {*self.signals.mask, *self.start.held}
            self.start.ignored = self.signals.ignored
            self.launch(quiet)
            for one in self.companions:
                one.launched(self.pid)
                self._listen(one)
            if self.control is not None:
                self.tree.spares_warm = True
                self.control.attend(self.relay)
            self.relay.watch(self.signals.wake, lambda _: self.signals.drain())
            self.signals.unblock()
            began = time.monotonic()
            self._set_deadline(timeout_s)
            self.start.check()
            self.tree.resumed = self.start.resumed
            if self.started is not None:
                self.tell_started(self.started)
            while self.status is None:
                self.turn()
            duration_s = time.monotonic() - began
            self.relay.drain()
            self._set_deadline(None)
            guard.stop()
            guard = None
            ended = () if let_live else self._end_survivors()
            self.relay.drain()
        finally:
            self._set_deadline(None)
            self.relay.close_all()
            self.leave()
            if guard:
                guard.stop()
            for one in self._prepared:
                one.ended()
            if not self._was_subreaper:  # else daemons of a caller would be ours, never collected
                stop_being_subreaper()
            self.signals.restore()
        return self._ended(self.status, duration_s, ended)

    def _prepare(self) -> None:
        """Let the companions make ready; who was begun is ended, whatever happens."""
        for one in self.companions:
            self._prepared.insert(0, one)
            self.start.env.update(one.prepare())
            self._helpers.update(one.helpers())
        self.start.enters = [one.enter for one in self.companions]

    def _listen(self, one: Companion) -> None:
        """Let a companion tell what it has to tell when it comes."""
        voice = one.voice()

        def hear(_event: int) -> None:
            more = [False]
            self.tell_started(lambda: more.append(one.speak()))
            if not more[-1]:
                self.relay.forget(voice)

        if voice >= 0:
            self.relay.watch(voice, hear)

    def launch(self, quiet: bool) -> None:
        """Start the program with a pipe for each stream it has."""
        ours: list[int] = []
        for number in (1, 2):
            if number in self.closed:
                self.start.fds[number] = -1
                continue
            if number == 2 and are_one_file(1, 2):
                self.start.fds[2] = self.start.fds[1]  # two pipes would lose the order
                continue
            near, far = os.pipe()
            enlarge(near)
            self.start.fds[number] = far
            ours.append(far)
            self.relay.pipe(near, -1 if quiet else number, number)
            if not quiet and stat.S_ISFIFO(os.fstat(number).st_mode):
                self.relay.notice_lost_reader(near, number)
        if 0 in self.closed:
            self.start.fds[0] = -1
        elif not self.stdin:
            self.start.fds[0] = os.open(os.devnull, os.O_RDONLY)
            ours.append(self.start.fds[0])
        self.pid = fork_program(self.start)
        for fd in ours:
            os.close(fd)
        if self.stdin and not quiet and stat.S_ISFIFO(os.fstat(0).st_mode):
            let_go_of_stdin()

    def tell_started(self, tell: Callable[[], object]) -> None:
        """Let somebody say something before the program's output comes."""
        tell()

    def turn(self) -> None:
        """Let one thing happen."""
        self.relay.turn()

    def forward(self, signal: int, to_group: bool) -> None:
        """Pass a signal on, unless the program got it with the rest of our group."""
        if self.pid and not to_group:
            send(self.pid, signal)

    def look_at_program(self) -> None:
        """See whether the program ended, or was stopped: then we stop too, for the shell to see."""
        if self.pid:
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                if os.WSTOPSIG(status) in _JOB_STOPS:
                    self.signals.stop_self(group=False)
            elif pid:
                self.program_ended(status)

    def program_ended(self, status: int) -> None:
        """Remember how it ended; its pid is nobody's from now on."""
        self.status = status
        self._was, self.pid = self.pid, 0

    def leave(self) -> None:
        """Put back what was changed, and collect a program that could not be started."""
        if self.pid:
            try:
                os.waitpid(self.pid, 0)
            except ChildProcessError:  # seen meanwhile
                pass
            self.pid = 0

    def after_our_death(self, let_live: bool) -> None:
        """Clean up in the guard when we were killed."""
        if not let_live:
            end_marked(self.marker)
        for one in self._prepared:
            one.after_our_death()

    def interrupted(self) -> None:
        """Count a Ctrl-C; the second within two seconds ends everything."""
        self._tell_to_end()
        now = time.monotonic()
        is_second = self._interrupts and now - self._interrupts[-1] <= DOUBLE_INTERRUPT_S
        if is_second and not self.is_shell:
            self._killed = True
            self.tree.kill()
        self._interrupts.append(now)

    def _act(self, signal: int) -> None:
        if signal == _signal.SIGCHLD:
            self.look_at_program()
            self.tree.reap()
        elif signal == _signal.SIGALRM and 0 < self._deadline <= time.monotonic():
            self._out_of_time()
        else:
            sender = self._guard.group_sender(signal)
            self.forward(signal, sender is not None)
            if signal == _signal.SIGINT:
                self.interrupted()
            elif signal in _TO_END and not (sender and is_below(sender, os.getpid())):
                self._told_to_end.add(signal)

    def _set_deadline(self, seconds: float | None) -> None:
        # A timer, not the poll's timeout: it also comes while a write is blocked.
        if seconds is None:
            if self._deadline:
                _signal.setitimer(_signal.ITIMER_REAL, 0)
            self._deadline = 0.0
            return
        self._deadline = time.monotonic() + seconds
        _signal.setitimer(_signal.ITIMER_REAL, max(seconds, 0.000_001) + 0.001)

    def _out_of_time(self) -> None:
        if self._timed_out:
            self.tree.kill()
            self._set_deadline(TIMEOUT_GRACE_S)
            return
        self._timed_out = True
        self._tell_to_end()
        self._set_deadline(TIMEOUT_GRACE_S)
        self.tree.signal(_signal.SIGTERM)
        self.tree.signal(_signal.SIGCONT)

    def _tell_to_end(self) -> None:
        for one in self.companions:
            one.to_end()

    def _end_survivors(self) -> tuple[str, ...]:
        if self.tree.nobody_left():
            return ()
        return self.tree.end(self.relay.turn, were_asked=self._killed or self._timed_out)

    def _ended(self, status: int, duration_s: float, ended: tuple[str, ...]) -> Ended:
        signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = None if signal else os.WEXITSTATUS(status)
        return Ended(
            pid=self._was,
            exit_code=code,
            signal=signal,
            timed_out=self._timed_out,
            interrupted=self._killed or self._interrupt_ended_it(code, signal),
            duration_s=duration_s,
            ended_processes=ended,
            relay_failed=self.relay.failed,
        )

    def _interrupt_ended_it(self, code: int | None, signal: int | None) -> bool:
        if (signal or (code or 0) - 128) in self._told_to_end:
            return True
        if not self._interrupts or code == 0:
            return False
        recent = time.monotonic() - self._interrupts[-1] <= _INTERRUPT_TAIL_S
        return recent or signal == _signal.SIGINT or code == 128 + _signal.SIGINT


def _children() -> list[int]:
    """List children we have already: helpers of ours, not of the tree."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return []
    except AttributeError:  # macOS before 3.13
        pass
    me = os.getpid()
    return [process.pid for process in processes() if process.parent == me]
