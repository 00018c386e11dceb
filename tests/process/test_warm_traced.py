"""Programs that are traced or profiled while they run warm: who listens hears nothing else."""

import subprocess
import sys

import pytest
from tests.needs import every_python
from tests.warming import told

WORK = """\
import os, random, time
def look(path):
    try:
        return os.stat(path).st_size
    except OSError:
        return -1
def sums(count):
    total = 0
    for number in range(count):
        open(os.devnull).close()
        total += look(f"/no such file {number}")
    return total
def fails():
    os.lstat("/no such file")
def main():
    time.sleep(0.2)
    random.seed(3)
    found = sums(10), os.getpid() > 0, time.time() > 0
    try:
        fails()
    except OSError as error:
        names, trace = [], error.__traceback__
        while trace:
            names.append(trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
    import helper
    print(found, names, helper.double(4))
    return sums(20)
"""
PROFILED = """\
import cProfile, pstats
profile = cProfile.Profile()
profile.enable()
import work
work.main()
profile.disable()
for key, told in sorted(pstats.Stats(profile).stats.items()):
    who = sorted(f"{file.rpartition('/')[2]} {name}" for file, _, name in told[4])
    if "/project/" in key[0] or "warm" in key[0] or "relaunch" in key[0]:
        print(key[0].rpartition("/")[2], *key[1:], *told[:2], who)
"""
LISTENED = """\
import sys
depth, wrong, count = [], [], 0
def listen(frame, event, arg):
    global count
    file = frame.f_code.co_filename
    if event == "call":
        depth.append(frame)
    elif event == "return":
        if not depth or depth.pop() is not frame:
            wrong.append((file, frame.f_code.co_name))
    count += "/project/" in file and event in ("call", "return")
    if "/inside/warm/" in file:
        wrong.append(file)
import work
sys.setprofile(listen)
work.main()
sys.setprofile(None)
print(count, wrong, len(depth))
"""
TRACED = """\
import sys
lines = {}
def trace(frame, event, arg):
    file = frame.f_code.co_filename
    if "/inside/warm/" in file:
        lines[file] = event
    if "/project/" in file and frame.f_code.co_name != "<module>":
        key = frame.f_code.co_name, event, frame.f_lineno
        lines[key] = lines.get(key, 0) + 1
    return trace
import work
sys.settrace(trace)
work.main()
sys.settrace(None)
print(sorted(map(str, lines.items())))
"""
COVERED = """\
import coverage
measured = coverage.Coverage(data_file=None, include=["*/project/*"])
measured.start()
import work
work.main()
measured.stop()
data = measured.get_data()
print(sorted((file.rpartition("/")[2], sorted(data.lines(file))) for file in data.measured_files()))
"""


def _tells_the_same(world, python, script):
    world.write("work.py", WORK)
    world.write("helper.py", "def double(number):\n    return 2 * number\n")
    world.write("train.py", script)
    cold = subprocess.run(
        [python, "train.py"], cwd=world.project, env=world.env, capture_output=True, text=True
    )
    assert cold.returncode == 0, cold.stderr
    done = world.rl("warm", "--", python, "train.py")
    assert told(done) == (0, cold.stdout, cold.stderr)
    world.write("helper.py", "def double(number):\n    # edited\n    return number + number\n")
    again = world.rl("warm")
    cold = subprocess.run(
        [python, "train.py"], cwd=world.project, env=world.env, capture_output=True, text=True
    )
    assert told(again) == (0, cold.stdout, cold.stderr)


@every_python
@pytest.mark.parametrize("script", [PROFILED, LISTENED, TRACED], ids=["C", "profile", "trace"])
def test_who_listens_to_a_warm_program_hears_of_the_program_alone(warm, python, script):
    _tells_the_same(warm, python, script)


def test_coverage_of_a_warm_program_is_that_of_a_cold_one(warm):
    _tells_the_same(warm, sys.executable, COVERED)
