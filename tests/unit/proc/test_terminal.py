"""Terminal settings as data."""

import os
import termios

import pytest

from relaunch.proc.terminal import cooked, interrupts, raw, set_size


@pytest.fixture
def sides():
    master, slave = os.openpty()
    yield master, slave
    os.close(master)
    os.close(slave)


def test_raw_settings_take_no_key_and_change_no_byte(sides):
    before = termios.tcgetattr(sides[1])
    kept = [*before[:6], list(before[6])]
    changed = raw(before)
    assert before == kept, "the settings to give back were changed"
    assert not changed[1] & termios.OPOST
    assert not changed[3] & (termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
    termios.tcsetattr(sides[1], termios.TCSANOW, changed)
    os.write(sides[0], bytes(range(256)))
    assert os.read(sides[1], 256) == bytes(range(256))


def test_cooked_settings_undo_what_a_line_editor_did(sides):
    before = termios.tcgetattr(sides[1])
    again = cooked(raw(before))
    wanted = termios.ECHO | termios.ICANON | termios.ISIG
    assert again[3] & wanted == wanted
    assert again[1] & termios.OPOST


def test_the_interrupt_key_counts_only_while_it_is_one(sides):
    master, slave = sides
    assert interrupts(master, b"ab\x03")
    assert not interrupts(master, b"abc")
    termios.tcsetattr(slave, termios.TCSANOW, raw(termios.tcgetattr(slave)))
    assert not interrupts(master, b"\x03")


def test_a_size_is_set_only_when_it_is_another_one(sides):
    size = bytes([24, 0, 80, 0, 0, 0, 0, 0])
    assert set_size(sides[0], size)
    assert not set_size(sides[0], size)
