"""Texts of /proc, read."""

import os

import pytest

from relaunch.look.tree import PAGE
from relaunch.look.usage import Process, Stat, command, read_io, read_peak

LINE = (
    b"4242 (a) b (c) S 17 4242 4242 0 -1 4194304 100 0 0 0 250 50 30 20 20 0 12 0 987654 "
    b"123456789 2048 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"
)


def test_a_name_with_blanks_and_brackets_does_not_shift_the_fields():
    stat = Stat(LINE)
    assert (stat.name, stat.state, stat.parent) == ("a) b (c", "S", 17)
    assert (stat.threads, stat.started, stat.rss) == (12, 987654, 2048 * PAGE)


def test_cpu_is_its_own_and_that_of_children_it_waited_for():
    assert Stat(LINE).cpu_s == pytest.approx(350 / os.sysconf("SC_CLK_TCK"))


@pytest.mark.parametrize("text", [b"", b"nothing", b"1 (x) S 3"])
def test_what_is_no_stat_is_refused(text: bytes):
    with pytest.raises(ValueError, match="no /proc/PID/stat"):
        Stat(text)


def test_io_is_the_larger_of_calls_and_disk():
    text = b"rchar: 100\nwchar: 7\nsyscr: 1\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 0\n"
    assert read_io(text) == (4096, 7)
    assert read_io(b"") == (0, 0)


def test_the_record_of_a_process_is_found_among_its_status():
    assert read_peak(b"Name:\tx\nVmPeak:\t 9 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n") == 2 << 20
    assert read_peak(b"Name:\tkthread\n") == 0


def test_we_see_ourselves():
    me = Process(os.getpid())
    assert me.look(0.0)
    assert me.rss > 1 << 20
    assert me.peak >= me.rss
    assert me.threads >= 1
    assert me.fds
    assert me.argv == command(os.getpid())
    assert me.user == os.getuid()
    me.close()


def test_no_process_is_an_oserror():
    with pytest.raises(OSError, match="4194305"):
        Process(4_194_305)
