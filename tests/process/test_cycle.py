"""The atomic cycle, from outside: put rl in front of a command, edit, and go again."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from relaunch.textfile import make_own_folder

FAILING = """\
import sys
loss = float("nan")
print("step 20 loss", loss)
def check(loss):
    if loss != loss:
        raise ValueError("loss is nan")
check(loss)
"""


@pytest.fixture
def train(world):
    world.write("train.py", FAILING)
    world.commit("train")
    return world


def python(world, *words, **options):
    return world.rl(*words, "--", sys.executable, "train.py", **options)


def start_of(world, trial_id):
    return json.loads((world.journal / "trials" / trial_id / "start.json").read_text())


def end_of(world, trial_id):
    return json.loads((world.journal / "trials" / trial_id / "end.json").read_text())


def test_output_and_exit_code_are_the_programs_own(train):
    bare = subprocess.run(
        [sys.executable, "train.py"],
        cwd=train.project,
        env=train.env,
        capture_output=True,
        text=True,
    )
    ran = python(train, "-q")
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, bare.stdout, bare.stderr)


def test_the_two_lines_say_which_code_and_what_failed(train):
    ran = python(train, "-m", "does it fail at all?")
    first, *_, last = [line for line in ran.stderr.splitlines() if "rl #1" in line]
    base = train.git("rev-parse", "--short=7", "HEAD").strip()
    assert first == f'rl #1  base {base}   "does it fail at all?"'
    assert last.startswith("rl #1  exit 1 in ")
    assert "train.py:6 ValueError: loss is nan" in ran.stderr


def test_bare_rl_repeats_reset_and_command_with_the_current_code(train):
    python(train, "--reset", "echo again >> resets")
    train.write("train.py", "print('step 20 loss 0.5')\n")
    ran = train.rl("-m", "fixed")
    assert (ran.returncode, ran.stdout) == (0, "step 20 loss 0.5\n")
    assert (train.project / "resets").read_text() == "again\nagain\n"
    assert "train.py +1 -7" in ran.stderr
    assert "gone: #1" in ran.stderr
    assert start_of(train, "2")["note"] == "fixed"


def test_the_same_attempt_says_so_first_and_becomes_a_repeat(train):
    python(train)
    ran = python(train)
    assert "rl #1.2  identical to #1 (code, command, set, env)" in ran.stderr
    assert "same failure as #1" in ran.stderr
    train.write("train.py", FAILING + "\n")
    assert "rl #2 " in python(train).stderr
    assert "rl #3 " in python(train, env={"OMP_NUM_THREADS": "1"}).stderr


def test_other_packages_make_another_attempt(train, tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    words = ["--", str(venv / "bin" / "python"), "train.py"]
    site = next(venv.glob("lib/python3*/site-packages"))
    (site / "pack-1.0.dist-info").mkdir()
    assert "rl #1 " in train.rl(*words).stderr
    assert "rl #1.2 " in train.rl(*words).stderr
    (site / "pack-1.0.dist-info").rename(site / "pack-2.0.dist-info")
    assert "rl #2 " in train.rl(*words).stderr
    assert "pack" in train.rl("diff", "1", "2").stdout


def test_the_code_of_an_editable_install_is_kept_too(train, tmp_path):
    library = tmp_path / "library"
    (library / "src").mkdir(parents=True)
    (library / "pyproject.toml").write_text("[project]\nname = 'lib'\nversion = '1'\n")
    (library / "src" / "lib.py").write_text("VALUE = 'then'\n")
    train.git("init", "-q", cwd=library)
    train.git("add", "-A", cwd=library)
    train.git("commit", "-q", "-m", "start", cwd=library)
    before = {p: p.stat().st_mtime_ns for p in (library / ".git").rglob("*")}
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    site = next(venv.glob("lib/python3*/site-packages"))
    (site / "__editable__.lib-1.pth").write_text(f"{library / 'src'}\n")
    train.settings("")
    train.write("train.py", "import lib; print(lib.VALUE)\n")
    words = ["--", str(venv / "bin" / "python"), "train.py"]
    assert train.rl(*words).stdout == "then\n"
    (library / "src" / "lib.py").write_text("VALUE = 'now'\n")
    assert train.rl("again", "1").stdout == "then\n"
    ran = train.rl(*words)
    assert (ran.stdout, "rl #2 " in ran.stderr) == ("now\n", True)
    assert {p: p.stat().st_mtime_ns for p in (library / ".git").rglob("*")} == before


def test_resets_stop_at_the_first_failure_and_the_attempt_is_kept(train):
    ran = python(train, "--reset", "false", "--reset", "touch second")
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert not (train.project / "second").exists()
    assert "not started" in ran.stderr
    assert end_of(train, "1")["not_started"]
    ran = python(train, "--reset", "false", "--reset", "touch second", "--reset-continue")
    assert ran.returncode == 1
    assert (train.project / "second").exists()


def test_a_reset_may_be_an_argv(train):
    name = "a b; touch gotcha"
    python(train, "--reset", json.dumps(["touch", name]))
    assert (train.project / name).exists()
    assert not (train.project / "gotcha").exists()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGINT"])
def test_killed_by_a_signal_rl_dies_of_the_same(world, name):
    number = getattr(signal, name)
    ran = world.rl("--", "sh", "-c", f"kill -{name[3:]} $$")
    assert ran.returncode == -number
    assert end_of(world, "1")["signal"] == number


def test_a_new_failure_a_known_one_and_a_gone_one_are_told_apart(train):
    python(train)
    train.write("train.py", "\n\n" + FAILING)  # other lines, same failure
    assert "same failure as #1" in python(train).stderr
    train.write("train.py", "raise KeyError('other')\n")
    assert "NEW failure" in python(train).stderr
    train.write("train.py", "print('fine')\n")
    assert "gone: #3" in python(train).stderr


def test_until_times_the_critical_point(world):
    words = ("rl", "--until", "ready", "--", "sh", "-c", "echo ready; read go")
    running = world.start(list(words), stdin=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stdout.readline() == b"ready\n"
    shown = time.monotonic()
    while time.monotonic() < shown + 0.1:
        pass  # the program does nothing either
    assert running.communicate(b"go\n")[0] == b""
    assert running.returncode == 0
    end = end_of(world, "1")
    assert 0 < end["critical_s"] <= end["duration_s"] - 0.1


def test_metrics_are_read_from_the_output(train):
    train.write("relaunch.toml", "[metrics]\nloss = 'loss (\\S+)'\n")
    python(train)
    assert end_of(train, "1")["metrics"] == {"loss": "nan"}


def test_edits_during_the_run_are_reported(train):
    ran = train.rl("--", "sh", "-c", "echo '# new' >> train.py")
    assert "train.py changed while it ran" in ran.stderr
    assert end_of(train, "1")["code_changed"] == ["train.py"]


def test_a_match_pins_the_failure_although_the_exit_is_zero(world):
    ran = world.rl("--match", "loss is nan", "--", "echo", "loss is nan")
    assert ran.returncode == 0
    assert end_of(world, "1")["signature"]["kind"] == "pinned"


def test_a_timeout_ends_the_tree_with_124(world):
    ran = world.rl("--timeout", "0.3", "--", "sh", "-c", "sleep 100 & sleep 100")
    assert ran.returncode == 124
    assert end_of(world, "1")["timed_out"]


def test_outside_git_everything_works_from_a_private_repository(world, tmp_path):
    folder = tmp_path / "loose"
    folder.mkdir()
    (folder / "train.py").write_text(FAILING)
    ran = world.rl("--", sys.executable, "train.py", cwd=folder)
    assert ran.returncode == 1
    (folder / "train.py").write_text("print(1)\n")
    ran = world.rl(cwd=folder)
    assert ran.returncode == 0
    assert "train.py +1 -7" in ran.stderr
    assert sorted(p.name for p in folder.iterdir()) == [".relaunch", "train.py"]


@pytest.mark.parametrize("words", [["--", "true"], ["repeat", "2", "--", "true"]])
def test_a_journal_in_the_tree_is_never_staged(world, tmp_path, words):
    folder = tmp_path / "loose"
    folder.mkdir()
    world.rl(*words, cwd=folder)
    world.git("init", "-q", "--template=", cwd=folder)
    world.git("add", "-A", cwd=folder)
    assert (folder / ".relaunch").is_dir()
    assert not [path for path in world.git("ls-files", cwd=folder).split() if "relaunch" in path]


def test_an_older_journal_in_the_tree_is_kept_from_git_at_the_next_trial(world, tmp_path):
    folder = tmp_path / "loose"
    folder.mkdir()
    world.rl("--", "true", cwd=folder)
    (folder / ".relaunch" / ".gitignore").unlink()
    world.rl("--", "true", cwd=folder)
    assert (folder / ".relaunch" / ".gitignore").read_text() == "*\n"


def test_an_emptied_list_is_written_again_and_a_persons_own_one_stays(tmp_path):
    folder = tmp_path / ".relaunch"
    folder.mkdir(mode=0o755)
    for before, after in (("", "*\n"), ("!keep\n", "!keep\n")):
        (folder / ".gitignore").write_text(before)
        folder.chmod(0o755)
        make_own_folder(str(folder))
        assert (folder / ".gitignore").read_text() == after
        assert folder.stat().st_mode & 0o777 == 0o700


def test_in_a_worktree_the_journal_is_shared_and_the_last_command_is_its_own(train, tmp_path):
    other = tmp_path / "other"
    train.git("worktree", "add", "-q", str(other))
    train.rl("--", "echo", "main")
    train.rl("--", "echo", "other", cwd=other)
    assert train.rl().stdout == "main\n"
    assert train.rl(cwd=other).stdout == "other\n"


def test_bare_rl_in_a_subdirectory_runs_where_the_command_ran(train):
    (train.project / "sub").mkdir()
    train.rl("--", "pwd")
    assert train.rl(cwd=train.project / "sub").stdout.strip() == str(train.project)


def test_a_process_that_outlives_the_program_is_ended_and_named(world):
    ran = world.rl("--", "sh", "-c", "setsid sleep 1000 & echo $!")
    pid = int(ran.stdout)
    assert not os.path.exists(f"/proc/{pid}")
    assert "that outlived it" in ran.stderr
    ran = world.rl("--let-live", "--", "sh", "-c", "setsid sleep 1000 > /dev/null 2>&1 & echo $!")
    os.kill(int(ran.stdout), signal.SIGKILL)


def test_json_lines_say_it_all_on_standard_error(train):
    ran = python(train, "--json")
    lines = [json.loads(line) for line in ran.stderr.splitlines() if line.startswith("{")]
    assert [line["event"] for line in lines] == ["announced", "finished"]
    assert lines[1]["outcome"]["signature"]["title"].endswith("ValueError: loss is nan")
    assert {line["schema"] for line in lines} == {"relaunch/run/1"}


def test_two_ways_to_write_it_mean_the_same(train):
    assert train.rl("run", "--", "echo", "x").stdout == "x\n"
    assert train.rl("run").stdout == "x\n"


def test_a_reset_that_changes_the_code_is_kept_as_it_ran(train):
    train.write("train.py", "print('edited')\n")
    train.rl("--reset", "git checkout -q train.py", "--", sys.executable, "train.py")
    assert "ValueError" in end_of(train, "1")["signature"]["title"]
    assert start_of(train, "1")["code"]["roots"][0].get("changed", []) == []
    back = train.rl("back", "1").stdout.strip()
    assert (train.project / back / "train.py").read_text() == FAILING


def test_output_that_cannot_be_passed_on_is_said(world):
    ran = world.shell("rl -- echo hello > /dev/full")
    assert "not all output could be passed on: No space left on device" in ran.stderr
    assert ran.returncode == 1
    assert end_of(world, "1")["exit_code"] == 0
    assert world.rl("show", "1", "--output").stdout == "hello\n"


@pytest.mark.parametrize(
    "words", ["log", "log --json", "log --all", "show", "show --json", "show --output", "--help"]
)
@pytest.mark.parametrize(
    ("end", "why"), [("> /dev/full", "No space left on device"), (">&-", "it is closed")]
)
def test_a_report_that_cannot_be_written_is_said_and_counts(world, words, end, why):
    world.rl("--", "echo", "hello")
    done = world.shell(f"rl {words} {end}")
    assert (done.returncode, done.stderr) == (1, f"rl: standard output cannot be written: {why}\n")


def test_what_cannot_be_said_on_a_full_standard_error_leaves_the_exit_code(world):
    done = world.shell("rl show 7 2> /dev/full")
    assert (done.returncode, done.stderr) == (2, "")


def test_with_closed_standard_streams_the_record_is_still_whole(world):
    world.shell("rl -- sh -c 'echo lost >&2' >&- 2>&- <&-")
    assert json.loads(world.rl("show", "1", "--json").stdout)
    assert end_of(world, "1")["duration_s"] >= 0


def test_what_waits_in_standard_input_is_for_the_program_not_for_the_reset(world):
    ran = world.rl("--reset", "cat > eaten", "--", "cat", input="data")
    assert ran.stdout == "data"
    assert (world.project / "eaten").read_text() == ""


def test_what_a_reset_starts_serves_the_trial_and_ends_with_it(world):
    reset = "setsid sleep 1000 > /dev/null 2>&1 & echo $! > service"
    ran = world.rl("--reset", reset, "--", "sh", "-c", "kill -0 $(cat service) && echo up")
    assert ran.stdout == "up\n"
    pid = int((world.project / "service").read_text())
    assert not os.path.exists(f"/proc/{pid}")
    assert "that outlived it" in ran.stderr


def test_a_reset_that_changes_the_code_otherwise_is_not_called_identical(train):
    words = ["--reset", "cp ../next train.py", "--", sys.executable, "train.py"]
    start = (train.project / "train.py").read_text()
    following = train.project.parent / "next"
    following.write_text("print(1)\n")
    train.rl(*words)
    train.write("train.py", start)
    following.write_text("print(2)\n")
    ran = train.rl(*words)
    assert ran.stdout == "2\n"
    assert "after the reset the code is not that of #1" in ran.stderr


def test_an_odd_failure_keeps_the_exit_code_of_the_program(world):
    program = "raise ValueError(chr(0xd800) + ' x')"
    ran = world.rl("--", sys.executable, "-c", program)
    assert ran.returncode == 1
    assert end_of(world, "1")["exit_code"] == 1
    assert world.rl().returncode == 1


def test_odd_but_readable_files_of_other_trials_do_no_harm(train):
    python(train)
    python(train)
    (train.journal / "trials" / "1" / "end.json").write_text('{"signature": {"no": 1}}')
    (train.journal / "trials" / "1.2" / "end.json").write_text("{}")
    ran = python(train)
    assert ran.returncode == 1
    assert "internal fault" not in ran.stderr


def test_until_may_be_more_than_ascii(world):
    ran = world.rl("--until", r"\u2713 done", "--", "printf", "\u2713 done\\n")
    assert ran.returncode == 0
    assert end_of(world, "1")["critical_s"] is not None


def test_one_more_variable_on_a_repeat_keeps_the_others(world):
    world.rl("--env", "LR=3", "--env", "BS=4", "--", "sh", "-c", "echo $LR $BS")
    assert world.rl("--env", "BS=5").stdout == "3 5\n"


def test_output_beyond_the_limit_keeps_its_beginning_and_its_end(world):
    world.write("relaunch.toml", '[record]\nmax_output = "1 MiB"\n')
    program = "for n in range(400_000): print(f'line {n:06}')"
    world.rl("-q", "--", sys.executable, "-c", program)
    kept = world.rl("show", "1", "--output").stdout
    assert kept.startswith("line 000000\n")
    assert kept.endswith("line 399999\n")
    assert len(kept) < 1_200_000


def test_what_editors_and_caches_leave_behind_is_no_edit(train):
    python(train)
    for name in (".train.py.swp", "train.py~", "__pycache__/train.cpython-311.pyc"):
        train.write(name, "noise")
    os.symlink("someone@host.1:2", train.project / ".#train.py")
    assert "rl #1.2 " in python(train).stderr


def test_failures_without_words_are_the_same_only_under_one_command(world):
    world.rl("--", "false")
    assert "same failure" not in world.rl("--", "sh", "-c", "exit 1").stderr
    assert "same failure as #2" in world.rl("--", "sh", "-c", "exit 1").stderr


def test_bare_rl_says_what_else_it_repeats(train):
    (train.project / "sub").mkdir()
    train.rl("--env", "LR=3", "--timeout", "30", "--", "true")
    ran = train.rl(cwd=train.project / "sub")
    assert "$ true LR=3 in .. timeout 30 s" in " ".join(ran.stderr.split())


def test_a_program_that_cannot_be_started_is_not_tried_again_and_again(world):
    assert world.rl("-n", "3", "--", "./nosuch").returncode == 127
    assert not (world.journal / "trials" / "2").exists()


def test_history_goes_by_command_however_much_lies_between(train):
    python(train)
    for n in range(12):
        train.rl("-q", "--", "echo", str(n))
    train.write("train.py", "print('fine')\n")
    assert "gone: #1 ValueError: loss is nan" in python(train).stderr


def test_a_journal_that_cannot_be_written_can_still_be_read(train):
    python(train)
    if os.geteuid() == 0:
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if subprocess.run([*words, sys.executable, "-c", ""], capture_output=True).returncode:
            pytest.skip("another user cannot run this Python")
        for path in (train.root, *train.root.parents):
            if path.stat().st_mode & 0o055 != 0o055 and str(path).startswith("/tmp/"):
                path.chmod(path.stat().st_mode | 0o055)
        subprocess.run(["chmod", "-R", "a+rX", train.journal], check=True)
        config = train.home / ".config/relaunch/config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(f"[trust]\nfolders = ['{train.project}']\n")
    else:
        words = []
        subprocess.run(["chmod", "-R", "a-w", train.journal], check=True)
    done = subprocess.run(
        [*words, sys.executable, "-m", "relaunch", "log"],
        cwd=train.project, env=train.env, capture_output=True, text=True,
    )  # fmt: skip
    assert "ValueError: loss is nan" in done.stdout, done.stderr


def test_rl_in_rl_records_the_same_code(train):
    train.settings("")
    words = ["-q", "--", "rl", "--", sys.executable, "train.py"]
    train.rl(*words)
    kinds = [root["kind"] for root in start_of(train, "2")["code"]["roots"]]
    assert "pythonpath" not in kinds


def test_what_is_remembered_is_for_its_owner_alone(train):
    python(train)
    assert train.journal.stat().st_mode & 0o077 == 0
    files = [path for path in train.journal.glob("trials/1/*") if path.is_file()]
    assert files
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)
