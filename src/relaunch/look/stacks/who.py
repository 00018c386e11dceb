"""Which processes are meant, and which ranks of what they say they are."""

from __future__ import annotations

import os

from relaunch.look.stacks.merge import RANK_VARIABLES
from relaunch.look.usage import PROC, command, owner
from relaunch.proc.tree import below, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from relaunch.proc.tree import Process

_SIZE_VARIABLES = {
    "RANK": "WORLD_SIZE",
    "SLURM_PROCID": "SLURM_STEP_NUM_TASKS",
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK": "PMI_SIZE",
    "LOCAL_RANK": "LOCAL_WORLD_SIZE",
}


def with_all_below(pids: Iterable[int]) -> list[int]:
    """Return these processes and all below them, in order; not us, nor who is below us."""
    everyone = processes()
    found: dict[int, None] = {}
    for pid in pids:
        found[pid] = None
        found.update(dict.fromkeys(one.pid for one in below(pid, everyone, {os.getpid()})))
    found.pop(os.getpid(), None)
    return sorted(found)


def matching(matches: Callable[[int, str], bool]) -> list[int]:
    """Return the processes that match, by pid and name."""
    return [one.pid for one in _others() if matches(one.pid, one.name)]


def of_job(job: str) -> list[int]:
    """Return the processes of a Slurm job on this host: `1234`, or `1234_5` of an array."""
    number, _, task = job.partition("_")
    wanted = [("SLURM_JOB_ID", number)]
    if task:
        wanted = [("SLURM_ARRAY_JOB_ID", number), ("SLURM_ARRAY_TASK_ID", task)]

    def is_of_it(env: Mapping[str, str]) -> bool:
        return all(env.get(name) == value for name, value in wanted)

    return [one.pid for one in _others() if is_of_it(environment(one.pid))]


def all_python(uid: int | None) -> list[int]:
    """Return every Python process, or those of one user."""
    others = (one.pid for one in _others() if one.state not in "ZX")
    return [pid for pid in others if uid in (None, owner(pid)) and is_python(pid)]


def _others() -> list[Process]:
    """List all processes but us, who started us, and every other rl."""
    from relaunch.look.trees import is_rl, lineage

    ours = set(lineage(os.getpid()))
    return [one for one in processes() if one.pid not in ours and not is_rl(one.pid)]


def is_python(pid: int) -> bool:
    """Tell whether a process runs Python: by its program, or by a library that it has loaded."""
    try:
        name = os.path.basename(os.readlink(f"{PROC}/{pid}/exe"))
    except OSError:
        words = command(pid)
        return bool(words) and _is_pythons_name(os.path.basename(words[0]))
    return _is_pythons_name(name) or _has_loaded_python(pid)


def _is_pythons_name(name: str) -> bool:
    return name.startswith(("python", "pypy"))


def _has_loaded_python(pid: int) -> bool:
    try:
        with open(f"{PROC}/{pid}/maps", "rb") as file:
            maps = file.read()
    except OSError:
        return False
    return b"/libpython" in maps or b"/lib-dynload/" in maps


def environment(pid: int) -> dict[str, str]:
    """Return what a process was started with; nothing when that cannot be read."""
    try:
        with open(f"{PROC}/{pid}/environ", "rb") as file:
            data = file.read()
    except OSError:
        return {}
    pairs = (os.fsdecode(word).partition("=") for word in data.split(b"\0"))
    return {name: value for name, sign, value in pairs if sign}


def rank_of(env: Mapping[str, str]) -> tuple[int | None, str, int]:
    """Return the rank that variables say, which one says it, and of how many (0: not said)."""
    for name in RANK_VARIABLES:
        if env.get(name, "").isdecimal():
            size = env.get(_SIZE_VARIABLES[name], "")
            return int(env[name]), name, int(size) if size.isdecimal() else 0
    return None, "", 0


def world_of(env: Mapping[str, str]) -> str:
    """Name those who count ranks together: a job and its step, or where they meet."""
    if job := env.get("SLURM_JOB_ID", ""):
        step = env.get("SLURM_STEP_ID", "")
        return f"job {job}.{step}" if step else f"job {job}"
    if port := env.get("MASTER_PORT", ""):
        return f"{env.get('MASTER_ADDR', '')}:{port}"
    return env.get("PMIX_NAMESPACE", "")


def roots(pids: Collection[int]) -> list[int]:
    """Return those of some processes whose parent is not among them."""
    parents = {one.pid: one.parent for one in processes()}
    return [pid for pid in pids if parents.get(pid, 0) not in pids]
