"""A folder that reproduces a failure elsewhere: small input, program, how to run it, versions."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cached_property

from relaunch.errors import UsageError
from relaunch.inside.forks.noted import LIBRARY, OWN
from relaunch.session import facts
from relaunch.session.growing.sized import filled
from relaunch.session.masks import hidden_parts, mask_text, mask_words
from relaunch.trial.redact import forms, redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from relaunch.outcome import Signature
    from relaunch.recipe import Recipe
    from relaunch.session.project import Project
    from relaunch.trial.launch.forks import Noted

_README = """\
# A small reproduction

    sh run.sh

fails with

    {title}

Made by `rl shrink` with {python}on {host}.
{rest}"""
_AT_START = ("_distutils_hack", "__editable__")
"""Modules that a `.pth` file loads into every Python: the program does not use them."""
_READ_BYTES = 1 << 20
"""Larger files are data, not settings."""
_RUN = """\
#!/bin/sh
# {title}
cd "$(dirname "$0")" || exit
{env}exec {command}
"""


def check(cwd: str, name: str) -> None:
    """Refuse a folder that has something in it, or has no folder itself."""
    folder = os.path.abspath(os.path.join(cwd, name))
    if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        words = f"--bundle: `{name}` is there already"
        raise UsageError(words, hint=f"--bundle {name.rstrip('/')}-2, or rm -r {name}")
    if not os.path.isdir(os.path.dirname(folder)):
        parent = os.path.dirname(folder)
        raise UsageError(f"--bundle: there is no folder {parent}", hint=f"mkdir -p {parent}")


class Bundle:
    """What goes into the folder."""

    def __init__(
        self, project: Project, folder: str, noted: Noted | None, env: Mapping[str, str]
    ) -> None:
        """`noted` says which modules a Python program has, `env` what is secret."""
        self._project = project
        self._top = project.home.project
        self.folder = folder
        self._noted = noted
        self._known = facts.known_secrets(env, project.settings.record.redact)
        self._secrets = forms([os.fsencode(text) for text in self._known])
        self.given: dict[str, str] = {}
        """Variables that stand for secrets of the command, with their values."""
        self.concealed: set[str] = set()
        """Files in which a secret was masked."""
        self._is_concealing = True

    def write(
        self,
        recipe: Recipe,
        inputs: Mapping[str, str],
        failure: Signature,
        env: Mapping[str, str],
        stdin: str,
    ) -> Recipe:
        """Make the folder; `inputs` are small files by the names that were typed.

        Returns what runs it. OSError if it cannot be written.
        """
        os.makedirs(self.folder, exist_ok=True)
        paths = {file: self._inside(os.path.join(recipe.cwd, file)) for file in inputs}
        self._inputs = [(os.path.join(recipe.cwd, inputs[file]), paths[file]) for file in inputs]
        self.put_inputs()
        for path in {*self._sources(recipe)} - {os.path.join(recipe.cwd, one) for one in inputs}:
            self._copy(path, self._inside(path))
        self._conceal()
        argv = filled(recipe, {}, paths).argv
        argv = tuple(self._word(word) for word in argv)
        typed = [
            self._shell_word(*both)
            for both in zip(argv, mask_words(argv, self._known), strict=True)
        ]
        words = " ".join(typed)
        if self._noted is not None and os.path.basename(argv[0]).startswith("python"):
            words = " ".join(['"${PYTHON:-python3}"', *typed[1:]])
        if stdin:
            words += f" < {_quoted(paths[stdin])}"
        self._failure, self._command = failure, words
        self.export(env)
        if self._used:
            self._write("requirements.txt", "".join(f"{one}\n" for one in self._used))
        python = {}
        if words.startswith('"${PYTHON'):
            first = recipe.argv[0]
            python["PYTHON"] = os.path.join(recipe.cwd, first) if os.sep in first else first
        run = recipe.but(argv=("sh", "run.sh"), cwd=self.folder, config_set="")
        return run.but(env={**python, **self.given})

    def _shell_word(self, whole: str, shown: str) -> str:
        """Return a word for a shell, its secrets as variables: the folder is made to be sent."""
        if whole == shown:
            return _quoted(whole)
        text = ""
        for part, value in hidden_parts(whole, shown):
            text += _quoted(part) if part else ""
            if value:
                name = f"SECRET_{len(self.given) + 1}"
                self.given[name] = value
                text += f'"${{{name}:?a secret: set it}}"'
        return text

    def put_inputs(self) -> None:
        """Have the small files in it, also after it was run: the program may write to them."""
        for source, inner in self._inputs:
            shutil.rmtree(os.path.join(self.folder, inner), ignore_errors=True)
            self._copy(source, inner)
        self._conceal()

    def conceal(self) -> None:
        """Have the files without what looks like a secret again: the failure needs more."""
        self._is_concealing = True
        self._conceal()

    def _conceal(self) -> None:
        """Mask what looks like a secret in the files that were copied, where they are texts."""
        if not self._is_concealing:
            return
        for path in self._revealing():
            self.concealed.add(os.path.relpath(path, self.folder))
            with open(path, "rb") as file:
                data = file.read()
            with open(path, "wb") as file:
                file.write(redact(data, self._secrets))

    def reveal(self, recipe: Recipe) -> None:
        """Have the files as they are: the failure needs what was masked."""
        self._is_concealing, self.concealed = False, set()
        for path in self._sources(recipe):
            self._copy(path, self._inside(path))
        self.put_inputs()

    def export(self, env: Mapping[str, str]) -> None:
        """Say how to run what was written, with these variables; OSError if that cannot be."""
        shown = self._shown(env)
        lines = "".join(
            f"export {name}={_quoted(value)}\n" if value else f"# export {name}=  # a secret\n"
            for name, value in shown.items()
        )
        title = mask_text(self._failure.title, self._known)
        self._write("run.sh", _RUN.format(title=title, env=lines, command=self._command))
        self._write("README.md", self._readme(self._failure, shown))

    def revealing(self) -> list[str]:
        """Name the files in the folder that have what looks like a secret: it is to be sent."""
        return sorted(os.path.relpath(path, self.folder) for path in self._revealing())

    def _revealing(self) -> Iterator[str]:
        for folder, _, names in os.walk(self.folder):
            for path in (os.path.join(folder, name) for name in names):
                if os.path.getsize(path) <= _READ_BYTES:
                    with open(path, "rb") as file:
                        data = file.read()
                    if b"\0" not in data and redact(data, self._secrets) != data:
                        yield path

    def _inside(self, path: str) -> str:
        """Return where a file goes, relative to the folder."""
        real = os.path.abspath(path)
        if real.startswith(self._top + os.sep):
            return os.path.relpath(real, self._top)
        return os.path.basename(real)

    def _word(self, word: str) -> str:
        """Return a word as it is in the folder: files of the project lie in it by their names."""
        head, equals, value = word.rpartition("=")
        path = os.path.join(self._project.cwd, value)
        if os.path.isfile(path) and os.path.abspath(path).startswith(self._top + os.sep):
            return f"{head}{equals}{self._inside(path)}"
        return word

    def _sources(self, recipe: Recipe) -> Iterator[str]:
        """Give the program's own files: those that the command names, and modules of its own."""
        for word in recipe.argv:
            path = os.path.abspath(os.path.join(recipe.cwd, word.rpartition("=")[2]))
            if os.path.isfile(path) and path.startswith(self._top + os.sep):
                yield path
        for _, kind, file in self._noted.modules if self._noted is not None else ():
            is_own = file.startswith(self._top + os.sep) and "-packages/" not in file
            if kind == OWN and is_own and os.path.isfile(file):
                yield file

    def _copy(self, source: str, inner: str) -> None:
        path = os.path.join(self.folder, inner)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.isdir(source):
            shutil.copytree(source, path, symlinks=True)
        else:
            shutil.copyfile(source, path)

    def _write(self, name: str, text: str) -> None:
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def _shown(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the variables; those that hold a secret without a value."""
        redact = self._project.settings.record.redact
        found = {name: value for name, value in env.items() if name not in self.given}
        return {
            name: ""
            if facts.matches(name.upper(), redact) or mask_text(value, self._known) != value
            else value
            for name, value in found.items()
        }

    def _readme(self, failure: Signature, env: Mapping[str, str]) -> str:
        used = self._used
        host = os.uname()
        rest = ""
        if used:
            rest += (
                "\nPackages it uses (`pip install -r requirements.txt`): " + ", ".join(used) + "\n"
            )
        if shown := [name for name, value in env.items() if value]:
            rest += f"\nVariables that run.sh sets: {', '.join(shown)}\n"
        if hidden := [name for name, value in env.items() if not value]:
            rest += f"\nSet these yourself in run.sh: {', '.join(hidden)}\n"
        if self.given:
            rest += f"\nSecrets of the command, to be set before: {', '.join(self.given)}\n"
        python = f"Python {self._python()} " if self._noted is not None else ""
        where = f"{host.sysname} {host.machine}"
        return _README.format(
            title=mask_text(failure.title, self._known), python=python, host=where, rest=rest
        )

    def _python(self) -> str:
        from relaunch.trial.place.doubts import interpreter

        assert self._noted is not None
        found = interpreter(self._noted.argv, os.environ, self._project.cwd)
        return found.version if found is not None else sys.version.split()[0]

    @cached_property
    def _used(self) -> list[str]:
        """Name the installed packages whose modules were used, with their versions."""
        if self._noted is None:
            return []
        from importlib.metadata import distributions

        tops: dict[str, set[str]] = {}
        for name, kind, file in self._noted.modules:
            site = _site(file)
            if site and kind == LIBRARY and not name.startswith(_AT_START):
                tops.setdefault(site, set()).add(name.partition(".")[0])
        found = set()
        for site, names in tops.items():
            for one in distributions(path=[site]):
                files: Sequence[object] = one.files or ()
                if any(str(file).partition("/")[0].partition(".")[0] in names for file in files):
                    found.add(f"{one.name}=={one.version}")
        return sorted(found, key=str.lower)


def _site(file: str) -> str:
    for name in ("site-packages", "dist-packages"):
        before, found, _ = file.partition(f"/{name}/")
        if found:
            return f"{before}/{name}"
    return ""


def _quoted(word: str) -> str:
    from shlex import quote

    return quote(word)
