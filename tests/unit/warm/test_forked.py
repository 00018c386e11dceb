"""What forked children see and do counts as the program's own, in real processes."""

from __future__ import annotations

import os
import signal
import textwrap
from pathlib import Path

import pytest
from tests.unit.warm.resuming import Program

CHILD = """
def child(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    os.waitpid(pid, 0)
"""


def run(program: Program, script: str) -> Program:
    return program.run(CHILD + textwrap.dedent(script))


def test_a_program_that_forked_is_resumed(program: Program) -> None:
    run(program, "child(lambda: os.write(1, b'child '))\nsnapshot()\nprint('after')")
    assert not program.refused
    assert program.out == "child after\n"
    assert program.changed() == ""
    assert program.resume() == "after\n"


def test_what_a_child_read_must_be_the_same(program: Program) -> None:
    (program.folder / "data").write_text("1")
    run(program, "child(lambda: open('data').read())\nsnapshot()")
    assert program.changed() == ""
    (program.folder / "data").write_text("2")
    assert program.changed() == "data changed"


def test_what_a_grandchild_read_must_be_the_same(program: Program) -> None:
    (program.folder / "data").write_text("1")
    run(program, "child(lambda: child(lambda: open('data').read()))\nsnapshot()")
    assert program.changed() == ""
    (program.folder / "data").write_text("2")
    assert program.changed() == "data changed"


def test_what_children_looked_for_must_be_as_it_was(program: Program) -> None:
    (program.folder / "there").mkdir()
    (program.folder / "link").symlink_to("there")
    run(
        program,
        """
        child(lambda: (os.path.exists("a"), os.access("b", os.R_OK), os.stat("there")))
        child(lambda: (os.listdir("there"), os.readlink("link")))
        snapshot()
        """,
    )
    assert program.changed() == ""
    for name in ("a", "b", "there/c"):
        (program.folder / name).write_text("")
        assert program.changed().startswith(name)
        (program.folder / name).unlink()
    assert program.changed() == ""
    (program.folder / "link").unlink()
    (program.folder / "link").symlink_to("elsewhere")
    assert program.changed() == "link changed"


def test_what_a_child_wrote_is_put_back_and_is_no_observation(program: Program) -> None:
    run(
        program,
        """
        def work():
            os.makedirs("out")
            with open("out/x", "w") as file:
                file.write("from the child")
        child(work)
        print(open("out/x").read(), os.listdir("out"))
        snapshot()
        print(open("out/x").read(), os.listdir("out"))
        open("out/x", "w").write("later")
        """,
    )
    assert (program.folder / "out/x").read_text() == "later"
    (program.folder / "out/x").unlink()
    (program.folder / "out").rmdir()
    assert program.changed() == ""
    assert program.resume() == program.out
    assert (program.folder / "out/x").read_text() == "later"


def test_a_file_that_a_child_read_and_the_program_rewrote(program: Program) -> None:
    (program.folder / "state").write_text("1")
    run(program, "child(lambda: open('state').read())\nopen('state', 'w').write('2')\nsnapshot()")
    assert program.changed() == "state changed"
    (program.folder / "state").write_text("1")
    assert program.changed() == ""
    program.resume()
    assert (program.folder / "state").read_text() == "2"


def test_a_file_that_the_program_read_and_a_child_rewrote(program: Program) -> None:
    (program.folder / "state").write_text("1")
    run(program, "open('state').read()\nchild(lambda: open('state', 'w').write('2'))\nsnapshot()")
    assert program.changed() == "state changed"
    (program.folder / "state").write_text("1")
    assert program.changed() == ""
    program.resume()
    assert (program.folder / "state").read_text() == "2"


def test_a_log_that_several_children_append_to_goes_on_where_it_is_now(program: Program) -> None:
    log = program.folder / "log"
    log.write_text("long ago\n")
    run(
        program,
        """
        for n in range(3):
            child(lambda: open("log", "a").write(f"child {n}\\n"))
        snapshot()
        """,
    )
    lines = "child 0\nchild 1\nchild 2\n"
    assert log.read_text() == "long ago\n" + lines
    assert program.changed() == ""
    program.resume()
    assert log.read_text() == "long ago\n" + lines + lines


def test_a_child_that_reads_what_its_sibling_appended_to_is_too_much(program: Program) -> None:
    run(
        program,
        """
        child(lambda: open("log", "a").write("1"))
        child(lambda: open("log").read())
        snapshot()
        """,
    )
    assert program.refused == "a file was appended to, then read: log"


def test_files_of_a_sibling_are_no_observations(program: Program) -> None:
    run(
        program,
        """
        os.makedirs("out")
        child(lambda: open("out/a", "w").write("1"))
        child(lambda: (open("out/a").read(), os.path.getsize("out/a"), os.listdir("out")))
        snapshot()
        """,
    )
    (program.folder / "out/a").unlink()
    (program.folder / "out").rmdir()
    assert program.changed() == ""


def test_a_sibling_s_file_is_left_out_of_a_folder_that_was_there(program: Program) -> None:
    (program.folder / "out").mkdir()
    (program.folder / "out/old").write_text("")
    run(
        program,
        """
        child(lambda: open("out/a", "w").write("1"))
        child(lambda: os.listdir("out"))
        snapshot()
        """,
    )
    (program.folder / "out/a").unlink()
    assert program.changed() == ""
    (program.folder / "out/new").write_text("")
    assert program.changed() == "out/new is new"


def test_sockets_with_names_in_folders_of_the_program_are_its_own(program: Program) -> None:
    run(
        program,
        """
        import socket, tempfile
        def work():
            with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as one:
                one.bind(folder + "/name")
                os.stat(folder + "/name")
                os.unlink(folder + "/name")
        child(work)
        work()
        snapshot()
        """,
    )
    assert not program.refused
    assert program.changed() == ""


def test_what_is_in_a_folder_that_a_child_made_is_no_observation(program: Program) -> None:
    run(
        program,
        """
        child(lambda: os.mkdir("out"))
        os.path.exists("out/a"), os.listdir("out"), os.access("out/b", os.R_OK)
        snapshot()
        """,
    )
    (program.folder / "out").rmdir()
    assert program.changed() == ""


def test_a_module_that_only_a_child_loaded_must_be_the_same(program: Program) -> None:
    (program.folder / "helper.py").write_text("x = 1\n")
    run(program, "sys.path.insert(0, os.getcwd())\nchild(lambda: __import__('helper'))\nsnapshot()")
    assert program.changed() == ""
    (program.folder / "helper.py").write_text("x = 2\n")
    assert program.changed() == "helper.py changed"


def test_a_module_that_a_child_looked_for_must_still_be_missing(program: Program) -> None:
    (program.folder / "package").mkdir()
    (program.folder / "package/__init__.py").write_text("")
    run(
        program,
        """
        sys.path.insert(0, os.getcwd())
        def work():
            try:
                import package.extra
            except ImportError:
                pass
        child(work)
        snapshot()
        """,
    )
    assert program.changed() == ""
    (program.folder / "package/extra.py").write_text("")
    assert program.changed() == "package/extra.py is new"


def test_lines_that_a_child_showed_are_seen(program: Program) -> None:
    (program.folder / "helper.py").write_text("def f():\n    1 / 0  # why\n")
    run(
        program,
        """
        sys.path.insert(0, "")
        import helper, traceback
        def work():
            try:
                helper.f()
            except ZeroDivisionError:
                traceback.print_exc()
        child(work)
        snapshot()
        """,
    )
    assert "1 / 0  # why" in program.err
    assert program.lines_seen
    assert program.changed() == ""
    (program.folder / "helper.py").write_text("def f():\n    1 / 0  # because\n")
    assert program.changed() == "helper.py:2 was shown and changed"


def test_whom_a_child_talked_to_is_known(program: Program) -> None:
    run(
        program,
        """
        import socket
        def work():
            with socket.socket() as one:
                one.connect_ex(("127.0.0.1", 1))
        child(work)
        snapshot()
        """,
    )
    assert program.manifest["network"] == ["127.0.0.1"]


REFUSED = {
    "a forked process is there: ": "os.fork() or os.read(0, 9) and os._exit(len(os.read(0, 1)))",
    "it ran another program: true": "child(lambda: os.execvp('true', ['true']))",
    "the standard input was read": "child(lambda: sys.stdin.readline())",
    "a folder was renamed: a": "os.mkdir('a')\nchild(lambda: os.rename('a', 'b'))",
    "it forked a process, whose doings are not known": """
        # A child that closes all it can, and goes on.
        child(lambda: (os.closerange(3, 1000), open("data")))
        """,
}


@pytest.mark.parametrize("why", REFUSED)
def test_no_snapshot_is_taken_when(program: Program, why: str) -> None:
    near, far = os.pipe()
    os.write(far, b"one line\n")
    (program.folder / "data").write_text("")
    program.run(CHILD + textwrap.dedent(REFUSED[why]) + "\nsnapshot()\n", stdin=near)
    os.close(far)
    os.close(near)
    assert program.refused.startswith(why)


def test_a_grandchild_that_lives_on_alone_is_known(program: Program, tmp_path: Path) -> None:
    run(
        program,
        """
        def orphan():
            if os.fork() == 0:
                os.setsid()
                os.closerange(3, 1000)
                import signal
                signal.pause()
        child(orphan)
        snapshot()
        """,
    )
    assert program.refused.startswith("a forked process is there: ")
    os.kill(int(program.refused.rpartition("(")[2].rstrip(")")), signal.SIGKILL)


def test_children_that_were_killed_have_told_what_they_did(program: Program) -> None:
    (program.folder / "data").write_text("1")
    program.run(
        """
        import signal
        near, far = os.pipe()
        pids = []
        for n in range(20):
            pids.append(os.fork())
            if pids[-1] == 0:
                open(f"out{n}", "w").write(open("data").read())
                os.write(far, b".")
                while True:
                    os.path.exists(f"absent{n}")
            if n % 2:
                os.kill(pids[-1], signal.SIGKILL)
        for n in range(10):
            os.read(near, 1)
        os.close(near)
        os.close(far)
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            os.waitpid(pid, 0)
        snapshot()
        """
    )
    assert not program.refused
    (program.folder / "data").write_text("2")
    assert program.changed() == "data changed"


def test_a_line_that_was_torn_makes_us_blind(program: Program) -> None:
    run(
        program,
        """
        def work():
            os.write(ledger.forked._fd, b'["contents", "a')
        child(work)
        snapshot()
        """,
    )
    assert program.refused == "it forked a process, whose doings are not known"


def test_a_program_that_closed_what_it_did_not_open_is_blind(program: Program) -> None:
    (program.folder / "data").write_text("x" * 2_000_000)
    run(
        program,
        """
        child(lambda: None)
        number = ledger.forked._fd
        os.close(number)
        os.dup2(os.open("data", os.O_RDWR), number)
        snapshot()
        """,
    )
    assert program.refused == "it forked a process, whose doings are not known"
    assert (program.folder / "data").stat().st_size == 2_000_000


def test_a_resumed_program_forks_anew(program: Program) -> None:
    (program.folder / "data").write_text("1")
    run(
        program,
        """
        child(lambda: open("data").read())
        snapshot()
        child(lambda: os.path.exists("other"))
        print(world.refuse(_children), "other" in str(ledger.kinds), "data" in str(ledger.contents))
        """,
    )
    assert program.resume() == program.out == " True True\n"
