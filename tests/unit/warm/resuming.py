"""A program that runs, leaves a snapshot, ends, and is resumed: for tests of what it sees."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from pathlib import Path
from typing import Any

from relaunch.inside import warm
from relaunch.inside.warm import world

_HERE = str(Path(warm.__file__).parent)
_PRELUDE = """
import sys, os, posix, json, linecache
from types import ModuleType
_package = sys.modules["_relaunch_warm"] = ModuleType("_relaunch_warm")
_package.__path__ = [{here!r}]
from _relaunch_warm import loader
sys.meta_path.insert(0, loader.finder_of({here!r}))
from _relaunch_warm import world, spine
del sys.meta_path[0]
ledger = world.Ledger()
ledger.install([sys.prefix, sys.base_prefix, {run!r}])
_children = set()
_aside = {aside!r}

def snapshot():
    why = world.refuse(_children)
    if why:
        posix.write({tell}, json.dumps({{"refused": why}}).encode() + b"\\n")
        posix._exit(3)
    world.before_fork()
    state = world.World(ledger)
    pid = spine.fork()
    if pid:
        _children.add(pid)
        return False
    state.let_go()
    ledger.asleep = True
    nothing = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(nothing, fd)
    words = {{"manifest": ledger.manifest(), "lines_seen": ledger.lines_seen}}
    rest = json.dumps(words).encode() + b"\\n"
    while rest:  # with torch it is more than a pipe holds, and a pipe may take less than it could
        rest = rest[posix.write({tell}, rest):]
    ledger.asleep = False
    posix.read({go}, 1) or posix._exit(0)
    out = posix.open(_aside + "/resumed.out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        state.prepare([nothing, out, posix.dup(out)])
        state.restore({{"RELAUNCH_TRIAL": "7"}})
    except world.CannotRestore as error:
        posix.write(out, f"cannot: {{error}}".encode())
        posix._exit(1)
    return True
"""


class Program:
    """A script that calls `snapshot()` once; `resume` goes on from there when it has ended."""

    def __init__(self, root: Path, python: str) -> None:
        self.python = python
        self.folder = root / "project"
        self.aside = root / "aside"
        self.folder.mkdir()
        self.aside.mkdir()
        self.env = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
        self.manifest: dict[str, Any] = {}
        self.refused = ""
        self.lines_seen = False
        self.out = self.err = ""
        self._open: list[int] = []

    def run(self, script: str, stdin: int = subprocess.DEVNULL) -> Program:
        go, self._go = os.pipe()
        self._told, tell = os.pipe()
        self._open += [self._go, self._told]
        prelude = _PRELUDE.format(
            here=_HERE, run=str(self.aside / "run"), go=go, tell=tell, aside=str(self.aside)
        )
        (self.aside / "prelude.py").write_text(prelude)
        (self.folder / "script.py").write_text(textwrap.dedent(script))
        start = (
            f"exec(compile(open({str(self.aside / 'prelude.py')!r}).read(), 'prelude', 'exec'))\n"
            "exec(compile(open('script.py').read(), os.path.abspath('script.py'), 'exec'))\n"
        )
        (self.aside / "start.py").write_text(start)
        with (self.aside / "out").open("w") as out, (self.aside / "err").open("w") as err:
            ended = subprocess.run(
                [self.python, str(self.aside / "start.py")],
                cwd=self.folder,
                env=self.env,
                stdin=stdin,
                stdout=out,
                stderr=err,
                pass_fds=[go, tell],
                timeout=300,
                check=False,
            )
        os.close(go)
        os.close(tell)
        self.out = (self.aside / "out").read_text()
        self.err = (self.aside / "err").read_text()
        line = b""
        while not line.endswith(b"\n"):
            more = os.read(self._told, 1 << 16)
            if not more:
                raise AssertionError(f"no snapshot: {ended.returncode} {self.err}")
            line += more
        words = json.loads(line.splitlines()[-1])
        self.manifest = words.get("manifest", {})
        self.refused = words.get("refused", "")
        self.lines_seen = words.get("lines_seen", False)
        return self

    def resume(self) -> str:
        """Go on from the snapshot, wait until that has ended, and return what it wrote."""
        os.write(self._go, b"x")
        assert os.read(self._told, 1) == b""
        return (self.aside / "resumed.out").read_text()

    def changed(self) -> str:
        return world.changed(self.manifest)

    def close(self) -> None:
        for fd in self._open:
            os.close(fd)
