"""Asks Slurm about a job, and tells it to end one; each question is one short command."""

from __future__ import annotations

import os
import time

from relaunch.errors import UsageError
from relaunch.proc.capture import capture
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_LIVE = ("RUNNING", "PENDING", "CONFIGURING", "SUSPENDED", "COMPLETING", "STOPPED", "RESIZING")


class State(Record):
    """What Slurm says of a job; no `word` when it does not know it any more."""

    word: str = ""
    reason: str = ""
    nodes: int = 0
    node_list: str = ""
    cpus: int = 0
    limit: str = ""
    ends: float = 0.0
    """Seconds since the epoch; 0: not known, or never."""
    unknown: str = ""
    """Why Slurm does not say."""

    @property
    def is_live(self) -> bool:
        """Tell whether programs can be started in it, now or later."""
        return self.word in _LIVE

    @property
    def is_over(self) -> bool:
        """Tell whether Slurm says that it has ended; not to be heard is no end."""
        return not self.is_live and not self.unknown


def need(program: str, path: str) -> None:
    """Raise UsageError unless this program of Slurm is here."""
    folders = path.split(os.pathsep)
    if not any(os.access(os.path.join(folder, program), os.X_OK) for folder in folders):
        words = f"there is no Slurm here: `{program}` is not on PATH"
        raise UsageError(words, hint="module load slurm, or a login node")


def state_of(job: str, env: Mapping[str, str]) -> State:
    """Ask for one job; of a heterogeneous one, its first component."""
    done = capture(["scontrol", "--oneliner", "show", "job", job], env=env)
    if done.code == 0:
        return read_state(done.text)
    said = os.fsdecode(done.err).strip()
    if "Invalid job id" in said:
        return State()
    return State(unknown=said.splitlines()[-1] if said else "scontrol does not answer")


class Share(Record):
    """The nodes of a job, or of one component of it or task of its array."""

    job: str
    """What srun, and the environment of its programs, call it."""
    word: str
    node_list: str
    group: int | None = None
    task: str = ""
    """Of an array, which."""


def shares_of(job: str, env: Mapping[str, str]) -> tuple[list[Share], str]:
    """Ask where a job runs; of whomever it is. Also returns why Slurm does not say."""
    done = capture(["scontrol", "--oneliner", "show", "job", job], env=env)
    if done.code == 0:
        return read_shares(done.text), ""
    said = os.fsdecode(done.err).strip()
    if "Invalid job id" in said:
        return [], ""
    return [], said.splitlines()[-1] if said else "scontrol does not answer"


def read_shares(text: str) -> list[Share]:
    """Read what `scontrol show job` prints on one line for each component or task. Pure."""
    lines = [_fields(line) for line in text.splitlines() if line.strip()]
    return [
        Share(
            job=one.get("HetJobId") or one["JobId"],
            word=one.get("JobState", ""),
            node_list=_said(one.get("NodeList", "")),
            group=int(one["HetJobOffset"]) if "HetJobOffset" in one else None,
            task=one.get("ArrayTaskId", ""),
        )
        for one in lines
        if "JobId" in one
    ]


def read_state(text: str) -> State:
    """Read what `scontrol show job` prints on one line for each component. Pure."""
    lines = [_fields(line) for line in text.splitlines() if line.strip()]
    if not lines:
        return State()
    first = lines[0]
    return State(
        word=first.get("JobState", ""),
        reason=_said(first.get("Reason", "")),
        nodes=sum(_count(one.get("NumNodes", "")) for one in lines),
        node_list=",".join(one["NodeList"] for one in lines if _said(one.get("NodeList", ""))),
        cpus=sum(_count(one.get("NumCPUs", "")) for one in lines),
        limit=first.get("TimeLimit", ""),
        ends=_when(first.get("EndTime", "")) if first.get("TimeLimit") != "UNLIMITED" else 0.0,
    )


def _fields(line: str) -> dict[str, str]:
    """Read NAME=VALUE words; what else stands there belongs to the value before it."""
    found: dict[str, str] = {}
    name = ""
    for word in line.split(" "):
        before, equals, value = word.partition("=")
        if equals and before[:1].isalpha() and before.replace("/", "").replace(":", "").isalnum():
            name = before
            found.setdefault(name, value)
        elif name:
            found[name] += f" {word}"
    return found


def _said(text: str) -> str:
    return "" if text in ("None", "(null)", "") else text


def _count(text: str) -> int:
    digits = text.partition("-")[0]
    return int(digits) if digits.isdecimal() else 0


def _when(text: str) -> float:
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return 0.0


def steps_of(job: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the names of the steps that run in a job, by their ids."""
    done = capture(["squeue", "--steps", "--noheader", f"--jobs={job}", "--format=%i|%j"], env=env)
    pairs = (line.strip().partition("|") for line in done.text.splitlines())
    return {step: name for step, bar, name in pairs if bar}


def cancel(job_or_steps: list[str], env: Mapping[str, str]) -> str:
    """End a job, or steps; returns why not."""
    done = capture(["scancel", "--quiet", *job_or_steps], env=env)
    said = os.fsdecode(done.err).strip()
    return "" if done.code == 0 else said.splitlines()[-1] if said else f"scancel: {done.code}"
