"""Programs that fail, each with small changes that make it fail differently.

`{{pad}}` pushes the lines down, `{{n}}` is a number that changes from run to run.
"""

# ruff: noqa: E501
# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    name: str
    command: str
    files: dict[str, str] = field(default_factory=dict)
    misses: dict[str, dict[str, str]] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    venv: bool = False
    hook: bool = True
    python: str = ""
    comment: str = "#"
    timeout_s: float = 120
    group: str = ""
    """Shared by cases whose outputs hold the same evidence: two bare SIGSEGV are one failure."""


CASES: list[Case] = []


def case(name: str, command: str, files: dict[str, str] | None = None, **more) -> None:
    CASES.append(Case(name=name, command=command, files=files or {}, **more))


def py(name: str, source: str, misses: dict[str, dict[str, str]] | None = None, **more) -> None:
    """Add a script that plain Python runs."""
    command = more.pop("command", "exec {{py}} train.py")
    files = {"train.py": "{{pad}}\n" + source, **more.pop("files", {})}
    case(name, command, files, misses=misses or {}, **more)


# ---- Plain exceptions

py(
    "plain",
    """
def step(batch):
    loss = float("nan")
    if loss != loss:
        raise ValueError(f"loss is nan at step {batch}")

def main():
    step({{n}})

main()
""",
    {
        "type": {"raise ValueError": "raise ArithmeticError"},
        "message": {"loss is nan": "gradient is inf"},
        "function": {"step(": "evaluate("},
    },
)
py(
    "key_error_number",
    """
table = {1: 2}
def look(i):
    return table[i]
look({{n}} + 1)
""",
    {"index_error": {"{1: 2}": "[1]"}, "function": {"look": "find"}},
)
py(
    "key_error_name",
    """
config = {"lr": 1}
def setup():
    return config["batch_size"]
setup()
""",
    {"other_key": {"batch_size": "weight_decay"}},
)
py(
    "attribute",
    """
class Model:
    def forward(self):
        return self.wieght
Model().forward()
""",
    {"other_name": {"wieght": "bais"}, "other_class": {"Model": "Encoder"}},
)
py(
    "name_error_with_advice",
    """
learning_rate = 1
def tune():
    return learning_rat * {{n}}
tune()
""",
    {"other_name": {"learning_rat ": "momentum "}},
)
py(
    "import_missing",
    "def load():\n    import nothing_like_this\nload()\n",
    {"other_module": {"nothing_like_this": "nothing_like_that"}},
)
py(
    "import_name",
    "def load():\n    from helper import missing_one\nload()\n",
    {"other_name": {"missing_one": "missing_two"}},
    files={"helper.py": "x = 1\n"},
)
py(
    "import_circular",
    "import first\n",
    files={"first.py": "import second\nvalue = 1\n", "second.py": "from first import value\n"},
    misses={"other_name": {"value": "amount"}},
)
py(
    "syntax_in_script",
    "def f(:\n    pass\n",
    {"indent": {"def f(:\n    pass": "def f():\npass"}},
)
py(
    "syntax_in_module",
    "import broken\n",
    files={"broken.py": "{{pad}}\nx = (1,\n"},
    misses={"other_syntax": {"x = (1,": "x = 'abc"}},
)
py(
    "file_missing",
    """
import os
def read(path):
    with open(path) as f:
        return f.read()
read(os.path.join(os.getcwd(), "data", "config.yaml"))
""",
    {"other_file": {"config.yaml": "vocab.json"}, "directory": {'"data", "config.yaml"': '""'}},
)
py(
    "file_missing_in_temp",
    """
import os, tempfile
def read(path):
    return open(path).read()
with tempfile.TemporaryDirectory() as d:
    read(os.path.join(d, "shard.bin"))
""",
    {"other_file": {"shard.bin": "index.bin"}},
)
py(
    "assert_bare",
    """
def check(loss, size):
    assert loss == loss
    assert size > {{n}} + 10
check(1.0, 2)
""",
    {"other_assert": {"check(1.0, 2)": "check(float('nan'), 2)"}},
)
py(
    "assert_message",
    """
def check(x):
    assert x < 0, f"expected a negative, got {x}"
check({{n}})
""",
    {"other_message": {"expected a negative": "wanted less"}},
)
py(
    "zero_division",
    "def mean(xs):\n    return sum(xs) / len(xs)\nmean([])\n",
    {"modulo": {"sum(xs) / len(xs)": "sum(xs) % len(xs)"}, "function": {"mean": "average"}},
)
py(
    "recursion",
    "def down(x):\n    return down(x + 1)\ndown({{n}})\n",
    {"function": {"down": "deeper"}},
)
py(
    "recursion_mutual",
    """
def ping(x):
    return pong(x + 1)
def pong(x):
    return ping(x + {{n}})
ping(0)
""",
    {"function": {"pong": "pang"}},
)
py(
    "object_address",
    """
class Thing:
    pass
def use(x):
    raise TypeError(f"cannot use {x!r}")
use(Thing())
""",
    {"other_class": {"Thing": "Gadget"}},
)
py(
    "unicode",
    """
def decode(data):
    return data.decode("utf-8")
decode(b"a" * {{n}} + b"\\xff\\xfe")
""",
    {"codec": {'"utf-8"': '"ascii"'}},
)
py(
    "int_parse",
    "def parse(s):\n    return int(s)\nparse('abc')\n",
    {"float": {"int(s)": "float(s)"}},
)
py(
    "custom_exception",
    """
class Diverged(Exception):
    pass
def fit():
    raise Diverged("after {{n}} epochs")
fit()
""",
    {"type": {"Diverged": "Stalled"}},
)
py(
    "exception_without_message",
    """
def fit(mode):
    if mode == 1:
        raise RuntimeError
    raise RuntimeError()
fit(1)
""",
    {"other_line": {"fit(1)": "fit(2)"}},
)
py(
    "memory_error",
    "def grow():\n    return bytearray(1 << 62)\ngrow()\n",
    {"function": {"grow": "swell"}},
)
py(
    "multi_line_message",
    """
def load():
    raise RuntimeError("Error(s) in loading state_dict for Net:\\n\\tsize mismatch for fc.weight: copying a param with shape ({{n}}, 2)")
load()
""",
    {"other_layer": {"fc.weight": "conv.bias"}},
)
py(
    "message_with_notes",
    """
def load():
    e = ValueError("bad row")
    if hasattr(e, "add_note"):
        e.add_note("row {{n}}")
    raise e
load()
""",
    {"message": {"bad row": "bad column"}},
)
py(
    "str_raises",
    """
class Bad(Exception):
    def __str__(self):
        raise RuntimeError("no words")
def fit():
    raise Bad()
fit()
""",
    {"function": {"fit": "run"}},
)
py(
    "system_exit_message",
    "import sys\nprint('working on', {{n}})\nsys.exit('config.yaml: no such section: optimizer')\n",
    {"message": {"no such section: optimizer": "no such key: model"}},
)
py(
    "lambda_and_comprehension",
    """
f = lambda x: 1 / x
def rows():
    return [f(i - {{n}}) for i in range({{n}} + 1)]
rows()
""",
    {"function": {"rows": "columns"}},
)
py(
    "json_decode",
    "import json\ndef read(t):\n    return json.loads(t)\nread('x' * {{n}})\n",
    {"message": {"read('x' * {{n}})": "read('[1')"}},
)
py(
    "subprocess_check",
    """
import subprocess, sys
def launch():
    subprocess.run(["false", "{{n}}"], check=True)
launch()
""",
    {"other_command": {'"false", "{{n}}"': '"ls", "/no/such/place"'}},
)
py(
    "subprocess_child_traceback",
    """
import subprocess, sys
def launch():
    subprocess.run([sys.executable, "child.py"], check=True)
launch()
""",
    files={"child.py": "{{pad}}\ndef work():\n    raise OSError('device is gone')\nwork()\n"},
    misses={"child": {"device is gone": "disk is full"}},
)
py(
    "subprocess_probe_then_fail",
    """
import subprocess, sys
subprocess.run([sys.executable, "-c", "import not_here_at_all"], stderr=subprocess.DEVNULL)
def work():
    raise ValueError("the real one, {{n}}")
work()
""",
    {"message": {"the real one": "another one"}},
)
py(
    "argparse",
    """
import argparse
p = argparse.ArgumentParser()
p.add_argument("--steps", type=int)
p.parse_args(["--steps", "abc"])
""",
    {"unknown_option": {'["--steps", "abc"]': '["--stride", "3"]'}},
)
py(
    "keyboard_interrupt",
    "def loop():\n    raise KeyboardInterrupt\nloop()\n",  # where it was stopped is chance
)
py(
    "code_from_option",
    "",
    command="exec {{py}} -c 'def f(x): return [][x]\nf({{n}})'",
    misses={"function": {"def f(": "def g(", "\nf(": "\ng("}},
)
py(
    "from_stdin",
    "def f(x):\n    return {}[x]\nf('k')\n",
    command="exec {{py}} < train.py",
    misses={"key": {"'k'": "'q'"}},
)
py(
    "module_run",
    "",
    files={
        "pkg/__init__.py": "",
        "pkg/__main__.py": "from pkg.core import go\ngo()\n",
        "pkg/core.py": "{{pad}}\nclass Odd(Exception):\n    pass\ndef go():\n    raise Odd('nope')\n",
    },
    command="exec {{py}} -m pkg",
    misses={"message": {"nope": "never"}},
)
py(
    "frozen_importlib",
    "import importlib\ndef plug():\n    importlib.import_module('plugins.missing')\nplug()\n",
    {"other": {"plugins.missing": "addons.missing"}},
)
py(
    "same_error_other_caller",
    """
def need(x):
    if not x:
        raise ValueError("empty")
def train():
    need([])
def evaluate():
    need([])
train()
""",
    {"other_caller": {"\ntrain()": "\nevaluate()"}},
)

# ---- Chains and groups

py(
    "chained_cause",
    """
def load(name):
    return {}[name]
def setup():
    try:
        load("model")
    except KeyError as e:
        raise RuntimeError("setup failed after {{n}} tries") from e
setup()
""",
    {
        "other_cause": {'"model"': '"tokenizer"'},
        "other_wrapper": {"raise RuntimeError": "raise OSError"},
    },
)
py(
    "chained_context",
    """
def load():
    raise KeyError("a")
def setup():
    try:
        load()
    except KeyError:
        cleanup()
def cleanup():
    raise OSError("cannot remove lock {{n}}")
setup()
""",
    {"other_last": {"cannot remove lock": "cannot close log"}},
)
py(
    "chained_suppressed",
    """
def setup():
    try:
        {}["a"]
    except KeyError:
        raise RuntimeError("no such setting") from None
setup()
""",
    {"message": {"no such setting": "no such option"}},
)
py(
    "chained_three",
    """
def a():
    raise ValueError("first")
def b():
    try:
        a()
    except ValueError as e:
        raise TypeError("second") from e
def c():
    try:
        b()
    except TypeError as e:
        raise RuntimeError("third") from e
c()
""",
    {"root": {'"first"': '"zeroth"'}},
)
py(
    "group",
    """
def one():
    raise ValueError("bad {{n}}")
def two():
    raise TypeError("worse")
def both():
    errors = []
    for f in (one, two):
        try:
            f()
        except Exception as e:
            errors.append(e)
    raise ExceptionGroup("several", errors)
both()
""",
    {"other_member": {'TypeError("worse")': 'KeyError("worse")'}},
)
py(
    "group_nested",
    """
def inner():
    try:
        raise OSError("deep")
    except OSError as e:
        raise ExceptionGroup("inside", [e, ValueError("flat {{n}}")])
def outer():
    try:
        inner()
    except ExceptionGroup as e:
        raise ExceptionGroup("outside", [e, TypeError("side")])
outer()
""",
    {"deep": {'"deep"': '"shallow"'}},
)
py(
    "task_group",
    """
import asyncio
async def fetch(i):
    await asyncio.sleep(0)
    if i == 2:
        raise ConnectionError("peer {{n}} went away")
    await asyncio.sleep(5)
async def main():
    async with asyncio.TaskGroup() as group:
        for i in range(4):
            group.create_task(fetch(i))
asyncio.run(main())
""",
    {"message": {"went away": "never came"}},
)
py(
    "group_unraised",
    'def f():\n    raise ExceptionGroup("many", [ValueError("a"), TypeError("b")])\nf()\n',
    {"member": {'TypeError("b")': 'TypeError("c")'}, "function": {"f()": "g()"}},
)

# ---- Threads, tasks, processes

py(
    "thread_exit_0",
    """
import threading
def work():
    raise ValueError("in a thread {{n}}")
t = threading.Thread(target=work)
t.start(); t.join()
print("done")
""",
    {"message": {"in a thread": "in some thread"}, "function": {"work": "toil"}},
)
py(
    "thread_then_main",
    """
import threading
def work():
    raise ValueError("in a thread")
t = threading.Thread(target=work)
t.start(); t.join()
def finish():
    raise RuntimeError("result missing")
finish()
""",
    {"message": {"result missing": "result late"}},
)
py(
    "executor_thread",
    """
from concurrent.futures import ThreadPoolExecutor
def work(i):
    raise ValueError(f"item {i}")
with ThreadPoolExecutor(2) as pool:
    pool.submit(work, {{n}}).result()
""",
    {"function": {"work": "toil"}},
)
py(
    "executor_process",
    """
from concurrent.futures import ProcessPoolExecutor
def work(i):
    raise ValueError(f"item {i}")
if __name__ == "__main__":
    with ProcessPoolExecutor(1) as pool:
        pool.submit(work, {{n}}).result()
""",
    {"function": {"work": "toil"}, "type": {"raise ValueError": "raise KeyError"}},
    group="executor_thread",
)
py(
    "executor_process_dies",
    """
import os, signal
from concurrent.futures import ProcessPoolExecutor
def work(i):
    os.kill(os.getpid(), signal.SIGKILL)
def drive():
    with ProcessPoolExecutor(1) as pool:
        pool.submit(work, {{n}}).result()
if __name__ == "__main__":
    drive()
""",
    {"function": {"drive": "steer"}},
)
py(
    "pool_map",
    """
import multiprocessing as mp
def square(x):
    if x == 3:
        raise ValueError(f"cannot square {x + {{n}}}")
    return x * x
if __name__ == "__main__":
    with mp.get_context("fork").Pool(2) as pool:
        pool.map(square, range(5))
""",
    {"message": {"cannot square": "will not square"}},
)
py(
    "pool_spawn",
    """
import multiprocessing as mp
def square(x):
    raise ValueError(f"cannot square {x + {{n}}}")
if __name__ == "__main__":
    with mp.get_context("spawn").Pool(1) as pool:
        pool.map(square, [1])
""",
    {"function": {"square": "cube"}},
    group="pool_map",
)
py(
    "process_fork",
    """
import multiprocessing as mp, sys
def work():
    raise OSError("socket {{n}} is closed")
if __name__ == "__main__":
    p = mp.get_context("fork").Process(target=work)
    p.start(); p.join()
    sys.exit(p.exitcode)
""",
    {"message": {"is closed": "is busy"}},
)
py(
    "process_spawn",
    """
import multiprocessing as mp, sys
def work():
    raise OSError("stream {{n}} is closed")
def drive():
    p = mp.get_context("spawn").Process(target=work)
    p.start(); p.join()
    if p.exitcode:
        raise SystemExit(3)
if __name__ == "__main__":
    drive()
""",
    {"message": {"is closed": "is busy"}},
)
py(
    "asyncio_run",
    """
import asyncio
async def fetch():
    await asyncio.sleep(0)
    raise TimeoutError("no answer from 10.0.0.{{n}}:8080")
asyncio.run(fetch())
""",
    {"message": {"no answer": "no route"}},
)
py(
    "asyncio_never_retrieved",
    """
import asyncio
async def fetch():
    raise ValueError("lost {{n}}")
async def main():
    task = asyncio.create_task(fetch())
    await asyncio.sleep(0.01)
    del task
asyncio.run(main())
""",
    {"message": {'"lost': '"gone'}},
)
py(
    "ranks_labelled",
    """
import os, subprocess, sys
ranks = [
    subprocess.Popen([sys.executable, "rank.py", str(r)], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)
    for r in range(3)
]
outputs = [(r, p.communicate()[0].splitlines()) for r, p in enumerate(ranks)]
longest = max(len(lines) for _, lines in outputs)
for i in range(longest):
    for r, lines in outputs:
        if i < len(lines):
            print(f"[rank{r}]: {lines[i]}")
sys.exit(1)
""",
    files={
        "rank.py": """{{pad}}
import sys
rank = int(sys.argv[1])
def reduce():
    raise RuntimeError(f"rank {rank}: buffer of {rank * 100 + {{n}}} bytes is too small")
reduce()
"""
    },
    misses={"message": {"is too small": "is not aligned"}},
)
py(
    "srun_labelled",
    """
import subprocess, sys
p = subprocess.run([sys.executable, "task.py"], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)
lines = p.stdout.splitlines()
for line in lines:
    for task in (1, 0):
        print(f"{task}: {line}")
print("srun: error: node-a: tasks 0-1: Exited with exit code 1")
sys.exit(1)
""",
    files={
        "task.py": "{{pad}}\ndef gather():\n    raise ValueError('shard {{n}} is empty')\ngather()\n"
    },
    misses={"message": {"is empty": "is locked"}},
)
py(
    "two_steps_first_handled",
    "",
    files={
        "one.py": "def a():\n    raise ValueError('expected, try {{n}}')\na()\n",
        "two.py": "{{pad}}\ndef b():\n    raise TypeError('the one that counts')\nb()\n",
    },
    command="{{py}} one.py || true; {{py}} two.py",
    misses={"second": {"the one that counts": "the one that hurts"}},
)

# ---- Logged, ignored, exit 0

py(
    "logged_exit_0",
    """
import logging
logging.basicConfig(format="%(asctime)s %(process)d %(levelname)s %(message)s")
def work():
    raise ValueError("row {{n}} is bad")
try:
    work()
except ValueError:
    logging.exception("could not do it")
print("finished")
""",
    {"message": {"is bad": "is late"}, "function": {"work": "toil"}},
)
py(
    "logged_then_fatal",
    """
import logging
logging.basicConfig()
def retry():
    raise ConnectionError("try {{n}}")
try:
    retry()
except ConnectionError:
    logging.exception("once more")
def train():
    raise ValueError("shapes differ")
train()
""",
    {"message": {"shapes differ": "types differ"}},
)
py(
    "print_exc_exit_1",
    """
import sys, traceback
def work():
    raise ValueError("row {{n}} is bad")
try:
    work()
except ValueError:
    traceback.print_exc()
    sys.exit(1)
""",
    {"message": {"is bad": "is late"}},
)
py(
    "excepthook_silent_words",
    """
import sys
sys.excepthook = lambda t, v, tb: print("FATAL:", t.__name__, "-", v)
def work():
    raise ValueError("row is bad")
work()
""",
    {"message": {"row is bad": "column is bad"}},
    hook=False,
)
py(
    "ignored_then_exit",
    """
import sys
class Noisy:
    def __del__(self):
        raise OSError("in __del__")
Noisy()
def work():
    raise ValueError("this one")
work()
""",
    {"message": {"this one": "that one"}},
)
py(
    "progress_then_error",
    """
import sys
for i in range(3):
    sys.stderr.write(f"\\r{i}/3 [====>   ] loss 0.{i}{{n}}")
    sys.stderr.flush()
def step():
    raise FloatingPointError("overflow in step {{n}}")
step()
""",
    {"message": {"overflow": "underflow"}},
)

# ---- Other looks

py(
    "coloured",
    "def step():\n    raise ValueError('loss is nan in the coloured run')\nstep()\n",
    {"message": {"is nan": "is inf"}},
    env={"FORCE_COLOR": "1", "PYTHON_COLORS": "1"},
    python="3.13",
)
py(
    "rich_box",
    """
from rich.traceback import install
install()
def step(x):
    raise ValueError(f"rich says {x} is wrong")
def main():
    step({{n}})
main()
""",
    {"message": {"is wrong": "is off"}, "function": {"step": "leap"}},
    venv=True,
)
py(
    "rich_locals_chained",
    """
from rich.traceback import install
install(show_locals=True)
def load():
    return {}["rich key"]
def main():
    x = {{n}}
    try:
        load()
    except KeyError as e:
        raise RuntimeError("rich chain") from e
main()
""",
    {"cause": {"rich key": "rich lock"}},
    venv=True,
)
py(
    "rich_long_message",
    """
from rich.traceback import install
install()
def step(x):
    raise ValueError(f"the batch of {x} rows does not fit the buffer that was set aside for it when the run began, so nothing can go on")
step({{n}})
""",
    {"end_of_message": {"nothing can go on": "everything stops"}},
    venv=True,
)
py(
    "rich_logging",
    """
import logging
from rich.console import Console
try:
    {}["from rich console {{n}}"[:4]]
except KeyError:
    Console().print_exception()
raise SystemExit(2)
""",
    {"type": {'{}["from rich console {{n}}"[:4]]': "[][1]", "KeyError": "IndexError"}},
    venv=True,
)
py(
    "ipython",
    """
def step(x):
    raise ValueError(f"ipython says {x}")
def main():
    step({{n}})
main()
""",
    {"message": {"ipython says": "ipython claims"}, "function": {"step": "leap"}},
    command="exec {{bin}}/ipython --colors=NoColor train.py",
    venv=True,
    hook=False,
)
py(
    "head_cut",
    "def outer():\n    inner()\ndef inner():\n    raise ValueError('head was cut')\nouter()\n",
    {"message": {"head was cut": "head was lost"}},
    command="{{py}} train.py 2>&1 | tail -n 3; exit 1",
    hook=False,
)
py(
    "tail_cut",
    "def outer():\n    inner()\ndef inner():\n    raise ValueError('tail was cut')\nouter()\n",
    {"function": {"inner": "within"}},
    command="{{py}} train.py 2>&1 | head -n 7; exit 1",
    hook=False,
    python="3.11",
)
py(
    "unhandled_in_child_shell",
    "def step():\n    raise ValueError('below a shell')\nstep()\n",
    {"message": {"below a shell": "below a sea"}},
    command="set -e; echo start $$; {{py}} train.py; echo not reached",
)

# ---- Tests

TESTS = """{{pad}}
import pytest

def helper(x):
    if x > 1:
        raise ValueError(f"helper got {x}")

def test_good():
    assert True

def test_bad():
    helper({{n}})

class TestMore:
    @pytest.mark.parametrize("size", [1, 2])
    def test_sizes(self, size):
        assert size + {{n}} == 0
"""
TEST_MISSES = {
    "other_error": {"helper got": "helper took"},
    "other_test": {"def test_bad": "def test_worse"},
    "one_more": {"assert True": "assert False"},
}
for style in ("auto", "long", "short", "native", "line"):
    case(
        f"pytest_{style}",
        f"exec {{{{bin}}}}/pytest -p no:cacheprovider --tb={style} tests/test_{style}.py",
        {f"tests/test_{style}.py": TESTS},
        misses=TEST_MISSES,
        venv=True,
    )
case(
    "pytest_no_tb",
    "exec {{bin}}/pytest -q -p no:cacheprovider --tb=no tests/test_no.py",
    {"tests/test_no.py": TESTS},
    misses={"other_test": TEST_MISSES["other_test"]},
    venv=True,
)
case(
    "pytest_xdist",
    "exec {{bin}}/pytest -n 2 -p no:cacheprovider tests/test_x.py",
    {"tests/test_x.py": TESTS},
    misses=TEST_MISSES,
    venv=True,
)
case(
    "pytest_collection",
    "exec {{bin}}/pytest -p no:cacheprovider tests",
    {"tests/test_collect.py": "{{pad}}\nimport nowhere_to_be_found\ndef test_a(): pass\n"},
    misses={"other_module": {"nowhere_to_be_found": "somewhere_else"}},
    venv=True,
)
case(
    "pytest_fixture",
    "exec {{bin}}/pytest -p no:cacheprovider tests",
    {
        "tests/test_fix.py": """{{pad}}
import pytest
@pytest.fixture
def db():
    raise ConnectionError("port {{n}} refused")
def test_query(db):
    pass
"""
    },
    misses={"message": {"refused": "busy"}},
    venv=True,
)
case(
    "pytest_conftest",
    "exec {{bin}}/pytest -p no:cacheprovider tests",
    {
        "tests/conftest.py": "{{pad}}\nimport missing_in_conftest\n",
        "tests/test_a.py": "def test_a(): pass\n",
    },
    misses={"other": {"missing_in_conftest": "absent_in_conftest"}},
    venv=True,
)
UNIT = """{{pad}}
import unittest

class Sums(unittest.TestCase):
    def test_add(self):
        self.assertEqual(1 + {{n}}, 0)

    def test_error(self):
        raise OSError("unit {{n}}")

if __name__ == "__main__":
    unittest.main()
"""
case(
    "unittest_main",
    "exec {{py}} test_sums.py",
    {"test_sums.py": UNIT},
    misses={"other_test": {"test_add": "test_plus"}, "fewer": {"raise OSError": "OSError"}},
)
case(
    "unittest_discover",
    "exec {{py}} -m unittest -v",
    {"test_more.py": UNIT.replace("Sums", "MoreSums")},
    misses={"other_message": {"assertEqual(1 + {{n}}, 0)": "fail('by hand')"}},
)
case(
    "doctest",
    "exec {{py}} -m doctest mod.py",
    {
        "mod.py": '''{{pad}}
def twice(x):
    """
    >>> twice(2)
    5
    """
    return 2 * x
'''
    },
    misses={"function": {"twice": "double"}},
)

# ---- Native ends

py(
    "faulthandler_segv",
    """
import ctypes, faulthandler
faulthandler.enable()
def poke():
    ctypes.string_at({{n}})
def main():
    poke()
main()
""",
    {"function": {"poke": "prod"}},
)
py("segv_silent", "import ctypes\nctypes.string_at({{n}})\n", group="SIGSEGV without a word")
py("abort", "import os\nprint('so far {{n}}')\nos.abort()\n", hook=False)
py("sigkill", "import os, signal\nprint('at', {{n}})\nos.kill(os.getpid(), signal.SIGKILL)\n")
py("sigterm", "import os, signal\nprint('at', {{n}})\nos.kill(os.getpid(), signal.SIGTERM)\n")
py("sigfpe", "import os, signal\nos.kill(os.getpid(), signal.SIGFPE)\n")
py(
    "segv_under_shell",
    "import os, signal\nos.kill(os.getpid(), signal.SIGBUS)\n",
    command="{{py}} train.py; code=$?; echo end; exit $code",
)
py(
    "fatal_error_text",
    "import faulthandler\ndef fall():\n    faulthandler._fatal_error_c_thread()\nfall()\n",
)
py(
    "timeout",
    "import time\nprint('waiting', {{n}}, flush=True)\ntime.sleep(60)\n",
    timeout_s=1.5,
)
py(
    "timeout_with_stack",
    """
import faulthandler, time
faulthandler.dump_traceback_later(0.3)
def wait_for_peer():
    time.sleep(60)
wait_for_peer()
""",
    {"function": {"wait_for_peer": "wait_for_disk"}},
    timeout_s=1.5,
)


def c(name: str, source: str, misses: dict[str, dict[str, str]] | None = None, **more) -> None:
    compiler = more.pop("compiler", "gcc")
    end = more.pop("end", "c")
    command = f"{compiler} -g -o prog prog.{end} && exec ./prog {{{{n}}}}"
    case(
        name,
        more.pop("command", command),
        {f"prog.{end}": "{{pad}}\n" + source},
        misses=misses or {},
        hook=False,
        comment="//",
        **more,
    )


c(
    "c_assert",
    """
#include <assert.h>
#include <stdlib.h>
static void check(int n) { assert(n < 0); }
int main(int argc, char **argv) { check(atoi(argv[1])); return 0; }
""",
    {"expression": {"n < 0": "n == -1"}, "function": {"check": "verify"}},
)
c(
    "c_segv",
    '#include <stdio.h>\nint main() { puts("c"); fflush(stdout); return *(volatile int *)0; }\n',
    group="SIGSEGV without a word",
)
c(
    "c_double_free",
    "#include <stdlib.h>\nint main() { char *p = malloc(2000000); char *q = malloc(100); free(q); free(q); return p == q; }\n",
)
c(
    "c_smash",
    '#include <string.h>\n#include <stdio.h>\nvoid f(const char *s) { char b[8]; strcpy(b, s); puts(b); }\nint main(int c, char **v) { f("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"); return 0; }\n',
    compiler="gcc -O0 -fstack-protector-all -w",
)
c(
    "c_sanitizer",
    "#include <stdlib.h>\nint use(int *p) { return p[1]; }\nint main() { int *p = malloc(4 * 4); free(p); return use(p); }\n",
    {"function": {"use(": "apply("}, "overflow": {"free(p);": "", "p[1]": "p[5]"}},
    compiler="gcc -fsanitize=address",
)
c(
    "cpp_terminate",
    '#include <stdexcept>\n#include <string>\nint main(int c, char **v) { throw std::runtime_error("no device " + std::string(v[1])); }\n',
    {"type": {"std::runtime_error(": "std::logic_error("}, "message": {"no device": "no driver"}},
    compiler="g++",
    end="cc",
)
c(
    "c_compile_error",
    "int main() { return undeclared_thing; }\n",
    {"other_error": {"undeclared_thing": "another_thing"}},
)
case(
    "make",
    "exec make",
    {"Makefile": "all: data\n\tfalse {{n}}\ndata:\n\techo {{n}}\n"},
    misses={"no_rule": {"all: data": "all: data gone.txt"}},
    hook=False,
)

# ---- Other languages and the shell

case(
    "shell_command_missing",
    "sh run.sh",
    {"run.sh": "{{pad}}\necho start {{n}}\nset -e\nno_such_command_here --flag\n"},
    misses={"other": {"no_such_command_here": "nor_this_command"}},
    hook=False,
)
case(
    "shell_exit",
    "sh run.sh",
    {
        "run.sh": "echo '12:00:{{n}} copying'\necho 'disk quota of /tmp/x{{n}}/y.bin reached' >&2\nexit 7\n"
    },
    misses={"code": {"exit 7": "exit 8"}, "words": {"disk quota": "inode quota"}},
    hook=False,
)
case(
    "shell_unset",
    "bash run.sh",
    {"run.sh": "{{pad}}\nset -u\necho $MISSING_VALUE\n"},
    misses={"other": {"MISSING_VALUE": "ABSENT_VALUE"}},
    hook=False,
)
case("shell_silent", "exit 9", misses={"code": {"exit 9": "exit 10"}}, hook=False)
case(
    "node",
    "exec node app.js",
    {
        "app.js": "{{pad}}\nfunction load(n) { throw new Error(`cannot load ${n}`); }\nload({{n}});\n"
    },
    misses={"message": {"cannot load": "cannot find"}, "function": {"load(": "fetchIt("}},
    hook=False,
    comment="//",
)
case(
    "node_type_error",
    "exec node app.js",
    {"app.js": "{{pad}}\nfunction read(o) { return o.inner.value; }\nread({});\n"},
    misses={"property": {"inner.value": "inner.size"}},
    hook=False,
    comment="//",
)
case(
    "node_rejection",
    "exec node app.js",
    {"app.js": "{{pad}}\nasync function go() { throw new RangeError('out by {{n}}'); }\ngo();\n"},
    misses={"message": {"out by": "in by"}},
    hook=False,
    comment="//",
)
case(
    "perl",
    "exec perl run.pl",
    {"run.pl": '{{pad}}\nsub load { die "cannot open shard {{n}}"; }\nload();\n'},
    misses={"message": {"cannot open": "cannot close"}},
    hook=False,
)
case(
    "java",
    "exec java Main.java",
    {
        "Main.java": """{{pad}}
public class Main {
    static void load(int n) { throw new IllegalStateException("no shard " + n); }
    public static void main(String[] a) { load({{n}}); }
}
"""
    },
    misses={
        "type": {"IllegalStateException": "IllegalArgumentException"},
        "function": {"load(": "fetch("},
    },
    hook=False,
    comment="//",
)
case(
    "git",
    "git init -q . && git checkout nowhere",
    misses={"other": {"checkout nowhere": "show"}},
    hook=False,
)

# ---- torch

TORCH = "import torch\n"


def torch(name: str, source: str, misses: dict[str, dict[str, str]], **more) -> None:
    py(f"torch_{name}", TORCH + source, misses, venv=True, **more)


torch(
    "shapes",
    """
def forward(n):
    return torch.zeros(n, 10) @ torch.zeros(8, n)
forward({{n}})
""",
    {"function": {"forward": "backward_pass"}},
)
torch(
    "dtype",
    """
def forward():
    return torch.zeros(2, 2, dtype=torch.float16) @ torch.zeros(2, 2, dtype=torch.float32)
forward()
""",
    {"other_dtype": {"torch.float16": "torch.float64"}},
)
torch(
    "nan",
    """
def check(loss, step):
    if torch.isnan(loss):
        raise RuntimeError(f"loss is {loss} at step {step}")
check(torch.tensor(float("nan")), {{n}})
""",
    {"message": {"loss is": "grad is"}},
)
torch(
    "module",
    """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 2)
    def forward(self, x):
        return self.fc(x)
Net()(torch.zeros({{n}}, 5))
""",
    {
        "function": {
            "return self.fc(x)": "return self.inner(x)\n    def inner(self, x):\n        return self.fc(x)"
        }
    },
)
torch(
    "next_layer",
    """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(5, 3)
        self.second = torch.nn.Linear(4, 2)
    def forward(self, x):
        x = self.first(x)
        return self.second(x)
Net()(torch.zeros({{n}}, 5))
""",
    {"layer": {"Linear(5, 3)": "Linear(6, 4)"}},
)
torch(
    "state_dict",
    """
def load():
    torch.nn.Linear({{n}}, 2).load_state_dict({"weight": torch.zeros(2, 2)})
load()
""",
    {"key": {'"weight"': '"wieght"'}},
)
torch(
    "loader_error",
    """
class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        raise ValueError(f"row {i} of {{n}} is bad")
def main():
    for batch in torch.utils.data.DataLoader(Rows(), num_workers=1):
        pass
if __name__ == "__main__":
    main()
""",
    {"message": {"is bad": "is cut"}},
)
torch(
    "loader_killed",
    """
import os, signal
class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        os.kill(os.getpid(), signal.SIGKILL)
def main():
    for batch in torch.utils.data.DataLoader(Rows(), num_workers=1):
        pass
if __name__ == "__main__":
    main()
""",
    {"function": {"main()": "epoch()"}},
)
RANKS = (
    TORCH
    + """
import os
import torch.distributed as dist
def exchange(rank):
    if rank == 1:
        raise ValueError(f"rank {rank} has no data, {{n}}")
    t = torch.zeros(3)
    dist.all_reduce(t)
def main():
    dist.init_process_group("gloo")
    exchange(dist.get_rank())
main()
"""
)
torch_run = (
    "exec {{bin}}/python -m torch.distributed.run --nnodes=1 --nproc-per-node=2"
    " --master-addr=127.0.0.1 --master-port=29{{n}} train.py"
)
py(
    "torchrun",
    RANKS,
    {"message": {"has no data": "has no weights"}},
    command=torch_run.replace("29{{n}}", "29511"),
    venv=True,
)
py(
    "torchrun_segv",
    RANKS.replace(
        'raise ValueError(f"rank {rank} has no data, {{n}}")', "os.kill(os.getpid(), 11)"
    ),
    {"other_signal": {"os.getpid(), 11": "os.getpid(), 4"}},
    command=torch_run.replace("29{{n}}", "29517"),
    venv=True,
    group="SIGSEGV without a word",
)
torch(
    "spawn",
    """
import torch.multiprocessing as mp
def worker(rank):
    raise ValueError(f"spawned {rank} of {{n}} fell")
if __name__ == "__main__":
    mp.spawn(worker, nprocs=1)
""",
    {"message": {"fell": "failed"}},
)

# ---- A second helping, written after the readers were finished and judged before any was mended

FRESH = len(CASES)

py(
    "log_prefix_on_each_line",
    """
import logging, traceback
logging.basicConfig(format="%(asctime)s | %(levelname)s | %(process)d | %(message)s")
def pull():
    raise LookupError("shard {{n}} is not on this host")
try:
    pull()
except LookupError:
    for line in traceback.format_exc().splitlines():
        logging.error(line)
    raise SystemExit(4)
""",
    {"message": {"is not on this host": "is on two hosts"}},
)
py(
    "compose_labels",
    "def serve():\n    raise OSError('address {{n}} in use')\nserve()\n",
    {"message": {"in use": "not allowed"}},
    command="{{py}} train.py 2>&1 | sed 's/^/web-1  | /'; exit 1",
)
py(
    "json_log",
    """
import json, sys, traceback
def pull():
    raise LookupError("row {{n}} lost")
try:
    pull()
except LookupError as e:
    print(json.dumps({"level": "error", "ts": 1700000{{n}}.5, "msg": str(e), "exc": traceback.format_exc()}))
    sys.exit(1)
""",
    {"message": {"lost": "found twice"}},
)
py(
    "missing_argument",
    "class Net:\n    def __init__(self, width, depth):\n        pass\ndef build():\n    return Net({{n}})\nbuild()\n",
    {"other_argument": {"width, depth": "width, heads"}},
)
py(
    "unbound_local",
    "def count(xs):\n    for x in xs:\n        total = x\n    return total\ncount([])\n",
    {"other_name": {"total": "amount"}},
)
py(
    "generator_stop",
    "def rows():\n    yield next(iter([]))\ndef fit():\n    return list(rows())\nfit()\n",
    {"function": {"rows": "lines"}},
)
py(
    "decorated",
    """
import functools
def logged(f):
    @functools.wraps(f)
    def inner(*a):
        return f(*a)
    return inner
@logged
def fit(n):
    raise ValueError(f"cannot fit {n}")
fit({{n}})
""",
    {"message": {"cannot fit": "will not fit"}},
)
py(
    "context_manager_exit",
    """
class Lock:
    def __enter__(self):
        return self
    def __exit__(self, *a):
        raise OSError("lock {{n}} was stolen")
def fit():
    with Lock():
        raise ValueError("first")
fit()
""",
    {"message": {"was stolen": "was broken"}},
)
py(
    "gather",
    """
import asyncio
async def one(i):
    await asyncio.sleep(0.01 * i)
    raise ValueError(f"task {i} of {{n}}")
async def main():
    await asyncio.gather(*(one(i) for i in range(3)))
asyncio.run(main())
""",
    {"function": {"one(": "single("}},
)
py(
    "warnings_as_errors",
    "import warnings\ndef old():\n    warnings.warn('old() goes away in {{n}}.0', DeprecationWarning)\nold()\n",
    {"message": {"goes away": "is gone"}},
    command="exec {{py}} -W error train.py",
)
py(
    "compile_only",
    "class A:\n    def f(self)\n        pass\n",
    {"other": {"def f(self)\n        pass": "x = = 1"}},
    command="exec {{py}} -m py_compile train.py",
)
py(
    "run_by_make",
    "def step():\n    raise ValueError('under make {{n}}')\nstep()\n",
    {"message": {"under make": "below make"}},
    files={"Makefile": "all:\n\t@$(PY) train.py\n"},
    command="make PY={{py}}",
)
py(
    "run_by_xargs",
    "import sys\ndef step(i):\n    raise ValueError(f'item {i} by xargs')\nstep(sys.argv[1])\n",
    {"message": {"by xargs": "of xargs"}},
    command="echo {{n}} | xargs {{py}} train.py",
)
py(
    "threads_all_dumped",
    """
import faulthandler, os, threading
faulthandler.enable(all_threads=True)
stop = threading.Event()
threading.Thread(target=stop.wait, daemon=True).start()
def crash():
    os.abort()
crash()
""",
    {"function": {"crash": "tumble"}},
)
py(
    "traceback_in_message",
    """
import subprocess, sys
def launch():
    p = subprocess.run([sys.executable, "-c", "def inner():\\n    raise KeyError('deep')\\ninner()"], capture_output=True, text=True)
    raise RuntimeError("worker {{n}} said:\\n" + p.stderr)
launch()
""",
    {"inner": {"KeyError('deep')": "IndexError('deep')"}},
)
case(
    "unittest_subtests",
    "exec {{py}} -m unittest test_sub",
    {
        "test_sub.py": """{{pad}}
import unittest
class Parts(unittest.TestCase):
    def test_parts(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertLess(i + {{n}}, 1)
"""
    },
    misses={"other_check": {"assertLess": "assertIsNone", ", 1)": ")"}},
)
case(
    "pytest_deep_with_captured",
    "exec {{bin}}/pytest -q -p no:cacheprovider tests",
    {
        "lib_under_test.py": "{{pad}}\ndef check(x):\n    print('checking', x)\n    return {'a': 1}[x]\n",
        "tests/conftest.py": "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parents[1]))\n",
        "tests/test_deep.py": """{{pad}}
import logging, pytest
from lib_under_test import check
def test_logs():
    try:
        1 / 0
    except ZeroDivisionError:
        logging.exception("caught {{n}}")
    check("b{{n}}"[:1])
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.xfail
def test_known(): assert 0
""",
    },
    misses={"other_key": {'check("b{{n}}"[:1])': 'check("zz")'}},
    venv=True,
)
case(
    "pytest_exception_group",
    "exec {{bin}}/pytest -q -p no:cacheprovider tests",
    {
        "tests/test_group.py": """{{pad}}
def test_group():
    raise ExceptionGroup("many", [ValueError("a {{n}}"), TypeError("b")])
"""
    },
    misses={"other_member": {'TypeError("b")': 'TypeError("c")'}},
    venv=True,
)
py(
    "numpy_shapes",
    "import numpy as np\ndef add():\n    return np.zeros({{n}} + 2) + np.zeros((5, 1000))\nadd()\n",
    {"function": {"add": "plus"}, "other_op": {"np.zeros({{n}} + 2) + ": "np.ones((7, 9)) @ "}},
    venv=True,
)
torch(
    "embedding",
    "def embed(i):\n    return torch.nn.functional.embedding(torch.tensor([i]), torch.zeros(2, 3))\nembed({{n}})\n",
    {"function": {"embed(i)": "look_up(i)", "embed({": "look_up({"}},
)
torch(
    "autograd",
    "def back():\n    torch.ones({{n}}, requires_grad=True).backward()\nback()\n",
    {"no_grad": {"requires_grad=True).backward": ").sum().backward"}},
)
torch(
    "inplace",
    """
def back():
    x = torch.ones({{n}}, requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()
back()
""",
    {"leaf": {"y = x.exp()\n    y.add_(1)": "x.add_(1)\n    y = x"}},
)
torch(
    "cuda_missing",
    "def move():\n    return torch.zeros({{n}}).to('cuda:{{n}}'[:6])\nmove()\n",
    {"function": {"move": "shift"}},
)
py(
    "torchrun_tee",
    RANKS.replace("has no data", "has no labels"),
    {"message": {"has no labels": "has no names"}},
    command=torch_run.replace("29{{n}}", "29523").replace(" train.py", " --tee 3 train.py"),
    venv=True,
)
c(
    "c_link_error",
    "int nowhere(void);\nint main() { return nowhere(); }\n",
    {"other": {"nowhere": "elsewhere"}},
)
c(
    "c_divide",
    "int main(int c, char **v) { volatile int z = c - 2; return 7 / z; }\n",
    group="sigfpe",
)
case(
    "node_syntax",
    "exec node app.js",
    {"app.js": "{{pad}}\nlet x = {{n}};\nlet x = 2;\n"},
    misses={"other": {"let x = 2;": "let = ;"}},
    hook=False,
    comment="//",
)
case(
    "node_module",
    "exec node app.js",
    {"app.js": "{{pad}}\nrequire('not-installed-here');\n"},
    misses={"other": {"not-installed-here": "not-installed-there"}},
    hook=False,
    comment="//",
)
case(
    "perl_syntax",
    "exec perl run.pl",
    {"run.pl": "{{pad}}\nuse strict;\n$total = {{n}};\n"},
    misses={"other": {"$total": "$amount"}},
    hook=False,
)
case(
    "java_compile",
    "exec java Main.java",
    {
        "Main.java": "{{pad}}\npublic class Main {\n    public static void main(String[] a) { int x = missing; }\n}\n"
    },
    misses={"other": {"missing": "absent"}},
    hook=False,
    comment="//",
)
case(
    "diff_of_files",
    "printf 'a\\nb\\n' > one; printf 'a\\nc\\n' > two; diff one two",
    misses={"other_file": {"diff one two": "diff one three"}},
    hook=False,
)
case(
    "shell_test_syntax",
    "bash run.sh",
    {"run.sh": "{{pad}}\nset -e\nif [ 1 -eq {{n}}\nthen echo x; fi\nfalse\n"},
    misses={"other": {"false": "cat /no/such/file"}},
    hook=False,
)
case(
    "permission",
    "mkdir -p d && printf '#!/bin/sh\\n' > d/tool && ./d/tool",
    misses={"missing": {"./d/tool": "./d/other"}},
    hook=False,
)
