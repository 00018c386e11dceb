"""Finds which Python a command will run and how it starts there, without starting anything."""

from __future__ import annotations

import os

from relaunch.record import Record
from relaunch.textfile import read_text
from relaunch.trust import is_allowed, owners_are_safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_STEPPED_OVER = frozenset(
    ("nohup", "nice", "time", "stdbuf", "setsid", "ionice", "command", "exec")
)
_RUNNERS = frozenset(("uv", "poetry", "pdm", "hatch", "rye", "pipenv"))
_VALUE_OPTIONS = frozenset(
    ("--with", "--python", "-p", "--project", "--directory", "--extra", "--group", "--env-file",
     "--package", "--index-url", "--with-editable", "--with-requirements", "-n", "-u", "-c")
)  # fmt: skip
_SCRIPT_LAUNCHERS = frozenset(("torchrun", "accelerate", "deepspeed", "coverage"))
_LAUNCHER_MODULES = frozenset(
    ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "coverage",
     "deepspeed.launcher.runner", "pdb", "cProfile", "trace")
)  # fmt: skip


class Interpreter(Record):
    """A Python as its files describe it."""

    executable: str
    version: str
    """`3.11`; empty when its files do not tell."""
    prefix: str
    site_packages: tuple[str, ...]


class Start(Record):
    """How a command enters Python, which decides what is first on `sys.path`."""

    python: Interpreter
    kind: str
    """script, module, code, console (an installed script) or stdin"""
    target: str = ""
    """The path of the script, installed or not, or the module's name."""
    flags: str = ""
    """Python's own one-letter options, as `IPs`."""
    words: tuple[str, ...] = ()
    """The words after the target."""
    env: Mapping[str, str] = {}
    """The environment it gets, with what `env A=1` in front of it sets."""


def interpreter(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> Interpreter | None:
    """Return the Python that `argv` will run; None when it is not Python or cannot be told."""
    start = find_start(argv, env, cwd)
    return start.python if start else None


def project_python(env: Mapping[str, str], cwd: str, top: str) -> str:
    """Return the word that runs the project's Python 3; nothing when there is none.

    It is that of the active environment, else of one in the tree up to `top` that another user
    could not have put there, else the one on PATH.
    """
    venv = env.get("VIRTUAL_ENV", "") or ("" if env.get("CONDA_PREFIX") else _venv_above(cwd, top))
    inner = os.path.join(venv, "bin", "python")
    if venv and os.path.isfile(inner):
        return "python" if _find_program("python", env, cwd) == inner else inner
    for word in ("python", "python3"):
        found = find_start((word,), env, cwd)
        if found is not None and not found.python.version.startswith("2."):
            # A shim would take longer to find this than most lines to run.
            path, real = _find_program(word, env, cwd), found.python.executable
            return word if real == path else real
    return ""


def _venv_above(cwd: str, top: str) -> str:
    folder = cwd
    while True:
        for name in (".venv", "venv"):
            venv = os.path.join(folder, name)
            if os.path.exists(os.path.join(venv, "pyvenv.cfg")) and _may_run(folder, venv):
                return venv
        if folder == top or folder == os.path.dirname(folder):
            return ""
        folder = os.path.dirname(folder)


def _may_run(folder: str, venv: str) -> bool:
    binaries = os.path.join(venv, "bin")
    entries = (venv, binaries, os.path.join(binaries, "python"))
    return owners_are_safe(*entries) or is_allowed(folder)


def find_start(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> Start | None:
    """Return how `argv` enters Python; None when it is not Python or cannot be told."""
    words = list(argv)
    env = dict(env)
    venv = _step_over(words, env, cwd)
    if not words:
        return None
    if venv:
        env["PATH"] = os.path.join(venv, "bin") + os.pathsep + env.get("PATH", "")
        if words[0].endswith(".py"):  # `uv run train.py`
            words.insert(0, "python")
    path = _find_program(words[0], env, cwd)
    if not path:
        return None
    path = _behind_shim(path, env, cwd)
    if _is_python_name(os.path.basename(path)):
        return _python_start(_describe(path, env), words[1:], cwd).but(env=env)
    found = _shebang_python(path, env, cwd)
    if not found:
        return None
    python = _describe(found[0], env)
    if "/" not in words[0] or os.path.dirname(path) == os.path.dirname(found[0]):
        return _console_start(python, path, words[1:], cwd).but(env=env)
    rest = tuple(words[1:])
    return Start(python=python, kind="script", target=path, flags=found[1], words=rest, env=env)


# --- the words before the program


def _step_over(words: list[str], env: dict[str, str], cwd: str) -> str:
    """Take `env A=1`, `nice`, `uv run` and the like off; return the environment a runner picks."""
    venv = ""
    while words:
        name = os.path.basename(words[0])
        if name == "env":
            del words[0]
            while words and ("=" in words[0] or words[0].startswith("-")):
                word = words.pop(0)
                if word in ("-u", "-C", "-S") and words:
                    if word == "-u":
                        env.pop(words.pop(0), None)
                    elif word == "-C":
                        words.pop(0)
                elif "=" in word and not word.startswith("-"):
                    key, _, value = word.partition("=")
                    env[key] = value
        elif name in _STEPPED_OVER:
            del words[0]
            while words and words[0].startswith("-"):
                word = words.pop(0)
                if name in ("nice", "ionice") and word in ("-n", "-c", "-p") and words:
                    del words[0]
        elif name == "timeout":
            del words[0]
            while words and words[0].startswith("-"):
                word = words.pop(0)
                if word in ("-s", "-k") and words:
                    del words[0]
            del words[:1]
        elif name in _RUNNERS and len(words) > 1 and words[1] == "run":
            del words[:2]
            while words and words[0].startswith("-"):
                word = words.pop(0)
                if word in ("-m", "--module"):
                    words[:0] = ["python", "-m"]
                elif word in _VALUE_OPTIONS and words:
                    del words[0]
            venv = _project_venv(name, env, cwd)
        else:
            break
    return venv


def _project_venv(runner: str, env: Mapping[str, str], cwd: str) -> str:
    """Return the environment of the project around `cwd`, where the runner keeps it there."""
    named = env.get("UV_PROJECT_ENVIRONMENT", "") if runner == "uv" else ""
    folder = cwd
    while True:
        venv = os.path.join(folder, named or ".venv")
        if os.path.exists(os.path.join(venv, "pyvenv.cfg")):
            return venv
        parent = os.path.dirname(folder)
        if parent == folder:
            return env.get("VIRTUAL_ENV", "")
        folder = parent


def _find_program(name: str, env: Mapping[str, str], cwd: str) -> str:
    if "/" in name:
        path = os.path.normpath(os.path.join(cwd, name))
        return path if os.path.isfile(path) else ""
    for folder in env.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(cwd, folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


def _behind_shim(path: str, env: Mapping[str, str], cwd: str) -> str:
    """Follow a pyenv shim to the program it would run."""
    folder = os.path.dirname(path)
    root = os.path.dirname(folder)
    if os.path.basename(folder) != "shims" or not os.path.isdir(os.path.join(root, "versions")):
        return path
    for version in _pyenv_versions(root, env, cwd):
        found = os.path.join(root, "versions", version, "bin", os.path.basename(path))
        if os.path.exists(found):
            return found
    return path


def _pyenv_versions(root: str, env: Mapping[str, str], cwd: str) -> list[str]:
    if env.get("PYENV_VERSION"):
        return env["PYENV_VERSION"].split(":")
    folder = cwd
    while True:
        words = _first_lines(os.path.join(folder, ".python-version"))
        if words:
            return words
        parent = os.path.dirname(folder)
        if parent == folder:
            return _first_lines(os.path.join(root, "version"))
        folder = parent


def _first_lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096).split()
    except OSError:
        return []


# --- how Python is entered


def _is_python_name(name: str) -> bool:
    stem = name.rstrip("0123456789.t")
    return stem in ("python", "pypy", "pythonw", "pytho")  # `t` of python3.13t is stripped too


def _python_start(python: Interpreter, words: list[str], cwd: str) -> Start:
    flags = ""
    while words:
        word = words.pop(0)
        if word == "-" or not word.startswith("-"):
            kind = "stdin" if word == "-" else "script"
            target = "" if word == "-" else os.path.normpath(os.path.join(cwd, word))
            return Start(python=python, kind=kind, target=target, flags=flags, words=tuple(words))
        if word.startswith("--"):
            if word == "--check-hash-based-pycs" and words:
                del words[0]
            continue
        ended = _read_letters(word[1:], words)
        flags += ended[0]
        if ended[1] == "m":
            return _module_start(python, ended[2], flags, words, cwd)
        if ended[1] == "c":
            return Start(python=python, kind="code", flags=flags, words=tuple(words))
    return Start(python=python, kind="stdin", flags=flags)


def _read_letters(letters: str, words: list[str]) -> tuple[str, str, str]:
    """Split `-Im` into plain flags and the option that takes a value, with that value."""
    for at, letter in enumerate(letters):
        if letter in "mcWX":
            value = letters[at + 1 :] or (words.pop(0) if words else "")
            return letters[:at], letter, value
    return letters, "", ""


def _module_start(
    python: Interpreter, module: str, flags: str, words: list[str], cwd: str
) -> Start:
    start = Start(python=python, kind="module", target=module, flags=flags, words=tuple(words))
    return _behind_launcher(start, cwd) if module in _LAUNCHER_MODULES else start


def _console_start(python: Interpreter, path: str, words: list[str], cwd: str) -> Start:
    start = Start(python=python, kind="console", target=path, words=tuple(words))
    launches = os.path.basename(path) in _SCRIPT_LAUNCHERS
    return _behind_launcher(start, cwd) if launches else start


def _behind_launcher(start: Start, cwd: str) -> Start:
    """Look for the script or module that torchrun and its like start in a Python of their own."""
    words = list(start.words)
    while words:
        word = words.pop(0)
        if word in ("-m", "--module") and words:
            return start.but(kind="module", target=words.pop(0), words=tuple(words))
        path = os.path.normpath(os.path.join(cwd, word))
        if word.endswith(".py") and os.path.isfile(path):
            return start.but(kind="script", target=path, words=tuple(words))
    return start


def _shebang_python(path: str, env: Mapping[str, str], cwd: str) -> tuple[str, str] | None:
    """Return the Python in the first lines of a script, with its flags."""
    try:
        with open(path, "rb") as file:
            lines = os.fsdecode(file.read(1024)).split("\n")
    except OSError:
        return None
    if not lines[0].startswith("#!"):
        return None
    words = lines[0][2:].split()
    if words and os.path.basename(words[0]) == "sh" and len(lines) > 1 and "'exec'" in lines[1]:
        # installers write this where the interpreter's path is too long for the kernel
        words = [lines[1].partition("'exec'")[2].strip().partition(' "$0"')[0].strip("\"' ")]
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        if words:
            words[0] = _behind_shim(_find_program(words[0], env, cwd), env, cwd)
    if not words or not _is_python_name(os.path.basename(words[0])):
        return None
    flags = "".join(word[1:] for word in words[1:] if word[:1] == "-" and word[:2] != "--")
    return words[0], flags


# --- what its files say about a Python


def _describe(executable: str, env: Mapping[str, str]) -> Interpreter:
    """Read version and site-packages from the folders around the executable, as `site` would."""
    here = os.path.dirname(executable)
    venv = os.path.dirname(here)
    settings = _read_cfg(os.path.join(venv, "pyvenv.cfg")) or _read_cfg(
        os.path.join(here, "pyvenv.cfg")
    )
    if settings is None:
        real = os.path.realpath(executable)
        prefix = os.path.dirname(os.path.dirname(real))
        version = _version(prefix, os.path.basename(real))
        return Interpreter(
            executable=executable,
            version=version,
            prefix=prefix,
            site_packages=_system_sites(prefix, version, env),
        )
    version = ".".join(settings.get("version", settings.get("version_info", "")).split(".")[:2])
    version = version or _version(venv, "")
    sites: tuple[str, ...] = _existing(_site(venv, version))
    if settings.get("include-system-site-packages", "").lower() == "true":
        base = os.path.dirname(settings.get("home", ""))
        sites += _system_sites(base, version, env)
    return Interpreter(executable=executable, version=version, prefix=venv, site_packages=sites)


def _read_cfg(path: str) -> dict[str, str] | None:
    try:
        pairs = (line.partition("=") for line in read_text(path).splitlines())
        return {key.strip().lower(): value.strip() for key, _, value in pairs}
    except OSError:
        return None


def _version(prefix: str, name: str) -> str:
    digits = name.lstrip("abcdefghijklmnopqrstuvwxyz").rstrip("t")
    if digits.count(".") == 1:
        return digits
    try:
        names = os.listdir(os.path.join(prefix, "lib"))
    except OSError:
        return ""
    found = [n[6:] for n in names if n.startswith("python") and n[6:].count(".") == 1]
    return found[0] if len(found) == 1 else ""


def _site(prefix: str, version: str) -> str:
    return os.path.join(prefix, "lib", f"python{version}", "site-packages")


def _system_sites(prefix: str, version: str, env: Mapping[str, str]) -> tuple[str, ...]:
    paths = []
    if not env.get("PYTHONNOUSERSITE"):
        base = env.get("PYTHONUSERBASE") or os.path.join(env.get("HOME", ""), ".local")
        paths.append(_site(base, version))
    paths.append(_site(prefix, version))
    if prefix == "/usr":  # Debian keeps its own and the administrator's packages apart
        paths += [
            f"/usr/local/lib/python{version}/dist-packages",
            "/usr/lib/python3/dist-packages",
            f"/usr/lib/python{version}/dist-packages",
        ]
    return _existing(*paths)


def _existing(*paths: str) -> tuple[str, ...]:
    return tuple(path for path in paths if os.path.isdir(path))
