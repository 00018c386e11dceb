"""Why the stacks of a process may not be read, and exactly what would allow it."""

from __future__ import annotations

import os
import pwd

from relaunch.look.usage import owner
from relaunch.proc.prctl import ptrace_scope
from relaunch.proc.status import tracer_of
from relaunch.record import Record
from relaunch.textfile import read_if_there

_SYS_PTRACE = 19


class Facts(Record):
    """What decides whether we may look into a process."""

    pid: int
    ours: int
    """Our user."""
    theirs: int
    """The user of the process; -1 when it is gone."""
    scope: int
    """kernel.yama.ptrace_scope; 0 where there is none."""
    is_able: bool
    """We have CAP_SYS_PTRACE."""
    tracer: int = 0
    """A debugger that already has it."""

    @property
    def is_anothers(self) -> bool:
        """Tell whether it belongs to somebody else, and we have no right to look: no way works."""
        return self.theirs not in (-1, self.ours) and not self.is_able and self.ours != 0


def facts(pid: int) -> Facts:
    """Ask the kernel."""
    return Facts(
        pid=pid,
        ours=os.geteuid(),
        theirs=owner(pid),
        scope=ptrace_scope(),
        is_able=_is_able(read_if_there("/proc/self/status")),
        tracer=tracer_of(pid),
    )


def _is_able(status: str) -> bool:
    for line in status.splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _SYS_PTRACE & 1)
    return False


def refusal(known: Facts) -> tuple[str, str]:
    """Say why, and what to type."""
    as_root = f"sudo $(command -v rl) stacks {known.pid}"
    if known.theirs < 0:
        return "it has ended", ""
    if known.tracer:
        return f"process {known.tracer} debugs it already", ""
    if known.is_able:
        return "it belongs to a container or a user namespace", "run rl in there"
    if known.ours == 0:
        return "root without CAP_SYS_PTRACE", "docker run --cap-add=SYS_PTRACE"
    if known.theirs != known.ours:
        return f"no permission: it belongs to {user_name(known.theirs)}", as_root
    if known.scope == 1:
        why = "kernel.yama.ptrace_scope is 1: only who started it may look"
        return why, "sudo sysctl kernel.yama.ptrace_scope=0"
    if known.scope == 2:
        return "kernel.yama.ptrace_scope is 2: only root may look", as_root
    if known.scope == 3:
        return "kernel.yama.ptrace_scope is 3: nobody may look until the next boot", ""
    return "no permission: it has more rights than you", as_root


def user_name(uid: int) -> str:
    """Name a user."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
