"""What is beside a program: when it is called, and that it is put away whatever happens."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.supervising import PATIENCE_S, wait_until
from tests.watching import is_alive

SCRIPT = """
import os, sys
from relaunch.errors import LaunchError
from relaunch.proc.companion import Companion
from relaunch.proc.helper import Helper
from relaunch.proc.supervise import supervise

log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
note = lambda word: os.write(log, word.encode() + b"\\n")

class Noted(Companion):
    def prepare(self):
        note("prepare")
        self.helper = Helper(self.serve)
        return {"WORD": "from a companion"}
    def serve(self, file):
        while data := os.read(file, 100):
            os.write(file, data.upper())
        os.write(file, b"bye")
    def helpers(self):
        return [self.helper.pid]
    def enter(self):
        if "FAIL" in sys.argv:
            raise OSError("no such world")
        os.write(1, b"entered\\n")
    def launched(self, pid):
        note(f"launched {self.helper.pid}")
        self.helper.say(b"hello")
        note(self.helper.hear(300).decode())
    def ended(self):
        note("ended " + self.helper.stop().decode())
    def after_our_death(self):
        fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
        os.write(fd, b"died\\n")

try:
    supervise(sys.argv[2:], cwd="/", env=dict(os.environ), chunk=lambda *_: None,
              companions=[Noted()])
except LaunchError as error:
    print("rl:", error.message)
"""


def supervised(log: Path, *words: str) -> "subprocess.Popen[bytes]":
    argv = [sys.executable, "-c", SCRIPT, str(log), *words]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)


def noted(log: Path) -> list[str]:
    return log.read_text().split("\n") if log.exists() else []


def test_a_companion_is_there_from_before_the_start_until_all_is_over(tmp_path):
    log = tmp_path / "log"
    run = supervised(log, "sh", "-c", "echo $WORD")
    out, _ = run.communicate(timeout=PATIENCE_S)
    assert out == b"entered\nfrom a companion\n"
    first, second, *rest = noted(log)
    assert (first, second.split()[0], rest) == ("prepare", "launched", ["HELLO", "ended bye", ""])


def test_a_world_that_cannot_be_made_stops_the_launch_and_is_put_back(tmp_path):
    log = tmp_path / "log"
    out, _ = supervised(log, "echo", "FAIL").communicate(timeout=PATIENCE_S)
    assert out == b"rl: its world could not be made: no such world\n"
    assert "ended bye" in noted(log)


def test_a_command_that_is_not_there_prepares_nothing(tmp_path):
    log = tmp_path / "log"
    out, _ = supervised(log, "no-such-command").communicate(timeout=PATIENCE_S)
    assert b"command not found" in out
    assert noted(log) == [""]


def test_a_killed_supervisor_leaves_no_helper_and_its_companions_hear_of_it(tmp_path):
    log = tmp_path / "log"
    run = supervised(log, "sleep", "1000")
    wait_until(lambda: "HELLO" in noted(log))
    helper = int(noted(log)[1].split()[1])
    run.kill()
    run.communicate(timeout=PATIENCE_S)
    wait_until(lambda: "died" in noted(log))
    wait_until(lambda: not is_alive(helper))


def test_ctrl_c_ends_companions_too(tmp_path):
    log = tmp_path / "log"
    run = supervised(log, "sleep", "1000")
    wait_until(lambda: "HELLO" in noted(log))
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=PATIENCE_S)
    assert "ended bye" in noted(log)
