"""Repositories for searches: many small modules, a culprit among commits that do not matter."""

from __future__ import annotations

import random
import subprocess
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

MODULES, FUNCTIONS = 12, 6
USED_MODULES, USED_FUNCTIONS = 6, 4
"""A third of the functions run: so these lines tell about as much as in real ranges, 2.6 bits."""
ERAS = 3
ENV = {
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null", "PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8",
}  # fmt: skip
KINDS = ("plain", "merges", "breakage", "eras", "same size", "reversed")
OTHERWISE = frozenset(("breakage", "eras"))
"""The kinds in which some commits fail with another error."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """A repository, both its ends and the truth."""

    top: Path
    good: str
    bad: str
    culprit: str
    place: int
    """How many commits after the good end the culprit is."""
    command: tuple[str, ...]
    count: Path
    """A file that grows by a byte with each run of the command."""
    kind: str
    env: dict[str, str] = field(default_factory=dict)
    """Where installers find the packages of the eras."""


def make(
    folder: Path, kind: str, size: int, seed: int, python: str, *, pause_s: float = 0.0
) -> Range:
    """Make a repository of one kind with `size` commits after the first."""
    rng = random.Random(f"{kind}/{size}/{seed}")
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    culprit = rng.randint(1, size)
    lines: list[str] = []
    code = _Code(rng, kind)
    brought: dict[str, str] = {}
    for number in range(size + 1):
        changed = code.changed(number, is_culprit=number == culprit) if number else code.texts()
        if kind == "eras":
            changed |= _era(number, size)
        elif kind == "breakage" and number:
            broken = rng.random() < 0.3 and number not in (culprit - 1, culprit, size)
            changed["extra.py"] = "import missing_thing\n" if broken else ""
        parents = parents_of(kind, number)
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
    script.write_text(_script(count, pause_s))
    return Range(
        top=folder,
        good=marks[":1"],
        bad=marks[f":{size + 1}"],
        culprit=marks[f":{culprit + 1}"],
        place=culprit,
        command=(python, str(script)),
        count=count,
        kind=kind,
        env=_wheels(folder.with_suffix(".wheels")) if kind == "eras" else {},
    )


def git(folder: Path, *words: str) -> str:
    """Run git there."""
    done = subprocess.run(["git", *words], cwd=folder, env=ENV, capture_output=True, text=True)
    return done.stdout


class _Code:
    """The modules, as they are after each commit: each has a few small functions."""

    def __init__(self, rng: random.Random, kind: str) -> None:
        self._rng = rng
        self._kind = kind
        self._versions = [[0] * FUNCTIONS for _ in range(MODULES)]
        self._broken = rng.randrange(USED_MODULES), rng.randrange(USED_FUNCTIONS)
        self._fails = kind == "reversed"

    def texts(self) -> dict[str, str]:
        """Return them all."""
        return {f"part{number}.py": self._text(number) for number in range(MODULES)}

    def changed(self, number: int, *, is_culprit: bool) -> dict[str, str]:
        """Make a commit: of one function, at times of papers; the culprit's function is run."""
        rng = self._rng
        if is_culprit:
            module, function = self._broken
            self._fails = not self._fails
        elif rng.random() < 0.3 and self._kind != "same size":
            return {f"docs/{rng.randrange(9)}.md": f"{number}\n"}
        else:
            module, function = rng.randrange(MODULES), rng.randrange(FUNCTIONS)
        self._versions[module][function] = number
        return {f"part{module}.py": self._text(module)}

    def _text(self, module: int) -> str:
        parts = []
        for number, version in enumerate(self._versions[module]):
            fails = self._fails and self._broken == (module, number)
            parts.append(
                f"def work{number}():\n    total = {100000 + version}\n"
                f"    assert {int(not fails)}, 'broken'\n    return total\n"
            )
        return "\n\n".join(parts)


def _era(number: int, size: int) -> dict[str, str]:
    """Say what a commit needs: a package that changed its one function twice."""
    era = 1 + ERAS * number // (size + 1)
    if number and era == 1 + ERAS * (number - 1) // (size + 1):
        return {}
    return {
        "requirements.txt": f"era-helper=={era}\n",
        "extra.py": f"from era_helper import of_version_{era}\n",
    }


def _wheels(folder: Path) -> dict[str, str]:
    """Make the package in its versions; returns what lets installers find it, and nothing else."""
    folder.mkdir()
    for era in range(1, ERAS + 1):
        info = f"era_helper-{era}.dist-info"
        with zipfile.ZipFile(folder / f"era_helper-{era}-py3-none-any.whl", "w") as wheel:
            wheel.writestr("era_helper.py", f"def of_version_{era}():\n    pass\n")
            wheel.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: era-helper\nVersion: {era}\n"
            )
            wheel.writestr(
                f"{info}/WHEEL",
                "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            )
            wheel.writestr(f"{info}/RECORD", "")
    where = str(folder)
    return {
        "PIP_FIND_LINKS": where, "PIP_NO_INDEX": "1", "UV_FIND_LINKS": where, "UV_OFFLINE": "1",
    }  # fmt: skip


def parents_of(kind: str, number: int) -> list[int]:
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


def _script(count: Path, pause_s: float) -> str:
    """Write the command; with the word `told` it exits as `git bisect run` wants to be told."""
    uses = "".join(
        f"    import part{module}\n"
        + "".join(f"    part{module}.work{number}()\n" for number in range(USED_FUNCTIONS))
        for module in range(USED_MODULES)
    )
    return (
        f"import sys, time\nsys.path.insert(0, '.')\n"
        f"open({str(count)!r}, 'a').write('x')\ntime.sleep({pause_s})\n"
        f"def main():\n    try:\n        import extra\n    except ModuleNotFoundError as error:\n"
        f"        if error.name != 'extra':\n            raise\n{uses}"
        "if 'told' in sys.argv:\n    try:\n        main()\n"
        "    except AssertionError:\n        sys.exit(1)\n"
        "    except Exception:\n        sys.exit(125)\nelse:\n    main()\n"
    )
