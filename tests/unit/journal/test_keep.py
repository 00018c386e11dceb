"""What may be forgotten goes whole; what a person marked, named or runs never does."""

import os
import time

import pytest

from relaunch import settings
from relaunch.journal import keep
from relaunch.journal.store import Journal, process_started, whereabouts, write_json
from relaunch.trial.place import sets

DAY = 86400.0
NOW = 1_000_000_000.0


def add(journal, trial_id, *, days_old, size=0, mark=None, pid=0, packages=""):
    folder = os.path.join(journal.trials, trial_id)
    os.makedirs(folder)
    rl = {"pid": pid, "started": process_started(pid) or 1, "host": os.uname().nodename}
    start = {"when": NOW - days_old * DAY, "command": ["true"], "rl": rl, "packages": packages}
    write_json(os.path.join(folder, "start.json"), start)
    moment = NOW - days_old * DAY
    os.utime(os.path.join(folder, "start.json"), (moment, moment))
    if not pid:
        write_json(os.path.join(folder, "end.json"), {"exit_code": 0})
    if size:
        with open(os.path.join(folder, "output.0"), "wb") as file:
            file.write(b"x" * size)
    if mark:
        write_json(os.path.join(folder, "mark.json"), mark)


@pytest.fixture
def journal(tmp_path):
    journal = Journal(str(tmp_path))
    add(journal, "1", days_old=90, size=1 << 20)
    add(journal, "2", days_old=80, mark={"verdict": "good"})
    add(journal, "3", days_old=70, mark={"name": "baseline"})
    add(journal, "4", days_old=60, pid=os.getpid())
    add(journal, "5", days_old=50, size=3 << 20)
    add(journal, "6", days_old=40)
    return journal


def chosen(journal, **limits):
    plan = keep.choose(keep.survey(journal), now=NOW, **limits)
    return [held.id for held in plan.go]


def test_without_a_limit_nothing_goes(journal):
    assert chosen(journal) == []


def test_age_never_takes_a_marked_named_running_or_newest_trial(journal):
    assert chosen(journal, older_s=30 * DAY) == ["1", "5"]
    why = {held.id: held.stays for held in keep.survey(journal)}
    assert why == {
        "1": "",
        "2": "marked good",
        "3": "named baseline",
        "4": "running",
        "5": "",
        "6": "the newest",
    }


def test_a_trial_with_files_of_the_user_that_an_older_rl_saved_stays(journal):
    os.mkdir(os.path.join(journal.trials, "1", "undo"))
    assert chosen(journal, older_s=30 * DAY) == ["5"]
    assert keep.survey(journal)[0].stays == "files saved from a folder are in its undo/"


def test_size_takes_the_large_ones_or_the_oldest_until_the_rest_fits(journal):
    assert chosen(journal, larger=2 << 20) == ["5"]
    assert chosen(journal, keep_size=4 << 20) == ["1"]
    assert chosen(journal, keep_size=0) == ["1", "5"]


def test_forgetting_leaves_no_trace_of_the_trial_and_all_of_the_others(journal):
    plan = keep.choose(keep.survey(journal), now=NOW, older_s=30 * DAY)
    assert keep.forget(journal, plan) == ["1", "5"]
    assert sorted(os.listdir(journal.trials)) == ["2", "3", "4", "6"]


def test_a_trial_marked_after_the_plan_was_made_stays(journal):
    plan = keep.choose(keep.survey(journal), now=NOW, older_s=30 * DAY)
    journal.set_mark(journal.load("5"), {"verdict": "bad"})
    assert keep.forget(journal, plan) == ["1"]
    assert os.path.isdir(os.path.join(journal.trials, "5"))


def test_a_kill_between_rename_and_delete_leaves_only_something_to_sweep(journal):
    dead = _dead_pid()
    hidden = os.path.join(journal.trials, f".gone-{dead}-1")
    os.rename(os.path.join(journal.trials, "1"), hidden)
    assert "1" not in journal.ids()
    plan = keep.with_leftovers(journal, keep.Plan())
    assert plan.leftovers == (hidden,)
    assert plan.bytes >= 1 << 20
    keep.forget(journal, plan)
    assert not os.path.exists(hidden)


def test_an_unfinished_start_is_swept_only_when_its_process_is_gone(journal):
    mine = os.path.join(journal.trials, f".new-{os.getpid()}-1")
    dead = os.path.join(journal.trials, f".new-{_dead_pid()}-1")
    for folder in (mine, dead):
        os.mkdir(folder)
        write_json(os.path.join(folder, "start.json"), {"rl": {"host": os.uname().nodename}})
    assert keep.leftovers(journal) == [dead]


@pytest.mark.parametrize("what", ["host", "boot", "pids"])
def test_an_unfinished_start_of_another_place_is_left_alone_for_an_hour(journal, what):
    other = os.path.join(journal.trials, f".new-{_dead_pid()}-1")
    os.mkdir(other)
    write_json(os.path.join(other, "start.json"), {"rl": {**whereabouts(), what: "another"}})
    assert keep.leftovers(journal) == []
    old = time.time() - 7200
    os.utime(other, (old, old))
    assert keep.leftovers(journal) == [other]


def test_short_cuts_and_package_lists_go_with_the_last_trial_that_needs_them(journal):
    add(journal, "7", days_old=1, packages="used")
    for folder, name, text in [
        ("identities", "a", "1"),
        ("identities", "b", "6"),
        ("signatures", "c", "99"),
        ("packages", "used.json", "{}"),
        ("packages", "unused.json", "{}"),
    ]:
        os.makedirs(os.path.join(journal.home, folder), exist_ok=True)
        path = os.path.join(journal.home, folder, name)
        with open(path, "w") as file:
            file.write(text)
        os.utime(path, (1, 1))
    found = [os.path.relpath(path, journal.home) for path in keep.leftovers(journal, going=["1"])]
    assert found == ["identities/a", "signatures/c", "packages/unused.json"]


def test_half_written_files_are_swept_when_old_and_those_of_programs_never(journal, tmp_path):
    places = [
        ".", "backs", "frozen/1", "git/info", "git/logs/refs/relaunch", "git/refs/relaunch",
        "git/roots/feed", "identities", "packages", "running", "signatures", "trials/6",
    ]  # fmt: skip
    programs = ["frozen/1/tree", "frozen/1/roots/x", "git/objects/ab", "trials/6/reports"]
    for place in (*places, *programs):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "rename", _killed)
        patch.setattr(os, "replace", _killed)
        for place in (*places, *programs):
            with pytest.raises(_Killed):
                write_json(str(tmp_path / place / "6"), {"path": str(tmp_path)})
        with pytest.raises(_Killed):
            sets.remember_link(str(tmp_path), "/p", "/p/conf")
        with pytest.raises(_Killed):
            settings._to_cache(str(tmp_path / "settings.json"), [], [])
    (tmp_path / "trials/6/mine.tmp").write_text("no file of ours")
    assert keep.leftovers(journal) == []
    for path in tmp_path.rglob("*.tmp"):
        os.utime(path, (1, 1))
    found = [os.path.relpath(os.path.dirname(path), tmp_path) for path in keep.leftovers(journal)]
    assert sorted(found) == sorted([".", ".", *places])
    keep.forget(journal, keep.with_leftovers(journal, keep.Plan()))
    assert keep.leftovers(journal) == []
    assert journal.unfinished() == []


class _Killed(BaseException):
    pass


def _killed(*_):
    raise _Killed


def test_what_a_killed_back_left_is_swept_when_old_and_nothing_else_beside_the_project(tmp_path):
    journal = Journal(str(tmp_path / "p" / ".relaunch"))
    journal.begin({"project": str(tmp_path / "p")})
    dead = _dead_pid()
    swept = [f"p@1.2.new-{dead}-0a1b", f"p@7.new-{dead}"]
    others = [
        "p@7",
        f"p@7.new-{os.getpid()}",
        f"p@x.new-{dead}",
        f"q@7.new-{dead}",
        "p@7.new-",
        "q",
    ]
    for name in (*swept, *others):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    os.symlink("q", tmp_path / f"p@8.new-{dead}")
    assert keep.leftovers(journal) == []
    for name in (*swept, *others):
        os.utime(tmp_path / name, (1, 1))
    assert keep.leftovers(journal) == [str(tmp_path / name) for name in swept]
    keep.forget(journal, keep.with_leftovers(journal, keep.Plan()))
    assert all((tmp_path / name / "file").exists() for name in others)
    assert not any((tmp_path / name).exists() for name in swept)


def test_an_unreadable_trial_keeps_all_package_lists_and_goes_by_age(journal):
    with open(os.path.join(journal.trials, "5", "start.json"), "w") as file:
        file.write("{")
    os.utime(os.path.join(journal.trials, "5"), (1, 1))
    os.makedirs(os.path.join(journal.home, "packages"))
    path = os.path.join(journal.home, "packages", "x.json")
    with open(path, "w") as file:
        file.write("{}")
    os.utime(path, (1, 1))
    assert keep.leftovers(journal) == []
    assert chosen(journal, older_s=30 * DAY) == ["5", "1"]


def _dead_pid():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid
