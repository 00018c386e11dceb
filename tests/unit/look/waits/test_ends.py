"""Who is at the other end: of pipes, sockets, shared memory, locks on files."""

from __future__ import annotations

import mmap
import os
import socket
import tempfile

from relaunch.inside.hung import SIGNAL
from relaunch.look.waits import locks, shared
from relaunch.look.waits.holders import READ, WRITE, Holders
from relaunch.look.waits.kernelwork import ring_is_idle
from relaunch.look.waits.proc import read
from relaunch.look.waits.signals import read_awaited
from relaunch.look.waits.sockets import read_tcp, sockets, time_limits


def test_the_ends_of_a_pipe_are_told_apart():
    near, far = os.pipe()
    name = os.readlink(f"/proc/self/fd/{near}")
    holders = Holders([os.getpid()])
    assert holders.inside(name, READ) == {os.getpid()} == holders.inside(name, WRITE)
    os.close(far)
    assert Holders([os.getpid()]).inside(name, WRITE) == frozenset()
    assert holders.outside(name) == frozenset()
    os.close(near)


def test_the_other_end_of_a_socket_pair_and_of_a_connection_is_found():
    a, b = socket.socketpair()
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    one, _ = server.accept()
    inodes = [os.fstat(s.fileno()).st_ino for s in (a, b, client, one, server)]
    found = sockets(os.getpid())
    assert found[inodes[0]].peer == inodes[1]
    assert found[inodes[2]].peer == inodes[3]
    assert found[inodes[3]].peer == inodes[2]
    assert found[inodes[4]].listens
    for s in (a, b, client, one, server):
        s.close()


def test_a_connection_that_nobody_accepted_yet_is_in_the_hands_of_who_listens():
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    found = sockets(os.getpid())
    assert found[os.fstat(client.fileno()).st_ino].peer == os.fstat(server.fileno()).st_ino
    client.close()
    server.close()


def test_the_other_end_on_another_machine_has_an_address_and_no_socket():
    head = b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
    row = (b"   1: 0A00000A:9C40 08080808:01BB 01 00000000:00000000 00:00000000 00000000"
           b"     0        0 4711 1 0\n")  # fmt: skip
    (found,) = read_tcp(head + row)
    assert (found.inode, found.peer, found.remote) == (4711, 0, "8.8.8.8:443")


def test_ipv4_within_ipv6_is_the_same_connection():
    rows = (
        b"   1: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000 0 0 11 1\n"
        b"   2: 0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000100007F:9C40 01"
        b" 00000000:00000000 00:00000000 00000000 0 0 12 1\n"
    )
    assert [one.peer for one in read_tcp(rows)] == [12, 11]


def test_the_time_limit_of_a_socket_is_seen_though_no_call_shows_it():
    import struct

    a, b = socket.socketpair()
    assert time_limits(os.getpid(), a.fileno()) == (0.0, 0.0)
    a.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 7, 0))
    assert time_limits(os.getpid(), a.fileno()) == (7.0, 0.0)
    a.close()
    b.close()


def test_shared_memory_is_told_from_ones_own():
    import ctypes

    maps = read(f"/proc/{os.getpid()}/maps")
    own = ctypes.create_string_buffer(8)
    assert shared.mapping_at(maps, ctypes.addressof(own)) is None
    block = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(block))
    found = shared.mapping_at(read(f"/proc/{os.getpid()}/maps"), address)
    assert found is not None
    assert not shared.has_name(found)
    assert shared.sharers(found.key, [os.getpid()]) == {os.getpid()}


def test_memory_of_a_file_with_a_name_may_be_found_by_others():
    import ctypes

    with tempfile.NamedTemporaryFile() as file:
        file.truncate(mmap.PAGESIZE)
        block = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(block))
        found = shared.mapping_at(read(f"/proc/{os.getpid()}/maps"), address)
        assert found is not None
        assert shared.has_name(found)


def test_a_semaphore_under_another_name_than_it_was_made_with_has_a_name():
    import _multiprocessing  # type: ignore[import-not-found]  # no stub has it

    name = f"/rl-test-unit-{os.getpid()}"
    lock = _multiprocessing.SemLock(1, 1, 1, name, False)
    try:
        found = shared.mapping_at(read(f"/proc/{os.getpid()}/maps"), lock.handle)
        assert found is not None
        assert shared.has_name(found)
    finally:
        _multiprocessing.sem_unlink(name)
    assert not shared.has_name(found)


def test_who_has_the_lock_on_a_file_stands_above_who_waits_for_it():
    text = (
        b"1: FLOCK  ADVISORY  WRITE 812 08:01:99 0 EOF\n"
        b"1: -> FLOCK  ADVISORY  WRITE 900 08:01:99 0 EOF\n"
        b"2: POSIX  ADVISORY  WRITE 700 08:01:98 0 EOF\n"
    )
    assert locks.holders_of(text, 900) == frozenset((812,))
    assert locks.holders_of(text, 700) is None


RING = (
    b"pos:\t0\nSqMask:\t0xff\nSqHead:\t25\nSqTail:\t25\nCachedSqHead:\t25\nCqMask:\t0x1ff\n"
    b"CqHead:\t25\nCqTail:\t25\nCachedCqTail:\t25\nSQEs:\t0\nPollList:\nCqOverflowList:\n"
)


def test_a_ring_with_something_under_way_may_wake_its_process():
    assert ring_is_idle(RING)
    assert not ring_is_idle(RING.replace(b"CachedCqTail:\t25", b"CachedCqTail:\t24"))
    assert not ring_is_idle(RING.replace(b"SqTail:\t25", b"SqTail:\t26"))
    assert not ring_is_idle(RING.replace(b"PollList:\n", b"PollList:\n  op=6, task_works=0\n"))
    assert not ring_is_idle(b"pos:\t0\n")


def status(*signals: int) -> bytes:
    return b"Name:\tx\nSigCgt:\t%016x\n" % sum(1 << (one - 1) for one in signals)


def test_pythons_own_handlers_are_not_waited_for():
    assert read_awaited(status(2), is_first=True) == ""
    assert read_awaited(status(2, 4, 7, 8, 11, 17, 33), is_first=True) == ""


def test_a_signal_that_a_person_sends_may_set_a_program_going():
    assert read_awaited(status(2, 10), is_first=False) == "SIGUSR1"
    assert read_awaited(status(14), is_first=False) == "SIGALRM"
    assert read_awaited(status(15), is_first=True) == "SIGTERM"
    assert read_awaited(status(15), is_first=False) == ""  # its parent ends it
    assert read_awaited(status(40), is_first=True) == "signal 40"
    assert read_awaited(status(SIGNAL), is_first=True) == ""  # that is ours
