"""What `rl bisect` finds on this machine: checkouts, installers, other Pythons; each is tried."""

from __future__ import annotations

import os
import sys
import tempfile

from relaunch.desk.doctor import Ladder, Rung
from relaunch.errors import PlaceError
from relaunch.journal.home import find_home
from relaunch.proc.capture import capture
from relaunch.proc.git import git_env
from relaunch.trial.place.checkout import open_checkout
from relaunch.trial.place.environment import Environments
from relaunch.trial.place.installer import ways
from relaunch.trial.place.interpreter import interpreter
from relaunch.trial.place.pythons import numbers, pythons, version_of
from relaunch.trial.place.requirements import Requirements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_LIMIT_S = 60.0
_MEANS = {
    "uv": "environments of old revisions in a moment; packages as they were on a day",
    "pip": "environments of old revisions by the pip of your Python; not those of a day",
    "venv": "environments of old revisions, each with a pip of its own: some seconds more",
}
_NEEDS = {
    "uv": "pip install uv",
    "pip": "python -m pip install --upgrade pip  # 22.3 or later",
    "venv": "a Python that has venv and ensurepip",
}


def bisect_ladders(cwd: str, env: Mapping[str, str]) -> list[Ladder]:
    """Try what a search among commits needs; what is written for it is gone at the end."""
    found = interpreter(("python",), env, cwd) or interpreter(("python3",), env, cwd)
    python = found.executable if found is not None else sys.executable
    with tempfile.TemporaryDirectory(prefix="rl-doctor-") as scratch:
        caches = os.path.join(scratch, "caches")
        env = {**env, "UV_CACHE_DIR": caches, "PIP_CACHE_DIR": caches}
        return [
            _commits(find_home(cwd).git_dir, env, scratch),
            _packages(python, env, scratch),
            _pythons(python, env),
        ]


def _commits(git_dir: str, env: Mapping[str, str], scratch: str) -> Ladder:
    fault = _try_checkout(env, scratch)
    inside = "" if git_dir else "run it inside a git repository"
    return Ladder(
        name="commits",
        rungs=(
            Rung(
                name="checkouts beside",
                ok=not fault and bool(git_dir),
                means="`rl bisect` tries commits in trees that borrow your repository's objects",
                raise_it=fault or inside,
            ),
            Rung(name="none", ok=True, means="`rl bisect` searches releases and variables alone"),
        ),
    )


def _try_checkout(env: Mapping[str, str], scratch: str) -> str:
    """Commit a file in a tiny repository and check it out beside it; returns what went wrong."""
    clean = git_env(env)
    top = os.path.join(scratch, "repository")
    os.mkdir(top)
    with open(os.path.join(top, "file"), "w", encoding="ascii") as file:
        file.write("seen\n")
    git = ["git", "-C", top]
    who = ["-c", "user.name=rl", "-c", "user.email=rl@localhost"]
    for words in (
        ["init", "-q", "--template="],
        ["add", "-A"],
        [*who, "commit", "-q", "-m", "seen"],
    ):
        done = capture([*git, *words], env=clean)
        if done.code:
            said = os.fsdecode(done.err).strip().splitlines()
            return said[-1] if said and done.code != 127 else "install git"
    commit = capture([*git, "rev-parse", "HEAD"], env=clean).text.strip()
    try:
        with open_checkout(os.path.join(scratch, "checkouts"), top) as checkout:
            checkout.go_to(commit)
            with open(os.path.join(checkout.path, "file"), "rb") as file:
                return "" if file.read() == b"seen\n" else "git put another file there"
    except (PlaceError, OSError) as error:
        return str(error)


def _packages(python: str, env: Mapping[str, str], scratch: str) -> Ladder:
    """Make an empty environment: which installer really did it?"""
    claimed = ways(env, python)
    made = ""
    try:
        kept = Environments(
            os.path.join(scratch, "environments"), python, env=env, limit_s=_LIMIT_S
        )
        found = kept.for_requirements(Requirements())
        made = found.made_by if capture([found.python, "-I", "-c", ""]).code == 0 else ""
    except PlaceError:
        pass
    works = claimed[claimed.index(made) :] if made else []
    rungs = [
        Rung(
            name=name,
            ok=name in works,
            means=means,
            raise_it="" if name in works else _NEEDS[name],
        )
        for name, means in _MEANS.items()
    ]
    last = Rung(name="none", ok=True, means="revisions that need other packages are passed over")
    return Ladder(name="packages", rungs=(*rungs, last))


def _pythons(python: str, env: Mapping[str, str]) -> Ladder:
    mine = version_of(python)
    newest: dict[tuple[int, ...], str] = {}
    for version, _ in pythons(env):
        if version[0] == "3" and numbers(version)[:2] != numbers(mine)[:2]:
            newest.setdefault(numbers(version)[:2], version)
    return Ladder(
        name="pythons",
        rungs=(
            Rung(
                name=f"{len(newest)} besides {mine}" if newest else "others",
                ok=bool(newest),
                means=f"commits that {mine} cannot run get one of {', '.join(newest.values())}"
                if newest
                else f"none but {mine} was found on PATH, by pyenv or by uv",
                raise_it="" if newest else "uv python install 3.9, or pyenv install 3.9",
            ),
            Rung(name=mine, ok=True, means="commits that it cannot run are passed over"),
        ),
    )
