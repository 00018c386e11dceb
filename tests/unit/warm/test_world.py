"""The world around a snapshot, with real processes: a program runs, forks, ends, and is resumed."""

from __future__ import annotations

import os
import subprocess
import textwrap
from pathlib import Path

import pytest
from tests.needs import python_with_torch
from tests.unit.warm.resuming import Program


def test_a_program_that_did_nothing_is_resumed(program: Program) -> None:
    program.run("print('before'); snapshot(); print('after', os.environ.get('RELAUNCH_TRIAL'))")
    assert not program.refused
    assert program.out == "before\nafter None\n"
    assert program.changed() == ""
    # What was not flushed is in the copied buffer, and written when that is, as in a cold run.
    assert program.resume() == "before\nafter 7\n"


def test_a_file_that_was_read_must_be_the_same(program: Program) -> None:
    data = program.folder / "data.csv"
    data.write_text("1,2")
    program.run("print(open('data.csv').read()); snapshot()")
    assert program.changed() == ""
    data.touch()
    assert program.changed() == ""
    data.write_text("1,3")
    assert program.changed() == "data.csv changed"
    data.write_text("1,2")
    assert program.changed() == ""
    data.unlink()
    assert program.changed() == "data.csv is gone"


def test_what_is_no_path_is_told_as_python_tells_it(program: Program) -> None:
    program.run(
        """
        def tell(look):
            try:
                look(["x"])
            except TypeError as error:
                print(error)
        tell(os.stat), tell(os.lstat), tell(os.path.exists)
        snapshot()
        """
    )
    told = (program.aside / "out").read_text().splitlines()
    assert [line.partition(":")[0] for line in told] == ["stat", "lstat", "stat"]
    assert all(line.endswith("not list") for line in told)


def test_a_file_that_was_missing_must_still_be_missing(program: Program) -> None:
    program.run(
        """
        import os.path, pathlib
        os.path.exists("a"), pathlib.Path("b").is_file(), os.access("c", os.R_OK)
        try:
            open("d")
        except FileNotFoundError:
            pass
        snapshot()
        """
    )
    for name in "abcd":
        assert program.changed() == ""
        (program.folder / name).write_text("")
        assert program.changed().startswith(name)
        (program.folder / name).unlink()
    assert program.changed() == ""


def test_what_only_had_to_exist_may_change(program: Program) -> None:
    (program.folder / "out.txt").write_text("1")
    program.run("import os.path; os.path.isfile('out.txt'); snapshot()")
    (program.folder / "out.txt").write_text("other")
    assert program.changed() == ""


def test_data_may_not_change_where_a_library_reads_unseen(program: Program) -> None:
    (program.folder / "rows.parquet").write_text("1")
    program.run(
        """
        import types
        sys.modules["polars"] = types.ModuleType("polars")
        open("own.txt", "w").write("x")
        snapshot()
        """
    )
    assert program.changed() == ""
    (program.folder / "rows.parquet").write_text("12")
    assert program.changed() == "rows.parquet changed, and polars may have read it"


def test_a_size_that_was_asked_must_be_the_same(program: Program) -> None:
    (program.folder / "out.txt").write_text("1")
    program.run("import os.path; os.path.exists('out.txt'); os.path.getsize('out.txt'); snapshot()")
    (program.folder / "out.txt").write_text("other")
    assert program.changed() == "out.txt changed"


def test_a_folder_that_was_listed_must_have_the_same_names(program: Program) -> None:
    folder = program.folder / "data"
    folder.mkdir()
    (folder / "a").write_text("")
    program.run("open('data/own', 'w').close(); os.listdir('data'); snapshot()")
    assert program.changed() == ""
    (folder / "own").unlink()
    assert program.changed() == ""
    (folder / "b").write_text("")
    assert program.changed() == "data/b is new"
    (folder / "b").unlink()
    (folder / "a").unlink()
    assert program.changed() == "data/a is gone"


def test_imported_sources_are_no_observations_but_read_ones_are(program: Program) -> None:
    (program.folder / "helper.py").write_text("x = 1\n")
    (program.folder / "text.py").write_text("x = 1\n")
    program.run("sys.path.insert(0, ''); import helper; open('text.py').read(); snapshot()")
    (program.folder / "helper.py").write_text("x = 2\n")
    assert program.changed() == ""
    (program.folder / "text.py").write_text("x = 2\n")
    assert program.changed() == "text.py changed"


def test_own_files_are_no_observations(program: Program) -> None:
    program.run(
        """
        with open("own.txt", "w") as file:
            file.write("mine")
        print(open("own.txt").read(), os.path.exists("own.txt"))
        snapshot()
        with open("own.txt", "w") as file:
            file.write("later")
        """
    )
    assert (program.folder / "own.txt").read_text() == "later"
    assert program.changed() == ""


def test_written_files_are_put_back(program: Program) -> None:
    (program.folder / "old").write_text("old")
    (program.folder / "moved").write_text("content")
    program.run(
        """
        import shutil
        os.makedirs("a/b")
        open("a/b/file", "w").write("one")
        os.chmod("a/b/file", 0o600)
        os.remove("old")
        os.rename("moved", "there")
        os.symlink("target", "link")
        first = not snapshot()
        if first:
            shutil.rmtree("a")
            os.remove("there")
            os.remove("link")
            open("old", "w").close()
        """
    )
    assert not (program.folder / "a").exists()
    program.resume()
    assert (program.folder / "a/b/file").read_text() == "one"
    assert (program.folder / "a/b/file").stat().st_mode & 0o777 == 0o600
    assert not (program.folder / "old").exists()
    assert (program.folder / "there").read_text() == "content"
    assert os.readlink(program.folder / "link") == "target"


def test_a_temporary_folder_lives_again(program: Program) -> None:
    program.run(
        """
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            open(folder + "/x", "w").write("kept")
            snapshot()
            print(open(folder + "/x").read(), os.listdir(folder))
        print(os.path.exists(folder))
        """
    )
    assert program.changed() == ""
    assert program.resume() == program.out == "kept ['x']\nFalse\n"


def test_a_log_that_is_appended_to_goes_on_where_it_is_now(program: Program) -> None:
    log = program.folder / "log"
    log.write_text("long ago\n")
    program.run(
        """
        import logging
        logging.basicConfig(filename="log", level="INFO", format="%(message)s")
        logging.info("before")
        snapshot()
        logging.info("after")
        """
    )
    assert log.read_text() == "long ago\nbefore\nafter\n"
    assert program.changed() == ""
    program.resume()
    assert log.read_text() == "long ago\nbefore\nafter\nbefore\nafter\n"


def test_counters_of_events_are_its_own_again(program: Program) -> None:
    program.run(
        """
        one, other = os.eventfd(3, os.EFD_SEMAPHORE), os.eventfd(5, os.EFD_NONBLOCK)
        twin = os.dup(one)
        if not snapshot():
            os.eventfd_read(one), os.eventfd_read(other)  # of the first run alone
            raise SystemExit
        print([os.eventfd_read(fd) for fd in (one, twin, twin, other)], os.get_blocking(other))
        """
    )
    assert program.resume() == "[1, 1, 1, 5] False\n"


def test_open_files_have_their_own_offset_again(program: Program) -> None:
    (program.folder / "in").write_text("abcdefghij")
    program.run(
        """
        source = open("in", "rb", buffering=0)
        other = os.dup(source.fileno())
        again = open("in", "rb", buffering=0)
        target = open("out", "w")
        print(source.read(3), again.read(3), file=target)
        snapshot()
        print(source.read(2), os.read(other, 2), again.read(1), file=target)
        target.close()
        """
    )
    expected = (program.folder / "out").read_text()
    assert expected.splitlines()[1] == "b'de' b'fg' b'd'"
    program.resume()
    assert (program.folder / "out").read_text() == expected


def test_seeded_numbers_go_on_and_others_are_fresh(program: Program) -> None:
    program.run(
        """
        import random
        random.seed(3)
        random.random()
        snapshot()
        print(random.random(), random.getrandbits(64))
        """
    )
    assert program.resume() == program.out


def test_numbers_that_were_not_seeded_are_fresh(program: Program) -> None:
    program.run("import random; random.random(); snapshot(); print(random.random())")
    assert program.resume() != program.out


def test_a_failed_look_has_the_traceback_that_python_gives(program: Program) -> None:
    program.run(
        """
        import traceback
        try:
            os.stat("missing")
        except OSError as error:
            frames = traceback.extract_tb(error.__traceback__)
            print(len(frames), frames[-1].name)
        try:
            os.lstat(3.5)
        except TypeError as error:
            print(len(traceback.extract_tb(error.__traceback__)), error)
        snapshot()
        """
    )
    plain = "import os\ntry:\n    os.lstat(3.5)\nexcept TypeError as e:\n    print(1, e)\n"
    said = subprocess.run([program.python, "-c", plain], capture_output=True, text=True, check=True)
    assert program.out == "1 <module>\n" + said.stdout


def test_a_shown_source_line_must_be_the_same(program: Program) -> None:
    (program.folder / "helper.py").write_text("def f():\n    1 / 0  # why\n")
    program.run(
        """
        sys.path.insert(0, "")
        import helper, traceback
        try:
            helper.f()
        except ZeroDivisionError:
            traceback.print_exc()
        snapshot()
        """
    )
    assert "1 / 0  # why" in program.err
    assert program.lines_seen
    assert program.changed() == ""
    (program.folder / "helper.py").write_text("def f():\n    1 / 0  # why\n\nx = 1\n")
    assert program.changed() == ""
    (program.folder / "helper.py").write_text("def f():\n    1 / 0  # because\n")
    assert program.changed() == "helper.py:2 was shown and changed"


def test_lines_that_were_not_shown_are_not_seen(program: Program) -> None:
    program.run("import logging; logging.warning('x'); snapshot()")
    assert not program.lines_seen
    assert not program.refused


REFUSED = {
    "a thread is running: Worker": """
        import threading
        end = threading.Event()
        threading.Thread(target=end.wait, name="Worker", daemon=True).start()
        """,
    "a child process is there: ": """
        from multiprocessing.util import spawnv_passfds
        spawnv_passfds(b"/bin/sh", [b"sh", b"-c", b"read x"], [0])
        """,
    "a socket is open": "import socket; a = socket.socket()",
    "a pipe is open": "a = os.pipe2(os.O_DIRECT)",
    "eventpoll is open": "import select; a = select.epoll()",
    "a timer is running": "import signal; signal.alarm(100)",
    "SIGCHLD has a handler": "import signal; signal.signal(signal.SIGCHLD, lambda *_: None)",
    "a trace function is set": "sys.settrace(lambda *_: None)",
    "a profile function is set": "sys.setprofile(lambda *_: None)",
    "a file is locked": "import fcntl; a = open('x', 'w'); fcntl.flock(a, fcntl.LOCK_EX)",
    "memory is shared": "import mmap; a = mmap.mmap(-1, 32 << 20)",
    "a file is mapped for writing": """
        import mmap
        a = open("x", "w+b")
        a.write(bytes(4096))
        a.flush()
        a = mmap.mmap(a.fileno(), 4096)
        """,
    "a log record is being written": """
        import logging
        a = logging.StreamHandler()
        a.acquire()
        """,
    "a thread is about to be started": "import threading; a = threading.Thread(target=print)",
    "a file was appended to, then read: x": "open('x', 'a').write('1'); open('x').read()",
    "the standard input was read": "sys.stdin.read()",
    "it ran another program: true": "import subprocess; subprocess.run(['true'])",
    "a large file was written: x": "open('x', 'wb').write(bytes(17 << 20))",
    "large files were written": "[open(f'x{n}', 'wb').write(bytes(15 << 20)) for n in range(5)]",
    "a database is open": """
        import sqlite3
        a = sqlite3.connect("x.db")
        a.execute("create table t(x)")
        """,
}


@pytest.mark.parametrize("why", REFUSED)
def test_no_snapshot_is_taken_while(program: Program, why: str) -> None:
    program.run(textwrap.dedent(REFUSED[why]) + "\nsnapshot()\n")
    assert program.refused.startswith(why)


def test_a_new_module_that_would_come_first_changes_the_world(program: Program) -> None:
    program.run(
        """
        sys.path.insert(0, os.getcwd())
        try:
            import local_settings
        except ImportError:
            pass
        import json.tool
        snapshot()
        """
    )
    (program.folder / "unrelated.py").write_text("")
    assert program.changed() == ""
    (program.folder / "local_settings.py").write_text("")
    assert program.changed() == "local_settings.py is new"


def test_a_folder_that_may_exist_may_come_or_stay(program: Program) -> None:
    program.run(
        """
        import pathlib
        os.makedirs("a/b", exist_ok=True)
        pathlib.Path("c").mkdir(exist_ok=True)
        pathlib.Path("d/e").mkdir(parents=True, exist_ok=True)
        snapshot()
        """
    )
    assert program.changed() == ""
    program.resume()
    assert program.changed() == ""


def test_a_folder_that_had_to_be_new_must_be_new_again(program: Program) -> None:
    program.run("os.mkdir('a'); snapshot()")
    assert program.changed() == "a is a folder now"


@pytest.mark.parametrize("measured", [True, False])
def test_a_file_appended_to_and_measured_must_be_as_long_as_it_was(
    program: Program, measured: bool
) -> None:
    log = program.folder / "log"
    log.write_text("ab")
    look = "os.stat('log').st_size" if measured else "0"
    program.run(f"file = open('log', 'a'); file.write('c'); file.close(); n = {look}; snapshot()")
    assert program.changed() == ("log changed" if measured else "")
    log.write_text("xy")
    assert program.changed() == ""


def test_a_file_read_and_then_rewritten_must_be_as_it_was_first(program: Program) -> None:
    state = program.folder / "state"
    state.write_text("1")
    program.run("n = open('state').read(); open('state', 'w').write(n + '1'); snapshot()")
    assert program.changed() == "state changed"
    state.write_text("1")
    assert program.changed() == ""
    program.resume()
    assert state.read_text() == "11"


def test_a_terminal_is_not_a_file(program: Program) -> None:
    program.run(
        """
        state = world.World(ledger)
        state.terminals[1] = True
        try:
            state.prepare([0, 1, 2])
            state.restore({})
        except world.CannotRestore as error:
            print(error)
        snapshot()
        """
    )
    assert program.out == "the standard output is no terminal now\n"


def test_many_snapshots_of_one_process_are_possible(program: Program) -> None:
    program.run(
        """
        total = 0
        with open("log", "w") as log:
            for n in range(5):
                print(n, file=log, flush=True)
                if snapshot():
                    break
        """
    )
    assert not program.refused


def test_unseen_by_who_looks_at_the_functions(program: Program) -> None:
    program.run(
        """
        import shutil, pickle, inspect
        again = pickle.loads(pickle.dumps(os.stat))
        print(os.stat.__name__, os.stat in os.supports_follow_symlinks, again is os.stat)
        print(shutil.rmtree.avoids_symlink_attacks)
        print(sys.stdin.name, sys.stdin.mode, sys.stdin is sys.__stdin__)
        print(inspect.signature(os.stat))
        snapshot()
        """
    )
    assert program.out == (
        "stat True True\nTrue\n<stdin> r True\n(path, *, dir_fd=None, follow_symlinks=True)\n"
    )


@pytest.fixture
def with_torch(tmp_path: Path):
    one = Program(tmp_path, python_with_torch())
    one.env["OMP_NUM_THREADS"] = "2"
    yield one
    one.close()


def test_a_number_of_threads_that_was_set_is_kept_and_the_end_is_no_hang(
    with_torch: Program,
) -> None:
    with_torch.run(
        """
        import torch
        torch.set_num_threads(3)
        torch.manual_seed(0)
        a = torch.randn(400, 400)
        def work():
            print((a @ a).sum().item(), a.exp().sum().item(), torch.get_num_threads())
        work()
        snapshot()
        work()
        torch.set_num_threads(2)
        work()
        """
    )
    assert not with_torch.refused
    assert with_torch.resume() == with_torch.out


def test_other_threads_of_torch_are_refused(with_torch: Program) -> None:
    with_torch.run(
        """
        import torch
        torch.set_num_threads(3)
        torch.set_num_interop_threads(2)
        text = "def f(x: Tensor):\\n  one = fork(torch.neg, x)\\n  return wait(one)\\n"
        text = text.replace("fork", "torch.jit.fork").replace("wait", "torch.jit.wait")
        torch.jit.CompilationUnit(text).f(torch.ones(2))
        snapshot()
        """
    )
    library = with_torch.refused.removeprefix("a native thread is running: ")
    assert library in ("libc10.so", "libtorch_cpu.so")  # whose function it waits in just then


def test_pools_of_threads_neither_hang_nor_change_results(with_torch: Program) -> None:
    with_torch.run(
        """
        import torch, numpy
        torch.manual_seed(0)
        numpy.random.seed(0)
        a = torch.randn(400, 400)
        x = numpy.random.rand(400, 400)
        layer = torch.nn.Conv2d(3, 8, 3)
        def work():
            layer(torch.randn(2, 3, 64, 64)).sum().backward()
            print((a @ a).sum().item(), (x @ x).sum(), torch.linalg.svdvals(a)[0].item())
            print(torch.rand(1).item(), numpy.random.rand(), torch.get_num_threads())
        work()
        snapshot()
        work()
        """
    )
    assert not with_torch.refused
    assert with_torch.changed() == ""
    assert with_torch.resume() == with_torch.out


def test_what_torch_saves_is_put_back(with_torch: Program) -> None:
    with_torch.run(
        """
        import torch
        torch.save(torch.ones(2), "a.pt")
        snapshot()
        print(torch.load("a.pt"))
        torch.save(torch.zeros(2), "a.pt")
        """
    )
    assert with_torch.changed() == ""
    assert with_torch.resume() == with_torch.out == "tensor([1., 1.])\n"


def test_numpy_without_a_seed_is_fresh(with_torch: Program) -> None:
    with_torch.run("import numpy; numpy.random.rand(); snapshot(); print(numpy.random.rand())")
    assert with_torch.resume() != with_torch.out


def test_files_without_a_name_and_redirected_streams_live_again(program: Program) -> None:
    program.run(
        """
        import tempfile
        a = tempfile.TemporaryFile()
        a.write(b"abc")
        a.flush()
        kept = os.dup(1)
        b = open("out.txt", "w+")
        os.dup2(b.fileno(), 1)
        snapshot()
        a.write(b"d")
        a.seek(0)
        os.write(1, b"into the file")
        os.write(kept, a.read() + open("out.txt", "rb").read())
        """
    )
    assert program.resume() == "abcdinto the file"
