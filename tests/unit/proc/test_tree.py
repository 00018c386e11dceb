"""Who is below whom, read from text."""

import os
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from relaunch.proc.tree import Process, below, is_warm, processes, read_stat

NAMES = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=15)


def process(pid, parent):
    return Process(pid=pid, parent=parent, session=1, state="S", name="p")


@given(NAMES)
def test_a_name_with_blanks_and_brackets_does_not_confuse(name):
    read = read_stat(f"42 ({name}) S 7 42 9 34816 1 4194560 1 2 3\n")
    assert read == Process(pid=42, parent=7, session=9, state="S", name=name)


@given(st.text())
def test_text_that_is_no_stat_gives_none_or_a_process(text):
    assert read_stat(text) is None or isinstance(read_stat(text), Process)


def test_all_descendants_are_found_and_those_of_helpers_are_not():
    everyone = [process(2, 1), process(3, 2), process(4, 3), process(5, 1), process(6, 5)]
    everyone.append(process(9, 8))
    assert {p.pid for p in below(1, everyone)} == {2, 3, 4, 5, 6}
    assert {p.pid for p in below(1, everyone, without={5})} == {2, 3, 4}


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 20)), max_size=40))
def test_a_circle_of_parents_ends(pairs):
    everyone = [process(pid, parent) for pid, parent in pairs]
    found = below(1, everyone)
    assert len(found) <= len(everyone)


def test_we_read_our_own_stat_as_it_is():
    with open("/proc/self/stat") as file:
        read = read_stat(file.read())
    assert read is not None
    assert (read.pid, read.parent, read.session) == (os.getpid(), os.getppid(), os.getsid(0))


def test_only_processes_of_our_runner_count_as_snapshots_and_hosts(tmp_path):
    runner = tmp_path / "inside/warm/main.py"
    runner.parent.mkdir(parents=True)
    runner.write_text(
        "import sys\n"
        "open('/proc/self/comm', 'w').write(sys.argv[1])\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    other = tmp_path / "main.py"
    other.write_text(runner.read_text())
    cases = {
        (str(runner), "rl-snapshot"): True,
        (str(runner), "rl-host"): True,
        (str(runner), "python"): False,
        (str(other), "rl-snapshot"): False,
    }
    for words, expected in cases.items():
        with subprocess.Popen(
            [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            assert child.stdin is not None
            child.stdout.readline()
            (found,) = [one for one in processes() if one.pid == child.pid]
            assert is_warm(found) is expected, words
            child.stdin.close()
