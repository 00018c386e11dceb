"""`from relaunch import peek` in real programs: with source and without, alone and among others."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import assert_type

import pytest
from tests.depth import takes_turns
from tests.needs import every_python, python_with_torch

from relaunch import peek

SOURCE = Path(__file__).parents[2] / "src"

MODULE = """\
from relaunch import peek

def go(a, b):
    return peek(a + b, a if b else 0)
"""


class Place:
    """A folder to run Python programs in; they see this checkout and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def env(self, **more: str) -> dict[str, str]:
        plain = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        return {**plain, "PYTHONPATH": str(SOURCE), **more}

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def run(self, python: str, *words: str, text: str = "", **env: str) -> str:
        """Run a program that must end well, and return what it says on standard error."""
        done = subprocess.run(
            [python, *words], cwd=self.folder, env=self.env(**env), input=text.encode(),
            capture_output=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        self.out = done.stdout.decode()
        return done.stderr.decode()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# --- what it says


PROGRAM = """\
import asyncio
from relaunch import peek
import relaunch

x, y, xs, d = 1, 2, [1, 2, 3], {"k": 7}
assert peek(x + y) == 3
assert peek(x) + peek(y) == 3
assert peek(x, y) == (1, 2)
peek(peek(x) + 1)
peek(
    x,  # (a comment
    "a, b)" + str(y),
)
peek("here")
assert peek(loss=x) == 1
assert peek(x, loss=y, **d) == (1, 2, 7)
assert peek(*xs) == (1, 2, 3)
peek(x, *xs, y)
relaunch.peek(x)
list(map(peek, xs[:1]))
peek([a for a in xs], lambda a, b: a)
def work(a):
    from relaunch import peek as p
    p(a * 2)
work(3)
async def main():
    peek(await other())
async def other():
    return 5
asyncio.run(main())
assert peek() is None
"""

SAID = """\
prog.py:6 x + y=3
prog.py:7 x=1
prog.py:7 y=2
prog.py:8 x=1  y=2
prog.py:9 x=1
prog.py:9 peek(x) + 1=2
prog.py:10 x=1  "a, b)" + str(y)='a, b)2'
prog.py:14 'here'
prog.py:15 loss=1
prog.py:16 x=1  loss=2  k=7
prog.py:17 *xs=(1, 2, 3)
prog.py:18 x=1  *xs=(1, 2, 3)  y=2
prog.py:19 x=1
prog.py:20 1
prog.py:21 [a for a in xs]=[1, 2, 3]  lambda a, b: a=function <lambda> line 21
prog.py:24 a * 2=6
prog.py:27 await other()=5
"""


@every_python
def test_each_expression_is_printed_with_its_value_which_is_returned(place, python):
    place.write("prog.py", PROGRAM)
    lines = place.run(python, "prog.py").splitlines()
    assert lines[:-1] == SAID.splitlines()
    assert re.fullmatch(r"prog.py:31 in <module> \d\d:\d\d:\d\d\.\d{3}", lines[-1])


def test_a_type_checker_knows_what_comes_back(capsys):
    assert_type(peek(3), int)
    assert_type(peek("a", 3.0), tuple[str, float])
    assert_type(peek(3, "a", b""), tuple[int, str, bytes])
    assert_type(peek(), None)
    assert capsys.readouterr().err.count("test_peek.py:") == 4


def test_importing_relaunch_alone_loads_nothing(place):
    script = (
        "import sys; before = set(sys.modules); import relaunch; print(set(sys.modules) - before)\n"
        "try: relaunch.nothing\n"
        "except AttributeError as error: print(error)\n"
    )
    place.run(sys.executable, "-c", script)
    assert place.out == "{'relaunch'}\nmodule 'relaunch' has no attribute 'nothing'\n"


def test_peek_loads_little_and_nothing_that_a_file_of_the_user_could_be(place):
    for name in (
        "ast",
        "dis",
        "opcode",
        "tokenize",
        "linecache",
        "json",
        "enum",
        "typing",
        "signal",
    ):
        place.write(f"{name}.py", "raise SystemExit('a file of the user was run')")
    place.write("prog.py", "from relaunch import peek\nx = [1]\npeek(x + [2])\npeek(object)\n")
    # -S: what `site` imports is not ours.
    said = place.run(sys.executable, "-S", "prog.py")
    assert said == "prog.py:3 x + [2]=[1, 2]\nprog.py:4 object=class object\n"


# --- without its source


@every_python
def test_a_command_has_its_text(place, python):
    line = "from relaunch import peek; x = 1; peek(x+1, x and 2)"
    assert place.run(python, "-c", line) == "<string>:1 x+1=2  x and 2=2\n"


@every_python
def test_a_text_that_is_executed_is_read_from_its_bytecode(place, python):
    text = "from relaunch import peek\nx = 1\npeek(x + 1, x.real)\npeek(x and 2)\n"
    said = place.run(python, "-c", f"exec({text!r})")
    assert said == "<string>:3 x + 1=2  x.real=1\n<string>:4 2\n"


@every_python
def test_a_program_from_standard_input_is_read_from_its_bytecode(place, python):
    text = "from relaunch import peek\nx = 1\npeek(x + 1, x.real)\n"
    assert place.run(python, "-", text=text) == "<stdin>:3 x + 1=2  x.real=1\n"


@every_python
def test_a_module_in_a_zip_file_has_its_text(place, python):
    with zipfile.ZipFile(place.folder / "lib.zip", "w") as archive:
        archive.writestr("m.py", MODULE)
    said = place.run(
        python, "-c", "import sys; sys.path.insert(0, 'lib.zip'); import m; m.go(1, 2)"
    )
    assert said == "m.py:4 a + b=3  a if b else 0=1\n"


@every_python
def test_a_module_without_source_is_read_from_its_bytecode(place, python):
    place.write("m.py", MODULE.replace(", a if b else 0", ", -a"))
    make = "import os, py_compile; py_compile.compile('m.py', 'n.pyc'); os.remove('m.py')"
    place.run(python, "-c", make)
    assert place.run(python, "-c", "import n; n.go(1, 2)") == "m.py:4 a + b=3  -a=-1\n"


@every_python
@pytest.mark.parametrize(
    ("edit", "label"),
    [
        ("text + 'x = 1\\n'", "a + b=3  a if b else 0=1"),
        ("text.replace('a + b', 'a - b')", "3  1"),
        ("'# one more line\\n' + text", "3  1"),
        ("text.replace('peek(', 'print(')", "3  1"),
        ("''", "3  1"),
    ],
)
def test_a_module_that_was_edited_shows_no_text_that_does_not_fit(place, python, edit, label):
    place.write("m.py", MODULE)
    change = f"text = open('m.py').read(); open('m.py', 'w').write({edit})"
    said = place.run(python, "-c", f"import m; {change}; m.go(1, 2)")
    assert said == f"m.py:4 {label}\n"


def test_without_columns_in_the_bytecode_lines_are_enough(place):
    place.write("prog.py", "from relaunch import peek\nx = 1\npeek(x + 1)\nif peek(x): pass\n")
    said = place.run(sys.executable, "-X", "no_debug_ranges", "prog.py")
    assert said == "prog.py:3 x + 1=2\nprog.py:4 x=1\n"


@every_python
def test_at_the_prompt_of_python(place, python):
    master, slave = pty.openpty()
    lines = "from relaunch import peek\nx = 3\npeek(x + 1, x * 2)\nexit()\n"
    process = subprocess.Popen(
        [python, "-q"], cwd=place.folder, env=place.env(TERM="dumb", PYTHON_BASIC_REPL="0"),
        stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    os.write(master, lines.encode())
    said = b""
    while True:
        try:
            said += os.read(master, 65536)
        except OSError:
            break
    process.wait()
    os.close(master)
    assert re.search(r"<(stdin|python-input-\d)>(-\d)?:1 x \+ 1=4  x \* 2=6", said.decode()), said


def test_in_a_test_that_pytest_rewrote(place):
    place.write(
        "test_it.py",
        "from relaunch import peek\n"
        "def test_it():\n"
        "    x, y = 1, [1, 2]\n"
        "    assert peek(x + 1) == 2\n"
        "    assert peek(x) == 1 and peek(len(y)) == 2, 'so'\n"
        "    assert peek(peek(x) + 5) == 6\n"
        "    peek(x + 2)\n"
        "    assert all(peek(i) for i in y[:1])\n",
    )
    words = ("-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "test_it.py")
    said = place.run(sys.executable, *words)
    assert [line.partition(" ")[2] for line in said.splitlines()] == [
        "x + 1=2", "x=1", "len(y)=2", "x=1", "peek(x) + 5=6", "x + 2=3", "i=1",
    ]  # fmt: skip


# --- where it goes


def test_it_is_silent_when_asked_and_still_returns(place):
    script = "from relaunch import peek; x = 1; print(peek(x), peek(x, 2), peek(a=x), peek())"
    for word in ("0", "off", "no", "False"):
        assert place.run(sys.executable, "-c", script, RELAUNCH_PEEK=word) == ""
        assert place.out == "1 (1, 2) 1 None\n"


def test_it_goes_to_a_file_when_asked(place):
    script = (
        "from relaunch import peek; x = 1; peek(x)\nimport os\nos.closerange(3, 99); peek(x + 1)"
    )
    file = place.folder / "peeks"
    assert place.run(sys.executable, "-c", script, RELAUNCH_PEEK=f"file:{file}") == ""
    assert file.read_text() == "<string>:1 x=1\n<string>:3 x + 1=2\n"
    lost = place.run(sys.executable, "-c", script, RELAUNCH_PEEK="file:/nowhere/to/be/found")
    assert lost == ""


def test_what_the_program_wrote_before_comes_before(place):
    script = (
        "import contextlib, io, sys\nfrom relaunch import peek\nx = 1\n"
        "sys.stderr.write('no line yet: ')\npeek(x)\n"
        "caught = io.StringIO()\n"
        "with contextlib.redirect_stderr(caught): peek(x + 1)\n"
        "peek(caught.getvalue())\n"
    )
    place.write("prog.py", script)
    assert place.run(sys.executable, "prog.py") == (
        "no line yet: prog.py:5 x=1\nprog.py:8 caught.getvalue()='prog.py:7 x + 1=2\\n'\n"
    )


@pytest.mark.parametrize(
    "spoil",
    [
        "sys.stderr = None",
        "sys.stderr.close()",
        "os.close(2)",
        "os.dup2(os.open('/dev/full', os.O_WRONLY), 2)",
        "r, w = os.pipe(); os.close(r); os.dup2(w, 2)",
        "sys.stderr = object()",
        "del sys.stderr",
        "sys.stderr = io.TextIOWrapper(io.BytesIO())",
    ],
)
def test_standard_error_that_takes_nothing_does_no_harm(place, spoil):
    script = f"import io, os, sys\nfrom relaunch import peek\n{spoil}\nx = 1\n"
    place.run(sys.executable, "-c", script + "print(peek(x), peek(x + 1))\nsys.stderr = None")
    assert place.out == "1 2\n"


def test_a_pipe_that_nobody_empties_loses_lines_but_never_tears_one(place):
    script = (
        "import os, time\nfrom relaunch import peek\n"
        "r, w = os.pipe(); os.set_blocking(w, False); os.dup2(w, 2); text = 'x' * 150\n"
        "began = time.monotonic()\n"
        "for number in range(2000): peek(number, text)\n"
        "assert time.monotonic() - began < 20\n"
        "print(os.read(r, 10_000_000).decode())\n"
        "peek(number)\n"
        "print(os.read(r, 10_000_000).decode())\n"
    )
    place.run(sys.executable, "-c", script)
    lines = place.out.split("\n")
    whole = re.compile(r"<string>:5 number=\d+  text='x{150}'")
    good = [line for line in lines if whole.fullmatch(line)]
    assert len(good) > 100
    assert lines[-3:] == ["<string>:8 number=1999", "", ""]
    rest = [line for line in lines if line and not whole.fullmatch(line)]
    assert len(rest) <= 2, rest  # the one that the full pipe cut off, and the last


# --- among others


def test_lines_of_threads_and_processes_never_mix(place):
    script = """
import os, threading
from relaunch import peek
text = "y" * 150
def work(who):
    for number in range(200):
        peek(who, number, text)
children = []
for child in range(3):
    pid = os.fork()
    if not pid:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        [one.start() for one in threads], [one.join() for one in threads]
        os._exit(0)
    children.append(pid)
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
"""
    lines = place.run(sys.executable, "-c", script).splitlines()
    line = re.compile(r"\[pid \d+\] <string>:7 who=\d  number=\d+  text='y{150}'")
    assert len(lines) == 3 * 3 * 200
    assert [one for one in lines if not line.fullmatch(one)] == []


def test_ranks_and_children_are_told_apart(place):
    script = """
import multiprocessing, os
from relaunch import peek
def work(n):
    peek(n)
if __name__ == "__main__":
    peek(os.getpid())
    for method in ("fork", "spawn", "forkserver"):
        child = multiprocessing.get_context(method).Process(target=work, args=(method,))
        child.start()
        print(child.pid, flush=True)
        child.join()
"""
    place.write("prog.py", script)
    lines = place.run(sys.executable, "prog.py", RANK="3", WORLD_SIZE="8").splitlines()
    pids = place.out.split()
    assert re.fullmatch(r"\[rank 3\] prog.py:7 os.getpid\(\)=\d+", lines[0])
    ways = ("fork", "spawn", "forkserver")
    wanted = [
        f"[rank 3 pid {pid}] prog.py:5 n='{way}'" for pid, way in zip(pids, ways, strict=True)
    ]
    assert lines[1:] == wanted
    alone = place.run(
        sys.executable, "-c", "from relaunch import peek; peek(a=1)", WORLD_SIZE="1", RANK="0"
    )
    assert alone == "<string>:1 a=1\n"


def test_a_program_that_makes_code_without_end_stays_small(place):
    script = """
import resource
from relaunch import peek
def grow(count):
    for number in range(count):
        exec(f"peek({number})", {"peek": peek})
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
first = grow(6000)
print(grow(6000) - first)
"""
    place.run(sys.executable, "-c", script, RELAUNCH_PEEK="file:/dev/null")
    assert int(place.out) < 20_000


@takes_turns
def test_torch_compile_leaves_it_alone_and_goes_on_around_it(place):
    place.write(
        "prog.py",
        "import torch\nfrom relaunch import peek\n"
        "def step(x):\n    y = peek(x * 2)\n    return y + 1\n"
        "graphs = []\n"
        "def backend(graph, inputs):\n    graphs.append(graph.code)\n    return graph.forward\n"
        "compiled = torch.compile(step, backend=backend)\n"
        "print(compiled(torch.ones(3)).tolist(), compiled(torch.ones(3)).tolist(), len(graphs))\n"
        "assert 'aminmax' not in ''.join(graphs)\n"
        "torch._dynamo.reset()\n"
        "try: torch.compile(step, backend=backend, fullgraph=True)(torch.ones(3))\n"
        "except Exception as error: print('RELAUNCH_PEEK=0 silences it' in str(error))\n",
    )
    said = place.run(python_with_torch(), "prog.py")
    assert place.out == "[3.0, 3.0, 3.0] [3.0, 3.0, 3.0] 2\nTrue\n"
    assert said == "prog.py:4 x * 2=(3,) float32 cpu [2, 2, 2]\n" * 2
