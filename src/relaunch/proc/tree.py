"""Who belongs to the program, who outlived it, and how all of them are ended."""

from __future__ import annotations

import os
import time

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Collection, Iterable
else:
    import _signal

MARKER = "RELAUNCH_TRIAL"
"""The environment variable that every process of a trial carries."""

WARM_NAMES = frozenset(("rl-snapshot", "rl-host"))
"""What the processes that a warm run leaves behind on purpose call themselves."""
_WARM_RUNNER = "/inside/warm/main.py"

TERM_GRACE_S = 2.0
UNASKED_S = 0.5
_KILL_LIMIT_S = 5.0


class Process(Record):
    """One process as the kernel lists it."""

    pid: int
    parent: int
    session: int
    state: str
    name: str


def read_stat(text: str) -> Process | None:
    """Read one /proc/PID/stat; the name may hold blanks and brackets itself."""
    head, bracket, tail = text.rpartition(")")
    fields = tail.split()
    pid, _, name = head.partition(" (")
    if not bracket or len(fields) < 4 or not pid.isdigit():
        return None
    return Process(
        pid=int(pid), parent=int(fields[1]), session=int(fields[3]), state=fields[0], name=name
    )


def processes() -> list[Process]:
    """List all processes of the machine that we can see."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return _processes_by_ps()
    found = []
    for name in names:
        if name.isdigit():
            process = read_stat(_read(f"/proc/{name}/stat"))
            if process:
                found.append(process)
    return found or _processes_by_ps()


def _processes_by_ps() -> list[Process]:
    from relaunch.proc.capture import capture

    found = []
    for line in capture(["ps", "-A", "-o", "pid=,ppid=,sess=,state=,comm="]).text.splitlines():
        fields = line.split(None, 4)
        if len(fields) == 5 and fields[0].isdigit() and fields[1].isdigit():
            session = int(fields[2]) if fields[2].isdigit() else 0
            pid, parent = int(fields[0]), int(fields[1])
            found.append(
                Process(pid=pid, parent=parent, session=session, state=fields[3][0], name=fields[4])
            )
    return found


def _read(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        blocks = []
        while block := os.read(fd, 1 << 16):
            blocks.append(block)
        return os.fsdecode(b"".join(blocks))
    except OSError:
        return ""
    finally:
        os.close(fd)


def is_below(pid: int, root: int) -> bool:
    """Tell whether a process is a descendant of another; one that is gone is not."""
    parents = {process.pid: process.parent for process in processes()}
    while pid > 1 and pid != root:
        pid = parents.get(pid, 0)
    return pid == root


def below(root: int, among: Iterable[Process], without: Collection[int] = ()) -> list[Process]:
    """Return the descendants of `root`, not looking below nor at those in `without`."""
    children: dict[int, list[Process]] = {}
    for process in among:
        children.setdefault(process.parent, []).append(process)
    found, todo = [], [root]
    while todo:
        for process in children.pop(todo.pop(), ()):
            if process.pid not in without:
                found.append(process)
                todo.append(process.pid)
    return found


class Tree:
    """The processes of one trial.

    With the subreaper, all of them are below us, whatever they did to get away. Without it, they
    are those below the program, those of its session, and those that carry the marker.
    """

    def __init__(self, *, subreaper: bool, marker: str, helpers: Collection[int]) -> None:
        """Know our own helpers, which are below us too but not of the tree."""
        self._subreaper = subreaper
        self._marker = marker
        self._helpers = helpers
        self.program = 0
        """The program while it runs, whose end is not ours to collect."""
        self.session = 0
        """The session that was made for the program, when one was."""
        self.keeper = 0
        """Our process that leads that session."""
        self.resumed = 0
        """The program itself, and its session, when `program` only stands for it."""
        self.spares_warm = False
        """Snapshots and their host are to outlive the program."""

    def living(self) -> list[Process]:
        """List the processes of the tree that still run, the program among them."""
        everyone = processes()
        ours = {*self._helpers, os.getpid()}
        if self.spares_warm:
            ours.update(p.pid for p in everyone if is_warm(p))
        found = {p.pid: p for p in below(os.getpid(), everyone, ours)}
        if self.keeper:
            found.pop(self.keeper, None)
            ours.add(self.keeper)
            found.update((p.pid, p) for p in below(self.keeper, everyone, ours))
        if self.resumed:
            found.update((p.pid, p) for p in everyone if p.session == self.resumed)
        if not self._subreaper:
            marked = set(leftovers(self._marker)) if self._marker else set()
            for process in everyone:
                if process.pid in marked or (self.session and process.session == self.session):
                    found[process.pid] = process
        return [p for p in found.values() if p.pid not in ours and p.state not in "ZX"]

    def reap(self) -> None:
        """Collect orphans that ended, never the program nor a helper."""
        if not self._subreaper:
            return
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if ended is None or ended.si_pid in (self.program, self.keeper):
                    return
                if ended.si_pid in self._helpers:
                    return
                os.waitpid(ended.si_pid, os.WNOHANG)
            except ChildProcessError:
                return

    def nobody_left(self) -> bool:
        """Tell cheaply that no process is left; False means that one has to look."""
        if not self._subreaper or self.resumed:
            return False
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        return False

    def signal(self, signal: int) -> list[Process]:
        """Send `signal` to all of the tree; return whom."""
        living = self.living()
        for process in living:
            # Who stands for the program passes on what can be passed on.
            if process.pid != self.resumed or not self.program or signal == _signal.SIGKILL:
                send(process.pid, signal)
        return living

    def kill(self) -> None:
        """End all of the tree now, including who is born meanwhile."""
        deadline = time.monotonic() + _KILL_LIMIT_S
        while self.signal(_signal.SIGKILL) and time.monotonic() < deadline:
            self.reap()

    def end(self, wait: Callable[[float], object], *, were_asked: bool) -> tuple[str, ...]:
        """End who is left and return them as `pid command`; `wait(seconds)` passes the time.

        Who ends by itself within `UNASKED_S` is not counted: a `tee` needs a moment to see the
        end of its input, and to write the last lines. Nor is who ends because all `were_asked` to.
        """
        if self._await_end(wait, TERM_GRACE_S if were_asked else UNASKED_S):
            return ()
        ended = {p.pid: f"{p.pid} {command(p)}" for p in self.living()}
        if not were_asked:
            self.signal(_signal.SIGTERM)
            self.signal(_signal.SIGCONT)  # a stopped process would not see it
        if were_asked or not self._await_end(wait, TERM_GRACE_S):
            ended.update((p.pid, f"{p.pid} {command(p)}") for p in self.living())
            self.kill()
            self._await_end(wait, TERM_GRACE_S)
        return tuple(ended.values())

    def _await_end(self, wait: Callable[[float], object], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        pause = 0.002
        while True:
            self.reap()
            if self.nobody_left() or not self.living():
                self.reap()
                return True
            if time.monotonic() >= deadline:
                return False
            wait(pause)
            pause = min(pause * 2, 0.05)


def send(pid: int, signal: int) -> bool:
    """Send a signal to a process that may be gone."""
    try:
        os.kill(pid, signal)
    except OSError:
        return False
    return True


def command(process: Process) -> str:
    """Return the command line of a process, in short; its name where that cannot be read."""
    words = _read(f"/proc/{process.pid}/cmdline").rstrip("\0").split("\0")
    line = " ".join(words).replace("\n", " ")
    return (line if len(line) <= 80 else line[:79] + "…") or process.name


def is_warm(process: Process) -> bool:
    """Tell whether a process is a snapshot or a host of a warm run, and not just called so."""
    if process.name not in WARM_NAMES:
        return False
    words = _read(f"/proc/{process.pid}/cmdline").split("\0")
    return any(word.endswith(_WARM_RUNNER) for word in words[:-1])


def leftovers(*markers: str) -> list[int]:
    """Find the processes of the trials `markers`, whoever their parent is now.

    Snapshots that they left are none: they wait for the trials to come.
    """
    wanted = {f"{MARKER}={marker}" for marker in markers}
    found = []
    for process in processes():
        environ = _read(f"/proc/{process.pid}/environ") if process.pid != os.getpid() else ""
        if MARKER not in environ or process.state in "ZX" or is_warm(process):
            continue
        if not wanted.isdisjoint(environ.split("\0")):
            found.append(process.pid)
    return found


def end_marked(*markers: str) -> None:
    """End every process of these trials, looking again until none shows for a while.

    One that is just about to become another program has no environment to be read.
    """
    quiet_looks = looks = 0
    while True:
        pids = leftovers(*markers)
        end_all(pids)
        quiet_looks = 0 if pids else quiet_looks + 1
        looks += 1
        if quiet_looks == 4 or looks == 40:
            return
        time.sleep(0.05)


def end_all(pids: Iterable[int], *, grace_s: float = TERM_GRACE_S) -> list[int]:
    """End processes of a trial: ask, wait, insist. Return who is still there."""
    left = [pid for pid in pids if send(pid, _signal.SIGTERM)]
    for pid in left:
        send(pid, _signal.SIGCONT)
    left = _wait_gone(left, grace_s)
    for pid in left:
        send(pid, _signal.SIGKILL)
    return _wait_gone(left, grace_s)


def end_adopted(pids: Iterable[int]) -> None:
    """End processes that became our children when their parents ended, and collect them."""
    pids = list(pids)
    end_all(pids)
    for pid in pids:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            pass


def _wait_gone(pids: list[int], seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds
    while pids and time.monotonic() < deadline:
        time.sleep(0.01)
        pids = [pid for pid in pids if is_running(pid)]
    return pids


class OwnTime:
    """How long a process has run or slept since the first look, without its waits for a core.

    Measured on its first thread; the more frequent the looks, the more exact.
    """

    def __init__(self, pid: int, *, gap_s: float) -> None:
        """Begin now; a longer gap between two looks counts as `gap_s`: we had no core ourselves."""
        self._pid = pid
        self._gap_s = gap_s
        self._ran_before = self._ran_s()
        self._slept_s = 0.0
        self._looked = time.monotonic()

    def look(self) -> float:
        """Return the seconds so far; all that have passed, if the kernel does not say."""
        now, ran_s = time.monotonic(), self._ran_s()
        process = read_stat(_read(f"/proc/{self._pid}/stat"))
        if ran_s < 0 or process is None or process.state != "R":
            self._slept_s += min(now - self._looked, self._gap_s)
        self._looked = now
        return self._slept_s + max(0.0, ran_s - self._ran_before)

    def _ran_s(self) -> float:
        words = _read(f"/proc/{self._pid}/schedstat").split()
        return int(words[0]) / 1e9 if words else -1.0


def is_stopped(pid: int) -> bool:
    """Tell whether a process is stopped right now."""
    process = read_stat(_read(f"/proc/{pid}/stat"))
    return process is None or process.state in "Tt"


def is_running(pid: int) -> bool:
    """Tell whether a process lives; one that ended and was not collected yet does not."""
    if not send(pid, 0):
        return False
    process = read_stat(_read(f"/proc/{pid}/stat"))
    return process is None or process.state not in "ZX"


def ladder() -> list[tuple[str, bool, str]]:
    """Try each rung on a tiny child: what it is, whether it works here, and what that means."""
    from relaunch.proc.rungs import climb

    return climb()
