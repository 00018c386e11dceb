"""Clocks of a process that goes on from a snapshot, on each Python: as if it had never stopped."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.needs import PYTHONS

from relaunch.inside import warm

PRELUDE = f"""
import json, os, sys, time
from types import ModuleType
package = sys.modules["_relaunch_warm"] = ModuleType("_relaunch_warm")
package.__path__ = [{str(Path(warm.__file__).parent)!r}]
from _relaunch_warm import loader
sys.meta_path.insert(0, loader.finder_of(package.__path__[0]))
from _relaunch_warm import clocks
real = time.process_time
clocks.stand_in()
assert "resource" not in sys.modules

def work():
    until = real() + 0.05
    while real() < until:
        pass

def resumed():
    # Go on in a forked process; the others only wait for it.
    clocks.hold()
    pid = os.fork()
    if pid:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    work()  # what resuming takes
    clocks.go_on()

def read():
    import resource
    if isinstance(resource.getrusage, type(len)):
        clocks.care_for(resource)
    found = [
        time.process_time(), time.process_time_ns() / 1e9,
        time.thread_time(), time.thread_time_ns() / 1e9,
        time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID),
        time.clock_gettime_ns(time.CLOCK_THREAD_CPUTIME_ID) / 1e9,
        sum(os.times()[:2]),
    ]
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_THREAD):
        usage = resource.getrusage(who)
        found += [usage.ru_utime + usage.ru_stime]
    return found
"""


def told(python: str, script: str) -> Any:
    """Run a script that prints JSON."""
    done = subprocess.run(
        [python, "-c", PRELUDE + script], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture(params=sorted(PYTHONS))
def python(request: pytest.FixtureRequest) -> str:
    return PYTHONS[request.param]


def test_they_go_on_where_they_were_also_in_a_chain(python: str) -> None:
    work = """
work(); work()
a = read()
resumed()
b = read()
work()
c = read()
resumed()
d = read()
print(json.dumps([a, b, c, d]))
"""
    a, b, c, d = told(python, work)
    tick = 0.011
    for one in (a, b, c, d):
        assert max(one) - min(one) < 0.045, one
    assert all(one >= 0.099 - tick for one in a)
    assert all(0 <= after - before < 0.045 for before, after in zip(a, b, strict=True))
    assert all(after - before > 0.049 - tick for before, after in zip(b, c, strict=True))
    assert all(0 <= after - before < 0.045 for before, after in zip(c, d, strict=True))


def test_a_process_that_the_program_forks_begins_at_nothing(python: str) -> None:
    script = """
work(); work()
resumed()
if os.fork():
    os.wait()
else:
    print(json.dumps(read()))
"""
    assert max(told(python, script)) < 0.09


def test_a_thread_that_began_later_has_a_clock_of_its_own(python: str) -> None:
    script = """
import threading
work(); work()
resumed()
found = []
thread = threading.Thread(target=lambda: found.extend([time.thread_time(), time.process_time()]))
thread.start()
thread.join()
print(json.dumps(found))
"""
    of_thread, of_process = told(python, script)
    assert of_thread < 0.05
    assert of_process >= 0.1


def test_children_and_the_most_memory_are_counted_on(python: str) -> None:
    script = """
if os.fork() == 0:
    work(); work()
    os._exit(0)
os.wait()
large = b"x" * (64 << 20)
import resource
clocks.care_for(resource)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
del large
resumed()
usage = resource.getrusage(resource.RUSAGE_SELF)
children = resource.getrusage(resource.RUSAGE_CHILDREN)
times = os.times()
print(json.dumps([
    usage.ru_maxrss >= peak, isinstance(usage.ru_minflt, int),
    children.ru_utime + children.ru_stime, times.children_user + times.children_system,
]))
"""
    is_peak, is_whole, usage, times = told(python, script)
    assert is_peak
    assert is_whole
    assert usage > 0.09
    assert times > 0.07


def test_they_pass_for_the_functions_they_stand_for(python: str) -> None:
    script = """
import copy, pickle, traceback
class Timed:
    clock = time.process_time
def told(call):
    try:
        call()
    except (TypeError, OSError) as error:
        return len(traceback.extract_tb(error.__traceback__)), str(error)
print(json.dumps([
    repr(time.process_time) == repr(real),
    time.process_time.__doc__ == real.__doc__,
    [one.__name__ for one in (time.thread_time_ns, os.times)],
    all(pickle.loads(pickle.dumps(one)) is one for one in (time.clock_gettime, os.times)),
    copy.deepcopy(time.process_time) is time.process_time,
    Timed().clock() > 0,
    told(lambda: time.process_time(1)) == told(lambda: real(1)),
    told(lambda: time.clock_gettime(99))[0],
    abs(time.clock_gettime(time.CLOCK_REALTIME) - time.time()) < 5,
    type(os.times()).__name__,
]))
"""
    names = ["thread_time_ns", "times"]
    expected = [True, True, names, True, True, True, True, 2, True, "times_result"]
    assert told(python, script) == expected
