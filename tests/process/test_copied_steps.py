"""A copy of a project whose search runs in an allocation ends nothing of that search."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from relaunch.trial.launch.slurm.minded import FOLDER, Minded, end_unminded


def test_steps_that_are_minded_in_the_first_journal_are_not_asked_about_in_a_copy(
    tmp_path: Path,
) -> None:
    asked = tmp_path / "asked"
    for name in ("squeue", "scancel", "scontrol", "sacct"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho {name} >> {asked}\n")
        program.chmod(0o755)
    env = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.defpath}"}
    first, copy = tmp_path / "first" / FOLDER, tmp_path / "copy" / FOLDER
    step = Minded(str(first), "7", "rl-step")
    shutil.copytree(first, copy)
    end_unminded(str(copy), env)
    assert not asked.exists()
    assert os.listdir(copy) == []
    end_unminded(str(first), env)  # it is minded
    assert not asked.exists()
    os.close(step._file)
    end_unminded(str(first), env)
    assert asked.exists()
