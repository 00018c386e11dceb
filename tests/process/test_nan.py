"""`rl --nan` names the line that made the first nan or inf; `rl --who-calls` who leads there."""

from __future__ import annotations

import sys

import pytest
from tests.needs import every_python, python_with_torch

CASES = {
    "a result": ("x = 1e200\ny = x * x\nz = y - y\n", "main.py:2 made the first inf: y = x * x"),
    "in place": ("x = 1.0\nfor _ in range(9):\n    x *= 1e100\n",
                 "main.py:3 made the first inf: x *= 1e100"),
    "a returned value": ("def f(a):\n    return a - a\nf(float('inf'))\n",
                         "main.py:2 made the first nan: return a - a"),
    "an argument": ("def f(a):\n    return 1\nbig = float('inf')\nf(big - big)\n",
                    "main.py:4 made the first nan: f(big - big)"),
    "in a list": ("big = float('inf')\npair = [1.0, big * 0]\n",
                  "main.py:2 made the first nan: pair = [1.0, big * 0]"),
    "an attribute": ("class A: pass\na = A()\na.x = 1e200 * 1e200\n",
                     "main.py:3 made the first inf: a.x = 1e200 * 1e200"),
    "a loop's own": ("for x in (1.0, 2.0, 1e308 * 10):\n    pass\n",
                     "main.py:1 made the first inf: for x in (1.0, 2.0, 1e308 * 10):"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_line_that_made_it_is_named(world, name):
    text, said = CASES[name]
    world.write("main.py", f"{text}print('never here')\n")
    done = world.rl("--nan", "--", sys.executable, "main.py")
    assert done.returncode == 71
    assert "never here" not in done.stdout
    assert said in done.stderr.splitlines()
    assert f"exit 71: {said}"[:60] in done.stderr


@every_python
def test_what_is_meant_is_no_failure(world, python):
    text = "low = float('-inf')\nbest = max(low, 1.0)\nmask = [low, 1.0]\nkept = mask[0]\n"
    world.write("main.py", f"{text}print(best)\n")
    done = world.rl("--nan", "--", python, "main.py")
    assert (done.returncode, done.stdout) == (0, "1.0\n")


def test_a_tensor_and_an_array(world):
    python = python_with_torch()
    world.write("net.py", """\
import torch
def attend(scores):
    mask = torch.ones(3, 3).bool().triu(1)
    scores = scores.masked_fill(mask, float("-inf"))
    weights = scores.softmax(-1)
    return weights.log()
out = attend(torch.zeros(3, 3))
total = (out - out).sum()
""")  # fmt: skip
    world.write("rows.py", "import numpy\nout = numpy.zeros(3)\nout = numpy.log(out - 1)\n")
    done = world.rl("--nan", "--", python, "net.py")
    assert "net.py:6 made the first inf: return weights.log()" in done.stderr.splitlines()
    assert "  from weights=(3, 3) float32 cpu" in done.stderr
    done = world.rl("--nan", "--", python, "rows.py")
    assert "rows.py:3 made the first nan: out = numpy.log(out - 1)" in done.stderr.splitlines()


def test_who_calls_a_function_is_told_once_for_each_way(world):
    world.write("pkg/model.py", "class Net:\n    def run(self):\n        return 1\n")
    world.write("main.py", "from pkg.model import Net\ndef a(): Net().run()\ndef b(): Net().run()\n"
                "a(); b(); a()\n")  # fmt: skip
    done = world.rl("--who-calls", "Net.run", "--", sys.executable, "main.py")
    lines = done.stderr.splitlines()
    assert lines.count("pkg/model.py:Net.run is called by") == 2
    assert "  main.py:2 a" in lines
    assert "  main.py:3 b" in lines
    done = world.rl("--who-calls", "Net.nope", "--", sys.executable, "main.py")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
