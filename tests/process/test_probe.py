"""`rl probe`: values, pauses and counts at a line of a real program, in all its processes."""

from __future__ import annotations

import json
import os
import sys
import tempfile

import pytest
from tests.needs import every_python

TRAIN = """\
import sys
class Model:
    __scale = 2
    def forward(self, x):
        y = x * self.__scale
        return y + 1
def main(n):
    total = 0
    model = Model()
    for i in range(n):
        total += model.forward(i)
    print(total)
main(int(sys.argv[1]))
"""


@pytest.fixture
def train(world):
    world.write("train.py", TRAIN)
    return world


def told(done):
    """The lines of probes, without those of rl."""
    return [line for line in done.stderr.splitlines() if not line.startswith(("rl", "    "))]


def remarks(done):
    return [line[4:] for line in done.stderr.splitlines() if line.startswith("rl: ")]


@every_python
def test_values_are_shown_with_their_own_text(train, python):
    words = ("probe", "train.py:5", "y", "self.__scale", "--", python, "train.py", "2")
    done = train.rl(*words)
    assert done.returncode == 0
    assert done.stdout == "4\n"
    assert told(done) == [
        "train.py:5 y=0  self.__scale=2",
        "train.py:5 y=2  self.__scale=2",
    ]
    assert remarks(done) == ["train.py:5 hit 2 times"]


def test_without_expressions_the_line_says_what_to_look_at(train):
    python = sys.executable
    done = train.rl("probe", "train.py:11", "--", python, "train.py", "2")
    assert told(done) == ["train.py:11 total=1", "train.py:11 total=4"]
    done = train.rl("probe", "train.py:Model.forward")
    assert [line.partition(" x=")[2] for line in told(done)] == ["0", "1"]
    done = train.rl("probe", "train.py:Model.forward", "--after")
    assert told(done) == ["train.py:Model.forward returns 1", "train.py:Model.forward returns 3"]


def test_a_condition_and_which_times(train):
    run = ("--", sys.executable, "train.py", "10")
    done = train.rl("probe", "train.py:11", "i", "--if", "i % 3 == 0", *run)
    assert told(done) == [f"train.py:11 i={i}" for i in (0, 3, 6, 9)]
    done = train.rl("probe", "train.py:11", "i", "--every", "4", *run)
    assert told(done) == [f"train.py:11 i={i}" for i in (0, 4, 8)]
    done = train.rl("probe", "train.py:11", "i", "--first", "2", *run)
    assert told(done) == ["train.py:11 i=0", "train.py:11 i=1"]
    done = train.rl("probe", "train.py:11", "i", "--last", "2", *run)
    assert told(done) == []
    assert remarks(done) == ["train.py:11 i=8", "train.py:11 i=9", "train.py:11 hit 10 times"]
    done = train.rl("probe", "train.py:11", "i", "--if", "i > 99", *run)
    assert remarks(done) == ["train.py:11 came by 10 times; --if i > 99 was never true"]


def test_an_expression_that_fails_is_told_and_changes_nothing(train):
    done = train.rl("probe", "train.py:8", "nope", "1 / 0", "total", "--",
                    sys.executable, "train.py", "1")  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert told(done) == ["train.py:8 nope=<not set>  1 / 0=<ZeroDivisionError: division by zero>"
                          "  total=0"]  # fmt: skip
    done = train.rl("probe", "train.py:8", "total", "--if", "nope")
    assert told(done) == ["train.py:8 --if nope: NameError: name 'nope' is not defined"]


@every_python
def test_a_line_that_raises_shows_its_values_and_the_traceback_stays(world, python):
    world.write("boom.py", "def f(d, k):\n    v = d[k]\n    return v\nf({1: 2}, 5)\n")
    plain = world.rl("-q", "--", python, "boom.py")
    done = world.rl("probe", "-q", "boom.py:2", "d", "--", python, "boom.py")
    assert done.returncode == plain.returncode == 1
    first, _, rest = done.stderr.partition("\n")
    assert first == "boom.py:2 d={1: 2}  (raises KeyError: 5)"
    assert rest == plain.stderr


def test_a_log_is_written_as_it_would_be_in_the_program(train):
    done = train.rl("probe", "train.py:11", "--log", "step {i}: {total:>4} {'a'}", "--",
                    sys.executable, "train.py", "2")  # fmt: skip
    assert told(done) == ["train.py:11 step 0:    1 a", "train.py:11 step 1:    4 a"]


def test_counting_is_exact_and_survives_a_kill(train):
    train.write("work.py", "import os\nn = 0\nfor i in range(20_000):\n    n += 1\nos._exit(3)\n")
    done = train.rl("probe", "work.py:4", "--count", "--", sys.executable, "work.py")
    assert done.returncode == 3
    assert remarks(done) == ["work.py:4 hit 20,000 times"]
    train.write("work.py", "import os\nfor i in range(70):\n    n = i\nos.kill(os.getpid(), 9)\n")
    done = train.rl("probe", "work.py:3", "i", "--last", "1", "--", sys.executable, "work.py")
    assert remarks(done) == ["work.py:3 i=69", "work.py:3 hit 70 times"]


def test_each_way_to_a_line_is_told_once(world):
    world.write("who.py", "def a(): c()\ndef b(): c()\ndef c():\n    x = 1\na(); b(); a()\n")
    done = world.rl("probe", "who.py:4", "--who", "--", sys.executable, "who.py")
    lines = done.stderr.splitlines()
    assert lines.count("who.py:4 is called by") == 2
    assert "  who.py:1 a" in lines
    assert "  who.py:2 b" in lines


def test_a_program_dies_where_it_is_told_to(train):
    done = train.rl("probe", "train.py:12", "--die", "--", sys.executable, "train.py", "3")
    assert done.returncode == 71
    assert done.stdout == ""
    assert "  called by train.py:12 main" in done.stderr.splitlines()
    assert "exit 71: train.py:12 dies here" in done.stderr


def test_a_program_sleeps_where_it_is_told_to(train):
    done = train.rl("probe", "train.py:12", "--sleep", "0.3", "--", sys.executable, "train.py", "3")
    assert done.stdout == "9\n"
    assert "train.py:12 sleeps 0.3 s, process" in done.stderr


CHILDREN = """\
import multiprocessing, os, subprocess, sys
def work(n):
    seen = n * 2
    return seen
if __name__ == "__main__":
    how = sys.argv[1]
    if how == "fork":
        pid = os.fork()
        if not pid:
            work(7)
            os._exit(0)
        os.waitpid(pid, 0)
    elif how == "-c":
        subprocess.run([sys.executable, "-c", "import work; work.work(7)"], check=True)
    elif how == "-m":
        subprocess.run([sys.executable, "-m", "work", "main"], check=True)
    elif how == "main":
        work(7)
    else:
        with multiprocessing.get_context(how).Pool(1) as pool:
            pool.map(work, [7])
"""


@pytest.mark.parametrize("how", ["main", "fork", "-c", "-m", "spawn", "forkserver"])
def test_a_probe_is_in_every_process(world, how):
    world.write("work.py", CHILDREN)
    # The server's socket lies there: its path may have 107 characters.
    env = {"TMPDIR": tempfile.gettempdir()}
    done = world.rl("probe", "work.py:3", "seen", "--", sys.executable, "work.py", how, env=env)
    assert done.returncode == 0
    (line,) = [line for line in told(done) if "seen=" in line]
    assert line.endswith("work.py:3 seen=14")
    assert line.startswith("work.py" if how == "main" else "[")
    assert remarks(done) == ["work.py:3 hit 1 time"]


def test_a_console_script_is_probed(world):
    world.write("tool/__init__.py", "def main():\n    word = 'x'\n    print(word)\n")
    script = world.write("run", f"#!{sys.executable}\nfrom tool import main\nmain()\n")
    script.chmod(0o755)
    done = world.rl("probe", "tool/__init__.py:2", "word", "run:3", "--", "./run")
    assert told(done) == ["tool/__init__.py:2 word='x'"]
    assert "run:3 hit 1 time" in remarks(done)


def test_pytest_tells_the_same_with_and_without_probes(world):
    world.write("mod.py", "def double(n):\n    m = n * 2\n    return m\n")
    world.write("test_mod.py", "from mod import double\ndef test_it():\n    v = double(2)\n"
                "    assert v == 5, 'no'\n")  # fmt: skip
    command = ("--", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mod.py")
    env = {"PYTHONDONTWRITEBYTECODE": ""}
    plain = world.rl("-q", *command, env=env)
    before = sorted(path.name for path in world.project.rglob("*.pyc"))
    done = world.rl("probe", "-q", "test_mod.py:3", "v", "mod.py:2", "m", *command, env=env)
    assert told(done) == ["mod.py:2 m=4", "test_mod.py:3 v=4"]
    washed = [line.rpartition(" in ")[0] or line for line in done.stdout.splitlines()]
    assert washed == [line.rpartition(" in ")[0] or line for line in plain.stdout.splitlines()]
    assert sorted(path.name for path in world.project.rglob("*.pyc")) == before


def test_a_module_of_the_standard_library_that_was_there_before_us(world):
    path = os.path.join(os.path.dirname(os.__file__), "posixpath.py")
    world.write("join.py", "import os\nprint(os.path.join('some', 'where'))\n")
    done = world.rl("probe", f"{path}:join", "a", "p", "--if", "a == 'some'", "--",
                    sys.executable, "join.py")  # fmt: skip
    assert told(done) == [f"{path}:join a='some'  p=('where',)"]


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbfword = 'caf\xc3\xa9'\nend = 1\n",
        b"# coding: latin-1\r\nword = 'caf\xe9'\r\nend = 1\r\n",
        b"word = (\r\n  'caf\xc3\xa9')\r\nend = 1\r\n",
    ],
    ids=["bom", "latin-1", "crlf"],
)
def test_files_of_any_encoding(world, text):
    world.write("word.py", text)
    line = 2 if text.startswith(b"#") else 1
    done = world.rl("probe", f"word.py:{line}", "word", "--", sys.executable, "word.py")
    assert told(done) == [f"word.py:{line} word='café'"]


def test_async_and_generators(world):
    world.write("flow.py", """\
import asyncio
async def one():
    await asyncio.sleep(0)
    got = 5
    return got
def numbers():
    for n in range(2):
        back = yield n
async def main():
    print(await one())
    print(list(numbers()))
asyncio.run(main())
""")  # fmt: skip
    done = world.rl("probe", "flow.py:one", "--after", "flow.py:8", "n", "back", "--",
                    sys.executable, "flow.py")  # fmt: skip
    assert done.stdout == "5\n[0, 1]\n"
    assert told(done) == ["flow.py:one returns 5", "flow.py:8 n=0  back=None",
                          "flow.py:8 n=1  back=None"]  # fmt: skip


@every_python
def test_the_stack_is_as_ever(world, python):
    world.write("stack.py", """\
import inspect, sys, traceback
def f():
    traceback.print_stack(file=sys.stdout)
    print(len(inspect.stack()), sys._getframe(1).f_back, inspect.getsource(f))
f()
try:
    1 / 0
except ZeroDivisionError:
    traceback.print_exc(file=sys.stdout)
print(sorted(locals()))
print(sorted(name for name in sys.modules if "relaunch" in name), len(sys.meta_path))
print(open("stack.py").fileno())
sys.exit(4)
""")  # fmt: skip
    plain = world.rl("-q", "--", python, "stack.py")
    done = world.rl("probe", "-q", "stack.py:3", "1", "stack.py:7", "2", "--", python, "stack.py")
    assert done.returncode == plain.returncode == 4
    assert done.stdout == plain.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nofile.py:3", "x"], "nofile.py: No such file"),
        (["tran.py:3", "x"], "did you mean train.py?"),
        (["train.py:99", "x"], "line 99 has no code; near is train.py:13"),
        (["train.py:Model.forwad"], "near is train.py:Model.forward"),
        (["train.py:5", "y +"], "`y +` is no expression"),
        (["train.py:5", "(z := 3)"], "would change the program"),
        (["train.py:5", "y", "--break"], "--break shows no values"),
        (["train.py:5", "--break", "--die"], "at once"),
        (["train.py:5", "--every", "x"], "--every takes a whole number"),
        (["train.py:5", "--log", "{y"], "--log"),
        (["y"], "is no place"),
        ([], "no place"),
    ],
)
def test_what_cannot_be_asked_is_one_line(train, words, said):
    done = train.rl("probe", *words, "--", sys.executable, "train.py", "1")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


def test_nothing_of_ours_is_in_the_environment_of_a_plain_run(train):
    train.write("env.py", "import os\nprint([n for n in os.environ if 'PROBE' in n])\n")
    train.rl("probe", "train.py:5", "y", "--", sys.executable, "train.py", "1")
    assert train.rl("--", sys.executable, "env.py").stdout == "[]\n"


def test_the_trial_says_what_was_asked(train):
    train.rl("probe", "train.py:5", "y", "--if", "y > 0", "--", sys.executable, "train.py", "2")
    shown = json.loads(train.rl("show", "1", "--json").stdout)
    (probe,) = shown["start"]["probes"] if "start" in shown else shown["probes"]
    assert probe["exprs"] == ["y"]
    assert probe["condition"] == "y > 0"


@every_python
def test_an_interrupt_ends_the_program_as_ever(world, python):
    world.write("stop.py", "import os, signal\nx = 1\nos.kill(os.getpid(), signal.SIGINT)\n")
    plain = world.rl("-q", "--", python, "stop.py")
    done = world.rl("probe", "-q", "stop.py:2", "x", "--", python, "stop.py")
    assert done.returncode == plain.returncode == -2
    assert done.stderr == f"stop.py:2 x=1\n{plain.stderr}"


@every_python
def test_an_interrupt_while_it_sleeps_is_told_of_the_program_s_own_line(world, python):
    world.write(
        "stop.py",
        "import os, signal\n"
        "signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
        "x = 1\n",
    )
    done = world.rl(
        "probe", "-q", "stop.py:4", "--sleep", "60", "--before", "--", python, "stop.py"
    )
    assert done.returncode == -2
    assert done.stderr.count("File ") - done.stderr.count("in <lambda>") == 1, done.stderr
    assert "line 4, in <module>" in done.stderr
