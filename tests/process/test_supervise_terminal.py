"""A program on a terminal: job control, keys, window size, signals, and the terminal given back."""

import os
import re
import shlex
import signal
import sys
import time

import pytest
from tests.supervising import (
    PATIENCE_S,
    Screen,
    command,
    ended,
    environment,
    is_running,
    python,
    recorded,
    wait_until,
)

ON_EACH_SIGNAL = (
    "import os, signal, time",
    "def note(number, frame):",
    "    os.write(1, b'got %d.\\n' % number)",
    "for number in signal.valid_signals():",
    "    if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD):",
    "        signal.signal(number, note)",
    "os.write(1, b'ready\\n')",
    "while True: time.sleep(0.01)",
)


@pytest.fixture
def screens(tmp_path):
    opened = []

    def show(*argv, options=None, **more):
        screen = Screen(*argv, env=environment(tmp_path, **(options or {})), **more)
        opened.append(screen)
        return screen

    yield show
    for screen in opened:
        screen.close()


@pytest.fixture
def shell(screens):
    """An interactive bash, ready for a line."""
    screen = screens("bash", "--norc", "--noprofile", "-i")
    screen.until(b"$ ")
    return screen


def line(folder, *words):
    """What to type to run `words`; short, so that its echo is not mistaken for its output."""
    job = folder / "job"
    job.write_text(f"#!/bin/sh\nexec {shlex.join(command(*words))}\n")
    job.chmod(0o755)
    return bytes(job)


def test_the_program_sees_a_terminal_of_the_same_size(screens):
    look = "test -t 0 && test -t 1 && test -t 2 && stty size; tty; exit 9"
    screen = screens(*command("sh", "-c", look), size=(33, 101))
    assert screen.end() == 9
    assert screen.text.startswith(b"33 101\r\n/dev/pts/")


def test_output_is_recorded_as_it_was_shown(screens, tmp_path):
    screen = screens(*command("sh", "-c", "seq 1 20000; printf '\\033[1mend'"))
    assert screen.end() == 0
    assert screen.text == b"".join(b"%d\r\n" % n for n in range(1, 20001)) + b"\x1b[1mend"
    assert recorded(tmp_path, 1) == screen.text


def test_a_stderr_that_is_no_terminal_stays_apart(screens, tmp_path):
    words = shlex.join(command("sh", "-c", "echo out; echo err >&2; test -t 2 || echo no tty"))
    screen = screens("sh", "-c", f"{words} 2> {tmp_path}/err")
    assert screen.end() == 0
    assert screen.text == b"out\r\nno tty\r\n"
    assert (tmp_path / "err").read_bytes() == b"err\n"
    assert recorded(tmp_path, 2) == b"err\n"


def test_a_stdin_that_is_no_terminal_is_inherited(screens):
    screen = screens("sh", "-c", f"echo from the pipe | {shlex.join(command('cat'))}")
    assert screen.end() == 0
    assert screen.text == b"from the pipe\r\n"


def test_keys_reach_the_program_and_end_of_file_ends_it(screens):
    screen = screens(*command("cat"))
    screen.type(b"hello\r")
    screen.until(b"hello\r\nhello\r\n")
    screen.type(b"\x04")
    assert screen.end() == 0


def test_a_large_paste_into_a_slow_reader_is_complete(screens):
    program = python(
        "import sys, termios, tty, time",
        "tty.setraw(0)",
        "print('ready', flush=True)",
        "time.sleep(0.3)",
        "got = b''",
        "while len(got) < 300000: got += sys.stdin.buffer.raw.read(65536)",
        "print('sum', sum(got), len(got))",
    )
    screen = screens(*command(*program))
    screen.until(b"ready")
    paste = bytes(32 + n * n % 90 for n in range(300000))
    pid = os.fork()
    if pid == 0:
        rest = memoryview(paste)
        while rest:
            rest = rest[os.write(screen.fd, rest) :]
        os._exit(0)
    screen.until(b"sum %d 300000" % sum(paste))
    os.waitpid(pid, 0)
    assert screen.end() == 0


def test_a_changed_window_size_is_told_once(screens):
    program = python(
        "import os, signal, time",
        "def told(*_): print('now', *os.get_terminal_size())",
        "signal.signal(signal.SIGWINCH, told)",
        "signal.signal(signal.SIGUSR1, lambda *_: exit(0))",
        "print('ready')",
        "while True: time.sleep(0.01)",
    )
    screen = screens(*command(*program))
    screen.until(b"ready")
    screen.resize(40, 120)
    screen.until(b"now 120 40")
    os.kill(screen.pid, signal.SIGUSR1)
    assert screen.end() == 0
    assert b"now" not in screen.text


@pytest.mark.parametrize(
    "name", ["HUP", "INT", "QUIT", "USR1", "USR2", "TERM", "ALRM", "WINCH", "CONT", "TSTP", "URG"]
)
@pytest.mark.parametrize("whom", ["us alone", "our whole group"])
def test_a_signal_reaches_the_program_exactly_once(screens, name, whom):
    number = getattr(signal, "SIG" + name)
    screen = screens(*command(*python(*ON_EACH_SIGNAL)))
    screen.until(b"ready")
    (os.kill if whom == "us alone" else os.killpg)(screen.pid, number)
    screen.until(b"got %d." % number)
    os.kill(screen.pid, signal.SIGIO)
    assert b"got %d." % number not in screen.until(b"got %d." % signal.SIGIO)


@pytest.mark.parametrize("end", ["exit 3", "kill -TERM $$", "kill -KILL $$", "stty raw -echo"])
def test_the_terminal_is_given_back_as_it_was(screens, end):
    words = shlex.join(command("sh", "-c", end))
    screen = screens("sh", "-c", f"{words}; echo after; read stay")
    before = screen.settings()
    screen.until(b"after")
    assert screen.settings() == before


def test_the_terminal_is_raw_meanwhile_and_given_back_when_we_are_terminated(screens):
    words = shlex.join(command("sh", "-c", "echo ready; exec sleep 1000"))
    screen = screens("sh", "-c", f"{words}; echo after; read stay")
    before = screen.settings()
    screen.until(b"ready")
    assert screen.settings() != before
    folder = environment_folder(screen)
    os.kill(int((folder / "rl.pid").read_text()), signal.SIGTERM)
    screen.until(b"after")
    assert screen.settings() == before


def test_the_terminal_is_given_back_even_when_we_are_killed(screens, tmp_path):
    script = f"setsid sleep 1010 & echo $! > {tmp_path}/far; echo ready; wait"
    words = shlex.join(command("sh", "-c", script))
    screen = screens("sh", "-c", f"{words}; echo after; read stay")
    before = screen.settings()
    screen.until(b"ready")
    os.kill(int((tmp_path / "rl.pid").read_text()), signal.SIGKILL)
    screen.until(b"after")
    wait_until(lambda: screen.settings() == before)
    wait_until(lambda: not is_running(int((tmp_path / "far").read_text())))


def environment_folder(screen):
    from pathlib import Path

    block = Path(f"/proc/{screen.pid}/environ").read_bytes().split(b"\0")
    return Path(next(word[5:].decode() for word in block if word.startswith(b"SEEN=")))


def test_ctrl_c_interrupts_the_program_and_is_told(screens, tmp_path):
    screen = screens(*command(*python("import time", "print('ready')", "time.sleep(1000)")))
    screen.until(b"ready")
    screen.type(b"\x03")
    assert screen.end() == -signal.SIGINT
    assert ended(tmp_path)["interrupted"] is True


def test_a_second_ctrl_c_kills_a_tree_that_ignores_the_first(screens, tmp_path):
    deaf = f"trap '' INT TERM HUP; echo $$ > {tmp_path}/far; sleep 1011; sleep 1011"
    script = f"trap '' INT; setsid sh -c \"{deaf}\" & echo ready; wait; sleep 1012"
    screen = screens(*command("sh", "-c", script))
    screen.until(b"ready")
    wait_until(lambda: (tmp_path / "far").exists() and (tmp_path / "far").read_text())
    screen.type(b"\x03")
    screen.until(b"^C")
    screen.type(b"\x03")
    assert screen.end() == -signal.SIGKILL
    assert ended(tmp_path)["interrupted"] is True
    assert not is_running(int((tmp_path / "far").read_text()))


def test_ctrl_c_is_only_a_key_to_a_program_that_wants_it_so(screens, tmp_path):
    program = python(
        "import sys, tty",
        "tty.setraw(0)",
        "print('ready')",
        "print(sys.stdin.buffer.raw.read(1), sys.stdin.buffer.raw.read(1))",
    )
    screen = screens(*command(*program))
    screen.until(b"ready")
    screen.type(b"\x03")
    time.sleep(0.05)
    screen.type(b"\x03")
    assert screen.end() == 0
    assert rb"b'\x03' b'\x03'" in screen.text
    assert ended(tmp_path)["interrupted"] is False


@pytest.mark.parametrize("rounds", [1, 3])
def test_ctrl_z_and_fg_in_a_shell(shell, tmp_path, rounds):
    program = python(
        "import sys",
        "print('ready')",
        "for line in sys.stdin: print('<' + line.strip() + '>')",
    )
    shell.type(line(tmp_path, *program) + b"\n")
    shell.until(b"ready")
    for n in range(rounds):
        shell.type(b"\x1a")
        shell.until(b"Stopped")
        shell.until(b"$ ")
        shell.type(b"stty -a | grep -o ' icanon'; echo shell$((6*7))\n")
        shell.until(b" icanon")
        shell.until(b"shell42")
        shell.until(b"$ ")
        shell.type(b"fg\n")
        shell.until(b"job\r\n")
        shell.type(b"word%d\n" % n)
        shell.until(b"<word%d>" % n)
    shell.type(b"\x04")
    shell.until(b"$ ")
    shell.type(b"echo code=$?\n")
    shell.until(b"code=0")


def test_ctrl_z_and_fg_when_output_goes_to_a_pipe(shell, tmp_path):
    program = python("import sys", "print('ready')", "print('<' + sys.stdin.readline() + '>')")
    shell.type(line(tmp_path, *program) + b" | cat\n")
    shell.until(b"ready")
    shell.type(b"\x1a")
    shell.until(b"Stopped")
    shell.until(b"$ ")
    shell.type(b"fg\n")
    shell.until(b"job | cat\r\n")
    shell.type(b"word\n")
    shell.until(b"<word")
    shell.until(b"$ ")


def test_bg_lets_it_go_on_without_the_terminal(shell, tmp_path):
    # Not a shell loop: a Ctrl-Z between its vfork and exec is lost, without us too.
    program = python(
        "import os, time",
        "print('ready')",
        "while not os.path.exists('go'): time.sleep(0.02)",
        "print('went on')",
    )
    shell.type(f"cd {tmp_path}; ".encode() + line(tmp_path, *program) + b"\n")
    shell.until(b"ready\r\n")
    shell.type(b"\x1a")
    shell.until(b"Stopped")
    shell.until(b"$ ")
    shell.type(b"bg\n")
    shell.until(b"$ ")
    shell.type(b"touch go\n")
    shell.until(b"went on")
    shell.type(b"echo shell$((6*7))\n")
    shell.until(b"shell42")


def test_a_start_in_the_background_neither_hangs_nor_touches_the_terminal(shell, tmp_path):
    before = shell.settings()
    shell.type(line(tmp_path, "sh", "-c", "echo in the $((1+1))nd row; stty -a") + b" &\n")
    shell.until(b"in the 2nd row")
    assert re.search(rb"[^-]icanon", shell.until(b"iexten"))
    shell.type(b"wait; echo shell$((6*7))\n")
    shell.until(b"shell42")
    shell.until(b"$ ")
    wait_until(lambda: shell.settings() == before)


def test_a_background_start_that_comes_forward_gets_the_keys(shell, tmp_path):
    shell.type(line(tmp_path, "sh", "-c", "echo ready; read word; echo got $word") + b" &\n")
    shell.until(b"ready")
    shell.type(b"fg\n")
    shell.until(b"job\r\n")
    shell.type(b"late\n")
    shell.until(b"got late")
    shell.until(b"$ ")


def test_without_anybody_to_continue_us_ctrl_z_stops_nothing(screens):
    # We lead the session, as in `tmux new-window rl ...`: nobody could type `fg`.
    screen = screens(*command("cat"))
    screen.type(b"one\r")
    screen.until(b"one\r\none\r\n")
    screen.type(b"\x1a")
    screen.until(b"^Z")
    screen.type(b"two\r")
    screen.until(b"two\r\ntwo\r\n")
    screen.type(b"\x04")
    assert screen.end() == 0


def test_a_hung_up_terminal_ends_the_program(screens, tmp_path):
    screen = screens(*command("sh", "-c", f"echo $$ > {tmp_path}/pid; echo ready; sleep 1013"))
    screen.until(b"ready")
    os.close(screen.fd)
    screen.fd = os.open(os.devnull, os.O_RDONLY)
    _, status = os.waitpid(screen.pid, 0)
    screen.pid = 0
    assert os.waitstatus_to_exitcode(status) == -signal.SIGHUP
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_a_background_program_ends_with_its_terminal(shell, tmp_path):
    shell.type(line(tmp_path, "sh", "-c", "echo ready; read word") + b" &\n")
    shell.until(b"ready")
    us = int((tmp_path / "rl.pid").read_text())
    os.kill(shell.pid, signal.SIGKILL)
    os.waitpid(shell.pid, 0)
    shell.pid = 0
    os.close(shell.fd)
    shell.fd = os.open(os.devnull, os.O_RDONLY)
    wait_until(lambda: not is_running(us))
    assert ended(tmp_path)["signal"] == signal.SIGHUP


def test_out_of_time_on_a_terminal(screens, tmp_path):
    screen = screens(*command("sh", "-c", "sleep 1014"), options={"timeout_s": 0.3})
    assert screen.end() == -signal.SIGTERM
    assert ended(tmp_path)["timed_out"] is True


def test_who_outlives_the_program_on_a_terminal_is_ended_or_let_live(screens, tmp_path):
    script = f"sleep 1015 & echo $! > {tmp_path}/pid"
    assert screens(*command("sh", "-c", script)).end() == 0
    assert [str(who).split(" ", 1)[1] for who in ended(tmp_path)["ended_processes"]] == [
        "sleep 1015"
    ]
    assert screens(*command("sh", "-c", script), options={"let_live": True}).end() == 0
    pid = int((tmp_path / "pid").read_text())
    assert is_running(pid)
    os.kill(pid, signal.SIGKILL)


def test_a_program_that_cannot_start_leaves_the_terminal_alone(screens, tmp_path):
    (tmp_path / "badly").write_text("#!/no/such/interpreter\n")
    (tmp_path / "badly").chmod(0o755)
    words = shlex.join(command(f"{tmp_path}/badly"))
    screen = screens("sh", "-c", f"{words}; echo code=$?; read stay")
    before = screen.settings()
    screen.until(b"bad interpreter")
    screen.until(b"code=126")
    assert screen.settings() == before


def test_a_full_screen_program_draws_again_after_fg(shell, tmp_path):
    program = python(
        "import signal, sys, time",
        "signal.signal(signal.SIGWINCH, lambda *_: print('drawn'))",
        "print('ready')",
        "while True: time.sleep(0.01)",
    )
    shell.type(line(tmp_path, *program) + b"\n")
    shell.until(b"ready")
    shell.type(b"\x1a")
    shell.until(b"Stopped")
    shell.until(b"$ ")
    shell.type(b"fg\n")
    shell.until(b"drawn")
    shell.type(b"\x03")
    shell.until(b"$ ")


def test_vim_like_self_suspension_stops_us(shell, tmp_path):
    program = python("import os, signal", "print('ready')", "os.kill(0, signal.SIGTSTP)",
                     "print('on', 'again')")  # fmt: skip
    shell.type(line(tmp_path, *program) + b"\n")
    shell.until(b"Stopped")
    shell.until(b"$ ")
    shell.type(b"fg\n")
    shell.until(b"on again")
    shell.until(b"$ ")


def test_python_itself_is_interactive_below_us(screens):
    screen = screens(*command(sys.executable, "-i", "-q"))
    screen.until(b">>> ", PATIENCE_S)
    screen.type(b"6 * 7\r")
    screen.until(b"42\r\n>>> ")
    screen.type(b"\x04")
    assert screen.end() == 0
