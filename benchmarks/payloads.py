"""Payloads that fail, each with the program that says by exit code 0 that it still does."""

from __future__ import annotations

import csv
import io
import json
import pickle
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_IMPORTS = "import argparse, asyncio, email, http.client, json, logging, ssl, unittest, sys\n"
"""What programs import before they begin, in a tenth of a second."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Payload:
    """One case."""

    name: str
    file: str
    make: Callable[[random.Random], bytes]
    oracle: str
    """The body of `is_bad(data)`, which returns whether it still fails."""
    imports: str = _IMPORTS
    packages: tuple[str, ...] = ()
    """What must be installed for it."""

    @property
    def slug(self) -> str:
        """Name it as a folder."""
        if self.packages:
            return self.packages[0].partition("=")[0]
        return self.file.partition(".")[2] if self.name != "deep JSON" else "deep"

    def write(self, folder: Path) -> None:
        """Put input and program into a folder."""
        folder.mkdir(parents=True)
        (folder / self.file).write_bytes(self.make(random.Random(11)))
        body = "".join(f"    {line}\n" for line in self.oracle.strip().splitlines())
        program = (
            f"{self.imports}\ndef is_bad(data):\n{body}\n"
            "try:\n    found = is_bad(open(sys.argv[1], 'rb').read())\n"
            "except Exception:\n    found = False\nsys.exit(0 if found else 1)\n"
        )
        (folder / "oracle.py").write_text(program)


def _words(rng: random.Random, count: int) -> str:
    return " ".join("".join(rng.choices("abcdefghij", k=rng.randint(2, 9))) for _ in range(count))


def _records(rng: random.Random, count: int) -> list[dict[str, object]]:
    return [
        {"id": n, "text": _words(rng, 12), "tags": [_words(rng, 1), n % 7], "score": n * 1.5}
        for n in range(count)
    ]


def _jsonl(rng: random.Random) -> bytes:
    rows = _records(rng, 20_000)
    rows[13_331]["score"] = "high"
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _deep(rng: random.Random) -> bytes:
    value: object = {"leaf": _words(rng, 5)}
    for n in range(300):
        value = {"next": value, "n": n} if n % 2 else [n, value]
    rows: list[object] = [*_records(rng, 500)]
    rows.insert(250, value)
    return json.dumps({"rows": rows, "kind": "deep"}).encode()


def _csv(rng: random.Random) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["id", "name", "text", "a", "b", "c"])
    for n in range(6000):
        text = "two\nlines" if n == 4321 else _words(rng, 6)
        writer.writerow([n, _words(rng, 1), text, n * 2, n * 3, -1 if n == 4321 else 1])
    return out.getvalue().encode()


_BATCHES = """
import configparser
read = configparser.ConfigParser()
read.read_string(data.decode())
found = [dict(read[name]) for name in read.sections()]
return any(int(one.get("workers", 0)) > 4 and int(one.get("batch", 9)) < 4 for one in found)
"""
_ODD = """\
def outer():
    def inner(x):
        nonlocal y
        y = lambda: x
        return [y for y in x if (z := y)]
    y = 0
    return inner
"""


_LOUD = """\
class Levels:
    def scale(self, factor, loud=False):
        for name in self.names:
            if loud:
                print *= factor
        return factor
"""
_TIGHT = """\
def chosen(names, default=None):
    pick = names[0] if names else(lambda: default)
    return pick
"""


def _source(planted: str, *modules: str) -> Callable[[random.Random], bytes]:
    """Return what puts a few lines between modules of the standard library."""

    def make(rng: random.Random) -> bytes:
        folder = Path(json.__file__).parent.parent
        parts = [(folder / f"{name}.py").read_text() for name in modules]
        parts.insert(1, planted)
        return "\n\n".join(parts).encode()

    return make


def _settings(rng: random.Random) -> bytes:
    lines = []
    for section in range(60):
        lines.append(f"[section{section}]")
        lines += [f"{_words(rng, 1)}{n} = {_words(rng, 3)}" for n in range(12)]
    at = lines.index("[section41]")
    lines[at + 3 : at + 3] = ["workers = 8", "batch = 3"]
    return "\n".join(lines).encode() + b"\n"


def _options(rng: random.Random) -> bytes:
    names = sorted({_words(rng, 1) for _ in range(80)})
    lines = [f"--{name}={rng.randint(1, 999)}" for name in names]
    lines[17:17] = ["--save-steps=600", "--eval-strategy=steps"]
    lines[50:50] = ["--load-best=true"]
    return "\n".join(lines).encode() + b"\n"


def _array(rng: random.Random) -> bytes:
    head = "{'descr': '<f8', 'fortran_order': False, 'shape': (64, 32, 8), }"
    head += " " * (117 - len(head)) + "\n"
    values = [rng.random() for _ in range(64 * 32 * 8)]
    values[41 * 32 * 8 + 100] = -5.0
    return (
        b"\x93NUMPY\x01\x00"
        + struct.pack("<H", len(head))
        + head.encode()
        + struct.pack(f"<{len(values)}d", *values)
    )


def _pickle(rng: random.Random) -> bytes:
    value = {"rows": _records(rng, 800), "meta": {"made": "now", "by": _words(rng, 3)}}
    value["rows"][555]["tags"] = {"odd": {1, 2, 3}}  # type: ignore[index]
    return pickle.dumps(value, 4)


PAYLOADS = (
    Payload(
        name="JSON lines, one bad record",
        file="input.jsonl",
        make=_jsonl,
        oracle="""
rows = [json.loads(line) for line in data.splitlines()]
kinds = {type(row["score"]) for row in rows}
return str in kinds and len(kinds) > 1
""",
    ),
    Payload(
        name="deep JSON",
        file="input.json",
        make=_deep,
        oracle="""
def depth(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, inner), default=0)
sys.setrecursionlimit(10000)
return depth(json.loads(data)["rows"]) > 120
""",
    ),
    Payload(
        name="CSV, a field of two lines",
        file="input.csv",
        make=_csv,
        oracle="""
import csv, io
rows = list(csv.DictReader(io.StringIO(data.decode())))
return any("\\n" in row["text"] and int(row["c"]) < 0 for row in rows)
""",
    ),
    Payload(
        name="Python source",
        file="input.py",
        make=_source(_ODD, "textwrap", "shlex", "bisect"),
        oracle="""
import ast, symtable
tree = ast.parse(data)
symtable.symtable(data.decode(), "input.py", "exec")
for node in ast.walk(tree):
    if isinstance(node, ast.FunctionDef) and any(isinstance(n, ast.Nonlocal) for n in node.body):
        inner = list(ast.walk(node))
        if any(isinstance(n, ast.Lambda) for n in inner):
            return any(isinstance(n, ast.NamedExpr) for n in inner)
return False
""",
    ),
    Payload(
        name="settings in sections",
        file="input.ini",
        make=_settings,
        oracle=_BATCHES,
    ),
    Payload(
        name="80 options",
        file="input.args",
        make=_options,
        oracle="""
pairs = [line[2:].split("=") for line in data.decode().split("\\n") if line]
found = dict(pairs)
is_odd = found["eval-strategy"] == "steps" and int(found["save-steps"]) % 500 != 0
return is_odd and found["load-best"] in ("true", "1")
""",
    ),
    Payload(
        name="an array",
        file="input.npy",
        make=_array,
        oracle="""
import ast, math, struct
assert data[:6] == b"\\x93NUMPY"
size, = struct.unpack("<H", data[8:10])
facts = ast.literal_eval(data[10 : 10 + size].decode())
assert len(facts["shape"]) == 3 and facts["descr"] == "<f8" and data[9 + size : 10 + size] == b"\\n"
count = math.prod(facts["shape"])
values = struct.unpack(f"<{count}d", data[10 + size :])
return any(one < 0 for one in values)
""",
    ),
    Payload(
        name="a pickle",
        file="input.pickle",
        make=_pickle,
        oracle="""
import pickle
value = pickle.loads(data)
return any(isinstance(row["tags"], dict) and set in map(type, row["tags"].values())
           for row in value["rows"])
""",
    ),
)  # fmt: skip

PACKAGES = (
    Payload(
        name="pyflakes 3.0.0",
        file="input.py",
        make=_source(_LOUD, "configparser", "textwrap", "shlex", "bisect"),
        imports="import ast, sys\nimport pyflakes.checker\n",
        packages=("pyflakes==3.0.0",),
        oracle="""
try:
    pyflakes.checker.Checker(ast.parse(data))
except AttributeError as error:
    return "_pyflakes_parent" in str(error)
""",
    ),
    Payload(
        name="libcst 1.1.0, by its blanks",
        file="input.py",
        make=_source(_TIGHT, "textwrap", "shlex"),
        imports="import sys\nimport libcst\n",
        packages=("libcst==1.1.0",),
        oracle="""
try:
    libcst.parse_module(data)
except TypeError as error:
    return "super(type, obj)" in str(error)
""",
    ),
    Payload(
        name="settings, of a program with pandas",
        file="input.ini",
        make=_settings,
        imports="import sys\nimport pandas, scipy.stats\n",
        packages=("pandas==2.2.3", "scipy==1.14.1"),
        oracle=_BATCHES,
    ),
)
"""Real failures of released packages, and a program that starts slowly."""
