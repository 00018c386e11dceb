"""The small ones on the disk: beside the files they come from, whole at every moment."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from functools import partial

from relaunch.errors import UsageError
from relaunch.journal import to_disk
from relaunch.jsontext import dumps, loads
from relaunch.proc.file_system import sync_file_system
from relaunch.proc.renaming import exchange
from relaunch.search.shrink.packed import UNPACKED
from relaunch.session.growing.sized import filled, names_file
from relaunch.session.shrinking.places import look_of
from relaunch.session.shrinking.told import ENV, Written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from relaunch.recipe import Recipe
    from relaunch.search.shrink.model import Model
    from relaunch.session.shrinking.told import Request

    Parts = Mapping[str, Model]

_NOTE = "results"
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
        self._there: dict[str, tuple[bytes, tuple[Any, ...]]] = {}
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

    def check(self) -> None:
        """Refuse places that are an input, lie in one, are taken twice, or cannot be written."""
        parent = os.path.dirname(os.path.realpath(self._full(self._request.output)))
        if self._request.output and not os.path.isdir(parent):
            raise UsageError(f"there is no folder {parent}", hint=f"mkdir -p {parent}")
        inputs = {os.path.realpath(self._full(file)): file for file in self._request.files}
        taken: dict[str, str] = {}
        for file, path in self.paths.items():
            real = os.path.realpath(self._full(path))
            if real in inputs:
                raise UsageError(
                    f"`{path}` is the input itself, which is only read",
                    hint=f"-o {small_name(file)}",
                )
            around = next((one for one in inputs if real.startswith(one + os.sep)), "")
            if around:
                raise UsageError(
                    f"`{path}` lies in `{inputs[around]}`, which is only read",
                    hint=f"-o {small_name(file)}",
                )
            if real in taken:
                raise UsageError(
                    f"`{taken[real]}` and `{file}` would both be `{path}`",
                    hint="without -o each lies beside its file",
                )
            taken[real] = file
            _check_folder(os.path.dirname(real))

    def note(self, folder: str) -> None:
        """Say in a folder where the small ones go, for who puts them right after a kill."""
        with open(os.path.join(folder, _NOTE), "w", encoding="ascii") as file:
            paths = [self._full(path) for path in self.paths.values()]
            file.write(dumps({"pid": os.getpid(), "paths": paths}))

    def write(self, parts: Parts) -> None:
        """Have these on the disk, also where a run of the program wrote to them.

        OSError if that cannot be, and what was there before stays.
        """
        for file, path in self.paths.items():
            key, path = parts[file].key, self._full(path)
            if self._there.get(file) != (key, look_of(path)):
                self._put(parts[file], path)
                self._there[file] = (key, look_of(path))

    def _put(self, model: Model, path: str) -> None:
        put(path, model.write)

    def settle(self) -> None:
        """Have them on the disk before rl ends, for no longer than an exit may wait."""
        for file in self._there:
            to_disk.soon(partial(sync_file_system, self._full(self.paths[file])))

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


def _check_folder(folder: str) -> None:
    """Refuse a folder in which nothing can be made; one that is not there yet will be made."""
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        if error.errno != errno.ENOSPC:  # there may be room by then, and it is told when not
            said = f"the folder {folder} may not be written: {error.strerror}"
            raise UsageError(said, hint="-o elsewhere") from None


def put(path: str, write: Callable[[str], object]) -> None:
    """Replace a file or a folder by what `write` makes, which is whole before it is there."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    temp, old = _hidden(path, os.getpid())[:2]
    try:
        write(temp)
        if os.path.isdir(temp) and os.path.isdir(path):
            _replace_folder(temp, path, old)
        else:
            os.replace(temp, path)
    except BaseException as error:
        _remove(temp)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror or str(error), path) from None
        raise


def _replace_folder(new: str, path: str, old: str) -> None:
    try:
        exchange(new, path)
        old = new
    except OSError:  # the kernel or the file system has no such call
        os.rename(path, old)
        os.rename(new, path)
    _remove(old)


def _hidden(path: str, pid: int) -> tuple[str, str, str]:
    """Return where a new one is written, the one before waits, and what is not packed yet lies."""
    folder, name = os.path.split(path)
    temp = os.path.join(folder, f".{name}.{pid}")
    return temp, f"{temp}.old", f"{temp}{UNPACKED}"


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        os.unlink(path)


def put_right(folder: str) -> None:
    """After a kill: what lies hidden beside its place goes there, and the rest is removed.

    Where a folder cannot be replaced at once, the new one and the one before are both there,
    whole, between two renames, and neither in its place.
    """
    try:
        with open(os.path.join(folder, _NOTE), encoding="ascii") as file:
            said = loads(file.read())
        paths, pid = [str(path) for path in said["paths"]], int(said["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return  # it was killed before it had written anything
    for path in paths:
        temp, old, unpacked = _hidden(path, pid)
        try:
            if os.path.isdir(old) and not os.path.lexists(path):
                os.rename(temp if os.path.isdir(temp) else old, path)
            for one in (temp, old, unpacked):
                _remove(one)
        except OSError:
            continue  # it is not ours any more
