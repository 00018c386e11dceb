"""The allocation that is held: what is known of it without asking Slurm, and where that is kept."""

from __future__ import annotations

import os

from relaunch.errors import UsageError
from relaunch.jsontext import dumps, loads
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = "allocation"
"""Below the journal: one allocation for a project."""
KEPT, ENV, LOG, SEATS = "allocation.json", "env", "log", "seats"
CONF = "SLURM_CONF"
_TOKEN = "SLURM_JWT"
_FIRST = "_HET_GROUP_0"
ASK_FOR_ONE = "rl alloc job.sbatch, or rl alloc -- -N 2 -t 60"


class Part(Record):
    """The nodes and tasks of an allocation, or of a component of it."""

    nodes: int
    tasks: int
    cpus_per_task: int = 0
    """0: nobody said."""
    node_list: str = ""


class Held(Record):
    """One allocation, as it was granted."""

    job: str
    env: Mapping[str, str] = {}
    """What Slurm sets for a program in it."""
    variables: Mapping[str, str] = {}
    """What else its script sets."""
    srun: tuple[str, ...] = ()
    file: str = ""
    began: float = 0.0
    ends: float = 0.0
    """Seconds since the epoch; 0: never, or nobody knows."""
    host: str = ""
    """Where it is held."""
    pid: int = 0
    """Who holds it."""
    while_pid: int = 0
    """It is given back when this process is gone."""
    folder: str = ""
    """Empty: nobody of ours holds it, this shell is in it."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return how large it is; UsageError when that is not known."""
        count = self.env.get("SLURM_HET_SIZE", "")
        if not count.isdecimal():
            return (_part(self.env, "", self.job),)
        return tuple(_part(self.env, f"_HET_GROUP_{n}", self.job) for n in range(int(count)))

    @property
    def on_each(self) -> dict[str, tuple[str, ...]]:
        """Return its nodes, and the words of srun for one program there.

        A component other than the first has to be named: srun looks for nodes in one only.
        """
        parts = self.parts
        found: dict[str, tuple[str, ...]] = {}
        for number, part in enumerate(parts):
            group = (f"--het-group={number}",) if len(parts) > 1 else ()
            for name, words in one_on_each(part.node_list, group).items():
                found.setdefault(name, words)
        return found


def keep(held: Held, folder: str) -> None:
    """Write down what was granted; its environment is there already."""
    text = dumps(
        {
            "job": held.job,
            "variables": dict(held.variables),
            "srun": list(held.srun),
            "file": held.file,
            "began": held.began,
            "ends": held.ends,
            "host": held.host,
            "pid": held.pid,
            "while_pid": held.while_pid,
        }
    )
    path = os.path.join(folder, KEPT)
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.part", path)


def kept(folder: str) -> Held | None:
    """Return the allocation that is kept in a folder, if there is one."""
    env = _environment(os.path.join(folder, ENV))
    if not env.get("SLURM_JOB_ID"):
        return None
    try:
        with open(os.path.join(folder, KEPT), encoding="utf-8") as file:
            said = loads(file.read())
        return Held(
            job=str(said["job"]),
            env=env,
            variables=said["variables"],
            srun=tuple(said["srun"]),
            file=said["file"],
            began=said["began"],
            ends=said["ends"],
            host=said["host"],
            pid=said["pid"],
            while_pid=said["while_pid"],
            folder=folder,
        )
    except (OSError, ValueError, KeyError, TypeError):
        # Granted, and whoever asked was killed before it was written down.
        return Held(job=env["SLURM_JOB_ID"], env=env, folder=folder)


def forget(folder: str) -> None:
    """Keep nothing of it any more."""
    for name in (KEPT, ENV, f"{ENV}.pid", LOG):
        try:
            os.unlink(os.path.join(folder, name))
        except OSError:
            pass


def of_this_shell(env: Mapping[str, str]) -> Held | None:
    """Return the allocation that this process is in, if it is in one."""
    job = env.get("SLURM_JOB_ID") or env.get("SLURM_JOBID")
    if not job:
        return None
    return Held(job=job, env={n: v for n, v in env.items() if n.startswith("SLURM_")})


def scrubbed(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what Slurm set in it.

    Where its configuration is stays, and who the user is to it.
    """
    return {n: v for n, v in env.items() if not n.startswith("SLURM_") or n in (CONF, _TOKEN)}


def stale(env: Mapping[str, str], held: Held | None = None) -> list[str]:
    """Name the variables of another job that a program or a request would take for its own."""
    job = env.get("SLURM_JOB_ID") or env.get("SLURM_JOBID", "")
    if held is not None and job in ("", held.job):
        return []
    return sorted(n for n in env if n.startswith("SLURM_") and n not in (CONF, _TOKEN))


def inside(env: Mapping[str, str], held: Held) -> dict[str, str]:
    """Return an environment as a program of the allocation has it."""
    conf = {CONF: held.env[CONF]} if CONF in held.env and CONF not in env else {}
    theirs = {n: v for n, v in held.env.items() if n != CONF}
    return {**scrubbed(env), **conf, **theirs, **held.variables}


def _environment(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            pairs = (one.partition("=") for one in file.read().split("\0"))
    except OSError:
        return {}
    found = {name: value for name, _, value in pairs if name.startswith("SLURM_")}
    for name in [*found]:  # salloc counts all components together where sbatch names the first
        if name.endswith(_FIRST):
            found[name.removesuffix(_FIRST)] = found[name]
    return found


def _part(env: Mapping[str, str], suffix: str, job: str) -> Part:
    """Read one component from variables, which have their suffix in a heterogeneous job."""

    def of(*names: str) -> str:
        return next((env[name + suffix] for name in names if env.get(name + suffix)), "")

    nodes = of("SLURM_JOB_NUM_NODES", "SLURM_NNODES")
    names = of("SLURM_JOB_NODELIST", "SLURM_NODELIST")
    if not nodes.isdecimal():
        if not names:
            words = f"allocation {job} has no nodes: it is over, or not granted yet"
            raise UsageError(words, hint=ASK_FOR_ONE)
        nodes = str(len(node_names(names)))
    if not int(nodes):
        raise UsageError(f"allocation {job} has no nodes", hint=ASK_FOR_ONE)
    per_task = of("SLURM_CPUS_PER_TASK")
    return Part(
        nodes=int(nodes),
        tasks=_tasks(of, int(nodes)),
        cpus_per_task=int(per_task) if per_task.isdecimal() else 0,
        node_list=names,
    )


def _tasks(of: _Of, nodes: int) -> int:
    for_all, each = of("SLURM_NTASKS", "SLURM_NPROCS"), of("SLURM_NTASKS_PER_NODE")
    if for_all.isdecimal():
        return int(for_all)
    return int(each) * nodes if each.isdecimal() else nodes


def node_names(text: str) -> list[str]:
    """Read `node[1-2,07-09],login` as names; UsageError when it cannot be read."""
    found: list[str] = []
    for word in _apart(text):
        found += _expanded(word, text)
    return found


def one_on_each(node_list: str, more: Sequence[str] = ()) -> dict[str, tuple[str, ...]]:
    """Return the nodes of a list, and the words of srun that put one program there."""
    return {name: ("-N1", "-n1", *more, f"--nodelist={name}") for name in node_names(node_list)}


def _apart(text: str) -> list[str]:
    """Split at the commas that are not in brackets."""
    words, depth = [""], 0
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == "," and not depth:
            words.append("")
        else:
            words[-1] += char
    return [word for word in words if word]


def _expanded(word: str, text: str) -> list[str]:
    before, bracket, rest = word.partition("[")
    if not bracket:
        return [word]
    inner, closed, after = rest.partition("]")
    found = []
    for span in inner.split(","):
        first, _, last = span.partition("-")
        if not closed or not first.isdecimal() or not (last or first).isdecimal():
            raise UsageError(f"how many nodes are `{text}`? It cannot be read", hint="rl alloc")
        numbers = range(int(first), int(last or first) + 1)
        found += [f"{before}{number:0{len(first)}}" for number in numbers]
    return [name for one in found for name in _expanded(f"{one}{after}", text)]


if TYPE_CHECKING:
    from collections.abc import Callable

    _Of = Callable[..., str]
