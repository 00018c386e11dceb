"""Memory limits: every way to hold them, what happens there, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tests.conftest import World
from tests.depth import takes_turns
from tests.needs import python_with_torch
from tests.people import person, plain, root
from tests.shells import Terminal
from tests.supervising import kill_at_once, wait_until

from relaunch.inside.limited import STACKS
from relaunch.look.tree import PAGE
from relaunch.trial.place.memory import groups, halt
from relaunch.trial.place.memory.freezing import FreezingGroup
from relaunch.trial.place.memory.throttling import hands_memory_down

__all__ = ["person", "plain", "root"]

MB = 1 << 20
RL = [sys.executable, "-m", "relaunch"]
LOADER = """\
def load_rows(count):
    rows = []
    for _ in range(count):
        rows.append(b"x" * (1 << 20))
    return rows
"""
TRAIN = """\
import loader


def main():
    print("begin", flush=True)
    loader.load_rows(200)
    print("done", flush=True)


main()
"""
IS_EXACT = bool(groups.own_group(1))
"""Groups of cgroup v1 freeze to the page; those of v2 slow down."""
WAYS = {"cgroup": {}, "watch": {"RELAUNCH_WITHOUT": "cgroup"}}
AT = "loader.py:4 load_rows <- train.py:6 main <- train.py:10"
REACHED = f"Reached 80.0 MB at {AT}. Stopped by relaunch, not by the kernel"


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Mapping[str, str]:
    """What the environment needs for one way to hold the limit."""
    if request.param == "cgroup":
        may_group()
    return WAYS[request.param]


def group_parent() -> str:
    """Return where memory groups can be made: cgroup v1 as long as the machine has it."""
    return groups.own_group(1) or hands_memory_down(groups.own_group(2))


def may_group() -> None:
    """Skip a test where no memory group can be made: that is the machine's choice, not ours."""
    if not group_parent() or not os.access(group_parent(), os.W_OK):
        pytest.skip("this test makes a memory group")


def program(world: World) -> None:
    """Write a program that takes 200 MB, one by one."""
    world.write("loader.py", LOADER)
    world.write("train.py", TRAIN)


def limited(world: World, *words: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run it with 80 MB."""
    program(world)
    return world.rl("--memory", "80M", *words, "--", sys.executable, "train.py", env=env)


def end_of(world: World, trial: str = "1") -> dict[str, Any]:
    """Read how a trial ended."""
    found: dict[str, Any] = json.loads((world.journal / "trials" / trial / "end.json").read_text())
    return found


def reached(world: World, trial: str = "1") -> dict[str, Any]:
    """Read which limit it reached."""
    found = end_of(world, trial)["reached"]
    assert isinstance(found, dict)
    return found


def left_groups() -> list[str]:
    """Name the groups of ours that are still there."""
    parent = group_parent()
    return [name for name in os.listdir(parent) if name.startswith("relaunch-")] if parent else []


@contextmanager
def plain_group(limit: int) -> Iterator[Path]:
    """Give a memory group in which the kernel kills, as in a container."""
    may_group()
    folder = Path(group_parent()) / f"container-{os.getpid()}"
    folder.mkdir()
    (folder / ("memory.limit_in_bytes" if IS_EXACT else "memory.max")).write_text(str(limit))
    try:
        yield folder
    finally:
        assert groups.remove(str(folder))


# --- the limit, and who is named -----------------------------------------------------------------


def test_the_program_is_stopped_at_its_limit_and_the_line_is_named(world, way):
    done = limited(world, env=way)
    assert done.returncode == -signal.SIGKILL
    assert (done.stdout, REACHED in done.stderr) == ("begin\n", True), done.stderr
    found = reached(world)
    is_exact = IS_EXACT and way == {}
    most = 80 * MB + (0 if is_exact else 20 * MB)
    assert 80 * MB <= found["bytes"] <= most, found["bytes"] / MB
    assert found["by"] == "relaunch"
    assert ("cgroup v1 freezes it there, to the page" in done.stderr) == is_exact


THREE = """\
import ctypes, mmap, sys, threading
def fill():
    held = mmap.mmap(-1, 200 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    at = ctypes.addressof(ctypes.c_char.from_buffer(held))
    ctypes.CDLL(None).memset(ctypes.c_void_p(at), 1, 200 << 20)
print("begin", flush=True)
sys.stdin.readline()
for _ in range(2):
    threading.Thread(target=fill).start()
fill()
"""


@pytest.mark.parametrize("name", ["train.py", "three.py"])
def test_by_the_kernels_own_record_no_more_than_some_pages_are_over_the_limit(world, name):
    """Also of threads that all take pages, and of which the first is frozen before the others."""
    if not IS_EXACT:
        pytest.skip("only groups of cgroup v1 freeze to the page")
    may_group()
    program(world)
    world.write("three.py", THREE)
    world.env["PYTHONMALLOC"] = "malloc"  # each block is mapped anew, in huge pages if it can be
    argv = ["rl", "--memory", "80M", "--", sys.executable, name]
    with world.start(argv, stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begin\n"
        (group,) = [one for one in left_groups() if one.startswith(f"relaunch-{process.pid}-")]
        folder = Path(group_parent(), group)
        (folder / "held").mkdir()  # so that it is not taken away before it was read
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        while groups.members(str(folder)):
            pass
        most = int((folder / "memory.max_usage_in_bytes").read_text())
        (folder / "held").rmdir()
        process.communicate(timeout=300)
    assert groups.remove(str(folder))  # rl may have given up
    assert 80 * MB <= most <= 80 * MB + 4 * PAGE, most - 80 * MB


HOLDS = """\
import mmap, sys
for line in sys.stdin:
    held = mmap.mmap(-1, int(line) << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, len(held), 4096):
        held[at] = 1
    print(flush=True)
"""


def test_a_group_that_was_loosened_or_left_its_limit_is_made_exact_again():
    """As of a shell, whose next program is to be held like the last one."""
    if not IS_EXACT:
        pytest.skip("only groups of cgroup v1 freeze to the page")
    may_group()
    group = FreezingGroup(100 * MB)
    group.make()
    argv = [sys.executable, "-c", HOLDS]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    try:
        with subprocess.Popen(argv, preexec_fn=group.enter, text=True, **pipes) as child:  # type: ignore[call-overload]  # of pipes

            def is_exact(mb: int) -> bool:
                child.stdin.write(f"{mb}\n")
                child.stdin.flush()
                child.stdout.readline()
                while state(child.pid) != "S" or halt.is_filled(child.pid, child.pid) is False:
                    pass  # until it waits to read again: in a call that fills memory nobody is held
                group.near()
                limit = int(Path(group.folder, "memory.limit_in_bytes").read_text())
                group.loosen(goes_on=True)
                return limit == 100 * MB

            try:
                tries = [is_exact(85) for _ in range(12)]
                assert tries[:2] == [True, True]
                assert not tries[-1]  # to stop somebody again and again is not for nothing
                assert [is_exact(20), is_exact(85)] == [False, True]
            finally:
                child.kill()
    finally:
        group.remove()


def test_a_plain_user_is_stopped_at_the_limit_too(plain):
    program(plain.world)
    plain.owns()
    beside = os.path.dirname(sys.executable)
    env = {"PATH": f"{beside}:{plain.world.env['PATH']}"}
    done = plain.rl("--memory", "80M", "--", plain.python, "train.py", env=env)
    assert "its processes are watched" in done.stderr
    assert REACHED in done.stderr, done.stderr
    assert reached(plain.world)["bytes"] <= 100 * MB  # a busy machine lets us wait


def test_who_wants_no_words_of_ours_is_told_that_it_was_stopped_by_us(world, way):
    done = limited(world, "-q", env=way)
    assert REACHED in done.stderr, done.stderr
    assert limited(world, "-q", "--at-limit", "lift", env=way).returncode == 0


def test_what_says_how_memory_is_limited_is_refused_where_it_is_not(world):
    for flag in (["--at-limit", "kill"], ["--memory-by", "watch"], ["--track-memory"]):
        done = world.rl(*flag, "--", "true")
        said = f"rl: {flag[0]} is about a memory limit, and none is asked for"
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert done.stderr.startswith(said), done.stderr


def test_two_runs_that_stop_at_the_same_place_are_the_same_failure(world, way):
    limited(world, env=way)
    assert "same failure as #1" in limited(world, env=way).stderr


def test_a_program_below_its_limit_is_left_alone(world, way):
    program(world)
    done = world.rl("--memory", "400M", "--", sys.executable, "train.py", env=way)
    assert (done.returncode, done.stdout) == (0, "begin\ndone\n"), done.stderr
    assert "reached" not in end_of(world)


def test_without_py_spy_python_itself_tells_the_line(world, way):
    left_out = {"RELAUNCH_WITHOUT": f"{way.get('RELAUNCH_WITHOUT', '')},py-spy"}
    done = limited(world, env=left_out)
    assert REACHED in done.stderr, done.stderr
    assert "to the page" not in done.stderr  # who is frozen could not tell where it is
    assert ("cgroup v1 holds it near there" in done.stderr) == (IS_EXACT and way == {})


def test_forked_workers_are_counted_once_for_what_they_share_and_all_are_stopped(world, way):
    world.write("forks.py", """\
import os, sys, time
shared = b"s" * (40 << 20)
def work(count):
    kept = []
    while len(kept) < count:
        kept.append(b"x" * (1 << 20))
        time.sleep(0.01)
    time.sleep(0.2)
    os._exit(0)
def main(count):
    workers = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            work(count)
        workers.append(pid)
    sys.exit(any(os.waitpid(pid, 0)[1] for pid in workers))
main(int(sys.argv[1]))
""")  # fmt: skip
    # Five processes have 40 MB each, which is 200, but these are the same 40.
    few = world.rl("--memory", "120M", "--", sys.executable, "forks.py", "5", env=way)
    assert few.returncode == 0, few.stderr
    many = world.rl("--memory", "120M", "--", sys.executable, "forks.py", "500", env=way)
    told = r"Reached 120 MB at forks.py:\d .*work.* <- forks.py:15 main .*\(process \d+ of 5\)"
    assert re.search(told, many.stderr), many.stderr
    found = reached(world, "2")
    assert len(found["processes"]) == 5
    # Frozen by the kernel, to the page; watched, four go on, 0.4 MB a ms, until we have a core.
    assert found["bytes"] <= (121 if IS_EXACT and way == {} else 160) * MB
    assert all(is_gone(one["pid"]) for one in found["processes"])


def test_a_page_that_a_fork_begins_to_write_to_counts(world, way):
    world.write("cow.py", """\
import os, time
shared = bytearray(60 << 20)
for at in range(0, len(shared), 4096):
    shared[at] = 1
def scribble():
    for at in range(0, len(shared), 4096):
        shared[at] = 2
        if at % (1 << 20) == 0:
            time.sleep(0.002)
for _ in range(2):
    if os.fork() == 0:
        scribble()
        time.sleep(60)
os.wait()
""")  # fmt: skip
    done = world.rl("--memory", "120M", "--", sys.executable, "cow.py", env=way)
    assert re.search(r"Reached 120 MB at cow.py:\d scribble <- cow.py:12 \(process", done.stderr)
    assert reached(world)["bytes"] <= 132 * MB


def test_what_a_call_reads_is_no_bad_address_at_the_limit(world, way):
    # At the limit of a group, a read() into fresh memory fails with EFAULT instead of waiting.
    world.write("data", b"d" * (8 << 20))
    world.write("slurp.py", """\
def slurp():
    kept = []
    with open("data", "rb", buffering=0) as file:
        while True:
            file.seek(0)
            kept.append(file.read())
slurp()
""")  # fmt: skip
    done = world.rl("--memory", "120M", "--", sys.executable, "slurp.py", env=way)
    assert "Bad address" not in done.stderr
    assert "Reached 120 MB at slurp.py:6 slurp <- slurp.py:7" in done.stderr, done.stderr


def test_pages_of_files_do_not_count(world, way):
    world.write("data", b"d" * (60 << 20))
    world.write("maps.py", """\
import mmap
with open("data", "rb") as file:
    pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
print(sum(pages[at] for at in range(0, len(pages), 4096)) > 0)
""")  # fmt: skip
    done = world.rl("--memory", "50M", "--", sys.executable, "maps.py", env=way)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_a_thread_inside_one_giant_allocation_is_the_one_named(world, way):
    world.write("giant.py", """\
import threading, time
def idle():
    time.sleep(60)
def fill():
    return bytearray(b"x") * (400 << 20)
for _ in range(3):
    threading.Thread(target=idle, daemon=True).start()
thread = threading.Thread(target=fill)
thread.start()
thread.join()
""")  # fmt: skip
    done = world.rl("--memory", "120M", "--", sys.executable, "giant.py", env=way)
    assert "Reached 120 MB at giant.py:5 fill." in done.stderr, done.stderr


def test_a_thread_that_fills_memory_without_the_gil_is_named_not_one_that_waits_to_read(world, way):
    world.write("fill.py", """\
import ctypes, mmap, os, threading
def fill():
    held = mmap.mmap(-1, 400 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    at = ctypes.addressof(ctypes.c_char.from_buffer(held))
    ctypes.CDLL(None).memset(ctypes.c_void_p(at), 1, 400 << 20)
threading.Thread(target=fill).start()
os.read(os.pipe()[0], 1)
""")  # fmt: skip
    done = world.rl("--memory", "120M", "--", sys.executable, "fill.py", env=way)
    assert "Reached 120 MB at fill.py:5 fill." in done.stderr, done.stderr


def test_a_thread_that_writes_a_file_in_memory_is_named(world):
    """Such files count in a group; a write at the exact limit would fail."""
    if not IS_EXACT:
        pytest.skip("no memory group of cgroup v1 here")
    world.write("write.py", """\
import os, tempfile, threading
def write():
    data = bytes(8 << 20)
    with tempfile.TemporaryFile(dir="/dev/shm", buffering=0) as file:
        for _ in range(50):
            file.write(data)
thread = threading.Thread(target=write)
thread.start()
thread.join()
""")  # fmt: skip
    done = world.rl("--memory", "120M", "--", sys.executable, "write.py")
    assert "Reached 120 MB at write.py:6 write." in done.stderr, done.stderr


def test_of_many_workers_the_line_that_allocates_is_named(world):
    """To read the stacks of eight takes longer than it is looked for who of two allocates."""
    world.write("many.py", """\
import os, time
kept = []
def grow():
    kept.append((bytearray(b"x") * (1 << 19), time.sleep(0.0005)))
def work():
    while True:
        grow()
for _ in range(8):
    if not os.fork():
        work()
os.wait()
""")  # fmt: skip
    done = world.rl("--memory", "1200M", "--", sys.executable, "many.py", env=WAYS["watch"])
    assert "Reached 1.2 GB at many.py:4 grow <- many.py:7 work" in done.stderr, done.stderr


@takes_turns
@pytest.mark.parametrize("without", ["", "cgroup", "cgroup,py-spy"])
def test_the_workers_of_a_data_loader_are_stopped_and_named(world, without):
    """Both grow; between two rows, a worker runs code of the loader alone."""
    python = python_with_torch()
    world.write("load.py", """\
import torch
class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, index):
        return grow(index)
def grow(index):
    kept.append(torch.ones(1 << 21))
    return index
kept = []
if __name__ == "__main__":
    for _ in torch.utils.data.DataLoader(Rows(), num_workers=2):
        pass
""")  # fmt: skip
    env = {"TMPDIR": "/tmp", "RELAUNCH_WITHOUT": without}  # their sockets need a short path
    done = world.rl("--memory", "900M", "--", python, "load.py", env=env)
    said = r"Reached 900 MB at load.py:8 grow .*\(process (\d+) of 3\)"
    named = re.search(said, done.stderr)
    assert named, done.stderr
    pids = [one["pid"] for one in reached(world)["processes"]]
    assert len(pids) == 3
    assert int(named[1]) in {*pids} - {min(pids)}  # a worker, not who started it
    assert all(map(is_gone, pids))


# --- what happens at the limit -------------------------------------------------------------------


def test_lift_names_the_line_and_lets_it_go_on(world, way):
    done = limited(world, "--at-limit", "lift", env=way)
    assert (done.returncode, done.stdout) == (0, "begin\ndone\n"), done.stderr
    assert f"reached 80.0 MB at {AT}; it goes on without the limit" in done.stderr


def test_who_was_stopped_before_the_limit_stays_so(world, way):
    """Neither near the limit nor at it is a process woken that somebody else has stopped."""
    program(world)
    world.write("holds.py", """
import os, signal, subprocess
child = subprocess.Popen(["sleep", "1000"])
os.kill(child.pid, signal.SIGSTOP)
os.waitpid(child.pid, os.WUNTRACED)
import train
print(open(f"/proc/{child.pid}/stat").read().split()[2])
child.kill()
""")  # fmt: skip
    words = ("--memory", "80M", "--at-limit", "lift", "--", sys.executable, "holds.py")
    done = world.rl(*words, env=way)
    assert "it goes on without the limit" in done.stderr
    assert (done.returncode, done.stdout) == (0, "begin\ndone\nT\n"), done.stderr


def test_interrupt_raises_keyboard_interrupt_at_that_line(world, way):
    done = limited(world, "--at-limit", "interrupt", env=way)
    assert 'loader.py", line 4, in load_rows' in done.stderr
    assert "KeyboardInterrupt" in done.stderr
    assert "Interrupted by relaunch" in done.stderr
    assert done.stdout == "begin\n"


def pause(world: World, way: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], int]:
    """Run it until it is paused; return rl, and the program that is stopped."""
    program(world)
    words = ["rl", "--memory", "80M", "--at-limit", "pause", "--", sys.executable, "train.py"]
    process = world.start(words, env=way)
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(rb"kill -CONT (\d+)", line):
            return process, int(found[1])
    raise AssertionError("it was not paused")


def state(pid: int) -> str:
    """Return the letter of the state of a process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended, collected or not."""
    try:
        return state(pid) in "ZX"
    except FileNotFoundError:
        return True


def test_pause_leaves_it_stopped_until_somebody_continues_it(world, way):
    process, pid = pause(world, way)
    while state(pid) != "T":
        time.sleep(0.001)
    os.kill(pid, signal.SIGCONT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (0, b"begin\ndone\n"), err


def test_who_is_paused_can_be_looked_at_as_it_was_told(world, way):
    process, pid = pause(world, way)
    done = world.rl("stacks", str(pid), env=way)
    assert "loader.py:4" in done.stdout, done.stdout + done.stderr
    assert state(pid) == "T"
    os.kill(pid, signal.SIGCONT)
    assert process.communicate(timeout=300)[0] == b"begin\ndone\n"


def test_an_interrupt_ends_a_program_that_is_paused(world, way):
    process, _ = pause(world, way)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (-signal.SIGINT, b"begin\n"), err
    assert b"goes on" not in err


@pytest.mark.parametrize("act", ["kill", "pause", "lift"])
def test_on_a_terminal_rl_itself_goes_on_while_the_program_is_stopped(world, way, act):
    program(world)
    words = [sys.executable, "-m", "relaunch", "--memory", "80M", "--at-limit", act, "--"]
    terminal = Terminal([*words, sys.executable, "train.py"], {**world.env, **way}, world.project)
    if act == "pause":
        at = terminal.wait(r"kill -CONT (\d+)")
        pid = int(re.findall(r"kill -CONT (\d+)", terminal.screen[:at])[-1])
        os.kill(pid, signal.SIGCONT)
    terminal.wait(r"stopped after" if act == "kill" else r"exit 0 in")
    code = terminal.process.wait(timeout=300)
    assert code == (-signal.SIGKILL if act == "kill" else 0)


def test_tracking_names_the_lines_that_allocated_the_most(world, way):
    """It grows at a pace: who is asked near the limit needs a moment to answer."""
    program(world)
    world.write("loader.py", LOADER.replace("20))\n", "20))\n        time.sleep(0.002)\n", 1)
                .replace("rows = []", "rows = []; import time"))  # fmt: skip
    words = ("--memory", "80M", "--track-memory", "--", sys.executable, "train.py")
    done = world.rl(*words, env=way)
    assert re.search(
        r"Reached 80\.0 MB at loader\.py:[45] load_rows <- train\.py:6 main", done.stderr
    )
    (first, *_) = reached(world)["growth"]
    assert first["at"] == f"{world.project}/loader.py:4"
    assert first["bytes"] > MB
    shown = world.rl("show").stdout
    assert re.search(r"by line, seen at \d+\.\d MB\n +\d+\.\d MB   \S*loader.py:4 ", shown), shown


def test_show_draws_the_stacks_of_the_limit(world):
    limited(world, env={})
    shown = world.rl("show").stdout
    assert "given     --memory 80M" in shown
    assert "loader.py:4 load_rows" in shown
    assert re.search(r"thread \w+, running, has the GIL", shown), shown


# --- the kernel ----------------------------------------------------------------------------------


NO_LOG = {"RELAUNCH_WITHOUT": "kmsg"}


def in_group(
    world: World,
    folder: Path,
    *words: str,
    env: Mapping[str, str] = MappingProxyType({}),
    input: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run rl in a memory group, as in a container."""
    line = 'echo 0 > "$0/cgroup.procs"; exec "$@"'
    return subprocess.run(
        ["sh", "-c", line, str(folder), *RL, *words],
        cwd=world.project, env={**world.env, **env}, capture_output=True, text=True, check=False,
        timeout=300, input=input,
    )  # fmt: skip


def was_asked(world: World) -> bool:
    """Tell whether the program has written where it is, to the outermost frame."""
    written = (world.journal / "trials" / "1" / "memory").glob(f"*{STACKS}")
    return any(one.read_bytes().endswith(b" in <module>\n") for one in written)


def kernel_tells() -> None:
    """Skip a test where the kernel's log cannot be read."""
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        pytest.skip("this test reads the log of the kernel")


def test_a_kill_by_the_kernel_is_named_as_such(world):
    kernel_tells()
    program(world)
    with plain_group(100 * MB) as folder:
        done = in_group(world, folder, "--", sys.executable, "train.py")
    assert done.returncode == -signal.SIGKILL
    told = r"Killed by the kernel at the limit of the container, 100 MB: \S+ \(pid \d+\) had \d\d"
    assert re.search(told, done.stderr), done.stderr
    assert reached(world)["by"] == "kernel"


def test_a_kill_of_one_of_its_processes_by_the_kernel_is_told_beside_its_own_failure(world):
    kernel_tells()
    program(world)
    with plain_group(100 * MB) as folder:
        line = f"{sys.executable} train.py; exit 3"
        done = in_group(world, folder, "--", "bash", "-c", line)
    assert done.returncode == 3
    assert "Killed by the kernel at the limit of the container" in done.stderr
    assert end_of(world)["signature"]["kind"] == "exit"


def test_a_kill_by_a_person_is_not_the_kernels(world):
    done = world.rl("--", "sh", "-c", "kill -9 $$")
    assert done.returncode == -signal.SIGKILL
    assert "kernel" not in done.stderr, done.stderr


# The last line is one in which it comes near, waits until it was seen, and goes over.
IN_TWO_STEPS = """\
def load_rows(count):
    # Near its limit, and over it.

    return [b"x" * (60 << 20), input(), b"x" * (count << 20)]
"""


def test_where_a_killed_program_was_is_said_when_somebody_was_beside_it(world):
    program(world)
    world.write("loader.py", IN_TWO_STEPS)
    with plain_group(100 * MB) as folder:
        enter = ["sh", "-c", 'echo 0 > "$0/cgroup.procs"; exec "$@"', str(folder)]
        words = [*enter, *RL, "--watch", "--", sys.executable, "train.py"]
        with world.start(words, stdin=subprocess.PIPE) as process:
            wait_until(lambda: was_asked(world) or process.poll() is not None)
            told = process.communicate(b"go\n", timeout=300)[1].decode()
        alone = in_group(world, folder, "--", sys.executable, "train.py", input="go\n")
    assert process.returncode == alone.returncode == -signal.SIGKILL
    assert f"Last seen at {AT}" in told, told
    assert (reached(world)["at"], reached(world, "1.2")["at"]) == (AT, "")
    hint = "rl: where it was, nobody saw; to stop it before that: rl --memory 100M -- CMD\n"
    assert hint in alone.stderr, alone.stderr
    assert hint not in told
    first, second = (end_of(world, one)["signature"]["digest"] for one in ("1", "1.2"))
    assert first == second  # whoever looks, it is the same failure
    assert not (world.journal / "trials/1/memory").exists()


def test_where_a_limited_program_was_is_said_when_others_fill_its_container(world):
    kernel_tells()
    program(world)
    world.write("train.py", f"input()\n{TRAIN}")
    world.write("other.py", "kept = b'x' * (60 << 20)\nprint('full', flush=True)\ninput()\n")
    with plain_group(180 * MB) as folder:
        enter = ["sh", "-c", 'echo 0 > "$0/cgroup.procs"; exec "$@"', str(folder)]
        words = [*enter, *RL, "--memory", "5G", "--", sys.executable, "train.py"]
        with world.start(words, stdin=subprocess.PIPE) as process:
            assert process.stderr is not None
            before = b"the container allows only 180 MB, so it is stopped before that"
            assert any(before in line for line in process.stderr)
            words = [*enter, sys.executable, "other.py"]
            with world.start(words, stdin=subprocess.PIPE) as other:
                assert other.stdout is not None
                assert other.stdout.readline() == b"full\n"
                _, err = process.communicate(b"go\n", timeout=300)
    at = "loader.py:4 load_rows <- train.py:7 main <- train.py:11"
    assert f"Last seen at {at}" in err.decode(), err


def test_a_kill_that_only_the_groups_count_tells_of_is_probably_the_kernels(world):
    program(world)
    with plain_group(100 * MB) as folder:
        done = in_group(world, folder, "--", sys.executable, "train.py", env=NO_LOG)
    told = "Killed probably by the kernel for lack of memory: it did so once in this group"
    assert f"{told}, whose limit is 100 MB" in done.stderr, done.stderr
    assert reached(world)["by"] == "kernel"


@pytest.mark.parametrize("env", [{}, NO_LOG], ids=["log", "count"])
def test_a_kill_by_a_person_after_one_by_the_kernel_is_not_the_kernels(world, env):
    program(world)
    with plain_group(100 * MB) as folder:
        first = in_group(world, folder, "--", sys.executable, "train.py", env=env)
        done = in_group(world, folder, "--", "sh", "-c", "kill -9 $$", env=env)
    assert "by the kernel" in first.stderr, first.stderr
    assert done.returncode == -signal.SIGKILL
    assert "kernel" not in done.stderr, done.stderr


def test_a_kill_before_the_trial_is_not_one_of_its_processes(world):
    kernel_tells()
    program(world)
    with plain_group(100 * MB) as folder:
        first = in_group(world, folder, "--", sys.executable, "train.py")
        (pid,) = re.findall(r"\(pid (\d+)\) had", first.stderr)
        line = f"echo {pid} Killed; exit 3"
        done = in_group(world, folder, "--", "sh", "-c", line)
    assert done.returncode == 3
    assert "kernel" not in done.stderr, done.stderr


def test_the_limit_of_a_container_is_not_waited_for(world):
    program(world)
    with plain_group(150 * MB) as folder:
        done = in_group(world, folder, "--memory", "5G", "--", sys.executable, "train.py")
    assert "the container allows only 150 MB, so it is stopped before that" in done.stderr
    assert f"at {AT}. Stopped by relaunch" in done.stderr, done.stderr


# --- limits that make no sense -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--memory", "nonsense"], "--memory takes a size such as 5G"),
        (["--memory", "0"], "--memory takes a size such as 5G"),
        (["--memory", "-5G"], "--memory takes a size such as 5G"),
        (["--memory", "50%"], "--memory takes a size such as 5G"),
        (["--memory", "100"], "--memory 100: no program starts with that   try: --memory 100M"),
        (["--memory", "5G", "--at-limit", "dance"], "--at-limit takes kill, pause"),
        (["--memory", "5G", "--memory-by", "magic"], "--memory-by takes "),
        (["--pause-at-peak"], "the peak of this command is not known yet   try: rl --watch"),
    ],
)
def test_bad_words_get_one_line_and_exit_2(world, words, said):
    done = world.rl(*words, "--", "true")
    assert done.returncode == 2
    assert [said in line for line in done.stderr.splitlines() if line.startswith("rl: ")] == [True]


def test_a_limit_below_what_the_interpreter_needs_says_so(world, way):
    program(world)
    done = world.rl("--memory", "2M", "--", sys.executable, "train.py", env=way)
    told = r"Reached 2.0 MB (before a line of yours ran|at train.py:1): Python alone needs more"
    assert re.search(told, done.stderr), done.stderr


def test_more_than_the_machine_has_is_said_and_run_all_the_same(world, way):
    done = world.rl("--memory", "900T", "--", "echo", "ran", env=way)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "the machine has only" in done.stderr


def test_a_group_that_may_not_be_made_is_said_to_be_so(plain):
    done = plain.rl("--memory", "80M", "--memory-by", "cgroup", "--", "true")
    assert done.returncode == 2
    assert "rl: --memory-by cgroup: " in done.stderr, done.stderr


def test_allocations_fail_with_memory_error_where_that_was_asked_for(person):
    program(person.world)
    person.owns()
    words = ("--memory", "80M", "--memory-by", "data", "--", person.python, "train.py")
    done = person.rl(*words)
    assert "for each process by itself; more is a MemoryError (RLIMIT_DATA)" in done.stderr
    assert "loader.py:4 MemoryError" in done.stderr, done.stderr


# --- a pause at the last peak --------------------------------------------------------------------


def test_it_can_be_paused_near_the_peak_of_its_last_run(world):
    world.write("peak.py", """\
import time
kept = [b"x" * (1 << 20) for _ in range(60)]
def top():
    kept.append(b"x" * (60 << 20))
    time.sleep(0.3)
top()
""")  # fmt: skip
    command = ("--", sys.executable, "peak.py")
    assert world.rl("--watch", *command).returncode == 0
    process = world.start(["rl", "--pause-at-peak", *command])
    assert process.stderr is not None
    said = b""
    for line in process.stderr:
        said += line
        if found := re.search(rb"kill -CONT (\d+)", line):
            os.kill(int(found[1]), signal.SIGCONT)
            break
    _, rest = process.communicate(timeout=300)
    assert process.returncode == 0, said + rest
    assert b"pauses at 99% of its last peak" in said
    assert re.search(rb"at peak.py:[45] top <- peak.py:6; paused there", said), said


# --- nothing is left -----------------------------------------------------------------------------


@contextmanager
def waiting(world: World, verb: str = "run") -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run a program that waits, with a limit; give rl, and the name of its group."""
    may_group()
    world.write("wait.py", "import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    with world.start(["rl", verb, "--memory", "80M", "--", sys.executable, "wait.py"]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (group,) = [one for one in left_groups() if one.startswith(f"relaunch-{process.pid}-")]
        yield process, group


def test_a_watcher_that_is_gone_is_told_of(world):
    with waiting(world) as (process, _):
        below = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(
            min(map(int, below)), signal.SIGKILL
        )  # it is there before the guard and the program
        assert process.stderr is not None
        gone = b"rl: memory: our watcher is gone; nothing holds the limit any more\n"
        assert gone in iter(process.stderr.readline, b"")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_rl_is_ended(world, how):
    with waiting(world) as (process, group):
        members = groups.members(f"{group_parent()}/{group}")
        process.send_signal(how)
        process.communicate(timeout=300)
    folder = world.journal / "trials" / "1" / "memory"
    deadline = time.monotonic() + 300  # the guard ends the program, and waits for its end
    # Any other rl that starts meanwhile takes the group away as well, and leaves the folder to it.
    while (group in left_groups() or folder.exists()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert group not in left_groups()
    assert (len(members), [*filter(is_gone, members)]) == (1, members)
    assert not folder.exists()


@pytest.mark.parametrize("verb", ["run", "squeeze"])
def test_a_group_that_nobody_was_left_to_remove_is_removed_by_the_next_rl(world, verb):
    with waiting(world, verb) as (process, group):
        kill_at_once(process.pid)
        process.communicate(timeout=300)
    assert group in left_groups()
    world.rl("--", "true")
    assert group not in left_groups()


def test_a_group_of_a_killed_search_is_removed_by_the_next_rl(world):
    may_group()
    told = world.root / "told"
    os.mkfifo(told)
    line = f"echo ready > {told}; exec sleep 60"
    words = ["rl", "grow", "--memory", "40M..80M", "--step", "10M", "--", "sh", "-c", line]
    before = set(left_groups())
    with world.start(words) as process:
        assert told.read_text() == "ready\n"
        kill_at_once(process.pid)
        process.communicate(timeout=300)
    found = set(left_groups()) - before
    assert len(found) >= 1
    world.rl("--", "true")
    assert found.isdisjoint(left_groups())


def test_who_is_let_live_has_no_limit_any_more_and_no_group_is_left(world):
    may_group()
    world.write("lives.sh", "python3 -c 'import time; time.sleep(60)' >/dev/null 2>&1 &\necho $!\n")
    done = world.rl("--memory", "200M", "--let-live", "--", "sh", "lives.sh")
    pid = int(done.stdout)
    try:
        assert not is_gone(pid)
        assert "relaunch-" not in Path(f"/proc/{pid}/cgroup").read_text()
    finally:
        os.kill(pid, signal.SIGKILL)


def test_where_py_spy_fails_python_itself_tells_the_line(world, way):
    fake = world.bin / "py-spy"
    fake.write_text("#!/bin/sh\necho 'Permission Denied: Try running again' >&2\nexit 1\n")
    fake.chmod(0o755)
    program(world)
    python = world.bin / "python"  # without a py-spy beside it
    python.symlink_to(sys.executable)
    words = (str(python), "-m", "relaunch", "--memory", "80M", "--", sys.executable, "train.py")
    paths = os.pathsep.join(path for path in sys.path if path)
    with world.start([*words], env={**way, "PYTHONPATH": paths}) as process:
        _, said = process.communicate(timeout=300)
    assert REACHED.encode() in said, said
