"""Holds a program on another machine: run there, it takes orders from its input, line by line.

What it says goes out likewise. Lines, because engines that carry them may keep what has no end yet;
and written so that whatever else comes between can be told apart.
"""

from __future__ import annotations

import binascii
import marshal
import os
import select

from relaunch.errors import RelaunchError
from relaunch.inside.held.serve import VERSION
from relaunch.inside.protocol import hooked_env
from relaunch.proc.tree import end_marked
from relaunch.trial.launch.forks import Noted
from relaunch.trial.launch.held import Gone, Held, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HOLD, GO, KILL, LEAVE = "hold", "go", "kill", "leave"
READY, ENDED, GONE = "ready", "ended", "gone"
_BEGIN = b"\x1erl "
_BLOCK = 1 << 16


class Lines:
    """Puts together what comes in blocks; words of others are passed over."""

    def __init__(self) -> None:
        """Nothing came yet."""
        self._rest = b""

    def take(self, block: bytes) -> list[tuple[str, Any]]:
        """Return what is whole by now."""
        *lines, self._rest = (self._rest + block).split(b"\n")
        return [word for line in lines if (word := _word(line)) is not None]


def line_of(kind: str, what: Any = None) -> bytes:
    """Return a word to send."""
    return _BEGIN + binascii.b2a_base64(marshal.dumps((kind, what), VERSION))


def _word(line: bytes) -> tuple[str, Any] | None:
    if not line.startswith(_BEGIN):
        return None
    try:
        kind, what = marshal.loads(binascii.a2b_base64(line[len(_BEGIN) :]))
    except (ValueError, EOFError, TypeError):
        return None
    return kind, what


def spec_json(spec: Spec) -> dict[str, Any]:
    """Return it as plain data."""
    noted = {**vars(spec.noted)} if spec.noted is not None else None
    return {**vars(spec), "noted": noted}


def spec_of(said: dict[str, Any]) -> Spec:
    """Read it back."""
    noted = said["noted"]
    return Spec(**{**said, "noted": Noted(**noted) if noted is not None else None})


class Agent:
    """One program that is held here for somebody elsewhere."""

    def __init__(self) -> None:
        """Nothing is held yet."""
        self._held: Held | None = None
        self._was_ready = False

    def serve(self) -> None:
        """Obey until we are told to leave, or nobody is there any more."""
        lines = Lines()
        while True:
            files = self._held.files() if self._held is not None else []
            ready = select.select([0, *files], [], [])[0]
            if 0 in ready:
                block = os.read(0, _BLOCK)
                if not block:
                    return
                for kind, what in lines.take(block):
                    if kind == LEAVE:
                        return
                    self._obey(kind, what)
            if self._held is not None and {*ready} & {*files}:
                self._take(self._held)

    def _obey(self, kind: str, what: Any) -> None:
        if kind == HOLD:
            env = hooked_env(os.environ, what["reports"])
            self._held = Held(
                what["argv"],
                cwd=what["cwd"],
                env=env,
                spec=spec_of(what["spec"]),
                folder=what["folder"],
            )
        elif self._held is not None and kind == GO:
            self._held.go(order=what)
        elif self._held is not None and kind == KILL:
            self._held.kill()

    def _take(self, held: Held) -> None:
        end = held.take()
        if held.is_ready and not self._was_ready:
            self._was_ready = True
            _say(READY)
        if end is not None:
            _say(ENDED, {**vars(end)})

    def close(self) -> None:
        """Leave nothing behind."""
        if self._held is not None:
            end_marked(self._held.close())


def _say(kind: str, what: Any = None) -> None:
    data = line_of(kind, what)
    while data:
        data = data[os.write(1, data) :]


def main() -> None:
    """Hold; what goes wrong is said in the same way."""
    agent = Agent()
    try:
        agent.serve()
    except (Gone, RelaunchError, OSError) as error:
        _say(GONE, str(error))
    finally:
        agent.close()
