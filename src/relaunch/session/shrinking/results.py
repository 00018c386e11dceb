"""The small ones on the disk: beside the files they come from, whole at every moment."""

from __future__ import annotations

import os
import shutil

from relaunch.session.growing.sized import filled, names_file
from relaunch.session.shrinking.told import ENV, Written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaunch.recipe import Recipe
    from relaunch.search.shrink.model import Model
    from relaunch.session.shrinking.told import Request

    Parts = Mapping[str, Model]

_PACKED = (".gz", ".bz2", ".xz", ".zst", ".lzma")


def small_name(file: str) -> str:
    """Return the name of the small one: `data.small.jsonl`, `data.small.csv.gz`."""
    folder, name = os.path.split(os.path.normpath(file))
    stem, end = os.path.splitext(name)
    if end in _PACKED:
        stem, inner = os.path.splitext(stem)
        end = inner + end
    return os.path.join(folder, f"{stem}.small{end}")


class Results:
    """Where the small ones go."""

    def __init__(self, request: Request, original: Parts) -> None:
        """Nothing is written yet."""
        self._request = request
        self._original = original
        self._there: dict[str, bytes] = {}
        self.paths = {file: self._path(file) for file in request.files}
        """By the name that was typed, relative to where the command runs, if it was."""

    def _path(self, file: str) -> str:
        output = self._request.output
        if not output:
            return small_name(file)
        if len(self._request.files) == 1 and not os.path.isdir(self._full(output)):
            return output
        return os.path.join(output, os.path.basename(os.path.normpath(file)))

    def _full(self, path: str) -> str:
        return os.path.join(self._request.recipe.cwd, path)

    def write(self, parts: Parts) -> None:
        """Have these on the disk; OSError if that cannot be, and what was there before stays."""
        for file, path in self.paths.items():
            key = parts[file].key
            if self._there.get(file) != key:
                _put(parts[file], self._full(path))
                self._there[file] = key

    def command(self, recipe: Recipe) -> Recipe | None:
        """Return what to run with the small ones; None where the command does not name them."""
        request = self._request
        named = request.files[1:] if request.stdin else request.files
        for file in named:
            if not any(names_file(word, file, recipe.cwd) for word in recipe.argv):
                return None
        return filled(recipe, {}, self.paths)

    @property
    def bundled(self) -> Mapping[str, str]:
        """The small ones by the names under which the program reads them."""
        return self.paths

    def written(self, parts: Parts) -> tuple[Written, ...]:
        """Say what there is."""
        return tuple(
            Written(
                name=name,
                path=self.paths[name] if name in self._there else "",
                bytes=model.bytes,
                of=self._original[name].bytes,
                model=model,
            )
            for name, model in parts.items()
        )

    def env(self, parts: Parts) -> Mapping[str, str] | None:
        """Return the variables that are left, if these were a part."""
        if ENV not in parts:
            return None
        variables: Mapping[str, str] = parts[ENV].variables  # type: ignore[attr-defined]
        return variables


def _put(model: Model, path: str) -> None:
    folder, name = os.path.split(path)
    os.makedirs(folder or ".", exist_ok=True)
    temp = os.path.join(folder, f".{name}.{os.getpid()}")
    try:
        model.write(temp)
        if os.path.isdir(temp):
            shutil.rmtree(path, ignore_errors=True)
        os.replace(temp, path)
    except BaseException as error:
        if os.path.isdir(temp):
            shutil.rmtree(temp, ignore_errors=True)
        elif os.path.exists(temp):
            os.unlink(temp)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror or str(error), path) from None
        raise
