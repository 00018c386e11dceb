"""The workers of torch's DataLoader, one after the other in this process, with the same numbers.

Each worker keeps what it has for itself: its copy of the dataset, its seeds, its random numbers,
what `get_worker_info()` says in it. Batches come in the order in which the real workers' batches
come, and indices are drawn as far ahead, so that a program sees the same data, and fails at the
same batch.
"""

from __future__ import annotations

import copy
import random
import sys

from relaunch.inside.single.told import told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


def loaders(module: ModuleType) -> None:
    """Replace what iterates with workers; `num_workers` and the other options stay as given."""
    theirs: Any = module
    theirs._MultiProcessingDataLoaderIter = _made(theirs)


def _made(theirs: Any) -> Any:
    base = theirs._BaseDataLoaderIter
    kinds = theirs._DatasetKind

    class WorkersInTurn(base):  # type: ignore[misc,valid-type]
        def __init__(self, loader: Any) -> None:
            super().__init__(loader)
            self._prefetch_factor = loader.prefetch_factor or 2
            init = loader.worker_init_fn
            if isinstance(self._dataset, _pipes(theirs)):
                sharded = theirs._sharding_worker_init_fn
                init = theirs.functools.partial(sharded, init, self._world_size, self._rank)
            count = self._num_workers
            self._workers = [_Worker(theirs, self, init, one) for one in range(count)]
            told(f"DataLoader with {count} workers -> this process, in turn")
            self._reset(loader, first_iter=True)

        def _reset(self, loader: Any, first_iter: bool = False) -> None:
            super()._reset(loader, first_iter)
            self._tasks: list[tuple[Any, Any]] = []
            self._turn = 0
            for worker in self._workers:
                worker.ended = False
                if not first_iter:
                    worker.resume(self)
            for _ in range(self._prefetch_factor * self._num_workers):
                self._draw()

        def _draw(self) -> None:
            """Draw the indices of one more batch, for the next worker that has data."""
            try:
                index = self._next_index()
            except StopIteration:
                return
            for _ in self._workers:
                worker = self._workers[self._turn % len(self._workers)]
                self._turn += 1
                if not worker.ended:
                    self._tasks.append((worker, index))
                    return

        def _next_data(self) -> Any:
            while self._tasks:
                worker, index = self._tasks.pop(0)
                if worker.ended:
                    continue
                try:
                    data = worker.fetch(index)
                except StopIteration:
                    if self._dataset_kind != kinds.Iterable:
                        raise
                    worker.ended = True
                    self._draw()
                    continue
                except BaseException:
                    self._draw()
                    raise
                self._draw()
                if self._pin_memory:
                    data = theirs._utils.pin_memory.pin_memory(data, self._pin_memory_device)
                return data
            raise StopIteration

    WorkersInTurn.__name__ = "_MultiProcessingDataLoaderIter"
    WorkersInTurn.__qualname__, WorkersInTurn.__module__ = WorkersInTurn.__name__, theirs.__name__
    return WorkersInTurn


def _pipes(theirs: Any) -> tuple[Any, ...]:
    names = ("IterDataPipe", "MapDataPipe")
    return tuple(vars(theirs)[name] for name in names if name in vars(theirs))


class _Worker:
    """One worker: begun when its first batch is wanted, and with its own state from then on."""

    def __init__(self, theirs: Any, iterator: Any, init: Any, number: int) -> None:
        self._theirs, self._init, self._number = theirs, init, number
        self._iterator = iterator
        self._seed = iterator._base_seed
        self._shared_seed = getattr(iterator, "_shared_seed", None)
        self._fetcher: Any = None
        self._begun = False
        self._state: Any = None
        self.ended = False

    def fetch(self, index: Any) -> Any:
        """Fetch a batch, as this worker."""
        with _AsWorker(self):
            if not self._begun:
                self._begun = True
                self._begin()
            if self._fetcher is None:
                self._make_fetcher()
            return self._fetcher.fetch(index)

    def resume(self, iterator: Any) -> None:
        """Begin another epoch, as one that persists: its random numbers go on."""
        self._fetcher = None
        self._shared_seed = getattr(iterator, "_shared_seed", None)

    def _begin(self) -> None:
        torch = sys.modules["torch"]
        seed = self._seed + self._number
        random.seed(seed)
        torch.random.default_generator.manual_seed(seed)
        worker = self._theirs._utils.worker
        numbers = sys.modules.get("numpy")
        if numbers is not None and hasattr(worker, "_generate_state"):
            numbers.random.seed(worker._generate_state(self._seed, self._number))
        self._dataset = _own_copy(self._iterator._dataset)
        self._seed_pipe()
        self.info = worker.WorkerInfo(
            id=self._number,
            num_workers=self._iterator._num_workers,
            seed=seed,
            dataset=self._dataset,
        )
        worker._worker_info = self.info
        if self._init is not None:
            self._init(self._number)

    info: Any = None

    def _seed_pipe(self) -> None:
        """Shuffle a data pipe as all workers do."""
        pipe = vars(self._theirs).get("IterDataPipe")
        if pipe is not None and isinstance(self._dataset, pipe) and self._shared_seed is not None:
            torch = sys.modules["torch"]
            shared = torch.Generator()
            shared.manual_seed(self._shared_seed)
            apply = torch.utils.data.graph_settings.apply_random_seed
            self._dataset = apply(self._dataset, shared)

    def _make_fetcher(self) -> None:
        iterator = self._iterator
        self._fetcher = self._theirs._DatasetKind.create_fetcher(
            iterator._dataset_kind,
            self._dataset,
            iterator._auto_collation,
            iterator._collate_fn,
            iterator._drop_last,
        )


def _own_copy(dataset: Any) -> Any:
    """Return a dataset of the worker's own: what it sets on it is set in no other."""
    try:
        return copy.copy(dataset)
    except Exception:
        return dataset


class _AsWorker:
    """The random numbers, threads and information of a worker, while it works."""

    def __init__(self, worker: _Worker) -> None:
        self._worker = worker
        self._module = worker._theirs._utils.worker

    def __enter__(self) -> None:
        torch: Any = sys.modules["torch"]
        self._before = _states()
        self._info = self._module._worker_info
        self._threads = torch.get_num_threads()
        if self._threads != 1:
            torch.set_num_threads(1)
        if self._worker._state is not None:
            _set_states(self._worker._state)
        self._module._worker_info = self._worker.info

    def __exit__(self, *_: object) -> None:
        torch: Any = sys.modules["torch"]
        self._worker._state = _states()
        _set_states(self._before)
        self._module._worker_info = self._info
        if self._threads != 1:
            torch.set_num_threads(self._threads)


def _states() -> tuple[Any, Any, Any]:
    torch: Any = sys.modules["torch"]
    numbers: Any = sys.modules.get("numpy")
    return (
        random.getstate(),
        torch.random.default_generator.get_state(),
        numbers.random.get_state() if numbers is not None else None,
    )


def _set_states(states: tuple[Any, Any, Any]) -> None:
    torch: Any = sys.modules["torch"]
    random.setstate(states[0])
    torch.random.default_generator.set_state(states[1])
    if states[2] is not None:
        sys.modules["numpy"].random.set_state(states[2])
