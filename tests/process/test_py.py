"""`rl py`: lines as people type them, in a real shell, on every Python that is here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import World
from tests.needs import OWN, PYTHONS, python_with_torch

NEWER = [version for version in PYTHONS if version != "3.11"]


@pytest.fixture(params=sorted(PYTHONS))
def each_python(request, world: World) -> str:
    """Let `python` be each of the Pythons that are here, one after the other."""
    use(world, request.param)
    return str(request.param)


def use(world: World, version: str) -> None:
    (world.bin / "python").symlink_to(PYTHONS[version])


def trials(world: World, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(world.rl("log", "--json", *words).stdout)["trials"]
    return found


# --- what a line can say --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "typed", "printed"),
    [
        (["for i in range(3): print(i)"], "", "0\n1\n2\n"),
        (["x = 3; for i in range(x): print(i);; print('done')"], "", "0\n1\n2\ndone\n"),
        (["print(sys.argv)", "a", "-x", "--", "b c"], "", "['-c', 'a', '-x', '--', 'b c']\n"),
        (["--", "-1 + 2"], "", "1\n"),
        (["'a\\nb'"], "", "a\nb\n"),
        (["None"], "", ""),
        (["x = 1; x"], "", ""),
        (
            ["{n: 'x' * 30 for n in (1, 2, 3)}"],
            "",
            f"{{1: '{'x' * 30}',\n 2: '{'x' * 30}',\n 3: '{'x' * 30}'}}\n",
        ),
        (["[*Path('.').glob('*.md')]"], "", "[PosixPath('README.md')]\n"),
        (["await asyncio.sleep(0, 'slept')"], "", "slept\n"),
        (["async def f(): return 1;; x = await f(); print(x + 1)"], "", "2\n"),
        (["match [1, 2]: case [a, b]: print(a + b); case _: print('no')"], "", "3\n"),
        (
            ["@cache def f(n): return n if n < 2 else f(n - 1) + f(n - 2);; print(f(50))"],
            "",
            "12586269025\n",
        ),
        (
            ["try: 1/0 except ZeroDivisionError as e: print(e) finally: print('end')"],
            "",
            "division by zero\nend\n",
        ),
        (["line.split()[1]"], "a b\nc d\n", "b\nd\n"),
        (["line = line.strip(); if line: print(line)"], " a\n\nb \n", "a\nb\n"),
        (["line if 'o' in line else None"], "one\ntwo\nsix\n", "one\ntwo\n"),
        (["if n > 2: break;; print(n, line)"], "a\r\nb\nc\n", "1 a\n2 b\n"),
        (["await asyncio.sleep(0, line.upper())"], "a\nb", "A\nB\n"),
        (["len(lines), lines"], "a\nb", "(2, ['a', 'b'])\n"),
        (["f'{n}/{len(lines)} {line}'"], "a\nb\n", "1/2 a\n2/2 b\n"),
        (["t = 0; for line in sys.stdin: t += int(line);; print(t)"], "1\n2\n", "3\n"),
        (["print('not'\n' one line')\nprint(2)"], "", "not one line\n2\n"),
    ],
)
def test_a_line_does_what_it_says_and_rl_says_nothing(world: World, words, typed, printed):
    done = world.rl("py", *words, input=typed)
    assert (done.stdout, done.stderr, done.returncode) == (printed, "", 0)


def test_every_python_reads_its_own_grammar(world: World, each_python):
    line = "d = {'a': 3}; for k in d: print(f'{d[k]:>{d[k]}};{k!r}', sys.version_info[1])"
    done = world.rl("py", line)
    assert (done.stdout, done.stderr) == (f"  3;'a' {each_python[2:]}\n", "")


ALIKE = """
import ast, json, sys
sys.path[:0] = sys.argv[1:3]
from tests.unit.desk.made_programs import program
from relaunch.desk.oneliner.expand import expand
from relaunch.desk.oneliner.names import read
from relaunch.desk.oneliner.program import write
found = []
for seed in range(60):
    lines, line = program(seed)
    assert ast.dump(ast.parse(expand(line))) == ast.dump(ast.parse(lines)), line
    names = read(lines)  # nothing where scopes are wrong, which newer Pythons see sooner
    found.append(names and [write(line, lambda _: None).text, sorted(names.free)])
print(json.dumps(found))
"""


@pytest.mark.parametrize("version", NEWER)
def test_every_python_makes_the_same_program_of_a_line(version):
    root = Path(__file__).parents[2]

    def made(python: str) -> list[Any]:
        argv = [python, "-W", "ignore", "-c", ALIKE, str(root / "src"), str(root)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=True)
        found: list[Any] = json.loads(done.stdout)
        return found

    both = list(zip(made(sys.executable), made(PYTHONS[version]), strict=True))
    assert [ours for ours, theirs in both if theirs] == [theirs for _, theirs in both if theirs]
    assert sum(bool(theirs) for _, theirs in both) > len(both) / 2


@pytest.mark.parametrize("version", NEWER)
def test_syntax_that_only_the_programs_python_knows_is_read_by_it(world: World, version):
    use(world, version)
    line = 'd = {"a;b": 3}; type N = int; for k in d: print(f"{d["a;b"]} {math.floor(2.5)}")'
    done = world.rl("py", line)
    assert (done.stdout, done.stderr) == ("3 2\n", "")


def test_arrays_and_submodules_of_what_is_installed(world: World):
    env = {"VIRTUAL_ENV": os.path.dirname(os.path.dirname(python_with_torch()))}
    done = world.rl("py", "np.linalg.eigvals(np.eye(2)) + np.arange(2)", env=env)
    assert (done.stdout, done.stderr) == ("array([1., 2.])\n", "")
    shown = world.rl("py", "--show", "print(torch.utils.data.Dataset, F.relu)", env=env)
    added = ["import torch.utils.data", "import torch.nn.functional as F"]
    assert shown.stdout.split("\n")[:2] == added


def test_modules_of_the_project_and_of_a_clone_are_imported(world: World):
    world.write("helper/__init__.py", "")
    world.write("helper/deep.py", "def twice(x): return 2 * x\n")
    world.write("train.py", "def train(x): return x + 1\n")
    clone = world.root / "clone/src/other"
    clone.mkdir(parents=True)
    (clone / "__init__.py").write_text("there = 7\n")
    (world.root / "clone/pyproject.toml").write_text('[project]\nname = "other"\n')
    assert world.rl("py", "train(helper.deep.twice(3))").stdout == "7\n"
    assert world.rl("py", "--src", str(world.root / "clone"), "other.there").stdout == "7\n"


def test_a_module_that_only_a_finder_knows_is_imported_too(world: World):
    use(world, OWN)
    there = world.write("hidden/nowhere_else.py", "x = 5\n")
    hook = world.root / "hooked"
    hook.mkdir()
    (hook / "usercustomize.py").write_text(
        "import sys\n"
        "from importlib.util import spec_from_file_location\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'nowhere_else':\n"
        f"            return spec_from_file_location(name, {str(there)!r})\n"
        "sys.meta_path.append(Finder())\n"
    )
    done = world.rl("py", "nowhere_else.x", env={"PYTHONPATH": str(hook)})
    assert (done.stdout, done.stderr) == ("5\n", "")


def test_the_environment_in_the_tree_is_the_projects_python(world: World):
    venv = world.project / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python").symlink_to(PYTHONS[OWN])
    home = os.path.dirname(os.path.realpath(PYTHONS[OWN]))
    (venv / "pyvenv.cfg").write_text(f"home = {home}\nversion = {OWN}.0\n")
    (world.project / "deep").mkdir()
    done = world.rl("py", "sys.prefix", cwd=world.project / "deep")
    assert done.stdout == f"{venv}\n"


# --- when it fails --------------------------------------------------------------------------------


def test_a_traceback_shows_the_line_and_points_at_it(world: World, each_python):
    done = world.rl("-q", "--", "true")  # so that the next is not the first, and says less
    done = world.rl("py", "-q", "def f(y): return 1 / y;; x = 1; for i in range(2): f(x - i)")
    carets = "~~^~~" if each_python >= "3.13" else ""
    assert done.returncode == 1
    assert done.stderr.split("\n") == [
        "Traceback (most recent call last):",
        '  File "<string>", line 5, in <module>',
        "    f(x - i)",
        *([f"    {'~^^^^^^^'}"] if carets else []),
        '  File "<string>", line 2, in f',
        "    return 1 / y",
        "           ~~^~~",
        "ZeroDivisionError: division by zero",
        "",
    ]
    (trial,) = trials(world)[1:]
    assert trial["signature"]["title"] == "<string>:2 ZeroDivisionError: division by zero"


@pytest.mark.parametrize("line", ["x = 1; print(x / 0)", "math.sqrt(x / 0 if (x := 1) else 2)"])
def test_the_marks_are_under_the_place(world: World, each_python, line):
    lines = world.rl("py", "-q", line).stderr.split("\n")
    shown = lines.index(f"    {line}")
    marks = lines[shown + 1]
    assert lines[shown][marks.index("~") : len(marks)] == "x / 0"


@pytest.mark.parametrize(
    "line", ["1 + {}['a']", "line + {}['a']", "await asyncio.sleep(0) or {}['a']"]
)
def test_only_the_line_itself_is_in_the_traceback(world: World, each_python, line):
    done = world.rl("py", "-q", line, input="x\n")
    shown = [
        text for text in done.stderr.split("\n") if text[:4] == "    " and set(text) - {*" ~^"}
    ]
    assert shown == [f"    {line}"]
    assert done.stderr.count("  File ") == 1
    assert done.stderr.endswith("KeyError: 'a'\n")


def test_a_misspelt_name_is_one_line_with_the_nearest(world: World, each_python):
    world.write("my_model.py", "")
    for line, nearest in (("defaultdic(int)", "defaultdict"), ("x = 1; my_modl.x", "my_model")):
        done = world.rl("py", "-q", line)
        name = line.split("; ")[-1].partition("(")[0].partition(".")[0]
        said = f"NameError: name '{name}' is not defined. Did you mean: '{nearest}'?\n"
        assert (done.stderr, done.returncode) == (said, 1)
    done = world.rl("py", "-q", "qqqqqq")
    assert done.stderr == "NameError: name 'qqqqqq' is not defined\n"


def test_the_failure_is_told_as_any_other(world: World):
    for _ in range(2):
        done = world.rl("py", "jsn.dumps(1)")
    assert "exit 1" in done.stderr
    assert "NameError: name 'jsn' is not defined" in done.stderr
    assert "same failure as #1" in done.stderr


def test_wrong_syntax_is_shown_where_it_is(world: World, each_python):
    done = world.rl("py", "-q", "x = 3; for i in range(x) print(i)")
    assert done.returncode == 1
    assert "    for i in range(x) print(i)\n" in done.stderr
    assert "SyntaxError: " in done.stderr


def test_source_is_not_shown_for_what_exec_runs(world: World):
    use(world, OWN)
    if OWN >= "3.13":
        pytest.skip("Python itself shows it")
    done = world.rl("py", "-q", "x = 1; if x: exec('\\n\\n1/0')")
    assert done.stderr.split("\n")[1:5] == [
        '  File "<string>", line 3, in <module>',
        "    exec('\\n\\n1/0')",
        '  File "<string>", line 3, in <module>',
        "ZeroDivisionError: division by zero",
    ]


def test_files_named_like_the_standard_library_do_not_hide_the_traceback(world: World):
    use(world, OWN)
    for name in ("traceback", "linecache", "re", "textwrap", "difflib"):
        world.write(f"{name}.py", "raise SystemExit('shadowed')\n")
    rl = f"{sys.executable} -P -m relaunch"  # as the installed script: without this folder
    assert "    x = 1; x/0\n" in world.shell(f"{rl} py -q 'x = 1; x/0'").stderr
    assert "mean: 'json'?" in world.shell(f"{rl} py -q jsn").stderr


def test_what_a_line_starts_is_no_one_liner(world: World):
    line = "subprocess.run([sys.executable, '-c', 'qqq = 1; print(qqqq)'])"
    done = world.rl("py", "-q", f"print({line}.returncode, 'RELAUNCH_LINE' in os.environ)")
    assert done.stdout == "1 False\n"
    assert done.stderr.startswith("Traceback (most recent call last):\n")


def test_exit_codes_and_signals_are_the_lines_own(world: World):
    assert world.rl("py", "exit(7)").returncode == 7
    assert world.shell("rl py 'os.kill(os.getpid(), 9)'").returncode == 137


# --- input ----------------------------------------------------------------------------------------


def test_a_reader_that_has_had_enough_ends_it_quietly(world: World, each_python):
    done = world.shell("seq 200000 | { rl py 'line'; echo $? >&2; } | head -1")
    assert (done.stdout, done.stderr) == ("1\n", "0\n")
    assert [trial["state"] for trial in trials(world)] == ["passed"]


def test_another_broken_pipe_is_not_hushed_up(world: World):
    line = "r, w = os.pipe(); os.close(r); os.write(w, line.encode())"
    done = world.rl("py", "-q", line, input="x\n")
    assert "BrokenPipeError" in done.stderr
    assert done.returncode == 1


def test_input_of_any_length_takes_no_more_memory(world: World):
    line = "if n == len(line) * 2000: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    long = "x" * 200
    done = world.shell(f'yes {long} | head -n 400000 | rl py "{line}"')
    assert done.stderr == ""
    assert int(done.stdout) < 40_000  # of 80 MB


def test_bytes_that_are_no_text_pass_through(world: World):
    world.write("bytes", b"a\xff\xfeb\nc\n")
    done = world.shell("rl py 'line + \"!\"' < bytes")
    assert done.stdout.encode("utf-8", "surrogateescape") == b"a\xff\xfeb!\nc!\n"


# --- the journal ----------------------------------------------------------------------------------


def test_a_line_is_kept_as_it_was_typed_and_can_be_repeated(world: World):
    line = "x = 2; for i in range(x): print(i, json.dumps(sys.argv[1]))"
    world.rl("py", line, "a b")
    log = world.shell("COLUMNS=120 rl log").stdout
    assert f"rl py '{line}'"[:40] in log
    card = world.rl("show").stdout
    assert f"command   rl py '{line}' 'a b'\n" in card
    again = world.rl()
    assert f"$ rl py '{line}' 'a b'" in " ".join(again.stderr.split())
    assert again.stdout == '0 "a b"\n1 "a b"\n'
    assert world.rl("again", "1").stdout == again.stdout
    first, *rest = trials(world)
    assert first["typed"] == ["rl", "py", line, "a b"]
    assert first["command"][1:] == ["-c", f"import json\nimport sys\n{expanded(line)}", "a b"]
    assert [trial["typed"] for trial in rest] == [first["typed"]] * 2
    assert trials(world, "--command", "rl py for range(x)") == [first, *rest]


def expanded(line: str) -> str:
    from relaunch.desk.oneliner.expand import expand

    return expand(line)


def test_two_lines_are_compared_by_what_was_typed(world: World):
    world.rl("py", "np = 1; if np: print(1)")
    world.rl("py", "np = 1; if np: print(2)")
    found = world.rl("diff", "1", "2").stdout
    assert "[-" not in found
    assert "'np = 1; if np: print(1)'" in found


def test_options_of_a_launch_stand_before_the_line(world: World):
    done = world.rl("py", "-m", "why", "--env", "A=1", "--timeout", "30", "os.environ['A']")
    assert done.stdout == "1\n"
    (trial,) = trials(world)
    assert trial["note"] == "why"
    slow = world.rl("py", "--timeout", "0.2", "time.sleep(30)")
    assert slow.returncode == 124
    told = world.rl("py", "--json", "1").stderr.splitlines()
    assert [json.loads(line)["event"] for line in told] == ["announced", "finished"]
    twice = world.rl("py", "-n", "2", "print(3)")
    assert "2/2" in twice.stdout + twice.stderr


def test_the_projects_reset_is_not_run_for_a_line_and_one_that_is_asked_for_is(world: World):
    world.write("relaunch.toml", "[run]\nreset = 'touch was_reset'\n")
    world.rl("py", "1")
    assert not (world.project / "was_reset").exists()
    world.rl("py", "--reset", "touch asked", "1")
    assert (world.project / "asked").exists()


def test_a_secret_in_a_line_does_not_reach_the_journal(world: World):
    env = {"SOME_API_TOKEN": "hush-hush-hush"}
    world.rl("py", "x = 'hush-hush-hush'; if x: print(len(x))", env=env)
    assert "hush-hush" not in json.dumps(trials(world))
    start = json.loads(next((world.journal / "trials/1").glob("start*.json")).read_text())
    assert "hush-hush" not in json.dumps(start)
    assert world.rl(env=env).stdout == "14\n"


# --- looking before ---------------------------------------------------------------------------


def test_show_prints_the_program_and_runs_nothing(world: World):
    done = world.rl("py", "--show", "x = 3; for i in range(x): print(math.sqrt(i))")
    assert done.stdout == "import math\nx = 3\nfor i in range(x):\n    print(math.sqrt(i))\n"
    shown = json.loads(world.rl("py", "--show", "--json", "jsn.x(line, json)").stdout)
    assert shown["schema"] == "relaunch/py/1"
    assert (shown["imports"], shown["missing"]) == (["import json"], ["jsn"])
    assert shown["each_line"] is True
    assert shown["command"] == [shown["python"], "-c", shown["program"]]
    assert trials(world) == []


def test_the_program_that_is_shown_needs_nothing_of_ours(world: World):
    program = world.rl("py", "--show", "line.upper()").stdout
    path = world.write("shown.py", program)
    done = world.shell(f"printf 'a\\nb\\n' | {sys.executable} -I {path}")
    assert done.stdout == "A\nB\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "rl: no line to run   try: rl py 'print(1 + 1)'"),
        ([" "], "rl: no line to run   try: rl py 'print(1 + 1)'"),
        (
            ["train.py", "--x"],
            "rl: `train.py` is a file, and `rl py` takes a line   try: rl -- python train.py --x",
        ),
        (["--shw", "1"], "rl: no option `--shw`; did you mean --show?   try: rl py --help"),
        (["-"], "rl: no option `-`   try: rl py --help"),
        (["-1"], "rl: no option `-1`   try: rl py --help"),
        (
            ["--timeout", "x", "1"],
            "rl: --timeout takes a time such as 30, 90s, 5m or 2h, not `x`   try: --timeout 5m",
        ),
        (["--"], "rl: no line to run   try: rl py 'print(1 + 1)'"),
    ],
)
def test_wrong_words_get_one_line(world: World, words, said):
    world.write("train.py", "")
    done = world.rl("py", *words)
    assert (done.stderr, done.stdout, done.returncode) == (said + "\n", "", 2)


def test_without_any_python_on_the_path_our_own_runs_it(world: World):
    nowhere = Path(world.root / "empty")
    nowhere.mkdir()
    git = [
        folder for folder in os.environ["PATH"].split(os.pathsep) if Path(folder, "git").exists()
    ]
    (nowhere / "git").symlink_to(Path(git[0]) / "git")
    done = world.rl("py", "sys.executable", env={"PATH": str(nowhere)})
    assert done.stdout == f"{sys.executable}\n"
