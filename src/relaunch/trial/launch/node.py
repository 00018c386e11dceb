"""Runs a script as the ranks of a node that is not there: forked from one process that has torch.

That process waits for the next run, so that nothing is imported again. Where something is to be
beside the program, as a small disk, the ranks are below a process of the trial itself.
"""

from __future__ import annotations

import _socket
import os
import time

from relaunch.errors import UsageError
from relaunch.inside.node.rank import HOOK, KEPT_HOOK
from relaunch.inside.protocol import SITE
from relaunch.inside.warm.where import run_folder, socket_path
from relaunch.jsontext import dumps, loads
from relaunch.proc.companion import Companion
from relaunch.proc.detached import start_detached
from relaunch.proc.launch import NotResumed
from relaunch.proc.standin import Link, Resume, stand_in
from relaunch.proc.supervise import supervise
from relaunch.record import Record
from relaunch.trial.launch.ranked_words import Ranked, read_ranked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from relaunch.proc.supervise import Ended
    from relaunch.recipe import Recipe

    Chunk = Callable[[float, int, bytes], object]

RUNNER = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    *("inside", "node", "main.py"),
)
FILE = "node.json"
"""In the folder of a trial: why ranks could not go on."""
KIND = "ranks"
_TRIES = 3
_MOST_HOSTS = 2
_IMPORTS_S = 300.0
_OURS = "RELAUNCH_"


class Node(Record):
    """What a launch of ranks needs to know besides the recipe."""

    identity: str
    """Stands for the environment and what is installed: with another, another process serves."""
    roots: tuple[str, ...] = ()
    """Folders of the user's own code, of which nothing is imported before."""
    idle_s: float = 0.0
    """How long that process waits for the next run; 0 leaves it to that process."""
    say: Callable[[str], object] = lambda _: None
    """Hears what is imitated, and from what the ranks are forked."""


class RanksTold(Companion):
    """Reads what the ranks have left of why they could not go on."""

    def __init__(self, folder: str) -> None:
        """Look into the folder of the trial."""
        self._folder = folder

    def reached(self) -> Mapping[str, Any]:
        """Return the mismatch that ended them, which is the failure."""
        try:
            with open(os.path.join(self._folder, FILE), encoding="utf-8") as file:
                found = loads(file.read())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) and "title" in found else {}


def run_node(
    recipe: Recipe,
    env: Mapping[str, str],
    node: Node,
    *,
    chunk: Chunk,
    quiet: bool,
    companions: Sequence[Companion],
) -> Ended:
    """Run all ranks to their end; they end as the first that failed."""
    ranked = read_ranked(recipe, env)
    for line in ranked.remarks:
        node.say(line)
    node.say(imitated(recipe))
    launch = _Launch(recipe, env, node, ranked, chunk=chunk, quiet=quiet)
    beside = [one for one in companions if not isinstance(one, RanksTold)]
    if not beside and not ranked.before:
        for _ in range(_TRIES):
            try:
                ended = launch.from_host()
            except OSError as error:
                node.say(f"no process can wait for the next run: {error.strerror or error}")
                break
            if ended is not None:
                return ended
    return launch.below_us(companions)


def imitated(recipe: Recipe) -> str:
    """Say in a line what is imitated, and what is not."""
    if recipe.threads:
        return (
            f"{recipe.ranks} ranks as threads of one process, torch.cuda on the CPU; modules and "
            "random numbers are shared; kernels, their numerics, timing, overlap and GPU memory "
            "are not imitated"
        )
    limit = recipe.limits.memory_bytes
    capped = f", each with {limit >> 20} MiB" if limit is not None else ""
    return (
        f"{recipe.ranks} ranks{capped}, torch.cuda on the CPU, NCCL by gloo; kernels, their "
        "numerics, timing and overlap are not imitated"
    )


class _Launch:
    """One run on its way."""

    def __init__(
        self,
        recipe: Recipe,
        env: Mapping[str, str],
        node: Node,
        ranked: Ranked,
        *,
        chunk: Chunk,
        quiet: bool,
    ) -> None:
        self._recipe, self._env, self._node, self._ranked = recipe, env, node, ranked
        self._how = {
            "cwd": recipe.cwd,
            "chunk": chunk,
            "timeout_s": recipe.limits.timeout_s,
            "let_live": recipe.let_live,
            "quiet": quiet,
        }

    def _spec(self) -> dict[str, Any]:
        recipe, ranked = self._recipe, self._ranked
        umask = os.umask(0o077)
        os.umask(umask)
        memory = 0 if recipe.threads else recipe.limits.memory_bytes or 0
        return {
            "ranks": recipe.ranks,
            "threads": recipe.threads,
            "memory": memory,
            "kind": ranked.kind,
            "target": ranked.target,
            "words": list(ranked.words),
            "cwd": recipe.cwd,
            "roots": list(self._node.roots),
            "umask": umask,
        }

    def _for_ranks(self) -> dict[str, str]:
        """Return the environment, with our hook put off until there are ranks."""
        env = dict(self._ranked.env)
        if hook := env.pop(HOOK, ""):
            env[KEPT_HOOK] = hook
        return env

    # --- from a process that waits

    def from_host(self) -> Ended | None:
        """Have the ranks forked from a process that has torch; None if it is to be tried again."""
        began = time.monotonic()
        run = run_folder(os.environ)
        key = self._key()
        link, is_new = _connected(run, key), False
        if link is None:
            link, is_new = self._started(run, key), True
        try:
            threads = self._recipe.threads
            link.send({"op": "ask", "idle_s": self._node.idle_s, "threads": threads})
            answer = link.receive()
        finally:
            link.close()
        if answer is not None and answer["why"]:
            raise UsageError(f"no ranks: {answer['why']}", hint="rl doctor")
        if answer is None or answer["stale"]:
            return None
        took = time.monotonic() - began
        torch = f"torch {answer['torch']}"
        self._node.say(
            f"forked from {torch}, imported in {took:.1f} s; the next run finds it warm"
            if is_new
            else f"forked from a warm {torch}"
        )
        return self._resumed(run, key)

    def _resumed(self, run: str, key: str) -> Ended | None:
        spec = {**self._spec(), "env": self._for_ranks()}
        resume = Resume(
            socket=socket_path(run, key), id=dumps(spec), env={}, tape=os.devnull, mark=0
        )
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        lines = {"ours": ours.fileno(), "theirs": theirs.fileno()}
        try:
            return supervise(
                self._ranked.command,
                env=self._env,
                become=lambda report: stand_in(resume, report=report, **lines),
                **self._how,  # type: ignore[arg-type]  # each has its own type
            )
        except NotResumed:
            return None
        finally:
            ours.close()
            theirs.close()

    def _key(self) -> str:
        """Name all that must be equal for ranks to be forked from the same process."""
        from _blake2 import blake2b

        from relaunch.trial.launch.warm import _boot_id, _inherited

        ranked = self._ranked
        parts = (
            KIND,
            str(os.geteuid()),
            _inherited(),
            _boot_id(),
            os.path.realpath(ranked.python),
            *ranked.options,
            self._node.identity,
            RUNNER,
        )
        text = "\0".join(parts).encode("utf-8", "surrogateescape")
        return blake2b(text, digest_size=8).hexdigest()

    def _started(self, run: str, key: str) -> Link:
        """Start the process that has torch; who connects is heard when it has."""
        from relaunch.inside.warm import begin

        folder = os.open(run, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            begin.lock(folder)
            link = _connected(run, key)
            if link is not None:
                return link
            _end_others()
            serve = {"run": run, "key": key, "idle_s": self._node.idle_s}
            with begin.listen(run, key) as listener:
                start_detached(
                    [*self._ranked.options, RUNNER, dumps({"serve": serve})],
                    cwd="/",
                    env=_without_ours(self._ranked.env),
                    inherited=listener.fileno(),
                )
        finally:
            os.close(folder)
        return Link(socket_path(run, key), timeout_s=_IMPORTS_S)

    # --- in the tree of the trial

    def below_us(self, companions: Sequence[Companion]) -> Ended:
        """Import and fork in a process of the trial itself; what is beside it sees all of it."""
        ranked = self._ranked
        argv = (*ranked.before, *ranked.options, RUNNER, dumps({"lead": self._spec()}))
        return supervise(
            argv,
            env={"OMP_NUM_THREADS": "1", **self._for_ranks()},
            companions=companions,
            **self._how,  # type: ignore[arg-type]  # each has its own type
        )


def check_ranks(recipe: Recipe, env: Mapping[str, str]) -> None:
    """UsageError where there can be no ranks: no Python, no script, no torch."""
    ranked = read_ranked(recipe, env)
    sites = [site for site in ranked.sites if os.path.isdir(os.path.join(site, "torch"))]
    paths = env.get("PYTHONPATH", "").split(os.pathsep)
    if not sites and not any(os.path.isdir(os.path.join(p, "torch")) for p in paths if p):
        words = f"--ranks: no torch in {ranked.python}"
        raise UsageError(words, hint=f"{ranked.python} -m pip install torch")


def _connected(run: str, key: str) -> Link | None:
    try:
        return Link(socket_path(run, key), timeout_s=_IMPORTS_S)
    except OSError:
        return None


def _end_others() -> None:
    """Let only those live on that were needed last: each has all of torch."""
    from relaunch.trial.launch.warm import hosts, stop

    found = [host for host in hosts() if host.get("kind") == KIND and not host["running"]]
    found.sort(key=lambda host: float(host["idle_s"]))
    for host in found[_MOST_HOSTS - 1 :]:
        stop(host["key"])


def _without_ours(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for a process that belongs to no trial."""
    found = {name: env[name] for name in env if not name.startswith(_OURS)}
    entries = [one for one in found.get("PYTHONPATH", "").split(os.pathsep) if one != SITE]
    found["PYTHONPATH"] = os.pathsep.join(entries)
    if not found["PYTHONPATH"]:
        del found["PYTHONPATH"]
    return {"OMP_NUM_THREADS": "1", **found}
