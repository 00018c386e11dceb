"""Kept calls of others are not loaded before somebody agreed: what is in them can run code."""

from __future__ import annotations

import json
import marshal
import os
import pickle
import shutil
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import World
from tests.process.test_replay import PROGRAM
from tests.supervising import Screen


class Runs:
    """Runs a command of the shell where it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.command = f"touch {marker}"

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (self.command,)


class Marshalled:
    """Calls code that was marshalled where it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.code = marshal.dumps(compile(f"open({str(marker)!r}, 'w')", "x", "exec"))

    def __reduce__(self) -> tuple[object, ...]:
        return exec, (self._Loaded(self.code),)

    class _Loaded:
        def __init__(self, code: bytes) -> None:
            self.code = code

        def __reduce__(self) -> tuple[object, ...]:
            return marshal.loads, (self.code,)


@pytest.fixture
def mine(warm: World) -> World:
    """A world in which a program has failed."""
    warm.write("shop.py", PROGRAM)
    assert warm.rl("--", sys.executable, "shop.py").returncode == 1
    return warm


def call_of(world: World) -> Path:
    (found,) = (world.journal / "trials/1/capture").iterdir()
    return found


def elsewhere(world: World) -> dict[str, str]:
    """Return what makes rl act as somebody who has another key."""
    return {"XDG_STATE_HOME": str(world.root / "other")}


def spoil(path: Path, change: Callable[[dict[str, object]], object]) -> None:
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))


def planted(world: World, marker: Path) -> dict[str, Callable[[Path], object]]:
    """Return ways to plant code in a kept call, by name."""
    python = world.write("python", f'#!/bin/sh\ntouch {marker}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    frames = ("0.pickle", "1.pickle", "2.pickle", "3.pickle")

    def in_frames(made: object) -> Callable[[Path], object]:
        return lambda call: [(call / name).write_bytes(pickle.dumps(made)) for name in frames]

    def alone(name: str, data: bytes) -> Callable[[Path], object]:
        return lambda call: (call / name).write_bytes(data)

    runs = pickle.dumps(Runs(marker))
    start = {"env_set": {"PYTHONSTARTUP": str(python), "PATH": str(python.parent)}}
    return {
        "in a frame": in_frames(Runs(marker)),
        "deep in a frame": in_frames({"basket": [{"deep": (1, Runs(marker))}], "names": []}),
        "marshalled": in_frames({"basket": Marshalled(marker)}),
        "in globals": alone("globals.pickle", runs),
        "in random generators": alone("random.plain", runs),
        "in sources": alone("sources", zlib.compress(runs)),
        "in one more file": alone("9.pickle", runs),
        "as the interpreter": lambda call: spoil(
            call / "facts.json", lambda told: told["python"].update(executable=str(python))  # type: ignore[attr-defined]  # a dictionary
        ),
        "in the environment": lambda call: spoil(
            call.parents[1] / "start.json", lambda told: told.update(start)
        ),
    }  # fmt: skip


def test_code_planted_in_a_kept_call_never_runs_unasked(mine: World, tmp_path: Path) -> None:
    marker, trial = tmp_path / "marker", mine.journal / "trials/1"
    whole = tmp_path / "whole"
    shutil.copytree(trial, whole)
    for name, plant in planted(mine, marker).items():
        shutil.rmtree(trial)
        shutil.copytree(whole, trial)
        plant(call_of(mine))
        done = mine.rl("replay")
        assert done.returncode == 2, (name, done.stderr)
        assert "changed after it was sealed" in done.stderr, name
        assert not marker.exists(), name
    for words in (("replay", "--one-liner"), ("shrink", "--trial", "1")):
        assert "changed after it was sealed" in mine.rl(*words).stderr
    listed = mine.rl("replay", "--list")
    assert "plain data, but for pickles of " in listed.stdout
    assert mine.rl("show", "1").returncode == 0
    assert not marker.exists()


def test_a_list_of_kept_calls_that_came_along_removes_nothing_elsewhere(mine: World) -> None:
    others, linked = mine.root / "others", mine.journal / "trials" / "900"
    for name in ("capture", "small"):
        (others / name).mkdir(parents=True)
    linked.symlink_to(others)
    far = os.path.relpath(others, mine.journal / "trials")
    names = [str(others), far, f"3/../{far}", "900", "..", *map(str, range(901, 911))]
    (mine.journal / "captures").write_text("\n".join(names))
    assert mine.rl("--", sys.executable, "shop.py").returncode == 1
    assert sorted(os.listdir(others)) == ["capture", "small"]


def test_who_trusts_planted_code_runs_it(mine: World, tmp_path: Path) -> None:
    planted(mine, tmp_path / "marker")["in a frame"](call_of(mine))
    mine.rl("replay", env={"RELAUNCH_TRUST": "1"})
    assert (tmp_path / "marker").exists()


def test_a_call_that_somebody_else_recorded_is_refused_in_one_line(mine: World) -> None:
    done = mine.rl("replay", env=elsewhere(mine))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") <= 2
    assert "the call of #1 was not recorded by you here" in done.stderr
    assert f"it holds pickles, and a replay can run any code, with {sys.executable}" in done.stderr
    assert "rl replay 1 --trust, if you know where it comes from" in done.stderr
    (call_of(mine) / "seal").unlink()  # as an older rl left it
    assert "(it carries no seal)" in mine.rl("replay").stderr


def test_what_was_trusted_once_is_not_asked_again_until_it_changes(mine: World) -> None:
    other = elsewhere(mine)
    assert mine.rl("replay", "--trust", env=other).returncode == 1
    assert mine.rl("replay", env=other).returncode == 1
    assert mine.rl("shrink", "--trial", "1", env=other).returncode == 0
    assert mine.rl("replay", "--small", env=other).returncode == 1
    (call_of(mine) / "random.plain").write_bytes(b"")
    assert mine.rl("replay", env=other).returncode == 2


def test_trust_by_the_environment_is_for_one_time(mine: World) -> None:
    other = elsewhere(mine)
    assert mine.rl("replay", env={**other, "RELAUNCH_TRUST": "1"}).returncode == 1
    assert mine.rl("replay", env=other).returncode == 2
    assert mine.rl("replay", env={**other, "RELAUNCH_TRUST": "0"}).returncode == 2


@pytest.mark.parametrize("answer", ["y", "n"])
def test_on_a_terminal_it_is_asked(mine: World, answer: str) -> None:
    env = {**mine.env, **elsewhere(mine), "PWD": str(mine.project)}
    screen = Screen(
        sys.executable, "-m", "relaunch", "replay", env=env, cwd=str(mine.project)
    )  # fmt: skip
    try:
        assert b"can run any code" in b" ".join(screen.until(b"load it? [y/N] ", 30).split())
        screen.type(answer.encode() + b"\r")
        assert screen.end() == (1 if answer == "y" else 2)
        assert (b"still fails" in screen.text) == (answer == "y")
    finally:
        screen.close()


PLAIN = """\
SCALES = {"kg": [1, 2.5]}

def share(rows, scale, *, unit):
    return rows[0] / scale + SCALES[unit][0]

share([1, (2, None)], 0, unit="kg")
"""


def test_plain_data_is_kept_without_a_pickle_and_read_without_one(warm: World) -> None:
    warm.write("share.py", PLAIN)
    assert warm.rl("--", sys.executable, "share.py").returncode == 1
    call = call_of(warm)
    assert [path.name for path in call.iterdir() if path.suffix == ".pickle"] == []
    assert "all of it plain data, no pickles" in warm.rl("replay", "--list").stdout
    assert "still fails" in warm.rl("replay").stderr
    other = elsewhere(warm)
    assert "its data is plain, but a replay can run any code" in warm.rl("replay", env=other).stderr
    assert "still fails" in warm.rl("replay", env={**other, "RELAUNCH_TRUST": "1"}).stderr
    whole = (call / "1.plain").read_bytes()
    for broken in (whole[:-9], b"\x96" + b"\xff" * 7 + b"\x00.", b"cos\nsystem\n(Vtouch x\ntR."):
        (call / "1.plain").write_bytes(broken)
        done = warm.rl("replay", "--frame", "share", "--trust")
        assert done.returncode == 2, done.stderr
        assert "cannot be replayed: what was kept of frame 2 cannot be read: " in done.stderr
        assert "Traceback" not in done.stderr
    assert not (warm.project / "x").exists()
