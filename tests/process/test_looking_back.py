"""Looking back in real processes: output byte for byte or live, closed pipes, code given back."""

import json
import os
import re
import shlex
import signal
import struct
import subprocess
import sys
import time
from hashlib import sha1

import pytest
from tests.conftest import World
from tests.needs import needs
from tests.supervising import PATIENCE_S

from relaunch.journal.home import find_home
from relaunch.journal.output import RESET, STDERR, STDOUT, OutputWriter
from relaunch.journal.snapshot.code import to_json
from relaunch.journal.snapshot.take import take
from relaunch.journal.store import Journal

ODD = b"\x00\xff\r\x1b[31mred\n" + bytes(range(256))


@pytest.fixture
def journal(world):
    return Journal(str(world.journal))


def begin(journal, **start):
    base = {"command": ["python", "t.py"], "cwd": "/", "resets": [], "set": "", "note": ""}
    return journal.begin({**base, **start})


def say(writer, *chunks):
    for stream, data in chunks:
        writer.chunk(time.monotonic(), stream, data)


def finished(journal, *chunks, exit_code=0, **start):
    trial = begin(journal, **start)
    writer = journal.output(trial)
    say(writer, *chunks)
    writer.close()
    return journal.finish(trial, {"exit_code": exit_code, "duration_s": 1.0})


def output(world, *words):
    command = world.start(["rl", "show", *words])
    out, err = command.communicate(timeout=300)
    return command.returncode, out, err


def test_output_comes_back_byte_for_byte(world, journal):
    finished(journal, (RESET, b"cleaning\n"), (STDOUT, ODD), (STDERR, b"no newline"), (STDOUT, ODD))
    assert output(world, "1", "--output") == (0, ODD + b"no newline" + ODD, b"")
    assert output(world, "1", "--output", "--stream", "out") == (0, ODD * 2, b"")
    assert output(world, "1", "--output", "--stream", "err") == (0, b"no newline", b"")
    assert output(world, "1", "--output", "--stream", "reset") == (0, b"cleaning\n", b"")


def test_times_stand_before_each_line(world, journal):
    finished(journal, (STDOUT, b"one\ntw"), (STDOUT, b"o\n"), (STDERR, b"three\n"))
    lines = output(world, "--output", "--times")[1].splitlines()
    assert [line.split()[1:] for line in lines] == [
        [b"out", b"one"],
        [b"out", b"two"],
        [b"err", b"three"],
    ]


def test_what_a_kill_left_without_a_time_is_shown_too(world, journal):
    trial = finished(journal, (STDOUT, b"timed "))
    with open(os.path.join(trial.path, "output.0"), "ab") as file:
        file.write(b"untimed")
    for words in (["--output"], ["--output", "--follow"]):
        assert output(world, *words)[1] == b"timed untimed"


def test_following_gives_what_comes_while_it_comes_and_ends_with_the_trial(world, journal):
    trial = begin(journal)
    writer = OutputWriter(trial.path, segment_bytes=64)
    command = world.start(["rl", "show", "--output", "--follow"])
    assert command.stdout is not None
    seen = b""
    for number in range(20):
        said = b"line %d of the program\n" % number
        say(writer, (STDOUT if number % 2 else STDERR, said))
        seen += said
        got = b""
        while len(got) < len(said):
            got += os.read(command.stdout.fileno(), len(said) - len(got))
        assert got == said
    writer.close()
    journal.finish(trial, {"exit_code": 0})
    assert command.communicate(timeout=300) == (b"", b"")
    assert command.returncode == 0


def test_following_costs_next_to_nothing_while_nothing_comes(world, journal):
    trial = begin(journal)
    writer = journal.output(trial)
    say(writer, (STDOUT, b"x"))
    command = world.start(["rl", "show", "--output", "--follow"])
    assert command.stdout is not None
    assert os.read(command.stdout.fileno(), 1) == b"x"

    def ticks():
        with open(f"/proc/{command.pid}/stat") as file:
            return sum(map(int, file.read().rpartition(")")[2].split()[11:13]))

    before, began = ticks(), time.monotonic()
    command.poll()
    with pytest.raises(subprocess.TimeoutExpired):
        command.wait(1.0)
    used = (ticks() - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began)
    journal.finish(trial, {"exit_code": 0})
    assert command.wait(300) == 0
    writer.close()
    command.communicate()
    assert used < 0.15


def test_ctrl_c_ends_following_without_a_word(world, journal):
    trial = begin(journal)
    writer = journal.output(trial)
    say(writer, (STDOUT, b"x"))
    command = world.start(["rl", "show", "--output", "--follow"])
    assert command.stdout is not None
    assert os.read(command.stdout.fileno(), 1) == b"x"
    command.send_signal(signal.SIGINT)
    assert command.communicate(timeout=300) == (b"", b"")
    assert command.returncode == 130
    writer.close()


def test_a_reader_that_leaves_early_is_no_error(world, journal):
    for number in range(40):
        finished(journal, (STDOUT, b"x" * 300_000 if number == 0 else b""), note="n" * 50)
    for words in ("log --all --json", "show 1 --output", "log --all"):
        done = world.shell(f"rl {words} | true")
        assert (done.stdout, done.stderr) == ("", ""), words


def test_looking_writes_nothing_where_nothing_was_tried(world):
    outside = world.root / "outside"
    outside.mkdir()
    for words in ("log", "log --verdict failed", "log --json", "gc --dry-run"):
        assert world.shell(f"rl {words}", cwd=outside).returncode == 0
    assert world.shell("rl show", cwd=outside).returncode == 2
    assert list(outside.iterdir()) == []
    assert not world.journal.exists()


def test_a_vanished_directory_gets_one_line(world):
    done = world.shell('mkdir gone && cd gone && rmdir "$PWD" && rl log')
    assert done.returncode == 2
    assert done.stderr.endswith("rl: the current directory is gone   try: cd ~\n")


DAMAGE = [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"when": "soon"}', b'{"format": 99, "when": 1}',
          b'{"when": 1, "command": 3}', b'{"when": 1, "command": [], "code": [1]}', b'{"a" 1}',
          b'{"when": 1, "command": ["x"], "rl": 7}', b'"\\q"']  # fmt: skip


@pytest.mark.parametrize("name", ["start.json", "end.json", "mark.json"])
def test_a_damaged_trial_hides_no_other(world, journal, name):
    for number, damage in enumerate(DAMAGE):
        finished(journal, note=f"whole {number}")
        broken = finished(journal, note="broken")
        with open(os.path.join(broken.path, name), "wb") as file:
            file.write(damage)
    finished(journal, note="the last")
    for words in ("log --all", "log --all --text whole", "log --all --json", "gc --dry-run"):
        done = world.shell(f"rl {words}")
        assert done.returncode == 0, (words, done.stderr)
        assert "Traceback" not in done.stderr
    listed = json.loads(world.shell("rl log --all --json").stdout)["trials"]
    assert len(listed) == 2 * len(DAMAGE) + 1
    assert sum("problem" not in row for row in listed) >= len(DAMAGE) + 1
    for number in range(2, 2 * len(DAMAGE) + 1, 2):
        done = world.shell(f"rl show {number}")
        assert done.returncode in (0, 2)
        assert "Traceback" not in done.stderr


# --- the code of a trial --------------------------------------------------------------------------


def with_code(world, journal, text):
    world.write("t.py", text)
    return finished(journal, code=to_json(take(find_home(str(world.project)))))


def test_back_gives_the_code_beside_the_tree_and_leaves_the_tree_alone(world, journal):
    with_code(world, journal, "one\n")
    with_code(world, journal, "two\n")
    before = world.git("status", "--porcelain")
    done = world.shell('cat "$(rl back 1)/t.py"; rl back 2; rl back 2')
    assert done.stdout == "one\n../project@2\n../project@2\n"
    assert "#2 is still in ../project@2; your tree is untouched" in done.stderr
    assert (world.project / "t.py").read_text() == "two\n"
    assert world.git("status", "--porcelain") == before
    assert sorted(path.name for path in world.root.glob("project*")) == [
        "project",
        "project@1",
        "project@2",
    ]


def test_back_replaces_only_what_it_made_and_nobody_changed(world, journal):
    with_code(world, journal, "one\n")
    with_code(world, journal, "two\n")
    there = world.root / "there"
    assert world.shell("rl back 1 --to ../there").returncode == 0
    assert world.shell("rl back 2 --to ../there").returncode == 0
    assert (there / "t.py").read_text() == "two\n"
    (there / "t.py").write_text("mine\n")
    done = world.shell("rl back 1 --to ../there")
    assert done.returncode == 2
    assert "was changed since it was made for #2" in done.stderr
    (world.root / "other").mkdir()
    (world.root / "other" / "file").write_text("")
    done = world.shell("rl back 1 --to ../other")
    assert done.returncode == 2
    assert "is not ours to replace" in done.stderr
    assert (there / "t.py").read_text() == "mine\n"


def test_back_without_recorded_code_says_so(world, journal):
    finished(journal, code_problem="disk full")
    done = world.shell("rl back 1")
    assert done.returncode == 2
    assert done.stderr == "rl: there is no code of #1: disk full   try: rl show 1\n"


def test_diff_shows_the_lines_that_changed_and_a_patch_that_applies(world, journal):
    with_code(world, journal, "lr = 1e-2\nsame\n")
    with_code(world, journal, "lr = 1e-3\nsame\n")
    said = world.shell("rl diff 1 2").stdout
    assert "t.py:1\n           - lr = 1e-2\n           + lr = 1e-3\n" in said
    world.write("t.py", "lr = 1e-2\nsame\n")
    assert world.shell("rl diff 1 2 --patch | git apply").returncode == 0
    assert (world.project / "t.py").read_text() == "lr = 1e-3\nsame\n"


def test_what_only_one_of_two_commands_could_load_was_not_deleted(world):
    clone = world.root / "clone"
    (clone / "pack").mkdir(parents=True)
    for number in range(3):
        (clone / f"pack/m{number}.py").write_text("x = 1\n")
    (clone / "pyproject.toml").write_text("[project]\nname = 'pack'\nversion = '1'\n")
    world.write("t.py", "print(1)\n")
    world.write("relaunch.toml", "[record]\nalso = ['editable']\n")
    world.commit()
    world.rl("--", sys.executable, "t.py", env={"PYTHONPATH": str(clone)})
    world.rl("--", "echo", "1", env={"PYTHONPATH": ""})
    world.write("t.py", "print(2)\n")
    world.rl("--", "echo", "1", env={"PYTHONPATH": ""})
    for old, new in (("1", "2"), ("2", "1"), ("1", "3")):
        said = world.rl("diff", old, new).stdout
        assert f"{clone}   part of #1 only\n" in said
        assert "deleted" not in said
        assert "m1.py" not in said
        assert "packages  not known of #" in said
        found = json.loads(world.rl("diff", "--json", old, new).stdout)
        assert {"path": str(clone), "trial": "1"} in found["code"]["apart"]
        assert found["code"]["same"] is False
        assert found["packages_unknown"] == [next(one for one in (old, new) if one != "1")]
    assert "print(2)" in world.rl("diff", "1", "3").stdout
    patch = world.rl("diff", "--patch", "1", "3")
    assert f"rl: not in the patch: {clone}, part of #1 only" in patch.stderr
    assert "packages" not in world.rl("diff", "2", "3").stdout


def test_folders_in_another_order_are_told_and_a_python_without_packages_is_known(world):
    for name in ("a", "b"):
        world.write(f"../{name}/pack/__init__.py", "x = 1\n")
        world.write(f"../{name}/pyproject.toml", "[project]\nname = 'pack'\nversion = '1'\n")
    world.write("t.py", "print(1)\n")
    world.write("relaunch.toml", "[record]\nalso = ['editable']\n")
    (world.project / ".venv/bin").mkdir(parents=True)
    real = os.path.realpath(sys.executable)
    (world.project / ".venv/bin/python").symlink_to(real)
    (world.project / ".venv/pyvenv.cfg").write_text(f"home = {os.path.dirname(real)}\n")
    world.write(".gitignore", ".venv\n")
    world.commit()
    a, b = (str(world.root / name) for name in ("a", "b"))
    world.rl("--", ".venv/bin/python", "t.py", env={"PYTHONPATH": f"{a}:{b}"})
    world.rl("--", ".venv/bin/python", "t.py", env={"PYTHONPATH": f"{b}:{a}"})
    said = world.rl("diff", "1", "2").stdout
    assert "folders outside the project are looked through in another order" in said
    assert "not known" not in said
    found = json.loads(world.rl("diff", "--json", "1", "2").stdout)
    assert (found["code"]["same"], found["code"]["other_order"]) == (False, True)
    assert found["packages_unknown"] == []


def test_of_many_files_the_first_are_shown_and_how_many_there_are(world):
    world.write("t.py", "print(1)\n")
    world.commit()
    world.rl("--", sys.executable, "t.py")
    for number in range(100):
        world.write(f"new{number:03}.py", "x = 1\n")
    world.rl("--", sys.executable, "t.py")
    said = world.rl("diff", "1", "2").stdout
    assert said.count("new, +1 -0") == 40
    assert "... and 60 more files: --stat lists them, --patch has all" in said
    assert world.rl("diff", "1", "2", "--stat").stdout.count(" +1 -0") == 100


def test_gc_forgets_old_trials_and_keeps_the_code_of_the_others(world, journal):
    for number in range(1, 6):
        with_code(world, journal, f"{number}\n")
    world.shell("rl mark 2 good")
    done = world.shell("rl gc --older 0s")
    assert done.returncode == 0
    assert "gone: 3 trials (#1, #3-#4)" in done.stderr
    assert sorted(os.listdir(journal.trials)) == ["2", "5"]
    for number in (2, 5):
        done = world.shell(f'cat "$(rl back {number})/t.py"')
        assert done.stdout == f"{number}\n"
    assert world.shell("rl back 1").returncode == 2


def test_killing_gc_at_any_moment_loses_no_trial_that_was_to_stay(world, journal):
    for number in range(1, 101):
        finished(journal, (STDOUT, b"x" * 5000))
        if number % 10 == 0:
            journal.set_mark(journal.load(str(number)), {"verdict": "good"})
    kept = [str(number) for number in range(10, 101, 10)]
    for delay in (0.03, 0.06, 0.07, 0.08, 0.1, 0.12):
        command = world.start(["rl", "gc", "--older", "0s"])
        try:
            command.wait(delay)
        except subprocess.TimeoutExpired:
            command.kill()
        command.communicate()
        ids = journal.ids()
        assert [trial_id for trial_id in kept if trial_id not in ids] == []
        for trial_id in ids:
            assert journal.load(trial_id).end is not None
    assert world.shell("rl gc --older 0s").returncode == 0
    assert sorted(os.listdir(journal.trials), key=int) == kept


def test_the_plain_listing_imports_nothing_dear(world, journal):
    for number in range(30):
        finished(journal, note=f"attempt {number}")
    done = world.shell(f"{sys.executable} -X importtime -m relaunch log")
    assert done.stdout.count("attempt") == 20
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    dear = {"re", "json", "enum", "argparse", "typing", "dataclasses", "datetime", "sqlite3",
            "subprocess", "shutil", "pathlib", "shlex", "signal", "difflib"}  # fmt: skip
    assert "relaunch.cli.log" in imported
    assert dear & imported == set()


def test_listing_while_others_begin_and_end_trials_always_works(world, journal):
    code = (
        "import sys; from relaunch.journal.store import Journal\n"
        "journal = Journal(sys.argv[1])\n"
        "for n in range(60):\n"
        "    trial = journal.begin({'command': ['true'], 'note': 'n'}, identity='i' * (n % 3))\n"
        "    journal.finish(trial, {'exit_code': 0})\n"
    )
    writers = [world.start([sys.executable, "-c", code, str(world.journal)]) for _ in range(4)]
    while any(writer.poll() is None for writer in writers):
        for words in ("log", "log --verdict passed --all", "show", "gc --dry-run --older 0s"):
            done = world.shell(f"rl {words}")
            early = "there are none yet" in done.stderr
            assert done.returncode == 0 or early, (words, done.stderr)
            assert "unreadable" not in done.stdout
    for writer in writers:
        assert writer.communicate()[1] == b""
    assert len(json.loads(world.shell("rl log --all --json").stdout)["trials"]) == 240


def test_following_shows_the_end_of_a_flood_that_stalls(world):
    program = "import os, sys; os.write(1, b'x' * 8000); sys.stdin.readline()"
    process = world.start(["rl", "-q", "--", sys.executable, "-c", program], stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    while sum(p.stat().st_size for p in world.journal.glob("trials/1/output.0")) < 8000:
        assert process.poll() is None
    follower = world.start(["rl", "show", "1", "--output", "--follow"])
    assert follower.stdout is not None
    assert follower.stdout.read(8000) == b"x" * 8000
    process.communicate(b"\n", timeout=300)
    assert follower.communicate(timeout=300)[0] == b""


def test_a_live_trial_in_a_container_is_neither_ended_nor_called_killed(world, journal):
    container = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    needs("unshare")
    if subprocess.run([*container, "true"], capture_output=True).returncode:
        pytest.skip("this machine allows no namespaces")
    program = "echo up; read word; exit 7"
    rl = [sys.executable, "-m", "relaunch", "-q", "--", "sh", "-c", program]
    inside = world.start([*container, *rl], stdin=subprocess.PIPE)
    assert inside.stdout is not None
    assert inside.stdout.readline() == b"up\n"
    ran = world.rl("--", "true")
    assert "killed" not in ran.stderr
    assert journal.load("1").running
    assert journal.unfinished() == ["1"]
    inside.communicate(b"go\n", timeout=300)
    assert inside.returncode == 7
    assert journal.load("1").end["exit_code"] == 7


@pytest.mark.parametrize("odd", ["{}", '{"rl": 7}', '{"rl": {}}', '{"rl": {"host": 1, "pid": {}}}'])
def test_an_odd_record_of_a_running_trial_stops_no_run(world, journal, odd):
    trial = begin(journal)
    with open(os.path.join(trial.path, "start.json"), "w") as file:
        file.write(odd)
    ran = world.rl("--", "true")
    assert (ran.returncode, "fault" in ran.stderr) == (0, False)
    assert journal.load("2").end["exit_code"] == 0


WAYS_OUT = ("up", "through a link")


@pytest.mark.parametrize("way", WAYS_OUT)
def test_a_trial_that_came_along_writes_and_removes_nothing_outside_of_what_rl_makes(
    world: World, way: str
):
    precious = world.root / "precious"
    precious.mkdir()
    (precious / "mine").write_text("mine\n")
    (world.project / "link").symlink_to(precious)
    world.commit()
    world.write("planted", "planted\n")
    world.rl("--", "true")
    start = world.journal / "trials/1/start.json"
    told = json.loads(start.read_text())
    [root] = told["code"]["roots"]
    up = os.path.relpath(precious, world.journal / "frozen/1/tree")
    for out in (f"/{up}", "/../precious") if way == "up" else ("/link/mine", "/link/more"):
        told["code"]["roots"].append({**root, "path": root["path"] + out})
    root["empty_dirs"] = ["../precious/empty", f"{precious}/empty"]
    start.write_text(json.dumps(told))
    for words in (("back", "1"), ("again", "1"), ("again", "1")):
        done = world.rl(*words)
        assert "internal fault" not in done.stderr, done.stderr
    assert os.listdir(precious) == ["mine"]
    assert (precious / "mine").read_text() == "mine\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_code_is_not_given_back_into_a_folder_that_another_user_made_before(world: World):
    world.write("train.py", "print(1)\n")
    world.rl("--", "true")
    to = world.root / "back"
    line = 'mkdir "$0.new-$$" && chown 54321 "$0.new-$$" && exec "$@" -m relaunch back 1 --to "$0"'
    done = world.start(["sh", "-c", line, str(to), sys.executable])
    _, err = done.communicate(timeout=PATIENCE_S)
    assert done.returncode == 0, err
    assert (to / "train.py").read_text() == "print(1)\n"
    assert to.stat().st_uid == 0


def test_the_index_of_a_copy_that_came_along_removes_nothing_outside_of_the_copy(world: World):
    precious = world.root / "precious/file"
    precious.parent.mkdir()
    precious.write_text("mine\n")
    world.write("train.py", "print(1)\n")
    world.commit()
    world.rl("--frozen", "--", "true")
    copy = world.journal / "frozen/1"
    [index] = copy.glob("index-*")
    found = index.read_bytes()
    name = os.path.relpath(precious, copy / "tree").encode()
    entry = struct.pack(">10I20sH", *[0] * 6, 0o100644, 0, 0, 0, found[52:72], len(name)) + name
    entry += bytes(8 - len(entry) % 8)
    [count] = struct.unpack(">I", found[8:12])
    # Entries are sorted: one that begins with a dot is before `train.py`.
    planted = found[:8] + struct.pack(">I", count + 1) + entry + found[12:-20]
    index.write_bytes(planted + sha1(planted).digest())
    world.write("train.py", "print(2)\n")
    assert world.rl("--frozen", "--", "true").returncode == 0
    assert precious.read_text() == "mine\n"
    assert (copy / "tree/train.py").read_text() == "print(2)\n"


@pytest.mark.parametrize(
    ("line", "env", "within"),
    [
        ("log --json", {}, ""),
        ("show 1", {"COLUMNS": "60"}, ""),
        ("show @bad --color always", {}, "inner"),
        ("show 99", {}, ""),
        ("show --nope", {}, ""),
        ("diff 1 2", {"RELAUNCH_DEBUG": "1"}, ""),
        ("log --help", {}, "inner"),
        ("log", {"PYTHONIOENCODING": "latin-1"}, ""),
    ],
)
def test_tests_see_of_a_verb_that_reads_what_a_process_of_its_own_says(world, line, env, within):
    """It is a fork of one that has imported it: see `tests.reading`."""
    (world.project / "inner").mkdir()
    for code in (0, 3):
        world.rl("--", sys.executable, "-c", f"print('\u2713 {code}'); raise SystemExit({code})")
    words = (sys.executable, "-m", "relaunch", *line.split())
    plain = world.shell(shlex.join(words), env=env, cwd=world.project / within)
    forked = world.rl(*line.split(), env=env, cwd=world.project / within)
    assert (forked.args[0] == "rl") == ("PYTHONIOENCODING" not in env)
    assert forked.returncode == plain.returncode
    ages = re.compile(r"\d+ ?s\b|\d+\.\d+")
    assert ages.sub("_", forked.stdout) == ages.sub("_", plain.stdout)
    assert ages.sub("_", forked.stderr) == ages.sub("_", plain.stderr)
