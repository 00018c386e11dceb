"""Functions that Python itself does not see, on each Python: wherever a program looks for them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from tests.needs import every_python

from relaunch.inside.warm import unseen

OURS = """
def through(call, *args, **more):
    found = [call(*args, **more) for _ in range(1)]
    return found[0]

def caught(call):
    with Gate():
        try:
            return call()
        except LookupError as error:
            kept = error
            raise
        finally:
            kept = None

class Gate:
    def __enter__(self):
        return self
    def __exit__(self, *_):
        return None

def counted(count):
    def inner():
        nonlocal count
        count += 1
        return count
    return inner

def refuse(word):
    raise ValueError(word)

def draw(count):
    for number in range(count):
        yield number
"""
PRELUDE = f"""
import gc, inspect, json, signal, sys, traceback, warnings, logging, io, faulthandler
sys.path.insert(0, {str(Path(unseen.__file__).parent)!r})
import unseen
ours = {{}}
exec(unseen.unseen(compile({OURS!r}, "/ours.py", "exec")), ours)
through, caught = ours["through"], ours["caught"]

def names_of(trace):
    found = []
    while trace:
        found.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    return found

def back(frame):
    found = []
    while frame:
        found.append(frame.f_code.co_name)
        frame = frame.f_back
    return found

def tell(*found):
    print(json.dumps(found))
"""


def told(python: str, script: str) -> Any:
    """Run a script that tells something."""
    done = subprocess.run(
        [python, "-c", PRELUDE + script], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@every_python
def test_it_is_proven_before_it_is_used(python: str) -> None:
    script = """
works = unseen.works()
unseen.unseen = lambda code: code
tell(works, unseen.works())
"""
    assert told(python, script) == [True, False]


@every_python
def test_who_looks_up_the_stack_finds_the_program_alone(python: str) -> None:
    script = """
def user():
    log = io.StringIO()
    traceback.print_stack(file=log)
    return [
        back(sys._getframe()), [one.function for one in inspect.stack(0)],
        "/ours.py" in log.getvalue(), logging.getLogger().findCaller()[2:],
    ]
tell(*through(user))
"""
    stack, inspected, shown, logged = told(python, script)
    assert stack == inspected == ["user", "<module>"]
    assert not shown
    assert logged == ["user", None]


@every_python
def test_a_warning_is_of_the_line_that_it_would_be_of(python: str) -> None:
    script = """
def user():
    warnings.warn("careful", stacklevel=2)
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    through(user); line = sys._getframe().f_lineno
tell(found[0].lineno == line, found[0].filename)
"""
    assert told(python, script) == [True, "<string>"]


@every_python
def test_an_exception_goes_through_and_keeps_the_frames_of_the_program(python: str) -> None:
    script = """
def fails(): {}[0]
def deep(n): return through(deep, n - 1) if n else fails()
found = []
for call in (lambda: caught(fails), lambda: through(deep, 30), lambda: ours["refuse"]("no")):
    try: call()
    except (LookupError, ValueError) as error: found.append(names_of(error.__traceback__))
count = ours["counted"](5)
tell(*found, [*ours["draw"](3)], [count(), count()], through(dict, a=1))
"""
    one, deep, refused, drawn, counts, given = told(python, script)
    assert one == ["<module>", "<lambda>", "fails"]
    assert deep == ["<module>", "<lambda>", *["deep"] * 31, "fails"]
    assert refused == ["<module>", "<lambda>"]
    assert (drawn, counts, given) == ([0, 1, 2], [6, 7], {"a": 1})


@every_python
def test_a_handler_of_a_signal_gets_a_frame_of_the_program(python: str) -> None:
    script = """
seen = set()
class Enough(Exception): pass
def handler(number, frame):
    seen.update(back(frame)[:-1])
    raise Enough
signal.signal(signal.SIGALRM, handler)
def work():
    for _ in range(50): through(through, len, "")
for n in range(300):
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-6 + n % 50 * 2e-6)
        while True: work()
    except Enough as error:
        seen.update(names_of(error.__traceback__)[1:])
tell(sorted(seen))
"""
    assert told(python, script) == [["handler", "work"]]


@every_python
def test_who_traces_or_profiles_hears_of_no_call_of_ours(python: str) -> None:
    script = """
heard = []
def user(): return 5
watch = lambda frame, event, arg: heard.append((frame.f_code.co_filename, event))
for begin in (sys.settrace, sys.setprofile):
    begin(watch); through(user); begin(None)
called = [event for file, event in heard if file == "/ours.py"]
if hasattr(sys, "monitoring"):
    tool, events = sys.monitoring, sys.monitoring.events
    tool.use_tool_id(3, "watch")
    for event in (events.PY_START, events.LINE, events.PY_RETURN, events.CALL):
        tool.register_callback(3, event, lambda code, *_: called.append(code.co_filename))
    tool.set_events(3, events.PY_START | events.LINE | events.PY_RETURN | events.CALL)
    through(user)
    tool.set_events(3, 0)
tell("call" in called, "/ours.py" in called, through(user))
"""
    assert told(python, script) == [False, False, 5]


@every_python
def test_what_dumps_all_frames_after_a_crash_still_can(python: str, tmp_path: Path) -> None:
    script = f"""
with open({str(tmp_path / "dump")!r}, "w+") as file:
    def user(): faulthandler.dump_traceback(file)
    through(user)
    file.seek(0)
    text = file.read()
tell("in user" in text, text.count("in <module>"))
"""
    assert told(python, script) == [True, 1]


@pytest.mark.parametrize("way", ["frame", "generator"])
def test_a_frame_that_was_taken_can_be_kept(way: str) -> None:
    """Python itself has objects for our frames where we ask for our own."""
    names: dict[str, Any] = {}
    text = "import sys\ndef frame(): return sys._getframe()\ndef generator(): yield sys._getframe()"
    exec(unseen.unseen(compile(text, "/ours.py", "exec")), names)
    found = names["frame"]() if way == "frame" else next(names["generator"]())
    assert found.f_code.co_name == way
    assert found.f_lineno is None or way == "generator"


NEED_A_FRAME = {"super", "locals", "globals", "eval", "dir"}
"""Builtins that look for the function that called them, and would find one of the program."""
SEEN = ("main.py", "loader.py", "unseen.py")
"""Files of ours that are loaded before there is any way to hide."""


@pytest.mark.parametrize(
    "path", sorted(Path(unseen.__file__).parent.glob("*.py")), ids=lambda path: path.stem
)
def test_no_function_of_ours_calls_what_needs_its_frame(path: Path) -> None:
    todo = [compile(path.read_text(), path.name, "exec")] if path.name not in SEEN else []
    while todo:
        code = todo.pop()
        assert NEED_A_FRAME.isdisjoint(code.co_names), code.co_qualname
        todo += [one for one in code.co_consts if isinstance(one, CodeType)]
