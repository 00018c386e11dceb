"""The host keeps snapshots that are true, gives up those that are not, and never hangs or leaks."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.supervising import wait_until
from tests.unit.warm.made_up import SCRIPT

from relaunch.inside.warm import begin, compare, ladder, machine, where, wire, world

PACKAGE = Path(begin.__file__).parent
PYTHON = os.environ.get("RELAUNCH_WARM_PYTHON", sys.executable)
PATIENCE_S = 300.0

ACTOR = '''
"""Plays a program: has a host, runs, and leaves snapshots that go on when they are told to."""
import json, os, select, signal, sys, time
from types import ModuleType

package = sys.modules["_relaunch_warm"] = ModuleType("_relaunch_warm")
package.__path__ = [sys.argv[1]]
from _relaunch_warm import begin, flags, wire

spec = json.loads(sys.argv[2])
links = []


def running(elapsed, bytes_of):
    link = wire.connect(spec["run"], spec["key"])
    wire.send(link, {"op": "running", "pid": os.getpid(), "elapsed": elapsed}, [bytes_of.fd])
    links.append(link)


def snapshot(order):
    near, far = os.pipe()
    pid = os.fork()
    if pid:
        os.close(far)
        answer = os.read(near, 100).decode()
        os.close(near)
        return {"pid": pid, "answer": answer}
    os.close(near)
    ballast = bytearray(os.urandom(4096)) * (order.get("ballast", 0) // 4096)
    link = wire.connect(spec["run"], spec["key"])
    wire.send(link, {**order["hello"], "of": os.getppid()})
    answer, _ = wire.receive(link)
    needed = []
    if answer.get("need"):
        needed = answer["need"]
        wire.send(link, {"op": "sources", "sources": {d: order["sources"][d] for d in needed}})
        answer, _ = wire.receive(link)
    os.write(far, b"ok %d" % len(needed) if answer.get("ok") else b"refused")
    os.close(far)
    if not answer.get("ok"):
        os._exit(0)
    wait(link, order, ballast)


def wait(link, order, ballast):
    children = {}
    while True:
        for one in select.select([link, *children], [], [])[0]:
            if one is not link:
                pid, run = children.pop(one)
                wire.send(link, {"ended": os.waitpid(pid, 0)[1], "run": run})
                continue
            message, fds = wire.receive(link)
            if message is None:
                os._exit(0)
            if message["op"] == "ready":  # it may fork ahead of time, and need not
                continue
            way = order.get("way", "exit")
            if way == "refuse":
                wire.send(link, {"failed": "cannot", "run": message["run"]})
                [os.close(fd) for fd in fds]
                continue
            if way == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if way == "mute":
                continue
            pid = os.fork()
            if pid == 0:
                link.close()
                go_on(way, message, fds)
            [os.close(fd) for fd in fds]
            children[os.pidfd_open(pid)] = pid, message["run"]
            wire.send(link, {"started": pid, "run": message["run"]})


def go_on(way, message, fds):
    for number in range(3):
        os.dup2(fds[number], number)
    if way == "stubborn":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.write(1, json.dumps([message["sources"], message["env"]]).encode() + b"\\n")
    if way == "exit":
        os._exit(int(message["env"].get("RELAUNCH_CODE", "0")))
    if way == "read":
        while os.read(0, 1):
            pass
        os._exit(7)
    while True:
        signal.pause()


def spin(bytes_of):
    """Clear the flags, and come back when somebody has set them."""
    for number in (0, 1, 5000):
        bytes_of.clear(number)
    until = time.monotonic() + 300
    while not all(bytes_of.flag(number).value for number in (0, 1, 5000)):
        if time.monotonic() > until:
            return "never"
    return "set"


try:
    begin.ensure(spec)
except OSError as error:
    print(json.dumps({"error": str(error)}), flush=True)
    sys.exit()
mine = flags.Flags()
print(json.dumps({"ready": os.getpid()}), flush=True)
for line in sys.stdin:
    order = json.loads(line)
    if order["do"] == "snapshot":
        answer = snapshot(order)
    elif order["do"] == "running":
        answer = running(order["elapsed"], mine)
    elif order["do"] == "refused":
        answer = wire.send(links[-1], {"op": "refused", **order["refused"]})
    elif order["do"] == "quiet":
        links.pop().close()
        answer = None
    elif order["do"] == "child":  # it has all our connections
        answer = os.fork() or signal.pause()
    elif order["do"] == "spin":
        answer = spin(mine)
    print(json.dumps(answer), flush=True)
'''


class Actor:
    """A program in a process of its own."""

    def __init__(self, stage: Stage, spec: dict[str, Any]) -> None:
        self.stage = stage
        words = [PYTHON, str(stage.actor), str(PACKAGE), json.dumps(spec)]
        self.process = subprocess.Popen(
            words, cwd=stage.cwd, env=stage.env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.first = self._line()

    def _line(self) -> Any:
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], PATIENCE_S)[0], "the actor is silent"
        return json.loads(self.process.stdout.readline())

    def do(self, what: str, **order: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": what, **order}) + "\n")
        self.process.stdin.flush()
        return self._line()

    def snapshot(
        self, line: int, elapsed: float, entered: tuple[str, ...] = ("load",), **more: Any
    ) -> int:
        """Leave a snapshot of the script before the statement in `line`; returns its process."""
        answer = self.try_snapshot(line, elapsed, entered, **more)
        assert answer["answer"].startswith("ok")
        return int(answer["pid"])

    def try_snapshot(
        self, line: int, elapsed: float, entered: tuple[str, ...] = ("load",), **more: Any
    ) -> Any:
        file = str(self.stage.script)
        source = compare.Source(self.stage.script.read_text(), file)
        hello = {
            "op": "hello",
            "at": f"{file}:{line}",
            "elapsed": elapsed,
            "tape": "",
            "mark": 0,
            "seen": seen(source, line, entered).hex(),
            "files": {file: [0, source.digest]},
            "ledger": world.Ledger().manifest(),
            "lines_seen": False,
            **more.pop("hello", {}),
        }
        sources = {source.digest: source.text}
        return self.do("snapshot", hello=hello, sources=sources, **more)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


def seen(source: compare.Source, line: int, entered: tuple[str, ...]) -> bytes:
    """Say which sites were executed by a script that stands at `line` of its top level."""
    found = bytearray(source.size)
    for block in source.blocks:
        is_top = block.path == ("body",)
        name = getattr(source.tree.body[block.path[1]], "name", "") if not is_top else ""
        for index, statement in enumerate(block.body):
            if (is_top and statement.lineno < line) or (len(block.path) == 3 and name in entered):
                found[block.first + index] = 1
    return bytes(found)


class Stage:
    """A folder with a script, and a run folder of its own."""

    def __init__(self, root: Path) -> None:
        self.cwd = root / "project"
        self.run = root / "run"
        self.cwd.mkdir()
        self.run.mkdir(mode=0o700)
        self.script = self.cwd / "train.py"
        self.script.write_text(SCRIPT)
        self.actor = root / "actor.py"
        self.actor.write_text(ACTOR)
        self.spec: dict[str, Any] = {
            "run": str(self.run), "key": "0123456789abcdef", "roots": [str(self.cwd)],
            "control": -1, "at": [], "memory": 0, "idle": 0, "command": ["python", "train.py"],
        }  # fmt: skip
        self.actors: list[Actor] = []
        self.clients: list[Client] = []
        self.packages = root / "site-packages"
        self.packages.mkdir()
        self.env = {**os.environ, "PYTHONPATH": str(self.packages)}

    def start(self, **spec: Any) -> Actor:
        self.actors.append(Actor(self, {**self.spec, **spec}))
        return self.actors[-1]

    def connect(self) -> socket.socket:
        link = wire.connect(str(self.run), self.spec["key"])
        link.settimeout(PATIENCE_S)
        return link

    def say(self, message: dict[str, Any]) -> dict[str, Any]:
        with self.connect() as link:
            wire.send(link, message)
            return heard(link)

    def ask(self) -> dict[str, Any]:
        return self.say({"op": "ask"})

    def status(self) -> dict[str, Any]:
        return self.say({"op": "status"})

    def edit(self, old: str, new: str) -> None:
        text = self.script.read_text()
        assert old in text
        self.script.write_text(text.replace(old, new))

    def close(self) -> None:
        for client in self.clients:
            client.close()
        try:
            self.say({"op": "stop"})
        except (OSError, AssertionError):
            pass
        for actor in self.actors:
            actor.end()
        for trouble in self.run.glob("*.trouble"):
            raise AssertionError(trouble.read_text())


def heard(link: socket.socket) -> dict[str, Any]:
    answer, fds = wire.receive(link)
    assert answer is not None
    assert fds == []
    return answer


class Client:
    """Resumes a snapshot and reads what it writes."""

    def __init__(self, stage: Stage, number: str, **env: str) -> None:
        stage.clients.append(self)
        self.link = stage.connect()
        here, self.input = os.pipe()
        self.output, into = os.pipe()
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.send(b"go")
        order = {"op": "resume", "id": number, "env": env}
        with theirs:
            wire.send(self.link, order, [here, into, into, theirs.fileno()])
        for fd in (here, into):
            os.close(fd)

    def end_input(self) -> None:
        os.close(self.input)
        self.input = -1

    def hear(self) -> dict[str, Any]:
        return heard(self.link)

    def read(self) -> Any:
        data = b""
        while not data.endswith(b"\n"):
            assert select.select([self.output], [], [], PATIENCE_S)[0]
            block = os.read(self.output, 65536)
            assert block
            data += block
        return json.loads(data)

    def close(self) -> None:
        self.link.close()
        self.control.close()
        for fd in (self.input, self.output):
            if fd >= 0:
                os.close(fd)
        self.input = self.output = -1


def gone(*pids: int) -> bool:
    """Wait until processes ended."""
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if not select.select([fd], [], [], PATIENCE_S)[0]:
                return False
        finally:
            os.close(fd)
    return True


def lives(pid: int) -> bool:
    fd = os.pidfd_open(pid)
    try:
        return not select.select([fd], [], [], 0)[0]
    finally:
        os.close(fd)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


# --- which snapshot


def test_without_a_snapshot_it_goes_cold(stage: Stage) -> None:
    stage.start()
    assert stage.ask() == {"cold": "no snapshots: the last run was too short, or they are gone"}


def test_the_deepest_snapshot_above_the_edit_is_offered_with_its_line_in_the_new_file(
    stage: Stage,
) -> None:
    program = stage.start()
    program.snapshot(12, 1.0, ())
    program.snapshot(14, 2.0)
    program.snapshot(15, 3.0, ("load", "train"))
    assert stage.ask() == {
        "resume": stage.status()["snapshots"][2]["id"],
        "at": "train.py:15",
        "elapsed": 3.0,
        "because": "nothing was edited",
        "tape": "",
        "mark": 0,
    }
    stage.edit("result = train(data)", "# a comment\n\nresult = train(data) + 1")
    answer = stage.ask()
    assert (answer["at"], answer["elapsed"]) == ("train.py:16", 2.0)
    assert answer["because"] == "print() and above are unchanged"
    stage.edit('print("training", data)', 'print("TRAINING", data)')
    assert stage.ask()["because"] == "what ran up to print() is unchanged"
    stage.edit("return [path]", "return [path, path]")
    answer = stage.ask()
    assert (answer["at"], answer["elapsed"]) == ("train.py:12", 1.0)
    assert answer["because"] == "what ran up to the imports is unchanged"


def test_the_words_name_the_function_in_which_a_snapshot_stands(stage: Stage) -> None:
    stage.script.write_text("def main():\n    x = load_data(len([1]))\n    go(x)\n\nmain()\n")
    stage.start().snapshot(3, 1.0)
    stage.edit("go(x)", "go(x + 1)")
    answer = stage.ask()
    assert answer["at"] == "train.py:3"
    assert answer["because"] == "load_data() in main() and above are unchanged"


def test_an_edit_of_all_that_ran_goes_cold_and_says_which_line(stage: Stage) -> None:
    program = stage.start()
    program.snapshot(14, 2.0)
    stage.edit("import os", "import sys")
    assert stage.ask() == {"cold": "train.py, line 1 was edited"}
    stage.edit("import sys", "import os")
    assert stage.ask()["elapsed"] == 2.0


def test_a_syntax_error_is_named_and_the_snapshots_are_kept(stage: Stage) -> None:
    program = stage.start()
    pid = program.snapshot(14, 2.0)
    stage.edit("print(result)", "print(result")
    assert stage.ask() == {"cold": "syntax error in train.py, line 15"}
    stage.edit("print(result", "return result")
    assert stage.ask() == {"cold": "syntax error in train.py, line 15"}
    stage.edit("return result", "print(result)")
    assert stage.ask()["elapsed"] == 2.0
    assert lives(pid)


def test_a_file_that_is_gone_or_no_text_makes_a_snapshot_invalid(stage: Stage) -> None:
    stage.start().snapshot(14, 2.0)
    stage.script.rename(stage.cwd / "other.py")
    assert stage.ask() == {"cold": "train.py is gone or cannot be read"}
    stage.script.write_bytes(b"# \xff\n")
    assert stage.ask() == {"cold": "train.py is gone or cannot be read"}
    stage.script.unlink()
    stage.script.mkdir()
    assert stage.ask() == {"cold": "train.py is gone or cannot be read"}
    stage.script.rmdir()
    os.mkfifo(stage.script)
    assert stage.ask() == {"cold": "train.py is gone or cannot be read"}
    stage.script.unlink()
    (stage.cwd / "other.py").rename(stage.script)
    assert stage.ask()["elapsed"] == 2.0


def test_an_edit_with_the_same_size_and_times_is_seen(stage: Stage) -> None:
    stage.start().snapshot(14, 2.0)
    before = stage.script.stat()
    assert "resume" in stage.ask()
    stage.edit('load("a")', 'load("b")')
    os.utime(stage.script, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert stage.ask() == {"cold": "train.py, line 12 was edited"}


def test_moved_lines_matter_only_to_a_program_that_looked_at_line_numbers(stage: Stage) -> None:
    program = stage.start()
    program.snapshot(13, 1.0)
    program.snapshot(14, 2.0, hello={"lines_seen": True})
    stage.edit("import os", "import os\n")
    answer = stage.ask()
    assert (answer["elapsed"], answer["at"]) == (1.0, "train.py:14")


def test_a_folder_put_in_the_place_of_the_old_one_goes_cold(stage: Stage) -> None:
    stage.start().snapshot(14, 2.0)
    stage.cwd.rename(stage.cwd.with_name("old"))
    stage.cwd.mkdir()
    stage.script.write_text(SCRIPT)
    assert stage.ask() == {"cold": "the folder is another one now"}


def test_a_tape_that_is_gone_makes_its_snapshots_invalid(stage: Stage) -> None:
    tape = stage.run / "0123456789abcdef.7.tape"
    tape.write_bytes(b"")
    stage.start().snapshot(14, 2.0, hello={"tape": str(tape), "mark": 0})
    assert stage.ask()["tape"] == str(tape)
    tape.unlink()
    assert stage.ask() == {"cold": "its recorded output is gone"}


def test_an_installed_package_makes_older_snapshots_invalid_and_later_ones_not(
    stage: Stage,
) -> None:
    program = stage.start()
    program.do("running", elapsed=0.0)
    program.snapshot(14, 2.0)
    (stage.packages / "torch").mkdir()
    assert stage.ask()["elapsed"] == 2.0
    (stage.packages / "torch-9.dist-info").mkdir()
    assert stage.ask() == {"cold": "installed packages changed"}
    program.snapshot(14, 2.5)  # of a program that still has what was there when it began
    assert stage.ask() == {"cold": "installed packages changed"}
    later = stage.start()
    later.do("running", elapsed=0.0)
    later.snapshot(14, 2.1)
    assert stage.ask()["elapsed"] == 2.1


def test_a_new_module_matters_only_if_the_program_would_have_imported_it(stage: Stage) -> None:
    stage.script.write_text("import wave\n" + SCRIPT)
    stage.env["PYTHONPATH"] = str(stage.cwd)
    program = stage.start()
    program.do("running", elapsed=0.0)
    program.snapshot(15, 2.0)
    (stage.cwd / "results").mkdir()
    (stage.cwd / "fresh.py").write_text("")
    (stage.cwd / "logging").mkdir()  # a folder of data, whatever its name
    assert stage.ask()["elapsed"] == 2.0
    (stage.cwd / "wave.py").write_text("")
    assert stage.ask() == {"cold": "wave.py is new, and would be imported"}
    later = stage.start()
    later.do("running", elapsed=0.0)
    later.snapshot(15, 1.9)
    assert stage.ask()["elapsed"] == 1.9
    (stage.cwd / "wave.py").unlink()
    assert stage.ask()["elapsed"] == 2.0


def test_what_a_program_saw_of_the_world_is_checked(stage: Stage) -> None:
    stage.start().snapshot(14, 2.0, hello={"ledger": {"no": "ledger"}})
    assert stage.ask()["cold"].startswith("what it saw cannot be checked")


def test_sources_are_sent_once(stage: Stage) -> None:
    program = stage.start()
    assert program.try_snapshot(12, 1.0)["answer"] == "ok 1"
    assert program.try_snapshot(13, 1.5)["answer"] == "ok 0"


# --- going on


def test_a_resumed_program_has_the_streams_the_new_sources_and_the_exit_code(stage: Stage) -> None:
    stage.start().snapshot(14, 2.0)
    stage.edit("print(result)", "print(result, 2)")
    client = Client(stage, stage.ask()["resume"], RELAUNCH_CODE="3")
    assert "pid" in client.hear()
    sources, env = client.read()
    assert sources == {str(stage.script): stage.script.read_text()}
    assert env == {"RELAUNCH_CODE": "3"}
    assert os.waitstatus_to_exitcode(client.hear()["ended"]) == 3
    client.close()


def test_two_clients_can_go_on_from_one_snapshot_at_once(stage: Stage) -> None:
    pid = stage.start().snapshot(14, 2.0, way="read")
    number = stage.ask()["resume"]
    clients = [Client(stage, number), Client(stage, number)]
    pids = [client.hear()["pid"] for client in clients]
    assert len(set(pids)) == 2
    for client in clients:
        client.read()
        client.end_input()
        assert os.waitstatus_to_exitcode(client.hear()["ended"]) == 7
        client.close()
    assert lives(pid)


def test_a_snapshot_that_cannot_go_on_with_these_sources_is_not_offered_for_them(
    stage: Stage,
) -> None:
    program = stage.start()
    program.snapshot(12, 1.0, ())
    program.snapshot(14, 2.0, way="refuse")
    client = Client(stage, stage.ask()["resume"])
    assert client.hear() == {"failed": "cannot"}
    client.close()
    assert stage.ask()["elapsed"] == 1.0
    stage.edit("print(result)", "print(result, 2)")
    assert stage.ask()["elapsed"] == 2.0


def test_a_file_edited_between_question_and_order_is_not_run_as_it_was(stage: Stage) -> None:
    stage.start().snapshot(14, 2.0)
    number = stage.ask()["resume"]
    stage.edit("import os", "import sys")
    client = Client(stage, number)
    assert client.hear() == {"failed": "train.py, line 1 was edited"}
    client.close()
    stage.edit("import sys", "import os")
    assert stage.ask()["resume"] == number


def test_a_snapshot_that_is_gone_is_said(stage: Stage) -> None:
    stage.start()
    client = Client(stage, "99")
    assert client.hear() == {"failed": "the snapshot is gone"}
    client.close()


def test_a_snapshot_that_dies_when_it_should_go_on_is_said_and_forgotten(stage: Stage) -> None:
    stage.start().snapshot(14, 2.0, way="die")
    client = Client(stage, stage.ask()["resume"])
    assert client.hear() == {"failed": "the snapshot died"}
    client.close()
    assert stage.status()["snapshots"] == []


def test_a_snapshot_that_does_not_answer_is_given_up(stage: Stage) -> None:
    pid = stage.start(patience=0.2).snapshot(14, 2.0, way="mute")
    client = Client(stage, stage.ask()["resume"])
    assert client.hear() == {"failed": "the snapshot does not answer"}
    client.close()
    assert gone(pid)
    assert stage.ask() == {"cold": "no snapshots: the last run was too short, or they are gone"}


def test_a_snapshot_that_is_killed_or_stopped_harms_no_other(stage: Stage) -> None:
    program = stage.start(patience=0.2)
    kept = program.snapshot(13, 1.0)
    stopped = program.snapshot(14, 2.0)
    killed = program.snapshot(15, 3.0, ("load", "train"))
    os.kill(killed, signal.SIGKILL)
    os.kill(stopped, signal.SIGSTOP)
    assert gone(killed)
    answer = stage.ask()
    assert answer["elapsed"] == 2.0
    client = Client(stage, answer["resume"])
    assert client.hear() == {"failed": "the snapshot does not answer"}
    client.close()
    assert gone(stopped)
    assert stage.ask()["elapsed"] == 1.0
    assert lives(kept)


def test_a_program_whose_snapshot_is_killed_ends_and_its_client_hears_of_it(stage: Stage) -> None:
    pid = stage.start().snapshot(14, 2.0, way="pause")
    client = Client(stage, stage.ask()["resume"])
    program = client.hear()["pid"]
    client.read()
    os.kill(pid, signal.SIGKILL)
    assert client.hear() == {"ended": signal.SIGKILL}
    assert gone(program)
    client.close()


@pytest.mark.parametrize("way", ["pause", "stubborn"])
def test_a_program_whose_client_goes_away_is_ended(stage: Stage, way: str) -> None:
    pid = stage.start().snapshot(14, 2.0, way=way)
    client = Client(stage, stage.ask()["resume"])
    program = client.hear()["pid"]
    client.read()
    client.close()
    assert gone(program)
    assert lives(pid)
    assert stage.ask()["elapsed"] == 2.0


def test_a_client_that_leaves_before_its_program_started_leaves_nothing(stage: Stage) -> None:
    stage.start().snapshot(14, 2.0, way="pause")
    with stage.connect() as link:
        out, into = os.pipe()
        order = {"op": "resume", "id": stage.ask()["resume"], "env": {}}
        wire.send(link, order, [into] * 4)
        os.close(into)
    while os.read(out, 4096):  # until nobody is left who could write
        pass
    os.close(out)


# --- flags


def test_the_flags_of_a_running_program_are_set_again_and_again(stage: Stage) -> None:
    program = stage.start()
    program.do("running", elapsed=0.0)
    assert program.do("spin") == "set"
    assert program.do("spin") == "set"
    assert stage.status()["running"] == 1
    program.do("quiet")
    wait_until(lambda: stage.status()["running"] == 0)


def test_a_program_that_ended_does_not_run_even_if_its_children_do(stage: Stage) -> None:
    program = stage.start()
    program.do("running", elapsed=0.0)
    child = program.do("child")
    program.end()
    stage.actors.remove(program)
    wait_until(lambda: stage.status()["running"] == 0)
    os.kill(child, signal.SIGKILL)


# --- how many


def test_a_ladder_is_kept_of_many_snapshots(stage: Stage) -> None:
    program = stage.start()
    pids = [program.snapshot(14, 1.0 + number / 10) for number in range(ladder.MOST + 10)]
    left = stage.status()["snapshots"]
    assert len(left) == ladder.MOST
    assert left[0]["pid"] == pids[0]
    assert left[-1]["pid"] == pids[-1]
    dropped = set(pids) - {one["pid"] for one in left}
    assert len(dropped) == 10
    assert gone(*dropped)


def test_more_memory_than_allowed_is_never_kept(stage: Stage) -> None:
    program = stage.start(memory=120 << 20)
    first = program.snapshot(14, 1.0, ballast=48 << 20)
    second = program.snapshot(14, 1.5, ballast=48 << 20)
    third = program.snapshot(14, 3.0, ballast=48 << 20)
    assert gone(second)
    assert lives(first)
    assert lives(third)
    assert all(one["pss"] > 48 << 20 for one in stage.status()["snapshots"])
    fourth = program.snapshot(14, 4.0, ballast=130 << 20)
    assert gone(fourth)
    assert lives(first)
    assert lives(third)


def test_a_later_run_can_allow_less_memory(stage: Stage) -> None:
    program = stage.start()
    first = program.snapshot(14, 1.0, ballast=48 << 20)
    second = program.snapshot(14, 2.0, ballast=48 << 20)
    stage.start(memory=80 << 20)
    assert gone(first)
    assert lives(second)


def test_the_memory_that_can_be_had_is_known() -> None:
    total, available = machine.memory()
    assert 0 < available <= total


def test_the_status_says_what_is_watched(stage: Stage) -> None:
    program = stage.start()
    pid = program.snapshot(14, 2.0)
    status = stage.status()
    (one,) = status["snapshots"]
    assert (one["pid"], one["at"], one["elapsed"]) == (pid, "train.py:14", 2.0)
    assert one["watches"] == ["train.py"]
    assert one["pss"] > 0
    assert status["program"] == ["python", "train.py"]
    assert status["cwd"] == str(stage.cwd)


def test_a_banned_place_is_never_used_again_not_even_by_later_runs(stage: Stage) -> None:
    program = stage.start()
    first = program.snapshot(14, 2.0)
    program.snapshot(13, 1.0)
    assert stage.say({"op": "ban", "id": stage.ask()["resume"], "why": "differs"}) == {"banned": 1}
    assert gone(first)
    assert stage.ask()["elapsed"] == 1.0
    stage.edit("import os", "import os\n")
    assert stage.start().try_snapshot(15, 2.0)["answer"] == "refused"
    assert stage.start().try_snapshot(14, 1.0)["answer"].startswith("ok")


def test_a_used_place_can_be_banned_when_its_snapshot_is_gone(stage: Stage) -> None:
    pid = stage.start().snapshot(14, 2.0)
    number = stage.ask()["resume"]
    client = Client(stage, number)
    client.hear()
    client.hear()
    client.close()
    os.kill(pid, signal.SIGKILL)
    assert gone(pid)
    assert stage.say({"op": "ban", "id": number, "why": "differs"}) == {"banned": 0}
    assert stage.start().try_snapshot(14, 2.0)["answer"] == "refused"


def test_a_ban_does_not_end_a_program_that_came_from_there(stage: Stage) -> None:
    pid = stage.start().snapshot(14, 2.0, way="read")
    number = stage.ask()["resume"]
    client = Client(stage, number)
    client.hear()
    assert stage.say({"op": "ban", "id": number, "why": "differs"}) == {"banned": 1}
    assert stage.ask() == {"cold": "no snapshots: the last run was too short, or they are gone"}
    client.end_input()
    assert os.waitstatus_to_exitcode(client.hear()["ended"]) == 7
    assert gone(pid)
    client.close()


# --- lives


def test_stop_ends_the_host_and_its_snapshots(stage: Stage) -> None:
    tape = stage.run / "0123456789abcdef.7.tape"
    tape.write_bytes(b"")
    pid = stage.start().snapshot(14, 2.0, hello={"tape": str(tape)})
    keeper = stage.status()["pid"]
    assert stage.say({"op": "stop"}) == {"stopped": 1}
    assert gone(keeper, pid)
    assert list(stage.run.iterdir()) == []


def test_stop_waits_for_a_resumed_program_and_tells_how_it_ended(stage: Stage) -> None:
    pid = stage.start().snapshot(14, 2.0, way="read")
    keeper = stage.status()["pid"]
    client = Client(stage, stage.ask()["resume"])
    client.hear()
    stage.say({"op": "stop"})
    client.end_input()
    assert os.waitstatus_to_exitcode(client.hear()["ended"]) == 7
    assert gone(keeper, pid)
    client.close()


def test_sigterm_ends_the_host_its_snapshots_and_what_came_from_them(stage: Stage) -> None:
    pid = stage.start().snapshot(14, 2.0, way="pause")
    keeper = stage.status()["pid"]
    client = Client(stage, stage.ask()["resume"])
    program = client.hear()["pid"]
    client.read()
    os.kill(keeper, signal.SIGTERM)
    assert client.hear() == {"ended": signal.SIGHUP}
    assert gone(program, keeper, pid)
    assert list(stage.run.iterdir()) == []
    client.close()


def test_after_sigkill_nothing_is_left_and_the_next_run_gets_a_new_host(stage: Stage) -> None:
    pid = stage.start().snapshot(14, 2.0)
    keeper = stage.status()["pid"]
    os.kill(keeper, signal.SIGKILL)
    assert gone(keeper, pid)
    with pytest.raises(ConnectionRefusedError):
        stage.connect()
    stage.start().snapshot(14, 2.0)
    assert stage.status()["pid"] != keeper
    assert stage.ask()["elapsed"] == 2.0


def test_a_host_that_does_not_answer_is_replaced_and_ends_when_it_can(stage: Stage) -> None:
    pid = stage.start().snapshot(14, 2.0)
    keeper = stage.status()["pid"]
    os.kill(keeper, signal.SIGSTOP)
    stage.start(patience=0.2).snapshot(14, 3.0)
    assert stage.status()["pid"] != keeper
    os.kill(keeper, signal.SIGCONT)
    assert gone(keeper, pid)
    assert stage.ask()["elapsed"] == 3.0


def test_the_host_outlives_the_program_and_is_not_in_its_session(stage: Stage) -> None:
    program = stage.start()
    program.snapshot(14, 2.0)
    keeper = stage.status()["pid"]
    assert os.getsid(keeper) != os.getsid(program.process.pid)
    program.end()
    stage.actors.remove(program)
    assert stage.ask()["elapsed"] == 2.0
    assert Path(f"/proc/{keeper}/comm").read_text() == "rl-host\n"

    def files() -> set[str]:
        opened = {os.readlink(one) for one in Path(f"/proc/{keeper}/fd").iterdir()}
        return {one for one in opened if one.startswith("/") and "/proc/" not in one}

    wait_until(lambda: files() == {os.devnull})  # it looks round now and then


def test_programs_that_start_at_once_have_one_host(stage: Stage) -> None:
    spec = json.dumps(stage.spec)
    many = [
        subprocess.Popen(
            [PYTHON, str(stage.actor), str(PACKAGE), spec],
            cwd=stage.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        )
        for _ in range(6)
    ]  # fmt: skip
    for one in many:
        out, _ = one.communicate(timeout=PATIENCE_S)
        assert b"ready" in out
    assert stage.status()["snapshots"] == []
    assert len(hosts_of(stage)) == 1


def hosts_of(stage: Stage) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        try:
            if not name.isdigit() or Path(f"/proc/{name}/comm").read_text() != "rl-host\n":
                continue
            if stage.run.as_posix().encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return found


def test_an_idle_host_ends(stage: Stage) -> None:
    pid = stage.start(idle=0.2).snapshot(14, 2.0)
    assert gone(pid, *hosts_of(stage))


def test_a_host_whose_folder_is_gone_ends(stage: Stage) -> None:
    pid = stage.start().snapshot(14, 2.0)
    keeper = stage.status()["pid"]
    stage.run.rename(stage.run.with_name("elsewhere"))
    assert gone(keeper, pid)


def test_a_folder_that_others_can_enter_is_refused(stage: Stage) -> None:
    stage.run.chmod(0o755)
    assert "nobody else" in stage.start().first["error"]
    with pytest.raises(PermissionError):
        wire.connect(str(stage.run), stage.spec["key"])


@pytest.mark.parametrize(
    "garbage", [b"\xff\xff\xff\xff", b"\0\0\0\0", b"\3\0\0\0[1]", b"\2\0\0\0{]", b"\x0e\0\0\0"]
)
def test_garbage_ends_only_the_connection_it_came_from(stage: Stage, garbage: bytes) -> None:
    stage.start().snapshot(14, 2.0)
    with stage.connect() as link:
        link.sendall(garbage)
        link.shutdown(socket.SHUT_WR)
        assert link.recv(1) == b""
    for wrong in ({"op": "no such"}, {"op": "hello"}, {"op": "sources"}, {"op": ["ask"]}):
        with stage.connect() as link:
            wire.send(link, wrong)
            assert wire.receive(link)[0] is None
    assert stage.ask()["elapsed"] == 2.0
    (stage.run / "0123456789abcdef.trouble").unlink()


def test_descriptors_that_nobody_asked_for_are_closed(stage: Stage) -> None:
    stage.start()
    near, far = os.pipe()
    with stage.connect() as link:
        for op in ("ask", "status", "ping", "resume"):
            wire.send(link, {"op": op}, [far])
            heard(link)
    os.close(far)
    assert os.read(near, 1) == b""
    os.close(near)


def test_a_peer_that_does_not_read_holds_nobody_up(stage: Stage) -> None:
    stage.start().snapshot(14, 2.0)
    with stage.connect() as deaf:
        deaf.settimeout(0.0)
        request = wire.encode({"op": "status"})
        while select.select([], [deaf], [], 0.5)[1]:
            deaf.send(request * 100)
        assert stage.ask()["elapsed"] == 2.0


# --- with the real thing


def test_a_real_program_goes_on_from_its_middle_with_the_edited_rest(stage: Stage) -> None:
    stage.script.write_text(
        "import helper\n\ndef main():\n    x = helper.twice(21)\n"
        "    y = x + 1\n    print('old', y)\n\nmain()\n"
    )
    work = "import time\n\ndef twice(n):\n    time.sleep(0.5)\n    return n * 2\n"
    (stage.cwd / "helper.py").write_text(work)
    wanted = {**stage.spec, "at": ["helper.py:5"]}
    words = [PYTHON, str(PACKAGE / "main.py"), json.dumps(wanted)]
    cold = subprocess.run(
        [*words, "--", "train.py"], cwd=stage.cwd, env=stage.env,
        capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert (cold.stdout, cold.stderr) == ("old 43\n", "")
    stage.edit("print('old', y)", "import json\n    print(json.dumps([x, y]))")
    answer = stage.ask()
    assert answer.get("elapsed", 0) > 0.5, answer
    assert answer["at"] == "helper.py:5"
    assert answer["because"] == "what ran up to sleep() in twice() is unchanged"
    client = Client(stage, answer["resume"])
    assert "pid" in client.hear()
    assert client.read() == [42, 43]
    assert client.hear() == {"ended": 0}
    client.close()
    (stage.cwd / "helper.py").write_text(work.replace("0.5", "0.6"))
    assert stage.ask().get("elapsed", 0.0) <= answer["elapsed"] - 0.5  # before it sleeps


def test_all_at_once_and_nobody_dies_who_should_not(stage: Stage) -> None:
    """Snapshots and clients that come, go and are killed in any order."""
    import random

    chance = random.Random(7)
    program = stage.start(patience=5)
    program.do("running", elapsed=0.0)
    keeper = stage.status()["pid"]
    files = len(os.listdir(f"/proc/{keeper}/fd"))
    clients: list[Client] = []
    pids: list[int] = []
    for step in range(150):
        deed = chance.randrange(8)
        if deed < 2 or not pids:
            way = chance.choice(["exit", "pause", "refuse", "die", "read", "stubborn"])
            pids.append(program.snapshot(14, 1.0 + step, way=way))
        elif deed == 2:
            os.kill(chance.choice(pids), signal.SIGKILL)
        elif deed < 6:
            clients.append(Client(stage, stage.ask().get("resume", "0")))
        elif clients:
            clients.pop(chance.randrange(len(clients))).close()
        if chance.random() < 0.1:
            stage.edit("print(result", "print(result + 1" if step % 2 else "print(result - 1")
    for client in clients:
        client.close()
    program.do("quiet")
    assert stage.status()["pid"] == keeper
    for one in stage.status()["snapshots"]:
        os.kill(one["pid"], signal.SIGKILL)
        assert gone(one["pid"])
    assert stage.ask() == {"cold": "no snapshots: the last run was too short, or they are gone"}
    wait_until(lambda: stage.status()["running"] == 0)
    assert stage.status()["snapshots"] == []
    # what is left: what it had, less the connection of the program, its process and flags
    assert len(os.listdir(f"/proc/{keeper}/fd")) <= files


# --- messages


def test_descriptors_stay_with_their_message() -> None:
    one, other = socket.socketpair()
    near, far = os.pipe()
    with one, other:
        wire.send(one, {"n": 1})
        wire.send(one, {"n": 2}, [near, far])
        wire.send(one, {"n": 3, "text": "é\ud800" * 20})
        assert wire.receive(other) == ({"n": 1}, [])
        message, fds = wire.receive(other)
        assert message == {"n": 2}
        assert len(fds) == 2
        assert not os.get_inheritable(fds[0])
        assert wire.receive(other) == ({"n": 3, "text": "é\ud800" * 20}, [])
        one.close()
        assert wire.receive(other) == (None, [])
    for fd in (near, far, *fds):
        os.close(fd)


def test_a_message_longer_than_the_socket_takes_arrives_piece_by_piece() -> None:
    one, other = socket.socketpair()
    with one, other:
        long = {"text": "x" * (4 << 20)}
        near, far = os.pipe()
        writer, reader = wire.Stream(one), wire.Stream(other)
        other.setblocking(False)
        writer.put(long, [far])
        assert writer.is_waiting
        while not reader.is_complete:
            try:
                assert reader.pull()
            except BlockingIOError:
                writer.push()
        taken, fds = reader.take()
        assert taken == long
        assert len(fds) == 1
    os.close(near)
    os.close(fds[0])


def test_a_socket_in_a_deep_folder_can_be_reached(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    stage = Stage(deep)
    try:
        stage.start().snapshot(14, 2.0)
        assert stage.ask()["elapsed"] == 2.0
    finally:
        stage.close()


def test_the_run_folder_is_private_or_refused(tmp_path: Path) -> None:
    private = tmp_path / "session"
    private.mkdir(mode=0o700)
    folder = where.run_folder({"XDG_RUNTIME_DIR": str(private)})
    assert folder == str(private / "relaunch")
    assert os.stat(folder).st_mode & 0o777 == 0o700
    os.chmod(folder, 0o750)
    with pytest.raises(PermissionError):
        where.run_folder({"XDG_RUNTIME_DIR": str(private)})
    (private / "relaunch").rmdir()
    (private / "relaunch").symlink_to(tmp_path)
    with pytest.raises(PermissionError):
        where.run_folder({"XDG_RUNTIME_DIR": str(private)})
    private.chmod(0o755)
    fallback = f"/tmp/relaunch-{os.geteuid()}"
    assert where.run_folder({"XDG_RUNTIME_DIR": str(private)}) == fallback


@pytest.mark.parametrize("is_known", [False, True])
def test_what_a_program_said_counts_even_if_it_ended_before_it_was_heard(
    stage: Stage, is_known: bool
) -> None:
    actor = stage.start()
    if is_known:
        actor.do("running", elapsed=0.0)
    host = stage.status()["pid"]
    os.kill(host, signal.SIGSTOP)
    try:
        if not is_known:
            actor.do("running", elapsed=0.0)
        refused = {"why": "a thread is running: spy", "at": f"{stage.script}:3", "count": 1}
        actor.do("refused", refused=refused)
        actor.end()
    finally:
        os.kill(host, signal.SIGCONT)
    assert stage.status()["refused"] == [{**refused, "at": "train.py:3"}]
