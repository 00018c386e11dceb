"""Where attempts run: each seat has a place of its own, with the input at one fixed path.

Where the command names every input, the path is replaced and all else is as it is. Where it does
not, the seat has a copy of the tree, and the input lies in its place there. What a person has is
never written to.
"""

from __future__ import annotations

import os
import shutil
import stat

from relaunch.errors import UsageError
from relaunch.session.growing.sized import filled, names_file
from relaunch.session.shrinking.guards import placed
from relaunch.session.shrinking.steps import find
from relaunch.session.shrinking.told import ARGS, ENV, STEPS
from relaunch.trial.engine import run_trial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from relaunch.journal.snapshot.frozen import FrozenCopy
    from relaunch.outcome import Outcome
    from relaunch.recipe import Recipe
    from relaunch.search.shrink.model import Model
    from relaunch.session.project import Project
    from relaunch.session.shrinking.told import Request
    from relaunch.trial.engine import World

    Parts = Mapping[str, Model]
    Look = tuple[Any, ...]

_SCRIPTS = (".py", ".pyw")
_LARGE = 1 << 25
"""What is larger is copied once, for all places."""
_TICKS_NS = 20_000_000
"""A file system's clock may stand still so long: what is written in that time has one stamp."""


class Place:
    """The world of one seat."""

    copies: dict[str, tuple[str, Look]]
    """Large inputs as they lie in one of the places, with what shows that nothing wrote to them."""

    def __init__(self, folder: str, request: Request, original: Parts) -> None:
        """Have a folder for what changes; `original` are the parts as they were given."""
        self.folder = folder
        self.copies = {}
        self.request = request
        self.recipe = request.recipe
        self.reports = os.path.join(folder, "reports")
        os.makedirs(self.reports, mode=0o700, exist_ok=True)
        self.roots: tuple[str, ...] = ()
        """Of the code as it lies here."""
        self.env: dict[str, str] = {}
        """What to set on top of all."""
        self.paths = self._paths()
        self._original = {name: model.key for name, model in original.items()}
        self.seen: Mapping[str, Look] = {}
        """The inputs of the person as they were read, where that is known."""
        self._there: dict[str, tuple[bytes, Look]] = {}
        """What was written here, and how that looked: an attempt may write to it."""
        self.may_fork = True
        """What forks show is still believed."""

    def _paths(self) -> dict[str, str]:
        found = {}
        names: set[str] = set()
        for number, file in enumerate(self.request.files):
            name = os.path.basename(os.path.normpath(file))
            inner = os.path.join("in", str(number), name) if name in names else f"in/{name}"
            names.add(name)
            found[file] = os.path.join(self.folder, inner)
        return found

    def source(self, file: str) -> str:
        """Return where an input of the person lies."""
        return os.path.join(self.request.recipe.cwd, file)

    def put(self, parts: Parts) -> None:
        """Have these inputs here; only what differs is written. OSError if the disk is full."""
        for name, path in self.paths.items():
            key = parts[name].key
            there = self._there.pop(name, None)
            if there is None or there[0] != key or there[1] != look_of(path):
                self._clear(path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                self._write(name, parts[name], path)
                there = (key, look_of(path))
            self._there[name] = there

    def _write(self, name: str, model: Model, path: str) -> None:
        is_given = model.key == self._original[name]
        if is_given and self._is_linked(name, path):
            return
        source = self.source(name)
        if is_given and self.seen.get(name) in (None, look_of(os.path.realpath(source))):
            _copy(source, path)
        else:  # it is smaller, or the program has written to the person's own
            model.write(path)
        _make_older(path)
        if is_given:
            self._note_copy(name, path)

    def _is_linked(self, name: str, path: str) -> bool:
        """Have what is large from another place, if it is there as it was copied."""
        copy = self.copies.get(name)
        if copy is None:
            return False
        try:
            if look_of(copy[0]) == copy[1]:
                os.link(copy[0], path)
                return True
        except OSError:  # the other place is empty, or cannot be linked from
            pass
        return False

    def _note_copy(self, name: str, path: str) -> None:
        if os.path.isfile(path) and os.path.getsize(path) > _LARGE:
            self.copies[name] = (path, look_of(path))

    @staticmethod
    def _clear(path: str) -> None:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)

    def recipe_for(self, parts: Parts) -> Recipe:
        """Return what to run, with the words and variables of these parts."""
        recipe = with_parts(self.recipe, parts, self.request.changing)
        return filled(recipe, {}, self.paths)

    def guard_for(self, line: str) -> Recipe:
        """Return a line of the person that must pass, as it is run here."""
        paths = {
            os.path.abspath(os.path.join(cwd, file)): path
            for file, path in self.paths.items()
            for cwd in (self.recipe.cwd, self.request.recipe.cwd)
        }
        words = ("sh", "-c", placed(line, paths, self.recipe.cwd))
        return self.recipe.but(argv=words, match="", exit_code=None)

    def whole_env(self, parts: Parts) -> dict[str, str]:
        """Return the environment of an attempt."""
        base = dict(os.environ)
        if ENV in parts:
            variables: Any = parts[ENV]
            return {**variables.variables, **self.env}
        return {**base, **with_parts(self.recipe, parts, 0).env, **self.env}

    def run(self, recipe: Recipe, world: World, *, fresh: bool) -> tuple[Outcome, bool]:
        """Run an attempt; returns what came of it, and whether it was forked, not `fresh`."""
        return run_trial(recipe, world, record=lambda *_: None).outcome, False

    @property
    def stdin(self) -> str:
        """The path that is read from standard input, if any."""
        return self.paths[self.request.files[0]] if self.request.stdin else ""

    def close(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self.folder, ignore_errors=True)


def look_of(path: str) -> Look:
    """Return what is another after somebody wrote to a file, or to anything in a folder."""
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    look = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode)
    if not stat.S_ISDIR(found.st_mode):
        return look
    return (*look, *((name, look_of(os.path.join(path, name))) for name in sorted(_names(path))))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _make_older(path: str) -> None:
    """Have a file seem a moment older, so that it looks otherwise once it is written to."""
    if os.path.isfile(path):
        found = os.stat(path)
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns - _TICKS_NS))


def _copy(source: str, path: str) -> None:
    if os.path.isdir(source):
        shutil.copytree(source, path, symlinks=True)
    else:
        shutil.copyfile(source, path)


def _is(word: str, file: str, cwd: str) -> bool:
    return os.path.abspath(os.path.join(cwd, word)) == os.path.abspath(os.path.join(cwd, file))


def with_parts(recipe: Recipe, parts: Parts, changing: int) -> Recipe:
    """Return a recipe with other last words, where these are a part."""
    if STEPS in parts:
        steps: Any = parts[STEPS]
        return find(recipe)[0].put(recipe, steps.value)
    if ARGS not in parts:
        return recipe
    words: Any = parts[ARGS]
    return recipe.but(argv=(*recipe.argv[: len(recipe.argv) - changing], *words.words))


class TreePlace(Place):
    """A place with a copy of the person's tree, the inputs where they lie in it."""

    def __init__(
        self, folder: str, request: Request, original: Parts, project: Project, copy: FrozenCopy
    ) -> None:
        """Take over a copy; what it shares with the project is made its own around the inputs."""
        self._project = project
        self._copy = copy
        super().__init__(folder, request, original)
        from relaunch.trial.place.setedit import own_folder

        for path in self.paths.values():
            own_folder(copy.path, os.path.dirname(path))
        top = project.home.project + os.sep
        recipe = request.recipe
        argv = [copy.map(word) if word.startswith(top) else word for word in recipe.argv]
        cwd = copy.map(recipe.cwd)
        self.recipe = recipe.but(cwd=cwd, argv=tuple(argv))
        self.env = {**copy.env(os.environ), "PWD": cwd}
        self.roots = (copy.path,)

    def _paths(self) -> dict[str, str]:
        found = {}
        for file in self.request.files:
            path = os.path.realpath(self.source(file))
            there = self._copy.map(path)
            if there == path:
                said = (
                    f"`{file}` is neither named in the command nor in {self._project.home.project}"
                )
                raise UsageError(said, hint=f"rl shrink {file} -- CMD {file}")
            found[file] = there
        return found

    def recipe_for(self, parts: Parts) -> Recipe:
        """Return what to run; the words name what is in the copy."""
        return with_parts(self.recipe, parts, self.request.changing)

    def close(self) -> None:
        """Give the copy back as it was."""
        for path in self.paths.values():
            self._clear(path)
        self._copy.close()
        super().close()


def are_named(request: Request) -> bool:
    """Tell whether the command names all inputs, and runs none of them as its program.

    A script that is run elsewhere would not find the modules beside it.
    """
    recipe = request.recipe
    words = recipe.argv
    for number, file in enumerate(request.files):
        if request.stdin and number == 0:
            continue
        if not any(names_file(word, file, recipe.cwd) for word in words):
            return False
        if file.endswith(_SCRIPTS) and _is_run(words, file, recipe.cwd):
            return False
    return True


def _is_run(words: tuple[str, ...], file: str, cwd: str) -> bool:
    """Tell whether a Python file is the program: the first word that is a path of one."""
    for word in words:
        if word == "-m":
            return False
        if word.endswith(_SCRIPTS):
            return _is(word, file, cwd)
    return False


def copies(
    folder: str,
    request: Request,
    original: Parts,
    project: Project,
    count: int,
    kind: type[TreePlace] = TreePlace,
) -> list[Place]:
    """Make so many places with a copy of the tree each."""
    from relaunch.journal.snapshot.frozen import frozen_copy
    from relaunch.session.take_code import take_code
    from relaunch.trial.place.doubts import interpreter

    env = {**os.environ, **request.recipe.env}
    python = interpreter(request.recipe.argv, env, request.recipe.cwd)
    code = take_code(project, request.recipe, env, python)
    found: list[Place] = []
    for number in range(count):
        copy = frozen_copy(project.home, code)
        path = os.path.join(folder, str(number))
        found.append(kind(path, request, original, project, copy))
    return found
