"""What the kernel's log says of processes that it ended for lack of memory."""

import pytest

from relaunch.trial.place.memory.oom import is_told_killed, read_log

CGROUP = (
    "3,425,3598684005,-;Memory cgroup out of memory: Killed process 8445 (python3) "
    "total-vm:112168kB, anon-rss:102016kB, file-rss:6608kB, shmem-rss:24kB, UID:0 pgtables:264kB "
    "oom_score_adj:0\n"
)
MACHINE = (
    "3,901,77,-;Out of memory: Killed process 12 (my (odd) name) total-vm:9kB, anon-rss:4096kB, "
    "file-rss:0kB, shmem-rss:0kB, UID:1000\n"
)
OLD = (
    "3,1,5,-;Memory cgroup out of memory: Kill process 7 (a) score 9\n"
    "3,2,5,-;Out of memory (oom_kill_allocating_task): Killed process 7 (a) total-vm:1kB, "
    "anon-rss:8kB, file-rss:0kB\n"
)
OTHER = "6,422,3598683966,-;[  pid  ]   uid  tgid total_vm      rss\n"


def test_a_kill_at_the_limit_of_a_group():
    (kill,) = read_log([OTHER, CGROUP])
    assert (kill.pid, kill.name, kill.in_group) == (8445, "python3", True)
    assert kill.bytes == (102016 + 24) << 10


def test_a_kill_at_the_end_of_the_machines_memory():
    (kill,) = read_log([MACHINE])
    assert (kill.pid, kill.name, kill.in_group) == (12, "my (odd) name", False)
    assert kill.bytes == 4 << 20


def test_words_of_other_kernels():
    (kill,) = read_log(OLD.splitlines())
    assert (kill.pid, kill.bytes, kill.in_group) == (7, 8192, False)


def test_anything_else_is_no_kill():
    assert read_log([OTHER, "", "no record at all", "1,2,3"]) == []


@pytest.mark.parametrize(
    "line",
    [
        "bash: line 1: 8445 Killed                  python train.py",
        "RuntimeError: DataLoader worker (pid 8445) is killed by signal: Killed.",
        "RuntimeError: DataLoader worker (pid(s) 8445) exited unexpectedly, killed by signal 9",
        "  exitcode  : -9 (pid: 8445)",
        "  traceback : Signal 9 (SIGKILL) received by PID 8445",
    ],
)
def test_a_line_that_says_of_a_process_that_it_was_killed_names_it(line):
    assert is_told_killed(f"begin\n{line}\nend\n", 8445)
    assert not is_told_killed(f"begin\n{line}\nend\n", 844)


@pytest.mark.parametrize(
    "text", ["Killed\nread 8445 rows\n", "step 8445\n", "8445\n", "84450 Killed\n", "0x8445-9\n"]
)
def test_a_bare_number_in_the_output_names_nobody(text):
    assert not is_told_killed(text, 8445)
