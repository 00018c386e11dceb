"""Each trap by itself: what hides an edit from git, or changes its bytes, or loses it later."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.snapshots import Project, facts

from relaunch.errors import SnapshotError
from relaunch.journal.home import find_home
from relaunch.journal.snapshot.afterwards import changed_since
from relaunch.journal.snapshot.code import Code, from_json
from relaunch.journal.snapshot.restore import restore
from relaunch.journal.snapshot.take import take
from relaunch.jsontext import loads


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home/.config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Project(tmp_path / "project")
    made.write("train.py", "print(1)\n")
    made.write("pkg/model.py", "x = 1\n")
    made.write(".gitignore", "*.skip\n")
    made.commit()
    return made


def given(project: Project, code: Code, tmp_path: Path) -> dict[str, object]:
    target = tmp_path / f"given-{len(list(tmp_path.iterdir()))}"
    return project.restored(code, target)[0]


def edit_keeping_times(path: Path, data: bytes) -> None:
    was = path.stat()
    assert len(data) == was.st_size
    path.write_bytes(data)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_an_edit_that_the_user_hid_from_git_is_in_the_snapshot(
    project: Project, tmp_path: Path, flag: str
) -> None:
    project.git("update-index", flag, "train.py")
    project.write("train.py", "print('hidden')\n")
    code = project.take()
    assert code.roots[0].changed == ("train.py",)
    assert given(project, code, tmp_path) == facts(project.top)


def test_a_same_size_edit_with_its_old_time_is_seen_although_ctime_is_not_trusted(
    project: Project,
) -> None:
    project.git("config", "core.trustctime", "false")
    path = project.top / "train.py"
    os.utime(path, (1_600_000_000, 1_600_000_000))
    project.take()
    edit_keeping_times(path, b"print(2)\n")
    assert project.take().roots[0].changed == ("train.py",)


def test_same_size_edits_with_their_old_time_in_the_second_of_the_last_snapshot_are_seen(
    project: Project, tmp_path: Path
) -> None:
    path = project.write("fresh.py", "x = 0\n")
    for number in range(1, 9):  # git alone misses every one of these
        os.utime(path, (1_600_000_000, 1_600_000_000))
        project.take()
        edit_keeping_times(path, b"x = %d\n" % number)
        code = project.take()
        assert given(project, code, tmp_path)["fresh.py"] == (False, b"x = %d\n" % number)


def test_a_whole_tree_copied_with_its_times_and_edited_in_the_same_second_is_seen(
    project: Project, tmp_path: Path
) -> None:
    os.utime(project.top / "train.py", (1_600_000_000, 1_600_000_000))
    other = Project(Path(shutil.copytree(project.top, tmp_path / "other")), git=False)
    other.take()
    edit_keeping_times(other.top / "train.py", b"print(3)\n")
    assert other.take().roots[0].changed == ("train.py",)


@pytest.mark.parametrize(
    ("attributes", "name", "data"),
    [
        ("* text=auto eol=crlf\n", "a.txt", b"one\r\ntwo\nthree\r\n"),
        ("* text eol=lf\n", "a.txt", b"one\r\ntwo\n"),
        ("*.bin filter=shout\n", "a.bin", b"a large file's own bytes"),
        ("*.c ident\n", "a.c", b"$Id: 1234 $\n"),
        ("*.u working-tree-encoding=UTF-16\n", "a.u", "hi\n".encode("utf-16")),
        ("*.t crlf=input\n", "a.t", b"x\r\n"),
    ],
)
def test_no_filter_or_line_end_setting_changes_a_byte(
    project: Project, tmp_path: Path, attributes: str, name: str, data: bytes
) -> None:
    project.git("config", "core.autocrlf", "true")
    project.git("config", "filter.shout.clean", "tr a-z A-Z")
    project.git("config", "filter.shout.smudge", "tr A-Z a-z")
    project.git("config", "filter.shout.required", "true")
    project.write(".gitattributes", attributes)
    project.write(name, data)
    project.commit()
    assert given(project, project.take(), tmp_path) == facts(project.top)
    project.write(name, data + b"a\0\r\n")
    assert given(project, project.take(), tmp_path) == facts(project.top)


def test_nested_repositories_and_submodules_are_roots_of_their_own(
    project: Project, tmp_path: Path
) -> None:
    library = Project(tmp_path / "library")
    library.write("lib.py", "y = 1\n")
    library.commit()
    project.git("submodule", "--quiet", "add", str(library.top), "module")
    project.write("module/lib.py", "y = 2\n")
    nested = Project(project.top / "pkg" / "nested")
    head = ""
    nested.write("deep.py", "z = 1\n")
    head = nested.commit()
    nested.write("dirty.py", "w = 1\n")
    Project(project.top / "bare new").write("first.py", "v = 1\n")
    code = project.take()
    found = {os.path.relpath(root.path, project.top): root for root in code.roots}
    assert set(found) == {".", "module", "pkg/nested", "bare new"}
    assert found["module"].changed == ("lib.py",)
    assert (found["pkg/nested"].base, found["pkg/nested"].new) == (head, ("dirty.py",))
    was = facts(project.top)
    shutil.rmtree(nested.top)
    assert given(project, code, tmp_path) == was


def test_a_submodule_that_became_a_plain_folder_is_kept_with_its_files(
    project: Project, tmp_path: Path
) -> None:
    library = Project(tmp_path / "library")
    library.write("lib.py", "y = 1\n")
    library.commit()
    project.git("submodule", "--quiet", "add", str(library.top), "module")
    project.commit()
    project.take()
    (project.top / "module" / ".git").unlink()
    assert given(project, project.take(), tmp_path) == facts(project.top)


def test_a_big_file_whose_folder_becomes_a_repository_belongs_to_that(
    project: Project, tmp_path: Path
) -> None:
    project.write("lib/weights.bin", b"w" * 5000)
    assert [out.path for out in project.take(max_file=4096).roots[0].left_out] == [
        "lib/weights.bin"
    ]
    Project(project.top / "lib")
    project.write("lib/weights.bin", b"small now")
    code = project.take(max_file=4096)
    assert [root.new for root in code.roots] == [(), ()]
    assert [len(root.left_out) for root in code.roots] == [0, 0]
    assert given(project, code, tmp_path) == facts(project.top)
    assert project.take(max_file=4096) == code


def test_empty_folders_are_given_back_and_are_part_of_the_identity(
    project: Project, tmp_path: Path
) -> None:
    before = project.take()
    (project.top / "out" / "logs").mkdir(parents=True)
    (project.top / "pkg" / "cache").mkdir()
    code = project.take()
    assert code.roots[0].empty_dirs == ("out/logs", "pkg/cache")
    assert code.digest != before.digest
    assert given(project, code, tmp_path) == facts(project.top)
    (project.top / "out" / "logs").rmdir()
    assert project.take().roots[0].empty_dirs == ("out", "pkg/cache")


def test_big_files_are_named_with_size_and_digest_and_not_stored(project: Project) -> None:
    project.write("weights.bin", b"w" * 5000)
    project.write("pkg/model.py", b"m" * 5000)
    code = project.take(max_file=4096)
    left = {out.path: out for out in code.roots[0].left_out}
    assert set(left) == {"weights.bin", "pkg/model.py"}
    assert (left["weights.bin"].size, left["weights.bin"].why) == (5000, "over 0.00390625 MiB")
    assert code.roots[0].changed == ("pkg/model.py",)
    project.write("weights.bin", b"w" * 4999 + b"!")
    again = project.take(max_file=4096)
    assert again.roots[0].tree == code.roots[0].tree
    assert again.digest != code.digest
    project.git("checkout", "-q", "pkg/model.py")
    (project.top / "weights.bin").unlink()
    last = project.take(max_file=4096).roots[0]
    assert (last.left_out, last.changed) == ((), ())


def test_a_big_file_that_head_has_is_borrowed_and_its_edit_is_named(
    project: Project, tmp_path: Path
) -> None:
    project.write("table.csv", b"1" * 9000)
    project.commit()
    code = project.take(max_file=4096)
    assert code.roots[0].left_out == ()
    assert given(project, code, tmp_path) == facts(project.top)
    project.write("table.csv", b"2" * 9000)
    assert [out.path for out in project.take(max_file=4096).roots[0].left_out] == ["table.csv"]
    project.git("commit", "-qam", "two")
    assert project.take(max_file=4096).roots[0].left_out == ()
    project.write("table.csv", b"3" * 9000)
    project.take(max_file=4096)
    project.git("checkout", "-q", "table.csv")
    code = project.take(max_file=4096)
    assert code.roots[0].left_out == ()
    assert given(project, code, tmp_path) == facts(project.top)


def test_many_new_files_at_once_are_kept_up_to_the_cap_small_ones_first_and_stay_so(
    project: Project,
) -> None:
    for number in range(10):
        project.write(f"shard{number}", bytes([number]) * (1000 + number))
    code = project.take(max_new=5000)
    assert len(code.roots[0].left_out) == 6
    assert "over" in code.roots[0].left_out[0].why
    assert project.take(max_new=5000) == code


def test_the_users_gc_after_amend_and_reset_loses_no_snapshot(
    project: Project, tmp_path: Path
) -> None:
    codes = []
    for number in range(4):
        project.write("train.py", f"print({number})\n")
        project.write("note.txt", f"{number}")
        project.git("add", "-A")
        project.git("commit", "-q", "--amend", "-m", "again")
        project.write("dirty.py", f"d = {number}\n")
        codes.append((project.take(), facts(project.top)))
    project.git("checkout", "-q", "--orphan", "other")
    project.commit("alone")
    project.git("branch", "-qD", "main")
    project.git("reflog", "expire", "--expire=now", "HEAD")
    project.git("gc", "-q", "--prune=now")
    assert "again" in project.git("log", "-g", "refs/relaunch/base")
    for code, was in codes:
        assert given(project, code, tmp_path) == was


def test_what_the_user_staged_and_threw_away_is_not_borrowed(
    project: Project, tmp_path: Path
) -> None:
    project.write("pkg/staged.py", "s = 1\n")
    project.git("add", "-A")
    project.git("write-tree")
    code, was = project.take(), facts(project.top)
    project.git("reset", "-q", "--hard")
    project.git("gc", "-q", "--prune=now")
    assert given(project, code, tmp_path) == was


def test_git_log_all_of_the_user_shows_no_commit_of_ours(project: Project) -> None:
    project.write("new.py", "n = 1\n")
    before = project.git("log", "--all", "--format=%H")
    project.take()
    assert project.git("log", "--all", "--format=%H") == before


def test_the_users_index_stash_refs_config_and_files_are_left_byte_for_byte(
    project: Project,
) -> None:
    project.write("stashed.py", "s = 1\n")
    project.git("add", "stashed.py")
    project.git("stash", "-q")
    project.write("staged.py", "s = 2\n")
    project.git("add", "staged.py")
    project.write("train.py", "print(2)\n")
    seen = (project.git("stash", "list"), project.git("for-each-ref"), facts(project.top))
    files = {name: (project.top / ".git" / name).read_bytes() for name in ("index", "HEAD")}
    config = (project.top / ".git" / "config").read_text()
    code = project.take()
    project.write("other.py", "o = 1\n")
    changed_since(project.home, code)
    project.take()
    (project.top / "other.py").unlink()
    refs = [
        line for line in project.git("for-each-ref").splitlines() if "refs/relaunch/" not in line
    ]
    assert (project.git("stash", "list"), "\n".join(refs) + "\n", facts(project.top)) == seen
    for name, data in files.items():
        assert (project.top / ".git" / name).read_bytes() == data
    now = (project.top / ".git" / "config").read_text()
    assert now == config + (
        '[gc "refs/relaunch/*"]\n\treflogExpire = never\n\treflogExpireUnreachable = never\n'
    )


def test_modes_links_and_strange_names_are_given_back(project: Project, tmp_path: Path) -> None:
    for name in ("new\nline", 'quo"te', "byte\udcff", "-n", " space ", "*", ":(top)x", "é"):
        project.write(name, os.fsencode(name))
        project.write(f"dir{name}/{name}", os.fsencode(name))
    project.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    (project.top / "dangling").symlink_to("nowhere")
    (project.top / "folder").symlink_to("pkg")
    code = project.take()
    assert given(project, code, tmp_path) == facts(project.top)
    project.write("new\nline", "changed")
    assert changed_since(project.home, code) == ("new\nline",)


def test_a_file_that_becomes_a_folder_and_back_is_followed(
    project: Project, tmp_path: Path
) -> None:
    project.take()
    (project.top / "train.py").unlink()
    project.write("train.py/inner.py", "i = 1\n")
    shutil.rmtree(project.top / "pkg")
    project.write("pkg", "a file now\n")
    assert given(project, project.take(), tmp_path) == facts(project.top)
    shutil.rmtree(project.top / "train.py")
    project.write("train.py", "a file again\n")
    (project.top / "pkg").unlink()
    project.write("elsewhere/model.py", "x = 1\n")
    (project.top / "pkg").symlink_to("elsewhere")
    assert given(project, project.take(), tmp_path) == facts(project.top)


def test_pipes_and_sockets_are_named_wherever_they_lie(project: Project, tmp_path: Path) -> None:
    project.take()
    os.mkfifo(project.top / "pkg" / "pipe")
    os.mkfifo(project.top / "top pipe")
    (project.top / "run").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(project.top / "run")  # names of sockets must be short
        try:
            server.bind("sock")
        finally:
            os.chdir(here)
        code = project.take()
    assert [out.path for out in code.roots[0].left_out] == ["pkg/pipe", "run/sock", "top pipe"]
    assert project.restored(code, tmp_path / "given")[1] == tuple(
        f"{name}: a pipe, socket or device, not kept"
        for name in ("pkg/pipe", "run/sock", "top pipe")
    )
    assert project.take() == code
    (project.top / "top pipe").unlink()
    assert [out.path for out in project.take().roots[0].left_out] == ["pkg/pipe", "run/sock"]


def test_unreadable_files_and_folders_are_named_and_stop_nothing(
    project: Project, tmp_path: Path
) -> None:
    root = os.geteuid() == 0
    if root and not shutil.which("setpriv"):
        pytest.skip("root reads everything")
    project.write("secret", "s").chmod(0)
    project.write("train.py", "print(2)\n").chmod(0)
    project.write("closed/inner.py", "i = 1\n").parent.chmod(0)
    project.write("open.py", "o = 1\n")
    script = f"""
from relaunch.journal.home import find_home
from relaunch.journal.snapshot.code import to_json
from relaunch.journal.snapshot.take import take
from relaunch.jsontext import dumps
print(dumps(to_json(take(find_home({str(project.top)!r})))))
"""
    powerless = ["setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search"]
    argv = [*(powerless if root else []), sys.executable, "-c", script]
    out = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    (project.top / "closed").chmod(0o755)
    code = from_json(loads(out))
    assert [(left.path, left.why) for left in code.roots[0].left_out] == [
        ("closed/", "unreadable"),
        ("secret", "unreadable"),
        ("train.py", "unreadable"),
    ]
    back = given(project, code, tmp_path)
    assert back["open.py"] == (False, b"o = 1\n")
    assert "train.py" not in back


def test_ignored_files_are_not_kept_unless_asked_for_or_added_by_force(
    project: Project, tmp_path: Path
) -> None:
    project.write("conf/local.skip", "lr = 1\n")
    project.write("other.skip", "o\n")
    project.write("forced.skip", "f\n")
    project.git("add", "-f", "forced.skip")
    code = project.take(also=("conf/*.skip",))
    assert code.roots[0].new == ("conf/local.skip", "forced.skip")
    assert project.take(also=("conf/*.skip",)) == code
    project.write("conf/local.skip", "lr = 2\n")
    assert project.take(also=("conf/*.skip",)).roots[0].tree != code.roots[0].tree
    (project.top / "conf" / "local.skip").unlink()
    assert project.take(also=("conf/*.skip",)).roots[0].new == ("forced.skip",)
    project.write("conf/local.skip", "lr = 1\n")
    assert project.take(also=("conf/*.skip",)) == code


def test_the_users_own_excludes_are_followed(project: Project, tmp_path: Path) -> None:
    project.write(".git/info/exclude", "/by-repo\n")
    project.write("by-repo", "1")
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "mine").write_text("by-user\n")
    project.write("by-user", "1")
    assert project.take().roots[0].new == ("by-user",)
    (tmp_path / "home" / ".gitconfig").write_text("[core]\n\texcludesFile = ~/mine\n")
    (project.top / "by-user").unlink()
    project.write("sub/by-user", "1")
    assert project.take().roots[0].new == ()


def test_a_project_without_commits_and_one_outside_git_are_kept_whole(tmp_path: Path) -> None:
    for name, git in (("unborn", True), ("plain", False)):
        project = Project(tmp_path / name, git=git)
        project.write("a.py", "a = 1\n")
        project.write("b/c.py", "c = 1\n")
        project.write("__pycache__/a.pyc" if not git else "b/d.py", "junk")
        code = project.take()
        assert code.roots[0].base == ""
        was = {name: fact for name, fact in facts(project.top).items() if "__pycache__" not in name}
        assert given(project, code, tmp_path) == was


def test_linked_worktrees_share_the_private_repository_and_keep_apart(
    project: Project, tmp_path: Path
) -> None:
    project.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = Project(tmp_path / "side", git=False)
    side.write("train.py", "print('side')\n")
    project.write("train.py", "print('main')\n")
    codes = [(where, where.take(), facts(where.top)) for where in (project, side, project, side)]
    assert side.home.journal == project.home.journal
    for where, code, was in codes:
        assert given(where, code, tmp_path) == was


def test_a_pipe_behind_a_link_that_took_the_place_of_a_folder_is_named_once(
    project: Project,
) -> None:
    project.write("other/deep/x.py", "x = 1\n")
    project.write("pkg/deep/y.py", "y = 1\n")
    os.mkfifo(project.top / "other" / "deep" / "pipe")
    project.take()
    shutil.rmtree(project.top / "pkg")
    (project.top / "pkg").symlink_to("other")
    for _ in range(3):
        left = project.take().roots[0].left_out
        assert [out.path for out in left] == ["other/deep/pipe"]


@pytest.mark.parametrize("name", ["a:b", 'quo"te', '"start', "new\nline", "back\\slash:", "é *?"])
def test_any_name_of_the_project_will_do(tmp_path: Path, name: str) -> None:
    project = Project(tmp_path / name)
    project.write("train.py", "print(1)\n")
    project.commit()
    project.write("new.py", "n = 1\n")
    code = project.take()
    assert code.roots[0].new == ("new.py",)
    assert project.restored(code, tmp_path / "given")[0] == facts(project.top)


def test_others_cannot_read_what_is_kept(project: Project) -> None:
    project.write("secret", "s").chmod(0o600)
    project.take()
    assert project.private.stat().st_mode & 0o077 == 0


def test_a_subdirectory_takes_the_whole_project(project: Project) -> None:
    assert take(find_home(str(project.top / "pkg"))) == project.take()


def test_a_lock_left_by_a_killed_git_stops_nothing(project: Project, tmp_path: Path) -> None:
    project.take()
    for state in project.private.glob("roots/*"):
        for index in list(state.glob("index*")):
            Path(f"{index}.lock").write_bytes(b"")
    project.write("train.py", "print(2)\n")
    assert given(project, project.take(), tmp_path) == facts(project.top)


@pytest.mark.parametrize("victim", ["roots/*/state.json", "roots/*/index-*", "HEAD", "config"])
@pytest.mark.parametrize("damage", [b"", b"broken", None])
def test_a_damaged_private_repository_mends_itself(
    project: Project, tmp_path: Path, victim: str, damage: bytes | None
) -> None:
    first = project.take()
    was = facts(project.top)
    for path in project.private.glob(victim):
        if damage is None:
            path.unlink()
        else:
            path.write_bytes(damage)
    project.write("new.py", "n = 1\n")
    assert given(project, project.take(), tmp_path) == facts(project.top)
    assert given(project, first, tmp_path) == was


def test_lost_private_objects_are_stored_again(project: Project, tmp_path: Path) -> None:
    project.write("new.py", "n = 1\n")
    project.take()
    shutil.rmtree(project.private / "objects")
    assert given(project, project.take(), tmp_path) == facts(project.top)


def test_where_nothing_can_be_pinned_nothing_is_borrowed(project: Project, tmp_path: Path) -> None:
    project.write(".git/refs/relaunch", "in the way of our ref\n")
    code = project.take()
    shutil.rmtree(project.top / ".git" / "objects")
    (project.top / ".git" / "objects").mkdir()
    assert given(project, code, tmp_path) == facts(project.top)


def test_a_full_disk_is_a_snapshot_error(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.take()
    project.write("new.py", os.urandom(60_000))
    script = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
from relaunch.journal.home import find_home
from relaunch.journal.snapshot.take import take
from relaunch.errors import SnapshotError
from relaunch.journal.home import find_home
try:
    take(find_home({str(project.top)!r}))
except SnapshotError as error:
    print("told:", error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.startswith("told: "), done.stderr
    assert project.take().roots[0].new == ("new.py",)


def test_without_git_there_is_one_clear_line(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SnapshotError, match="git cannot be started"):
        project.take()


def test_too_many_files_outside_git_are_refused_and_untracked_ones_are_named(
    project: Project, tmp_path: Path
) -> None:
    plain = Project(tmp_path / "plain", git=False)
    for number in range(30):
        plain.write(f"d/{number}", "x")
        project.write(f"d/{number}", "x")
    with pytest.raises(SnapshotError, match="too many files"):
        plain.take(max_files=20)
    code = project.take(max_files=20)
    assert code.roots[0].problem == "over 20 untracked files: none of them kept"
    assert "train.py" in given(project, code, tmp_path)


def test_eight_at_once_while_files_change_give_only_trees_that_were_there(
    project: Project, tmp_path: Path
) -> None:
    script = """
import sys
from relaunch.journal.home import find_home
from relaunch.journal.snapshot.code import to_json
from relaunch.journal.snapshot.take import take
from relaunch.jsontext import dumps
for _ in range(6):
    print(dumps(to_json(take(find_home(sys.argv[1])))), flush=True)
"""
    argv = [sys.executable, "-c", script, str(project.top)]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    written = 0
    while any(process.poll() is None for process in running):
        written += 1
        temp = project.write("now.skip", f"n = {written}\n")
        temp.rename(project.top / "now.py")
    told = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0] * 8
    for out in told:
        for line in out.splitlines():
            back = given(project, from_json(loads(line)), tmp_path)
            assert set(back) - {"now.py"} == {"train.py", "pkg", "pkg/model.py", ".gitignore"}
    assert given(project, project.take(), tmp_path) == facts(project.top)


def test_a_kill_at_any_moment_leaves_a_repository_that_goes_on(
    project: Project, tmp_path: Path
) -> None:
    script = """
import sys
from relaunch.journal.home import find_home
from relaunch.journal.snapshot.take import take
print("ready", flush=True)
take(find_home(sys.argv[1]))
"""
    argv = [sys.executable, "-S", "-c", script, str(project.top)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    chance = random.Random(7)
    for number in range(25):
        project.write("train.py", f"print({number})\n")
        project.write(f"pkg/new{number % 5}.py", f"n = {number}\n")
        if number % 6 == 0:
            project.commit()
        running = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE)
        assert running.stdout is not None
        running.stdout.readline()
        try:
            running.wait(chance.random() * 0.03)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
        running.stdout.close()
        assert given(project, project.take(), tmp_path) == facts(project.top)


def test_the_code_that_changed_while_it_ran_is_named_also_after_another_snapshot(
    project: Project,
) -> None:
    code = project.take()
    assert changed_since(project.home, code) == ()
    project.write("train.py", "print(2)\n")
    (project.top / "pkg" / "model.py").unlink()
    project.write("result.txt", "made by the program\n")
    assert changed_since(project.home, code) == ("pkg/model.py", "train.py")
    project.take()
    assert changed_since(project.home, code) == ("pkg/model.py", "train.py")


def test_a_target_that_is_not_empty_is_refused(project: Project, tmp_path: Path) -> None:
    code = project.take()
    with pytest.raises(SnapshotError, match="is not empty"):
        restore(project.home, code, str(project.top))


def test_environment_of_a_git_hook_does_not_lead_us_astray(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "their-index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    code = project.take()
    assert given(project, code, tmp_path) == facts(project.top)
    assert not (tmp_path / "their-index").exists()
