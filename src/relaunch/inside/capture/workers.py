"""Sees what fails in the workers of multiprocessing, pools, executors and data loaders.

They catch the exception, and send its text to the parent: only the worker has the frames. What is
replaced here is replaced in a worker process alone, and adds no frame to its stack: the program's
own process is as it would be without us.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Keep = Callable[[BaseException, str], object]

_WRAPPERS = (
    ("multiprocessing.pool", "ExceptionWithTraceback"),
    ("concurrent.futures.process", "_ExceptionWithTraceback"),
    ("joblib.externals.loky.process_executor", "_ExceptionWithTraceback"),
    ("torch.utils.data._utils.worker", "ExceptionWrapper"),
)
"""What a worker hands its exception to."""


def watch(keep: Keep) -> None:
    """Watch this process, which multiprocessing made to be a worker."""
    from multiprocessing.process import BaseProcess

    if not isinstance(vars(BaseProcess)["_bootstrap"], _Bootstrap):
        BaseProcess._bootstrap = _Bootstrap(BaseProcess._bootstrap, keep)  # type: ignore[attr-defined]


class _Bootstrap:
    """Stands for the method that runs a worker, and watches when that is asked for."""

    def __init__(self, theirs: Any, keep: Keep) -> None:
        self._theirs = theirs
        self._keep = keep

    def __get__(self, process: Any, kind: Any = None) -> Any:
        if process is not None:
            try:
                self._watch(process)
            except Exception:
                pass
        return self._theirs.__get__(process, kind)

    def _watch(self, process: Any) -> None:
        """Replace what it would call, now that all it needs is imported."""
        base = sys.modules["multiprocessing.process"].BaseProcess
        if not isinstance(vars(base)["name"], _Name):
            base.name = _Name(vars(base)["name"], self._theirs.__code__, self._keep)
        for module_name, name in _WRAPPERS:
            module = sys.modules.get(module_name)
            theirs = getattr(module, name, None)
            if isinstance(theirs, type):
                setattr(module, name, _hearing(theirs, self._keep))


def _hearing(theirs: type, keep: Keep) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        error = sys.exc_info()[1]
        if error is not None:
            _tell(keep, error)
        return theirs(*args, **kwargs)

    return wrapper


class _Name(property):
    """The name of a process; multiprocessing asks for it before it shows why one failed."""

    def __init__(self, theirs: Any, asker: Any, keep: Keep) -> None:
        super().__init__(theirs.fget, theirs.fset)
        self._asker = asker
        self._keep = keep

    def __get__(self, process: Any, kind: Any = None) -> Any:
        error = sys.exc_info()[1]
        if process is not None and error is not None and sys._getframe(1).f_code is self._asker:
            _tell(self._keep, error)
        return super().__get__(process, kind)


def _tell(keep: Keep, error: BaseException) -> None:
    try:
        process = sys.modules["multiprocessing.process"].current_process()
        keep(error, str(process._name))
    except BaseException:
        pass
