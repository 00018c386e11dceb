"""`rl squeeze`: a shell that may take less and says so, and memory that is gone until Ctrl-C."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import World
from tests.needs import needs
from tests.people import Person, plain
from tests.shells import Terminal
from tests.supervising import kill_at_once

from relaunch.look.available import memory
from relaunch.proc.settle import near_enough

__all__ = ["plain"]
MB = 1 << 20
RL = [sys.executable, "-m", "relaunch"]


@pytest.fixture
def disk(world: World) -> str:
    """A folder outside the project that can be made small: DIR=SIZE."""
    (world.root / "ckpt").mkdir()
    return f"{world.root}/ckpt=16M"


def left_behind(world: World) -> list[str]:
    return [str(path) for path in world.root.glob("*/rl-squeeze-*")]


# --- a shell that may take less -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shell", "file", "line"),
    [
        ("bash", ".bashrc", "echo own file; PS1='mine> '\n"),
        ("bash", ".bashrc", "echo own file; PROMPT_COMMAND=(true 'PS1=\"mine> \"')\n"),
        ("zsh", ".zshrc", "echo own file; PROMPT='mine> '\n"),
        ("fish", ".config/fish/config.fish",
         "echo own file; function fish_prompt; echo -n 'mine> '; end\n"),
        ("dash", ".shrc", "echo own file; PS1='mine> '\n"),
    ],
)  # fmt: skip
def test_the_prompt_of_a_shell_says_its_limits_and_its_own_files_are_read(
    world: World, disk: str, shell: str, file: str, line: str
):
    needs(shell)
    path = world.home / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(line)
    env = {**world.env, "ENV": str(path)} if shell == "dash" else world.env
    terminal = Terminal([*RL, "squeeze", "--disk", disk, "--", shell], env, world.project)
    try:
        terminal.wait("own file")
        at = terminal.wait(rf"\[{disk}\] mine> ")
        terminal.type('echo "limit: $DISKLIMIT"; cd /\r')
        at = terminal.wait(rf"limit: {disk}\r", after=at)
        terminal.wait(rf"(?<!\] )\[{disk}\] mine> ", after=at)
        terminal.type("exit\r")
        assert terminal.process.wait(300) == 0
    finally:
        terminal.close()
    assert left_behind(world) == []


def test_ctrl_c_twice_at_the_prompt_does_not_end_the_shell(world: World, disk: str):
    needs("bash")
    (world.home / ".bashrc").write_text("PS1='mine> '\n")
    terminal = Terminal([*RL, "squeeze", "--disk", disk, "--", "bash"], world.env, world.project)
    try:
        at = terminal.wait("mine> ")
        for _ in range(3):
            # A bash that is not quite at its prompt heeds Ctrl-C only with the next key.
            terminal.type("\x03")
            at = terminal.wait(r"\^C", after=at)
            terminal.type("\r")
            at = terminal.wait("mine> ", after=at)
        terminal.type("echo $((6 * 7)); exit 7\r")
        terminal.wait("42\r", after=at)
        assert terminal.process.wait(300) == 7
    finally:
        terminal.close()


def test_without_a_command_it_is_the_shell_of_the_person(world: World, disk: str):
    env = {**world.env, "SHELL": "/bin/sh"}
    terminal = Terminal([*RL, "squeeze", "--disk", disk], env, world.project)
    try:
        terminal.wait(rf"\[{disk}\] [$#] ")
        terminal.type("echo shell $0\r")
        terminal.wait("shell /bin/sh\r")
        terminal.type("exit\r")
        terminal.process.wait(300)
    finally:
        terminal.close()


def with_a_stopped_job(terminal: Terminal) -> int:
    """Have a `cat` that ran and was stopped; returns where the screen is then."""
    at = terminal.wait("mine> ")
    terminal.type("echo g''o; cat\r")
    at = terminal.wait("go\r\n", after=at)
    terminal.type("here\r")
    at = terminal.wait("here\r\nhere", after=at)
    terminal.type("\x1a")
    return terminal.wait(r"Stopped.*cat", after=at)


def continue_the_job(terminal: Terminal, at: int) -> None:
    """Have it go on in front, and leave."""
    terminal.type("fg\r")
    at = terminal.wait(r"fg\s+cat\r", after=at)
    terminal.type("again\r")
    terminal.wait("again\r\nagain", after=at)
    terminal.type("\x04")
    terminal.type("exit\r")
    assert terminal.process.wait(300) == 0


def test_jobs_of_the_shell_can_be_stopped_and_continued(world: World, disk: str):
    needs("bash")
    (world.home / ".bashrc").write_text("PS1='mine> '\n")
    terminal = Terminal([*RL, "squeeze", "--disk", disk, "--", "bash"], world.env, world.project)
    try:
        at = with_a_stopped_job(terminal)
        continue_the_job(terminal, at)
    finally:
        terminal.close()


def test_a_command_that_is_no_shell_runs_as_it_is_and_leaves_as_it_left(world: World, disk: str):
    words = ("--disk", disk, "--env", "A=1", "--", "sh", "-c", "echo $A $DISKLIMIT; exit 3")
    done = world.rl("squeeze", *words)
    assert (done.returncode, done.stdout) == (3, f"1 {disk}\n")
    done = world.rl("squeeze", "--disk", disk, "--", "sh", "-c", "kill -TERM $$")
    assert done.returncode == -signal.SIGTERM


def test_no_trial_is_kept_of_it_and_the_real_folder_is_as_it_was(world: World, disk: str):
    world.rl("squeeze", "--disk", disk, "--", "sh", "-c", "echo x > ../ckpt/file")
    assert not world.journal.exists()
    assert list((world.root / "ckpt").iterdir()) == []


def test_nothing_is_left_when_rl_is_killed(world: World, disk: str):
    argv = ["rl", "squeeze", "--disk", disk, "--", "sh", "-c", "echo runs; exec cat"]
    process = world.start(argv, stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"runs\n"
    assert left_behind(world) != []
    process.kill()
    process.communicate(timeout=300)
    guard_has_ended(process)
    assert left_behind(world) == []


def test_what_nobody_was_left_to_take_away_is_taken_away_by_the_next_rl(world: World, disk: str):
    kept = world.root / "ckpt/kept"
    kept.write_text("as it was")
    line = f"echo more >> {kept}; echo runs; exec cat"
    process = world.start(
        ["rl", "squeeze", "--disk", disk, "--", "sh", "-c", line], stdin=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"runs\n"
    kill_at_once(process.pid)
    process.communicate(timeout=300)
    assert left_behind(world) != []
    assert kept.read_text() == "as it was"
    world.rl("--", "true")
    assert left_behind(world) == []
    assert kept.read_text() == "as it was"
    assert noted(world) == []


def noted(world: World) -> list[str]:
    """Name the notes of what would have to be taken away."""
    return os.listdir(Path(world.env["XDG_STATE_HOME"]) / "relaunch/limited-runs")


def test_what_a_killed_rl_is_known_to_have_left_is_forgotten_when_its_guard_did_it(
    world: World, disk: str
):
    argv = ["rl", "squeeze", "--disk", disk, "--", "sh", "-c", "echo runs; exec cat"]
    process = world.start(argv, stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"runs\n"
    assert len(noted(world)) == 1
    process.kill()
    process.communicate(timeout=300)
    guard_has_ended(process)
    assert noted(world) == []


def guard_has_ended(process: subprocess.Popen[bytes]) -> None:
    """Wait until nobody of its session is left."""
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == process.pid:
                file = os.pidfd_open(int(entry.name))
                assert select.select([file], [], [], 300)[0]
                os.close(file)
        except (OSError, ValueError, IndexError):
            continue


# --- memory that is gone --------------------------------------------------------------------------


def holding(world: World, *words: str) -> tuple[subprocess.Popen[bytes], dict[str, int]]:
    """Start to hold; returns once it holds, with what it says."""
    process = world.start(["rl", "squeeze", "hold", "--json", *words])
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()
    (held,) = json.loads(line)["held"]
    return process, held


def ballast_of(process: subprocess.Popen[bytes]) -> int:
    (pid,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(pid)


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_so_much_memory_is_really_held_by_what_the_kernel_ends_first(world: World):
    process, held = holding(world, "--memory", "200M")
    pid = ballast_of(process)
    assert held["held"] == 200 * MB
    assert resident(pid) >= 200 * MB
    assert Path(f"/proc/{pid}/oom_score_adj").read_text() == "1000\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=300)
    assert json.loads(out) == {
        "schema": "relaunch/squeeze/1", "event": "released", "why": "interrupted",
    }  # fmt: skip
    assert process.returncode == 0
    assert not Path(f"/proc/{pid}").exists()


def test_it_holds_until_only_so_much_is_left(world: World):
    leave = memory().available - 300 * MB
    process, held = holding(world, "--leave", str(leave))
    assert near_enough(held["free"], leave)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_memory_is_free_again_when_rl_is_killed(world: World, how: int):
    process, _ = holding(world, "--memory", "64M")
    ballast = os.pidfd_open(ballast_of(process))
    process.send_signal(how)
    assert select.select([ballast], [], [], 300)[0]
    os.close(ballast)
    process.communicate(timeout=300)
    assert process.returncode == -how


def test_ballast_that_the_kernel_takes_away_is_told_of(world: World):
    process, _ = holding(world, "--memory", "64M")
    os.kill(ballast_of(process), signal.SIGKILL)  # as the kernel does when memory runs out
    out, _ = process.communicate(timeout=300)
    assert (process.returncode, json.loads(out)["why"]) == (1, "lost")


def test_on_a_terminal_it_shows_how_far_it_is_and_ctrl_c_lets_go(world: World):
    terminal = Terminal([*RL, "squeeze", "hold", "--memory", "600M"], world.env, world.project)
    try:
        terminal.wait(r"rl: memory 256 MiB of 600 MiB █+░+")
        terminal.wait(r"rl: Holding 600 MB of memory, [\d.]+ GB left available. Ctrl-C releases it")
        terminal.type("\x03")
        terminal.wait("rl: Released")
        assert terminal.process.wait(300) == 0
    finally:
        terminal.close()


def test_it_lets_go_when_its_time_is_over(world: World):
    done = world.rl("squeeze", "hold", "--memory", "16M", "--for", "0.1")
    assert done.returncode == 0
    assert [line.split(",")[0] for line in done.stderr.splitlines()] == [
        "rl: Holding 16.0 MB of memory", "rl: Released",
    ]  # fmt: skip


def test_a_plain_user_can_hold_memory_and_be_squeezed(plain: Person):
    done = plain.rl("squeeze", "hold", "--memory", "16M", "--for", "0.1")
    assert "Holding 16.0 MB of memory" in done.stderr, done.stderr
    grows = "x = []\nwhile True: x.append(bytearray(1 << 20))"
    done = plain.rl("squeeze", "--memory", "100M", "--", plain.python, "-c", grows)
    assert "Reached 100 MB" in done.stderr, done.stderr


# --- a shell below its limit ----------------------------------------------------------------------


@pytest.mark.parametrize(("way", "more"), [("", ()), ("watch", ()), ("", ("--norc",))])
def test_a_shell_outlives_what_reaches_its_limit_and_is_limited_still(
    world: World, way: str, more: tuple[str, ...]
):
    needs("bash")
    (world.home / ".bashrc").write_text("PS1='mine> '\n")
    world.write("eat.py", "x = []\nwhile True:\n    x.append(bytearray(1 << 20))\n")
    by = ["--memory-by", way] if way else []
    words = [*RL, "squeeze", "--memory", "150M", *by, "--", "bash", *more]
    terminal = Terminal(words, world.env, world.project)
    try:
        at = terminal.wait(r"\[150M\] (?!mine).*[$#] " if more else r"\[150M\] mine> ")
        for _ in range(2):
            terminal.type(f"{sys.executable} eat.py\r")
            at = terminal.wait(r"Reached 150 MB at eat.py:3 .*; the shell goes on", after=at)
            terminal.type("echo $MEMLIMIT:$?\r")
            at = terminal.wait(r"150M:137\r", after=at)
        terminal.type("exit 0\r")
        terminal.wait(r"rl: memory: [\d.]+ MB at most, with the files it mapped", after=at)
        assert terminal.process.wait(300) == 0
    finally:
        terminal.close()


@pytest.mark.parametrize("way", ["", "watch"])
def test_at_a_limit_that_is_lifted_a_program_of_a_shell_stays_in_front_and_its_jobs_as_they_were(
    world: World, way: str
):
    needs("bash")
    (world.home / ".bashrc").write_text("PS1='mine> '\n")
    lines = "x = []\nfor _ in range(400):\n    x.append(b'x' * (1 << 20))\n"
    world.write("eat.py", lines + "print('got', input())\n")
    by = ["--memory-by", way] if way else []
    words = [*RL, "squeeze", "--memory", "150M", "--at-limit", "lift", *by, "--", "bash"]
    terminal = Terminal(words, world.env, world.project)
    try:
        at = with_a_stopped_job(terminal)
        terminal.type(f"{sys.executable} eat.py\r")
        at = terminal.wait("it goes on without the limit", after=at)
        terminal.type("words\r")
        at = terminal.wait("got words", after=at)
        terminal.type("jobs\r")
        at = terminal.wait(r"\[1\]\+  (Stopped|Running) ", after=at)
        assert terminal.screen[:at].endswith("Stopped "), terminal.screen
        continue_the_job(terminal, at)
    finally:
        terminal.close()


def test_where_nobody_may_look_a_program_below_a_limit_tells_its_own_line(world: World):
    world.write("eat.py", "x = []\nwhile True:\n    x.append(bytearray(1 << 20))\n")
    words = ["squeeze", "--memory", "150M", "--", sys.executable, "eat.py"]
    done = world.rl(*words, env={"RELAUNCH_WITHOUT": "py-spy"})
    assert "Reached 150 MB at eat.py:3." in done.stderr, done.stderr


# --- what cannot be -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("hold", "nothing to hold"),
        ("hold --memory much", "--memory takes a size such as 5G, 500M or 1.5GiB, not `much`"),
        ("hold --leave 0", "--leave takes a size"),
        ("hold --memory 1G --leave 1G", "--memory and --leave say two things"),
        ("hold --gpu 1G --gpu-leave 1G", "--gpu and --gpu-leave say two things"),
        ("hold --memory 900T", "only"),
        ("hold --leave 900T", "only"),
        ("hold --leave 1M", "that would leave 1.0 MB, and the machine needs"),
        ("hold --gpu-leave x=1G", "--gpu-leave takes SIZE or DEVICE=SIZE, not `x=1G`"),
        ("hold --gpu-leave 1G", "no GPU here"),
        ("hold --memory 1M --for soon", "--for takes a time"),
        ("hold --memory 1M -- bash", "hold runs no command"),
        ("hold --disk /tmp=1G", "--disk is no option of `rl squeeze hold`"),
        ("", "nothing to squeeze"),
        ("bash", "`bash` came before `--`"),
        ("hodl", "came before `--`   try: rl squeeze hold"),
        ("--leave 1G -- bash", "no option `--leave`"),
        ("--gpu-free 1G -- bash", "no GPU here"),
        ("--disk /nosuch=1G -- bash", "the directory does not exist"),
    ],
)
def test_what_cannot_be_gets_one_clear_line(world: World, words: str, line: str):
    hidden = {"LD_LIBRARY_PATH": str(world.root), "CUDA_VISIBLE_DEVICES": ""}
    done = world.rl("squeeze", *words.split(), env=hidden)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert line in done.stderr
