"""Notes which copy of a package is imported, when it is: one that is killed has told it too."""

from __future__ import annotations

import os
import sys

from relaunch.inside.probe.copies import copies
from relaunch.inside.probe.origin import origin_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.inside.probe.notes import Notes


class Loads:
    """The first finder of imports; it finds nothing, and sees what is looked for."""

    def __init__(self, probes: Sequence[Mapping[str, Any]], notes: Notes) -> None:
        """Know the packages that are asked for."""
        self._wanted = {
            probe["label"]: number
            for number, probe in enumerate(probes)
            if probe["kind"] == "package"
        }
        self._notes = notes
        self._told: set[tuple[int, str]] = set()

    def install(self) -> None:
        """See all imports from now on."""
        if self._wanted:
            sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Note what the others will find for an import; who only asks for it imports nothing."""
        if name in self._wanted and _is_import():
            try:
                self._note(name, _place_of(_found(self, name, path, target)))
            except Exception as error:
                self._notes.add("trouble", text=f"{type(error).__name__}: {error}")

    def at_exit(self) -> None:
        """Note what came in another way, and what there is of what never came."""
        for name, number in self._wanted.items():
            if (os.getpid(), name) in self._told:
                continue
            module = sys.modules.get(name)
            try:
                if module is not None:
                    self._note(name, _place_of(module))
                else:
                    top = name.partition(".")[0]
                    self._notes.add("copies", probe=number, imported=False, copies=copies(top))
            except Exception as error:
                self._notes.add("trouble", text=f"{type(error).__name__}: {error}")

    def _note(self, name: str, place: tuple[str, tuple[str, ...]]) -> None:
        file, folders = place
        if file:
            self._told.add((os.getpid(), name))
        self._notes.add(
            "copies",
            probe=self._wanted[name],
            imported=bool(file),
            file=file,
            real=os.path.realpath(file),
            folders=list(folders),
            origin=origin_of(name, file),
            copies=copies(name.partition(".")[0]),
        )


def _is_import() -> bool:
    """Tell whether our finder is asked by an import, and not by `importlib.util.find_spec`."""
    asks = sys._getframe(2)
    back = asks.f_back
    return back is not None and back.f_code.co_name == "_find_and_load_unlocked"


def _found(ours: Loads, name: str, path: Any, target: Any) -> Any:
    for finder in sys.meta_path:
        if finder is not ours:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
    return None


def _place_of(one: Any) -> tuple[str, tuple[str, ...]]:
    """Return where a spec or a module is from; a namespace has folders alone."""
    spec = getattr(one, "__spec__", None) or one
    folders = getattr(spec, "submodule_search_locations", None) or getattr(one, "__path__", None)
    places = tuple(str(folder) for folder in folders or ())
    file = getattr(one, "__file__", None) or getattr(spec, "origin", None)
    return str(file or (places[0] if places else "")), places
