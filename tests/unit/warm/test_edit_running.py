"""A program edited at any of its stops does what the edited program does from the beginning."""

from __future__ import annotations

import dis
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.depth import takes_turns
from tests.unit.warm.editor import spec_of

from relaunch.inside.warm import morph

DRIVER = Path(__file__).with_name("editing.py")
ENV = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}

CASES = {
    "the rest of a block": (
        """
def main():
    a = 1
    print(a)
    print('old')
main()
""",
        """
def main():
    a = 1
    print(a)
    b = a + 1
    print('new', b, sorted(locals()))
main()
""",
    ),
    "a loop with a block inside": (
        """
class Gate:
    def __enter__(self):
        print("in")
        return self
    def __exit__(self, *error):
        print("out", error[0])
        return True
def main(n):
    total = 0
    for i in range(n):
        with Gate() as gate:
            total += i
            try:
                print("step", i, total)
            finally:
                print("finally")
    return total
print(main(3))
""",
        """
class Gate:
    def __enter__(self):
        print("in")
        return self
    def __exit__(self, *error):
        print("out", error[0])
        return True
def main(n):
    total = 0
    for i in range(n):
        with Gate() as gate:
            total += i
            try:
                print("step", i, total)
            finally:
                print("finally")
    more = [total * k for k in range(2)]
    get = lambda: total
    print(more, get())
    raise ValueError(more)
print(main(3))
""",
    ),
    "a variable that closures share from now on": (
        """
def main():
    n = 1
    n += 1
    print(n)
main()
""",
        """
def main():
    n = 1
    n += 1
    def add():
        nonlocal n
        n += 10
        return n
    print(add(), add(), n)
main()
""",
    ),
    "lines move under running functions": (
        """
def inner(d):
    print("inner")
    return d["missing"]
def outer():
    d = dict(a=1)
    x = [inner(d)
         for _ in range(1)]
    return x
print("start")
outer()
""",
        """
# one
# two
def inner(d):
    print("inner")


    return d["missing"]
def outer():
    d = dict(a=1)
    # three
    x = [inner(d)
         for _ in range(1)]
    return x
print("start")
# four
outer()
""",
    ),
    "a lambda made before": (
        """
fs = [lambda q=q: q / 0 for q in range(2)]
print('made')
fs[1]()
""",
        """

fs = [lambda q=q: q / 0 for q in range(2)]
print('made')

print('more')
fs[1]()
""",
    ),
    "methods, super and class variables": (
        """
class Base:
    size = 2
    def run(self):
        print("base", self.size)
        return self.size
class Derived(Base):
    def run(self):
        n = super().run()
        print("derived", n)
        return self.later(n)
    def later(self, n):
        return n
print(Derived().run())
""",
        """
class Base:
    size = 2
    def run(self):
        print("base", self.size)
        return self.size
class Derived(Base):
    def run(self):
        n = super().run()
        print("derived", n)
        m = n * 10
        return self.later(m)
    def later(self, n):
        print("later", n)
        return [n for _ in range(2)]
print(Derived().run())
""",
    ),
    "generators, half consumed and not begun": (
        """
def count(n):
    for i in range(n):
        got = yield i
        print("got", got)
    print("end")
a, b = count(3), count(2)
print(next(a))
print(a.send("x"))
print(list(a))
print(list(b))
""",
        """
def count(n):
    for i in range(n):
        got = yield i
        print("got", got)
    print("the end", n, i)
a, b = count(3), count(2)
print(next(a))
print(a.send("x"))
print(list(a), "a")
print(list(b), "b")
""",
    ),
    "at the very end": (
        """
class D:
    def __del__(self):
        print('gone')
d = D()
print('x')
""",
        """
class D:
    def __del__(self):
        print('gone', 2)
d = D()
print('y')
""",
    ),
    "recursion": (
        """
def f(n):
    if n == 0:
        return 0
    r = f(n - 1)
    print(n, r)
    return r + n
print(f(3))
""",
        """
def f(n):
    if n == 0:
        return 0
    r = f(n - 1)
    print(n, r, 'new')
    return r + n
print(f(3))
""",
    ),
    "async": (
        """
import asyncio
async def work(n):
    await asyncio.sleep(0)
    print("work", n)
    return n
async def main():
    a = await work(1)
    b = await work(2)
    print(a + b)
asyncio.run(main())
""",
        """
import asyncio
async def work(n):
    await asyncio.sleep(0)
    print("work", n)
    return n
async def main():
    a = await work(1)
    b = await work(2)
    print(a + b, [await work(k) for k in (3, 4)])
asyncio.run(main())
""",
    ),
    "match and walrus": (
        """
def f(v):
    match v:
        case [a, b]:
            print(a)
        case _:
            print('no')
f([1, 2])
if (n := 3) > 2:
    print(n)
f(0)
""",
        """
def f(v):
    match v:
        case [a, b]:
            print(a)
        case _:
            print('none', v)
f([1, 2])
if (n := 3) > 2:
    print(n)
    print(n + 1)
f(0)
""",
    ),
}


def _run(argv: list[str], cwd: Path) -> tuple[int, str, str]:
    done = subprocess.run(argv, cwd=cwd, env=ENV, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


@takes_turns
@pytest.mark.parametrize("name", CASES)
def test_at_every_stop(name: str, tmp_path: Path) -> None:
    old, new = CASES[name]
    script, note = tmp_path / "script.py", tmp_path / "note"
    notes = []
    script.write_text(new)
    cold = _run([sys.executable, "script.py"], tmp_path)
    for stop in range(1, 100):
        script.write_text(old)
        note.unlink(missing_ok=True)
        spec = spec_of(
            sys.executable, str(script), new={str(script): new}, stop=stop, note=str(note)
        )
        warm = _run(
            [sys.executable, "-X", "faulthandler", str(DRIVER), spec, "--", "script.py"], tmp_path
        )
        if not note.exists():
            break
        notes.append(note.read_text())
        if notes[-1] == "edited":
            assert warm == cold, stop
    assert notes.count("edited") >= 2, (notes, warm)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="only 3.11 optimises when code is warm")
def test_edited_code_is_optimised_as_soon_as_its_forerunner_was() -> None:
    names: dict[str, Any] = {}
    exec("def f(a, b):\n    c = a\n    d = b\n    return str(c + d), 'x', c\n", names)
    used = names["f"]
    new, unused = used.__code__.replace(), used.__code__.replace()
    for n in range(20):
        used(n, n)

    def fused(code: Any) -> list[int]:
        return [
            one.offset for one in dis.get_instructions(code, adaptive=True) if "__" in one.opname
        ]

    assert fused(used.__code__)
    assert not fused(unused)
    morph.warm_up(new, unused)
    assert not fused(new)
    morph.warm_up(new, used.__code__)
    assert fused(new) == fused(used.__code__)
