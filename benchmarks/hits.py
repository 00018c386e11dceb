"""Runs in the environment of the peers: looks at values in one way, as often as it is told to.

    python hits.py WAY VALUES

Reads how often from standard input, line by line, and answers each with the CPU time that all of
it took. What the ways print goes to standard error.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

Work = Callable[[Iterable[Any]], None]


def plain() -> Work:
    """Nobody looks."""

    def work(values: Iterable[Any]) -> None:
        for x in values:
            y = x  # noqa: F841

    return work


def peek() -> Work:
    """`peek` of relaunch."""
    from relaunch import peek

    def work(values: Iterable[Any]) -> None:
        for x in values:
            peek(x)

    return work


def icecream() -> Work:
    """`ic` of icecream."""
    from icecream import ic  # type: ignore[import-not-found]

    def work(values: Iterable[Any]) -> None:
        for x in values:
            ic(x)

    return work


def icecream_plain() -> Work:
    """`ic` without colours, which take most of its time."""
    from icecream import ic

    ic.configureOutput(outputFunction=lambda text: print(text, file=sys.stderr))
    return icecream()


def pysnooper() -> Work:
    """PySnooper, which tells of each line and each new value of a function."""
    import pysnooper  # type: ignore[import-not-found]

    return pysnooper.snoop()(plain())  # type: ignore[no-any-return]


def snoop() -> Work:
    """Likewise snoop."""
    import snoop  # type: ignore[import-not-found]

    return snoop.snoop(plain())  # type: ignore[no-any-return]


def torchsnooper() -> Work:
    """Likewise TorchSnooper, which knows tensors."""
    import torchsnooper  # type: ignore[import-not-found]

    return torchsnooper.snoop()(plain())  # type: ignore[no-any-return]


def lovely() -> Work:
    """A line of lovely-tensors, printed."""
    from lovely_tensors import lovely  # type: ignore[import-not-found]

    def work(values: Iterable[Any]) -> None:
        for x in values:
            print(lovely(x), file=sys.stderr)

    return work


WAYS = {one.__name__: one for one in (
    plain, peek, icecream, icecream_plain, pysnooper, snoop, torchsnooper, lovely,
)}  # fmt: skip


def ints(count: int) -> list[Any]:
    """Numbers that all differ: who traces tells of changes only."""
    return list(range(1_000_000, 1_000_000 + count))


def tensors(count: int) -> list[Any]:
    """Tensors of a thousand floats, of which no two in a row are the same."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    some = [torch.randn(1000) for _ in range(7)]
    return [some[number % 7] for number in range(count)]


def main() -> None:
    """Answer until nobody asks any more."""
    make = {"ints": ints, "tensors": tensors}[sys.argv[2]]
    work = WAYS[sys.argv[1]]()
    work(iter(make(2)))  # what is paid once is not of interest
    print("ready", flush=True)
    for line in sys.stdin:
        # Who traces a function tells of all it holds: of these only what it is given next.
        values = iter(make(int(line)))
        before = time.process_time()
        work(values)
        print(time.process_time() - before, flush=True)


if __name__ == "__main__":
    main()
