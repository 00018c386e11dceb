"""The runs that go on from snapshots: each belongs to a client, and ends when that goes away."""

from __future__ import annotations

import os
import signal
import time

from . import machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .peers import Peer
    from .switchboard import Switchboard

_HANG_UP_S = 5.0
"""What a program gets to end by itself after its client went away."""
_RESUME_S = 25.0
"""A snapshot that does not answer for so long hangs."""
_MOST_FAILURES = 3


class Resumed:
    """A run that goes on from a snapshot, on behalf of a client."""

    def __init__(self, client: Peer, keeper: Peer, sources: str, patience_s: float) -> None:
        self.client = client
        self.keeper = keeper
        self.sources = sources
        self.pid = 0
        self.pidfd = -1
        self.give_up_at = time.monotonic() + patience_s
        """When the snapshot must have answered; or the program have ended that was told to."""
        self.is_told_to_end = False


class Runs:
    """All that have not ended."""

    def __init__(
        self, board: Switchboard, over: Callable[[Peer], object], patience_s: float
    ) -> None:
        """Let `over` know whenever a snapshot has one run less; 0 is the usual patience."""
        self._board = board
        self._over = over
        self._patience_s = patience_s or _RESUME_S
        self._known: dict[str, Resumed] = {}

    def __bool__(self) -> bool:
        return bool(self._known)

    @property
    def pids(self) -> set[int]:
        """The processes that go on."""
        return {one.pid for one in self._known.values()}

    @property
    def due_at(self) -> list[float]:
        """The times when somebody must have answered or ended."""
        return [one.give_up_at for one in self._known.values() if one.give_up_at]

    def begin(
        self, client: Peer, keeper: Peer, sources: str, order: dict[str, Any], fds: list[int]
    ) -> None:
        """Have a snapshot go on, with sources that have a name."""
        assert keeper.snapshot is not None
        keeper.snapshot.resuming += 1
        self._known[order["run"]] = Resumed(client, keeper, sources, self._patience_s)
        self._board.say(keeper, order, fds)

    def heed(self, keeper: Peer, message: dict[str, Any]) -> None:
        """Hear from a snapshot what became of a run."""
        run = str(message.get("run", ""))
        one = self._known.get(run)
        if one is None or one.keeper is not keeper:
            return
        if "started" in message:
            self._started(one, int(message["started"]))
        elif "failed" in message:
            self._failed(run, one, str(message["failed"]))
        elif "ended" in message:
            self._forget(run, one)
            self._board.say(one.client, {"ended": message["ended"]})

    def gone(self, peer: Peer) -> None:
        """End what nobody can wait for any more, or nobody will hear of."""
        for run, one in [*self._known.items()]:
            if one.keeper is peer:
                self._lost(run, one)
            elif one.client is peer and one.pid:
                self._hang_up(one)

    def hang_up(self) -> None:
        """Tell all programs to end."""
        for one in [*self._known.values()]:
            self._hang_up(one)

    def on_time(self, now: float) -> None:
        """Give up those who did not do in time what they should."""
        for run, one in [*self._known.items()]:
            is_due = one.give_up_at and one.give_up_at <= now
            if is_due and run in self._known:  # else it was lost with the one before
                self._give_up(run, one)

    def _started(self, one: Resumed, pid: int) -> None:
        one.give_up_at = 0.0
        one.pid = pid
        try:
            one.pidfd = os.pidfd_open(pid)
        except OSError:
            one.pidfd = -1
        if one.pidfd >= 0 and machine.parent_of(pid) != one.keeper.pid:
            os.close(one.pidfd)
            one.pidfd = -1
        if one.client.is_gone:
            self._hang_up(one)
        self._board.say(one.client, {"pid": pid})

    def _failed(self, run: str, one: Resumed, why: str) -> None:
        """Do not offer a snapshot again for sources with which it cannot go on."""
        snapshot = one.keeper.snapshot
        if snapshot is not None:
            snapshot.refused.add(one.sources)
            snapshot.is_retired |= len(snapshot.refused) >= _MOST_FAILURES
        self._forget(run, one)
        self._board.say(one.client, {"failed": why})

    def _forget(self, run: str, one: Resumed) -> None:
        del self._known[run]
        if one.pidfd >= 0:
            os.close(one.pidfd)
        if one.keeper.snapshot is not None:
            one.keeper.snapshot.resuming -= 1
        self._over(one.keeper)

    def _lost(self, run: str, one: Resumed) -> None:
        """A snapshot died under a run: how that ends nobody will know, so it ends now."""
        if one.pid:
            self._signal(one, signal.SIGKILL)
        self._forget(run, one)
        if one.pid:
            self._board.say(one.client, {"ended": int(signal.SIGKILL)})
        else:
            self._board.say(one.client, {"failed": "the snapshot died"})

    def _hang_up(self, one: Resumed) -> None:
        """Tell a program to end whose client went away, as a terminal does that is closed."""
        if one.is_told_to_end:
            return
        one.is_told_to_end = True
        one.give_up_at = time.monotonic() + _HANG_UP_S
        self._signal(one, signal.SIGHUP)

    def _give_up(self, run: str, one: Resumed) -> None:
        if one.pid:
            one.give_up_at = time.monotonic() + _HANG_UP_S
            self._signal(one, signal.SIGKILL)
            return
        keeper = one.keeper
        self._failed(run, one, "the snapshot does not answer")
        machine.send(keeper.pidfd, signal.SIGKILL)
        self._board.drop(keeper)

    def _signal(self, one: Resumed, number: signal.Signals) -> None:
        """Send a signal to a resumed program and its children, but to no snapshot."""
        if one.pidfd < 0:
            return
        keep = {peer.pid for peer in self._board.peers if peer.snapshot or peer.hello}
        below = machine.below(one.pid, keep)
        machine.send(one.pidfd, number)
        for pid in below:
            try:
                os.kill(pid, number)
            except OSError:
                pass
