"""What the eyes tell, read: stacks of faulthandler, lines of strace, socket addresses."""

import struct

from relaunch.look.stacks import Frame
from relaunch.trial.blame.calls import read_address
from relaunch.trial.blame.hits import Hit, from_json, from_shim, read_stack, to_json
from relaunch.trial.blame.slow import Wait, joined
from relaunch.trial.blame.straced import read_strace


def test_the_stack_of_one_thread():
    text = (
        'Stack (most recent call first):\n  File "/a, line 3/b.py", line 5 in dump\n'
        '  File "/a/main.py", line 9 in <module>\n'
    )
    frames, whose = read_stack(text)
    assert [(one.file, one.line, one.function) for one in frames] == [
        ("/a, line 3/b.py", 5, "dump"),
        ("/a/main.py", 9, "<module>"),
    ]
    assert whose == ""


def test_of_the_stacks_of_all_threads_the_main_one_is_taken():
    text = (
        'Thread 0x00007f (most recent call first):\n  File "/t.py", line 1 in work\n\n'
        'Current thread 0x00008f (most recent call first):\n  File "/m.py", line 2 in <module>\n'
    )
    frames, whose = read_stack(text)
    assert ([one.file for one in frames], whose) == (["/m.py"], "main")


def test_what_was_cut_off_is_passed_over():
    assert read_stack('Stack (most recent call first):\n  File "/m.py", li')[0] == ()
    assert read_stack("") == ((), "")


def test_a_record_of_the_shim():
    fields = [
        b"7", b"1", b"8", b"28", b"write", b"3", b"4096", b"/x/\xff", b"0", b"10", b"5", b"2",
        b"1.5", b"python a.py", b'Stack (most recent call first):\n  File "/m.py", line 2 in f\n',
    ]  # fmt: skip
    hit = from_shim(fields)
    assert (hit.error, hit.path, hit.asked, hit.free_bytes, hit.count) == (
        "ENOSPC", "/x/\udcff", 4096, 0, 2,
    )  # fmt: skip
    assert from_json(to_json(hit)) == hit


def test_a_hit_is_kept_without_what_says_nothing():
    kept = to_json(Hit(error="ENOENT", call="open", path="/x"))
    assert kept == {"error": "ENOENT", "call": "open", "path": "/x"}


def test_lines_of_strace():
    lines = [
        '12 openat(AT_FDCWD</home/me>, "x\\303\\244.csv", O_RDONLY) = -1 ENOENT (No such file)',
        '12 write(3</data/out>, "aaa"..., 4096) = -1 ENOSPC (No space left on device)',
        "12 connect(4<socket:[9]>, {sa_family=AF_INET, sin_port=htons(80), "
        'sin_addr=inet_addr("10.0.0.7")}, 16) = -1 ECONNREFUSED (Connection refused)',
        '12 openat(AT_FDCWD</home/me>, "y", O_RDONLY) = -1 EINTR (Interrupted system call)',
        "12 +++ exited with 1 +++",
    ]  # fmt: skip
    found = read_strace(lines)
    assert [(one.error, one.path, one.fd, one.asked) for one in found] == [
        ("ENOENT", "/home/me/xä.csv", -1, 0),
        ("ENOSPC", "/data/out", 3, 4096),
        ("ECONNREFUSED", "10.0.0.7:80", 4, 0),
    ]


def test_addresses_are_written_as_people_do():
    assert (
        read_address(struct.pack("<H", 2) + struct.pack(">H", 80) + bytes((10, 0, 0, 7)))
        == "10.0.0.7:80"
    )
    six = struct.pack("<H", 10) + struct.pack(">H", 443) + bytes(4) + bytes(15) + b"\1"
    assert read_address(six) == "[::1]:443"
    assert read_address(struct.pack("<H", 1) + b"/run/x\0junk") == "/run/x"
    assert read_address(struct.pack("<H", 1) + b"\0hidden\0") == "@hidden"
    assert read_address(b"") == ""


def test_waits_of_one_line_are_one_and_the_longest_comes_first():
    def wait(call: str, took: float) -> Wait:
        frames = (Frame(file="/m.py", line=2, function="f"),)
        return Wait(call=call, subject="/x", total_s=took, longest_s=took, frames=frames)

    first, second = joined([wait("read", 0.2), wait("openat", 0.3), wait("read", 0.4)])
    assert (first.call, first.count, first.longest_s) == ("read", 2, 0.4)
    assert abs(first.total_s - 0.6) < 1e-9
    assert second.call == "openat"
