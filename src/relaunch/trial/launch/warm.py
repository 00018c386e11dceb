"""Starts a program from the deepest of its snapshots that is still true, else from its beginning.

Whichever way, it is supervised, recorded and judged as any other program.
"""

from __future__ import annotations

import os
import signal
import time

from relaunch.inside.protocol import hooked_env
from relaunch.inside.warm.where import cache_folder, run_folder, socket_path, written_path
from relaunch.jsontext import dumps, loads
from relaunch.proc.launch import NotResumed
from relaunch.proc.standard import are_one_file, plug
from relaunch.proc.standin import Link, Resume, stand_in
from relaunch.proc.supervise import supervise
from relaunch.proc.tape import Control, Tape
from relaunch.proc.tree import MARKER
from relaunch.record import Record
from relaunch.trial.launch.words import Words, read_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from relaunch.proc.supervise import Ended
    from relaunch.recipe import Recipe

    Chunk = Callable[[float, int, bytes], object]

RUNNER = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    *("inside", "warm", "main.py"),
)
_ANSWER_S = 10.0
_LEFT_S = 3600.0
"""Files of a host that does not answer go when they are so old."""
_TRIES = 3
_INHERITED = ("Umask", "Gid", "Groups", "SigBlk", "SigIgn", "CapEff", "Cpus_allowed:", "NoNewPrivs")
_OF_THE_TRIAL = "RELAUNCH_"
_FOR_RUNNER = "RELAUNCH_WARM"
"""What a resumed process takes out of its new environment: JSON with `tape` and `at`."""


class Wish(Record):
    """What a warm launch needs to know besides the recipe."""

    identity: str
    """Stands for the environment and what is installed: with another, nothing is resumed."""
    roots: tuple[str, ...]
    """Folders of the user's own code."""
    reports: str = ""
    """Folder for what the program's own hook leaves; empty: no hook."""
    report_on: tuple[str, ...] = ()
    memory_bytes: int = 0
    """What all snapshots of the program may take together; 0 leaves it to their host."""
    idle_s: float = 0.0
    """Snapshots that nobody needed for so long go away; 0 leaves it to their host."""


class Launched(Record):
    """Which way was taken: `at` and all below it for a resumed program, else `cold`."""

    at: str = ""
    """The statement with which it went on: `train.py:207`."""
    took_s: float = 0.0
    """From our first step to the program's."""
    saved_s: float = 0.0
    """What the part took that was not run again."""
    because: str = ""
    cold: str = ""
    """Why it began at the beginning."""
    id: str | int = ""
    """The host's name for the snapshot."""
    key: str = ""
    """The host's own name; empty where no snapshots can be."""
    written: tuple[str, ...] = ()
    """The files that the program wrote, as far as it could tell when it ended."""


def run_warm(
    recipe: Recipe,
    env: Mapping[str, str],
    wish: Wish,
    *,
    chunk: Chunk,
    quiet: bool,
    tell: Callable[[Launched], object],
) -> tuple[Ended, Launched]:
    """Run the program to its end; `tell` hears which way is taken before any output is shown."""
    launch = _Launch(recipe, env, wish, chunk=chunk, quiet=quiet, tell=tell)
    try:
        return launch.run()
    finally:
        launch.close()


class _Launch:
    """One program on its way."""

    def __init__(
        self,
        recipe: Recipe,
        env: Mapping[str, str],
        wish: Wish,
        *,
        chunk: Chunk,
        quiet: bool,
        tell: Callable[[Launched], object],
    ) -> None:
        self.began = time.monotonic()
        self.recipe, self.env, self.wish = recipe, env, wish
        self.chunk, self.quiet, self.tell = chunk, quiet, tell
        self.launched = Launched()
        self.tape: Tape | None = None
        self.run_folder = self.key = ""

    def run(self) -> tuple[Ended, Launched]:
        words, why = self._prepare()
        if words is None:
            return self._plainly(why)
        for _ in range(_TRIES):
            answer = ask(self.run_folder, self.key, self._wishes())
            if "resume" not in answer:
                why = why or str(answer.get("cold") or "its host does not answer")
                break
            try:
                return self._resume(words, answer)
            except NotResumed as error:
                why = f"{answer.get('at', 'the snapshot')} did not go on: {error.message}"
        return self._cold(words, why)

    def _prepare(self) -> tuple[Words | None, str]:
        """Read the command; None and why when there is no warm way for it."""
        words, why = read_words(self.recipe.argv, self.env, self.recipe.cwd)
        if why or words is None:
            return None, why
        if self.recipe.frozen:
            return None, "a frozen copy is new each time"
        if plug():
            return None, "a standard stream is closed"
        try:
            self.run_folder = run_folder(os.environ)
            shape = streams_shape(quiet=self.quiet)
            self.key = key_of(words, self.recipe.cwd, self.wish.identity, shape)
            path = os.path.join(self.run_folder, f"{self.key}.{self._trial()}.tape")
            self.tape = Tape(path)
        except OSError as error:
            return None, f"no place for snapshots: {error.strerror or error}"
        return words, ""

    def _trial(self) -> str:
        return f"{os.path.basename(self.env.get(MARKER, '')) or 'trial'}-{os.getpid()}"

    def _environment(self) -> Mapping[str, str]:
        if not self.wish.reports:
            return self.env
        return hooked_env(self.env, self.wish.reports, self.wish.report_on)

    def _places(self) -> list[str]:
        return [os.path.normpath(os.path.join(self.recipe.cwd, at)) for at in self.recipe.at]

    def _wishes(self) -> dict[str, Any]:
        """Say what the host is to heed from now on."""
        at = self._places()
        return {"memory": self.wish.memory_bytes, "idle": self.wish.idle_s, "at": at}

    # --- the three ways

    def _plainly(self, why: str) -> tuple[Ended, Launched]:
        self.launched = Launched(cold=why)
        return self._supervised(self.recipe.argv, self._environment())

    def _cold(self, words: Words, why: str) -> tuple[Ended, Launched]:
        tape = self.tape
        assert tape is not None
        control = Control(tape)
        # Ctrl-C waits until the script begins: before, Python would show our own file.
        held = {signal.SIGINT} - signal.pthread_sigmask(signal.SIG_BLOCK, ())
        spec = {
            "run": self.run_folder,
            "held": [int(one) for one in held],
            "cache": cache_folder(os.environ),
            "key": self.key,
            "roots": list(self.wish.roots),
            "control": control.theirs,
            **self._wishes(),
            "command": list(words.command),
            "tape": tape.path,
        }
        self.launched = Launched(cold=why, key=self.key)
        sweep(self.run_folder, self.key)
        try:
            argv = words.runner_argv(RUNNER, dumps(spec))
            return self._supervised(argv, self._environment(), control=control, held=held)
        finally:
            control.close()

    def _resume(self, words: Words, answer: Mapping[str, Any]) -> tuple[Ended, Launched]:
        tape = self.tape
        assert tape is not None
        env = self._environment()
        new = {name: env[name] for name in env if name.startswith(_OF_THE_TRIAL)}
        new[_FOR_RUNNER] = dumps({"tape": tape.path, "at": self._places()})
        resume = Resume(
            socket=socket_path(self.run_folder, self.key),
            id=answer["resume"],
            env=new,
            tape=str(answer["tape"]),
            mark=int(answer["mark"]),
        )
        control = Control(tape)
        ours, theirs = control.ours, control.theirs
        self.launched = Launched(
            at=str(answer["at"]),
            saved_s=float(answer["elapsed"]),
            because=str(answer.get("because") or ""),
            id=answer["resume"],
            key=self.key,
        )
        try:
            return self._supervised(
                words.command,
                env,
                control=control,
                become=lambda report: stand_in(resume, ours=ours, theirs=theirs, report=report),
            )
        finally:
            control.close()

    def _supervised(
        self, argv: tuple[str, ...], env: Mapping[str, str], **how: Any
    ) -> tuple[Ended, Launched]:
        recipe = self.recipe
        ended = supervise(
            argv,
            cwd=recipe.cwd,
            env=env,
            chunk=self.chunk,
            timeout_s=recipe.limits.timeout_s,
            let_live=recipe.let_live,
            quiet=self.quiet,
            started=self._started,
            **how,
        )
        return ended, self.launched.but(written=self._written())

    def _written(self) -> tuple[str, ...]:
        """Read what the program told at its end, which nobody else needs."""
        if self.tape is None:
            return ()
        path = written_path(self.tape.path)
        try:
            with open(path, encoding="utf-8") as file:
                found = loads(file.read())
            os.unlink(path)
        except (OSError, ValueError):
            return ()
        return tuple(str(one) for one in found)

    def _started(self) -> None:
        self.launched = self.launched.but(took_s=time.monotonic() - self.began)
        self.tell(self.launched)

    def close(self) -> None:
        if self.tape is not None:
            self.tape.close()
            self.tape = None


# --- who it is


def key_of(words: Words, cwd: str, identity: str, shape: str) -> str:
    """Name all that must be equal for one run to go on where another was."""
    from _blake2 import blake2b

    parts = (
        str(os.geteuid()),
        _inherited(),
        _boot_id(),
        os.path.realpath(words.python),
        words.python,
        words.version,
        *words.command,
        cwd,
        identity,
        shape,
    )
    text = "\0".join(parts).encode("utf-8", "surrogateescape")
    return blake2b(text, digest_size=8).hexdigest()


def _inherited() -> str:
    """Say what a program gets from who starts it and cannot be given to one that waits.

    As `nohup`, `umask`, `ulimit`, `nice` and `taskset` set it; and the container.
    """
    folder = "/proc/self/ns"
    spaces = [str(os.stat(f"{folder}/{name}").st_ino) for name in ("pid", "mnt", "net", "user")]
    root = os.stat("/")
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        status = [line for line in file if line.startswith(_INHERITED)]
    with open("/proc/self/limits", encoding="ascii") as file:
        limits = file.read()
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    return "\n".join((*spaces, f"{root.st_dev} {root.st_ino} {nice}", *status, limits))


def _boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def streams_shape(*, quiet: bool) -> str:
    """Say what kind of streams the program gets: its output depends on that."""
    kinds = [] if quiet else ["tty" if os.isatty(fd) else "file" for fd in (0, 1, 2)]
    return " ".join([*kinds, "joined" if are_one_file(1, 2) else "apart"])


# --- talking to hosts


def ask(run: str, key: str, wishes: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for the best snapshot: `resume` and its facts, or `cold` and why.

    The host heeds from now on what its snapshots may take, `memory` and `idle`, and which places
    are to be kept, `at`.
    """
    answer = _exchange(socket_path(run, key), {"op": "ask", **wishes})
    return answer or {"cold": _trouble(run, key) or "no snapshots yet"}


def _trouble(run: str, key: str) -> str:
    """Return what went wrong with an earlier host, once; empty if nothing did."""
    path = os.path.join(run, f"{key}.trouble")
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().strip().splitlines()
        os.unlink(path)
    except OSError:
        return ""
    return f"snapshots failed: {lines[-1]}" if lines else ""


def ban(way: Launched, why: str) -> None:
    """Never use this place again."""
    path = socket_path(run_folder(os.environ), way.key)
    _exchange(path, {"op": "ban", "id": way.id, "why": why})


def hosts() -> list[dict[str, Any]]:
    """Ask all hosts of this user how they are; each answer has its `key` too."""
    found = []
    for key in _keys():
        status = _exchange(socket_path(run_folder(os.environ), key), {"op": "status"})
        if status is not None:
            found.append({**status, "key": key})
    return found


def host_of(way: Launched | None) -> dict[str, Any]:
    """Ask the host of a run how it is; empty when it has none."""
    key = way.key if way else ""
    return next((host for host in hosts() if key and host["key"] == key), {})


def stop(key: str) -> int:
    """End a host and its snapshots; returns how many snapshots ended."""
    answer = _exchange(socket_path(run_folder(os.environ), key), {"op": "stop"}) or {}
    return int(answer.get("stopped") or 0)


def sweep(run: str, key: str) -> None:
    """Remove what hosts other than `key` left that were killed: nobody else would."""
    names = [name for name in os.listdir(run) if not name.startswith(key)]
    dead: dict[str, bool] = {}
    for name in names:
        other = name.partition(".")[0]
        path = os.path.join(run, name)
        try:
            if time.time() - os.stat(path).st_mtime < _LEFT_S:
                continue
            if other not in dead:
                dead[other] = _exchange(socket_path(run, other), {"op": "status"}) is None
            if dead[other]:
                os.unlink(path)
        except OSError:
            continue


def _keys() -> list[str]:
    try:
        names = os.listdir(run_folder(os.environ))
    except OSError:
        return []
    return sorted(name.removesuffix(".sock") for name in names if name.endswith(".sock"))


def _exchange(path: str, message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Send one message and return the answer; None when nobody is there."""
    try:
        link = Link(path, timeout_s=_ANSWER_S)
    except OSError:
        return None
    try:
        link.send(message)
        return link.receive()
    except (OSError, ValueError):
        return None
    finally:
        link.close()
