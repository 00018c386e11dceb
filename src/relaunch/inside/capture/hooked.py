"""What the hook calls: keeps a failed call as the environment of the trial says."""

from __future__ import annotations

import sys


def called(error: BaseException | None, who: str, reports: str, allowed: str) -> None:
    """Keep what failed beside the folder of reports; `allowed` is what the trial says of it.

    Without an error this process was made to be a worker: watch it. A worker may fail and be asked
    for something else, so of each only the first failure is kept.
    """
    if error is not None:
        _keep(error, who, reports, allowed, 0)
        return
    from relaunch.inside.capture import workers

    def failed(error: BaseException, who: str) -> None:
        _keep(error, who, reports, allowed, 1)
        if _environ().get("RELAUNCH_PDB"):
            from relaunch.inside.probe.pause import post_mortem

            post_mortem(error, reports)

    try:
        workers.watch(failed)
    except Exception:
        pass


def _keep(error: BaseException, who: str, reports: str, allowed: str, most: int) -> None:
    # Loaded when something failed: a worker that does not is not to wait for it.
    if isinstance(error, (SystemExit, KeyboardInterrupt)):
        return
    from relaunch.inside.capture.keep import MOST_PER_PROCESS, keep
    from relaunch.inside.capture.work import Place

    environ = _environ()
    budget, limit_s, *secrets = allowed.split(" ")
    place = Place(
        f"{reports.rpartition('/')[0]}/capture",
        environ=environ,
        secrets=secrets,
        roots=environ.get("RELAUNCH_ROOTS", "").split(":"),
        budget=int(budget),
        limit_s=float(limit_s),
    )
    keep(error, error.__traceback__, place, who, most or MOST_PER_PROCESS)


def _environ() -> dict[str, str]:
    """Return the environment of the start: a program may take a secret out of it, to use it."""
    posix = sys.modules["posix"]
    try:
        fd = posix.open("/proc/self/environ", posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return {_text(name): _text(value) for name, value in posix.environ.items()}
    parts = []
    try:
        while block := posix.read(fd, 1 << 16):
            parts.append(block)
    finally:
        posix.close(fd)
    pairs = [entry.partition(b"=") for entry in b"".join(parts).split(b"\0") if b"=" in entry]
    return {_text(name): _text(value) for name, _, value in pairs}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
