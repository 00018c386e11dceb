"""Runs that go on from snapshots end when their client or their snapshot does."""

from __future__ import annotations

from tests.unit.warm.desk import Desk
from tests.unit.warm.made_up import waiting

from relaunch.inside.warm import wire
from relaunch.inside.warm.peers import Peer
from relaunch.inside.warm.runs import Runs


def test_two_runs_of_a_snapshot_that_hangs_are_given_up_at_once(desk: Desk) -> None:
    _, keeper = desk.call()
    keeper.snapshot = waiting(1, 1.0)
    over: list[Peer] = []
    runs = Runs(desk.board, over.append, patience_s=1.0)
    desk.on_gone = runs.gone
    clients = [desk.call() for _ in range(2)]
    for number, (_, client) in enumerate(clients):
        runs.begin(client, keeper, "", {"run": str(number)}, [])
    runs.on_time(max(runs.due_at))
    said = [wire.receive(link)[0] for link, _ in clients]
    assert said == [{"failed": "the snapshot does not answer"}, {"failed": "the snapshot died"}]
    assert not runs
    assert over == [keeper, keeper]
    assert keeper.is_gone
    assert keeper.snapshot.resuming == 0
