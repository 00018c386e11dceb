"""`rl gc` and what searches keep: environments and checkouts, but for those still needed."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import pytest
from tests.bisecting import PYTHON, REPRO, add_commits, outside, processes_with, steady
from tests.building import Package, install_from_wheels, package
from tests.supervising import wait_until


@pytest.fixture
def searched(world):
    """A world in which a search needed an environment."""
    world.env["UV_OFFLINE"] = world.env["PIP_NO_INDEX"] = "1"
    world.env["PATH"] = f"{os.path.dirname(sys.executable)}{os.pathsep}{world.env['PATH']}"
    package = Package(world.root / "packages", "sample")
    world.write("requirements.txt", f"sample @ {package.folder.as_uri()}\n")
    world.commit()
    ids = add_commits(world, lambda n: f"import sample\n{steady(3)(n)}", 5)
    words = ("bisect", "--good", ids[0], "--json", "--", PYTHON, outside(world, REPRO))
    done = world.rl(*words)
    assert json.loads(done.stdout)["environment"]["rung"] == "packages", done.stderr
    return world, words


def environments(world):
    return sorted(os.listdir(world.journal / "environments"))


def gc(world, *words):
    return json.loads(world.rl("gc", "--json", *words).stdout)


def age(world, seconds):
    """Let all environments have been used so long ago."""
    when = time.time() - seconds
    for made in (world.journal / "environments").glob("*/made"):
        os.utime(made, (when, when))


def test_environments_go_by_age_and_are_made_again(searched):
    world, words = searched
    kept = environments(world)
    assert len(kept) == 1
    assert gc(world)["environments"] == []
    age(world, 86400)
    assert gc(world, "--older", "2d")["environments"] == []
    dry = gc(world, "--older", "12h", "--dry-run")
    assert dry["environments"] == kept
    assert environments(world) == kept
    done = world.rl("gc", "--older", "12h")
    assert "gone: 1 environment of searches" in done.stderr
    assert environments(world) == []
    assert json.loads(world.rl(*words).stdout)["found"]
    assert environments(world) == kept


def test_using_an_environment_keeps_it_young(searched):
    world, words = searched
    age(world, 86400)
    world.rl(*words)
    assert gc(world, "--older", "1h")["environments"] == []


def test_environments_go_by_size_before_any_trial(searched):
    world, _ = searched
    for _ in range(2):
        world.rl("--", "true")
    kept = environments(world)
    assert gc(world, "--larger", "1G")["environments"] == []
    dry = gc(world, "--keep-size", "500K", "--dry-run")
    assert dry["gone"] == []
    large = gc(world, "--larger", "1")
    assert large["environments"] == kept
    assert large["environment_bytes"] > 0
    assert large["freed_bytes"] >= large["environment_bytes"]


def test_what_an_unfinished_search_used_stays(searched):
    world, _ = searched
    (world.journal / "searches/1/end.json").unlink()
    age(world, 86400)
    kept = environments(world)
    assert gc(world, "--older", "1h", "--larger", "1", "--keep-size", "0")["environments"] == []
    assert environments(world) == kept


def test_what_was_never_made_to_the_end_goes_at_once(searched):
    world, _ = searched
    half = world.journal / "environments/0123456789abcdef/deadbeef"
    half.mkdir(parents=True)
    (half / "file").write_text("half")
    assert gc(world)["environments"] == ["0123456789abcdef"]
    assert not half.exists()


def test_checkouts_of_a_killed_search_go(searched):
    world, _ = searched
    left = world.journal / "checkouts/1/tree"
    left.mkdir(parents=True)
    assert gc(world, "--dry-run")["checkouts"] == 1
    assert gc(world)["checkouts"] == 1
    assert not left.exists()


def test_while_a_search_runs_nothing_of_searches_goes(searched):
    world, words = searched
    gate, there = world.root / "gate", world.root / "there"
    os.mkfifo(gate)
    script = outside(world, f"open({str(there)!r}, 'w')\nopen({str(gate)!r}).read()\n{REPRO}")
    age(world, 86400)
    process = world.start(["rl", *words[:-1], script])
    wait_until(there.exists)
    answer = gc(world, "--older", "1h")
    assert answer["searching"]
    assert answer["environments"] == []
    assert len(environments(world)) == 1
    assert len(os.listdir(world.journal / "checkouts")) >= 1
    assert "a search runs" in world.rl("gc").stderr
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert not gc(world)["searching"]


# --- what a kill left half made


SLOW_UV = """\
#!/bin/sh
[ "$1" = --version ] && exec echo uv 1.0
for root; do :; done
mkdir -p "$root/lib"
echo half > "$root/lib/half"
exec sleep 61847
"""
"""Makes half an environment, and takes its time."""
ASLEEP = "61847"


@pytest.fixture
def half_made(world):
    """A world in which a search was killed while it made an environment."""
    for version in ("1.0", "1.1"):
        package(world, "thing", version, works=version == "1.0")
    install_from_wheels(world)
    tools = world.root / "tools"
    tools.mkdir()
    (tools / "uv").write_text(SLOW_UV)
    (tools / "uv").chmod(0o755)
    path = world.env["PATH"]
    world.env["PATH"] = f"{tools}{os.pathsep}{path}"
    script = outside(world, "import thing\nassert thing.works\n")
    process = world.start(["rl", "bisect", "--release", "thing==1.0..", "--", PYTHON, script])
    wait_until(lambda: [*(world.journal / "environments").glob("*/*/lib/half")])
    process.kill()
    process.communicate()
    wait_until(lambda: not processes_with(ASLEEP) and not processes_with(script))
    assert len(environments(world)) == 1
    world.env["PATH"] = path
    return world


@pytest.mark.parametrize(
    "words",
    ["bisect --good HEAD~3 --no-repair --no-prior", "sweep --seed 1..2", "grow n=1..4"],
)
def test_half_an_environment_goes_with_the_next_search_of_any_kind(half_made, words):
    add_commits(half_made, steady(3), 5)
    verb, *options = words.split()
    command = [PYTHON, "-c", "import app; app.work()", *(["{n}"] if verb == "grow" else [])]
    half_made.rl(verb, *options, "--", *command)
    assert environments(half_made) == []


def test_what_another_search_makes_now_is_let_alone(half_made):
    world = half_made
    add_commits(world, steady(3), 5)
    world.env["PATH"] = f"{world.root / 'tools'}{os.pathsep}{world.env['PATH']}"
    script = outside(world, "import thing\nassert thing.works\n")
    process = world.start(["rl", "bisect", "--release", "thing==1.0..", "--", PYTHON, script])
    try:
        wait_until(lambda: processes_with(ASLEEP))
        (half,) = (world.journal / "environments").glob("*/*/lib/half")
        world.rl("bisect", "--good", "HEAD~3", "--no-repair", "--", PYTHON, "-c", "import app")
        assert half.exists()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
