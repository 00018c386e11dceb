"""Scripts that start their ranks themselves, by `mp.spawn`: here they are ranks already.

So each does what its own process would have done, and nobody is started.
"""

from __future__ import annotations

import functools
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Over:
    """What `join=False` returns: it is over."""

    def join(self, *_: Any, **__: Any) -> bool:
        """Tell so."""
        return True

    def pids(self) -> list[int]:
        """Return nobody: this process did it."""
        return [os.getpid()]


def install(torch: Any) -> None:
    """Stand for both functions of torch."""
    module = torch.multiprocessing
    for name in ("spawn", "start_processes"):
        setattr(module, name, _own_part(getattr(module, name)))


def _own_part(theirs: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(theirs)
    def spawn(
        fn: Callable[..., Any],
        args: Any = (),
        nprocs: int = 1,
        join: bool = True,
        *_: Any,
        **__: Any,
    ) -> Over | None:
        rank, ranks = int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"])
        if nprocs > ranks:
            raise RuntimeError(
                f"the script spawns {nprocs} processes, and there are {ranks} ranks: "
                f"rl run --ranks {nprocs}"
            )
        if rank < nprocs:
            fn(rank, *args)
        return None if join else Over()

    return spawn
