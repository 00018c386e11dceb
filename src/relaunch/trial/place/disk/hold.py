"""Our end of the process that has the small disks."""

from __future__ import annotations

from relaunch.jsontext import loads
from relaunch.proc.helper import Helper
from relaunch.proc.namespace import World, give_ids, world_of
from relaunch.trial.place.disk.holder import IDS, KEEP, Holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from relaunch.recipe import SmallDisk

_MAKING_S = 20.0
_KEEPING_S = 86_400.0


class Hold:
    """Small disks that some processes see; `end()` them."""

    def __init__(
        self,
        disks: Sequence[SmallDisk],
        *,
        ours: Sequence[str] = (),
        needed: Sequence[str] = (),
        without: Collection[str] = (),
        keep: bool = False,
    ) -> None:
        """Make them; `ways` says how each was made, `why` what did not work for it."""
        holder = Holder(disks, ours=ours, needed=needed, without=without, keep=keep)
        self._helper = Helper(holder.work)
        self.pid = self._helper.pid
        self._world: World | None = None
        try:
            said = self._hear()
        except OSError as error:
            said = {"failed": error.strerror or str(error)}
        self.failed: str = said.get("failed", "" if said else "the process that makes them is gone")
        self.is_there: bool = said.get("is_there", True)
        """False where no mount would help: it is not the folder that was meant."""
        self.ways: Mapping[str, str] = said.get("ways", {})
        self.why: Mapping[str, Mapping[str, str]] = said.get("why", {})
        self.empty: Collection[str] = said.get("empty", ())
        self.foreign: int = said.get("foreign", 0)
        """How many files of others are there that cannot be written to here, and could outside."""

    def _hear(self) -> dict[str, Any]:
        said = self._helper.hear(_MAKING_S)
        if said == IDS:
            self._helper.say(b"all" if give_ids(self.pid) else b"own")
            said = self._helper.hear(_MAKING_S)
        found = _read(said)
        if "ways" in found:
            self._world = world_of(self.pid)
        return found

    def enter(self) -> None:
        """Let this process, which becomes the program, see them."""
        if self._world is not None:
            self._world.enter()

    def end(self, *, keep: bool = False) -> dict[str, Any]:
        """Let go of them; returns how full they were (`fills`), and what was `kept`."""
        if self._world is not None:
            self._world.close()
            self._world = None
        said: dict[str, Any] = {}
        if keep:
            self._helper.say(KEEP)
            said = _read(self._helper.hear(_KEEPING_S))
        return said or _read(self._helper.stop())

    def stop(self) -> None:
        """End the process, whatever it does."""
        self._helper.stop()


def _read(data: bytes) -> dict[str, Any]:
    """Read what it said; empty when it is gone."""
    try:
        said = loads(data.decode())
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
