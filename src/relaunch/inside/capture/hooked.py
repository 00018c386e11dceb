"""What the hook calls: keeps a failed call as the environment of the trial says."""

from __future__ import annotations

from relaunch.inside.capture.keep import MOST_PER_PROCESS, Place, keep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType


def failed(
    error: BaseException,
    tb: TracebackType | None,
    who: str,
    is_worker: bool,
    reports: str,
    environ: Mapping[str, str],
) -> None:
    """Keep what failed beside the folder of reports; `environ` is that of the start.

    A worker may fail and be asked for something else: of each only the first failure is kept.
    """
    budget, limit_s, *secrets = environ["RELAUNCH_CAPTURE"].split(" ")
    place = Place(
        f"{reports.rpartition('/')[0]}/capture",
        environ=environ,
        secrets=secrets,
        roots=environ.get("RELAUNCH_ROOTS", "").split(":"),
        budget=int(budget),
        limit_s=float(limit_s),
    )
    keep(error, tb, place, who, most=1 if is_worker else MOST_PER_PROCESS)
