"""Watches a process that already runs: what fails in it, or what it waits on."""

from __future__ import annotations

import os
import time

from relaunch.look.files import command_of
from relaunch.trial.blame.attached import Attached
from relaunch.trial.blame.hits import from_json, to_json
from relaunch.trial.blame.relevance import sort_out
from relaunch.trial.blame.slow import Slow
from relaunch.trial.blame.tracing import Failing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

_NO_FILE = -1


def watch(
    pid: int,
    calls: Sequence[str],
    slow_s: float,
    *,
    tell: Callable[[Mapping[str, Any]], object],
    limit_s: float | None = None,
) -> dict[str, Any]:
    """Watch until Ctrl-C, its end or `limit_s`; tell failures at once, and return everything."""
    policy = Slow(calls, slow_s, _NO_FILE) if calls else Failing(_NO_FILE, at_once=True)
    policy.from_fork = True
    attached = Attached(pid, policy)
    until = time.monotonic() + limit_s if limit_s else float("inf")
    last: list[dict[str, Any]] = []

    def hear(event: dict[str, Any]) -> None:
        if "hits" in event or "waits" in event:
            last.append(event)
        else:
            tell(event)

    try:
        tell({"watching": f"{pid} ({command_of(pid)})"})
        attached.listen(hear, lambda: time.monotonic() >= until)
    except KeyboardInterrupt:
        pass
    for event in attached.stop():
        hear(event)
    found: dict[str, Any] = {"pid": pid, "alive": os.path.exists(f"/proc/{pid}"), "slow_s": slow_s}
    return {**found, **_sorted_out(last[-1] if last else {})}


def _sorted_out(said: Mapping[str, Any]) -> Mapping[str, Any]:
    if "hits" not in said:
        return said
    paths = {int(pid): names for pid, names in said["found"].items()}
    hits = [from_json(one) for one in said["hits"]]
    return {"hits": [to_json(one) for one in sort_out(hits, paths)]}
