"""Reads `relaunch.toml` or `[tool.relaunch]`, over the user's own file, and keeps a parsed copy.

Refuses what it does not know, naming file, line and column: a misspelt key that silently does
nothing is how people test something else than they think.
"""

from __future__ import annotations

import os
import time

from relaunch import jsontext
from relaunch.errors import SettingsError
from relaunch.inside.secret_shapes import spans
from relaunch.record import Record
from relaunch.textfile import IN_TREE, read_open, read_text
from relaunch.trust import foreign, is_of_root, own_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

MIB = 1 << 20
_MOST_BYTES = 16 * MIB
"""Of a settings file: a clone can hold a link to `/dev/zero`."""
_FORM = 2  # of the parsed copy; raise it when a key or a default changes its meaning
_SETTLED_NS = 50_000_000  # a file younger than this may change again without a new time stamp
_ENV = (
    "CUDA_*", "NCCL_*", "TORCH_*", "PYTORCH_*", "PYTHON*", "SLURM_*", "OMP_*", "MKL_*",
    "HF_*", "XLA_*", "JAX_*", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
    "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PATH", "LD_LIBRARY_PATH", "LD_PRELOAD",
    "LANG", "LC_*", "TZ", "SHELL", "TERM",
)  # fmt: skip
# Narrow enough for GIT_AUTHOR_NAME, TOKENIZERS_PARALLELISM, KEYBOARD_LAYOUT and SSH_AUTH_SOCK: a
# value taken for a secret is missing from the journal and masked in the output.
_REDACT = (
    "*TOKEN", "*TOKEN_*", "KEY", "*_KEY", "*_KEYS", "*_KEY_*", "*APIKEY*", "*ACCESSKEY*",
    "*PRIVATEKEY*", "*SSHKEY*", "*SECRET*", "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "PASS",
    "*_PASS", "MYSQL_PWD", "*CREDENTIAL*", "*_CREDS", "*AUTH", "*AUTHORIZATION", "*AUTH_HEADER*",
    "DOCKER_AUTH_CONFIG", "*BEARER*", "*JWT", "PAT", "*_PAT",
)  # fmt: skip


class RunSettings(Record):
    """`[run]`: how a trial is prepared and started."""

    reset: tuple[str | tuple[str, ...], ...] = ()
    """Commands run before every launch: a shell string or an argv list each."""
    stop_if_reset_fails: bool = True
    clear: bool = False
    """Clear the screen first, as one step with the launch."""
    isolate: str = "off"
    """`frozen` runs from a copy, so that edits made meanwhile cannot leak in."""
    unsaved: str = "ask"
    """What to do about unsaved editor buffers: ask, warn, refuse or off."""
    timeout_s: float | None = None


class RecordSettings(Record):
    """`[record]`: how much is remembered of a trial."""

    max_file: int = MIB
    """Untracked files over this are remembered by path, size and hash only."""
    max_new: int = 20 * MIB
    """The same for all new files of one trial together."""
    env: tuple[str, ...] = _ENV
    """Variables whose values are kept; of the rest names and salted hashes."""
    redact: tuple[str, ...] = _REDACT
    """Variables, in upper case, whose values are never kept; a configuration only adds to these."""
    also: tuple[str, ...] = ("editable",)
    """What to snapshot besides the project: `editable` installs and PYTHONPATH, or directories."""
    max_output: int = 256 * MIB
    """Output kept per trial; the program is never cut short by it."""


class WarmSettings(Record):
    """`[warm]`: what the snapshots of each program may take; unset leaves it to their host."""

    memory: str = ""
    """All of them together, as `4G` or `30%`; see `memory_bytes`."""
    idle_s: float = 0.0
    """They end when nobody needed them for so long."""


class CaptureSettings(Record):
    """`[capture]`: what is kept of a call that failed, for `rl replay`."""

    enabled: bool = True
    budget: int = 64 * MIB
    """Data of one failure; of arrays and tensors beyond it only the shapes."""
    limit_s: float = 5.0
    """Keeping it ends after so long."""
    keep: int = 10
    """Of so many failed trials; the calls of older ones go, the trials stay."""


class TrustSettings(Record):
    """`[trust]`, of the user's own file alone: whose commands run without being asked about."""

    ask: str = "others"
    """`others`: what somebody else wrote; `always`: whatever a project runs; `never`: nothing."""


class Settings(Record):
    """Everything a project and its user have configured, defaults filled in."""

    run: RunSettings = RunSettings()
    record: RecordSettings = RecordSettings()
    warm: WarmSettings = WarmSettings()
    capture: CaptureSettings = CaptureSettings()
    trust: TrustSettings = TrustSettings()
    metrics: Mapping[str, str] = {}
    """Name to regular expression; the first group, or the whole match, is the value."""
    sets: Mapping[str, str] = {}
    """Link to the pattern of the files or directories behind it, as `conf = "conf@*"`."""
    flag: str = ""
    """The environment variable that carries the name of the set, where sets are flags."""
    files: tuple[str, ...] = ()
    """The files these settings came from, strongest last."""
    reset_from: str = ""
    """The one of them that says `run.reset`."""
    foreign: str = ""
    """A file that is not read: it, or its folder, belongs to another user."""


def load(project: str, *, cache_dir: str = "") -> Settings:
    """Read the settings of the project at `project`; `cache_dir` may keep the parsed copy."""
    found = [_Source(own_settings(), own=True)]
    try:
        for name, table in (("relaunch.toml", ()), ("pyproject.toml", ("tool", "relaunch"))):
            found.append(_Source(os.path.join(project, name), table))
            if found[-1].is_there:
                break
        return _load([one for one in found if one.is_there], cache_dir)
    finally:
        for one in found:
            one.close()


def _load(found: list[_Source], cache_dir: str) -> Settings:
    theirs = next((one.path for one in found if one.is_foreign), "")
    found = [one for one in found if not one.is_foreign]
    if not found:
        return Settings(foreign=theirs)
    stamps = [_stamp(one) for one in found]
    cache = os.path.join(cache_dir, "settings.json") if cache_dir else ""
    layers = _from_cache(cache, stamps) if cache else None
    if layers is None:
        layers = [parse(one.read(), one.path, one.table, own=one.own) for one in found]
        if cache and _settled(stamps):
            _to_cache(cache, stamps, layers)
    return _merge(layers, tuple(one.path for one in found)).but(foreign=theirs)


class _Source:
    """One file, open: what is read is what was looked at, whatever takes its place meanwhile."""

    def __init__(self, path: str, table: tuple[str, ...] = (), *, own: bool = False) -> None:
        self.path = path
        self.table = table
        self.own = own
        self.fd = -1
        self.is_foreign = False
        self._raw: bytes | None = None
        folder = os.path.dirname(path)
        try:
            self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.is_foreign = bool(foreign(folder, path))
            if not self.is_foreign and not table:
                raise _unreadable(path, error) from None
            return
        if own and is_of_root(self.fd):
            return  # where a machine is set up for its users
        self.is_foreign = bool(foreign(folder, path, opened=(self.fd,)))

    @property
    def is_there(self) -> bool:
        """Tell whether there are settings of ours in it; another's file is not looked into."""
        if self.is_foreign and not self.table:
            return True
        return self.fd >= 0 and (not self.table or b"[tool.relaunch" in self.read())

    def read(self) -> bytes:
        """Return all of it."""
        if self._raw is None:
            try:
                self._raw = read_open(self.fd, most=_MOST_BYTES)
            except OSError as error:
                if not self.table:
                    raise _unreadable(self.path, error) from None
                self._raw = b""
        return self._raw

    def close(self) -> None:
        """Let it go."""
        if self.fd >= 0:
            os.close(self.fd)


# --- the parsed copy ------------------------------------------------------------------------------


def _stamp(source: _Source) -> list[Any]:
    info = os.fstat(source.fd)
    return [source.path, info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino]


def _settled(stamps: list[list[Any]]) -> bool:
    now = time.time_ns()
    return all(now - max(stamp[1], stamp[2]) > _SETTLED_NS for stamp in stamps)


def _from_cache(cache: str, stamps: list[list[Any]]) -> list[dict[str, Any]] | None:
    try:
        kept = jsontext.loads(read_text(cache, "strict"))
        if kept["form"] == _FORM and kept["stamps"] == stamps:
            layers: list[dict[str, Any]] = kept["layers"]
            return layers
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _to_cache(cache: str, stamps: list[list[Any]], layers: list[dict[str, Any]]) -> None:
    """Keep the parsed copy if we can; only speed is lost if we cannot."""
    temporary = f"{cache}.{os.getpid()}-{time.monotonic_ns()}.tmp"  # the journal sweeps such names
    try:
        text = jsontext.dumps({"form": _FORM, "stamps": stamps, "layers": layers})
        if spans(text.encode()):  # a reset with a password is not kept twice
            return
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, cache)
    except (OSError, ValueError):
        try:
            os.unlink(temporary)
        except OSError:
            pass


def _merge(layers: list[dict[str, Any]], files: tuple[str, ...]) -> Settings:
    """Lay the stronger file over the weaker key by key; `redact` only ever grows."""
    run: dict[str, Any] = {}
    record: dict[str, Any] = {}
    warm: dict[str, Any] = {}
    capture: dict[str, Any] = {}
    metrics: dict[str, str] = {}
    sets: dict[str, str] = {}
    flag = ""
    trust: dict[str, Any] = {}
    reset_from = ""
    redact: list[str] = list(_REDACT)
    for layer, file in zip(layers, files, strict=True):
        reset_from = file if "reset" in layer.get("run", {}) else reset_from
        trust.update(layer.get("trust", {}))
        run.update(layer.get("run", {}))
        record.update(layer.get("record", {}))
        warm.update(layer.get("warm", {}))
        capture.update(layer.get("capture", {}))
        redact += layer.get("record", {}).get("redact", ())
        metrics.update(layer.get("metrics", {}))
        links = dict(layer.get("sets", {}))
        flag = links.pop("flag", flag)
        sets.update(links)
    if "reset" in run:
        run["reset"] = tuple(x if isinstance(x, str) else tuple(x) for x in run["reset"])
    record["redact"] = tuple(dict.fromkeys(redact))
    for name in ("env", "also"):
        if name in record:
            record[name] = tuple(record[name])
    kept = WarmSettings(memory=warm.get("memory", ""), idle_s=warm.get("idle", 0.0))
    if "limit" in capture:
        capture["limit_s"] = capture.pop("limit")
    return Settings(
        run=RunSettings(**run), record=RecordSettings(**record), warm=kept,
        capture=CaptureSettings(**capture), metrics=metrics, sets=sets, flag=flag, files=files,
        trust=TrustSettings(ask=trust.get("ask", "others")), reset_from=reset_from,
    )  # fmt: skip


# --- reading and checking one file: only when it changed ------------------------------------------


def parse(
    raw: bytes, path: str, table: tuple[str, ...] = (), *, own: bool = False
) -> dict[str, Any]:
    """Turn the bytes of a settings file into checked plain values; pure but for the name shown.

    `table` is where in it our settings live; `own` says that it is the user's, not a project's.
    """
    import tomllib

    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8")
        raise _fault(path, _end(before), f"byte 0x{raw[error.start]:02x} is not UTF-8") from None
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    try:
        data: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where, what = _syntax(str(error), text)
        raise _fault(path, where, what) from None
    for name in table:
        data = data.get(name, {})
    checked = _checked(data, path, text, table)
    if "trust" in checked and not own:
        where = key_position(text, (*table, "trust"))
        raise _fault(path, where, f"`trust` is read in {own_settings()} alone")
    return checked


def size(text: str | int) -> int:
    """Read `512k`, `1 MiB`, `20MB` or a number of bytes; ValueError for anything else.

    A letter alone counts in powers of 1024, as everywhere on the command line.
    """
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        return text
    word = text.strip().lower() if isinstance(text, str) else ""
    digits = len(word) - len(word.lstrip("0123456789."))
    factor = _UNITS.get(word[digits:].strip(), 0)
    try:
        if factor:
            return int(float(word[:digits]) * factor)
    except ValueError:
        pass
    raise ValueError(f'`{text}` is no size; write it as "1 MiB"')


def memory_bytes(text: str | int, total: int) -> int:
    """Read a size above 0, or a share of `total` as `30%`; ValueError for anything else."""
    word = text.strip() if isinstance(text, str) else ""
    try:
        if not word.endswith("%"):
            count = size(text)
        elif 0 < (percent := float(word[:-1])) <= 100:
            return int(total * percent / 100)
        else:
            count = 0
    except (ValueError, OverflowError):
        count = 0
    if not count:
        raise ValueError(f'`{text}` is no memory; write it as "4G" or "30%"')
    return count


def seconds(text: str) -> float:
    """Read 30, 1.5, 90s, 5m, 2h or 1d as seconds above 0; ValueError for anything else."""
    unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(text[-1:], 0)
    try:
        value = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError(f"`{text}` is no time; write it as 30, 90s, 5m or 2h")
    return value


_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", 1):
    _UNITS |= {_letter + end: 1024**_power for end in ("", "i", "ib")}
    _UNITS[f"{_letter}b"] = 1000**_power


def _checked(data: Any, path: str, text: str, table: tuple[str, ...]) -> dict[str, Any]:
    """Check every key and value against `KEYS`; free-form tables against their one kind."""

    def fault(keys: tuple[str, ...], what: str) -> SettingsError:
        return _fault(path, key_position(text, (*table, *keys)), what)

    if not isinstance(data, dict):
        raise fault((), "`tool.relaunch` must be a table")
    checked: dict[str, Any] = {}
    for section, values in data.items():
        if section not in KEYS:
            raise fault((section,), _unknown(section, list(KEYS)))
        if not isinstance(values, dict):
            raise fault((section,), f"`{section}` must be a table: [{section}]")
        known = KEYS[section]
        checked[section] = {}
        for key, value in values.items():
            check = known.get(key) or known.get("*")
            if check is None:
                raise fault((section, key), _unknown(f"{section}.{key}", _dotted(section)))
            try:
                if section == "sets" and key not in known:
                    _inner_path(key)
                checked[section][key] = check(value)
            except (ValueError, TypeError) as error:
                raise fault((section, key), f"`{section}.{key}`: {error}") from None
    return checked


def _dotted(section: str) -> list[str]:
    return [f"{section}.{key}" for key in KEYS[section]]


def _unknown(key: str, known: list[str]) -> str:
    """Name the nearest key; one written in the wrong table is near too."""
    import difflib

    leaf = key.rpartition(".")[2]
    every = [f"{section}.{name}" for section in KEYS for name in KEYS[section] if name != "*"]
    leaves = {name.rpartition(".")[2]: name for name in [*every, *known]}
    near = difflib.get_close_matches(leaf, leaves, 1, 0.6)
    tip = f"did you mean `{leaves[near[0]]}`?" if near else f"known: {', '.join(known)}"
    return f"unknown key `{key}`; {tip}"


# --- the kinds of value ---------------------------------------------------------------------------


def _shown(value: object) -> str:
    return f"`{value}`" if isinstance(value, str) else str(value).lower()


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {_shown(value)}")
    return value


def _words(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(x, str) and x for x in value):
        raise ValueError('must be a list of strings, as ["A_*", "B"]')
    return value


def _commands(value: object) -> list[str | list[str]]:
    """Accept one shell string, or a list of shell strings and argv lists."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        raise ValueError(f"must be a list of commands, not {_shown(value)}")
    for command in value:
        words = command if isinstance(command, list) else [command]
        if not words or not all(isinstance(word, str) for word in words) or not words[0].strip():
            raise ValueError(f"{_shown(command)} is no command: a shell string or an argv list")
        if any("\0" in word for word in words):
            raise ValueError("a command cannot hold a NUL character")
    return value


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise ValueError(f"must be a number of seconds above 0, not {_shown(value)}")
    return float(value)


def _one_of(*choices: str) -> Callable[[object], str]:
    def check(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ValueError(
                f"must be {', '.join(choices[:-1])} or {choices[-1]}, not {_shown(value)}"
            )
        return value

    return check


def _size(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f'must be a size such as "1 MiB", not {_shown(value)}')
    return size(value)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"must be a whole number, not {_shown(value)}")
    return value


def _memory(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f'must be a size or a share such as "4G" or "30%", not {_shown(value)}')
    memory_bytes(value, 0)
    return str(value)


def _time(value: object) -> float:
    return seconds(value) if isinstance(value, str) else _seconds(value)


def _regex(value: object) -> str:
    from relaunch.patterns import compiled

    if not isinstance(value, str):
        raise ValueError(f"must be a regular expression, not {_shown(value)}")
    try:
        compiled(value)
    except ValueError as error:
        raise ValueError(f"`{value}` is no regular expression: {error}") from None
    return value


def _pattern(value: object) -> str:
    if not isinstance(value, str) or value.count("*") != 1:
        raise ValueError(f'must be a pattern with one *, as "conf@*", not {_shown(value)}')
    if os.path.isabs(value) or ".." in value.split("/"):
        raise ValueError(f"must stay inside the project, not {_shown(value)}")
    _not_of_tools(value)
    return value


def _inner_path(key: str) -> None:
    """Refuse a link that would be made outside of the project, or among what is git's and ours."""
    if os.path.isabs(key) or ".." in key.split("/") or not key.strip("./"):
        raise ValueError("must stay inside the project")
    _not_of_tools(key)


def _not_of_tools(path: str) -> None:
    parts = path.split("/")
    for owner, folder in (("git", ".git"), ("rl", IN_TREE)):
        if folder in parts:
            raise ValueError(f"is {owner}'s own")


def _variable(value: object) -> str:
    if not isinstance(value, str) or not value.isidentifier():
        raise ValueError(f"must be the name of an environment variable, not {_shown(value)}")
    return value


KEYS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "run": {
        "reset": _commands,
        "stop_if_reset_fails": _flag,
        "clear": _flag,
        "isolate": _one_of("off", "frozen"),
        "unsaved": _one_of("ask", "warn", "refuse", "off"),
        "timeout_s": _seconds,
    },
    "record": {
        "max_file": _size,
        "max_new": _size,
        "env": _words,
        "redact": _words,
        "also": _words,
        "max_output": _size,
    },
    "warm": {"memory": _memory, "idle": _time},
    "capture": {"enabled": _flag, "budget": _size, "limit": _time, "keep": _count},
    "trust": {"folders": _words, "ask": _one_of("others", "always", "never")},
    "metrics": {"*": _regex},
    "sets": {"flag": _variable, "*": _pattern},
}


# --- where in the file ----------------------------------------------------------------------------


def _unreadable(path: str, error: OSError) -> SettingsError:
    return SettingsError(f"{_near_name(path)} cannot be read: {error.strerror}")


def _fault(path: str, where: tuple[int, int], what: str) -> SettingsError:
    line, column = where
    return SettingsError(f"{_near_name(path)}:{line}:{column}: {what}")


def _near_name(path: str) -> str:
    """Name the file as the person at this directory would."""
    try:
        near = os.path.relpath(path)
    except (OSError, ValueError):
        return path
    return path if near.startswith("../../..") else near


def _end(text: str) -> tuple[int, int]:
    return text.count("\n") + 1, len(text) - text.rfind("\n")


def _syntax(message: str, text: str) -> tuple[tuple[int, int], str]:
    """Take `(at line 3, column 8)` out of tomllib's message."""
    import re

    what = message.partition(" (at ")[0]
    at = re.search(r"\(at line (\d+), column (\d+)\)", message)
    return ((int(at[1]), int(at[2])) if at else _end(text)), what[:1].lower() + what[1:]


def key_position(text: str, keys: tuple[str, ...]) -> tuple[int, int]:
    """Find where `keys` is written: under its header, dotted, or in an inline table."""
    import re

    name = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
    dotted = rf"{name}(?:[ \t]*\.[ \t]*{name})*"
    header = re.compile(rf"[ \t]*\[\[?[ \t]*({dotted})[ \t]*\]")
    assign = re.compile(rf"[ \t]*({dotted})[ \t]*=")
    best, where = -1, (1, 1)
    table: tuple[str, ...] = ()
    quoted = ""  # inside a multi-line string, where nothing is a key
    for number, line in enumerate(text.split("\n"), 1):
        if not quoted:
            found = header.match(line)
            full: tuple[str, ...] = ()
            if found:
                full = table = _split(found[1])
            elif found := assign.match(line):
                full = (*table, *_split(found[1]))
            depth = _shared(full, keys)
            if found and depth > best and depth == min(len(full), len(keys)):
                best, where = depth, (number, found.start(1) + 1)
                inline = re.search(rf"[{{,]\s*({re.escape(keys[-1])})\s*=", line) if keys else None
                if depth < len(keys) and inline:
                    return number, inline.start(1) + 1
            if best == len(keys):
                return where
        for mark in ('"""', "'''"):
            if quoted in ("", mark) and line.count(mark) % 2:
                quoted = "" if quoted else mark
    return where


def _split(dotted: str) -> tuple[str, ...]:
    import re

    parts = re.findall(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""", dotted)
    return tuple(part.strip("\"'") for part in parts)


def _shared(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count
