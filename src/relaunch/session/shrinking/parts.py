"""Reads what a person wants smaller: files and folders by their formats, words, variables."""

from __future__ import annotations

import errno
import os
from glob import escape

from relaunch.errors import UsageError
from relaunch.search.shrink.document import Document
from relaunch.search.shrink.formats.words import Environment, Words
from relaunch.search.shrink.large import Large
from relaunch.search.shrink.packed import Packed
from relaunch.session.growing.sized import names_file
from relaunch.session.shrinking.steps import Steps, find
from relaunch.session.shrinking.told import ARGS, ENV, STEPS
from relaunch.trial.place.interpreter import find_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from relaunch.search.shrink.model import Model
    from relaunch.session.shrinking.told import Request


_STAYS = ("PATH", "LD_LIBRARY_PATH")
"""Variables without which nothing starts."""


def read_parts(request: Request) -> dict[str, Model]:
    """Read all of them; UsageError for what cannot be."""
    from relaunch.search.shrink.formats.choose import read

    found: dict[str, Model] = {}
    if request.args:
        found[ARGS] = _words(request)
    if request.env:
        whole = {**os.environ, **request.recipe.env}
        own = {name: value for name, value in whole.items() if not name.startswith("RELAUNCH_")}
        found[ENV] = Environment(own, keep=(*_STAYS, *request.keep))
    if request.steps:
        found[STEPS] = Steps(find(request.recipe)[1])
    for file in request.files:
        path = os.path.join(request.recipe.cwd, file)
        _check(path, file)
        try:
            found[file] = read(path, keep=request.keep)
        except OSError as error:
            raise UsageError(f"`{file}` cannot be read: {error.strerror or error}") from None
    _check_keep(request.keep, found)
    return found


def _check_keep(keep: Sequence[str], models: Mapping[str, Model]) -> None:
    """Refuse a pattern that nothing is called by, where all names can be read."""
    inner = {
        name: model.inner if isinstance(model, Packed) else model for name, model in models.items()
    }
    if not all(isinstance(one, (Document, Large)) for one in inner.values()):
        return
    for pattern in keep:
        if any(_is_called(pattern, one) for one in inner.values()):
            continue
        for file, one in inner.items():
            if isinstance(one, Large) and one.held is None:
                said = f"--keep {pattern}: `{file}` is too large for its names to be read"
                raise UsageError(said, hint=f"--also 'grep -q {_last_name(pattern)} {file}'")
        raise UsageError(f"--keep {pattern}: nothing is called so", hint="--keep 'model.*'")


def _last_name(pattern: str) -> str:
    """Return what a line to grep for has of a pattern: its last name without wildcards."""
    names = [name for name in pattern.split(".") if name.replace("_", "").isalnum()]
    return names[-1] if names else "NAME"


def _is_called(pattern: str, model: Model) -> bool:
    """Tell whether something in a file is called so."""
    if isinstance(model, Large):
        return model.held is not None and pattern in model.held.found
    assert isinstance(model, Document)
    return bool(model.grammar.held(model.data, (pattern,)))


def _words(request: Request) -> Words:
    """Return the words that may change; those that name an input stay."""
    argv = request.recipe.argv
    words = argv[len(argv) - request.changing :]
    if not words:
        raise UsageError("the command has no words that could go", hint="rl shrink --args -- CMD")
    named = [
        word
        for word in words
        if any(names_file(word, file, request.recipe.cwd) for file in request.files)
    ]
    return Words(words, keep=(*map(escape, named), *request.keep))


def changing_words(argv: Sequence[str], cwd: str) -> int:
    """Count the words behind the program: of a Python, those behind its script or module."""
    start = find_start(argv, os.environ, cwd)
    return len(start.words) if start is not None else len(argv) - 1


def _check(path: str, file: str) -> None:
    if not os.path.exists(path):
        folder = os.path.dirname(file) or "."
        raise UsageError(f"`{file}` does not exist", hint=f"ls {folder}")
    if os.path.isdir(path):
        _check_folder(path, file)
        return
    if not os.path.isfile(path):
        raise UsageError(f"`{file}` is no file", hint=f"ls -l {file}")
    try:
        with open(path, "rb") as opened:
            is_empty = not opened.read(1)
    except OSError as error:
        _unreadable(file, error.errno)
    if is_empty:
        raise UsageError(f"`{file}` is empty: it cannot be smaller", hint=f"ls -l {file}")


def _check_folder(path: str, file: str) -> None:
    """Refuse a folder without files, or with some that may not be read."""

    def refuse(error: OSError) -> None:
        _unreadable(os.path.join(file, os.path.relpath(error.filename, path)), error.errno)

    is_empty = True
    for folder, _, names in os.walk(path, onerror=refuse):
        is_empty = is_empty and not names
        for name in names:
            whole = os.path.join(folder, name)
            if not os.path.islink(whole) and not os.access(whole, os.R_OK):
                _unreadable(os.path.join(file, os.path.relpath(whole, path)), errno.EACCES)
    if is_empty:
        raise UsageError(f"`{file}` is empty: it cannot be smaller", hint=f"ls -lR {file}")


def _unreadable(file: str, why: int | None) -> NoReturn:
    file = os.path.normpath(file)
    said = f"`{file}` cannot be read: {os.strerror(why or errno.EACCES)}"
    raise UsageError(said, hint=f"ls -l {file}")
