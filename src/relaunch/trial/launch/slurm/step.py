"""One program as a step of the held allocation: srun runs here in its stead."""

from __future__ import annotations

import os
import time

from relaunch.errors import PlaceError, UsageError
from relaunch.proc.tree import MARKER
from relaunch.recipe import Elsewhere
from relaunch.trial.launch.elsewhere import Launcher
from relaunch.trial.launch.slurm import held as holding
from relaunch.trial.launch.slurm.held import ASK_FOR_ONE, SEATS, Held, inside, node_names
from relaunch.trial.launch.slurm.output import Output
from relaunch.trust import foreign, whose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaunch.proc.supervise import Ended
    from relaunch.trial.launch.slurm.held import Part
    from relaunch.trial.launch.slurm.minded import Minded
    from relaunch.trial.launch.slurm.seats import Seat

_MINE = "A-FOLDER-OF-YOURS"
NAME = "rl-"
"""What the names of our steps begin with."""
_GONE = (
    "Invalid job id",
    "already completing or completed",
    "Job is no longer",
    "not permitted",
)


def find_held(where: Elsewhere, env: Mapping[str, str]) -> Held:
    """Return the allocation to run in: the one that is held, else the one this shell is in."""
    found = holding.kept(where.held) if where.held else None
    found = found or holding.of_this_shell(env)
    if found is None:
        raise UsageError("no allocation is held", hint=ASK_FOR_ONE)
    if found.ends and time.time() >= found.ends:
        words = f"allocation {found.job} reached its time limit"
        raise UsageError(words, hint=_again(found))
    return found


def step_name(marker: str) -> str:
    """Return how the step of a program is called, by what marks its processes."""
    return NAME + marker.replace("/", ".")[-50:]


def _again(found: Held) -> str:
    return f"rl alloc {found.file}" if found.file else ASK_FOR_ONE


_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_AS_IF_BATCHED = """\
unset $(env | sed -n 's/^\\(SLURM_[A-Za-z0-9_]*\\)=.*/\\1/p')
exec env "$@"
"""
"""A step has other variables than the job, and what it starts by srun would be as small as it."""


def is_batch_script(argv: Sequence[str], cwd: str) -> bool:
    """Tell whether a command runs a batch script: that is run once, and starts its own steps."""
    is_shell = os.path.basename(argv[0]) in _SHELLS
    word = argv[1] if is_shell and len(argv) > 1 else argv[0]
    try:
        with open(os.path.join(cwd, word), "rb") as file:
            head = file.read(1 << 14)
    except (OSError, ValueError):
        return False
    return head.startswith(b"#!") and b"\n#SBATCH" in head


class Step(Launcher):
    """Started and watched as any program is; what runs on the nodes ends with it."""

    def __init__(
        self, where: Elsewhere, env: Mapping[str, str], argv: Sequence[str] = (), cwd: str = "."
    ) -> None:
        """Find the allocation; UsageError if there is none, or nobody knows how large it is."""
        self._argv, self._given = argv, env
        self.is_script = bool(argv) and not where.spread and is_batch_script(argv, cwd)
        self.held = find_held(where, env)
        self._where = where
        self._parts = self.held.parts
        self._seat: Seat | None = None
        self._minded: Minded | None = None
        self._env = inside({n: v for n, v in env.items() if n != MARKER}, self.held)
        """For questions to Slurm."""
        self.name = step_name(env.get(MARKER) or str(os.getpid()))
        several = sum(self._counts(part)[1] for part in self._parts)
        self.tasks = 1 if where.spread or self.is_script else several
        self._output = Output(labelled=self.tasks > 1)

    # --- where ------------------------------------------------------------------------------------

    @classmethod
    def find(cls, home: str, words: Sequence[str], env: Mapping[str, str]) -> Elsewhere:
        """Return the allocation that a project holds, else the one this shell is in."""
        from relaunch.trial.launch.slurm.ask import need

        need("srun", env.get("PATH", os.defpath))
        folder = os.path.join(home, holding.FOLDER)
        held = folder if holding.kept(folder) is not None else ""
        where = Elsewhere(held=held, words=tuple(words))
        find_held(where, env).parts  # noqa: B018  # it says what is wrong with it
        return where

    @classmethod
    def seats(cls, where: Elsewhere, env: Mapping[str, str]) -> int:
        """Return how many nodes it has."""
        return sum(part.nodes for part in find_held(where, env).parts)

    @classmethod
    def end_left(cls, home: str, env: Mapping[str, str]) -> None:
        """End the steps of searches that were killed with all that would have ended them."""
        from relaunch.trial.launch.slurm.minded import FOLDER, end_unminded

        folder = os.path.join(home, holding.FOLDER)
        if (held := holding.kept(folder)) is not None:
            end_unminded(os.path.join(folder, FOLDER), inside(env, held))

    def announcement(self) -> tuple[str, list[str]]:
        """Say how large it is and for how long it is held, and what is not passed on."""
        from relaunch.trial.launch.slurm.words import left_words, stale_words

        nodes = sum(part.nodes for part in self._parts)
        text = f"{nodes} node{'s' * (nodes > 1)}, {self.tasks} task{'s' * (self.tasks > 1)}"
        if self._where.spread:
            text = "one of its nodes"
        elif self.is_script:
            text = "its first node, as sbatch runs a script"
        stale = stale_words(holding.stale(self._given, self.held))
        return f"in allocation {self.held.job}: {text}{left_words(self.held.ends)}", stale

    # --- the command ------------------------------------------------------------------------------

    def environment(self, env: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
        """Return what the program gets: what the allocation sets, and over it what was `given`."""
        found = {**inside(env, self.held), **given}
        found["SLURM_OVERLAP"] = "1"  # also for what the program itself starts by srun
        return found

    def argv(self) -> tuple[str, ...]:
        """Return srun with all that decides where it runs: what it leaves out, srun guesses."""
        argv = self._argv
        common = ["--overlap", "-X", f"--job-name={self.name}", *self.held.srun]
        if self.tasks > 1:
            common.append("--label")
        if self._where.spread:
            return ("srun", *common, *self._take_seat(), *self._where.words, *argv)
        if self.is_script:
            return ("srun", *common, *self._where.words, *self._as_if_batched())
        words = ["srun", *common]
        for number, part in enumerate(self._parts):
            if number:
                words.append(":")
            if len(self._parts) > 1:
                words.append(f"--het-group={number}")
            words += [*self._size(part), *self._where.words, *argv]
        return tuple(words)

    def prepare(self) -> Mapping[str, str]:
        """Note that it is ours to end, and end what nobody is left to end."""
        from relaunch.trial.launch.slurm.minded import FOLDER, Minded, end_unminded

        folder = os.path.join(_notes(self.held), FOLDER)
        end_unminded(folder, self._env)
        self._minded = Minded(folder, self.held.job, self.name)
        return {}

    def _as_if_batched(self) -> list[str]:
        """Run a script as sbatch would: once, on the first node, with the variables of the job."""
        names = node_names(self._parts[0].node_list)
        first = [f"--nodelist={names[0]}"] if names else []
        env = self.environment({}, {})
        pairs = [f"{n}={v}" for n, v in env.items() if n.startswith("SLURM_")]
        return ["-N1", "-n1", *first, "sh", "-c", _AS_IF_BATCHED, "rl", *pairs, *self._argv]

    def _size(self, part: Part) -> list[str]:
        nodes, tasks = self._counts(part)
        words = [f"-N{nodes}", f"-n{tasks}"]
        if part.cpus_per_task and tasks == part.tasks:
            words.append(f"-c{part.cpus_per_task}")
        return words

    def _counts(self, part: Part) -> tuple[int, int]:
        """Return how many nodes and tasks: those of the allocation, unless words say other ones."""
        nodes = _number(self._where.words, "-N", "--nodes")
        tasks = _number(self._where.words, "-n", "--ntasks")
        if nodes and not tasks:
            return nodes, max(nodes, part.tasks * nodes // part.nodes)
        if tasks and not nodes:
            return min(part.nodes, tasks), tasks
        return nodes or part.nodes, tasks or max(part.nodes, part.tasks)

    def _take_seat(self) -> tuple[str, ...]:
        from relaunch.trial.launch.slurm.seats import Seat

        nodes = self.held.on_each
        if not nodes:
            words = f"which nodes allocation {self.held.job} has is not known"
            raise UsageError(words, hint=_again(self.held))
        self._seat = Seat(os.path.join(_notes(self.held), SEATS), [*nodes])
        return nodes[self._seat.node]

    def take(self, stream: int, data: bytes) -> bytes:
        """Return what the program wrote, with its rank where there are several."""
        return self._output.take(stream, data)

    # --- how it went ------------------------------------------------------------------------------

    def really(self, ended: Ended) -> Ended:
        """Read the end of the program from what srun said; what was cut short is ended there."""
        if ended.exit_code is None or ended.timed_out or ended.interrupted:
            self.cancel()
        code = ended.exit_code
        if code is not None and code > 128:
            import signal

            number = code - 128
            named = signal.strsignal(number) if number < signal.NSIG else None
            if named and any(one.split(": ")[-1].startswith(named) for one in self._output.said):
                return ended.but(exit_code=None, signal=number)
        return ended

    def missing(self) -> str:
        """Say why nothing was started, if nothing was."""
        said = " ".join(self._output.said)
        if "has expired" in said:
            return f"allocation {self.held.job} is over"
        if "Unable to confirm allocation" in said or "Unable to create step" in said:
            why = next(one for one in self._output.said if "Unable to" in one).split(": ")[-1]
            if any(one in why for one in _GONE):
                return f"allocation {self.held.job} is over ({why})"
            return f"no step in allocation {self.held.job}: {why}"
        if "execve():" in said:
            line = next(one for one in self._output.said if "execve():" in one)
            return f"not on the node: {line.rpartition('execve(): ')[2]}"
        return ""

    def lost(self) -> str:
        """Say what became of the allocation, the step or a node, when the program did not end."""
        said = [one for one in self._output.said if _is_cut(one)]
        if not said:
            return ""
        if any("Node failure" in one or "NODE FAILURE" in one for one in said):
            return f"{_lost_node(said)} of allocation {self.held.job} was lost"
        from relaunch.trial.launch.slurm.ask import state_of

        state = state_of(self.held.job, self._env)
        words = {"TIMEOUT": "reached its time limit", "NODE_FAIL": "lost a node",
                 "CANCELLED": "was cancelled", "PREEMPTED": "was preempted"}  # fmt: skip
        if any("TIME LIMIT" in one for one in said):
            return f"allocation {self.held.job} reached its time limit"
        if state.word in words:
            return f"allocation {self.held.job} {words[state.word]}"
        if state.is_over:
            return f"allocation {self.held.job} is over"
        return f"its step in allocation {self.held.job} was cancelled from outside"

    def cancel(self) -> None:
        """End what runs on the nodes; the allocation stays."""
        from relaunch.trial.launch.slurm.ask import cancel, steps_of

        steps = steps_of(self.held.job, self._env)
        if ours := [step for step, name in steps.items() if name == self.name]:
            cancel(ours, self._env)

    def close(self) -> None:
        """Leave the place on the node to others."""
        if self._seat is not None:
            self._seat.close()
        if self._minded is not None:
            self._minded.close()


def _notes(held: Held) -> str:
    """Return where is noted what of ours runs in it."""
    if held.folder:
        return held.folder
    alone = f"rl-seats-{os.getuid()}-{held.job}"
    folder = os.path.join(os.environ.get("TMPDIR", "/tmp"), alone)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if foreign(folder):  # their links would lead what is noted elsewhere
        raise PlaceError(f"{folder} belongs to {whose(folder)}", hint=f"export TMPDIR={_MINE}")
    return folder


def _is_cut(text: str) -> bool:
    marks = ("CANCELLED AT", "Node failure", "Force Terminated", "Job step aborted",
             "has been revoked", "Timed out waiting")  # fmt: skip
    return any(one in text for one in marks)


def _lost_node(said: Sequence[str]) -> str:
    """Name the node, where srun does: `Node failure on node2`."""
    named = [one.rpartition("ode failure on ")[2] for one in said if "ode failure on " in one]
    return f"node {named[0]}" if named else "a node"


def _number(words: Sequence[str], short: str, long: str) -> int:
    """Return what words of srun say of a number; 0: nothing."""
    found = ""
    for at, word in enumerate(words):
        if word in (short, long):
            found = words[at + 1] if at + 1 < len(words) else ""
        elif word.startswith(f"{long}="):
            found = word.partition("=")[2]
        elif word.startswith(short) and not word.startswith("--"):
            found = word[len(short) :]
    digits = found.partition("-")[0]
    return int(digits) if digits.isdecimal() else 0
