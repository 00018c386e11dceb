"""Which call failed: real programs on a real small disk, by every eye that there is."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.blaming import PROGRAMS, SEMAPHORE, TORCH, lines_to_blame
from tests.conftest import World, mounted
from tests.depth import takes_turns
from tests.needs import needs, python_with_torch
from tests.people import UID

from relaunch.trial.blame.shim import kept_at

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="system calls are those of Linux")

Hit = dict[str, object]
DISK = 4 << 20


@pytest.fixture
def compiled(native_cache: Path) -> Path:
    """A cache that these tests share, so that the shim is compiled once."""
    needs("cc")
    return native_cache


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A real file system that a few MiB fill."""
    with mounted(tmp_path / "full", DISK >> 20) as disk:
        yield disk


def blamed(world: World, *words: str, cache: Path | None = None) -> tuple[int, list[Hit], str]:
    """Run `rl blame WORDS`: exit code, the hits that are not hidden, and what was said."""
    env = {"XDG_CACHE_HOME": str(cache)} if cache else {}
    done = world.rl("blame", *words, env=env)
    trials = sorted((world.journal / "trials").iterdir(), key=lambda one: one.stat().st_mtime)
    kept = [one / "blame.json" for one in trials if (one / "blame.json").exists()]
    assert kept, done.stderr
    found = json.loads(kept[-1].read_text())
    return done.returncode, [hit for hit in found["hits"] if "hidden" not in hit], done.stderr


def place(hit: Hit, script: str) -> int:
    """Return the line of the script that a hit was at; 0 if none."""
    frames = hit.get("frames", [])
    assert isinstance(frames, list)
    return next((line for file, line, _ in frames if os.path.basename(file) == script), 0)


def lines(hit: Hit) -> list[int]:
    """Return all lines of the program that a hit was at, innermost first."""
    frames = hit.get("frames", [])
    assert isinstance(frames, list)
    return [line for file, line, _ in frames if os.path.basename(file) == "program.py"]


def check(hits: list[Hit], text: str, where: str) -> None:
    """Hold that a hit names the place that is full and a line that is to be blamed."""
    wanted = [hit for hit in hits if hit["error"] in ("ENOSPC", "SIGBUS")]
    assert wanted, hits
    assert {place(hit, "program.py") for hit in wanted} & set(lines_to_blame(text)), wanted
    for hit in wanted:
        assert str(hit["path"]).startswith(where), hit
        assert hit["total_bytes"] == DISK
        assert 0 <= int(str(hit["free_bytes"])) < DISK // 4, hit  # what is left is not enough
        assert int(str(hit["free_inodes"])) > 0
        assert int(str(hit["pid"])) > 0


@takes_turns
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_shim_names_path_and_line(name: str, world: World, full: Path, compiled: Path):
    world.write("program.py", PROGRAMS[name])
    command = (sys.executable, "program.py", str(full))
    code, hits, _ = blamed(world, "--by", "shim", "--", *command, cache=compiled)
    check(hits, PROGRAMS[name], f"{full}/")
    assert (code == 0) == (name in ("swallowed exception", "threads"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
@pytest.mark.parametrize("theirs", ["relaunch/native", "relaunch"])
def test_a_library_that_another_user_put_into_a_shared_cache_is_not_loaded(
    world: World, tmp_path: Path, theirs: str
):
    needs("cc")
    cache, loaded = tmp_path / "cache", tmp_path / "loaded"
    folder = cache / "relaunch/native"
    folder.mkdir(parents=True, mode=0o700)
    (tmp_path / "trap.c").write_text(
        f"int creat(const char*, int);\n__attribute__((constructor)) void f()"
        f'{{ creat("{loaded}", 0600); }}\n'
    )
    trap = kept_at(str(folder))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", trap, tmp_path / "trap.c"], check=True)
    os.chown(cache / theirs, UID, UID)
    code, hits, said = blamed(world, "--", "cat", "/nowhere/x", cache=cache)
    assert (code, [hit["path"] for hit in hits]) == (1, ["/nowhere/x"])
    assert "no shim: it cannot be kept: " in said
    assert not loaded.exists()


@pytest.mark.parametrize(
    "name", ["memmap", "swallowed exception", "TemporaryFile", "subprocess", "threads", "worker"]
)
def test_the_tracer_names_path_and_line(name: str, world: World, full: Path):
    world.write("program.py", PROGRAMS[name])
    _, hits, _ = blamed(world, "--by", "tracer", "--", sys.executable, "program.py", str(full))
    check(hits, PROGRAMS[name], f"{full}/")


def test_writers_that_fail_at_once_and_end_are_all_heard(world: World, full: Path, compiled: Path):
    """While it is asked where the Python is that started one, the next may come to its end."""
    text = f"""\
import subprocess
line = "seq 60 | xargs -P 12 -I @ dd if=/dev/zero of={full}/@ bs=1M count=1"
subprocess.run(["sh", "-c", line])
"""
    world.write("program.py", text)
    words = ("--by", "shim", "--", sys.executable, "program.py")
    _, hits, said = blamed(world, *words, cache=compiled)
    paths = {str(hit["path"]) for hit in hits if hit["error"] == "ENOSPC"}
    assert len(paths) >= 60 - (DISK >> 20) - 1, said


@pytest.mark.parametrize("by", ["shim", "tracer"])
@pytest.mark.parametrize(
    "argv",
    [["cat", "gone/x"], ["sh", "-c", "echo >gone/x"], ["sh", "-c", "cat gone/x | wc -l; exit 1"]],
    ids=" ".join,
)
def test_a_program_that_ends_for_what_is_not_there_names_who_started_it(
    by: str, argv: list[str], world: World, compiled: Path
):
    world.write("program.py", f"""\
import subprocess

def convert():
    subprocess.run({argv})

convert()
""")  # fmt: skip
    words = ("--by", by, "--", sys.executable, "program.py")
    _, hits, said = blamed(world, *words, cache=compiled)
    (hit,) = (hit for hit in hits if str(hit["path"]).endswith("gone/x"))
    assert lines(hit) == [4, 6], said


@pytest.mark.parametrize("by", ["shim", "tracer"])
def test_a_semaphore_for_which_shared_memory_is_full(by: str, world: World, compiled: Path):
    world.write("program.py", SEMAPHORE)
    words = ("--by", by, "--disk", "/dev/shm=64K", "--", sys.executable, "program.py")
    _, hits, _ = blamed(world, *words, cache=compiled)
    mine = [hit for hit in hits if place(hit, "program.py") == lines_to_blame(SEMAPHORE)[0]]
    assert mine
    assert str(mine[0]["path"]).startswith("/dev/shm/")


@takes_turns
@pytest.mark.parametrize("by", ["shim", "tracer"])
def test_torch_save_on_a_full_disk(by: str, world: World, full: Path, compiled: Path):
    world.write("program.py", TORCH)
    command = (python_with_torch(), "program.py", str(full))
    _, hits, _ = blamed(world, "--by", by, "--", *command, cache=compiled)
    check(hits, TORCH, f"{full}/")


# --- the other errors -----------------------------------------------------------------------------


def one(hits: list[Hit], error: str) -> Hit:
    """Return the first hit of an error."""
    found = [hit for hit in hits if hit["error"] == error]
    assert found, hits
    return found[0]


@pytest.mark.parametrize("by", ["shim", "tracer", "strace"])
def test_missing_forbidden_and_refused_are_named_and_imports_are_hidden(
    by: str, world: World, compiled: Path
):
    if by == "strace":
        needs("strace")
    with socket.socket() as held, socket.socket() as closed:
        held.bind(("127.0.0.1", 0))
        held.listen()
        closed.bind(("127.0.0.1", 0))
        port, refused = held.getsockname()[1], closed.getsockname()[1]
        world.write(
            "program.py",
            f"""
import errno, os, shutil, socket, xml.dom.minidom
def attempt(what, *words):
    try: what(*words)
    except OSError: pass
attempt(open, "/nowhere/at/all")
shutil.copy("/bin/true", "busy")
if (child := os.fork()) == 0: os.execv("/bin/sleep", ["sleep", "60"])
attempt(socket.socket().bind, ("127.0.0.1", {port}))
attempt(socket.socket().connect, ("127.0.0.1", {refused}))
os.path.exists("/not/asked/for")
os.kill(child, 9)
""",
        )
        words = ("--by", by, "--", sys.executable, "program.py")
        code, hits, said = blamed(world, *words, cache=compiled)
    assert code == 0
    assert [hit["path"] for hit in hits if hit["error"] == "ENOENT"] == ["/nowhere/at/all"], hits
    assert one(hits, "ECONNREFUSED")["path"] == f"127.0.0.1:{refused}"
    in_use = one(hits, "EADDRINUSE")
    assert in_use["path"] == f"127.0.0.1:{port}"
    assert f"process {os.getpid()} has it" in str(in_use["note"])
    assert said.index("EADDRINUSE") > said.index("ECONNREFUSED")  # the last first
    if by != "strace":
        assert place(one(hits, "ENOENT"), "program.py") == 4


@pytest.mark.parametrize("by", ["shim", "tracer"])
def test_too_many_open_files_says_which(by: str, world: World, compiled: Path):
    world.write(
        "program.py",
        """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
def leak():
    kept = []
    while True:
        kept.append(open("data.txt"))  # here
leak()
""",
    )
    world.write("data.txt", "x")
    words = ("--by", by, "--", sys.executable, "program.py")
    code, hits, _ = blamed(world, *words, cache=compiled)
    hit = one(hits, "EMFILE")
    assert (code, hit["path"]) == (1, str(world.project / "data.txt"))
    assert place(hit, "program.py") == 7
    assert "of 64" in str(hit["note"])
    assert f"x {world.project}/data.txt" in str(hit["note"])


def test_no_memory_is_named_with_its_size_by_the_tracer(world: World):
    world.write(
        "program.py",
        """
import resource, mmap
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
def take():
    return mmap.mmap(-1, 8 << 30)
take()
""",
    )
    _, hits, _ = blamed(world, "--by", "tracer", "--", sys.executable, "program.py")
    hit = one(hits, "ENOMEM")
    assert (hit["call"], hit["asked"], place(hit, "program.py")) == ("mmap", 8 << 30, 5)


def test_no_memory_is_named_with_its_size_unasked(world: World, compiled: Path):
    world.write(
        "program.py",
        "import resource, mmap\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "mmap.mmap(-1, 8 << 30)\n",
    )
    code, hits, said = blamed(world, "--", sys.executable, "program.py", cache=compiled)
    hit = one(hits, "ENOMEM")
    assert "blame by shim" in said
    assert (code, hit["call"], hit["asked"], place(hit, "program.py")) == (1, "mmap", 8 << 30, 3)


@pytest.mark.parametrize("by", ["shim", "tracer"])
def test_which_file_and_process_it_was_is_told(by: str, world: World, full: Path, compiled: Path):
    world.write(
        "program.py",
        f"""
import os
file = os.open({str(full / "data")!r}, os.O_CREAT | os.O_WRONLY)
os.dup2(file, 77)
if os.fork():
    os.wait()
else:
    open("who", "w").write(str(os.getpid()))
    try:
        while True: os.write(77, bytes(1 << 20))
    except OSError: os._exit(0)
""",
    )
    _, hits, _ = blamed(world, "--by", by, "--", sys.executable, "program.py", cache=compiled)
    hit = one(hits, "ENOSPC")
    child = int((world.project / "who").read_text())
    assert (hit["pid"], hit["fd"], hit["call"], hit["asked"]) == (child, 77, "write", 1 << 20)
    assert (hit["free_bytes"], hit["total_bytes"]) == (0, DISK)


@pytest.mark.parametrize("by", ["shim", "tracer"])
def test_a_disk_without_inodes_is_told_from_one_without_space(
    by: str, world: World, full: Path, compiled: Path
):
    subprocess.run(["mount", "-o", "remount,nr_inodes=8", full], check=True)
    world.write(
        "program.py",
        f"for number in range(9):\n    open({str(full)!r} + f'/{{number}}', 'w').close()\n",
    )
    words = ("--by", by, "--", sys.executable, "program.py")
    code, hits, said = blamed(world, *words, cache=compiled)
    hit = one(hits, "ENOSPC")
    assert (code, hit["free_inodes"], place(hit, "program.py")) == (1, 0, 2)
    assert int(str(hit["free_bytes"])) > DISK // 2
    assert re.search(r"\b0 inodes|no inode", said), said


@pytest.mark.parametrize("by", ["shim", "tracer"])
def test_what_cannot_be_written_for_good_is_named(
    by: str, world: World, full: Path, compiled: Path
):
    (full / "config").write_text("x")
    subprocess.run(["mount", "-o", "remount,ro", full], check=True)
    world.write(
        "program.py",
        f"""
import os, shutil
def attempt(what, *words):
    try: what(*words)
    except OSError: pass
attempt(open, {str(full / "config")!r}, "w")
shutil.copy(shutil.which("true"), "busy")
with open("busy", "r+b"):
    if os.fork() == 0:
        attempt(os.execv, "busy", ["busy"])
        os._exit(0)
    os.wait()
""",
    )
    words = ("--by", by, "--", sys.executable, "program.py")
    code, hits, _ = blamed(world, *words, cache=compiled)
    read_only, busy = one(hits, "EROFS"), one(hits, "ETXTBSY")
    assert (code, read_only["path"], lines(read_only)) == (0, f"{full}/config", [4, 6])
    assert str(busy["call"]).startswith("execv")
    assert busy["path"] == f"{world.project}/busy"
    assert lines(busy) == [4, 10]


QUOTA = """
import ctypes, os, struct
def refuse(call, file, error):  # no disk here has quotas: the kernel is told to answer so
    steps = [(0x20, 0, 0, 0), (0x15, 0, 3, call), (0x20, 0, 0, 16), (0x15, 0, 1, file),
             (0x06, 0, 0, 0x00050000 | error), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in steps))
    filter = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 6, ctypes.addressof(code)))
    prctl = ctypes.CDLL(None).prctl
    assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, filter) == 0
file = os.open("mine", os.O_CREAT | os.O_WRONLY)
os.dup2(file, 77)
refuse({"x86_64": 1}.get(os.uname().machine, 64), 77, 122)
os.write(77, bytes(4321))
"""


@pytest.mark.parametrize(
    "way",
    [
        ("--by", "shim"),
        # So it stops at every call: what the filter of a program answers, no other one sees.
        ("--by", "tracer", "--let-live"),
    ],
    ids=lambda way: way[1],
)
def test_a_quota_that_is_used_up_is_named(way: tuple[str, ...], world: World, compiled: Path):
    world.write("program.py", QUOTA)
    words = (*way, "--", sys.executable, "program.py")
    code, hits, said = blamed(world, *words, cache=compiled)
    hit = one(hits, "EDQUOT")
    assert (code, hit["path"], hit["asked"]) == (1, f"{world.project}/mine", 4321)
    assert (hit["fd"], place(hit, "program.py")) == (77, 13)
    assert f"EDQUOT {world.project}/mine" in said


@pytest.mark.parametrize("by", ["shim", "tracer"])
def test_shared_memory_that_is_full_when_it_is_touched_is_named(
    by: str, world: World, compiled: Path
):
    world.write(
        "program.py",
        """
from multiprocessing.shared_memory import SharedMemory
block = SharedMemory(create=True, size=8 << 20, name="relaunch-bus")
def fill():
    block.buf[:] = bytes(8 << 20)
fill()
""",
    )
    words = ("--by", by, "--disk", "/dev/shm=1M", "--", sys.executable, "program.py")
    _, hits, said = blamed(world, *words, cache=compiled)
    hit = one(hits, "SIGBUS")
    assert (hit["path"], place(hit, "program.py")) == ("/dev/shm/relaunch-bus", 5), said
    assert (hit["free_bytes"], hit["total_bytes"]) == (0, 1 << 20)
    assert not os.path.exists("/dev/shm/relaunch-bus")


def test_strace_does_not_tell_the_room_of_the_real_disk_for_a_small_one(world: World):
    world.write("program.py", 'open("/dev/shm/relaunch-large", "wb").write(bytes(2 << 20))\n')
    words = ("--by", "strace", "--disk", "/dev/shm=1M", "--", sys.executable, "program.py")
    _, hits, said = blamed(world, *words)
    assert "ENOSPC /dev/shm/relaunch-large   no space left\n" in said
    hit = one(hits, "ENOSPC")
    assert (hit["path"], place(hit, "program.py")) == ("/dev/shm/relaunch-large", 1)
    assert "free_bytes" not in hit


def test_who_is_refused_is_told_by_whose_folder(world: World, compiled: Path, tmp_path: Path):
    if os.geteuid():
        pytest.skip("only root can make what others may not read, and become another")
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    for folder in (tmp_path, *list(tmp_path.parents)[:-2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    world.write(
        "program.py",
        f"""
import os
os.setuid(65534)
try: open({str(private / "x")!r})
except OSError: pass
""",
    )
    _, hits, _ = blamed(world, "--by", "shim", "--", sys.executable, "program.py", cache=compiled)
    hit = one(hits, "EACCES")
    assert (hit["path"], place(hit, "program.py")) == (str(private / "x"), 4)
    assert f"root {private}" in str(hit["note"])


# --- what is offered, and done --------------------------------------------------------------------


def test_a_failure_that_names_no_file_offers_the_blame(world: World):
    done = world.rl("--", sys.executable, "-c", "raise OSError(28, 'No space left on device')")
    assert "rl blame" in done.stderr
    done = world.rl("--", sys.executable, "-c", "open('/nowhere')")
    assert "rl blame" not in done.stderr  # it has said which file
    done = world.rl("--", sys.executable, "-c", "1 / 0")
    assert "rl blame" not in done.stderr


def test_blame_is_asked_for_once_and_not_repeated_with_the_command(world: World, compiled: Path):
    world.write("miss.py", "open('/nowhere')")
    code, hits, said = blamed(world, "--", sys.executable, "miss.py", cache=compiled)
    assert (code, [hit["path"] for hit in hits]) == (1, ["/nowhere"])
    assert "ENOENT" in said
    done = world.rl()
    assert (done.returncode, "miss.py" in done.stderr, "ENOENT" in done.stderr) == (1, True, False)


def test_what_the_shim_could_not_see_is_run_again_with_the_tracer(
    world: World, full: Path, compiled: Path
):
    world.write(
        "direct.c",
        """
#include <errno.h>
#include <stdio.h>
#include <fcntl.h>
#include <string.h>
int main(int argc, char **argv) {
  static char block[1 << 20];
  int fd; long done = 0;
  __asm__ volatile("syscall" : "=a"(fd) : "a"(2), "D"(argv[1]), "S"(O_CREAT | O_WRONLY), "d"(0600)
                   : "rcx", "r11", "memory");
  for (int n = 0; n < 9 && done >= 0; n++)
    __asm__ volatile("syscall" : "=a"(done) : "a"(1), "D"((long)fd), "S"(block), "d"(sizeof block)
                     : "rcx", "r11", "memory");
  if (done < 0) fprintf(stderr, "%s\\n", strerror(-done));
  return done < 0;
}
""",
    ) if os.uname().machine == "x86_64" else pytest.skip("written for x86_64")
    subprocess.run(["cc", "-o", "direct", "direct.c"], cwd=world.project, check=True)
    done = world.rl("run", "--blame", "--", "./direct", f"{full}/out",
                    env={"XDG_CACHE_HOME": str(compiled)})  # fmt: skip
    assert done.returncode == 1
    assert "ENOSPC was not seen by shim; once more, by tracer" in done.stderr
    told = done.stderr.rpartition("once more")[2]
    assert f"ENOSPC {full}/out" in told
    shown = world.rl("show")
    assert f"ENOSPC {full}/out" in shown.stdout


@pytest.mark.parametrize(
    ("without", "taken"),
    [("shim", "tracer"), ("shim,tracer", "strace"), ("shim,tracer,strace", "process")],
)
def test_without_the_better_rungs_the_next_one_serves(
    without: str, taken: str, world: World, full: Path
):
    needs("strace")
    world.write("program.py", PROGRAMS["pickle"])
    done = world.rl("blame", "--", sys.executable, "program.py", str(full),
                    env={"RELAUNCH_WITHOUT": without})  # fmt: skip
    assert f"blame by {taken}: " in done.stderr
    assert f"ENOSPC {full}/out" in done.stderr
    assert "at program.py:5 dump" in done.stderr
    assert done.returncode == 1


def test_a_module_is_not_taken_for_the_file_that_could_not_be_written(world: World, full: Path):
    world.write("program.py", """\
import os, sys
out = os.open(sys.argv[1] + "/out", os.O_CREAT | os.O_WRONLY)
while True:
    os.write(out, bytes(1 << 20))
""")  # fmt: skip
    words = ("blame", "--by", "process", "--", sys.executable, "program.py", str(full))
    done = world.rl(*words)
    assert "ENOSPC" in done.stderr
    assert "posix" not in done.stderr


def test_without_a_compiler_the_tracer_serves(world: World, full: Path):
    for name in ("cc", "gcc", "clang"):
        (world.bin / name).write_text("#!/bin/sh\nexit 1\n")
        (world.bin / name).chmod(0o755)
    world.write("program.py", PROGRAMS["pickle"])
    done = world.rl("blame", "--", sys.executable, "program.py", str(full))
    assert "blame by tracer: " in done.stderr
    assert "no shim: " in done.stderr
    assert "does not build it" in done.stderr
    assert f"ENOSPC {full}/out" in done.stderr


def test_json_tells_the_same(world: World, compiled: Path):
    done = world.rl("blame", "--json", "--", sys.executable, "-c", "open('/nowhere/x')",
                    env={"XDG_CACHE_HOME": str(compiled)})  # fmt: skip
    events = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    (event,) = [event for event in events if event["event"] == "blamed"]
    assert "/nowhere/x" in [hit["path"] for hit in event["blame"]["hits"]]


# --- a process that runs --------------------------------------------------------------------------

LOOPING = """
import os, sys, time, threading
def attempt(name):
    try: open("/nowhere/" + name)
    except OSError: pass
def worker():
    while True:
        attempt("thread"); time.sleep(0.01)
threading.Thread(target=worker, daemon=True).start()
count = 0
while not os.path.exists("stop"):
    attempt("main"); count += 1; time.sleep(0.01)
print("unharmed", count > 0, flush=True)
"""


def test_a_running_process_is_watched_and_goes_on_unharmed(world: World):
    world.write("program.py", LOOPING)
    program = world.start([sys.executable, "program.py"])
    watcher = world.start(["rl", "blame", "--attach", str(program.pid)])
    assert watcher.stdout is not None
    seen = b""
    while not (b"/nowhere/main" in seen and b"/nowhere/thread" in seen and b"program.py:" in seen):
        seen += os.read(watcher.stdout.fileno(), 65536)
    watcher.send_signal(signal.SIGINT)
    _, said = watcher.communicate(timeout=300)
    assert (watcher.returncode, b"let go of" in said) == (0, True), said
    status = Path(f"/proc/{program.pid}/status").read_text()
    assert "TracerPid:\t0" in status
    assert "State:\tt" not in status
    (world.project / "stop").touch()
    assert program.communicate(timeout=300)[0] == b"unharmed True\n"
    assert program.returncode == 0


FAMILY = """
import os, time
def attempt(name):
    try: open("/nowhere/" + name)
    except OSError: pass
def child(name):
    while not os.path.exists("stop"):
        attempt(name); time.sleep(0.01)
    os._exit(0)
if os.fork() == 0:
    if os.fork() == 0:
        print("ready", flush=True)
        child("grandchild")
    child("child")
while not (os.path.exists("more") or os.path.exists("stop")):
    time.sleep(0.01)
if os.fork() == 0:
    child("later")
while not os.path.exists("stop"):
    time.sleep(0.01)
"""


def test_all_below_a_running_process_are_watched_and_those_born_later(world: World):
    world.write("program.py", FAMILY)
    program = world.start([sys.executable, "program.py"])
    assert program.stdout is not None
    assert program.stdout.readline() == b"ready\n"
    watcher = world.start(["rl", "blame", "--attach", str(program.pid)])
    try:
        read_until(watcher, b"/nowhere/child", b"/nowhere/grandchild")
        (world.project / "more").touch()
        read_until(watcher, b"/nowhere/later")
    finally:
        watcher.send_signal(signal.SIGINT)
        watcher.communicate(timeout=300)
        (world.project / "stop").touch()
    assert program.communicate(timeout=300) == (b"", b"")  # until the last of them has ended
    assert program.returncode == 0


def read_until(process: subprocess.Popen[bytes], *words: bytes) -> bytes:
    """Read what a process says until all words came; fails when it ends or says no more."""
    assert process.stdout is not None
    seen = b""
    while not all(word in seen for word in words):
        assert select.select([process.stdout], [], [], 300)[0], f"only this came: {seen!r}"
        block = os.read(process.stdout.fileno(), 65536)
        assert block, f"it ended after: {seen!r}"
        seen += block
    return seen


def test_a_killed_watcher_harms_nobody(world: World):
    world.write("program.py", LOOPING)
    program = world.start([sys.executable, "program.py"])
    watcher = world.start(["rl", "blame", "--attach", str(program.pid)])
    assert watcher.stdout is not None
    os.read(watcher.stdout.fileno(), 65536)
    watcher.kill()
    watcher.communicate(timeout=300)
    (world.project / "stop").touch()
    assert program.communicate(timeout=300)[0] == b"unharmed True\n"


def test_what_a_program_waits_on_is_told_by_its_time(world: World):
    world.write(
        "program.py",
        """
import os, socket, time
one, two = socket.socketpair()
def wait():
    two.settimeout(None)
    return two.recv(1)
os.mkfifo("pipe")
if os.fork() == 0:
    time.sleep(0.3); one.send(b"x"); time.sleep(0.2); open("pipe", "w"); os._exit(0)
wait()
open("pipe")
""",
    )
    words = ("--calls", "recvfrom,openat", "--slow", "100ms", "--", sys.executable, "program.py")
    done = world.rl("blame", *words)
    assert done.returncode == 0
    told = [line for line in done.stderr.splitlines() if line.startswith("rl: ") and " s  " in line]
    assert ["recvfrom socket:" in told[0], f"openat {world.project}/pipe" in told[1]] == [
        True,
        True,
    ]
    assert "at program.py:6 wait <- program.py:10" in done.stderr
    assert "at program.py:11" in done.stderr


def test_what_a_running_process_waits_on_since_before_is_told(world: World):
    world.write(
        "program.py",
        """
import socket
one, two = socket.socketpair()
def wait():
    two.settimeout(60)
    print("ready", flush=True)
    return two.recv(1)
wait()
""",
    )
    program = world.start([sys.executable, "program.py"])
    assert program.stdout is not None
    program.stdout.readline()
    while Path(f"/proc/{program.pid}/syscall").read_text().startswith("running"):
        pass
    words = ("--attach", str(program.pid), "--slow", "50ms", "--timeout", "1")
    done = world.rl("blame", *words)
    assert "poll" in done.stdout
    assert "(still)" in done.stdout
    assert "program.py:7 wait" in done.stdout
    assert program.poll() is None
    program.kill()
    program.communicate(timeout=300)


# --- nothing left ---------------------------------------------------------------------------------

ENDLESS = """
import os, subprocess, time
child = subprocess.Popen(["sleep", "1000"])
try: open("/nowhere/x")
except OSError: pass
print(os.getpid(), child.pid, flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("by", ["shim", "tracer", "strace"])
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_however_rl_is_ended(
    end: signal.Signals, by: str, world: World, compiled: Path
):
    if by == "strace":
        needs("strace")
    world.write("program.py", ENDLESS)
    env = {"XDG_CACHE_HOME": str(compiled)}
    rl = world.start(["rl", "blame", "--by", by, "--", sys.executable, "program.py"], env=env)
    assert rl.stdout is not None
    pids = [int(word) for word in rl.stdout.readline().split()]
    assert len(pids) == 2
    below = [int(pid) for pid in Path(f"/proc/{rl.pid}/task/{rl.pid}/children").read_text().split()]
    if end == signal.SIGINT:
        os.killpg(rl.pid, end)
    else:
        rl.kill()
    _, said = rl.communicate(timeout=300)
    for pid in (*pids, *below):
        wait_until_gone(pid)
    if end == signal.SIGINT:
        assert b"ENOENT /nowhere/x" in said


def wait_until_gone(pid: int) -> None:
    """Wait until a process that is no child of ours has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], 300)[0], f"{pid} is left"
    finally:
        os.close(handle)


@pytest.mark.parametrize("by", ["shim", "tracer"])
def test_what_may_live_on_is_not_hurt_by_having_been_watched(
    by: str, world: World, compiled: Path, tmp_path: Path
):
    world.write(
        "program.py",
        f"""
import os
if os.fork() == 0:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2): os.dup2(null, number)
    os.mkfifo("go"); open("go").read()          # until the test says so
    try: open("/nowhere/late")
    except FileNotFoundError: open({str(tmp_path / "well")!r}, "w").write("well")
    os.mkfifo("done"); open("done", "w")
    os._exit(0)
while not os.path.exists("go"): pass
""",
    )
    env = {"XDG_CACHE_HOME": str(compiled)}
    command = ("--let-live", "--by", by, "--", sys.executable, "program.py")
    assert world.rl("blame", *command, env=env).returncode == 0
    (world.project / "go").write_text("")
    while not (world.project / "done").exists():
        pass
    (world.project / "done").read_text()
    assert (tmp_path / "well").read_text() == "well"


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--attach", "4194304999"], "there is no process 4194304999"),
        (["--attach", "python"], "--attach takes the number of a process, not `python`"),
        (["--attach", "1", "--", "true"], "--attach takes a process that runs, not a command"),
        (["--calls", "opennat", "--", "true"], "no system call `opennat`; did you mean openat?"),
        (["--calls", ",", "--", "true"], "--calls names no call"),
        (["--slow", "soon", "--", "true"], "--slow takes a time such as 100ms or 2s, not `soon`"),
        (["--by", "magic", "--", "true"], "--by takes shim, tracer, strace, process; not `magic`"),
        (["--by", "shim", "--calls", "read", "--", "true"], "is seen by tracer only"),
    ],
)
def test_wrong_words_get_one_line(words: list[str], said: str, world: World):
    done = world.rl("blame", *words)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert said in done.stderr


def test_a_process_that_is_traced_already_is_named(world: World):
    needs("strace")
    sleeper = world.start(["sleep", "60"])
    tracer = world.start(["strace", "-p", str(sleeper.pid)])
    assert tracer.stderr is not None
    os.read(tracer.stderr.fileno(), 100)  # attached
    done = world.rl("blame", "--attach", str(sleeper.pid))
    assert (done.returncode, f"is traced already, by process {tracer.pid}" in done.stderr) == (
        2,
        True,
    )
    for one in (sleeper, tracer):
        one.kill()
        one.communicate(timeout=300)
