"""Stacks of an allocation: each of its nodes reads its own processes, and all are merged here."""

from __future__ import annotations

import os
import time

from relaunch.errors import RelaunchError, UsageError
from relaunch.jsontext import dumps, loads
from relaunch.look.stacks.frames import LookError
from relaunch.look.stacks.who import of_job
from relaunch.look.stacks.wire import NoStacksError, read_processes
from relaunch.proc import workers
from relaunch.proc.capture import capture
from relaunch.proc.ours import rl_words
from relaunch.proc.tree import MARKER
from relaunch.record import Record
from relaunch.session.elsewhere import in_allocation
from relaunch.session.stacks import Taken
from relaunch.trial.launch.slurm.ask import need
from relaunch.trial.launch.slurm.held import inside, one_on_each, scrubbed
from relaunch.trial.launch.slurm.step import find_held, step_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from relaunch.look.stacks.frames import ProcessStacks
    from relaunch.session.project import Project
    from relaunch.trial.launch.slurm.ask import Share

_MOST_AT_ONCE = 32
_BESIDE_S = 10.0
"""What a node has besides for its start, and for as many processes as it may have."""


_RUNS = ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED")


class _Asked(Record):
    """What the nodes of a job are asked."""

    job: str
    nodes: Mapping[str, Sequence[str]]
    """The words of srun for each."""
    env: Mapping[str, str]
    words: Sequence[str] = ()
    """Options of `rl stacks`."""


class Answer(Record):
    """What one node said."""

    node: str
    processes: Sequence[ProcessStacks] = ()
    problem: str = ""


def take_from_nodes(project: Project, words: Sequence[str], limit_s: float) -> Taken:
    """Ask every node of the allocation; `words` are the options of `rl stacks` for them.

    A node that does not answer is named, and the others are shown all the same. Raises LookError
    when none answers.
    """
    began = time.monotonic()
    held = find_held(in_allocation(project), os.environ)
    asked = _Asked(job=held.job, nodes=held.on_each, env=inside(os.environ, held), words=words)
    taken = _merged(asked, f"allocation {held.job}", limit_s, hint="rl alloc, sinfo")
    return taken.but(took_s=time.monotonic() - began)


def take_of_job(job: str, words: Sequence[str], limit_s: float) -> Taken | None:
    """Ask every node on which a job runs, whoever started it; None when this host is all of it.

    Where there is no Slurm to ask, this host is all that can be read. Raises LookError with what to
    do instead when the job runs elsewhere and cannot be reached.
    """
    env = scrubbed(os.environ)
    title = f"job {job}"
    here = of_job(job)
    shares, why = _shares(job, env)
    nodes = _nodes_of(shares)
    if here and (why or not shares or len(nodes) == 1):
        return None
    if why:
        raise LookError(f"{title}: nothing of it runs on this host, and {why}",
                        hint=f"on its node: rl stacks --job {job}")  # fmt: skip
    if not shares:
        raise LookError(f"Slurm knows no job {job}", hint="squeue --me")
    if not nodes:
        state = shares[0].word.lower()
        raise LookError(f"{title} is {state}: nothing of it runs", hint=f"scontrol show job {job}")
    began = time.monotonic()
    asked = _Asked(job=shares[0].job, nodes=nodes, env=env, words=words)
    first = next(iter(nodes))
    taken = _merged(asked, title, limit_s, hint=f"ssh {first} rl stacks --job {job}")
    return taken.but(took_s=time.monotonic() - began)


def _shares(job: str, env: Mapping[str, str]) -> tuple[list[Share], str]:
    """Return where it runs, or why nobody knows."""
    from relaunch.trial.launch.slurm.ask import shares_of

    try:
        need("scontrol", env.get("PATH", os.defpath))
    except UsageError as error:
        return [], error.message
    shares, why = shares_of(job, env)
    running = [one for one in shares if one.node_list and one.word in _RUNS]
    tasks = [one.task for one in running if one.task]
    if len(tasks) > 1:
        words = f"job {job} is an array, of which {len(tasks)} tasks run: which one?"
        raise UsageError(words, hint=f"rl stacks --job {job}_{tasks[0]}")
    return running or shares, f"Slurm does not say where it runs: {why}" if why else ""


def _nodes_of(shares: Sequence[Share]) -> dict[str, tuple[str, ...]]:
    """Return the nodes of a job that runs, and the words of srun for each."""
    found: dict[str, tuple[str, ...]] = {}
    for one in shares:
        if one.word in _RUNS and one.node_list:
            group = (f"--het-group={one.group}",) if one.group is not None else ()
            for name, words in one_on_each(one.node_list, (f"--jobid={one.job}", *group)).items():
                found.setdefault(name, words)
    return found


def _merged(asked: _Asked, title: str, limit_s: float, *, hint: str) -> Taken:
    answers = _ask_all(asked, limit_s + _BESIDE_S)
    problems = [f"{one.node}: {one.problem}" for one in answers if one.problem]
    if problems and len(problems) == len(answers):
        raise LookError(f"{title}: {problems[0]}", hint=hint)
    count = len(asked.nodes)
    where = f"{count} node{'s' * (count > 1)}"
    return Taken(title=f"{title} ({where})", processes=_distinct(answers), problems=problems)


def _distinct(answers: Sequence[Answer]) -> list[ProcessStacks]:
    """Return each process once: nodes that share a host see each other's."""
    found = {(one.node, one.pid): one for answer in answers for one in answer.processes}
    return [*found.values()]


def _ask_all(asked: _Asked, limit_s: float) -> list[Answer]:
    """Ask them at once, by a step for each: one that is lost must not take the others along."""
    waiting = list(asked.nodes)
    busy: dict[str, workers.Worker] = {}
    found: dict[str, Answer] = {}
    while waiting or busy:
        while waiting and len(busy) < _MOST_AT_ONCE:
            node = waiting.pop(0)
            busy[node] = workers.Worker(_asking(asked, asked.nodes[node]))
        oldest = min(worker.began for worker in busy.values())
        ready = workers.wait(busy.values(), max(0.0, oldest + limit_s - time.monotonic()))
        for node, worker in [*busy.items()]:
            answer = worker.read() if worker in ready else None
            if answer is not None:
                del busy[node]
                found[node] = _read(node, answer)
            elif time.monotonic() - worker.began >= limit_s:
                del busy[node]
                worker.cancel(asked_s=0.0)
                _cancel(asked, worker.marker)
                found[node] = Answer(node=node, problem=f"no answer within {limit_s:g} s")
    return [found[node] for node in asked.nodes]


def _asking(asked: _Asked, there: Sequence[str]) -> Callable[[str], bytes]:
    def ask(marker: str) -> bytes:
        srun = ["srun", "--overlap", *there,
                f"--job-name={step_name(marker)}", "--input=none"]  # fmt: skip
        agent = [*rl_words(), "stacks", "--json", "--job", asked.job, "--here"]
        done = capture([*srun, *agent, *asked.words], env={**asked.env, MARKER: marker})
        said = done.err.decode("utf-8", "replace")
        return dumps({"code": done.code, "out": done.text, "err": said}).encode("ascii")

    return ask


def _read(node: str, answer: bytes) -> Answer:
    """Read what came from a node: stacks, or why there are none."""
    try:
        said = loads(answer.decode("ascii"))
        if said["out"].strip():
            return Answer(node=node, processes=read_processes(said["out"]))
    except (ValueError, KeyError, NoStacksError) as error:
        why = error.message if isinstance(error, RelaunchError) else "it answers nonsense"
        return Answer(node=node, problem=why)
    return Answer(node=node, problem=_why(said["err"]) or f"srun ended with {said['code']}")


def _why(text: str) -> str:
    """Return the line that says most: rl's own, else the first of Slurm that tells a reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = [line.removeprefix("rl: ") for line in lines if line.startswith("rl: ")]
    errors = [line.partition("error: ")[2] for line in lines if "error: " in line]
    return next(iter(ours or errors or lines), "")


def _cancel(asked: _Asked, marker: str) -> None:
    from relaunch.trial.launch.slurm.ask import cancel, steps_of

    name = step_name(marker)
    if steps := [step for step, called in steps_of(asked.job, asked.env).items() if called == name]:
        cancel(steps, asked.env)
