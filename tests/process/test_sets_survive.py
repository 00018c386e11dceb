"""Config sets under constant readers, many trials at once, and SIGKILL at every line."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.supervising import wait_until

from relaunch.trial.place.hold import HeldSet, Lock, repair_sets
from relaunch.trial.place.setedit import new_set, use_set
from relaunch.trial.place.sets import find_sets, read_state, set_names

DEADLINE_S = 300.0

# Forks a child per round; the child counts the lines it runs in our modules and kills itself at
# one of them. What it leaves is repaired and looked at by the parent.
KILLER = """
import os, shutil, signal, sys
from relaunch.trial.place import hold, setedit, sets

deed, kind, fallback, root = sys.argv[1:]
if fallback == "renames":
    setedit.exchange = lambda one, other: False
OURS = {module.__file__ for module in (hold, setedit, sets)} | {shutil.__file__}
journal = os.path.join(root, "journal")
conf = os.path.join(root, "conf")
quiet = lambda line: None

def found(name="conf"):
    configured = {"conf": "conf@*", "data": "data@*"} if deed != "new" else {"conf": "conf@*"}
    return sets.find_sets(root, configured=configured, journal=journal)

def write(path, text):
    if kind == "folder":
        os.makedirs(path)
        path = os.path.join(path, "a.yaml")
    with open(path, "w") as file:
        file.write(text)

def read(path):
    with open(os.path.join(path, "a.yaml") if kind == "folder" else path) as file:
        return file.read()

def prepare():
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    write(conf, "the original")
    if deed != "new":
        write(os.path.join(root, "data"), "the original")
        setedit.new_set(found(), "other", journal=journal, tell=quiet)
        for name in ("conf@other", "data@other"):
            shutil.rmtree(os.path.join(root, name)) if kind == "folder" else None
            if kind == "file":
                os.unlink(os.path.join(root, name))
            write(os.path.join(root, name), "the other")

def act():
    if deed == "new":
        setedit.new_set(found(), "other", journal=journal, tell=quiet)
    elif deed == "use":
        setedit.use_set(found(), "other", journal=journal, tell=quiet)
    else:
        with hold.HeldSet(found(), "other", journal=journal):
            assert read(conf) == read(os.path.join(root, "data")) == "the other"

def child(at):
    lines = 0
    def trace(frame, event, arg):
        nonlocal lines
        if frame.f_code.co_filename not in OURS:
            return None
        if event == "line":
            lines += 1
            if lines == at:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace
    sys.settrace(trace)
    act()
    os._exit(0)

def look():
    names = sorted(name for name in os.listdir(root) if name != "journal")
    assert not [name for name in names if name.endswith(".rl-link")], names
    if deed == "new":
        assert read(conf) == "the original", names
        return
    texts = [read(conf), read(os.path.join(root, "data"))]
    assert texts[0] == texts[1], texts
    if deed == "hold":
        assert texts[0] == "the original", texts
    assert read(conf + "@base") == "the original"
    assert read(conf + "@other") == "the other"

prepare()
rounds = 0
while True:
    rounds += 1
    if deed == "new":
        prepare()
    pid = os.fork()
    if pid == 0:
        child(rounds)
    status = os.waitpid(pid, 0)[1]
    assert status in (0, signal.SIGKILL), (rounds, status)
    hold.repair_sets(journal)
    assert not sets.read_state(journal)
    look()
    if deed == "new":  # and it can be done again, to the end
        if "other" not in sets.set_names(found()):
            setedit.new_set(found(), "other", journal=journal, tell=quiet)
        assert sorted(os.listdir(root)) == ["conf", "conf@base", "conf@other", "journal"]
        assert read(conf + "@other") == read(conf + "@base") == "the original"
        assert os.readlink(conf) == "conf@base"
    elif deed == "use":
        setedit.use_set(found(), "base", journal=journal, tell=quiet)
        look()
    if status == 0:
        break
print(rounds)
"""


@pytest.mark.parametrize(
    ("deed", "kind", "way"),
    [
        ("new", "folder", "exchange"),
        ("new", "folder", "renames"),
        ("new", "file", "exchange"),
        ("new", "file", "renames"),
        ("use", "folder", "exchange"),
        ("hold", "folder", "exchange"),
        ("hold", "file", "exchange"),
    ],
)
def test_a_kill_at_any_line_loses_nothing_and_is_repaired(
    tmp_path: Path, deed: str, kind: str, way: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLER, deed, kind, way, str(tmp_path / "project")],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S * 3,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 60


def project_with_sets(root: Path, names: tuple[str, ...] = ("a", "b", "c")) -> Path:
    """Two links that move together; every file of a set says the set's name."""
    project = root / "project"
    for name in names:
        for link in ("conf", "data"):
            folder = project / f"{link}@{name}"
            folder.mkdir(parents=True)
            for file in ("one.txt", "two.txt"):
                (folder / file).write_text(name)
    for link in ("conf", "data"):
        (project / link).symlink_to(f"{link}@{names[0]}")
    return project


FLICKER = """
import os, sys
while True:
    os.symlink("conf@a", sys.argv[1])
    os.unlink(sys.argv[1])
"""


def test_sets_are_found_while_another_link_comes_and_goes(tmp_path: Path) -> None:
    project = project_with_sets(tmp_path)
    words = [sys.executable, "-c", FLICKER, str(project / ".conf.new")]
    with subprocess.Popen(words) as other:
        try:
            wait_until((project / ".conf.new").is_symlink)
            found = [find_sets(str(project), configured={}) for _ in range(5000)]
        finally:
            other.kill()
    assert {len(sets.links) for sets in found} == {2}


READER = """
import os, sys
from relaunch.trial.place.hold import HeldSet
from relaunch.trial.place.sets import find_sets

project, journal, stop, name = sys.argv[1:]
files = [os.path.join(project, link, file) for link in ("conf", "data")
         for file in ("one.txt", "two.txt")]
rounds = 0
while rounds < 4 or not os.path.exists(stop):
    if name == "free":  # holds nothing, and still must always find the files
        for file in files:
            open(file).close()
    else:
        sets = find_sets(project, configured={}, journal=journal)
        with HeldSet(sets, name, journal=journal, label="#1"):
            for _ in range(30):
                texts = {open(file).read() for file in files}
                assert texts == {name or "a"}, (name, texts)
    rounds += 1
    if rounds == 1:
        print("reads", flush=True)
"""


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_trials_at_once_never_mix_sets_and_readers_never_miss_a_file(tmp_path: Path) -> None:
    project = project_with_sets(tmp_path)
    stop = tmp_path / "stop"
    words = [str(project), str(tmp_path / "journal"), str(stop)]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", READER, *words, name],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b", "b", "c", "", "free")
    ]
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()
    time.sleep(3)  # the length of the test, not a wait for anything
    stop.touch()
    for process in running:
        _, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, err
    assert os.readlink(project / "conf") == "conf@a"
    assert os.readlink(project / "data") == "data@a"


def test_a_set_put_to_use_under_a_constant_reader_is_never_missing(tmp_path: Path) -> None:
    project = project_with_sets(tmp_path)
    journal = str(tmp_path / "journal")
    stop = tmp_path / "stop"
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, str(project), journal, str(stop), "free"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    sets = find_sets(str(project), configured={}, journal=journal)
    assert reader.stdout is not None
    assert reader.stdout.readline() == "reads\n"
    for turn in range(400):
        use_set(sets, "abc"[turn % 3], journal=journal, tell=lambda line: None)
    stop.touch()
    _, err = reader.communicate(timeout=DEADLINE_S)
    assert reader.returncode == 0, err


HOLDER = """
import sys
from relaunch.trial.place.hold import HeldSet
from relaunch.trial.place.sets import find_sets

project, journal, name = sys.argv[1:]
sets = find_sets(project, configured={}, journal=journal)
with HeldSet(sets, name, journal=journal, label="#12", tell=lambda line: print(line, flush=True)):
    print("held", flush=True)
    sys.stdin.readline()
"""


def holder(project: Path, journal: str, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(project), journal, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def let_go(process: subprocess.Popen[str]) -> None:
    process.communicate("\n", timeout=DEADLINE_S)
    assert process.returncode == 0


def test_another_set_waits_and_is_told_for_whom(tmp_path: Path) -> None:
    project, journal = project_with_sets(tmp_path), str(tmp_path / "journal")
    first = holder(project, journal, "b")
    assert said(first) == "held"
    assert os.readlink(project / "conf") == "conf@b"
    second = holder(project, journal, "c")
    assert said(second) == f"waiting: #12 holds set `b`, pid {first.pid}"
    same = holder(project, journal, "b")
    assert said(same) == "held"
    let_go(first)
    assert os.readlink(project / "conf") == "conf@b"  # `same` still uses it
    let_go(same)
    assert said(second) == "held"
    assert os.readlink(project / "conf") == "conf@c"
    let_go(second)
    assert os.readlink(project / "conf") == "conf@a"
    assert not read_state(journal)


def test_a_plain_trial_does_not_take_over_a_set_that_is_only_lent(tmp_path: Path) -> None:
    project, journal = project_with_sets(tmp_path), str(tmp_path / "journal")
    first = holder(project, journal, "b")
    assert said(first) == "held"
    plain = holder(project, journal, "")
    assert said(plain).startswith("waiting: #12 holds set `b`")
    let_go(first)
    assert said(plain) == "held"
    assert os.readlink(project / "conf") == "conf@a"
    let_go(plain)


def test_a_killed_holder_leaves_a_note_from_which_the_next_one_repairs(tmp_path: Path) -> None:
    project, journal = project_with_sets(tmp_path), str(tmp_path / "journal")
    first = holder(project, journal, "b")
    assert said(first) == "held"
    repair_sets(journal)
    assert os.readlink(project / "conf") == "conf@b"  # nothing to repair while it lives
    first.kill()
    first.communicate(timeout=DEADLINE_S)
    assert os.readlink(project / "conf") == "conf@b"
    repair_sets(journal)
    assert os.readlink(project / "conf") == "conf@a"
    assert not read_state(journal)


def test_in_a_copy_of_a_project_the_first_one_is_left_alone(tmp_path: Path) -> None:
    first = project_with_sets(tmp_path)
    trial = holder(first, str(first / ".relaunch"), "b")
    assert said(trial) == "held"
    copy = tmp_path / "copy"
    shutil.copytree(first, copy, symlinks=True)
    repair_sets(str(copy / ".relaunch"))
    assert os.readlink(first / "conf") == "conf@b"  # the trial there still runs
    let_go(trial)
    assert os.readlink(first / "conf") == "conf@a"


def test_a_note_that_came_along_reaches_nothing_outside_its_project(tmp_path: Path) -> None:
    for folder in (".git/relaunch", ".relaunch", "elsewhere/relaunch"):
        project, others = tmp_path / folder / "project", tmp_path / folder / "others"
        journal = project / folder
        (others / "precious").mkdir(parents=True)
        (others / "precious" / "file").write_text("precious")
        journal.mkdir(parents=True)
        (project / "inside").symlink_to(others)
        note = {
            "mixed": [str(others / "precious"), "../others/precious"],
            "links": {str(others / ".profile"): "x", str(project / "inside" / ".login"): "x"},
            "convert": [str(project / "conf"), str(others / "precious" / "file"), "x"],
            "journal": 1,
        }
        (project / "conf").write_text("conf")
        (journal / "sets.json").write_text(json.dumps(note))
        repair_sets(str(journal))
        assert sorted(os.listdir(others)) == ["precious"], folder
        assert os.listdir(others / "precious") == ["file"], folder
        assert not read_state(str(journal))


def test_what_a_killed_one_left_in_a_linked_worktree_is_put_right(tmp_path: Path) -> None:
    project, journal = project_with_sets(tmp_path), tmp_path / "main" / ".git" / "relaunch"
    trial = holder(project, str(journal), "b")
    assert said(trial) == "held"
    trial.kill()
    trial.communicate(timeout=DEADLINE_S)
    repair_sets(str(journal))
    assert os.readlink(project / "conf") == "conf@a"


def test_an_exception_in_the_trial_puts_the_links_back(tmp_path: Path) -> None:
    project, journal = project_with_sets(tmp_path), str(tmp_path / "journal")
    sets = find_sets(str(project), configured={}, journal=journal)

    def interrupted_trial() -> None:
        with HeldSet(sets, "c", journal=journal):
            assert (project / "data" / "one.txt").read_text() == "c"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted_trial()
    assert (project / "data" / "one.txt").read_text() == "a"


def test_making_a_set_while_a_trial_holds_another_copies_the_one_at_rest(tmp_path: Path) -> None:
    project, journal = project_with_sets(tmp_path), str(tmp_path / "journal")
    first = holder(project, journal, "b")
    assert said(first) == "held"
    sets = find_sets(str(project), configured={}, journal=journal)
    new_set(sets, "d", journal=journal, tell=pytest.fail)
    assert (project / "conf@d" / "one.txt").read_text() == "a"
    assert set_names(sets) == ["a", "b", "c", "d"]
    let_go(first)


def test_a_corrupt_note_stops_nobody(tmp_path: Path) -> None:
    project, journal = project_with_sets(tmp_path), tmp_path / "journal"
    journal.mkdir()
    (journal / "sets.json").write_text('{"links": {"conf"')
    sets = find_sets(str(project), configured={}, journal=str(journal))
    with HeldSet(sets, "b", journal=str(journal)):
        assert (project / "conf" / "one.txt").read_text() == "b"
    (journal / "sets.json").write_text(json.dumps([1, 2]))
    use_set(sets, "c", journal=str(journal), tell=pytest.fail)
    assert os.readlink(project / "data") == "data@c"


def test_a_program_started_by_the_trial_does_not_keep_the_lock(tmp_path: Path) -> None:
    project, journal = project_with_sets(tmp_path), str(tmp_path / "journal")
    sets = find_sets(str(project), configured={}, journal=journal)
    with HeldSet(sets, "b", journal=journal):
        left_over = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    try:
        lock = Lock(journal)
        lock.alone(pytest.fail)
        lock.close()
    finally:
        left_over.communicate()
