"""Real ranges of real projects, in clones that are given: the right commit, and in how many runs.

`--clones FOLDER` names a folder with clones of attrs, black, PySnooper and sqlglot.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from benchmarks import install
from benchmarks.commits import Taken, by_git, by_rl
from benchmarks.histories import Range, git
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

_HEAD = """\
import os, sys
for folder in ("src", "."):
    if os.path.exists(os.path.join(folder, {name!r})):
        sys.path.insert(0, os.path.abspath(folder))
        break
"""
_ATTRS = """\
import attr
Point = attr.make_class("Point", ["x", "y"], slots=True)
point = Point.__new__(Point)
point.__setstate__((3, 4))
assert getattr(point, "x", None) == 3, "the state of an older release is lost"
"""
_BLACK = """\
import black
line = "stack.append(-stack.pop())\\n"
options = {"mode": black.FileMode()} if hasattr(black, "FileMode") else {"line_length": 88}
shown = black.format_str(line, **options)
assert shown == line, "parentheses appeared"
"""
_PYSNOOPER = """\
import io
import pysnooper
seen = io.StringIO()
@pysnooper.snoop(seen, custom_repr=(dict, lambda value: "a-dict-it-was"))
def work():
    found = {"a": 1}
    return found
work()
assert "a-dict-it-was" in seen.getvalue(), "the pair was not used"
"""
_SQLGLOT = """\
import signal
import sqlglot
def too_slow(*_):
    raise TimeoutError("joins take for ever")
signal.signal(signal.SIGALRM, too_slow)
signal.setitimer(signal.ITIMER_REAL, 3.0)
sqlglot.parse_one("select 1 from t " + "left join u on t.k = u.k " * 40)
"""
_BLACK_NEEDS = (
    "click==8.0.4", "attrs", "appdirs", "toml", "pathspec<1", "platformdirs", "mypy_extensions",
    "tomli", "typing_extensions", "regex", "typed_ast",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A range in which the truth is known: by running its script at each distinct source."""

    name: str
    clone: str
    module: str
    script: str
    good: str
    bad: str
    culprit: str
    needs: tuple[str, ...] = ()
    """What is installed beforehand."""
    stub: str = ""
    """A module that the build of the project would write, and that is put there beforehand."""
    at_most: int = 0
    """How often the command may be run in all; 0: no promise."""


_BLACK_CASE = Case(
    name="black, parentheses", clone="black", module="black.py", script=_BLACK,
    good="c5fd578279ce9c576f5a5c9b56e5580a14227997",
    bad="df6e1a41f79f462645f66f61d4d8785a415deb95",
    culprit="b073c9a4e956f0e350394b7b164cac25801256d7",
    needs=_BLACK_NEEDS, stub="_black_version",
)  # fmt: skip
_BARE_BLACK = replace(
    _BLACK_CASE,
    name="black, its packages missing",
    needs=("click==8.0.4", "attrs"),
    stub="",
    at_most=15,
)
CASES = (
    Case(
        name="attrs, state of slots", clone="attrs", module="attr", script=_ATTRS,
        good="ca06613b750936f6edd315cd94e5c7de0db6580d",
        bad="a9960de98d0f58ccb2880d03c97dafba3fc1111c",
        culprit="89a890a3262273514619d1881c6a8b0fe26c66ac",
    ),
    _BLACK_CASE,
    _BARE_BLACK,
    Case(
        name="PySnooper, mended", clone="PySnooper", module="pysnooper", script=_PYSNOOPER,
        good="43bde4b8bf730b4782d8897b601a5925f6621f37",
        bad="31bfc637bca3c98ad8ce70e5a4383283b7407117",
        culprit="814abc34a098c1b98cb327105ac396f985d2413e",
        needs=("decorator", "six", "colorama"),
    ),
    Case(
        name="sqlglot, slow joins", clone="sqlglot", module="sqlglot", script=_SQLGLOT,
        good="b2175d1d4302a82dbd8453e34c6a736d1c3a955a",
        bad="250bc50899c818bc9b93f6aa7b4456b485e0b5f9",
        culprit="105cbb67368d133b18ef541dd5141626873485a0",
    ),
)  # fmt: skip


def of_real_projects(run: Run) -> Table:
    """Search them by git and by rl."""
    table = Table(
        name="projects",
        title="Commits of real projects: runs, and right answers",
        columns=("range", "commits", "git", "right", "rl", "right", "rl, every start"),
        figure="rl/git",
    )
    if run.clones is None:
        table.notes = ["no clones were given: `--clones FOLDER`"]
        return table
    pairs: list[tuple[int, int]] = []
    all_right = []
    for case in CASES:
        at = _range(run, case)
        by_them, ours = by_git(at), by_rl(run, at)
        table.rows.append(_row(case, at, by_them, ours))
        all_right.append(ours.is_right)
        if by_them.is_right:
            pairs.append((ours.runs, by_them.runs))
        if case.at_most:
            cells = (f"  at most {case.at_most} in all",)
            table.rows.append(Row(cells=cells, ratio=ours.every / case.at_most, at_most=1.0))
    share = sum(all_right) / len(all_right)
    table.rows.append(Row(cells=("rl: right", str(len(all_right))), ratio=share, at_least=1.0))
    average = sum(ours for ours, _ in pairs) / sum(theirs for _, theirs in pairs)
    table.rows.append(Row(cells=("where git is right", str(len(pairs))), ratio=average))
    table.notes = ["git takes any failure for the one looked for: its runs count where it is right"]
    return table


def _row(case: Case, at: Range, by_them: Taken, ours: Taken) -> Row:
    commits = git(at.top, "rev-list", "--count", f"{at.good}..{at.bad}").strip()
    cells = (
        case.name, commits, str(by_them.runs), _said(by_them), str(ours.runs), _said(ours),
        str(ours.every),
    )  # fmt: skip
    return Row(cells=cells, ratio=ours.runs / by_them.runs if by_them.is_right else None)


def _said(taken: Taken) -> str:
    return "yes" if taken.is_right else "no"


def _range(run: Run, case: Case) -> Range:
    """Clone it, and put the script, which counts its runs, beside it."""
    assert run.clones is not None
    folder = run.work / case.name.replace(" ", "-").replace(",", "")
    git(run.work, "clone", "-q", "--shared", str(run.clones / case.clone), str(folder))
    if not (folder / ".git").is_dir():
        raise Unmeasured(f"{run.clones / case.clone}: no clone")
    where = install.venv(f"case-{case.clone}-{len(case.needs)}", run.python, case.needs)
    if case.stub:
        site = next(where.parent.glob("lib/*/site-packages"))
        (site / f"{case.stub}.py").write_text("version = '0'\n")
    count, script = folder.with_suffix(".count"), folder.with_suffix(".py")
    script.write_text(
        f"open({str(count)!r}, 'a').write('x')\n{_HEAD.format(name=case.module)}{case.script}"
    )
    return Range(
        top=folder,
        good=case.good,
        bad=case.bad,
        culprit=case.culprit,
        place=0,
        command=(str(where / "python"), str(script)),
        count=count,
        kind="reversed" if case.clone == "PySnooper" else "plain",
        env=_installers(),
    )


def _installers() -> dict[str, str]:
    """Return what of the person's environment says how packages are found."""
    names = ("PIP_", "UV_", "SSL_", "REQUESTS_")
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(names) or name.lower().endswith("_proxy")
    }
