"""What `rl alloc` and `--slurm` find on this machine: a controller that answers, or none."""

from __future__ import annotations

import os

from relaunch.desk.doctor import Ladder, Rung
from relaunch.proc.capture import capture
from relaunch.trial.launch.slurm.held import of_this_shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_PROGRAMS = ("salloc", "srun", "squeue", "scontrol", "scancel")


def slurm_ladder(env: Mapping[str, str]) -> Ladder:
    """Ask the controller; nothing is allocated."""
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    absent = [
        program
        for program in _PROGRAMS
        if not any(os.access(os.path.join(folder, program), os.X_OK) for folder in folders)
    ]
    why, version = f"no {absent[0]} on PATH: module load slurm" if absent else "", ""
    if not absent:
        asked = capture(["sinfo", "--noheader", "--format=%D"], env=env)
        said = os.fsdecode(asked.err).strip().splitlines()
        why = (said[-1] if said else "sinfo does not answer") if asked.code else ""
        words = capture(["sinfo", "--version"], env=env).text.split()
        version = f"{words[-1]}: " if words else ""
    inside = of_this_shell(env)
    rungs = [
        Rung(
            name="allocations",
            ok=not why,
            means=f"{version}rl alloc holds one; --slurm runs trials and searches on its nodes",
            raise_it=why,
        )
    ]
    if inside is not None:
        means = f"--slurm uses allocation {inside.job}, in which this shell is"
        rungs.append(Rung(name="this shell", ok=not why, means=means, raise_it=why))
    rungs.append(Rung(name="none", ok=True, means="everything runs on this machine"))
    return Ladder(name="slurm", rungs=tuple(rungs))
