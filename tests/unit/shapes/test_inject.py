"""Functions that are looked at do what they always did, and see nothing of it."""

from __future__ import annotations

import dis
import inspect
import sys
import traceback

import pytest
from tests import looking
from tests.arrays import Array

from relaunch.inside.probe import lines
from relaunch.inside.probe.counts import ENOUGH
from relaunch.inside.shapes.inject import CALL, RUNTIME, add_sites
from relaunch.inside.shapes.retire import retire_entry, retire_site

EVERYTHING = '''
"""A docstring."""
from __future__ import annotations
import contextlib

class Base:
    """Another."""
    kind = "base"

    def __init__(self, x):
        self.x = x
        self.__hidden = self.y = x + 1

    @property
    def hidden(self):
        return self.__hidden

    @classmethod
    def make(cls, *args, **kwargs):
        made = cls(*args, **kwargs)
        return made

def plain(a, /, b, *c, d=4, **e):
    """Only words and a return."""
    global counter
    counter = a + b
    first, *rest = (a, b, *c)
    (one, [two, three]), four = (1, [2, 3]), 4
    chained = other = first
    total: int = 0
    for i, (j, k) in enumerate(zip(c, c)):
        total += i + j + k
        if total > 100:
            break
        else:
            continue
    else:
        total -= 1
    while total < 10:
        total += 3
    try:
        value = e["missing"]
    except KeyError as error:
        value = str(error)
    finally:
        last = value
    with contextlib.suppress(ZeroDivisionError) as nothing:
        bad = 1 / 0
    return total, rest, (lambda q: q + four)(two), [z for z in c], last, d

def generate(n):
    for i in range(n):
        got = yield i * 2
        if got:
            extra = got
            yield extra
    return n + 1

async def wait(x):
    y = x + 1
    return y * 2

def closure(n):
    count = 0
    def inner():
        nonlocal count
        count += n
        return count + 0
    return inner

def recursive(n):
    below = recursive(n - 1) if n else 0
    return below + n

def only_words():
    """Nothing but this."""

def unpack(items):
    a, b = iter(items)
    return a - b
counter = 0
value = plain(1, 2, 5, 6)
obj = Base.make(3)
'''


def loaded(text, folder, *, looked_at):
    tree = lines.parse(text, "model.py")
    runtime = looking.Runtime(folder)
    if looked_at:
        add_sites(tree, 0, ("",), ())
    space = {RUNTIME: runtime, "__name__": "model"}
    exec(compile(tree, "model.py", "exec", dont_inherit=True), space)
    return space, runtime


@pytest.fixture
def both(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    plain, _ = loaded(EVERYTHING, tmp_path / "a", looked_at=False)
    ours, runtime = loaded(EVERYTHING, tmp_path / "b", looked_at=True)
    yield plain, ours
    assert runtime.troubles == []


def results(space):
    generator = space["generate"](2)
    sent = [next(generator), generator.send(7), next(generator)]
    inner = space["closure"](3)
    coroutine = space["wait"](4)
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    return [
        space["plain"](1, 2, 3, 4, 5, d=6, f=7),
        space["counter"],
        space["value"],
        space["obj"].hidden,
        space["obj"].y,
        vars(space["obj"]),
        sent,
        list(space["generate"](2)),
        [inner(), inner()],
        stopped.value.value,
        space["recursive"](20),
        space["only_words"](),
        space["only_words"].__doc__,
        space["plain"].__doc__,
        space["__doc__"],
        space["unpack"]([5, 3]),
        str(inspect.signature(space["plain"])),
        sorted(name for name in space if not name.startswith("__")),
    ]


def test_everything_comes_out_the_same(both):
    plain, ours = both
    assert results(ours) == results(plain)


def test_first_lines_flags_and_closures_stay(both):
    plain, ours = both
    for name in ("plain", "generate", "wait", "closure", "recursive"):
        one, other = plain[name].__code__, ours[name].__code__
        assert one.co_flags == other.co_flags
        assert one.co_firstlineno == other.co_firstlineno
        assert one.co_argcount == other.co_argcount
        assert one.co_cellvars == other.co_cellvars
        assert {line for *_, line in one.co_lines()} == {line for *_, line in other.co_lines()}


def test_a_traceback_has_the_same_lines_and_carets(both):
    told = []
    for space in both:
        try:
            space["plain"]("a", 2)
        except TypeError as error:
            frame = traceback.TracebackException.from_exception(error).stack[-1]
            told.append((frame.lineno, frame.colno, frame.end_colno, frame.name))
    assert told[0] == told[1]


HOT = """\
def f(n):
    m = n + 1
    return m * 2
def loop(n):
    total = 0
    for i in range(n):
        total = total + i
    return total + 0
"""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="memory of this Python is not known")
def test_what_is_called_without_end_runs_without_us(tmp_path):
    space, runtime = loaded(HOT, tmp_path, looked_at=True)
    f = space["f"]
    for n in range(ENOUGH + 10):
        assert f(n) == (n + 1) * 2
    calls = runtime.watch._functions[1].count
    assert calls == ENOUGH
    assert f(1) == 4


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="memory of this Python is not known")
def test_a_loop_without_end_runs_without_us(tmp_path):
    space, runtime = loaded(HOT, tmp_path, looked_at=True)
    count = 3 * ENOUGH
    assert space["loop"](count) == sum(range(count))
    hits = [hits[0] for hits in runtime.watch._hits.values()]
    assert max(hits) == ENOUGH


def test_a_site_is_found_in_the_code_whatever_the_python(tmp_path):
    space, _ = loaded(HOT, tmp_path, looked_at=True)
    code = space["f"].__code__
    before = [one.opname for one in dis.get_instructions(code)]
    retire_entry(code)
    retire_site(code, 1)
    retire_site(code, 2)
    assert [one.opname for one in dis.get_instructions(code)] == before, "co_code is a copy"
    assert space["f"](3) == 8
    assert CALL in code.co_varnames


def test_a_new_process_begins_anew(tmp_path):
    text = "def f(x):\n    y = x + 1\n    return y\n"
    space, runtime = loaded(text, tmp_path, looked_at=True)
    space["f"](Array(3))
    runtime.watch.begin_again()
    space["f"](Array(4))
    runtime.watch.book.flush()
    assert runtime.troubles == []


def test_of_many_calls_the_first_the_different_and_some_others_are_looked_at(tmp_path):
    text = "def f(x):\n    y = x + 1\n    return y\n"
    space, runtime = loaded(text, tmp_path, looked_at=True)
    for n in range(1000):
        space["f"](Array(3, 4) if n != 700 else Array(9, 9))
    runtime.watch.book.flush()
    from relaunch.trial.shapes.seen import read_calls

    seen = read_calls(str(tmp_path), 0)
    assert len(seen) < 60
    assert any((1, 0, (9, 9)) in call.events for call in seen)
