"""Runs the program on a terminal of its own, kept like the person's, when it writes to one."""

from __future__ import annotations

import os
import select

from relaunch.proc.keeper import fork_session
from relaunch.proc.supervise import Supervision
from relaunch.proc.terminal import Terminal, give_back, interrupts, open_pty, set_size
from relaunch.proc.tree import is_stopped, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Mapping, Sequence

    from relaunch.proc.supervise import ChunkSink
else:
    import _signal

_LOOK_FOR_FOREGROUND_S = 0.25


class TerminalSupervision(Supervision):
    """One program on a pty, in a session of its own, stopped and continued with us."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        chunk: ChunkSink,
        stdin: bool = True,
    ) -> None:
        """Remember the terminal as it is."""
        super().__init__(argv, cwd=cwd, env=env, chunk=chunk, stdin=stdin)
        self._keyboard = stdin and 0 not in self.closed and os.isatty(0)
        self._terminal = Terminal(0 if self._keyboard else 1)
        self._master = self._statuses = -1
        self._typed = self._said = b""
        self._reading = False
        self._continued = 0

    def launch(self, quiet: bool) -> None:
        """Start the program on a new pty; streams that are no terminals stay apart."""
        # Without a keyboard our terminal stays as it is, and makes the line ends itself.
        master, slave = open_pty(self._terminal, process_output=self._keyboard)
        self._master = master
        ours = [slave]
        self.start.fds = {1: slave}
        if 0 in self.closed:
            self.start.fds[0] = -1
        elif not self.stdin:
            self.start.fds[0] = os.open(os.devnull, os.O_RDONLY)
            ours.append(self.start.fds[0])
        elif self._keyboard:
            self.start.fds[0] = slave
        if 2 in self.closed:
            self.start.fds[2] = -1
        elif os.isatty(2):
            self.start.fds[2] = slave
        else:
            near, far = os.pipe()
            self.start.fds[2] = far
            ours.append(far)
            self.relay.pipe(near, 2, 2)
        self._statuses, statuses = os.pipe()
        ours.append(statuses)
        self.tree.keeper = self.tree.session = fork_session(self.start, slave, statuses)
        self._helpers.add(self.tree.keeper)
        for fd in ours:
            os.close(fd)
        while b"\n" not in self._said:
            self._said += os.read(self._statuses, 64) or b"0\n"
        pid, _, self._said = self._said.partition(b"\n")
        self.pid = int(pid)
        self.relay.pty(master, 1)
        self.relay.watch(self._statuses, lambda _: self._hear_keeper())
        self._take_terminal()

    def tell_started(self, tell: Callable[[], object]) -> None:
        """Let somebody say something, on a terminal that is not raw."""
        self._leave_terminal()
        tell()
        self._take_terminal()

    def turn(self) -> None:
        """Let one thing happen; in the background, look now and then whether we came forward."""
        if self._keyboard and not self._terminal.is_raw:
            self.relay.turn(_LOOK_FOR_FOREGROUND_S)
            self._take_terminal()
            if not self._terminal.is_there():  # nobody tells a job in the background
                self._keyboard = False
                self.forward(_signal.SIGHUP, to_group=True)
        else:
            self.relay.turn()

    def forward(self, signal: int, to_group: bool) -> None:
        """Pass a signal on to whom it was meant: the program, or its whole process group."""
        if signal == _signal.SIGWINCH and set_size(self._master, self._terminal.size()):
            return  # the kernel has told the program
        if signal == _signal.SIGCONT:
            self._continued += 1
            self._take_terminal()  # before the program draws on it
        if self.pid:
            send(-self.pid if to_group else self.pid, signal)
            if signal == _signal.SIGHUP and not self._terminal.is_there():
                send(-self.pid, _signal.SIGCONT)  # as the kernel does: who is stopped must see it

    def look_at_program(self) -> None:
        """Nothing to see: the keeper is its parent, and tells."""

    def leave(self) -> None:
        """Give the terminal back, and collect the keeper."""
        self._terminal.restore()
        self._collect_keeper()

    def _collect_keeper(self) -> None:
        if self.tree.keeper:
            os.waitpid(self.tree.keeper, 0)
            self._helpers.discard(self.tree.keeper)
            self.tree.keeper = 0
            os.close(self._statuses)

    def after_our_death(self, let_live: bool) -> None:
        """Give the terminal back from the guard, and end what is left."""
        if self._keyboard:
            give_back(self._terminal.settings)
        super().after_our_death(let_live)

    def _take_terminal(self) -> None:
        """Make the terminal raw and read it, if it is ours."""
        if not self._keyboard:
            return
        self._terminal.make_raw()
        if self._terminal.is_raw and not self._reading:
            self._reading = True
            set_size(self._master, self._terminal.size())
            self.relay.watch(0, lambda _: self._read_keys())

    def _leave_terminal(self) -> None:
        if self._reading:
            self._reading = False
            self.relay.forget(0)
        self._terminal.restore()

    def _read_keys(self) -> None:
        try:
            typed = os.read(0, 1 << 16)
        except OSError:
            typed = b""
        if not typed:  # hung up
            self.relay.forget(0)
            self._keyboard = self._reading = False
            return
        interrupt = interrupts(self._master, typed)
        self._typed += typed
        self._type()
        if interrupt:
            self.interrupted()

    def _type(self) -> None:
        """Hand keys on as far as the program's side takes them; the rest waits, and so do we."""
        try:
            self._typed = self._typed[os.write(self._master, self._typed) :]
        except BlockingIOError:
            pass
        except OSError:
            self._typed = b""
        if self._typed and self._reading:
            self._reading = False
            self.relay.forget(0)
            self.relay.watch(self._master, self._type_more, select.POLLIN | select.POLLOUT)
        elif not self._typed and not self._reading:
            self.relay.pty(self._master, 1)
            self._take_terminal()

    def _type_more(self, event: int) -> None:
        if event & ~select.POLLOUT:
            self.relay.read_pty(self._master)
        if event & select.POLLOUT:
            self._type()

    def _hear_keeper(self) -> None:
        said = os.read(self._statuses, 4096)
        self._said += said
        while b"\n" in self._said:
            word, _, self._said = self._said.partition(b"\n")
            self._program_changed(int(word))
        if not said and self.status is None:  # somebody killed the keeper, and so the program
            self.relay.forget(self._statuses)
            self.program_ended(_signal.SIGKILL)

    def _is_held(self) -> bool:
        """Tell whether a companion stopped it, or did for a moment that is over."""
        held = any(one.holds() for one in self.companions)
        return held or (bool(self.companions) and not is_stopped(self.pid))

    def _program_changed(self, status: int) -> None:
        if not os.WIFSTOPPED(status):
            self.relay.forget(self._statuses)
            self.program_ended(status)
            self._collect_keeper()
        elif not self._is_held():
            self._leave_terminal()
            before = self._continued
            self.signals.stop_self(group=True)
            self._take_terminal()
            if self.pid and self._continued == before:  # nobody could have continued us
                send(-self.pid, _signal.SIGCONT)
            if self.pid:
                send(-self.pid, _signal.SIGWINCH)  # draw again
