"""Notes which copy of a package is imported, at the time of the import: a kill may follow."""

from __future__ import annotations

import os
import sys

from relaunch.inside.probe.copies import copies
from relaunch.inside.probe.origin import entry_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from relaunch.inside.probe.notes import Notes

_OF_IMPORTS = "<frozen importlib._bootstrap>"
"""Tracebacks leave out frames of this file, and so must they leave out ours between them."""


class Loads:
    """Watches the wanted packages being loaded, without asking any finder itself."""

    def __init__(self, probes: Sequence[Mapping[str, Any]], notes: Notes) -> None:
        """Know what is asked for."""
        self._wanted = {
            probe["label"]: number
            for number, probe in enumerate(probes)
            if probe["kind"] == "package"
        }
        self._notes = notes
        self._told: set[tuple[int, str, str]] = set()

    def install(self) -> None:
        """See all that is loaded from now on, and what is there already."""
        if not self._wanted:
            return
        machine: Any = sys.modules["_frozen_importlib"]
        machine._load_unlocked = self._seen(machine._load_unlocked)
        machine._exec = self._seen(machine._exec)  # it reloads
        for name in self._wanted:
            if name in sys.modules:
                self._begins(name, sys.modules[name])

    def _seen(self, real: Callable[..., Any]) -> Callable[..., Any]:
        wanted, begins, failed = self._wanted, self._begins, self._failed

        def load(spec: Any, *rest: Any) -> Any:
            name = getattr(spec, "name", None)
            if not isinstance(name, str) or name not in wanted:
                return real(spec, *rest)
            begins(name, spec)
            try:
                return real(spec, *rest)
            except BaseException as error:
                failed(name, spec, error)
                raise

        load.__code__ = load.__code__.replace(co_filename=_OF_IMPORTS, co_name=real.__name__)
        return load

    def at_exit(self) -> None:
        """Note what came in another way, and what there is of what never came."""
        for name, number in self._wanted.items():
            if name in sys.modules:
                self._begins(name, sys.modules[name])
            elif not any((os.getpid(), name) == told[:2] for told in self._told):
                self._safely(number, self._note_none, name)

    def _note_none(self, name: str) -> None:
        there = copies(name.partition(".")[0], asks_hooks=False)
        self._notes.add("copies", probe=self._wanted[name], imported=False, copies=there)

    def _begins(self, name: str, what: Any) -> None:
        self._safely(self._wanted[name], self._note, name, what)

    def _note(self, name: str, what: Any) -> None:
        file, folders, loader = _place_of(what)
        key = (os.getpid(), name, file)
        if key in self._told:
            return
        self._told.add(key)
        origin = entry_of(name, file) if file else "put among the modules by the program"
        self._notes.add(
            "copies",
            probe=self._wanted[name],
            imported=True,
            file=file,
            folders=folders,
            origin=origin or f"by no entry of sys.path, but by the loader {loader}",
            copies=copies(name.partition(".")[0], asks_hooks=False),
        )

    def _failed(self, name: str, spec: Any, error: BaseException) -> None:
        self._safely(self._wanted[name], self._note_failed, name, spec, error)

    def _note_failed(self, name: str, spec: Any, error: BaseException) -> None:
        text = f"{type(error).__name__}: {error}"
        self._notes.add("failed", probe=self._wanted[name], file=_place_of(spec)[0], text=text)

    def _safely(self, number: int, act: Callable[..., None], *words: Any) -> None:
        """Run it; a failure of ours must not reach the program."""
        try:
            act(*words)
        except BaseException as error:
            self._notes.add("trouble", probe=number, text=type(error).__name__)


def _place_of(what: Any) -> tuple[str, list[str], str]:
    """Return the file of a spec or a module, the folders of a package, and who loads it."""
    spec = getattr(what, "__spec__", None) or what
    folders = getattr(spec, "submodule_search_locations", None) or getattr(what, "__path__", None)
    places = [str(folder) for folder in folders or ()]
    file = getattr(what, "__file__", None) or getattr(spec, "origin", None)
    kind = getattr(spec, "loader", None)
    kind = kind if isinstance(kind, type) else type(kind)
    return str(file or (places[0] if places else "")), places, f"{kind.__module__}.{kind.__name__}"
