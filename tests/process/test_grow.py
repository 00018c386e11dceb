"""`rl grow` with real programs: the right size, few runs, nothing run twice and nothing left."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest
from tests.supervising import Screen, wait_until

PYTHON = sys.executable
FAILS_FROM_129 = ("sh", "-c", "test {batch} -lt 129")
SLOW = "sleep 0.1; test {n} -lt 10 # "
"""With a word behind it that no other process has."""


def grown(world, *words, code=0):
    """Search, and return the answer as data."""
    done = world.rl("grow", "--json", *words)
    assert done.returncode == code, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def probes(world, number=1):
    path = world.journal / f"searches/{number}/probes.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def sizes(world, number=1):
    return [tuple(sorted(one["at"].items())) for one in probes(world, number)]


def left_running(word):
    """Return the processes that have a word in their command."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if word.encode() in file.read():
                    found.append(int(name))
        except OSError:
            pass
    return [pid for pid in found if pid != os.getpid()]


def rows_left(world):
    return sorted((world.journal / "searches").glob("*/rows"))


# --- the edge


def test_the_size_from_which_on_it_fails_is_named_with_both_commands(world):
    before = world.git("status", "--porcelain", "--ignored")
    done = world.rl("grow", "batch=1..4k", "--", *FAILS_FROM_129)
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.startswith("fails from batch=129 on (128 passes), 22 runs in ")
    assert "passes   rl -- sh -c 'test 128 -lt 129'" in rest
    assert "fails    rl -- sh -c 'test 129 -lt 129'" in rest
    assert "failure  exit 1" in rest
    assert done.stderr.count("rl:   batch=") == 22
    assert world.git("status", "--porcelain", "--ignored") == before


def test_the_largest_size_that_fails_is_found_as_well(world):
    answer = grown(world, "n=0..99", "--linear", "--", "sh", "-c", "test {n} -gt 41")
    (only,) = answer["dimensions"]
    assert (only["direction"], only["before"], only["after"]) == ("passes_from", 41, 42)
    assert (only["exact"], only["shape"]) == (True, "monotone")


def test_several_at_once_find_the_same(world):
    (only,) = grown(world, "batch=1..400", "-j", "3", "--", *FAILS_FROM_129)["dimensions"]
    assert (only["before"], only["after"]) == (128, 129)
    assert len(set(sizes(world))) == len(sizes(world))


def test_another_failure_is_not_the_edge_and_the_map_shows_where_it_is(world):
    line = "test {n} -lt 20 || { test {n} -gt 24 && exit 1; exit 3; }"
    done = world.rl("grow", "n=1..64", "--", "sh", "-c", line)
    assert done.returncode == 0
    assert done.stdout.startswith("fails from somewhere in n=20..25 on (19 passes)")
    assert "otherwise  exit 3 (n=20 to 24, " in done.stdout
    (only,) = grown(world, "--resume")["dimensions"]
    assert (only["before"], only["after"], only["hidden"]) == (19, 25, True)


def test_a_verdict_that_changes_to_and_fro_is_said_to_do_so_with_the_map(world):
    line = "test {n} -lt 20 -o {n} -ge 40"
    done = world.rl("grow", "n=1..64", "--", "sh", "-c", line)
    assert done.returncode == 0
    assert done.stdout.startswith("fails from n=20 on (19 passes), but not always, ")
    told = [line.split() for line in done.stdout.splitlines()]
    assert ["1", "to", "19", "passes"] in [words[:4] for words in told]
    assert ["20", "to", "39", "fails"] in [words[:4] for words in told]
    assert ["40", "to", "64", "passes"] in [words[:4] for words in told]


def test_multiples_are_recognised(world):
    (only,) = grown(world, "n=1..64", "--", "sh", "-c", "test $(({n} % 8)) = 0")["dimensions"]
    assert only["pattern"] == "passes only at multiples of 8"
    assert only["shape"] == "not_monotone"


def test_only_what_matches_is_hunted_where_a_person_says_so(world):
    line = "test {n} -lt 9 || echo CUDA out of memory; test {n} -ne 1"
    (only,) = grown(world, "n=1..32", "--match", "out of memory", "--", "sh", "-c", line)[
        "dimensions"
    ]
    assert (only["before"], only["after"]) == (8, 9)
    assert "out of memory" in only["failure"]
    assert only["runs"][0]["seen"] == "other"


def test_a_size_may_be_in_the_environment_and_need_not_be_whole(world):
    code = "import os; 1 / (float(os.environ['LR']) < 0.25)"
    words = ("lr=0.01..1.0", "--env", "LR={lr}", "--", PYTHON, "-S", "-c", code)
    (only,) = grown(world, *words)["dimensions"]
    assert (only["before"], only["after"]) == (0.24, 0.25)
    assert "ZeroDivisionError" in only["failure"]


def test_one_that_takes_too_long_fails(world):
    words = ("n=1..3", "--timeout", "0.2", "--", "sh", "-c", "test {n} -lt 3 || sleep 60")
    (only,) = grown(world, *words)["dimensions"]
    assert (only["after"], only["failure"]) == (3, "timeout")


def test_where_nothing_changes_it_says_so_with_the_curve(world):
    done = world.rl("grow", "n=1..16", "--", "true", "{n}")
    assert done.returncode == 1
    assert done.stdout.startswith("passes at every value tried, n=1 to 16, ")
    assert "time" in done.stdout
    done = world.rl("grow", "n=1..16", "--", PYTHON, "-S", "-c", "{n} / 0")
    assert done.returncode == 1
    assert done.stdout.startswith("fails at every value tried, n=1 to 16, ")
    assert "ZeroDivisionError" in done.stdout


# --- rows of a file


def test_the_row_that_breaks_it_is_shown_and_the_file_stays_as_it_is(world):
    lines = [json.dumps({"id": n, "text": "bad" if n == 37 else "good"}) for n in range(1, 101)]
    data = world.write("data.jsonl", "\n".join(lines))
    before = data.stat().st_mtime_ns, data.read_bytes()
    done = world.rl("grow", "rows@data.jsonl=1..1e6", "--", "sh", "-c", '! grep -q bad "$1"', "sh",
                    "./data.jsonl")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("fails from rows=37 on (36 passes)")
    assert 'row 37   {"id": 37, "text": "bad"}' in done.stdout
    assert "rows of data.jsonl from 1 to 100" in done.stderr
    assert (data.stat().st_mtime_ns, data.read_bytes()) == before
    assert rows_left(world) == []


def test_a_table_keeps_its_header_and_its_rows_whole(world):
    table = "id,text\n" + "".join(f'{n},"two\nlines"\n' for n in range(1, 31))
    world.write("t.csv", table)
    code = "import csv, sys\nrows = [*csv.DictReader(open(sys.argv[1]))]\nassert len(rows) < 12\n"
    code += "assert {r['text'] for r in rows} == {'two\\nlines'}, rows"
    answer = grown(world, "rows@t.csv=1..1000", "--", PYTHON, "-S", "-c", code, "{rows}")
    (only,) = answer["dimensions"]
    assert (only["high"], only["after"]) == (30, 12)


# --- several sizes


def test_sizes_grow_one_at_a_time_and_what_they_share_is_run_once(world):
    line = "test {batch} -lt 9 && test {seq} -lt 100"
    answer = grown(world, "batch=1..64", "seq=16..256", "--at", "seq=32", "--", "sh", "-c", line)
    batch, seq = answer["dimensions"]
    assert (batch["before"], batch["after"], batch["at"]) == (8, 9, {"seq": 32})
    assert (seq["before"], seq["after"], seq["at"]) == (99, 100, {"batch": 1})
    assert len(set(sizes(world))) == len(sizes(world)) == answer["runs"]
    assert (("batch", 1), ("seq", 32)) in sizes(world)


# --- the curves


def test_memory_is_followed_to_its_limit(world):
    code = "x = bytearray({n} << 20); x[::4096] = bytes(len(x[::4096])); 1 / ({n} < 70)"
    done = grown(
        world, "n=16..100", "--doubling", "--memory", "16GiB", "--", PYTHON, "-S", "-c", code
    )
    memory = done["dimensions"][0]["curves"]["memory"]
    assert memory["order"] == "n"
    assert 0.8 * (1 << 20) < memory["factor"] < 1.2 * (1 << 20)
    assert 14_000 < memory["reaches"] < 18_000
    again = world.rl("grow", "--resume", "--memory", "1GiB")
    assert again.stdout.startswith("fails from n=70 on (69 passes)")
    assert "reaches 1.0 GiB at about n=1,0" in again.stdout
    assert " (0 of them now)" in again.stdout


def test_without_utf8_the_chart_is_ascii_and_fits(world):
    env = {"LC_ALL": "C", "COLUMNS": "60"}
    done = world.rl("grow", "n=1..64", "--", "sh", "-c", "test {n} -lt 20", env=env)
    assert done.stdout.isascii()
    chart = [line for line in done.stdout.splitlines() if line.startswith("  ")]
    assert len(chart) > 8
    assert max(map(len, chart)) <= 60
    assert any("#" in line for line in chart)


def test_on_a_terminal_one_line_shows_the_sizes_that_were_tried(world):
    words = ["-m", "relaunch", "grow", "n=1..64", "--", "sh", "-c", "test {n} -lt 20"]
    screen = Screen(PYTHON, *words, env=world.env, cwd=str(world.project))
    try:
        shown = screen.until(b"fails from n=20 on (19 passes)")
        assert "●" in shown.decode()
        assert "○" in shown.decode()
        assert b"rl:   n=" not in shown
        assert screen.end() == 0
    finally:
        screen.close()


# --- stopping and going on


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_gives_the_best_answer_so_far_and_resume_repeats_nothing(world, jobs):
    mark = f"ctrl-c-{jobs}-{os.getpid()}"
    process = world.start(["rl", "grow", "n=1..16", "-j", jobs, "--", "sh", "-c", SLOW + mark])
    wait_until(lambda: len(probes(world)) >= 3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert out.startswith(b"interrupted: passes at every value tried, n=1 to ")
    assert b"next: rl grow --resume" in out
    wait_until(lambda: not left_running(mark))
    done = sizes(world)
    (only,) = grown(world, "--resume")["dimensions"]
    assert (only["before"], only["after"]) == (9, 10)
    assert sizes(world)[: len(done)] == done
    assert len(set(sizes(world))) == len(sizes(world))
    last = grown(world, "--resume")
    assert (last["new_runs"], last["found"]) == (0, True)


def test_a_kill_leaves_nothing_after_the_next_search(world):
    mark = f"killed-{os.getpid()}"
    world.write("data.txt", "row\n" * 64)
    words = ["grow", "n@data.txt=1..64", "--", "sh", "-c", f"sleep 0.2 # {mark}", "sh", "{n}"]
    process = world.start(["rl", *words])
    wait_until(lambda: len(probes(world)) >= 2 and left_running(mark))
    process.kill()
    process.communicate()
    assert rows_left(world)
    wait_until(lambda: not left_running(mark))
    world.rl("grow", "n=1..2", "--", "true", "{n}")
    assert rows_left(world) == []


def test_a_budget_ends_it_with_what_is_known(world):
    done = world.rl("grow", "batch=1..4096", "--budget", "10", "--", *FAILS_FROM_129)
    assert done.returncode == 1
    assert done.stdout.startswith("the budget of 10 runs is used up: fails from somewhere in")
    assert len(sizes(world)) == 10
    (only,) = grown(world, "--resume")["dimensions"]
    assert only["after"] == 129


# --- what cannot be searched


def test_wrong_words_get_one_line(world):
    for words, said in {
        ("batch=1..64", "--", "true"): "no `{batch}`",
        ("batch=64..1", "--", "true", "{batch}"): "runs backwards",
        ("rows@none.jsonl=1..9", "--", "true", "{rows}"): "`none.jsonl` does not exist",
        ("batch=1..64",): "no command",
        ("n=1..4", "--", "no-such-program-here", "{n}"): "command not found",
        ("--resume",): "no search yet",
    }.items():
        done = world.rl("grow", *words)
        assert done.returncode == 2, words
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert "try: " in done.stderr
    assert not (world.journal / "searches").exists()


# --- how much memory or disk is needed


def test_the_least_memory_with_which_it_passes_is_found(world):
    world.write("need.py", "kept = [b'x' * (1 << 20) for _ in range(20)]\nprint(len(kept))\n")
    words = ("--memory", "8M..64M", "--step", "1M", "--", PYTHON, "need.py")
    (only,) = grown(world, *words)["dimensions"]
    assert (only["name"], only["direction"], only["found"]) == ("memory", "passes_from", True)
    needed = only["after"] * only["unit"]
    assert 20 << 20 < needed < 34 << 20
    assert only["failure"].startswith("Reached ")
    assert "need.py:1" in only["failure"] or "no Python function ran" in only["failure"]


def test_the_smallest_disk_with_which_it_passes_is_found_and_the_folder_stays_as_it_is(world):
    (world.project / "ckpt").mkdir()
    world.write("save.py", "open('ckpt/w', 'wb').write(b'x' * (3 << 20))\n")
    done = world.rl("grow", "--disk", "ckpt=1M..16M", "--step", "1M", "--", PYTHON, "save.py")
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.startswith("passes from disk ckpt=3M on (2M fails), "), done.stdout
    assert f"passes   rl --disk {world.project}/ckpt=3M -- {PYTHON} save.py" in rest
    assert any("No space left on device" in line for line in rest)
    assert list((world.project / "ckpt").iterdir()) == []


def test_what_it_needs_goes_on_where_it_was_stopped(world):
    world.write("need.py", "kept = [b'x' * (1 << 20) for _ in range(20)]\n")
    words = ("--memory", "8M..64M", "--step", "1M", "--budget", "2", "--", PYTHON, "need.py")
    assert world.rl("grow", *words).returncode == 1
    done = world.rl("grow", "--resume")
    assert done.returncode == 0, done.stderr
    assert "passes from memory=" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--memory", "1G..100M"], "--memory 1G..100M: from less to more"),
        (["--memory", "1G..much"], "--memory takes a size such as 5G"),
        (["--memory", "1M..1025K"], "--memory 1M..1025K: too close together"),
        (["--disk", "nowhere=1M..1G"], "--disk nowhere: the directory does not exist"),
        (["--disk", "ckpt=1M"], "--disk takes DIR=LOW..HIGH, not `ckpt=1M`"),
    ],
)
def test_limits_that_make_no_range_get_one_line(world, words, said):
    done = world.rl("grow", *words, "--", "true")
    assert done.returncode == 2
    assert [said in line for line in done.stderr.splitlines()] == [True]
