"""How each contestant of `benchmarks.warm` is started, edited and launched again."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import install
from benchmarks.sight import PATIENCE_S, Terminal
from benchmarks.spend import Unmeasured

TORCH = ("torch==2.13.0", "numpy==2.4.6")
NEEDS: dict[str, tuple[str, ...]] = {
    "warm-python": (*TORCH, "pytest==9.2.0"),
    "warm-ipython": (*TORCH, "pytest==9.2.0", "ipython==9.18.1"),
    "warm-jurigged": (*TORCH, "jurigged==0.6.1"),
}
SETTLE_S = 0.4
"""Between the save and the launch: a watcher has seen it, and a person has changed windows."""
FORK_SERVER = Path(__file__).with_name("forkserver.py")
_PROMPT = re.compile(r"^(In \[\d+\]: |>>> )+")
_TIMES = re.compile(r" in [0-9.]+s\b( \([0-9:]+\))?")
_OURS = re.compile(r"^(rl( #[\d.]+|:) | {7}\$ | {4}because )")


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """One launch of an edited program."""

    output_s: float
    """From the launch to the edited line's output."""
    ended_s: float | None
    """From the launch to the end of the command; a session has none."""
    lines: tuple[str, ...]
    """What the program said."""
    cold: str = ""
    """Why a tool that should go on from a snapshot began at the beginning."""
    resumed: str = ""
    """Where it went on, in its own words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A program to be edited, and the words that run it."""

    file: str
    words: tuple[str, ...]
    """As typed after nothing: `python train.py`."""
    text: Callable[[int], str]
    """Its text after the edit with this number."""
    beside: str = ""
    """An empty file that it needs beside it."""

    def marker(self, edit: int) -> str:
        """Return what appears first when the edited line runs."""
        return f"edited {edit}:"

    def save(self, folder: Path, edit: int) -> None:
        """Save it there, in place, as most editors do."""
        if self.beside:
            (folder / self.beside).touch()
        with open(folder / self.file, "w", encoding="utf-8") as file:
            file.write(self.text(edit))


@dataclass(kw_only=True)
class Contestant:
    """A way to run the program again: `start` once, then `again` after every edit."""

    name: str
    program: Program
    folder: Path
    env: Mapping[str, str]
    unmodified: bool = True
    """It runs the program as it is, from its beginning to its end."""

    def start(self) -> None:
        """Save the first version and run it once; not measured."""
        self.program.save(self.folder, 0)

    def again(self, edit: int) -> Seen:
        """Edit, launch, and wait for the edited line's output and for the end."""
        self.program.save(self.folder, edit)
        time.sleep(SETTLE_S)
        return self.launch(edit)

    def launch(self, edit: int) -> Seen:
        """Launch it."""
        raise NotImplementedError

    def stop(self) -> None:
        """Leave nothing behind."""


@dataclass(kw_only=True)
class Plain(Contestant):
    """A command per launch, such as `python train.py`."""

    argv: tuple[str, ...]

    def start(self) -> None:
        """Run it once, so that its files are in memory."""
        super().start()
        self.launch(0)

    def repository(self) -> None:
        """Put the program in a git repository of its own: rl stores its code."""
        env = dict(self.env)
        install.git(self.folder, env, "init", "--quiet")
        install.git(self.folder, env, "add", ".")
        install.git(self.folder, env, "commit", "--quiet", "-m", "start")

    def launch(self, edit: int) -> Seen:
        """Run the command to its end."""
        return self._launch(self.argv, edit)

    def _launch(self, argv: tuple[str, ...], edit: int) -> Seen:
        terminal = Terminal(argv, self.folder, self.env)
        try:
            output_s = terminal.until(self.program.marker(edit))
            ended_s = terminal.to_the_end()
        finally:
            code = terminal.close()
        if code:
            raise Unmeasured(f"{self.name}: exit {code}, it said: {terminal.text[-600:]}")
        said = terminal.text.splitlines()
        cold = [line.removeprefix("rl: cold: ") for line in said if line.startswith("rl: cold: ")]
        resumed = re.findall(
            r"^rl: (resumed[^\n]*(?:\n {4}because [^\n]*)?)", "\n".join(said), re.M
        )
        return Seen(
            output_s=output_s,
            ended_s=ended_s,
            lines=_program_lines(terminal.text),
            cold="".join(cold[:1]),
            resumed=" ".join("".join(resumed[:1]).split()),
        )


@dataclass(kw_only=True)
class Warm(Plain):
    """`rl warm`: cold the first time, then whatever it makes of the edit."""

    rl: str

    def start(self) -> None:
        """Run it cold, in a git repository of its own."""
        self.program.save(self.folder, 0)
        self.repository()
        self.cold(0)

    def cold(self, edit: int) -> Seen:
        """Run it with the whole command, after `stop`: from its beginning."""
        return self._launch((self.rl, "warm", "--", *self.program.words), edit)

    def stop(self) -> None:
        """End its snapshots, and wait until their memory is free again."""
        pids = self.pids()
        self._say("stop")
        deadline = time.monotonic() + PATIENCE_S
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            if time.monotonic() > deadline:
                raise Unmeasured(f"{self.name}: its snapshots do not end")
            time.sleep(0.02)

    def pids(self) -> list[int]:
        """List the processes of its snapshots and of their host."""
        said = json.loads(self._say("status", "--json") or "{}")
        hosts = said.get("programs", [])
        return [one["pid"] for host in hosts for one in (host, *host["snapshots"])]

    def _say(self, *words: str) -> str:
        return subprocess.run(
            [self.rl, "warm", *words],
            cwd=self.folder,
            env=dict(self.env),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        ).stdout


@dataclass(kw_only=True)
class Forked(Plain):
    """The import-only fork server, with its client as the command."""

    server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and run the program once through it."""
        self.program.save(self.folder, 0)
        python, address, words = self.argv[0], Path(self.argv[3]), self.argv[4:]
        self.server = subprocess.Popen(
            [python, str(FORK_SERVER), "serve", str(address), *words],
            cwd=self.folder,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + PATIENCE_S
        while not address.exists():
            if self.server.poll() is not None or time.monotonic() > deadline:
                raise Unmeasured(f"{self.name}: its server did not start")
            time.sleep(0.02)
        self.launch(0)

    def stop(self) -> None:
        """End the server."""
        if self.server is not None:
            self.server.kill()
            self.server.wait()


@dataclass(kw_only=True)
class Session(Contestant):
    """A prompt that stays open, at which a line is typed after each edit."""

    argv: tuple[str, ...]
    prompt: str
    opening: tuple[str, ...] = ()
    """Typed once, before anything is measured; the last of it runs the program."""
    line: str
    """Typed after each edit; empty: saving is launching."""
    terminal: Terminal | None = None

    def start(self) -> None:
        """Open the session and run the program once in it."""
        super().start()
        self.terminal = Terminal(self.argv, self.folder, self.env)
        self.terminal.until(self.prompt)  # what is typed before it may be lost
        for line in (*self.opening, "print('rea' + 'dy')"):
            os.write(self.terminal.near, line.encode() + b"\n")
        self.terminal.until("ready")
        if self.program.marker(0) not in self.terminal.text:
            raise Unmeasured(f"{self.name}: it did not run: {self.terminal.text[-600:]}")

    def again(self, edit: int) -> Seen:
        """Save, and type the line; without one, the save itself is the launch."""
        if self.line:
            return super().again(edit)
        assert self.terminal is not None
        self.terminal.seen, self.terminal.began = b"", time.monotonic()
        self.program.save(self.folder, edit)
        output_s = self.terminal.until(self.program.marker(edit), patience_s=20)
        time.sleep(SETTLE_S)
        return self._seen(output_s)

    def launch(self, edit: int) -> Seen:
        """Type the line and wait until the prompt is back."""
        assert self.terminal is not None
        self.terminal.type(self.line + "\nprint('rea' + 'dy')")
        # `ready` alone: it came to its end without the edited line, so it ran old code.
        output_s = self.terminal.until(self.program.marker(edit), "ready")
        self.terminal.until("ready")
        return self._seen(output_s)

    def _seen(self, output_s: float) -> Seen:
        assert self.terminal is not None
        lines = _program_lines(self.terminal.text)
        return Seen(output_s=output_s, ended_s=None, lines=lines)

    def stop(self) -> None:
        """Hang up, then kill."""
        if self.terminal is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.terminal.pid, signal.SIGHUP)
            self.terminal.close()
            self.terminal = None


def _program_lines(text: str) -> tuple[str, ...]:
    """Leave out prompts, what rl and the harness say, and durations."""
    lines = (_TIMES.sub("", _PROMPT.sub("", line)).rstrip() for line in text.splitlines())
    return tuple(line for line in lines if line and line != "ready" and not _OURS.match(line))
