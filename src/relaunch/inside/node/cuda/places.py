"""On which device a tensor is, as far as the script is concerned: a note on the tensor itself.

There are three answers: a GPU, the CPU, and nothing, for tensors that torch made out of our sight.
"""

from __future__ import annotations

from relaunch.inside.node.cuda import gpus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

NOTE = "_relaunch_at"
PINNED = "_relaunch_pinned"
CPU = -1
_LISTS = (list, tuple)


class Places:
    """Reads and writes the notes."""

    def __init__(self, torch: Any) -> None:
        """Know what a tensor is."""
        self._torch = torch
        self._tensor = torch.Tensor
        self._listed = (torch.Tensor, list, tuple, type(None))
        self._is_backward = torch._C._current_graph_task_id
        self.seen = False
        """Whether anything was put on a GPU yet."""

    def at(self, tensor: Any) -> int | None:
        """Return its GPU, -1 for the CPU; None when nobody noted it."""
        return getattr(tensor, NOTE, None)

    def told(self, tensor: Any) -> int:
        """Return what a script is told: what autograd made meanwhile is where the rest is."""
        at = getattr(tensor, NOTE, None)
        if at is not None:
            return int(at)
        return gpus.here.current if self.seen and self._is_backward() != -1 else CPU

    def note(self, found: Any, at: int | None, *, anew: bool = False) -> None:
        """Note where tensors are, a result or a list of them; what is noted stays, but `anew`."""
        if at is None:
            return
        if isinstance(found, self._tensor):
            if anew or getattr(found, NOTE, None) is None:
                setattr(found, NOTE, at)
                self.seen = self.seen or at >= 0
        elif isinstance(found, tuple) or (type(found) is list and self._has_tensors(found)):
            for one in found:
                self.note(one, at, anew=anew)

    def among(self, values: Iterable[Any]) -> int | None:
        """Return where the result of an operation with these is: on a GPU if any of them is."""
        found: int | None = None
        at: int | None
        for value in values:
            if isinstance(value, self._tensor):
                at = getattr(value, NOTE, None)
            elif isinstance(value, _LISTS) and self._has_tensors(value):
                at = self.among(value)
            else:
                continue
            if at is not None:
                if at >= 0:
                    return at
                found = at
        return found

    def differ(self, values: Iterable[Any]) -> tuple[int, int] | None:
        """Return two places among tensors that an operation wants in one; None if there are not.

        A number from the CPU goes with everything.
        """
        first = None
        for value in values:
            if isinstance(value, _LISTS) and self._has_tensors(value):
                inner = self.differ(value)
                if inner is not None:
                    return inner
                continue
            if not isinstance(value, self._tensor):
                continue
            at = getattr(value, NOTE, None)
            if at is None or (at == CPU and not value.dim()):
                continue
            if first is None:
                first = at
            elif at != first:
                return max(first, at), min(first, at)
        return None

    def _has_tensors(self, values: Any) -> bool:
        """Tell a list of tensors, or of lists of them, from one of numbers, which may be long."""
        return bool(values) and isinstance(values[0], self._listed)

    def device(self, at: int) -> Any:
        """Return the device of a place."""
        return self._torch.device("cuda", at) if at >= 0 else self._torch.device("cpu")
