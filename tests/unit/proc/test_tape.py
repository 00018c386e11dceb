"""The tape: what is kept of the output, and how it is shown again."""

import os
import select
import socket

from hypothesis import given
from hypothesis import strategies as st

from relaunch.proc.relay import Relay
from relaunch.proc.tape import Control, LineEnds, Tape, frame_of, frames

BLOCKS = st.lists(st.tuples(st.sampled_from((1, 2)), st.binary(max_size=40)), max_size=20)
TEXT = st.lists(st.sampled_from((b"\r", b"\n", b"a", b"")), max_size=60)


@given(BLOCKS)
def test_blocks_come_back_as_they_were_kept(tmp_path_factory, blocks):
    path = str(tmp_path_factory.getbasetemp() / "tape")
    tape = Tape(path)
    for stream, data in blocks:
        tape.add(stream, data)
    fd = os.open(path, os.O_RDONLY)
    assert list(frames(fd, tape.length)) == [block for block in blocks if block[1]]
    os.close(fd)
    tape.close()


@given(TEXT, st.data())
def test_line_ends_are_what_they_were_before_the_terminal(pieces, data):
    written = b"".join(pieces)
    shown = written.replace(b"\n", b"\r\n")
    cut = data.draw(st.integers(0, len(shown)))
    ends = LineEnds()
    assert ends.undo(shown[:cut]) + ends.undo(shown[cut:]) + ends.rest() == written


def test_a_tape_is_private_and_not_longer_than_allowed(tmp_path):
    path = str(tmp_path / "tape")
    tape = Tape(path, most_bytes=20)
    assert os.stat(path).st_mode & 0o777 == 0o600
    tape.add(1, b"0123456789")
    assert (tape.whole, tape.length) == (True, len(frame_of(1, b"0123456789")))
    tape.add(1, b"0123456789")
    tape.add(1, b"")
    assert (tape.whole, tape.length) == (False, 15)
    tape.close()


def test_a_tape_that_nobody_asked_for_goes_away(tmp_path):
    used, unused = Tape(str(tmp_path / "used")), Tape(str(tmp_path / "unused"))
    used.is_used = True
    used.close()
    unused.close()
    assert os.listdir(tmp_path) == ["used"]


def test_what_is_in_the_pipe_is_on_the_tape_when_the_program_is_answered(tmp_path):
    control = Control(Tape(str(tmp_path / "tape")))
    assert control.theirs >= 100
    assert os.get_inheritable(control.theirs)
    program = socket.socket(fileno=os.dup(control.theirs))
    seen = []
    relay = Relay(control.recording(lambda _when, stream, data: seen.append((stream, data))))
    near, far = os.pipe()
    relay.pipe(near, -1, 1)
    control.attend(relay)
    os.write(far, b"written before")
    program.send(b"mark")
    while not select.select([program], [], [], 0)[0]:
        assert relay.turn(5)
    assert int(program.recv(32)) == len(frame_of(1, b"written before"))
    assert seen == [(1, b"written before")]
    control.tape.whole = False
    program.send(b"mark")
    assert relay.turn(5)
    assert program.recv(32) == b"-"
    program.close()
    assert relay.turn(5)
    os.close(far)
    relay.close_all()
    control.close()
    control.tape.close()
