"""`rl replay` in a real shell: finds the call, sees edits, says what it cannot."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys

import pytest
from tests.conftest import World
from tests.supervising import Screen, wait_until

PROGRAM = """\
import time

LIMIT = 3

class Basket:
    def __init__(self, prices):
        self.prices = prices

    def price(self, name):
        return self.prices[name]

def total(basket, names):
    return sum(basket.price(name) for name in names[:LIMIT])

def prepare():
    time.sleep(0.2)
    return Basket({"apple": 1})

def main():
    basket = prepare()
    print("prepared")
    total(basket, ["apple", "pear"])

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def failed(warm: World) -> World:
    """A world in which a program has failed."""
    warm.write("shop.py", PROGRAM)
    done = warm.rl("--", sys.executable, "shop.py")
    assert done.returncode == 1, done.stderr
    assert "next: rl show 1, rl replay, or edit and rl" in done.stderr
    return warm


def test_the_outermost_call_that_fails_alone_is_found_and_told(failed: World):
    done = failed.rl("replay")
    assert done.returncode == 1
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert [line.partition(",")[0] for line in lines if line.startswith("rl:   ")] == [
        "rl:   Basket.price(): fails so",
        "rl:   total(): fails so",
    ]
    assert "KeyError: 'pear'" in lines
    assert "in main" not in done.stderr
    assert lines[-2] == "rl: still fails: shop.py:10 KeyError: 'pear'"
    assert lines[-1].startswith("    (total() of #1 alone: 0.")


def test_an_edit_is_seen_and_the_call_is_not_searched_again(failed: World):
    failed.rl("replay")
    failed.write("shop.py", PROGRAM.replace("self.prices[name]", "self.prices.get(name, 0)"))
    done = failed.rl("replay")
    assert done.returncode == 0
    assert done.stderr.startswith("rl: fixed: no longer fails   (total() of #1 alone:")
    failed.write("shop.py", PROGRAM.replace("self.prices[name]", "1 / (len(name) - 5)"))
    done = failed.rl("replay")
    assert done.returncode == 1
    assert "rl: fails otherwise now: shop.py:10 ZeroDivisionError" in done.stderr


def test_a_call_that_was_mended_before_the_first_replay_is_found_in_the_old_code(failed: World):
    failed.write("shop.py", PROGRAM.replace("self.prices[name]", "self.prices.get(name, 0)"))
    done = failed.rl("replay")
    assert done.returncode == 0
    assert "rl:   total(): fails so" in done.stderr
    assert "rl: fixed: no longer fails" in done.stderr


def test_lines_that_moved_are_no_edit(failed: World):
    failed.write("shop.py", "# a comment\n\n\n" + PROGRAM)
    done = failed.rl("replay")
    assert done.returncode == 1
    assert "still fails: shop.py:13 KeyError: 'pear'" in done.stderr


def test_an_edited_constant_wins_over_the_kept_one(failed: World):
    failed.rl("replay")
    failed.write("shop.py", PROGRAM.replace("LIMIT = 3", "LIMIT = 1"))
    assert failed.rl("replay").returncode == 0


def test_an_edit_that_is_no_part_of_the_call_is_named(failed: World):
    failed.rl("replay")
    failed.write("shop.py", PROGRAM.replace('{"apple": 1}', '{"apple": 1, "pear": 2}'))
    done = failed.rl("replay")
    assert done.returncode == 1
    assert "rl: edited, but no part of this call: prepare()   try: rl" in done.stderr


def test_a_call_that_runs_on_after_an_edit_is_not_called_fixed(failed: World):
    failed.rl("replay")
    slow = PROGRAM.replace("self.prices[name]", "time.sleep(30)")
    failed.write("shop.py", slow)
    done = failed.rl("replay", "--limit", "0.3")
    assert done.returncode == 124
    assert "rl: has not failed after 0.3" in done.stderr


def test_a_frame_can_be_asked_for(failed: World):
    done = failed.rl("replay", "--frame", "price")
    assert done.returncode == 1
    assert "(Basket.price() of #1 alone:" in done.stderr
    assert "(Basket.price() of #1 alone:" in failed.rl("replay", "--frame", "Basket.price").stderr
    number = failed.rl("replay", "--list").stdout.splitlines()
    last = next(line for line in number if "Basket.price" in line).split()[0]
    assert "(Basket.price() of #1 alone:" in failed.rl("replay", "--frame", last).stderr


def test_the_list_says_what_was_kept(failed: World):
    done = failed.rl("replay", "--list")
    assert done.returncode == 0
    assert "#1  KeyError: 'pear'" in done.stdout
    assert "Basket.price" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_json_tells_it_all(failed: World):
    done = failed.rl("replay", "--json")
    assert done.returncode == 1
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert told["schema"] == "relaunch/replay/1"
    assert (told["trial"], told["verdict"], told["fails"]) == ("1", "same", True)
    assert told["frame"]["qualname"] == "total"
    assert told["title"] == "shop.py:10 KeyError: 'pear'"
    assert "KeyError" in told["stderr"]
    assert [one["verdict"] for one in told["tried"]] == ["same", "same"]
    listed = json.loads(failed.rl("replay", "--list", "--json").stdout)
    assert listed["schema"] == "relaunch/replay-list/1"
    assert listed["captures"][0]["frames"][-2]["qualname"] in (
        "total",
        "Basket.price",
        "total.<locals>.<genexpr>",
    )


def test_show_says_how_to_replay_it_and_how_that_went(failed: World):
    assert re.search(r"^replay +rl replay 1$", failed.rl("show", "1").stdout, re.MULTILINE)
    failed.rl("replay")
    shown = failed.rl("show", "1").stdout
    assert re.search(r"^replay +rl replay 1   1 replay, last \ds ago: fails$", shown, re.MULTILINE)


def test_a_line_of_python_fails_the_same_without_us(failed: World):
    done = failed.rl("replay", "--one-liner")
    assert done.returncode == 0
    assert done.stdout.count("\n") == 1
    assert (
        'shop.total(made(shop.Basket, {"prices": {"apple": 1}}), ["apple", "pear"])' in done.stdout
    )
    ran = subprocess.run(["sh", "-c", done.stdout], env=failed.env, capture_output=True, text=True)
    assert ran.stderr.endswith("KeyError: 'pear'\n")


def test_a_fresh_process_does_the_same(failed: World):
    done = failed.rl("replay", "--fresh")
    assert done.returncode == 1
    assert "rl:   total(): fails so" in done.stderr
    assert failed.rl("warm", "status", "--json").stdout.count('"kind"') == 0


def test_the_second_replay_has_the_imports(failed: World):
    failed.rl("replay")
    told = json.loads(failed.rl("replay", "--json").stdout)
    assert told["warm"]
    assert "imports for rl replay" in failed.rl("warm", "status").stdout
    assert json.loads(failed.rl("warm", "stop", "--json").stdout)["hosts"] == 1
    assert "no snapshots" in failed.rl("warm", "status").stderr


def test_a_library_that_changes_is_imported_anew(warm: World):
    package = warm.root / "packages" / "site-packages"
    package.mkdir(parents=True)
    (package / "library.py").write_text("def divide(a, b):\n    return a / b\n")
    warm.write("run.py", "import library\ndef f(x):\n    return library.divide(1, x)\nf(0)\n")
    env = {"PYTHONPATH": str(package)}
    warm.rl("--", sys.executable, "run.py", env=env)
    assert warm.rl("replay", env=env).returncode == 1
    (package / "library.py").write_text("def divide(a, b):\n    return 0\n")
    done = warm.rl("replay", env=env)
    assert (done.returncode, "does not fail" in done.stderr) == (0, True)


def test_the_debugger_stops_where_it_fails(failed: World):
    screen = Screen(
        sys.executable, "-m", "relaunch", "replay", "--pdb",
        env={**failed.env, "PWD": str(failed.project)}, cwd=str(failed.project),
    )  # fmt: skip
    try:
        screen.until(b"(Pdb) ", 30)
        screen.type(b"p name, sorted(self.prices)\r")
        screen.until(b"('pear', ['apple'])")
        screen.until(b"(Pdb) ")
        screen.type(b"q\r")
        screen.until(b"still fails")
        assert screen.end() == 1
    finally:
        screen.close()


# --- several failures, none, other ones


def test_the_worker_that_failed_is_replayed_not_its_parent(warm: World):
    warm.write(
        "pool.py",
        "import multiprocessing\n\ndef work(n):\n    return [1, 2][n]\n\n"
        'if __name__ == "__main__":\n'
        '    with multiprocessing.get_context("fork").Pool(1) as pool:\n'
        "        pool.map(work, range(3))\n",
    )
    warm.rl("--", sys.executable, "pool.py")
    done = warm.rl("replay")
    assert "(work() of #1 alone:" in done.stderr
    assert done.returncode == 1


def test_a_failing_test_is_replayed_with_the_words_of_pytest(warm: World):
    warm.write("test_it.py", "def test_sum():\n    total = sum([1, 2])\n    assert total == 4\n")
    warm.rl("--", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    done = warm.rl("replay")
    assert "still fails: test_it.py:3 AssertionError: assert 3 == 4" in done.stderr


def test_what_a_replay_needs_and_was_not_kept_is_named(warm: World):
    warm.write(
        "net.py",
        "import socket\n\n"
        "def send(link, n):\n    link.fileno()\n    link.shutdown(socket.SHUT_RD)\n\n"
        "def main():\n    with socket.socket() as link:\n        send(link, 1)\n\nmain()\n",
    )
    warm.rl("--", sys.executable, "net.py")
    done = warm.rl("replay")
    assert done.returncode == 2
    assert "no call of #1 fails alone as it did: the replay needs" in done.stderr
    assert "a socket.socket" in done.stderr
    assert "not kept: link: a socket.socket" in warm.rl("replay", "--list").stdout


def test_the_last_failure_is_the_one_and_a_number_names_another(warm: World):
    for name in ("a", "b"):
        warm.write("run.py", f"def {name}(x):\n    return x / 0\n{name}(1)\n")
        warm.rl("--", sys.executable, "run.py")
    warm.rl("--", "true")
    assert "(b() of #2 alone:" in warm.rl("replay").stderr
    assert warm.rl("replay", "1").returncode == 2  # `a` is no longer there


def test_the_calls_of_a_trial_that_passed_are_dropped(warm: World):
    warm.write(
        "run.py",
        "import threading\nthread = threading.Thread(target=lambda: 1 / 0)\nthread.start()\n",
    )
    done = warm.rl("--", sys.executable, "run.py")
    assert done.returncode == 0
    assert not (warm.journal / "trials/1/capture").exists() or "replay" in done.stderr


def test_calls_of_old_failures_go_but_not_those_of_marked_ones(warm: World):
    warm.settings("[record]\nalso = []\n[capture]\nkeep = 2\n")
    for number in range(1, 5):
        warm.write("run.py", f"def f(x):\n    return x / 0  # {number}\nf(1)\n")
        warm.rl("--", sys.executable, "run.py")
        if number == 1:
            warm.rl("mark", "1", "bad")
    kept = [n for n in range(1, 5) if (warm.journal / f"trials/{n}/capture").exists()]
    assert kept == [1, 3, 4]


def test_nothing_is_kept_where_that_is_off(warm: World):
    warm.settings("[record]\nalso = []\n[capture]\nenabled = false\n")
    warm.write("run.py", "def f(x):\n    return x / 0\nf(1)\n")
    done = warm.rl("--", sys.executable, "run.py")
    assert "rl replay" not in done.stderr
    assert not (warm.journal / "trials/1/capture").exists()


def test_secrets_given_by_the_environment_are_given_back_by_it(warm: World):
    warm.write(
        "run.py",
        "import os\ndef login(text):\n    raise ValueError(len(text), text[:3])\n"
        "login(os.environ['MY_TOKEN'])\n",
    )
    env = {"MY_TOKEN": "abc-123-very-secret"}
    warm.rl("--", sys.executable, "run.py", env=env)
    files = [path for path in (warm.journal / "trials/1").rglob("*") if path.is_file()]
    assert not any(b"very-secret" in path.read_bytes() for path in files)
    assert "ValueError: (19, 'abc')" in warm.rl("replay", env=env).stderr
    without = warm.rl("replay")
    assert "MY_TOKEN is a secret and was not kept" in without.stderr


def test_a_frozen_trial_is_replayed_with_the_tree_that_is_edited(warm: World):
    warm.write("run.py", "def f(x):\n    return x / 0\nf(1)\n")
    warm.rl("--frozen", "--", sys.executable, "run.py")
    assert warm.rl("replay").returncode == 1
    warm.write("run.py", "def f(x):\n    return x\nf(1)\n")
    assert warm.rl("replay").returncode == 0


def test_another_work_tree_replays_its_own_files(failed: World):
    failed.commit()
    failed.git("worktree", "add", "-q", str(failed.root / "other"))
    other = failed.root / "other"
    assert failed.rl("replay", cwd=other).returncode == 1
    text = PROGRAM.replace("self.prices[name]", "self.prices.get(name, 0)")
    (other / "shop.py").write_text(text)
    assert "fixed" in failed.rl("replay", cwd=other).stderr
    assert "still fails" in failed.rl("replay").stderr


def test_a_file_that_was_only_touched_is_not_edited(failed: World):
    (failed.project / "shop.py").touch()
    told = json.loads(failed.rl("replay", "--json").stdout)
    assert (told["verdict"], told["changed"]) == ("same", [])


def test_a_program_is_not_run_again_by_its_replay(warm: World):
    warm.write(
        "run.py",
        "import os\ndef f(x):\n    return x / 0\ndef main():\n    open('ran', 'a').write('x')\n"
        "    f(1)\nif __name__ == '__main__':\n    main()\n",
    )
    warm.rl("--", sys.executable, "run.py")
    warm.rl("replay")
    assert (warm.project / "ran").read_text() == "x"


# --- bad input


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "rl: no failed call was kept yet   try: rl -- python train.py"),
        (("7",), "rl: no trial #7"),
        (("--limit", "soon"), "rl: --limit takes a time such as 30, 90s, 5m or 2h, not `soon`"),
        (("--pdb", "--json"), "rl: --pdb talks to a person, --json does not"),
        (("--what",), "rl: no option `--what`   try: rl replay --help"),
    ],
)
def test_bad_words_get_one_line(warm: World, words, told):
    done = warm.rl("replay", *words)
    assert done.returncode == 2
    assert done.stderr.startswith(told)
    assert done.stderr.count("\n") == 1


def test_a_trial_without_a_call_says_why(failed: World):
    failed.rl("--", "true")
    done = failed.rl("replay", "2")
    assert done.stderr == "rl: #2 has no call to replay: it passed   try: rl show 2\n"
    done = failed.rl("replay", "1", "--frame", "nothing")
    assert done.stderr == "rl: no frame `nothing`   try: rl replay 1 --list\n"


def test_a_broken_capture_is_passed_over(failed: World):
    for path in (failed.journal / "trials/1/capture").glob("*/facts.json"):
        path.write_text("{}")
    done = failed.rl("replay")
    assert done.returncode == 2
    assert "no failed call was kept yet" in done.stderr


def test_a_python_that_is_gone_is_named(warm: World):
    link = warm.root / "python"
    link.symlink_to(sys.executable)
    warm.write("run.py", "def f(x):\n    return x / 0\nf(1)\n")
    warm.rl("--", str(link), "run.py")
    for path in (warm.journal / "trials/1/capture").glob("*/facts.json"):
        path.write_text(path.read_text().replace(sys.executable, str(link)))
    link.unlink()
    done = warm.rl("replay")
    assert done.returncode == 2
    assert "the Python of that trial is gone" in done.stderr


def test_an_interrupt_leaves_nothing_running(failed: World):
    failed.rl("replay")
    slow = "open('asleep', 'w').close() or time.sleep(600)"
    failed.write("shop.py", PROGRAM.replace("self.prices[name]", slow))
    process = failed.start(["rl", "replay", "--limit", "10m"])
    wait_until((failed.project / "asleep").exists)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode == 130  # and `warm` sees that nobody is left
