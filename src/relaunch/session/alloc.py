"""Asks Slurm for one allocation, holds it, shows it, gives it back."""

from __future__ import annotations

import os
import select
import signal
import socket
import time

from relaunch.errors import PlaceError, UsageError
from relaunch.proc.capture import own_path
from relaunch.proc.detached import start_detached
from relaunch.proc.tree import end_all, processes, send
from relaunch.record import Record
from relaunch.textfile import make_own_folder
from relaunch.trial.launch.slurm import ask
from relaunch.trial.launch.slurm import held as holding
from relaunch.trial.launch.slurm.ask import State, state_of
from relaunch.trial.launch.slurm.held import ENV, FOLDER, LOG, Held, inside, scrubbed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from relaunch.session.project import Project
    from relaunch.trial.launch.slurm.asked import Asked

_LOOK_S = 0.5
_ENDING_S = 10.0
_GRACE_S = 1.0
_HOLD = """\
echo "pid $$" >&3
log=$0 env=$1 rl=$2 while=$3; shift 3
"$@" >>"$log" 2>&1 &
salloc=$!
exec 3>&-
tail --pid="$rl" -s 0.2 -f /dev/null
[ -e "$env" ] || kill $salloc
inner=$(cat "$env.pid")
if [ -n "$inner" ]; then
    { tail --pid="$inner" -s 1 -f /dev/null; sleep 2
      grep -q salloc /proc/$salloc/cmdline && kill -9 $salloc; } &
fi
wait $salloc
[ -z "$inner" ] || kill "$inner"
job=$(tr '\\0' '\\n' <"$env" | sed -n 's/^SLURM_JOB_ID=//p')
[ "$while" = 0 ] || [ -z "$job" ] || exec scancel --quiet "$job" >>"$log" 2>&1
"""
"""Runs salloc, whose words go to the log; of a heterogeneous job that is over it never ends by
itself, but takes all of a CPU (Slurm 22.05). If we are gone before it is granted, the request goes
too; if it is for a while only, it is given back also when salloc itself was killed."""
_GRANTED = """\
umask 077
echo $$ >"$1.pid"
env -0 | grep -za '^SLURM_' | grep -zav '^SLURM_JWT=' >"$1.part" || exit 1
mv "$1.part" "$1" && echo granted >&3 || exit 1
exec 3>&-
shift
exec "$@"
"""
"""What salloc runs: nobody there to be told is a reason to give it back.

Only what Slurm sets is written down: the environment has tokens of the user's.
"""


class Shown(Record):
    """An allocation, and what Slurm says of it now."""

    held: Held
    state: State
    steps: Mapping[str, str] = {}


def folder_of(project: Project) -> str:
    """Return where the allocation of a project is kept."""
    return os.path.join(project.journal.home, FOLDER)


def allocate(
    project: Project,
    asked: Asked,
    *,
    while_pid: int,
    tell: Callable[[str], object],
    keep_own: bool,
) -> Held:
    """Ask for it and wait until it is granted; UsageError with what Slurm says if it is not.

    With `while_pid` it is given back when that process is gone. `tell` hears what it waits for.
    With `keep_own`, variables of salloc count.
    """
    folder = folder_of(project)
    ask.need("salloc", os.environ.get("PATH", os.defpath))
    make_own_folder(os.path.dirname(folder))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    before = current(project)
    if before is not None:
        words = f"allocation {before.held.job} is held already"
        raise UsageError(words, hint="rl alloc, or rl alloc --release")
    holding.forget(folder)
    cwd = os.path.join(project.cwd, asked.folder)
    if not os.path.isdir(cwd):
        raise UsageError(f"--chdir={asked.folder}: there is no such folder")
    near, far = os.pipe()
    try:
        start_detached(
            _command(asked, folder, while_pid),
            cwd=cwd,
            env=_environment(os.environ, keep_own=keep_own),
            inherited=far,
        )
    finally:
        os.close(far)
    waiting = _Waiting(near, os.path.join(folder, LOG), tell)
    try:
        waiting.wait()
    except BaseException:
        waiting.give_up()
        holding.forget(folder)
        raise
    finally:
        os.close(near)
    return _write_down(folder, asked, waiting.pid, while_pid)


def _command(asked: Asked, folder: str, while_pid: int) -> list[str]:
    """Return what holds it: a shell and salloc, around a process that does nothing."""
    env, log = os.path.join(folder, ENV), os.path.join(folder, LOG)
    still = ["sleep", "infinity"]
    if while_pid:
        still = ["tail", f"--pid={while_pid}", "-s", "0.5", "-f", os.devnull]
    words = ["salloc", "--kill-command=KILL"]
    for number, part in enumerate(asked.components):
        words += [*([":"] if number else []), *part]
    words += ["/bin/sh", "-c", _GRANTED, "rl", env]
    ours = [log, env, str(os.getpid()), str(while_pid)]
    return ["/bin/sh", "-c", _HOLD, *ours, *words, *still]


def _environment(env: Mapping[str, str], *, keep_own: bool) -> dict[str, str]:
    """Leave out what other jobs left, and variables that sbatch reads and salloc would not.

    The shell that holds it takes no tool from the current folder either.
    """
    found = {n: v for n, v in scrubbed(env).items() if not n.startswith("SBATCH_")}
    found["PATH"] = own_path(env.get("PATH", os.defpath))
    return found if keep_own else {n: v for n, v in found.items() if not n.startswith("SALLOC_")}


class _Waiting:
    """Until it is granted, or will not be."""

    def __init__(self, near: int, log: str, tell: Callable[[str], object]) -> None:
        self._near, self._log, self._tell = near, log, tell
        self._came = b""
        self._told = 0
        self.pid = 0

    def wait(self) -> None:
        while b"granted\n" not in self._came:
            if not select.select([self._near], [], [], _LOOK_S)[0]:
                self._tell_log()
                continue
            block = os.read(self._near, 4096)
            if not block:
                raise UsageError(self._refusal(), hint="rl alloc --help, sinfo")
            self._came += block
            if self._came.startswith(b"pid ") and b"\n" in self._came:
                self.pid = int(self._came.split()[1])
        self._tell_log()

    def _lines(self) -> list[str]:
        try:
            with open(self._log, encoding="utf-8", errors="replace") as file:
                return [line.strip() for line in file if line.strip()]
        except OSError:
            return []

    def _tell_log(self) -> None:
        """Tell what salloc says while it waits."""
        lines = self._lines()
        for line in lines[self._told :]:
            text = line.removeprefix("salloc: ")
            if "Pending job" in text or "queued and waiting" in text:
                self._tell(text)
        self._told = len(lines)

    def _refusal(self) -> str:
        """Return why it was refused: the first error says more than what came of it."""
        lines = [line.removeprefix("salloc: ") for line in self._lines()]
        errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        said = errors or lines or ["salloc ended without a word"]
        return f"no allocation: {said[0]}"

    def give_up(self) -> None:
        """Take the request back."""
        if self.pid:
            try:
                send(-os.getpgid(self.pid), signal.SIGTERM)
            except OSError:
                return
            until = time.monotonic() + _ENDING_S
            while time.monotonic() < until and select.select([self._near], [], [], _LOOK_S)[0]:
                if not os.read(self._near, 4096):
                    return


def _write_down(folder: str, asked: Asked, pid: int, while_pid: int) -> Held:
    found = holding.kept(folder)
    if found is None:
        raise PlaceError(f"{folder}/{ENV} says nothing of the allocation", hint="rl alloc")
    state = state_of(found.job, inside(os.environ, found))
    variables = dict(asked.variables)
    if asked.array:
        variables["SLURM_ARRAY_JOB_ID"] = found.job
    found = found.but(
        variables=variables,
        srun=asked.srun,
        file=asked.file,
        began=time.time(),
        ends=state.ends,
        host=socket.gethostname(),
        pid=pid,
        while_pid=while_pid,
    )
    holding.keep(found, folder)
    return found


# --- looking, and giving back ---------------------------------------------------------------------


def current(project: Project) -> Shown | None:
    """Return what is held; one that Slurm says is over is forgotten."""
    return look(project)[0]


def look(project: Project) -> tuple[Shown | None, str]:
    """Return what is held, or what became of it, in one question: it may end between two."""
    folder = folder_of(project)
    found = holding.kept(folder)
    if found is None:
        return None, ""
    shown = show(found)
    if shown.state.is_over:
        _end_holder(found)
        holding.forget(folder)
        return None, _over(found, shown.state)
    if shown.state.ends and abs(shown.state.ends - found.ends) > 1:  # somebody gave it more time
        found = found.but(ends=shown.state.ends)
        holding.keep(found, folder)
        shown = shown.but(held=found)
    return shown, ""


def last_words(project: Project) -> str:
    """Say what became of an allocation that is about to be given back; nothing if it is held."""
    found = holding.kept(folder_of(project))
    if found is None:
        return ""
    state = state_of(found.job, inside(os.environ, found))
    return _over(found, state) if state.is_over else ""


def _over(found: Held, state: State) -> str:
    return f"allocation {found.job} is over ({(state.word or 'ended').lower()})"


def show(found: Held) -> Shown:
    """Ask Slurm about an allocation."""
    env = inside(os.environ, found)
    state = state_of(found.job, env)
    steps = ask.steps_of(found.job, env) if state.is_live else {}
    return Shown(held=found, state=state, steps=steps)


def release(project: Project) -> Held | None:
    """Give it back; None if none is held. PlaceError when Slurm does not take it."""
    folder = folder_of(project)
    found = holding.kept(folder)
    if found is None:
        return None
    env = inside(os.environ, found)
    why = ask.cancel([found.job], env)
    if why and not state_of(found.job, env).is_over:
        raise PlaceError(f"allocation {found.job} is not given back: {why}", hint="rl alloc")
    _end_holder(found)
    holding.forget(folder)
    return found


def _end_holder(found: Held) -> None:
    """End who holds it, if that is here: salloc of a heterogeneous job may not end by itself."""
    if not found.pid or found.host != socket.gethostname():
        return
    words = (found.folder.encode(), b"salloc")
    try:
        with open(f"/proc/{found.pid}/cmdline", "rb") as file:
            line = file.read()
        group = os.getpgid(found.pid)
        if all(word in line for word in words):
            end_all([one.pid for one in processes() if _group(one.pid) == group], grace_s=_GRACE_S)
    except OSError:
        pass


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0
