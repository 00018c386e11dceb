"""A program that is held on another machine, for each attempt as if it were held here.

An agent of ours holds it there. It is started by the engine as any program is, so it ends with us,
and what the engine says of a machine that was lost is told.
"""

from __future__ import annotations

import os

from relaunch.jsontext import dumps, loads
from relaunch.proc.ours import ours
from relaunch.proc.tree import MARKER
from relaunch.proc.workers import Worker
from relaunch.recipe import Limits
from relaunch.trial.launch.held import End, Gone
from relaunch.trial.launch.held_agent import (
    ENDED,
    GO,
    GONE,
    HOLD,
    KILL,
    LEAVE,
    READY,
    Lines,
    line_of,
    spec_json,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from relaunch.outcome import Outcome
    from relaunch.recipe import Recipe
    from relaunch.trial.launch.held import Spec

    Run = Callable[[Recipe, Mapping[str, str], Callable[[float, int, bytes], object]], Outcome]

_BLOCK = 1 << 20
_AGENT = tuple(ours("relaunch.trial.launch.held_agent", "main"))


class HeldThere:
    """One program that is held; see `Held`."""

    def __init__(
        self,
        recipe: Recipe,
        *,
        run: Run,
        env: Mapping[str, str],
        spec: Spec,
        folder: str,
        reports: str,
    ) -> None:
        """Have it started; `folder` and `reports` are seen from there too.

        `run` runs a recipe as a trial, with an environment, and hands on what comes.
        """
        self.is_ready = False
        self._lines = Lines()
        self._ended: list[End] = []
        self._why = ""
        self._is_read = False
        """Its worker has ended, and said all."""
        orders, self._orders = os.pipe()
        self._near, far = os.pipe()
        agent = recipe.but(argv=_AGENT, limits=Limits(), match="")
        self._worker = Worker(lambda marker: _run(run, agent, {**env, MARKER: marker}, orders, far))
        for fd in (orders, far):
            os.close(fd)
        os.set_blocking(self._near, False)
        told = {"argv": recipe.argv, "cwd": recipe.cwd, "spec": spec_json(spec)}
        self._say(HOLD, {**told, "folder": folder, "reports": reports})

    def files(self) -> list[int]:
        """Return what turns readable when there is something to take."""
        return [self._near]

    def go(self, *, order: Mapping[str, Any]) -> None:
        """Fork once, with an order for its threads. Gone if there is nobody."""
        self._say(GO, dict(order))

    def kill(self) -> None:
        """End the fork that runs; its end is told as ever."""
        self._say(KILL)

    def _say(self, kind: str, what: Any = None) -> None:
        data = line_of(kind, what)
        try:
            while data:
                data = data[os.write(self._orders, data) :]
        except OSError:
            raise Gone(self._why or "what was held is gone") from None

    def take(self) -> End | None:
        """Take what came: how the fork ended, if it did. Gone if it cannot be held."""
        is_gone = self._listen()
        if self._ended:
            return self._ended.pop(0)
        if is_gone or self._why:
            raise Gone(self._why or self._what_became())
        return None

    def _listen(self) -> bool:
        while True:
            try:
                block = os.read(self._near, _BLOCK)
            except BlockingIOError:
                return False
            for kind, what in self._lines.take(block):
                if kind == READY:
                    self.is_ready = True
                elif kind == ENDED:
                    self._ended.append(End(**what))
                elif kind == GONE:
                    self._why = what
            if not block:
                return True

    def _what_became(self) -> str:
        """Ask who ran the agent why it ended; it is at its end."""
        answer = None
        while answer is None:
            answer = self._worker.read()
        self._is_read = True
        return str(loads(answer.decode("ascii"))["why"]) if answer else "what was held is gone"

    def close(self) -> str:
        """End it, with what it forked; returns the marker of what that may have started here."""
        try:
            self._say(LEAVE)
        except Gone:
            pass
        os.close(self._orders)
        os.close(self._near)
        if not self._is_read:
            self._worker.cancel()
        return self._worker.marker


def _run(run: Run, agent: Recipe, env: Mapping[str, str], orders: int, far: int) -> bytes:
    """Run the agent to its end, in a worker; returns why it ended before it was told to."""
    os.dup2(orders, 0)

    def hand_on(_: float, stream: int, data: bytes) -> None:
        while data and stream == 1:
            data = data[os.write(far, data) :]

    outcome = run(agent, env, hand_on)
    why = outcome.not_started or outcome.lost
    if not why and outcome.signature is not None:
        why = f"who holds it there failed: {outcome.signature.title}"
    return dumps({"why": why or "who holds it there has ended"}).encode("ascii")
