"""Repositories with a history to read: linear, merged, or any graph at once through fast-import."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from relaunch.history.repository import Repository, open_repository

START = 1_700_000_000
"""When the first commit is made; each one is an hour after the one before."""


@pytest.fixture(scope="module", autouse=True)
def own_settings() -> Iterator[None]:
    """Neither the settings of who runs the tests nor a clock decide what git does."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            patch.delenv(name)
        patch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "A Person")
            patch.setenv(f"GIT_{role}_EMAIL", "person@example.org")
        yield


class History:
    """A work tree on branch `main`; commits are an hour apart."""

    def __init__(self, top: Path, *init: str) -> None:
        self.top = top
        self.hours = 0
        top.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", *init)

    @property
    def repo(self) -> Repository:
        return open_repository(str(self.top))

    def git(self, *words: str | bytes, data: bytes = b"") -> str:
        date = f"{START + 3600 * self.hours} +0000"
        done = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *words], cwd=self.top, input=data,
            capture_output=True, check=False,
            env={**os.environ, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date},
        )  # fmt: skip
        assert done.returncode == 0, os.fsdecode(done.stderr)
        return os.fsdecode(done.stdout).strip()

    def write(self, name: str, text: str | bytes) -> None:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def commit(self, message: str | bytes = "more", **files: str) -> str:
        """Write `name=text` as name.py, commit everything and return the commit."""
        for name, text in files.items():
            self.write(f"{name}.py", text)
        self.hours += 1
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str, at: str = "HEAD") -> None:
        self.git("checkout", "-q", "-b", name, at)

    def merge(self, *others: str, into: str = "main", message: str = "merge") -> str:
        """Merge into a branch, always with a commit."""
        self.hours += 1
        self.git("checkout", "-q", into)
        self.git("merge", "-q", "--no-ff", "-m", message, *others)
        return self.git("rev-parse", "HEAD")

    def graph(self, parents: Sequence[Sequence[int]], empty: Sequence[bool] = ()) -> list[str]:
        """Make commits 0, 1, ... with these parents; an empty one has the tree of its first."""
        lines: list[str] = []
        for at, above in enumerate(parents):
            lines += [] if above else ["reset refs/heads/main", ""]
            lines += ["commit refs/heads/main", f"mark :{at + 1}"]
            lines += [f"committer A Person <person@example.org> {START + 3600 * at} +0000"]
            lines += [f"data {len(str(at))}", str(at)]
            lines += [f"{'merge' if place else 'from'} :{up + 1}" for place, up in enumerate(above)]
            if not (empty and empty[at]):
                lines += [f"M 100644 inline f{at}.py", f"data {len(str(at))}", str(at)]
            lines += [""]
        self.git("fast-import", "--quiet", "--force", "--export-marks=.git/marks",
                 data="\n".join(lines).encode())  # fmt: skip
        marks = dict(line.split() for line in (self.top / ".git/marks").read_text().splitlines())
        return [marks[f":{at + 1}"] for at in range(len(parents))]
