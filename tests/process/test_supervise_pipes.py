"""A program on pipes: its bytes, its exit, its signals and its tree."""

import os
import random
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.supervising import (
    PATIENCE_S,
    command,
    ended,
    environment,
    is_running,
    python,
    recorded,
    run,
    wait_until,
)

ON_EACH_SIGNAL = (
    "import os, signal, time",
    "def note(number, frame):",
    "    os.write(1, b'got %d\\n' % number)",
    "for number in signal.valid_signals():",
    "    if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD):",
    "        signal.signal(number, note)",
    "os.write(1, b'ready\\n')",
    "while True: time.sleep(0.01)",
)
FORWARDED = ["HUP", "INT", "QUIT", "USR1", "USR2", "TERM", "ALRM", "WINCH", "CONT", "TSTP", "URG"]


def start(folder, *words, options=None, **popen):
    popen = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **popen}
    return subprocess.Popen(command(*words), env=environment(folder, **(options or {})), **popen)


@pytest.mark.parametrize("seed", range(6))
def test_random_bytes_of_both_streams_come_out_and_are_recorded_exactly(tmp_path, seed):
    dice = random.Random(seed)
    for stream in (1, 2):
        size = dice.choice([0, 1, 65536, 1 << 20, 3_000_001])
        (tmp_path / f"wanted.{stream}").write_bytes(dice.randbytes(size))
    ran = run(
        tmp_path,
        *python(
            "import os, random, sys",
            f"dice = random.Random({seed})",
            f"left = {{n: open(r'{tmp_path}/wanted.%d' % n, 'rb').read() for n in (1, 2)}}",
            "while left:",
            "    n = dice.choice(list(left))",
            "    cut = dice.choice([1, 100, 4096, 65537, 1 << 20])",
            "    os.write(n, left[n][:cut]) if left[n] else None",
            "    left[n] = left[n][cut:]",
            "    if not left[n]: del left[n]",
        ),
    )
    for stream, data in ((1, ran.stdout), (2, ran.stderr)):
        wanted = (tmp_path / f"wanted.{stream}").read_bytes()
        assert data == wanted
        assert recorded(tmp_path, stream) == wanted


def test_a_hundred_thousand_tiny_writes_arrive_in_order(tmp_path):
    ran = run(tmp_path, *python("import os", "for n in range(100000): os.write(1, b'%d\\n' % n)"))
    assert ran.stdout == b"".join(b"%d\n" % n for n in range(100000))


def test_every_exit_code_is_seen_and_some_are_passed_through(tmp_path):
    lines = (
        "import os",
        "from relaunch.proc.supervise import supervise",
        "def code(n):",
        "    words = ['sh', '-c', 'exit %d' % n]",
        "    return supervise(words, cwd='/', env=os.environ, chunk=print).exit_code",
        "print([n for n in range(256) if code(n) != n])",
    )
    ran = subprocess.run(python(*lines), capture_output=True, text=True, timeout=300)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")
    codes = [0, 1, 125, 128, 255]
    assert [run(tmp_path, "sh", "-c", f"exit {code}").returncode for code in codes] == codes


@pytest.mark.parametrize("name", ["TERM", "KILL", "INT", "HUP", "SEGV", "ABRT", "PIPE", "USR1"])
def test_a_program_killed_by_a_signal_makes_us_die_of_it(tmp_path, name):
    ran = run(tmp_path, "sh", "-c", f"kill -{name} $$")
    number = getattr(signal, "SIG" + name)
    assert ran.returncode == -number
    assert ended(tmp_path)["signal"] == number
    assert ended(tmp_path)["exit_code"] is None


@pytest.mark.parametrize("name", FORWARDED)
@pytest.mark.parametrize("whom", ["us alone", "our whole group"])
def test_a_signal_reaches_the_program_exactly_once(tmp_path, name, whom):
    number = getattr(signal, "SIG" + name)
    rl = start(tmp_path, *python(*ON_EACH_SIGNAL), start_new_session=True)
    try:
        assert rl.stdout.readline() == b"ready\n"
        for _ in range(2):
            if name == "INT":
                time.sleep(2.1 if _ else 0)  # two within two seconds mean something else
            (os.kill if whom == "us alone" else os.killpg)(rl.pid, number)
            assert rl.stdout.readline() == b"got %d\n" % number
        os.kill(rl.pid, signal.SIGIO)  # comes after all that was forwarded before
        assert rl.stdout.readline() == b"got %d\n" % signal.SIGIO
    finally:
        os.killpg(rl.pid, signal.SIGKILL)
        rl.communicate()


def test_the_program_finds_its_signals_as_without_us(tmp_path):
    look = ("grep", "-E", "Sig(Blk|Ign|Cgt)", "/proc/self/status")
    bare = subprocess.run(look, capture_output=True, check=True).stdout
    assert run(tmp_path, *look).stdout == bare
    nohup = ("sh", "-c", 'trap "" HUP USR1; exec "$@"', "-")
    bare = subprocess.run((*nohup, *look), capture_output=True, check=True).stdout
    ran = subprocess.run(
        (*nohup, *command(*look)), env=environment(tmp_path), capture_output=True, check=True
    )
    assert ran.stdout == bare


def test_the_program_stays_in_our_process_group_and_keeps_stdin(tmp_path):
    script = "read line; echo $line; ps -o pgid= -p $$ | tr -d ' '"
    rl = start(tmp_path, "sh", "-c", script, stdin=subprocess.PIPE, start_new_session=True)
    out, _ = rl.communicate(b"typed\n", timeout=PATIENCE_S)
    assert out == b"typed\n%d\n" % rl.pid


def test_a_reader_that_leaves_gives_the_program_sigpipe(tmp_path):
    line = f"{' '.join(command('yes'))} | head -1; echo ${{PIPESTATUS[0]}}"
    ran = subprocess.run(
        ["bash", "-c", line], env=environment(tmp_path), capture_output=True, timeout=PATIENCE_S
    )
    assert ran.stdout == b"y\n141\n"


def test_both_streams_into_one_file_keep_their_order(tmp_path):
    words = python("import os", "for n in range(3000): os.write(1 + n % 2, b'%d\\n' % n)")
    rl = start(tmp_path, *words, stderr=subprocess.STDOUT)
    assert rl.communicate(timeout=PATIENCE_S)[0] == b"".join(b"%d\n" % n for n in range(3000))


def test_who_writes_to_a_program_that_closes_its_stdin_gets_sigpipe(tmp_path):
    words = shlex.join(command("sh", "-c", "exec <&-; while [ ! -e left ]; do sleep 0.02; done"))
    line = f"(yes; echo left > left) | {words}"
    ran = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, env=environment(tmp_path), timeout=PATIENCE_S, stderr=-3
    )
    assert ran.returncode == 0


def test_a_silent_program_that_watches_its_reader_sees_it_leave(tmp_path):
    watch = python("import select", "p = select.poll()", "p.register(1, 0)", "p.poll()")
    rl = start(tmp_path, *watch)
    rl.stdout.close()
    assert rl.wait(timeout=PATIENCE_S) == 0


def test_a_full_disk_behind_stdout_is_named_and_does_not_hang(tmp_path):
    with open("/dev/full", "wb") as full:
        rl = start(tmp_path, "sh", "-c", "echo one; echo two >&2", stdout=full, stderr=-1)
        assert rl.communicate(timeout=PATIENCE_S)[1] == b"two\n"
    assert ended(tmp_path)["relay_failed"] == "No space left on device"
    assert recorded(tmp_path, 1) == b"one\n"


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_a_closed_stream_is_closed_for_the_program_too(tmp_path, closed):
    look = f"for n in 0 1 2; do [ -e /proc/$$/fd/$n ] && echo $n; done > {tmp_path}/open; true"
    line = f'"$@" {closed}'
    bare = ["sh", "-c", line, "-", "sh", "-c", look]
    assert subprocess.run(bare, timeout=PATIENCE_S, check=False).returncode == 0
    wanted = (tmp_path / "open").read_text()
    ran = subprocess.run(
        ["sh", "-c", line, "-", *command("sh", "-c", look)],
        env=environment(tmp_path),
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ran.returncode, (tmp_path / "open").read_text()) == (0, wanted)


def test_who_outlives_the_program_is_ended_and_named(tmp_path):
    script = f"setsid sh -c 'echo $$ > {tmp_path}/far; exec sleep 1000' & sleep 1001 & echo done"
    assert run(tmp_path, "sh", "-c", script).stdout == b"done\n"
    names = sorted(str(who).split(" ", 1)[1] for who in ended(tmp_path)["ended_processes"])
    assert names == ["sleep 1000", "sleep 1001"]
    assert not is_running(int((tmp_path / "far").read_text()))


def test_who_ignores_being_asked_is_killed(tmp_path):
    deaf = f"trap '' TERM HUP; echo $$ > {tmp_path}/deaf; while :; do sleep 1; done"
    run(tmp_path, "sh", "-c", f'setsid sh -c "{deaf}" & while [ ! -s {tmp_path}/deaf ]; do :; done')
    assert not is_running(int((tmp_path / "deaf").read_text()))


def test_a_tee_that_ends_by_itself_is_waited_for_and_not_named(tmp_path):
    script = "exec > >(sleep 0.1; cat); echo last words"
    assert run(tmp_path, "bash", "-c", script).stdout == b"last words\n"
    assert ended(tmp_path)["ended_processes"] == []


def test_who_is_meant_to_live_on_does_and_does_not_hold_us(tmp_path):
    run(tmp_path, "sh", "-c", f"sleep 1002 & echo $! > {tmp_path}/pid", let_live=True)
    pid = int((tmp_path / "pid").read_text())
    try:
        assert is_running(pid)
        assert ended(tmp_path)["ended_processes"] == []
    finally:
        os.kill(pid, signal.SIGKILL)


def test_out_of_time_the_whole_tree_is_asked_to_end(tmp_path):
    script = f"setsid sleep 1003 & echo $! > {tmp_path}/pid; wait"
    ran = run(tmp_path, "sh", "-c", script, timeout_s=0.3)
    assert ran.returncode == -signal.SIGTERM
    assert ended(tmp_path)["timed_out"] is True
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_out_of_time_who_ends_when_asked_is_not_named(tmp_path):
    """It ends a moment after the program, whose end is what is waited for first."""
    slow = f"trap 'sleep 0.3; exit' TERM; echo > {tmp_path}/ready; while :; do sleep 0.01; done"
    deaf = f"trap '' TERM; echo > {tmp_path}/deaf; exec sleep 1004"
    script = f'sh -c "{slow}" & sh -c "{deaf}" & exec sleep 1003'
    run(tmp_path, "sh", "-c", script, timeout_s=1)
    named = [str(who).split(" ", 1)[1] for who in ended(tmp_path)["ended_processes"]]
    is_all_there = all((tmp_path / name).exists() for name in ("ready", "deaf"))
    assert named == ["sleep 1004"] or not is_all_there


def test_out_of_time_comes_even_when_nobody_reads(tmp_path):
    rl = start(tmp_path, "yes", options={"timeout_s": 0.3})
    try:
        children = Path(f"/proc/{rl.pid}/task/{rl.pid}/children")
        wait_until(lambda: len(children.read_text().split()) == 2)
        wait_until(lambda: len(children.read_text().split()) == 1)  # only the guard
    finally:
        rl.stdout.close()
        rl.wait(timeout=PATIENCE_S)


def test_a_second_interrupt_kills_a_tree_that_ignores_the_first(tmp_path):
    deaf = f"trap '' INT TERM; echo $$ > {tmp_path}/far; sleep 1004; sleep 1004"
    script = f"trap '' INT; setsid sh -c \"{deaf}\" & echo ready; wait; sleep 1005"
    rl = start(tmp_path, "sh", "-c", script, start_new_session=True)
    assert rl.stdout.readline() == b"ready\n"
    wait_until(lambda: (tmp_path / "far").exists() and (tmp_path / "far").read_text())
    os.kill(rl.pid, signal.SIGINT)
    time.sleep(0.1)
    os.kill(rl.pid, signal.SIGINT)
    assert rl.wait(timeout=PATIENCE_S) == -signal.SIGKILL
    rl.stdout.close()
    assert ended(tmp_path)["interrupted"] is True
    assert not is_running(int((tmp_path / "far").read_text()))


def test_one_interrupt_that_ends_the_program_is_told(tmp_path):
    rl = start(tmp_path, *python("print('ready')", "import time", "time.sleep(99)"), stderr=-1)
    assert rl.stdout.readline() == b"ready\n"
    rl.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in rl.communicate(timeout=PATIENCE_S)[1]
    assert rl.returncode == -signal.SIGINT
    assert ended(tmp_path)["interrupted"] is True


def test_killing_us_ends_the_program_and_its_far_children(tmp_path):
    script = f"setsid sleep 1006 & echo $! > {tmp_path}/pid; echo ready; wait"
    rl = start(tmp_path, "sh", "-c", script)
    assert rl.stdout.readline() == b"ready\n"
    rl.kill()
    rl.communicate()
    far = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_running(far))


def test_a_stopped_program_stops_us_and_both_go_on(tmp_path):
    program = python("import os, signal", "print('one')", "os.kill(os.getpid(), signal.SIGTSTP)",
                     "print('two')")  # fmt: skip
    # A parent in another group of the same session: else no Ctrl-Z would stop anybody.
    rl = start(tmp_path, *program, process_group=0)
    _, status = os.waitpid(rl.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert os.WSTOPSIG(status) == signal.SIGTSTP
    os.killpg(rl.pid, signal.SIGCONT)
    out, _ = rl.communicate(timeout=PATIENCE_S)
    assert (out, rl.returncode) == (b"one\ntwo\n", 0)


def test_children_we_had_before_are_neither_ended_nor_collected(tmp_path):
    lines = (
        "import os, sys",
        "from relaunch.proc.supervise import supervise",
        "helper = os.posix_spawnp('sh', ['sh', '-c', 'sleep 0.4; exit 7'], os.environ)",
        "supervise(['sh', '-c', 'sleep 1007 &'], cwd='/', env=os.environ, chunk=lambda *_: None)",
        "print(os.waitstatus_to_exitcode(os.waitpid(helper, 0)[1]))",
    )
    ran = subprocess.run(python(*lines), capture_output=True, text=True, timeout=PATIENCE_S)
    assert (ran.stdout, ran.stderr) == ("7\n", "")


def test_orphans_that_end_meanwhile_leave_no_zombies(tmp_path):
    script = "for n in 1 2 3 4 5 6; do (true &) ; done; read wait"
    rl = start(tmp_path, "sh", "-c", script, stdin=subprocess.PIPE)
    children = Path(f"/proc/{rl.pid}/task/{rl.pid}/children")
    wait_until(lambda: (tmp_path / "rl.pid").exists() and len(children.read_text().split()) == 2)
    time.sleep(0.2)
    assert len(children.read_text().split()) == 2
    rl.communicate(b"\n", timeout=PATIENCE_S)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("no-such-command",), 127, "`no-such-command`: command not found on PATH"),
        (("./missing",), 127, "`./missing`: no such file"),
        (("/",), 126, "`/` is a directory"),
        (("./plain.py",), 126, "`./plain.py` is not executable | python ./plain.py"),
        (("./badly",), 126, "`./badly` has a bad interpreter: `/no/such/interpreter`"),
        (("",), 127, "the command is empty"),
    ],
)
def test_a_program_that_cannot_start_is_one_clear_line(tmp_path, words, code, message):
    (tmp_path / "plain.py").write_text("")
    (tmp_path / "badly").write_text("#!/no/such/interpreter\n")
    (tmp_path / "badly").chmod(0o755)
    ran = run(tmp_path, *words, cwd=str(tmp_path))
    assert ran.returncode == code
    assert message in ran.stderr.decode()
    assert ran.stderr.count(b"\n") == 1


def test_a_script_without_an_interpreter_line_is_run_by_sh(tmp_path):
    (tmp_path / "plain").write_text('echo "$0 $1"\n')
    (tmp_path / "plain").chmod(0o755)
    ran = run(tmp_path, "./plain", "x", cwd=str(tmp_path))
    assert ran.stdout == b"./plain x\n"


def test_quiet_records_without_passing_on(tmp_path):
    ran = run(tmp_path, "sh", "-c", "echo out; echo err >&2", quiet=True)
    assert (ran.stdout, ran.stderr) == (b"", b"")
    assert (recorded(tmp_path, 1), recorded(tmp_path, 2)) == (b"out\n", b"err\n")


def test_our_own_signal_handlers_are_as_before(tmp_path):
    lines = (
        "import os, signal",
        "from relaunch.proc.supervise import supervise",
        "def state(): return [(s, signal.getsignal(s)) for s in signal.valid_signals()], "
        "signal.pthread_sigmask(0, []), sorted(os.listdir('/proc/self/fd'))",
        "before = state()",
        "supervise(['true'], cwd='/', env=os.environ, chunk=lambda *_: None, timeout_s=9)",
        "print(state() == before)",
    )
    ran = subprocess.run(python(*lines), capture_output=True, text=True, timeout=PATIENCE_S)
    assert (ran.stdout, ran.stderr) == ("True\n", "")


def test_the_hot_path_stays_free_of_dear_imports():
    dear = {"re", "enum", "signal", "subprocess", "threading", "ctypes", "typing", "shutil", "json"}
    code = "import sys, relaunch.proc.supervise, relaunch.proc.onterminal; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = "
                          f"{sys.path!r}; {code}"], capture_output=True, text=True)  # fmt: skip
    assert not dear & set(ran.stdout.split()), ran.stderr
