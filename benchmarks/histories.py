"""Repositories for searches: many small modules, a culprit among commits that do not matter."""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

MODULES, USED = 30, 5
ENV = {
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null", "PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8",
}  # fmt: skip
KINDS = ("plain", "merges", "breakage", "reversed", "same size")


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """A repository, both its ends and the truth."""

    top: Path
    good: str
    bad: str
    culprit: str
    command: tuple[str, ...]
    count: Path
    """A file that grows by a byte with each run of the command."""
    is_reversed: bool


def make(folder: Path, kind: str, size: int, seed: int, python: str) -> Range:
    """Make a repository of one kind with `size` commits after the first."""
    rng = random.Random(f"{kind}/{size}/{seed}")
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    culprit = rng.randint(1, size)
    lines: list[str] = []
    first = kind == "reversed"
    texts = {f"part{n}.py": _module(n, 0, fails=first and not n) for n in range(MODULES)}
    brought: dict[str, str] = {}
    for number in range(size + 1):
        changed = _changes(rng, kind, number, culprit, texts) if number else {**texts}
        parents = _parents(kind, number)
        brought = {**brought, **changed} if number % 6 in (2, 3, 4, 5) else {}
        lines += _commit(number, {**brought, **changed} if len(parents) > 1 else changed, parents)
    subprocess.run(
        ["git", "fast-import", "--quiet", "--export-marks=.git/marks"],
        cwd=folder, env=ENV, input="\n".join(lines).encode() + b"\n", check=True,
    )  # fmt: skip
    git(folder, "reset", "-q", "--hard", "main")
    marks = dict(line.split() for line in (folder / ".git/marks").read_text().splitlines())
    count = folder.with_suffix(".count")
    script = folder.with_suffix(".py")
    script.write_text(_script(count))
    return Range(
        top=folder,
        good=marks[":1"],
        bad=marks[f":{size + 1}"],
        culprit=marks[f":{culprit + 1}"],
        command=(python, str(script)),
        count=count,
        is_reversed=kind == "reversed",
    )


def git(folder: Path, *words: str) -> str:
    """Run git there."""
    done = subprocess.run(["git", *words], cwd=folder, env=ENV, capture_output=True, text=True)
    return done.stdout


def _module(number: int, version: int, *, fails: bool) -> str:
    return (
        f"VERSION = {100000 + version}\n\n\ndef work():\n    total = {100000 + version}\n"
        f"    assert {int(not fails)}, 'broken'\n    return total\n"
    )


def _changes(
    rng: random.Random, kind: str, number: int, culprit: int, texts: dict[str, str]
) -> dict[str, str]:
    """Say what a commit writes: mostly one module, at times papers, the culprit one that runs."""
    fails_now = (number >= culprit) != (kind == "reversed")
    if number == culprit:
        name = "part0.py"
        texts[name] = _module(0, number, fails=fails_now)
    elif rng.random() < 0.3 and kind != "same size":
        return {f"docs/{rng.randrange(9)}.md": f"{number}\n"}
    else:
        which = rng.randrange(1, MODULES)
        name = f"part{which}.py"
        texts[name] = _module(which, number, fails=False)
    if kind == "breakage":
        broken = rng.random() < 0.3 and number not in (culprit - 1, culprit)
        return {name: texts[name], "extra.py": "import missing_thing\n" if broken else ""}
    return {name: texts[name]}


def _parents(kind: str, number: int) -> list[int]:
    """Say what a commit follows: with merges, three of six are on a branch, one merges it."""
    if not number:
        return []
    if kind == "merges" and number % 6 == 5:
        return [number - 4, number - 1]
    return [number - 1]


def _commit(number: int, changed: dict[str, str], parents: list[int]) -> list[str]:
    when = 1_700_000_000 + 60 * number
    lines = [
        f"commit refs/heads/main\nmark :{number + 1}",
        f"committer A <a@example.org> {when} +0000",
        f"data <<END\nchange {number}\nEND",
    ]
    for place, parent in enumerate(parents):
        lines.append(f"{'merge' if place else 'from'} :{parent + 1}")
    for name, text in changed.items():
        lines.append(f"M 644 inline {name}\ndata {len(text)}\n{text}")
    return lines


def _script(count: Path) -> str:
    uses = "".join(f"import part{number}\npart{number}.work()\n" for number in range(USED))
    return (
        f"import sys\nsys.path.insert(0, '.')\nsys.dont_write_bytecode = False\n"
        f"open({str(count)!r}, 'a').write('x')\n"
        f"try:\n    import extra\nexcept ModuleNotFoundError as error:\n"
        f"    if error.name != 'extra':\n        raise\n{uses}"
    )
