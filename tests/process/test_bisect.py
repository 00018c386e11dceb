"""`rl bisect` in real repositories: the right commit, in few runs, and nothing of yours touched."""

from __future__ import annotations

import json
import os
import random
import re
import signal

import pytest
from tests.bisecting import (
    PYTHON,
    REPRO,
    add_commits,
    bisect,
    outside,
    processes_with,
    steady,
    user_state,
)
from tests.depth import takes_turns
from tests.supervising import wait_until

from relaunch.inside.protocol import EXECUTED


def found(world, ids, *words, command):
    """Search the whole range and return the answer as data."""
    return json.loads(bisect(world, ids[0], ids[-1], "--json", *words, command=command))


def left_behind(world):
    """Name what a search must not leave: checkouts."""
    folder = world.journal / "checkouts"
    return sorted(os.listdir(folder)) if folder.exists() else []


def test_the_first_failing_commit_is_named_and_nothing_of_the_user_moves(world):
    ids = add_commits(world, steady(23), 40)
    world.write("README.md", "edited, not committed\n")
    before = user_state(world)
    done = world.rl(
        "bisect", "--good", ids[0], "--bad", "HEAD", "--", PYTHON, outside(world, REPRO)
    )
    assert done.returncode == 0, done.stderr
    assert f"{ids[23][:10]} is the first commit where it fails" in done.stdout
    assert "change 23" in done.stdout
    assert "ValueError: broken" in done.stdout
    assert f"git bisect start {ids[24][:10]} {ids[21][:10]} && git bisect run" in done.stdout
    assert "+    raise ValueError('broken')" in done.stdout
    assert "not your changes to README.md" in done.stderr
    assert user_state(world) == before
    assert left_behind(world) == []


def test_what_mended_it_is_found_without_any_terms(world):
    ids = add_commits(world, lambda n: steady(0)(n) if n < 11 else steady(99)(n), 16)
    answer = found(world, ids[1:], command=[PYTHON, outside(world, REPRO)])
    assert answer["reversed"]
    assert answer["commit"] == ids[11]


def test_a_breakage_after_it_was_mended_does_not_hide_what_mended_it(world):
    def program(number):
        return f"import nothing  # {number}\n" if 20 <= number < 30 else mended(number)

    def mended(number):
        return steady(0 if number < 11 else 99)(number)

    ids = add_commits(world, program, 40)
    words = ("--no-repair", "--no-prior")
    answer = found(world, ids, *words, command=[PYTHON, outside(world, REPRO)])
    assert (answer["commit"], answer["found"], answer["steady"]) == (ids[11], True, True)


def test_the_failure_that_was_mended_need_not_be_the_one_of_the_old_end(world):
    def program(number):
        return f"1 / 0  # {number}\n" if number < 9 else steady(0 if number < 30 else 99)(number)

    ids = add_commits(world, program, 40)
    words = ("--good", ids[0], "--bad", "HEAD", "--no-prior")
    done = world.rl("bisect", *words, "--", PYTHON, outside(world, REPRO))
    assert done.returncode == 0, done.stderr
    (header,) = [line for line in done.stderr.splitlines() if "looking for" in line]
    assert header.startswith("rl: looking for what mended it; the old end fails: ")
    assert "ZeroDivisionError" in header
    assert f"{ids[30][:10]} is the first commit where it passes" in done.stdout
    assert "ValueError: broken" in done.stdout
    told = json.loads(world.rl("bisect", "--log", "--json").stdout)
    assert told["end"]["failure"].endswith("ValueError: broken")


def test_a_submodule_that_this_clone_has_not_got_is_told(world):
    world.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib")
    world.git("commit", "-q", "-m", "a submodule that was never fetched")
    ids = add_commits(world, steady(3), 6)
    words = ("--good", ids[0], "--bad", "HEAD", "--no-prior")
    done = world.rl("bisect", *words, "--", PYTHON, outside(world, REPRO))
    assert done.stderr.count("lib is not in this clone: run without it") == 1
    assert [line.split() for line in done.stdout.splitlines() if "lacked" in line] == [
        ["lacked", "lib"]
    ]
    answer = found(world, ids, "--no-prior", command=[PYTHON, outside(world, REPRO)])
    assert answer["missing"] == ["lib"]


def test_a_different_failure_is_never_the_culprit(world):
    rng = random.Random(5)
    broken = {number for number in range(2, 40) if rng.random() < 0.3} - {28, 29}

    def program(number):
        return "import no_such_thing_of_ours_\n" if number in broken else steady(29)(number)

    ids = add_commits(world, program, 40)
    answer = found(world, ids[1:], "--no-repair", command=[PYTHON, outside(world, REPRO)])
    assert answer["commit"] == ids[29]
    assert answer["found"]


def test_where_breakage_hides_it_all_that_may_be_it_are_named(world):
    def program(number):
        return f"syntax error {number}\n" if 8 <= number <= 12 else steady(10)(number)

    ids = add_commits(world, program, 20)
    done = world.rl("bisect", "--good", ids[0], "--", PYTHON, outside(world, REPRO))
    assert done.returncode == 1
    assert "it is one of 6 commits" in done.stdout
    for number in range(8, 14):
        assert ids[number][:10] in done.stdout
    assert "failed otherwise" in done.stdout
    assert "--budget" not in done.stdout  # each was run


@takes_turns
def test_a_range_that_is_given_up_is_searched_to_its_end_for_who_gives_it_a_budget(world):
    def program(number):
        told = number in (0, 102, 103, 150)
        return steady(103)(number) if told else f"syntax error {number}\n"

    ids = add_commits(world, program, 150)
    words = ("--good", ids[0], "--no-prior", "--no-fork", "--", PYTHON, outside(world, REPRO))
    done = world.rl("bisect", *words)
    assert done.returncode == 1, done.stdout
    more = re.search(r"next: rl (bisect --resume --budget \d+) tries each of them", done.stdout)
    assert more, done.stdout
    done = world.rl(*more[1].split(), "--json")
    answer = json.loads(done.stdout)
    assert (answer["found"], answer["commit"]) == (True, ids[103]), done.stderr


def test_a_new_test_of_the_tree_works_at_every_revision(world):
    ids = add_commits(world, steady(7), 12)
    world.write("check_new.py", REPRO)
    answer = found(world, ids, command=[PYTHON, "check_new.py"])
    assert answer["commit"] == ids[7]


def test_the_package_of_the_revision_is_loaded_not_the_installed_one(world):
    world.write("pyproject.toml", "[project]\nname = 'app'\nversion = '1'\n")
    world.write("src/app/__init__.py", "")
    world.commit()
    ids = add_commits(world, steady(5), 9, file="src/app/core.py")
    site = world.root / "site"
    (site / "app").mkdir(parents=True)
    (site / "app/__init__.py").write_text("")
    (site / "app/core.py").write_text("def work():\n    pass\n")
    script = outside(world, "import app.core\napp.core.work()\n")
    world.env["PYTHONPATH"] = str(site)
    assert found(world, ids, command=[PYTHON, script])["commit"] == ids[5]


@takes_turns
def test_inside_a_merge_the_commit_itself_is_named(world):
    ids = add_commits(world, steady(99), 6)
    world.git("checkout", "-q", "-b", "side", ids[3])
    inner = []
    for number in range(4):
        world.write("helper.py", f"BROKEN = {number >= 2}\n")
        inner.append(world.commit(f"side {number}"))
    world.git("checkout", "-q", "main")
    world.git("merge", "-q", "--no-ff", "-m", "bring it in", "side")
    merge = world.git("rev-parse", "HEAD").strip()
    for number in range(3):
        world.write("notes.txt", f"{number}")
        world.commit()
    head = world.git("rev-parse", "HEAD").strip()
    script = outside(
        world,
        "import sys\nsys.path.insert(0, '.')\n"
        "try:\n    import helper\nexcept ImportError:\n    sys.exit()\n"
        "if helper.BROKEN:\n    raise ValueError('broken')\n",
    )
    answer = found(world, [ids[0], head], command=[PYTHON, script])
    assert answer["commit"] == inner[2]
    assert answer["merged_by"] == [merge]
    for budget in range(2, answer["runs"]):
        words = ("--good", ids[0], "--budget", str(budget), "--json", "--", PYTHON, script)
        done = world.rl("bisect", *words)
        part = json.loads(done.stdout)
        assert (done.returncode, part["found"], bool(part["stopped"])) == (1, False, True), budget


def test_several_at_once_find_the_same(world):
    ids = add_commits(world, steady(17), 30)
    answer = found(world, ids, "-j", "3", command=[PYTHON, outside(world, REPRO)])
    assert answer["commit"] == ids[17]


def test_a_failure_that_comes_at_times_is_found_and_said_to_be_so(world):
    ids = add_commits(world, lambda n: f"LATE = {n >= 6}\n", 10)
    count = world.root / "count"
    script = outside(
        world,
        "import random, sys\nsys.path.insert(0, '.')\nimport app\n"
        f"count = open({str(count)!r}, 'a+')\ncount.write('x')\n"
        "if app.LATE and random.Random(count.tell()).random() < 0.5:\n"
        "    raise ValueError('sometimes')\n",
    )
    words = ("--never-fails-before", "--ends", "6")
    answer = found(world, ids, *words, command=[PYTHON, script])
    assert answer["commit"] == ids[6]
    assert not answer["steady"]
    assert answer["confidence"] >= 0.98


def test_the_check_of_what_fails_at_times_knows_it_too(world):
    ids = add_commits(world, steady(5), 8)
    words = ("--never-fails-before", "--ends", "2", "--timeout", "1m")
    shown = bisect(world, ids[0], ids[-1], *words, command=[PYTHON, outside(world, REPRO)])
    check = next(line for line in shown.splitlines() if line.startswith("check "))
    assert "--timeout 60 --ends 2 --never-fails-before -- " in check
    assert "it fails at times" in shown
    assert "git bisect" not in shown
    assert f"{ids[5][:10]} is the first" in world.shell(check.removeprefix("check")).stdout


def test_the_ends_come_from_the_journal(world):
    add_commits(world, steady(4), 3)
    world.write("run.py", REPRO)
    world.commit("how to run it")
    good = world.git("rev-parse", "HEAD").strip()
    assert world.rl("--", PYTHON, "run.py").returncode == 0
    world.write("notes.txt", "1")
    world.commit()
    world.write("app.py", steady(1)(9))
    bad = world.commit("break it")
    world.write("notes.txt", "2")
    world.commit()
    assert world.rl("--", PYTHON, "run.py").returncode == 1
    done = world.rl("bisect", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["commit"] == bad
    assert answer["parent"] != good


@pytest.mark.parametrize("is_newer_first", [False, True])
def test_the_journal_also_tells_what_was_mended(world, is_newer_first):
    world.write("run.py", REPRO)
    world.commit("how to run it")
    ids = add_commits(world, lambda n: steady(0 if n < 4 else 99)(n), 8)
    trials = [(ids[1], 1), (ids[7], 0)]
    for commit, code in reversed(trials) if is_newer_first else trials:
        world.git("checkout", "-q", commit)
        assert world.rl("--", PYTHON, "run.py").returncode == code
    world.git("checkout", "-q", "main")
    done = world.rl("bisect", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["commit"], answer["reversed"]) == (ids[4], True)


# --- stopping and going on


SLOW = "import time\ntime.sleep(0.3)\n" + REPRO


def test_ctrl_c_gives_the_best_answer_so_far_and_resume_goes_on(world):
    ids = add_commits(world, steady(23), 40)
    script = outside(world, SLOW)
    words = ("bisect", "--good", ids[0], "--bad", ids[-1], "--", PYTHON, script)
    before = user_state(world)
    process = world.start(["rl", *words])
    probes = world.journal / "searches/1/probes.jsonl"
    wait_until(lambda: probes.exists() and len(probes.read_text().splitlines()) >= 4)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert b"interrupted: it is one of" in out
    done = probes.read_text().splitlines()
    assert left_behind(world) == []
    again = world.rl("bisect", "--resume", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["commit"] == ids[23]
    assert probes.read_text().splitlines()[: len(done)] == done
    commits = [json.loads(line)["commit"] for line in probes.read_text().splitlines()]
    twice = {one for one in commits if commits.count(one) > 1}
    assert twice <= {ids[22], ids[23]}  # the answer was confirmed
    assert user_state(world) == before


def test_what_runs_is_not_traced_again_by_a_search_that_goes_on(world):
    ids = add_commits(world, steady(23), 40)
    count = world.root / "count"
    script = outside(world, f"open({str(count)!r}, 'a').write('x')\n{SLOW}")
    words = ("bisect", "--good", ids[0], "--bad", ids[-1], "--", PYTHON, script)
    process = world.start(["rl", *words])
    search = world.journal / "searches/1"
    wait_until((search / "weights.json").exists)
    process.kill()
    process.communicate()
    before = len((search / "probes.jsonl").read_text().splitlines())
    wait_until(lambda: not processes_with(script))
    count.write_text("")
    done = world.rl("bisect", "--resume", "--json")
    assert json.loads(done.stdout)["commit"] == ids[23]
    assert "app.py" in json.loads((search / "weights.json").read_text())["files"]
    after = len((search / "probes.jsonl").read_text().splitlines())
    assert len(count.read_text()) == after - before > 0


def test_which_lines_run_is_learnt_from_the_ends_themselves(world):
    ids = add_commits(world, steady(23), 40)
    traced, count = world.root / "traced", world.root / "count"
    script = outside(
        world,
        f"import os\nopen({str(count)!r}, 'a').write('x')\nif {EXECUTED!r} in os.environ:\n"
        f"    open({str(traced)!r}, 'a').write('x')\n{REPRO}",
    )
    answer = found(world, ids, command=[PYTHON, script])
    assert answer["commit"] == ids[23]
    assert len(traced.read_text()) == 2
    assert len(count.read_text()) == answer["runs"]
    weights = json.loads((world.journal / "searches/1/weights.json").read_text())
    assert weights["files"] == ["app.py"]
    assert weights["lines"] == {ids[23]: 1}


def test_of_a_mended_program_the_files_are_those_that_failed(world):
    """The old one fails in a function of `old.py`, which the new one has no use for."""

    def program(number):
        uses = "old" if number < 23 else "new"
        return f"import {uses}\n\n\ndef work():\n    {uses}.go()\n\n\nversion = {number}\n"

    world.write("old.py", "def go():\n    raise ValueError('broken')\n")
    world.write("new.py", "def go():\n    return 1\n")
    world.commit()
    ids = add_commits(world, program, 40)
    answer = found(world, ids, command=[PYTHON, outside(world, SLOW)])
    assert (answer["commit"], answer["reversed"]) == (ids[23], True)
    weights = json.loads((world.journal / "searches/1/weights.json").read_text())
    assert weights["files"] == ["app.py", "old.py"]


def test_the_card_names_the_changed_files_that_its_diff_leaves_out(world):
    """What broke it is a value that is set at import: no function of that file ever runs."""
    world.write("settings.py", "LIMIT = 1\n")
    world.write("app.py", "import settings\n\n\ndef work():\n    assert settings.LIMIT\n")
    good = world.commit()
    for number in range(12):
        world.write("notes.txt", str(number))
        if number == 7:
            world.write("settings.py", "LIMIT = 0\n")
            app = (world.project / "app.py").read_text()
            world.write("app.py", app.replace("LIMIT\n", "LIMIT, 'limit'\n"))
        world.commit(f"change {number}")
    done = world.rl("bisect", "--good", good, "--", PYTHON, outside(world, SLOW))
    assert done.returncode == 0, done.stderr
    assert "change 7" in done.stdout
    assert "+    assert settings.LIMIT, 'limit'" in done.stdout
    (line,) = [one for one in done.stdout.splitlines() if "of which no function ran" in one]
    assert line.startswith("... and 2 files of which no function ran, notes.txt, settings.py: ")
    assert "-LIMIT = 1" in world.shell(line.rpartition(": ")[2]).stdout


LOOKED_ON = f"""\
import os, sys
sys.path.insert(0, '.')
import app
is_looked_on = {EXECUTED!r} in os.environ
try:
    app.work()
except ValueError:
    if is_looked_on and BECOMES == "another": raise OSError("do not look")
    if not is_looked_on or BECOMES != "passed": raise
if is_looked_on and app.version < 9 and BECOMES == "failed": raise ValueError("broken")
"""
"""Does otherwise when it is looked on."""


@pytest.mark.parametrize("becomes", ["another", "passed", "failed"])
def test_an_end_that_does_otherwise_when_it_is_looked_on_misleads_nobody(world, becomes):
    ids = add_commits(world, steady(23), 40)
    script = outside(world, f"BECOMES = {becomes!r}\n{LOOKED_ON}")
    answer = found(world, ids, command=[PYTHON, script])
    assert (answer["commit"], answer["found"]) == (ids[23], True)
    assert answer["failure"].endswith("ValueError: broken")
    assert answer["runs"] <= 20


@pytest.mark.parametrize("end", [0, 40])
def test_an_end_that_fails_only_when_it_is_looked_on_is_no_end(world, end):
    ids = add_commits(world, steady(99), 40)
    fails = f"import os\nif {EXECUTED!r} in os.environ and app.version == {end}: 1 / 0\n"
    script = outside(world, REPRO + fails)
    done = world.rl("bisect", "--good", ids[0], "--bad", ids[-1], "--", PYTHON, script)
    assert done.returncode == 2, done.stdout
    assert "it passes at both ends" in done.stderr


def test_after_a_kill_the_next_search_leaves_nothing_of_the_last(world):
    ids = add_commits(world, steady(23), 40)
    script = outside(world, SLOW)
    words = ("bisect", "--good", ids[0], "--bad", ids[-1], "--", PYTHON, script)
    process = world.start(["rl", *words])
    probes = world.journal / "searches/1/probes.jsonl"
    wait_until(lambda: probes.exists() and len(probes.read_text().splitlines()) >= 3)
    process.kill()
    process.communicate()
    before = len(probes.read_text().splitlines())
    done = world.rl("bisect", "--resume", "--json")
    assert json.loads(done.stdout)["commit"] == ids[23]
    assert json.loads(done.stdout)["runs"] < before + 12
    assert left_behind(world) == []
    wait_until(lambda: not processes_with(script))


def test_the_runs_that_a_search_needed_are_counted_over_all_sittings(world):
    ids = add_commits(world, steady(23), 40)
    command = [PYTHON, outside(world, REPRO)]
    words = ("--no-prior", "--no-fork")
    whole = found(world, ids, *words, command=command)
    bisect(world, ids[0], ids[-1], *words, "--budget", "5", command=command)
    rest = json.loads(world.rl("bisect", "--resume", "--json").stdout)
    assert (rest["runs"], rest["search_runs"]) == (whole["runs"], whole["search_runs"])


def test_undo_forgets_a_probe_and_log_lists_them(world):
    ids = add_commits(world, steady(5), 8)
    script = outside(world, REPRO)
    found(world, ids, command=[PYTHON, script])
    count = len(world.rl("bisect", "--log").stdout.splitlines())
    assert world.rl("bisect", "--undo", "2").stderr.count("forgot") == 2
    assert len(world.rl("bisect", "--log").stdout.splitlines()) == count - 2
    assert json.loads(world.rl("bisect", "--resume", "--json").stdout)["commit"] == ids[5]


def test_a_budget_ends_it_with_what_is_known(world):
    ids = add_commits(world, steady(23), 40)
    done = world.rl(
        "bisect", "--good", ids[0], "--budget", "4", "--", PYTHON, outside(world, REPRO)
    )
    assert done.returncode == 1
    assert "budget of 4 runs" in done.stdout


# --- what cannot be searched


def test_ends_that_do_not_differ_are_refused_with_what_was_seen(world):
    ids = add_commits(world, steady(99), 4)
    done = world.rl("bisect", "--good", ids[0], "--", PYTHON, "-c", "pass")
    assert done.returncode == 2
    assert "passes at both ends" in done.stderr
    done = world.rl("bisect", "--good", ids[0], "--", PYTHON, "-c", "1 / 0")
    assert done.returncode == 2
    assert "both ends fail alike: " in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert left_behind(world) == []


def test_a_folder_that_a_commit_has_not_is_made_in_its_checkout(world):
    ids = add_commits(world, steady(9), 16)
    (world.project / "new").mkdir()
    line = f"touch written && exec {PYTHON} -c 'exec(open(\"../app.py\").read()); work()'"
    done = world.rl("bisect", "--good", ids[0], "--", "sh", "-c", line, cwd=world.project / "new")
    assert done.returncode == 0, done.stderr
    assert f"{ids[9][:10]} is the first commit where it fails" in done.stdout
    assert list((world.project / "new").iterdir()) == []


BAD = {
    ("--good", "v1"): "no revision `v1`; nearest: v1.0",
    ("--good", "HEAD", "--bad", "HEAD"): "same commit",
    ("--good", "HEAD", "--bad", "HEAD~2"): "the other order",
    ("--good", "HEAD~1", "-j", "0"): "at least one",
    ("--good", "HEAD~1", "--confidence", "7"): "between 0.5 and 1",
    ("--bad", "HEAD"): "--bad needs --good",
    ("--good", "HEAD~1", "--with", "no.yaml"): "--with no.yaml: no file of",
    ("--good", "HEAD~1", "--with", "../beside"): "--with ../beside: no file of",
    ("--god", "HEAD~1"): "no option `--god`; did you mean --good?",
    ("--resume",): "it is about the last search, not `true`",
    ("v1.0", "HEAD"): "no trial of `v1.0 HEAD true` is remembered",
}


@pytest.mark.parametrize("words", BAD)
def test_wrong_words_get_one_line(world, words):
    add_commits(world, steady(99), 3)
    world.git("tag", "v1.0")
    (world.root / "beside").touch()
    done = world.rl("bisect", *words, "--", "true")
    assert done.returncode == 2
    assert BAD[words] in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "try: " in done.stderr


NOT_OF_A_RESUME = (
    "--good HEAD~1", "--release attrs==21.1.0..", "--deps", "--set a b", "--confidence 0.9",
    "--ends 2", "--confirm 0", "--with app.py", "--keep small", "-- true",
)  # fmt: skip


def test_what_a_search_knows_already_is_not_given_with_resume(world):
    ids = add_commits(world, steady(2), 3)
    bisect(world, ids[0], "HEAD", command=[PYTHON, "-c", "import app; app.work()"])
    for words in NOT_OF_A_RESUME:
        done = world.rl("bisect", "--resume", *words.split())
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), words
    done = world.rl("bisect", "--resume", "-j", "2", "--json")
    assert json.loads(done.stdout)["commit"] == ids[2]


def test_what_is_no_regular_expression_is_refused_before_anything_is_run(world):
    add_commits(world, steady(2), 3)
    done = world.rl("bisect", "--good", "HEAD~2", "--match", "(", "--", "true")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "--match: `(` is no regular expression" in done.stderr


def test_a_command_that_is_nowhere_found_is_said_so(world):
    ids = add_commits(world, steady(99), 3)
    done = world.rl("bisect", "--good", ids[0], "--", "no-such-program-here")
    assert done.returncode == 2
    assert "no-such-program-here" in done.stderr


def test_a_script_that_is_not_there_is_said_so(world):
    ids = add_commits(world, steady(99), 3)
    done = world.rl("bisect", "--good", ids[0], "--", PYTHON, "../repo.py")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "`../repo.py` does not exist   try: ls .." in done.stderr
    done = world.rl("bisect", "--good", ids[0], "--", PYTHON, "repo.py")
    assert done.returncode == 2
    assert "can't open file" in done.stderr
    assert "try: name a file that your tree has" in done.stderr


def test_outside_git_and_in_a_bare_repository_one_line_says_what_to_do(world):
    empty = world.root / "empty"
    empty.mkdir()
    done = world.rl("bisect", "--good", "a", "--", "true", cwd=empty)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    world.git("clone", "-q", "--bare", ".", "../bare")
    done = world.rl("bisect", "--good", "HEAD", "--", "true", cwd=world.root / "bare")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "bare" in done.stderr
