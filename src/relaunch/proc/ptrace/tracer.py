"""Stops threads before the calls that a policy wants, and passes everything else on untouched.

One process traces a whole tree. New threads and processes are traced from their first instruction.
Signals, stops for job control, `exec` from a thread and `vfork` reach the program as ever.
"""

from __future__ import annotations

import os
import time

from relaunch.proc.ptrace import kernel
from relaunch.proc.ptrace.kernel import CONT, LISTEN, SYSCALL, WALL, Gone, resume
from relaunch.proc.ptrace.numbers import numbers
from relaunch.proc.ptrace.policy import GO, TELL, Call
from relaunch.proc.status import handles, process_of, state_of, under_way

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal

    from relaunch.proc.ptrace.policy import Policy
else:
    import _signal

_CALL_STOP = _signal.SIGTRAP | 0x80
_GROUP_STOPS = (_signal.SIGSTOP, _signal.SIGTSTP, _signal.SIGTTIN, _signal.SIGTTOU)
_NEW = (kernel.EVENT_FORK, kernel.EVENT_VFORK, kernel.EVENT_CLONE)
_OPTIONS = (
    kernel.SYSGOOD | kernel.TRACE_FORK | kernel.TRACE_VFORK | kernel.TRACE_CLONE | kernel.TRACE_EXEC
)
_BEGINS_AGAIN = -516  # ERESTART_RESTARTBLOCK, which only a tracer sees
_MOMENTS, _MOMENT_S = 40, 0.005
HANDLER_DONE = "rt_sigreturn"
"""The call with which a handler of signals ends."""


class Enough(Exception):
    """Somebody wants the trace to end while the program runs."""


class Tracer:
    """Traces what it was given until nothing of it is left, or `stop()` is called."""

    def __init__(self, policy: Policy, *, filtered: bool) -> None:
        """Prepare; `filtered` programs stop only before wanted calls, others before every call."""
        known = numbers()
        wanted = {name for name in policy.calls if name in known}
        self.policy = policy
        self._names = {known[name]: name for name in wanted}
        self._filtered = filtered
        self._go_on = CONT if filtered else SYSCALL
        self._process: dict[int, int] = {}
        """Thread to its process."""
        self._call: dict[int, Call | None] = {}
        """Thread to the call whose result is waited for; None: nobody asks for it."""
        self._programs: set[int] = set()
        """Processes that became a program of their own after their fork."""
        self._waiting = self._stopping = False
        self._watching = policy.from_fork
        self._sigreturn = known[HANDLER_DONE]
        self._restart = known["restart_syscall"]
        self._broken_off: dict[int, Call] = {}
        """Thread to the call that it will begin again, under another name."""

    # --- beginning and ending --------------------------------------------------------------------

    def seize(self, pid: int, *, keep_alive: bool = False) -> None:
        """Trace a thread from now on; unless `keep_alive`, it dies with us. Raises OSError."""
        options = _OPTIONS | (kernel.TRACE_SECCOMP if self._filtered else 0)
        kernel.ptrace(kernel.SEIZE, pid, 0, options | (0 if keep_alive else kernel.EXITKILL))
        self._process[pid] = process_of(pid)

    def seize_process(self, pid: int) -> None:
        """Trace all threads of a running process, without harm to it. Raises OSError."""
        missed = True
        while missed:  # a thread may start another one meanwhile
            missed = False
            for tid in map(int, os.listdir(f"/proc/{pid}/task")):
                if tid not in self._process:
                    try:
                        self.seize(tid, keep_alive=True)
                    except Gone:
                        continue
                    missed = True
        for tid in [one for one, process in self._process.items() if process == pid]:
            self._note_under_way(tid)
            try:
                kernel.ptrace(kernel.INTERRUPT, tid)
            except Gone:
                pass

    def _note_under_way(self, tid: int) -> None:
        """Note the call that a thread waits in: our interrupt has it begin again."""
        found = under_way(tid)
        name = self._names.get(found[0]) if found else None
        if found and name is not None:
            self._broken_off[tid] = Call(name, self._process[tid], tid, found[1:7])
            self._broken_off[tid].began = time.monotonic()

    def run(self) -> None:
        """Trace to the end."""
        try:
            while self._process:
                self._one()
        except Enough:
            self.policy.ending()
            self._detach()
        except ChildProcessError:
            pass

    def stop(self) -> None:
        """End the trace from a handler of signals; the program goes on.

        An exception from here could lose what a wait has just returned, and its thread would stay
        stopped for ever. A child that ends at once wakes the wait.
        """
        self._stopping = True
        if self._waiting and os.fork() == 0:
            os._exit(0)

    def _one(self) -> None:
        self._waiting = True
        if self._stopping:
            self._waiting = False
            raise Enough
        tid, status = os.waitpid(-1, WALL)
        self._waiting = False
        self._seen(tid, status)  # a child of our own is nobody's end

    def _detach(self) -> None:
        """Let go of every thread, each where it stands; who starts meanwhile is let go as well."""
        self._waiting = False
        for tid in self._process:
            try:
                kernel.ptrace(kernel.INTERRUPT, tid)
            except (Gone, OSError):
                pass
        try:
            while self._process:
                tid, status = os.waitpid(-1, WALL)
                if not os.WIFSTOPPED(status):
                    self._gone(tid, status)
                    continue
                event, signal = status >> 16, os.WSTOPSIG(status)
                if event in _NEW:
                    self._began(kernel.event_message(tid), tid)
                real = 0 if event or signal == _CALL_STOP else signal
                resume(kernel.DETACH, tid, real)
                self._process.pop(tid, None)
        except (ChildProcessError, Gone):
            pass

    # --- one stop --------------------------------------------------------------------------------

    def _seen(self, tid: int, status: int) -> None:
        """Handle one stop of a thread and let it go on, or note that it ended."""
        if not os.WIFSTOPPED(status):
            self._gone(tid, status)
            return
        if tid not in self._process:  # its own first stop came before the news of it
            self._process[tid] = process_of(tid)
        try:
            self._stopped(tid, status >> 16, os.WSTOPSIG(status))
        except Gone:
            pass  # killed meanwhile; the next wait tells

    def _stopped(self, tid: int, event: int, signal: int) -> None:
        if event == kernel.EVENT_SECCOMP:
            self._before(tid)
        elif signal == _CALL_STOP:
            self._at_call(tid)
        elif event == kernel.EVENT_STOP:
            resume(LISTEN if signal in _GROUP_STOPS else self._next(tid), tid)
        elif event:
            self._event(tid, event)
            resume(self._next(tid), tid)
        else:
            withheld = self._watching and self.policy.signalled(self._process[tid], tid, signal)
            resume(self._next(tid), tid, 0 if withheld else signal)

    def _next(self, tid: int) -> int:
        return SYSCALL if tid in self._call else self._go_on

    def _before(self, tid: int) -> None:
        """Ask the policy about the call that a filtered thread is stopped before."""
        words = kernel.call_info(tid).words
        name = self._names.get(words[0])
        if name is None or not self._watching:
            resume(CONT, tid)
            return
        call = Call(name, self._process[tid], tid, words[1:7])
        answer = self.policy.entered(call)
        if answer == TELL:
            call.began = time.monotonic()
            self._call[tid] = call
            resume(SYSCALL, tid)
            return
        if answer != GO:
            call.fail(answer)
        resume(CONT, tid)

    def _at_call(self, tid: int) -> None:
        """Handle a stop before or after a call."""
        info = kernel.call_info(tid)
        if info.op != kernel.EXIT:
            self._call[tid] = self._entry(tid, info)
            resume(SYSCALL, tid)
            return
        call = self._call.pop(tid, None)
        if call is not None:
            result = info.words[0]
            result = result - (1 << 64) if result >= 1 << 63 else result
            if result == _BEGINS_AGAIN and not self._filtered:
                self._broken_off[tid] = call
            else:
                self.policy.left(call, result)
        resume(self._go_on, tid)

    def _entry(self, tid: int, info: kernel.CallInfo) -> Call | None:
        """Ask about a call of a thread that stops at every one; None: its end is of no interest."""
        broken_off = self._broken_off.pop(tid, None)
        if info.words[0] == self._restart and broken_off is not None:
            self.policy.entered(broken_off)
            return broken_off
        name = self._names.get(info.words[0])
        if name is None or not self._watching:
            return None
        call = Call(name, self._process[tid], tid, info.words[1:7])
        answer = self.policy.entered(call)
        if answer not in (GO, TELL):
            call.fail(answer)
        call.began = time.monotonic()
        return call if answer == TELL else None

    def _event(self, tid: int, event: int) -> None:
        if event in _NEW:
            self._began(kernel.event_message(tid), tid)
        elif event == kernel.EVENT_EXEC:
            former = kernel.event_message(tid)
            if former != tid and former in self._call:
                self._call[tid] = self._call.pop(former)
            for other in [one for one, pid in self._process.items() if pid == tid and one != tid]:
                self._process.pop(other)
                self._call.pop(other, None)
            self._process[tid] = tid
            self._watching = True
            self._programs.add(tid)
            self.policy.became(tid)

    def _began(self, new: int, parent: int) -> None:
        try:
            pid = process_of(new)
        except OSError:  # it has ended already, and its end is still to be waited for
            pid = new
        self._process[new] = pid
        if pid == new:
            self.policy.forked(self._process.get(parent, parent), new)

    def _gone(self, tid: int, status: int) -> None:
        pid = self._process.pop(tid, 0)
        self._call.pop(tid, None)
        self._broken_off.pop(tid, None)
        self._programs.discard(tid)
        if pid == tid:
            self.policy.ended(pid, status)

    # --- for policies ----------------------------------------------------------------------------

    def run_handler(self, pid: int, tid: int, signal: int) -> bool:
        """Have a stopped thread handle a signal of ours now, and return when it has.

        False when it will not: it has no handler, or blocks the signal, or ended. Only for filtered
        threads, and only with HANDLER_DONE among the wanted calls.
        """
        if not self._filtered or not handles(tid, signal):
            return False
        if not kernel.send_to_thread(pid, tid, signal):
            return False
        resume(CONT, tid)
        self._until_handled(tid)
        return True

    def ask_handler(self, pid: int, signal: int) -> bool:
        """Have the main thread of another process, which runs, handle a signal of ours now."""
        if not self._filtered or pid not in self._process or not _will_handle(pid, signal):
            return False
        if state_of(pid) not in "SR":  # one that waits for its vfork cannot answer
            return False
        if not kernel.send_to_thread(pid, pid, signal):
            return False
        self._until_handled(pid)
        resume(CONT, pid)
        return True

    def is_program(self, pid: int) -> bool:
        """Tell whether a process has become a program since its fork; one from before us has."""
        return pid in self._programs or not self._filtered

    def _until_handled(self, tid: int) -> None:
        """Let a thread run until its handler is done, and leave it stopped there."""
        while True:
            _, status = os.waitpid(tid, WALL)
            if not os.WIFSTOPPED(status):
                self._gone(tid, status)
                raise Gone
            if status >> 16 == kernel.EVENT_SECCOMP and self._is_handler_done(tid):
                return
            self._seen(tid, status)

    def _is_handler_done(self, tid: int) -> bool:
        return int(kernel.call_info(tid).words[0]) == self._sigreturn


def _will_handle(pid: int, signal: int) -> bool:
    """Tell whether a signal is handled; Python blocks all while it starts a process."""
    for _ in range(_MOMENTS):
        if handles(pid, signal) or not handles(pid, signal, at_once=False):
            break
        time.sleep(_MOMENT_S)
    return handles(pid, signal)
