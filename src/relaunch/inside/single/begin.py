"""What the hook calls: has each module be changed when, and if, the program imports it."""

from __future__ import annotations

from relaunch.inside.awaited import when_loaded
from relaunch.inside.single import told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def begin(asked: str, failed: Callable[[BaseException, str], object]) -> None:
    """Collapse what is `asked` for: `all`, or only `loaders`; notes go to the folder behind it."""
    what, _, folder = asked.partition(":")
    told.begin(folder)
    _late("torch.utils.data.dataloader", _loaders)
    if what != "all":
        return
    for package in ("multiprocessing", "multiprocess"):  # the second has the pools of `datasets`
        _late(f"{package}.process", lambda module: _processes(module, failed))
        for method in ("fork", "spawn_posix", "forkserver"):
            _late(f"{package}.popen_{method}", _starts)
        _late(f"{package}.pool", _pools)
        for name in ("synchronize", "connection", "queues", "shared_memory"):
            _late(f"{package}.{name}", _between)
    _late("concurrent.futures.process", _executors)
    _late("joblib.parallel", _joblib)
    for name in ("distributed_c10d", "launcher.api", "device_mesh"):
        _late(f"torch.distributed.{name}", _world)
    _late("torch.multiprocessing.spawn", _world)


def _late(name: str, change: Callable[[ModuleType], object]) -> None:
    """Change it when the program loads it, and load ours then: who has none pays nothing."""

    def act(module: ModuleType) -> None:
        try:
            change(module)
        except Exception as error:
            told.told(f"{name} is left as it is: {error!r}", "rl")

    when_loaded(name, act)


def _loaders(module: ModuleType) -> None:
    from relaunch.inside.single.loaders import loaders

    loaders(module)


def _processes(module: ModuleType, failed: Callable[[BaseException, str], object]) -> None:
    from relaunch.inside.single import processes

    processes.begin(failed)
    processes.who_is_current(module)


def _starts(module: ModuleType) -> None:
    from relaunch.inside.single.processes import starts

    starts(module)


def _pools(module: ModuleType) -> None:
    from relaunch.inside.single.pools import pools

    pools(module)


def _executors(module: ModuleType) -> None:
    from relaunch.inside.single.executors import executors

    executors(module)


def _joblib(module: ModuleType) -> None:
    from relaunch.inside.single.executors import joblib

    joblib(module)


def _between(module: ModuleType) -> None:
    from relaunch.inside.single.between import CHANGES

    CHANGES[module.__name__.rpartition(".")[2]](module)


def _world(module: ModuleType) -> None:
    from relaunch.inside.single.world import CHANGES

    CHANGES[module.__name__](module)
