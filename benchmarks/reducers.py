"""The peers of `rl shrink`: how each is installed, and how its documentation says it is used."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from benchmarks import install
from benchmarks.run import Run
from benchmarks.spend import Unmeasured

_BINARY = (".npy", ".pickle")


class Reducer:
    """A tool that makes a file smaller while a script says that it is still interesting."""

    name = ""
    packages: tuple[str, ...] = ()

    def install(self, run: Run) -> None:
        """Have it in an environment of its own; `Unmeasured` if that cannot be."""
        self.home = install.venv(f"shrink-{self.name}", self.python(run), self.packages)

    def python(self, run: Run) -> str:
        """Return a Python that it runs with."""
        return run.python

    def takes(self, file: str) -> bool:
        """Tell whether it is made for such a file."""
        return True

    def words(self, script: Path, path: Path) -> list[str]:
        """Return what is typed."""
        raise NotImplementedError

    def result(self, path: Path) -> Path:
        """Return where the small one lies."""
        return path


class Shrinkray(Reducer):
    """Shrinkray, with as many attempts at once as there are cores."""

    name = "shrinkray"
    packages = ("shrinkray==26.4.14.0",)  # later ones build a language model

    def python(self, run: Run) -> str:
        """It needs 3.12."""
        roots = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
        others = [str(one) for one in sorted(roots.glob("versions/3.1[23].*/bin/python"))]
        for name in ("python3.13", "python3.12", *others):
            found = shutil.which(name)
            if found and subprocess.run([found, "-V"], capture_output=True).returncode == 0:
                return found
        raise Unmeasured("there is no Python 3.12")

    def words(self, script: Path, path: Path) -> list[str]:
        """It changes the file itself; a source that is formatted anew may not fail any more."""
        options = ["--ui", "basic", "--timeout", "20", "--formatter=none"]
        return [str(self.home / self.name), *options, str(script), str(path)]


class Picire(Reducer):
    """Picire: lines, then characters."""

    name = "picire"
    packages = ("picire==21.8",)

    def words(self, script: Path, path: Path) -> list[str]:
        """Answers are remembered by content."""
        out = str(path.parent / "out")
        return [
            str(self.home / self.name), "--input", str(path), "--test", str(script), "--parallel",
            "-j", _cores(), "--cache", "content", "--atom", "both", "--out", out,
        ]  # fmt: skip

    def result(self, path: Path) -> Path:
        """It writes into a folder, at the end."""
        found = path.parent / "out" / path.name
        return found if found.exists() else path


class Lithium(Reducer):
    """Lithium, with a test in Python as its guide shows."""

    name = "lithium"
    packages = ("lithium-reducer==4.0.0",)

    def words(self, script: Path, path: Path) -> list[str]:
        """Its own test only asks the script."""
        test = path.parent / "interesting.py"
        call = f"subprocess.call([{str(script)!r}, args[0]])"
        text = f"import subprocess\ndef interesting(args, prefix):\n    return not {call}\n"
        test.write_text(text)
        return [str(self.home / self.name), str(test), str(path)]


class Cvise(Reducer):
    """C-Vise, from the system's packages: its helpers are no Python."""

    name = "cvise"

    def install(self, run: Run) -> None:
        """It must be there."""
        found = shutil.which(self.name)
        if found is None:
            raise Unmeasured("it is not installed: apt install cvise")
        self.home = Path(found).parent

    def takes(self, file: str) -> bool:
        """It is made for text."""
        return not file.endswith(_BINARY)

    def words(self, script: Path, path: Path) -> list[str]:
        """The script finds the file where it runs."""
        tool = str(self.home / self.name)
        return [tool, "--not-c", "--n", _cores(), "--timeout", "20", script.name, path.name]


class PysourceMinimize(Reducer):
    """pysource-minimize: Python sources alone."""

    name = "pysource-minimize"
    packages = ("pysource-minimize[cli]==0.10.1",)

    def takes(self, file: str) -> bool:
        """It reads Python."""
        return file.endswith(".py")

    def words(self, script: Path, path: Path) -> list[str]:
        """It wants to see words in what the command says."""
        told = script.with_name("told.sh")
        told.write_text(f"#!/bin/sh\n{script} && echo still bad\n")
        told.chmod(0o755)
        tool = str(self.home / self.name)
        return [tool, "--file", str(path), "--track", "still bad", "--write", "--", str(told)]


def _cores() -> str:
    return str(len(os.sched_getaffinity(0)))


TOOLS: tuple[Reducer, ...] = (Shrinkray(), Picire(), Lithium(), Cvise(), PysourceMinimize())
