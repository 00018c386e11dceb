"""What others wrote, and rl shows on a terminal, is text there: no verb passes a sequence on."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys

import pytest
from tests.conftest import World
from tests.supervising import PATIENCE_S

from relaunch.cli.main import VERBS

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31mpaint\x9b3m\u202eevil"
FILE = f"{EVIL}.py"
RAISES = f"""\
import sys
sys.excepthook = lambda *_: None  # what the program itself prints is passed on as it is
EVIL = {EVIL!r}
size = 3
def fails(thing):
    raise type(EVIL, (ValueError,), {{}})(thing)
if "passes" not in sys.argv:
    fails(EVIL)
"""
WAYS_OF_OURS = re.compile(r"\x1b\[(?:[0-9;]*m|\d*[ABJKH]|\d+;\d+H|\?\d+[hl])")
PYTHON = sys.executable
RUN = ["--", PYTHON, FILE, EVIL]

COMMANDS: dict[str, list[list[str]]] = {
    "run": [
        ["run", "-m", EVIL, "--env", f"X={EVIL}", *RUN], [], ["run", "-s", EVIL, "-n", "2", *RUN],
        ["run", "--reset", f"echo > /dev/null {EVIL!r}", "--", PYTHON, FILE, "passes", EVIL],
        ["run", "--match", f"({EVIL}", *RUN], ["--", EVIL], ["run", "--timeout", EVIL, *RUN],
        ["run", "--src", EVIL, *RUN], ["run", "--frozen", *RUN],
    ],
    "warm": [["warm", *RUN], ["warm", "stop", EVIL], ["warm", "stop"]],
    "probe": [["probe", f"{FILE}:8", "EVIL", *RUN], ["probe", f"{EVIL}:1", *RUN]],
    "shapes": [["shapes", *RUN], ["shapes", EVIL]],
    "blame": [["blame", *RUN], ["blame", EVIL]],
    "stacks": [["stacks", EVIL], ["stacks", f"({EVIL}"]],
    "where": [["where", f"{FILE}:6", *RUN], ["where", EVIL, *RUN]],
    "py": [["py", f"sys.excepthook = lambda *_: None; raise type({EVIL!r}, (OSError,), {{}})"]],
    "replay": [["replay", "1"], ["replay", "--list"], ["replay", EVIL], ["replay", "1", "--code"]],
    "bisect": [["bisect", "--good", "HEAD~2", *RUN], ["bisect", "--good", EVIL, *RUN]],
    "sweep": [["sweep", f"lr=1,{EVIL}", "--", PYTHON, FILE, "{lr}"], ["sweep", EVIL, *RUN]],
    "grow": [["grow", "n=1..2", "--", PYTHON, FILE, "{n}"], ["grow", EVIL, *RUN]],
    "shrink": [["shrink", f"data{EVIL}", "--budget", "5", *RUN], ["shrink", EVIL, *RUN]],
    "repeat": [["repeat", "2", *RUN], ["repeat", EVIL, *RUN]],
    "race": [["race", "2", *RUN], ["race", EVIL, *RUN]],
    "tiny": [["tiny", "find", EVIL, "."], ["tiny", "data", EVIL], ["tiny", EVIL]],
    "watch": [["watch", EVIL], ["watch", "--match", f"({EVIL}"]],
    "squeeze": [["squeeze", "--memory", EVIL], ["squeeze", "--disk", f"{EVIL}=1M", *RUN]],
    "alloc": [["alloc", "ls"], ["alloc", EVIL]],
    "log": [["log"], ["log", "--all"], ["log", "--text", EVIL], ["log", "--json"]],
    "show": [
        ["show", "1"], ["show", "1", "--env", "--code"], ["show", "2", "--output"],
        ["show", "2", "--output", "--times"], ["show", EVIL], ["show", "1", "--json"],
    ],
    "diff": [["diff", "1", "2"], ["diff", "1", "2", "--stat"], ["diff", "1", EVIL]],
    "again": [["again", "1"], ["again", EVIL]],
    "back": [["back", "1"], ["back", EVIL], ["back", "1", "--to", EVIL]],
    "mark": [["mark", "1", "good", EVIL], ["mark", "1", EVIL], ["mark", EVIL]],
    "gc": [["gc", "--dry-run"], ["gc", "--older", EVIL]],
    "trust": [["trust"], ["trust", EVIL]],
    "set": [
        ["set", "ls"], ["set", "new", f"{EVIL}/x"], ["set", "diff", EVIL, "plain"],
        ["set", "use", f"no{EVIL}"], ["set", "use", EVIL],
    ],
    "doctor": [["doctor"], ["doctor", "--fix", EVIL]],
    "completion": [["completion", "bash"], ["completion", EVIL]],
    "": [[EVIL], [f"--{EVIL}"], ["--help"], ["log", f"--{EVIL}"]],
}  # fmt: skip


def hostile(first: World) -> World:
    """Make a project in which everything that has a name has an evil one."""
    world = first
    project = world.project
    world.write(FILE, RAISES)
    world.write(f"data{EVIL}", f"{EVIL}\none\ntwo\n")
    for name in (EVIL, "plain"):
        world.write(f"conf@{name}/value.txt", f"{name}\n")
    (project / "conf").symlink_to("conf@plain")
    world.settings(
        f"[record]\nalso = []\n[sets]\nconf = 'conf@*'\n[metrics]\n{quoted(EVIL)} = 'owned'\n"
    )
    world.commit(EVIL)
    world.write(f"more{EVIL}\n\r", EVIL)
    world.git("commit", "-q", "--allow-empty", f"--author={EVIL} <a@b>", "-m", f"{EVIL}\n{EVIL}")
    world.commit(f"two {EVIL}")
    world.git("checkout", "-q", "-b", "branch\u202e\x9b")
    world.git("tag", "tag\u202e\x9b")
    prints = f"print({EVIL!r})\n{RAISES}"
    for words in (["-m", EVIL, *RUN], ["-m", f"two {EVIL}", "--", PYTHON, "-c", prints]):
        world.rl("run", *words)
        world.write(f"more{EVIL}\n\r", f"{EVIL} and {EVIL}")
    return world


def quoted(text: str) -> str:
    """Return a text as a key of TOML."""
    return '"' + "".join(one if one.isalnum() else f"\\u{ord(one):04x}" for one in text) + '"'


@pytest.fixture(scope="module")
def evil(tmp_path_factory) -> World:
    return hostile(World(tmp_path_factory.mktemp("evil")))


def on_a_terminal(world: World, words: list[str]) -> str:
    """Run rl with a terminal to write to, and return what came there."""
    ours, theirs = pty.openpty()
    env = {**world.env, "TERM": "xterm-256color", "COLUMNS": "300"}
    rl = subprocess.Popen(
        [PYTHON, "-m", "relaunch", *words],
        cwd=world.project, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    parts = []
    while select.select([ours], [], [], 120)[0]:
        try:
            parts.append(os.read(ours, 65536))
        except OSError:  # nobody has it open any more
            break
    os.close(ours)
    rl.wait(timeout=PATIENCE_S)
    return b"".join(parts).decode("utf-8", "surrogateescape")


def disobedient(text: str) -> list[str]:
    """List what a terminal would obey, and is not ours."""
    found = [one for one in ("\x1b[31mpaint", "\x1b[2J") if one in text]
    rest = WAYS_OF_OURS.sub("", text)
    return found + [one for one in rest if not one.isprintable() and one not in "\r\n\t"]


def test_every_verb_is_tried():
    assert set(COMMANDS) == {*VERBS, ""}


@pytest.mark.parametrize("verb", COMMANDS)
def test_no_verb_hands_a_sequence_of_others_to_the_terminal(evil, verb):
    seen = {}
    for words in COMMANDS[verb]:
        text = on_a_terminal(evil, words)
        assert text, words
        assert "internal fault" not in text, text
        if found := disobedient(text):
            seen[" ".join(words)] = (found, [one for one in text.split("\n") if disobedient(one)])
    assert not seen, seen
