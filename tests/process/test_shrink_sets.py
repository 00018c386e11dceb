"""`rl shrink --set`: the keys that matter stay, as a set of their own; all else is as it was."""

from __future__ import annotations

import json
import signal
import sys

import pytest
from tests.conftest import World
from tests.depth import takes_turns
from tests.process.test_bisect_sets import tree
from tests.process.test_shrink import left_running, places_left, shrunk
from tests.supervising import wait_until

PYTHON = sys.executable
TRAIN = """\
import json, os, pathlib

def keys(name):
    path = pathlib.Path("conf", name)
    return json.loads(path.read_text()) if path.exists() else {}

def step(dtype, lr):
    if dtype == "bf16" and lr > 0.5:
        raise ValueError("loss is nan")

step(keys("model.json").get("dtype"), keys("optim.json").get("adam", {}).get("lr", 0))
"""
MODEL = {"dtype": "bf16", "layers": 12, "norm": {"kind": "rms", "eps": 1}, "api_key": "x" * 20}
OPTIM = {"adam": {"lr": 0.9, "betas": [0.9, 0.99]}, "steps": 5000}


def with_sets(world: World, train: str = TRAIN, *, ignored: bool = False) -> None:
    """Make `conf@base`, `conf@bf16` and the link."""
    world.write("train.py", train)
    for name, dtype in (("base", "fp32"), ("bf16", "bf16")):
        world.write(f"conf@{name}/model.json", json.dumps({**MODEL, "dtype": dtype}))
        world.write(f"conf@{name}/optim.json", json.dumps(OPTIM))
        world.write(f"conf@{name}/notes.txt", "nobody reads this\n")
    (world.project / "conf").symlink_to("conf@base")
    if ignored:
        world.write(".gitignore", "conf\nconf@*\n")
    world.commit("sets")


def small(world: World, name: str = "bf16.small") -> dict[str, object]:
    folder = world.project / f"conf@{name}"
    return {path.name: json.loads(path.read_text()) for path in folder.iterdir()}


def without_small(found: dict[str, object]) -> dict[str, object]:
    return {path: one for path, one in found.items() if ".small" not in path and path != "git"}


@takes_turns
@pytest.mark.parametrize("ignored", [False, True])
def test_the_keys_that_matter_are_left_in_a_set_of_their_own(world: World, ignored: bool) -> None:
    with_sets(world, ignored=ignored)
    before = tree(world)
    found = shrunk(world, "--set", "bf16", "--", PYTHON, "train.py")
    assert small(world) == {"model.json": {"dtype": "bf16"}, "optim.json": {"adam": {"lr": 1}}}
    assert (found["set"], found["command"]) == ("bf16.small", [PYTHON, "train.py"])
    assert [one["path"] for one in found["parts"]] == ["conf@bf16.small"]
    assert without_small(tree(world)) == without_small(before)
    assert places_left(world) == []
    assert left_running(world) == []
    done = world.rl("-s", "bf16.small", "--", PYTHON, "train.py")
    assert done.returncode == 1
    assert "ValueError: loss is nan" in done.stderr
    assert world.rl("again", found["last_trial"]).returncode == 1
    assert world.rl("--", PYTHON, "train.py").returncode == 0


def test_the_small_set_is_shown_without_the_values_of_secrets(world: World) -> None:
    with_sets(world, TRAIN.replace('dtype == "bf16"', 'dtype == "bf16" and keys("model.json")'))
    done = world.rl("shrink", "--set", "bf16", "--keep", "api_key", "--", PYTHON, "train.py")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "run it    rl -s bf16.small -- " in done.stdout
    assert '    {"adam":{"lr":1}}' in lines
    assert '    {"dtype":"bf16","api_key": "<redacted>"}' in lines
    assert "x" * 20 not in done.stdout + world.rl("show", "search/1").stdout
    assert small(world)["model.json"] == {"dtype": "bf16", "api_key": "x" * 20}


def test_a_set_that_is_one_file_of_several_links_is_made_smaller(world: World) -> None:
    world.settings('[sets]\n"conf/train.yaml" = "conf/train@*.yaml"\ndata = "data@*"\n')
    world.write("conf/train@base.yaml", "dtype: fp32\n")
    world.write("conf/train@bf16.yaml", "# a remark\nlayers: 3\ndtype: bf16\nseed: 1\n")
    world.write("data@base", "some data\n")
    (world.project / "conf/train.yaml").symlink_to("train@base.yaml")
    (world.project / "data").symlink_to("data@base")
    world.write("train.py", "text = open('conf/train.yaml').read()\nassert open('data').read()\n"
                "if 'dtype: bf16' in text:\n    raise ValueError('nan')\n")  # fmt: skip
    world.commit()
    found = shrunk(world, "--set", "bf16", "--", PYTHON, "train.py")
    text = (world.project / "conf/train@bf16.small.yaml").read_text()
    assert text.strip() == "dtype: bf16"
    assert [one["name"] for one in found["parts"]] == ["conf/train@bf16.yaml"]
    assert world.rl("-s", "bf16.small", "--", PYTHON, "train.py").returncode == 1


@takes_turns
def test_a_variable_with_the_name_of_the_set_keeps_that_name(world: World) -> None:
    with_sets(world, TRAIN.replace('if dtype == "bf16"', "if os.environ['MODE'] == 'bf16'"))
    world.settings('[sets]\nflag = "MODE"\n')
    found = shrunk(world, "--set", "bf16", "--fresh", "--", PYTHON, "train.py")
    assert small(world) == {"optim.json": {"adam": {"lr": 1}}}
    assert (found["set"], found["last_trial"]) == ("bf16", "")
    shown = world.rl("show", "search/1").stdout
    assert f"rl -s bf16 -- {PYTHON} train.py" in shown.replace("\n          ", "")
    assert "(with conf@bf16.small in its place)" in shown


def test_a_bundle_has_the_small_set_where_the_program_reads_it(world: World) -> None:
    with_sets(world)
    found = shrunk(world, "--set", "bf16", "--bundle", "repro", "--", PYTHON, "train.py")
    assert found["bundle_fails"] is True
    assert json.loads((world.project / "repro/conf/model.json").read_text()) == {"dtype": "bf16"}


@takes_turns
def test_a_set_that_was_interrupted_goes_on_and_ends_the_same(world: World) -> None:
    with_sets(world)
    words = ("--set", "bf16", "-j", "1")
    whole = shrunk(world, *words, "-o", "whole", "--", PYTHON, "train.py")
    some = shrunk(world, *words, "--budget", "6", "--", PYTHON, "train.py")
    assert some["stopped"] == "the budget of 6 runs is used up"
    rest = shrunk(world, "--resume")
    assert (rest["set"], rest["stopped"], rest["bytes"]) == ("bf16.small", "", whole["bytes"])
    assert rest["attempts"] == rest["new_attempts"] + 6
    assert small(world) == small(world, "whole")
    assert " bytes: optim.json: " in world.rl("shrink", "--log").stdout


def test_a_set_that_changed_meanwhile_is_not_gone_on_with(world: World) -> None:
    with_sets(world)
    shrunk(world, "--set", "bf16", "--budget", "3", "--", PYTHON, "train.py")
    world.write("conf@bf16/model.json", json.dumps({**MODEL, "layers": 13, "more": 1}))
    done = world.rl("shrink", "--resume")
    assert done.returncode == 2
    assert "`conf@bf16` is another one since search/1" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_after_a_stop_links_and_sets_are_as_they_were(world: World, number: int) -> None:
    with_sets(world, f"import time\ntime.sleep(0.3)\n{TRAIN}")
    before = tree(world)
    process = world.start(["rl", "shrink", "--set", "bf16", "--fresh", "--", PYTHON, "train.py"])
    probes = world.journal / "searches/1/probes.jsonl"
    wait_until(lambda: probes.exists() and probes.read_text().count("\n") >= 2)
    process.send_signal(number)
    process.communicate(timeout=300)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert without_small(tree(world)) == without_small(before)
    found = shrunk(world, "--resume", "--budget", "4")
    assert found["attempts"] - found["new_attempts"] >= 2
    assert places_left(world) == []
    assert left_running(world) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "bf17", "--", "true"), "no set `bf17`; did you mean bf16?"),
        (("--set", "*", "--", "true"), "--set *: one set, not 2   try: rl shrink --set"),
        (("--set", "bf16"), "which command fails with it?   try: rl shrink --set bf16 -- CMD"),
        (("--set", "bf16", "data.txt", "--", "true"), "--set and data.txt do not go together"),
        (("--set", "bf16", "--args", "--", "true"), "--set and --args do not go together"),
        (("--set", "bf16", "-o", "base", "--", "true"), "-o base: there is such a set"),
        (("--set", "bf16", "-o", "a/b", "--", "true"), "`a/b` cannot be the name of a set"),
        (("--set", "base", "--", PYTHON, "train.py"), "nothing to shrink: it passes"),
        (("--resume", "--set", "bf16"), "--resume has its own files and command, not `--set`"),
    ],
)
def test_what_is_no_set_is_refused_in_one_line(
    world: World, words: tuple[str, ...], said: str
) -> None:
    with_sets(world)
    done = world.rl("shrink", *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_set_without_files_is_refused_in_one_line(world: World) -> None:
    assert "there are no config sets here" in world.rl("shrink", "--set", "a", "--", "true").stderr
    world.settings('[sets]\nflag = "MODE"\n')
    done = world.rl("shrink", "--set", "bf16", "--", "true")
    assert done.returncode == 2
    assert "set bf16 cannot be smaller: it is the variable MODE   try: rl shrink --env" in (
        done.stderr
    )
