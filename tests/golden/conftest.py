"""A journal that is always the same, whatever day it is: what the golden screens show."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from relaunch.journal.home import find_home
from relaunch.journal.output import STDERR, STDOUT, OutputWriter
from relaunch.journal.snapshot.code import to_json
from relaunch.journal.snapshot.take import take
from relaunch.journal.store import process_started

BASE = "3f2c1aa0c5b7d9e1f3a5c7e9b1d3f5a7c9e1b3d5"
NAN = "train.py:2 ValueError: loss is nan"


class Past:
    """Writes trials as `rl` would have, at times before now."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.now = time.time()
        self.trials: Path = world.journal / "trials"

    def code(self) -> dict[str, Any]:
        """Take the code as it is, under a base that is always the same."""
        home = find_home(str(self.world.project))
        code = to_json(take(home))
        for root in code["roots"]:
            root["base"] = BASE
        return code

    def add(
        self,
        trial_id: str,
        *,
        hours_ago: float,
        end: dict[str, Any] | None,
        mark: dict[str, Any] | None = None,
        out: bytes = b"",
        err: bytes = b"",
        alive: bool = False,
        **start: Any,
    ) -> None:
        folder = self.trials / trial_id
        folder.mkdir(parents=True)
        when = self.now - hours_ago * 3600 - 60
        pid = os.getpid() if alive else 0
        base = {
            "format": 1,
            "when": when,
            "rl": {"pid": pid, "started": process_started(pid) or 1, "host": os.uname().nodename},
            "identity": "",
            "previous": "",
            "command": ["python", "train.py", "--steps", "50"],
            "cwd": str(self.world.project),
            "project": str(self.world.project),
            "resets": ["rm -rf data/cache"],
            "set": "",
            "note": "",
            "env": {
                "values": {"CUDA_VISIBLE_DEVICES": "0", "OMP_NUM_THREADS": "2"},
                "hashes": {"HOME": "1f", "API_TOKEN": "2e"},
                "redacted": ["API_TOKEN"],
            },
            "packages": "77c0",
            "python": {"executable": "/usr/bin/python3", "version": "3.12.1", "prefix": "/usr"},
            "host": {
                "name": "box",
                "kernel": "Linux 6.1 x86_64",
                "cpus": 8,
                "memory_bytes": 1 << 36,
            },
        }
        self._json(folder / "start.json", {**base, **start})
        os.utime(folder / "start.json", (when, when))
        if end is not None:
            self._json(folder / "end.json", end)
        if mark:
            self._json(folder / "mark.json", {"text": "", "name": "", "when": when, **mark})
        writer = OutputWriter(str(folder))
        for stream, data in ((STDOUT, out), (STDERR, err)):
            if data:
                writer.chunk(time.monotonic(), stream, data)
        writer.close()

    def search(
        self,
        number: int,
        *,
        hours_ago: float,
        probes: list[dict[str, Any]],
        end: dict[str, Any] | None,
        card: list[str] | None = None,
        **start: Any,
    ) -> None:
        folder: Path = self.world.journal / "searches" / str(number)
        folder.mkdir(parents=True)
        self._json(folder / "start.json", {"when": self.now - hours_ago * 3600 - 60, **start})
        (folder / "probes.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in probes))
        if card is not None:
            self._json(folder / "answer.json", {"answer": {"found": True}, "card": card})
        if end is not None:
            self._json(folder / "end.json", {"when": self.now - hours_ago * 3600, **end})
        for path in folder.iterdir():
            os.utime(path, (self.now - hours_ago * 3600,) * 2)

    def _json(self, path: Path, value: object) -> None:
        path.write_text(json.dumps(value))


def failed(title: str = NAN, **more: Any) -> dict[str, Any]:
    digest = f"{sum(map(ord, title)):016x}"
    signature = {"kind": "exception", "title": title, "key": [title], "digest": digest}
    return {"exit_code": 1, "signature": signature, "duration_s": 21.4, "metrics": {}, **more}


@pytest.fixture
def searched_past(past: Past) -> Past:
    """The same, and a search of each verb: done, interrupted, killed, refused."""
    command = ["python", "train.py", "--steps", "50", "--a-word-that", "takes", "a", "lot of room"]
    request: dict[str, Any] = {"command": command, "cwd": ".", "env": {}, "jobs": 1}
    said = {"good": "v1.2", "bad": "HEAD"}
    bisect: dict[str, Any] = {
        "kind": "bisect", "request": {**request, **said}, "old": BASE, "new": BASE[::-1],
    }  # fmt: skip
    passed, broken = {"exit_code": 0, "duration_s": 1.0}, failed()
    probes = [
        {"commit": BASE, "outcome": passed, "seconds": 1.0},
        {"commit": BASE[::-1], "outcome": broken, "seconds": 2.5},
    ]
    past.search(
        1,
        hours_ago=29,
        probes=probes,
        end={"told": "3f2c1aa0c5 broke it", "found": True, "confidence": 0.996, "runs": 12,
             "seconds": 40.2, "failure": NAN, "signature": "77"},
        card=["\x1b[1m3f2c1aa0c5 is the first commit where it fails\x1b[0m", "what     too large"],
        **bisect,
    )  # fmt: skip
    sizes = {"dimensions": [{"name": "batch", "low": 1, "high": 4096, "file": ""}], "fixed": {}}
    at = {"at": {"batch": 512}, "outcome": broken, "peak_bytes": 3 << 30}
    past.search(
        2,
        hours_ago=4.2,
        probes=[{**at, "at": {"batch": 1}, "outcome": passed}, at],
        end={"told": "fails from batch=512 on (511 passes)", "found": True, "runs": 14,
             "seconds": 20.0, "failure": NAN, "signature": "77"},
        card=["fails from batch=512 on (511 passes)"],
        kind="grow",
        request={**request, **sizes},
    )  # fmt: skip
    factors = [["dtype", "env", ["bf16", "fp32"]], ["seed", "seed", ["1"]]]
    run = {"settings": {"dtype": "bf16", "seed": "1"}, "trial": "3", "outcome": broken}
    past.search(
        3, hours_ago=3.2, probes=[{**run, "seconds": 21.0}], kind="sweep",
        request={**request, "factors": factors},
        end={"stopped": "interrupted", "runs": 1, "seconds": 21.0}, card=["interrupted: 1 failed"],
    )  # fmt: skip
    past.search(4, hours_ago=2.2, probes=probes, end=None, **bisect)
    past.search(
        5, hours_ago=1.1, probes=probes, **bisect,
        end={"refused": "it passes at both ends (v1.2 and HEAD): there is nothing to find"},
    )  # fmt: skip
    return past


@pytest.fixture
def warm_past(past: Past) -> Past:
    """The same, and three more that `rl warm` ran: cold, resumed, resumed and verified."""
    code = past.code()
    common: dict[str, Any] = {"code": code, "resets": [], "warm": True}
    end = {"exit_code": 0, "metrics": {"loss": "9.91"}}
    past.add("9", hours_ago=0.5, end={**end, "duration_s": 313.0, "cold": "data.csv changed"},
             **common)  # fmt: skip
    resumed = {"at": "train.py:207", "took_s": 0.03, "saved_s": 312.0}
    past.add(
        "10",
        hours_ago=0.3,
        note="a smaller step",
        end={
            **failed(critical_s=0.9, duration_s=1.04, told="same failure as #3, 20 s sooner"),
            "resumed": {**resumed, "because": "load_data() and above are unchanged"},
        },
        **common,
    )
    past.add("10.2", hours_ago=0.2, end={**end, "duration_s": 1.0, "resumed": resumed}, **common)
    (past.trials / "10.2" / "verified.json").write_text('{"against": "10.3", "difference": ""}')
    return past


@pytest.fixture
def past(world: Any) -> Past:
    """Eight trials: marked, repeated, killed by a signal, timed out, unreadable, running, ..."""
    past = Past(world)
    (world.journal / "packages").mkdir(parents=True)
    (world.journal / "packages" / "77c0.json").write_text('{"numpy": "2.1", "torch": "2.9"}')
    (world.journal / "packages" / "88d1.json").write_text('{"numpy": "2.2", "tqdm": "4"}')
    world.write("train.py", "lr = 1e-2\nraise ValueError('loss is nan')\n")
    world.commit()
    world.write("train.py", "lr = 1e-2\nraise ValueError('loss is nan')\n# once\n")
    world.write("notes.txt", "what I saw\n")
    first = past.code()
    past.add(
        "1",
        hours_ago=30,
        note="does it fail at all on one GPU?",
        code=first,
        end=failed(critical_s=312.0, metrics={"loss": "nan"}, told="NEW failure"),
        mark={"verdict": "bad"},
        out=b"step 10 loss 10.82\nstep 20 loss nan\n",
        err=b"Traceback (most recent call last): ...\n",
    )
    world.write("train.py", "lr = 1e-3\nraise ValueError('loss is nan')\n# once\n")
    second = past.code()
    past.add(
        "2",
        hours_ago=5,
        note="lr too high",
        code=second,
        end={"exit_code": 0, "duration_s": 23.0, "metrics": {"loss": "9.91", "acc": "0.5"},
             "told": "gone: #1 nan -> #2 ok"},
        mark={"verdict": "good", "text": "lr 1e-3 trains", "name": "lr-works"},
        out=b"step 10 loss 10.80\nstep 20 loss 10.11\nstep 50 loss 9.91\n",
    )  # fmt: skip
    past.add(
        "3",
        hours_ago=4,
        note="日本語 and \x1b[31mescapes\x1b[0m\nin a long, long note that does not fit anywhere",
        set="bf16",
        code=second,
        packages="88d1",
        command=["python", "train.py", "--steps", "5", "it's"],
        end=failed(
            critical_s=21.0, metrics={"loss": "nan"}, told="same failure as #1, 291 s sooner"
        ),
        out=b"step 10 loss 11.00\nstep 20 loss nan\n",
        err=b"Traceback (most recent call last): ...\n",
    )
    past.add(
        "4",
        hours_ago=3.5,
        code=second,
        end={"exit_code": None, "timed_out": True, "duration_s": 7800.0, "told": "NEW failure",
             "signature": {"kind": "timeout", "title": "no end", "key": [], "digest": "99"}},
    )  # fmt: skip
    (past.trials / "5").mkdir()
    (past.trials / "5" / "start.json").write_text('{"format": 1, "when"')
    past.add("6", hours_ago=3, code=second, end=None, note="rl itself was killed")
    past.add(
        "7",
        hours_ago=2.5,
        code=second,
        end={"not_started": "reset `rm -rf data/cache` ended with 1", "exit_code": 125},
    )
    past.add(
        "2.2",
        hours_ago=2,
        code=second,
        end=failed("SIGSEGV", exit_code=None, signal=11, critical_s=4.0, duration_s=4.2,
                   told="NEW failure"),
    )  # fmt: skip
    past.add("8", hours_ago=1, code=second, end=None, alive=True, note="is it still there?")
    return past
