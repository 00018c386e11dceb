"""What the hook calls: keeps a failed call as the environment of the trial says."""

from __future__ import annotations

from relaunch.inside.capture.keep import Place, keep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any


def failed(
    error: BaseException,
    tb: TracebackType | None,
    who: str,
    reports: str,
    reporter: Mapping[str, Any],
    environ: Mapping[str, str],
) -> None:
    """Keep what failed beside the folder of reports; `environ` is that of the start."""
    budget, limit_s, *secrets = environ["RELAUNCH_CAPTURE"].split(" ")
    place = Place(
        f"{reports.rpartition('/')[0]}/capture",
        describe=reporter["described"],
        to_json=reporter["to_json"],
        environ=environ,
        secrets=secrets,
        roots=environ.get("RELAUNCH_ROOTS", "").split(":"),
        budget=int(budget),
        limit_s=float(limit_s),
    )
    keep(error, tb, place, who)
