"""The switchboard hears all who are connected, and nobody who is slow or wrong holds up others."""

from __future__ import annotations

import os
import socket
import threading
from typing import Any

import pytest
from tests.unit.warm.desk import PATIENCE_S, Desk

from relaunch.inside.warm import wire


def test_half_a_message_keeps_nobody_waiting_and_is_heard_when_the_rest_came(desk: Desk) -> None:
    slow_link, slow = desk.call()
    link, peer = desk.call()
    data = wire.encode({"from": "slow"})
    slow_link.sendall(data[:7])
    wire.send(link, {"from": "other"})
    while not desk.heard:
        desk.board.turn(PATIENCE_S)
    assert desk.heard == [(peer, {"from": "other"})]
    slow_link.sendall(data[7:])
    desk.board.turn(PATIENCE_S)
    assert desk.heard[1:] == [(slow, {"from": "slow"})]
    assert desk.gone == []


def test_who_talks_without_end_is_not_the_only_one_heard(desk: Desk) -> None:
    talker, _ = desk.call()
    link, peer = desk.call()
    talker.sendall(wire.encode({}) * 200)
    wire.send(link, {})
    desk.board.turn(PATIENCE_S)
    assert 1 < len(desk.heard) < 100
    assert [one for one, _ in desk.heard].count(peer) == 1


def test_what_cannot_be_heeded_ends_that_connection_and_is_told(desk: Desk) -> None:
    wrong_link, wrong = desk.call()
    link, peer = desk.call()
    wire.send(wrong_link, {"raise": "no"})
    desk.board.turn(PATIENCE_S)
    assert [f"{error}" for error in desk.troubles] == ["no"]
    assert desk.gone == [wrong]
    assert wrong_link.recv(1) == b""
    desk.board.drop(wrong)
    assert desk.gone == [wrong]
    desk.board.say(wrong, {"lost": True})
    desk.board.say(peer, {"answer": True})
    assert wire.receive(link) == ({"answer": True}, [])


def test_who_hangs_up_is_gone(desk: Desk) -> None:
    link, peer = desk.call()
    link.close()
    desk.board.turn(PATIENCE_S)
    assert desk.gone == [peer]
    assert desk.board.peers == set()


def test_a_closed_board_lets_nobody_new_in_and_still_hears_the_others(desk: Desk) -> None:
    link, peer = desk.call()
    desk.board.close()
    late = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with late, pytest.raises(ConnectionRefusedError):
        late.connect(desk.address)
    wire.send(link, {"last": True})
    desk.board.turn(PATIENCE_S)
    assert desk.heard == [(peer, {"last": True})]


def test_other_descriptors_are_watched_until_they_are_not(desk: Desk) -> None:
    near, far = os.pipe()
    calls = []
    desk.board.watch(near, lambda: calls.append(os.read(near, 1)))
    os.write(far, b"ab")
    desk.board.turn(PATIENCE_S)
    desk.board.turn(PATIENCE_S)
    assert calls == [b"a", b"b"]
    os.write(far, b"c")
    desk.board.unwatch(near)
    desk.board.turn(0.0)
    assert len(calls) == 2
    os.close(near)
    os.close(far)


def test_an_answer_that_is_longer_than_the_line_is_flushed_to_who_reads(desk: Desk) -> None:
    link, peer = desk.call()
    long = {"text": "x" * (1 << 20)}
    desk.board.say(peer, long)
    assert peer.stream.is_waiting
    heard: list[Any] = []
    reader = threading.Thread(target=lambda: heard.append(wire.receive(link)))
    reader.start()
    desk.board.flush()
    desk.board.drop(peer)
    reader.join()
    assert heard == [(long, [])]
