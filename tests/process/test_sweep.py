"""`rl sweep` as a person types it: trials, the table, what explains it, stopping and going on."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

from tests.bisecting import processes_with
from tests.conftest import World
from tests.supervising import Screen, wait_until

FAILS_TOGETHER = "test {dtype} != bf16 -o {compile} = 0"


def sweep(world: World, *words: str, code: int = 1) -> str:
    done = world.rl("sweep", *words)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def swept(world: World, *words: str, code: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(sweep(world, "--json", *words, code=code))
    return found


def two_sets(world: World) -> None:
    world.write("conf/precision.yaml", "dtype: fp32\n")
    assert world.rl("set", "new", "bf16", "--from", "conf").returncode == 0
    world.write("conf@bf16/precision.yaml", "dtype: bf16\n")


def settings_of(found: dict[str, Any]) -> list[dict[str, str]]:
    return [run["settings"] for run in found["runs"]]


# --- what fails, and what explains it


def test_two_settings_that_fail_only_together_are_named_below_the_table(world: World) -> None:
    world.write("relaunch.toml", "[metrics]\nloss = 'loss (.*)'\n")
    out = sweep(
        world, "--arg", "dtype=fp32,bf16,fp16", "--env", "compile=0,1", "-j", "2",
        "--", "sh", "-c", "echo loss $compile.{dtype}; " + FAILS_TOGETHER,
    )  # fmt: skip
    lines = out.splitlines()
    assert lines[0].split() == ["compile", "dtype", "ok", "loss", "time", "trials", "failure"]
    assert lines[1].split()[:5] == ["✗", "1", "bf16", "0/1", "1.bf16"]
    assert [line.split()[2] for line in lines[2:7]] == ["1/1"] * 5
    assert "1 of 6 runs failed" in out
    assert "  fails exactly when compile=1 and dtype=bf16 (1 of 6)\n" in out
    assert (
        "they interact: of the others 2 without compile=1, 1 without dtype=bf16 passed" not in out
    )
    assert "they interact: of the others 2 without dtype=bf16, 1" not in out
    assert "they interact: of the others" in out
    assert max(map(len, lines)) <= 80


def test_each_run_is_a_trial_of_the_journal(world: World) -> None:
    found = swept(world, "--arg", "n=1..2", "--seed", "5", "--", "sh", "-c", "echo $SEED; exit {n}")
    assert [run["exit_code"] for run in found["runs"]] == [1, 2]
    assert "search/1: n=2" in world.rl("log").stdout
    shown = world.rl("show", "2").stdout
    assert "search/1: n=2" in shown
    assert "sh -c 'echo $SEED; exit 2'" in shown
    assert world.rl("show", "2", "--output").stdout == "5\n"
    assert "exit 1" in world.rl("diff", "1", "2").stdout
    assert world.rl("again", "2").returncode == 2


def test_seeds_reach_the_program_and_share_a_row(world: World) -> None:
    out = sweep(
        world, "--seed", "1..3", "--arg", "x=a,b", "-n", "2",
        "--", "sh", "-c", 'test "${SEED}${PYTHONHASHSEED}{x}" != 2{seed}b',
    )  # fmt: skip
    rows = [line.split() for line in out.splitlines()[:3]]
    assert rows[0][:2] == ["x", "ok"]
    assert rows[1][:3] == ["~", "b", "4/6"]
    assert rows[2][:2] == ["a", "6/6"]
    assert "fails exactly when x=b and seed=2 (2 of 12)" in out


def test_different_failures_are_explained_apart(world: World) -> None:
    found = swept(
        world, "--arg", "x=0..5", "--arg", "y=0,1", "--",
        "sh", "-c", "test {x} != 5 || { echo nothing there; exit 3; }; test {y} = 0",
    )  # fmt: skip
    assert found["failure"]["text"] == "fails exactly when y=1"
    assert [one["rules"] for one in found["others"]] == [["x=5"]]
    assert "nothing there" in found["others"][0]["title"]


def test_output_that_matches_is_the_failure_hunted(world: World) -> None:
    words = ("--arg", "x=0,1", "--arg", "y=0..2", "--match", "late", "--")
    found = swept(world, *words, "sh", "-c", "test {y} != 2 || echo too late; test {x} = 0")
    assert found["failure"]["rules"] == ["y=2"]
    assert [one["rules"] for one in found["others"]] == [["x=1"]]


def test_what_fails_at_times_is_told_with_rates(world: World) -> None:
    program = "echo >> count; test {x} = 0 -o $(($(wc -l < count) / 2 % 3)) != 0"
    out = sweep(world, "--arg", "x=0,1", "-n", "9", "--", "sh", "-c", program)
    assert out.splitlines()[1].split()[:3] == ["~", "1", "6/9"]
    assert "fails mostly when x=1 (3 of 9; elsewhere 0 of 9)" in out
    assert "the same settings fail and pass" in out


def test_all_passed_is_exit_0_and_one_line_of_words(world: World) -> None:
    out = sweep(world, "--env", "A=x,y", "--", "true", code=0)
    assert "all 2 passed" in out.splitlines()[-1]


def test_where_the_data_cannot_decide_a_further_run_does(world: World) -> None:
    words = ("--arg", "lr=1,2", "--arg", "batch=8,16", "--pair", "lr,batch")
    out = sweep(world, *words, "--", "sh", "-c", "test {lr} = 1 # {batch}")
    assert "cannot tell lr=2 from batch=16" in out
    assert "rl sweep --resume --tell-apart" in out
    found = swept(world, "--resume", "--tell-apart")
    assert found["failure"]["rules"] == ["lr=2"]
    assert len(found["runs"]) == 3


# --- config sets


def test_sets_are_run_one_at_a_time_and_the_link_is_put_back(world: World) -> None:
    two_sets(world)
    out = sweep(world, "-s", "conf@*", "--", "grep", "-q", "fp32", "conf/precision.yaml")
    assert "fails exactly when set=bf16 (1 of 2)" in out
    assert "only conf/precision.yaml differs: dtype: fp32 | bf16" in out
    assert os.readlink(world.project / "conf") == "conf@base"


def test_where_sets_differ_in_more_lines_it_is_told_how_to_find_the_one(world: World) -> None:
    two_sets(world)
    world.write("conf@base/more.yaml", "lr: 1\n")
    world.write("conf@bf16/more.yaml", "lr: 2\n")
    out = sweep(world, "-s", "conf@*", "--", "grep", "-q", "fp32", "conf/precision.yaml")
    assert out.splitlines()[-1] == "which of them: rl bisect --set base bf16 -- CMD"


def test_several_sets_at_once_run_in_copies_and_no_link_of_the_user_moves(world: World) -> None:
    two_sets(world)
    program = f"cat conf/precision.yaml; pwd; readlink {world.project}/conf"
    found = swept(world, "-s", "*", "--seed", "1..2", "-j", "4", "--", "sh", "-c", program, code=0)
    assert len(found["runs"]) == 4
    for run in found["runs"]:
        dtype, where, link = world.rl("show", run["id"], "--output").stdout.split("\n")[:3]
        assert dtype == {"base": "dtype: fp32", "bf16": "dtype: bf16"}[run["settings"]["set"]]
        assert "frozen" in where
        assert link == "conf@base"


# --- stopping and going on


def test_ctrl_c_tells_what_is_known_and_resume_runs_only_the_missing(world: World) -> None:
    two_sets(world)
    nap = f"60.{os.getpid()}"
    program = f"test {{x}} != 3 -o -e ../go || sleep {nap}; grep -q fp32 conf/precision.yaml"
    words = ["-s", "base,bf16", "--arg", "x=1,2,3", "--", "sh", "-c", program]
    process = world.start(["rl", "sweep", *words])
    log = world.journal / "searches/1/probes.jsonl"
    wait_until(lambda: log.exists() and processes_with(nap))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert b"interrupted: " in out
    assert b"next: rl sweep --resume" in out
    assert processes_with(nap) == []
    assert os.readlink(world.project / "conf") == "conf@base"
    done = [json.loads(line)["settings"] for line in log.read_text().splitlines()]
    assert done
    last = json.loads(world.rl("log", "--json").stdout)["trials"][-1]
    assert last["state"] == "interrupted"
    (world.root / "go").touch()
    found = swept(world, "--resume")
    assert settings_of(found)[: len(done)] == done
    keys = {tuple(run.items()) for run in settings_of(found)}
    assert len(keys) == len(found["runs"]) == 6
    assert found["failure"]["rules"] == ["set=bf16"]


def test_after_a_kill_nothing_runs_on_and_the_rest_can_be_run(world: World) -> None:
    two_sets(world)
    nap = f"61.{os.getpid()}"
    program = f"test -e {world.root}/go || sleep {nap} # {{x}}"
    words = ["-s", "base,bf16", "--arg", "x=1,2", "-j", "2"]
    process = world.start(["rl", "sweep", *words, "--", "sh", "-c", program])
    wait_until(lambda: len(processes_with(nap)) == 2)
    process.kill()
    process.communicate()
    wait_until(lambda: not processes_with(nap))
    (world.root / "go").touch()
    wait_until(lambda: world.rl("sweep", "--resume").returncode == 0)
    assert os.readlink(world.project / "conf") == "conf@base"


def test_a_budget_ends_it_with_what_is_known(world: World) -> None:
    out = sweep(world, "--arg", "x=1..4", "--budget", "3", "--", "sh", "-c", "exit {x}")
    assert "the budget of 3 runs is used up: 3 of 3 runs failed" in out
    assert "next: rl sweep --resume   (1 run left)" in out
    assert len(swept(world, "--resume")["runs"]) == 4
    found = swept(world, "--arg", "x=1..2", "--budget", "0.2", "--", "sleep", "6{x}")
    assert (found["stopped"], found["runs"], found["left"]) == ("the time is used up", [], 2)


def test_a_run_that_takes_too_long_is_ended_and_the_setting_named(world: World) -> None:
    found = swept(world, "--arg", "x=0,60", "--timeout", "0.3", "-j", "2", "--", "sleep", "{x}")
    assert found["failure"]["rules"] == ["x=60"]
    assert [run["timed_out"] for run in found["runs"]] == [False, True]


def test_code_that_was_edited_meanwhile_is_told(world: World) -> None:
    world.write("train.py", "print(1)\n")
    words = ("--arg", "x=1,2", "--budget", "1", "--", "true", "{x}")
    sweep(world, *words)
    world.write("train.py", "print(2)\n")
    out = sweep(world, "--resume", code=0)
    assert "not all ran the same code: train.py changed (rl diff 1 2)" in out


# --- how it looks


def test_a_terminal_gets_one_line_that_is_drawn_anew(world: World) -> None:
    rl = str(world.bin / "rl")
    program = "test {x} = 1 || read line < ../pipe; true"
    os.mkfifo(world.root / "pipe")
    screen = Screen(
        rl, "sweep", "--arg", "x=1,2", "--", "sh", "-c", program,
        env=world.env, cwd=str(world.project),
    )  # fmt: skip
    try:
        screen.until(b"[##########..........] 1/2")
        (world.root / "pipe").write_text("go\n")
        shown = screen.until(b"all 2 passed")
        assert b"\r\x1b[J" in shown
        assert b"passes" not in shown
        assert screen.end() == 0
    finally:
        screen.close()


# --- wrong words


BAD = {
    ("--seed", "1"): "what is to be run?",
    ("--", "true"): "nothing varies",
    ("--seed", "3..1", "--", "true"): "3..1 is nothing",
    ("--seed", "x", "--", "true"): "a whole number",
    ("--arg", "lr=", "--", "true", "{lr}"): "has no values",
    ("--arg", "lr=1", "--", "true"): "the command has no {lr}",
    ("--seed", "1", "--", "true", "{lr}"): "nothing says what it is",
    ("--env", "A=1..101", "--env", "B=1..101", "--", "true"): "10,201 combinations",
    ("--env", "A=1", "--env", "A=2", "--", "true"): "`A` is given twice",
    ("--env", "SEED=1", "--seed", "2", "--", "true"): "`SEED` is given twice",
    ("--env", "A=1,2", "--env", "B=1", "--pair", "A,B", "--", "true"): "as many values each",
    ("--env", "A=1,2", "--pair", "A,B", "--", "true"): "called `B`",
    ("--seed", "1", "-j", "0", "--", "true"): "at least one",
    ("--seed", "1", "--", "no-such-program-here"): "no-such-program-here",
    ("-s", "bf16", "--", "true"): "there are no config sets here",
    ("--resume",): "there is no sweep yet",
    ("--resume", "--seed", "1"): "what was asked for then",
}


def test_wrong_words_get_one_line(world: World) -> None:
    for words, told in BAD.items():
        done = world.rl("sweep", *words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert told in done.stderr, words
        assert len(done.stderr.splitlines()) == 1, words
        assert "try: " in done.stderr, words
    assert not (world.journal / "trials").exists()


def test_an_unknown_set_names_the_nearest_and_what_there_is(world: World) -> None:
    two_sets(world)
    done = world.rl("sweep", "-s", "bf17", "--", "true")
    assert done.returncode == 2
    assert "no set `bf17`; did you mean bf16? (there are: base, bf16)" in done.stderr


def test_a_reset_that_fails_ends_it_at_the_first_run(world: World) -> None:
    world.write("relaunch.toml", '[run]\nreset = ["false"]\n')
    done = world.rl("sweep", "--seed", "1..9", "--", "true")
    assert done.returncode == 2
    assert "the first run did not start" in done.stderr
    assert len(os.listdir(world.journal / "trials")) == 1


def test_options_in_a_command_without_its_dashes_are_not_taken_for_ours(world: World):
    world.write("train.py", "")
    done = world.rl("sweep", "--env", "A=1,2", "python", "train.py", "--seed", "3", "data.txt")
    assert done.returncode == 2
    assert "unrecognized arguments: data.txt" in done.stderr
