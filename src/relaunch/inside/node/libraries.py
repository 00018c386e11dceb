"""Imports what the ranks need before they are forked, and says why that cannot be."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
import time

from relaunch.inside.forks.ready import keep_torch_whole
from relaunch.inside.node import collectives, spawning
from relaunch.inside.node.cuda import install

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

NEEDED = (
    "torch", "torch.distributed", "torch.distributed.rendezvous", "torch.nn.parallel",
    "torch.utils.data", "torch.utils.data.distributed", "torch.amp", "torch.optim",
    "torch.cuda.nccl", "torch.multiprocessing", "torch.utils._device", "torch._tensor_str",
    "torch.overrides", "torch.autograd.graph", "torch.accelerator",
)  # fmt: skip
EACH = ("torch._dynamo",)
"""What each rank comes to sooner or later, by its optimizer, and is dear."""
LATER = (
    "torch.distributed.fsdp", "torch.distributed.device_mesh", "torch.distributed.nn",
    "torch.distributed._functional_collectives", "torch.distributed.optim",
    "torch.utils.checkpoint",
)  # fmt: skip
"""What scripts often need, and the first run need not wait for."""


_NICEST = 19


class Libraries:
    """What is imported in this process."""

    def __init__(self) -> None:
        """Nothing is yet."""
        self.took_s = 0.0
        self.why = ""
        """Why no rank can be forked from here."""
        self.mode: Any = None
        self._stamps: dict[str, tuple[int, int]] = {}

    def load(self) -> None:
        """Import what there must be, and give torch its GPUs."""
        began = time.perf_counter()
        gc.disable()  # nothing of what is imported is garbage: that would be a quarter of the time
        try:
            for name in NEEDED:
                importlib.import_module(name)
            torch: Any = sys.modules["torch"]
            self.why = _lacks(torch)
            if not self.why:
                self.mode = install.install(torch)
                collectives.install(torch)
                spawning.install(torch)
        except Exception as error:
            self.why = f"torch cannot be imported: {type(error).__name__}: {error}"
        self._settle()
        self.took_s = time.perf_counter() - began

    def complete(self) -> None:
        """Import what each rank would have to import by itself, sooner or later."""
        if not self.why:
            self.also(EACH)

    def also(self, names: Sequence[str]) -> None:
        """Import more, as far as that can be done alone."""
        began = time.perf_counter()
        missing = [name for name in names if name not in sys.modules]
        gc.disable()
        for name in missing:
            try:
                importlib.import_module(name)
            except (Exception, SystemExit):  # a part that this build does not have
                continue
        self._settle()
        self.took_s += time.perf_counter() - began

    def also_aside(self, names: Sequence[str]) -> None:
        """Import more while nobody else wants the core: a run may have begun meanwhile.

        How nice a thread is ends with it, which an unprivileged process could not take back.
        """
        thread = threading.Thread(target=self._also_nicely, args=(names,))
        thread.start()
        thread.join()

    def _also_nicely(self, names: Sequence[str]) -> None:
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICEST)
        except OSError:
            pass
        self.also(names)

    def _settle(self) -> None:
        self.note()
        keep_torch_whole()
        gc.freeze()  # what all ranks share stays shared
        gc.enable()

    def note(self) -> None:
        """Note the files of what is loaded, as they are now."""
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and file not in self._stamps:
                self._stamps[file] = _stamp(file)
        here = os.path.dirname(os.path.abspath(__file__))
        for folder, _, names in os.walk(here):
            for name in names:
                if name.endswith(".py"):
                    path = os.path.join(folder, name)
                    self._stamps.setdefault(path, _stamp(path))

    def stale(self) -> str:
        """Name a file that changed since it was loaded; empty if none did."""
        return next((file for file, was in self._stamps.items() if _stamp(file) != was), "")


def _lacks(torch: Any) -> str:
    """Say what this torch lacks; empty if it can do."""
    if not torch.distributed.is_available():
        return f"torch {torch.__version__} was built without torch.distributed"
    if not torch.distributed.is_gloo_available():
        return f"torch {torch.__version__} was built without gloo"
    return ""


def _stamp(file: str) -> tuple[int, int]:
    try:
        found = os.stat(file)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
