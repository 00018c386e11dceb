"""Who watches the calls of a program: the best eye that works here, proven on a tiny child."""

from __future__ import annotations

import os

from relaunch.errors import PlaceError
from relaunch.inside.protocol import BLAME
from relaunch.jsontext import dumps, loads
from relaunch.look.stacks import Frame
from relaunch.proc.companion import Companion
from relaunch.proc.left_out import WITHOUT, left_out
from relaunch.record import Record
from relaunch.trial.blame.hits import Hit, free_space, name_of, to_json
from relaunch.trial.blame.relevance import sort_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from relaunch.trial.blame.shim import Shim
    from relaunch.trial.blame.straced import Straced
    from relaunch.trial.blame.tracing import Tracing

    Eye = Shim | Tracing | Straced

FILE = "blame.json"
RUNGS = ("shim", "tracer", "strace", "process")
MEANS = {
    "shim": "a library before libc in each process; under 10% slower",
    "tracer": "each call that can fail stops at a tracer of ours: sure, and slower",
    "strace": "strace sees the calls; lines only of what nobody caught",
    "process": "only exceptions that nobody caught, with the files open then",
}


class Rung(Record):
    """One way to see failed calls, and why it does not work here; nothing when it does."""

    name: str
    why_not: str
    library: str = ""


def climb(cache: str, only: str = "") -> list[Rung]:
    """Try the rungs from the best down to the first that works; with `only`, that one."""
    tried = []
    for name in RUNGS:
        if only and name != only:
            continue
        rung = _try(name, cache)
        tried.append(rung)
        if not rung.why_not:
            break
    return tried


def every_rung(cache: str) -> list[Rung]:
    """Try all of them."""
    return [_try(name, cache) for name in RUNGS]


def _try(name: str, cache: str) -> Rung:
    if name in left_out():
        return Rung(name=name, why_not=f"{WITHOUT} says so")
    if name == "shim":
        from relaunch.trial.blame.shim import library

        path, why = library(cache)
        return Rung(name=name, why_not=why, library=path)
    if name == "tracer":
        from relaunch.proc.ptrace.traced import untraceable

        return Rung(name=name, why_not=untraceable())
    if name == "strace":
        from relaunch.trial.blame.straced import useless

        return Rung(name=name, why_not=useless())
    return Rung(name=name, why_not="")


class Blaming(Companion):
    """Watches with the best eye there is, and leaves what it saw in the folder of the trial."""

    def __init__(
        self,
        folder: str,
        *,
        cache: str,
        say: Callable[[str], object],
        by: str = "",
        preloaded: str = "",
        let_live: bool = False,
        small: Sequence[str] = (),
    ) -> None:
        """Watch `by` one of RUNGS, or by the best; `cache` keeps what was compiled.

        `small` are folders that are on a small disk of the program's own.
        """
        self._folder = folder
        self._cache = cache
        self._say = say
        self._by = by
        self._preloaded = preloaded
        self._let_live = let_live
        self._small = small
        self._eye: Eye | None = None

    def prepare(self) -> Mapping[str, str]:
        """Choose, and say what was chosen."""
        tried = climb(self._cache, self._by)
        best = tried[-1]
        if best.why_not:
            raise PlaceError(f"failed calls cannot be seen by {best.name}: {best.why_not}",
                             hint="rl doctor")  # fmt: skip
        lacking = "".join(f"; no {one.name}: {one.why_not}" for one in tried[:-1])
        self._say(f"blame by {best.name}: {MEANS[best.name]}{lacking}")
        self._by = best.name
        self._eye = self._open(best)
        return self._eye.prepare() if self._eye else {BLAME: "="}

    def _open(self, rung: Rung) -> Eye | None:
        if rung.name == "shim":
            from relaunch.trial.blame.shim import Shim

            return Shim(rung.library, self._preloaded)
        if rung.name == "tracer":
            from relaunch.trial.blame.tracing import Tracing

            return Tracing(let_live=self._let_live)
        if rung.name == "strace":
            from relaunch.trial.blame.straced import Straced

            return Straced()
        return None

    def helpers(self) -> tuple[int, ...]:
        """Name the processes of the eye."""
        return self._eye.helpers() if self._eye else ()

    def enter(self) -> None:
        """Let it see the new process."""
        if self._eye:
            self._eye.enter()

    def launched(self, pid: int) -> None:
        """Tell it who the program is."""
        if self._eye:
            self._eye.launched(pid)

    def ended(self) -> None:
        """Sort out what was seen, and keep it."""
        hits: list[Hit] = []
        found: Mapping[int, Iterable[str]] = {}
        seen = True
        if self._eye is not None:
            self._eye.ended()
            hits, found, seen = self._eye.hits, self._eye.found, self._eye.is_in_program
        if self._by in ("strace", "process"):
            hits = with_exceptions(hits, uncaught(os.path.join(self._folder, "reports")))
            hits = [self._without_space(hit) for hit in hits]
        if self._folder and self._by:
            kept = [to_json(hit) for hit in sort_out(hits, found, self._folder)]
            told = {"by": self._by, "seen": seen, "hits": kept}
            try:
                with open(os.path.join(self._folder, FILE), "w", encoding="utf-8",
                          errors="surrogateescape") as file:  # fmt: skip
                    file.write(dumps(told))
            except OSError:
                self._say("what failed could not be kept: the journal cannot be written")

    def _without_space(self, hit: Hit) -> Hit:
        """A small disk is gone when these rungs ask for room: the real one's would be told."""
        path = os.path.realpath(hit.path)
        if not any(path.startswith(one.rstrip("/") + "/") for one in self._small):
            return hit
        return hit.but(free_bytes=-1, total_bytes=-1, free_inodes=-1)


# --- what the program itself told -----------------------------------------------------------------


def uncaught(reports: str) -> list[dict[str, Any]]:
    """Read what processes told of errors of the system that nobody caught."""
    found: list[dict[str, Any]] = []
    try:
        names = sorted(os.listdir(reports))
    except OSError:
        return []
    for name in names:
        try:
            with open(os.path.join(reports, name), encoding="utf-8") as file:
                report = loads(file.read())
            for one in report.get("exceptions", ()):
                found += ({**blamed, "when": one["monotonic"]} for blamed in one.get("blamed", ()))
        except (OSError, ValueError, KeyError, AttributeError):
            continue
    return found


def with_exceptions(hits: list[Hit], told: list[dict[str, Any]]) -> list[Hit]:
    """Give the last hit of each error the line at which it was raised, or make a hit of it."""
    hits = [*hits]
    for one in told:
        error = name_of(int(one["errno"]))
        frames = tuple(Frame(file=f, line=n, function=c) for f, n, c in one["stack"])
        for at in range(len(hits) - 1, -1, -1):
            if hits[at].error == error and hits[at].pid == one["pid"]:
                hits[at] = hits[at].but(frames=frames)
                break
        else:
            hits.append(_from_exception(one, error, frames))
    return hits


def _from_exception(one: Mapping[str, Any], error: str, frames: tuple[Frame, ...]) -> Hit:
    path = one["path"] or (one["open"][-1] if len(one["open"]) == 1 else "")
    files = ", ".join(one["open"][:5])
    free, total, inodes = free_space(path) if path else (-1, -1, -1)
    return Hit(
        error=error, call="?", path=path, free_bytes=free, total_bytes=total, free_inodes=inodes,
        pid=one["pid"], tid=one["pid"], command=one["command"], when=one["when"], frames=frames,
        note=f"open then: {files}" if files and not one["sure"] else "",
    )  # fmt: skip
