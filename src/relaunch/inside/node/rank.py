"""Becomes one rank: its streams, environment, memory and GPU, then the script."""

from __future__ import annotations

import os
import signal
import sys

from relaunch.inside.node import shown
from relaunch.inside.node.cuda import gpus
from relaunch.inside.node.script import Program, outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

HOOK = "RELAUNCH_HOOK"
KEPT_HOOK = "RELAUNCH_NODE_HOOK"
"""What is HOOK to the ranks, and nothing to the process that they are forked from."""
FAILED = b"!"
"""What a rank says when it has failed, before it takes its time to end."""
_TAKEN_AWAY = ("RELAUNCH_RANKED", KEPT_HOOK, "CUDA_VISIBLE_DEVICES")
"""Lines are labelled already; and GPUs of this machine are not those of the node."""
_DIE_WITH_PARENT = 1
_KILL = 9


def environment(base: Mapping[str, str], rank: int, ranks: int, port: int) -> dict[str, str]:
    """Return what torchrun would have set, on top of the program's own."""
    found = {name: base[name] for name in base if name not in _TAKEN_AWAY}
    if KEPT_HOOK in base:
        found[HOOK] = base[KEPT_HOOK]
    threads = {"OMP_NUM_THREADS": "1"} if ranks > 1 else {}
    return {
        **threads,
        "GLOO_SOCKET_IFNAME": "lo",
        **found,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": str(ranks),
        "ROLE_NAME": "default",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RUN_ID": "none",
    }


def settle(env: Mapping[str, str], name: str, program: Program) -> None:
    """Give a forked process its own environment, name, signals and streams."""
    os.environ.clear()
    os.environ.update(env)
    shown.show(program.command, env)
    call_ourselves(name)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    die_with_parent()
    open_streams()


def be(
    program: Program,
    *,
    env: Mapping[str, str],
    rank: int,
    ranks: int,
    memory_bytes: int,
    mode: Any,
    tell: int,
    learn: int = -1,
    roots: Sequence[str] = (),
) -> NoReturn:
    """Run the script as one rank; `tell` is the file on which a failure is told. Never returns.

    What it imports that is no code below `roots` is noted in the file `learn`, for later runs.
    """
    code = 1
    try:
        known = set(sys.modules) if learn >= 0 else set()  # a look at each copies its page
        settle(env, f"rank {rank}", program)
        start_hook()
        renew(env)
        gpus.begin(ranks, memory_bytes)
        if memory_bytes:
            limit(gpus.Gpus.began_bytes + memory_bytes)
        os.chdir(program.cwd)
        program.settle()
        mode.__enter__()
        code = _run(program, tell)
        if learn >= 0:
            os.write(learn, "\n".join(_imported(known, roots)).encode("utf-8", "replace"))
    except Exception as error:
        cannot(error)
    finally:
        leave(code)


def cannot(error: Exception) -> None:
    """Say what went wrong in our own part, which should not happen."""
    where: Any = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = f"{where.tb_frame.f_code.co_filename}:{where.tb_lineno}" if where else ""
    sys.stderr.write(f"rl: this rank cannot be led: {error!r} at {place}\n")


def _imported(known: set[str], roots: Sequence[str]) -> list[str]:
    """Name the libraries that the script needed besides."""
    from relaunch.inside.forks import noted

    tops = tuple(os.path.join(os.path.realpath(root), "") for root in roots)
    found = noted.modules(tops)
    return [name for name, kind, _ in found if kind == noted.LIBRARY and name not in known]


def _run(program: Program, tell: int) -> int:
    error: BaseException | None = None
    try:
        program.run()
    except BaseException as raised:
        error = raised
    code = outcome(error)
    for stream in (sys.stdout, sys.stderr):
        flush(stream)
    if code:
        os.write(tell, FAILED)
    return code


def leave(code: int) -> NoReturn:
    """Do what Python does at the end, but take nothing apart: that would copy what is shared."""
    try:
        threading: Any = sys.modules.get("threading")
        if threading is not None:
            threading._shutdown()
        import atexit

        atexit._run_exitfuncs()
    finally:
        for stream in (sys.stdout, sys.stderr):
            flush(stream)
        if code == 128 + signal.SIGINT:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        os._exit(code)


def flush(stream: Any) -> None:
    """Write what a stream still has; nothing when nobody reads it."""
    try:
        if stream is not None:
            stream.flush()
    except (OSError, ValueError):
        pass


def renew(env: Mapping[str, str]) -> None:
    """Have random numbers and threads of our own, as a new process has."""
    torch: Any = sys.modules["torch"]
    from relaunch.inside.forks.ready import renew_random

    renew_random()
    torch.seed()
    number = env.get("OMP_NUM_THREADS", "")
    if number.isdecimal() and int(number):
        torch.set_num_threads(int(number))


def limit(data_bytes: int) -> None:
    """Let this process have so much private memory; more is refused when it is asked for."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = data_bytes if hard == resource.RLIM_INFINITY else min(data_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def start_hook() -> None:
    """Start what reports failures, as our sitecustomize does in a new process."""
    if not os.environ.get(HOOK):
        return
    import _frozen_importlib_external as importer

    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "hook.py")
    names: dict[str, Any] = {"__name__": "_relaunch_hook", "__file__": path}
    loader: Any = importer.SourceFileLoader("_relaunch_hook", path)
    exec(loader.get_code("_relaunch_hook"), names)
    names["start"]()


def call_ourselves(name: str) -> None:
    """Show a name in lists of processes."""
    try:
        with open("/proc/self/comm", "w", encoding="ascii") as file:
            file.write(name)
    except OSError:
        pass


def die_with_parent() -> None:
    """End when the process ends that leads the ranks."""
    import ctypes

    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, _KILL, 0, 0, 0)


def open_streams() -> None:
    """Give Python streams on the new files, line by line, as a person reads them."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = open(  # noqa: SIM115  # for as long as the process lives
            number,
            "w" if number else "r",
            1,
            encoding=os.environ.get("PYTHONIOENCODING", "").partition(":")[0] or "utf-8",
            errors="backslashreplace" if number == 2 else "surrogateescape",
            closefd=False,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
