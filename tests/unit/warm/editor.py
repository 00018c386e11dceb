"""What the script of `editing.py` does; in a file of its own, for that one becomes the script."""

from __future__ import annotations

import json
import os
import sys
from types import ModuleType
from typing import Any

INSIDE = os.path.join(os.path.dirname(__file__), *[".."] * 3, "src", "relaunch", "inside", "warm")


class Editor:
    """Stands where the camera stands."""

    def __init__(self, spec: dict[str, Any]) -> None:
        from _relaunch_warm import compare, loaded, spine  # type: ignore[import-not-found]

        self.compare, self.spine = compare, spine
        self.cannot = loaded.CannotResume
        self.spec = spec
        self.stops = 0

    def attach(self, program: Any) -> None:
        program.shoot = self.shoot
        program.often = program.due_at = 0

    def shoot(self, program: Any, _: int, frame: Any) -> bool:
        self.stops += 1
        if self.stops != self.spec["stop"]:
            return False
        self._note("refused")
        for file, text in self.spec["new"].items():
            with open(file, "w", encoding="utf-8") as stream:
                stream.write(text)
        try:
            self._check(program)
            program.edit(self.spec["new"], self.spine.frames(frame))
        except self.cannot as error:
            self._note(f"refused: {error}")
            sys.stdout.flush()
            os._exit(0)
        self._note("edited")
        return True

    def _check(self, program: Any) -> None:
        """Do what the host does before."""
        for file, text in self.spec["new"].items():
            old = program.files[file]
            new = self.compare.Source(text, file)
            why, _ = self.compare.compare(old.source, new, program.seen[old.first : old.end])
            if why:
                raise self.cannot(why)

    def _note(self, word: str) -> None:
        with open(self.spec["note"], "w", encoding="utf-8") as stream:
            stream.write(word)


def start(names: dict[str, Any]) -> None:
    del sys.path[0]
    package: Any = ModuleType("_relaunch_warm")
    package.__path__ = [INSIDE]
    sys.modules["_relaunch_warm"] = package
    shot: Any = ModuleType("_relaunch_warm.shot")
    shot.Camera = Editor
    sys.modules["_relaunch_warm.shot"] = package.shot = shot
    from _relaunch_warm import loader

    sys.meta_path.insert(0, loader.finder_of(INSIDE))
    from _relaunch_warm import entry

    entry.start(names, set(), (True, [0, 0, 0]), [], {*sys.modules})


def spec_of(python: str, script: str, **more: Any) -> str:
    """Write the word that tells what to do."""
    folder = os.path.dirname(script)
    command = [python, os.path.basename(script)]
    return json.dumps({"command": command, "roots": [folder], "run": folder, "control": -1, **more})
