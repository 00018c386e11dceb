"""Runs a replay beside warm imports: finds the process that has them, or starts it."""

from __future__ import annotations

import os
import select
import time

from relaunch.inside.warm.where import run_folder, socket_path
from relaunch.jsontext import dumps
from relaunch.proc.detached import start_detached
from relaunch.proc.standin import Link
from relaunch.trial.launch.replay import IMPORTS_S, RUNNER, Status, without_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from relaunch.trial.launch.replay import Call

_TRIES = 3
_MOST_HOSTS = 3
_GRACE_S = 1.0
_BLOCK = 1 << 16


def run_warm(
    call: Call, spec: Mapping[str, Any], *, limit_s: float | None, shown: bool
) -> Status | None:
    """Run a replay there; None where that cannot be, and a fresh process must do."""
    try:
        run = run_folder(os.environ)
        key = key_of(call)
        for _ in range(_TRIES):
            link = _connected(run, key) or _started(call, run, key)
            try:
                status = _run_on(link, call, spec, limit_s=limit_s, shown=shown)
            finally:
                link.close()
            if status is not None:
                return status
    except OSError:
        pass
    return None


def key_of(call: Call) -> str:
    """Name all that must be equal for a replay to run beside the same imports."""
    from _blake2 import blake2b

    python = call.python
    parts = [
        "imports",
        str(os.geteuid()),
        os.path.realpath(python["executable"]),
        python["executable"],
        python["version"],
        *python["options"],
        *library_path(call),
        call.identity,
        RUNNER,
    ]
    text = "\0".join(parts).encode("utf-8", "surrogateescape")
    return blake2b(text, digest_size=8).hexdigest()


def library_path(call: Call) -> list[str]:
    """Return where libraries are found: without the user's own folders, so that all share one."""
    roots = tuple(f"{root.rstrip('/')}/" for root in call.roots if root)
    return [
        entry
        for entry in call.python["path"]
        if entry.startswith("/") and ("-packages" in entry or not f"{entry}/".startswith(roots))
    ]


def _connected(run: str, key: str) -> Link | None:
    try:
        return Link(socket_path(run, key), timeout_s=None)
    except OSError:
        return None


def _started(call: Call, run: str, key: str) -> Link:
    """Start the process that has the imports; who connects is heard when it has them."""
    from relaunch.inside.warm import begin

    folder = os.open(run, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        begin.lock(folder)
        link = _connected(run, key)
        if link is not None:
            return link
        _end_others()
        with begin.listen(run, key) as listener:
            python = call.python
            serve = {
                "run": run,
                "key": key,
                "path": library_path(call),
            }
            start_detached(
                [python["executable"], *python["options"], RUNNER, dumps({"serve": serve})],
                cwd="/",
                env=without_hook(call.env),
                inherited=listener.fileno(),
            )
    finally:
        os.close(folder)
    return Link(socket_path(run, key), timeout_s=None)


def _end_others() -> None:
    """Let only the processes with imports live on that were needed last: each takes its memory."""
    from relaunch.trial.launch.warm import hosts, stop

    found = [host for host in hosts() if host.get("kind") == "imports" and not host["running"]]
    found.sort(key=lambda host: float(host["idle_s"]))
    for host in found[_MOST_HOSTS - 1 :]:
        stop(host["key"])


def _run_on(
    link: Link, call: Call, spec: Mapping[str, Any], *, limit_s: float | None, shown: bool
) -> Status | None:
    """Let the process fork for us, and collect what it prints; None if it refuses."""
    umask = os.umask(0o077)
    os.umask(umask)
    message = {
        "op": "replay",
        "spec": spec,
        "env": without_hook(call.env),
        "umask": umask,
        "libraries": list(call.libraries),
        "roots": list(call.roots),
    }
    if shown:
        link.send(message, (0, 1, 2))
        return _shown(link)
    near, far = zip(os.pipe(), os.pipe(), strict=True)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        link.send(message, (nothing, *far))
    finally:
        for fd in (nothing, *far):
            os.close(fd)
    try:
        return _collected(link, near, None if limit_s is None else limit_s + IMPORTS_S)
    finally:
        for fd in near:
            os.close(fd)


def _collected(link: Link, near: tuple[int, ...], limit_s: float | None) -> Status | None:
    began = time.monotonic()
    streams = {near[0]: 1, near[1]: 2}
    output: list[tuple[int, bytes]] = []
    poll = select.poll()
    for fd in (link.fd, *near):
        poll.register(fd, select.POLLIN)
    status: Status | None = None
    until = float("inf") if limit_s is None else began + limit_s
    open_fds = {*near}
    while True:
        left = min(until - time.monotonic(), 3600.0)
        if left <= 0:
            if status is not None:
                return status.but(output=tuple(output))
            took = time.monotonic() - began
            return Status(timed_out=True, took_s=took, output=tuple(output))
        for fd, _ in poll.poll(left * 1000):
            if fd == link.fd:
                poll.unregister(fd)
                status = _read_end(link, began)
                if status is None:
                    return None
                until = time.monotonic() + _GRACE_S  # for what is still in the pipes
                continue
            block = os.read(fd, _BLOCK)
            if block:
                output.append((streams[fd], block))
            else:
                poll.unregister(fd)
                open_fds.discard(fd)
        if status is not None and not open_fds:
            return status.but(output=tuple(output))


def _shown(link: Link) -> Status | None:
    """Wait for a replay that has our streams; an interrupt is for it."""
    began = time.monotonic()
    while True:
        try:
            return _read_end(link, began)
        except KeyboardInterrupt:
            link.send({"op": "signal", "number": 2})


def _read_end(link: Link, began: float) -> Status | None:
    answer = link.receive()
    if answer is None or "ended" not in answer:
        return None
    status, took = int(answer["ended"]), time.monotonic() - began
    if os.WIFSIGNALED(status):
        return Status(signal=os.WTERMSIG(status), took_s=took)
    return Status(exit_code=os.WEXITSTATUS(status), took_s=took)
