"""Searches in the journal: seen while they run, kept whole, taken back and forgotten."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest
from tests.bisecting import REPRO, add_commits, outside, steady
from tests.depth import rounds
from tests.supervising import wait_until

PYTHON = sys.executable
GROW = ("grow", "batch=1..64", "--", "sh", "-c", "test {batch} -lt 17")
WAITING = ("grow", "n=1..99", "--", "sh", "-c", "test {n} -lt 3 || sleep 1000 # {n}")
"""Two runs end at once, the third one not at all."""
SWEEP = ("sweep", "--arg", "a=1,2", "--arg", "b=x,y", "--", "sh", "-c", "test {a}{b} != 2y")


def searches(world, *words):
    """List the searches, as data."""
    return json.loads(world.rl("log", "--searches", "--json", *words).stdout)["searches"]


def probed(world, number=1):
    path = world.journal / f"searches/{number}/probes.jsonl"
    return len(path.read_text().splitlines()) if path.exists() else 0


def older(world, number, hours=3):
    """Let a search have been used some hours ago."""
    folder = world.journal / "searches" / str(number)
    start = json.loads((folder / "start.json").read_text())
    start["when"] -= hours * 3600
    (folder / "start.json").write_text(json.dumps(start))
    for path in [*folder.iterdir(), folder]:
        os.utime(path, (start["when"], start["when"]))


def test_a_search_is_seen_while_it_runs_after_ctrl_c_and_after_a_kill(world):
    process = world.start(["rl", *WAITING])
    wait_until(lambda: probed(world) == 2)
    (row,) = searches(world)
    assert (row["id"], row["state"], row["next"]) == ("search/1", "running", "")
    assert "running, 2 runs" in world.rl("log").stdout
    assert searches(world, "--verdict", "running") == [row]
    assert "search/1 is running already" in world.rl("grow", "--undo", "1").stderr
    assert "search/1  grow  running" in world.rl("show", "search/1").stdout
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=300)
    (row,) = searches(world, "--verdict", "interrupted")
    assert (row["state"], row["next"]) == ("interrupted", "rl grow --resume")
    assert told.decode() in world.rl("show", "search/1").stdout
    process = world.start(["rl", "grow", "--resume"])
    wait_until(lambda: searches(world)[0]["state"] == "running")
    process.kill()
    process.communicate()
    wait_until(lambda: searches(world)[0]["state"] == "killed")
    shown = world.rl("show", "search/-1").stdout
    assert shown.endswith("next: rl grow --resume\n")
    assert "search/1" in world.rl("log", "--verdict", "killed").stdout


def test_the_card_of_a_bisection_is_kept_as_it_was_shown(world):
    ids = add_commits(world, steady(5), 8)
    script = outside(world, REPRO)
    done = world.rl("bisect", "--good", ids[0], "--", PYTHON, script)
    assert done.returncode == 0
    shown = world.rl("show", "search/1").stdout
    assert shown.endswith(f"\n\n{done.stdout}")
    assert world.rl("bisect", "--log").stdout.splitlines()[1].strip() in shown
    whole = json.loads(world.rl("show", "search/1", "--json").stdout)
    assert whole["answer"]["commit"] == ids[5]
    assert whole["card"] == done.stdout.splitlines()
    assert len(whole["probes"]) == probed(world)
    (row,) = searches(world)
    assert row["told"] == f"{ids[5][:10]} broke it"
    assert (row["found"], row["state"], row["failure"]) == (
        True,
        "done",
        whole["answer"]["failure"],
    )
    again = json.loads(world.rl("bisect", "--log", "--json").stdout)
    assert again["schema"] == "relaunch/search/1"
    assert again["probes"] == whole["probes"]


def test_how_to_check_it_has_all_that_was_given_but_no_secret(world):
    ids = add_commits(world, steady(5), 8)
    words = ("--env", "A=b c", "--env", "MY_TOKEN=very-secret-1", "--match", "broken")
    limits = ("--timeout", "2m", "--no-repair")
    script = outside(world, REPRO)
    done = world.rl("bisect", "--good", ids[0], *words, *limits, "--", PYTHON, script)
    (check,) = (line for line in done.stdout.splitlines() if line.startswith("check"))
    given = """--env 'A=b c' --env MY_TOKEN="$MY_TOKEN" --match broken"""
    given += " --timeout 120 --no-repair"
    assert check.split(None, 1)[1] == (
        f"rl bisect --good {ids[4][:10]} --bad {ids[5][:10]} {given} -- {PYTHON} {script}"
    )
    assert "git bisect run" not in done.stdout, "it reads no output"
    kept = (world.journal / "searches/1/answer.json").read_text()
    shown = [world.rl("show", "search/1", "--json").stdout, world.rl("bisect", "--log", "--json")]
    assert "very-secret-1" not in f"{done.stdout}{kept}{shown}"


def test_a_password_in_a_command_is_not_listed(world):
    world.rl("grow", "n=1..9", "--", "sh", "-c", "test {n} -lt 3", "--password=open-sesame")
    (row,) = searches(world)
    assert row["command"][-1] == "--password=<redacted>"
    assert "sesame" not in world.rl("log").stdout


def test_git_is_not_asked_to_check_what_hangs(world):
    ids = add_commits(world, lambda n: f"import time\ntime.sleep({1000 * (n >= 5)})  # {n}\n", 8)
    words = ("--timeout", "0.5", "--", PYTHON, "-c", "import app")
    done = world.rl("bisect", "--good", ids[0], *words)
    assert f"--bad {ids[5][:10]} --timeout 0.5 -- {PYTHON}" in done.stdout
    assert "git bisect run" not in done.stdout


def test_a_search_that_ran_out_of_runs_goes_on_with_others(world):
    ids = add_commits(world, steady(23), 40)
    words = ("--good", ids[0], "--", PYTHON, outside(world, REPRO))
    done = world.rl("bisect", "--budget", "3", *words)
    assert done.stdout.endswith("next: rl bisect --resume\n")
    assert "the budget of 3 runs is used up" in world.rl("show", "search/1").stdout
    some = json.loads(world.rl("bisect", "--resume", "--budget", "2", "--json").stdout)
    assert (some["found"], some["runs"]) == (False, 5)
    whole = json.loads(world.rl("bisect", "--resume", "-j", "2", "--json").stdout)
    assert whole["commit"] == ids[23]


def test_a_budget_that_was_just_enough_stopped_nothing(world):
    ids = add_commits(world, steady(9), 16)
    words = ("--good", ids[0], "--no-prior", "--", PYTHON, outside(world, REPRO))
    runs = json.loads(world.rl("bisect", "--json", *words).stdout)["runs"]
    world.rl("bisect", "--budget", str(runs), *words)
    assert [(row["state"], row["runs"]) for row in searches(world)] == [("done", runs)] * 2


def test_two_ends_alike_are_refused_and_remembered_so(world):
    ids = add_commits(world, steady(99), 4)
    done = world.rl("bisect", "--good", ids[0], "--", PYTHON, outside(world, REPRO))
    (row,) = searches(world)
    assert (done.returncode, row["state"], row["runs"]) == (2, "refused", 2)
    assert row["told"] in done.stderr


def test_runs_of_grow_are_taken_back_and_only_these_run_again(world):
    assert world.rl(*GROW).returncode == 0
    before, (first,) = probed(world), searches(world)
    done = world.rl("grow", "--undo", "2")
    assert done.stderr.count("forgot batch=") == 2
    assert probed(world) == before - 2
    (row,) = searches(world)
    assert (row["state"], row["next"]) == ("stopped", "rl grow --resume")
    again = json.loads(world.rl("grow", "--resume", "--json").stdout)
    assert (again["new_runs"], again["runs"]) == (2, before)
    (row,) = searches(world)
    assert row["told"] == first["told"]
    assert row["seconds"] > again["seconds"], "that of both sittings"
    assert "there are 0 probes" not in world.rl("grow", "--undo", "999").stderr


def test_runs_of_a_sweep_are_taken_back_and_their_trials_stay(world):
    assert world.rl(*SWEEP).returncode == 1
    assert "forgot a=" in world.rl("sweep", "--undo").stderr
    assert len(world.rl("sweep", "--log").stdout.splitlines()) == 1 + 3
    assert len(json.loads(world.rl("log", "--json").stdout)["trials"]) == 4
    again = json.loads(world.rl("sweep", "--resume", "--json").stdout)
    assert len(again["runs"]) == 4
    assert len(json.loads(world.rl("log", "--json").stdout)["trials"]) == 5
    (row,) = searches(world)
    assert row["told"] == again["failure"]["text"]


def test_gc_forgets_old_searches_but_none_that_runs_nor_the_newest(world):
    for _ in range(3):
        world.rl(*GROW)
    world.rl(*SWEEP)
    for number in (1, 2, 3, 4):
        older(world, number)
    holder = world.start(["rl", *WAITING])
    wait_until(lambda: probed(world, 5) == 2)
    older(world, 5)
    planned = json.loads(world.rl("gc", "--older", "1h", "--dry-run", "--json").stdout)
    assert planned["searches_gone"] == ["search/1", "search/2", "search/3"]
    kept = {one["id"]: one["why"] for one in planned["searches_kept"]}
    assert kept == {"search/4": "the newest sweep", "search/5": "running"}
    done = world.rl("gc", "--older", "1h")
    assert "gone: 3 searches (search/1, search/2, search/3)" in done.stderr
    assert [row["id"] for row in searches(world)] == ["search/4", "search/5"]
    assert sorted(os.listdir(world.journal / "searches")) == ["4", "5"]
    holder.send_signal(signal.SIGINT)
    holder.communicate(timeout=300)
    assert searches(world)[-1]["state"] == "interrupted"


def test_gc_makes_searches_fit_into_a_size_with_the_trials(world):
    for _ in range(3):
        world.rl(*GROW)
    big = world.journal / "searches/1/probes/0001/output.0"
    big.write_bytes(os.urandom(3 << 20))
    planned = json.loads(world.rl("gc", "--larger", "1M", "--dry-run", "--json").stdout)
    assert planned["searches_gone"] == ["search/1"]
    freed = json.loads(world.rl("gc", "--keep-size", "2M", "--json").stdout)
    assert freed["searches_gone"] == ["search/1"]
    assert freed["freed_bytes"] >= 3 << 20


def test_a_start_that_was_killed_and_a_half_deleted_search_are_swept(world):
    world.rl(*GROW)
    folder = world.journal / "searches"
    (folder / ".gone-999999999-7").mkdir()
    done = json.loads(world.rl("gc", "--json").stdout)
    assert done["swept"] == 1
    assert sorted(os.listdir(folder)) == ["1"]


def test_a_search_whose_outcome_a_power_cut_emptied_can_be_resumed_and_stops_no_gc(world):
    world.rl(*GROW)
    (first,) = searches(world)
    for name in ("end.json", "answer.json"):
        os.truncate(world.journal / "searches/1" / name, 0)
    assert world.rl("gc").returncode == 0
    (row,) = searches(world)
    assert (row["state"], row["next"]) == ("killed", "rl grow --resume")
    assert world.rl("grow", "--resume").returncode == 0
    (row,) = searches(world)
    assert (row["state"], row["told"]) == ("done", first["told"])


@pytest.mark.parametrize(
    "words",
    [
        (*GROW[:2], "--budget", "2", *GROW[2:]),
        (*SWEEP[:1], "--budget", "2", *SWEEP[1:]),
        ("repeat", "9", "--budget", "2", "--", "true"),
    ],
    ids=lambda words: words[0],
)
def test_a_field_that_lost_its_name_is_no_fault_of_ours(world, words):
    """What a turned bit makes of a name: one line says it, and nothing is run."""
    assert world.rl(*words).returncode < 125
    folder = world.journal / "searches/1"
    start = json.loads((folder / "start.json").read_text())
    probes = (folder / "probes.jsonl").read_text()
    needed = {*start["request"]} - {"hang_s", "at", "slurm", "files"}  # these have a default
    for name in [*sorted(needed)[:: rounds(4, 1)], "request"]:
        text = json.dumps(start).replace(f'"{name}":', f'"{name}_":', 1)
        (folder / "start.json").write_text(text)
        said_in_one_line(world.rl(words[0], "--resume"), name)
    (folder / "start.json").write_text(json.dumps(start))
    for name in ("outcome", "seconds"):
        (folder / "probes.jsonl").write_text(probes.replace(f'"{name}":', f'"{name}_":', 1))
        done = world.rl(words[0], "--resume")
        assert done.returncode < 125, (name, done.stderr)
    (folder / "probes.jsonl").write_text(probes)
    assert world.rl(words[0], "--resume").returncode < 125


def said_in_one_line(done, name):
    assert done.returncode == 2, (name, done.stdout, done.stderr)
    assert "search/1 does not hold what a search does" in done.stderr, name
    assert len(done.stderr.splitlines()) == 1, (name, done.stderr)
