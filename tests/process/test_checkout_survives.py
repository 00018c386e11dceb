"""Checkouts after probes that leave bytecode, litter and ruins, after Ctrl-C and after kill -9."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest
from tests.checkouting import everything, files_of, pointer_to
from tests.snapshots import Project, facts

from relaunch.trial.place import checkouts
from relaunch.trial.place.checkout import Checkout, open_checkout, sweep

PLACE = os.path.dirname(os.path.dirname(str(checkouts.__file__)))
HOLD = """
import sys
from relaunch.trial.place.checkout import open_checkout
checkout = open_checkout(sys.argv[1], sys.argv[2])
checkout.go_to(sys.argv[3])
print(checkout.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _no_settings_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    made.write("pkg/__init__.py", "")
    made.write("pkg/a.py", "x = 1\n")
    made.write("pkg/data/rows.csv", "1,2\n")
    made.write("run.sh", "echo\n").chmod(0o755)
    os.symlink("pkg/a.py", made.top / "link.py")
    return made


@pytest.fixture
def checkout(project: Project, tmp_path: Path) -> Iterator[Checkout]:
    with open_checkout(str(tmp_path / "parent"), str(project.top)) as opened:
        yield opened


def imported(checkout: Checkout, code: str, **env: str) -> str:
    """What a fresh Python says in a checkout, with bytecode as ever."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=checkout.path, env={**os.environ, **env}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


# --- bytecode -------------------------------------------------------------------------------------


def same_size_history(project: Project) -> list[str]:
    """Twenty commits whose edits neither size nor the second can tell."""
    project.write("steady.py", "y = 1\n")
    commits = []
    for number in range(20):
        project.write("value.py", f"x = {number:2}\n")
        commits.append(project.commit())
    return commits


@pytest.mark.parametrize("elsewhere", [False, True])
def test_bytecode_of_another_commit_is_never_run(project, checkout, tmp_path, elsewhere):
    commits = same_size_history(project)
    env = {"PYTHONPYCACHEPREFIX": str(tmp_path / "cache")} if elsewhere else {}
    for number in [*range(20), *range(0, 20, 7)]:
        checkout.go_to(commits[number])
        code = "import value, steady; print(value.x, steady.y)"
        assert imported(checkout, code, **env) == f"{number} 1\n"


def test_bytecode_of_an_unchanged_file_is_used_again(project, checkout):
    commits = same_size_history(project)
    seen = set()
    for commit in commits[:4]:
        checkout.go_to(commit)
        assert imported(checkout, "import value, steady; print(steady.y)") == "1\n"
        (kept,) = (Path(checkout.path) / "__pycache__").glob("steady.*.pyc")
        seen.add((kept.stat().st_ino, kept.stat().st_mtime_ns))
    assert len(seen) == 1


def test_bytecode_of_a_file_that_comes_back_is_used_again(project, checkout):
    first, second = same_size_history(project)[:2]
    checkout.go_to(first)
    imported(checkout, "import value")
    (kept,) = (Path(checkout.path) / "__pycache__").glob("value.*.pyc")
    before = kept.stat()
    checkout.go_to(second)
    checkout.go_to(first)
    assert imported(checkout, "import value; print(value.x)") == "0\n"
    assert kept.stat().st_ino == before.st_ino


def test_bytecode_that_python_would_not_check_is_gone_with_its_source(project, checkout):
    first, second = same_size_history(project)[:2]
    checkout.go_to(first)
    words = ("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", ".")
    subprocess.run([sys.executable, *words], cwd=checkout.path, check=True)
    checkout.go_to(second)
    assert imported(checkout, "import value; print(value.x)") == "1\n"
    assert [*(Path(checkout.path) / "__pycache__").glob("steady.*.pyc")] != []


def test_a_module_that_a_commit_lacks_cannot_be_imported_from_bytecode(project, checkout):
    project.write("pkg/late.py", "x = 1\n")
    project.write("whole/__init__.py", "")
    project.write("whole/part.py", "")
    later = project.commit()
    for name in ("pkg/late.py", "whole/__init__.py", "whole/part.py"):
        (project.top / name).unlink()
    earlier = project.commit()
    checkout.go_to(later)
    imported(checkout, "import pkg.late, whole.part")
    shutil.copy(
        next((Path(checkout.path) / "pkg/__pycache__").glob("late.*")),
        Path(checkout.path) / "pkg/late.pyc",
    )
    checkout.go_to(earlier)
    for name in ("pkg.late", "whole"):
        code = f"import importlib.util as u; print(u.find_spec({name!r}))"
        assert imported(checkout, code) == "None\n"
    assert [*Path(checkout.path).rglob("late.*")] == []


def test_other_caches_and_bytecode_without_source_are_gone(project, checkout):
    commit = project.commit()
    checkout.go_to(commit)
    imported(checkout, "import pkg.a")
    cache = Path(checkout.path) / "pkg/__pycache__"
    kept = sorted(cache.iterdir())
    for name in ("ghost.cpython-311.pyc", "a.numba-1.nbi", "folder/a.pyc"):
        (cache / name).parent.mkdir(exist_ok=True)
        (cache / name).write_text("by a probe")
    checkout.go_to(commit)
    assert sorted(cache.iterdir()) == kept != []


def test_the_time_of_a_file_tells_its_content_also_when_put_over_a_commit(
    project, checkout, tmp_path
):
    first, second = same_size_history(project)[:2]
    checkout.go_to(second)
    wanted = (Path(checkout.path) / "value.py").stat().st_mtime_ns
    source = tmp_path / "source.py"
    source.write_bytes((Path(checkout.path) / "value.py").read_bytes())
    checkout.go_to(first)
    assert (Path(checkout.path) / "value.py").stat().st_mtime_ns != wanted
    checkout.overlay({"value.py": str(source)})
    assert (Path(checkout.path) / "value.py").stat().st_mtime_ns == wanted
    checkout.go_to(first)
    assert imported(checkout, "import value; print(value.x)") == "0\n"


# --- what a probe leaves --------------------------------------------------------------------------


def litter(top: Path) -> None:
    (top / "out").mkdir()
    (top / "out/result.txt").write_text("1")
    (top / "pkg/left.txt").write_text("1")
    (top / "pkg/a.py").write_text("x = 9\n")
    (top / "run.sh").chmod(0o644)


def closed_folders(top: Path) -> None:
    (top / "new/deep").mkdir(parents=True)
    (top / "new/deep/file").write_text("1")
    for name, mode in (("new/deep", 0), ("new", 0o500), ("pkg/data", 0), ("pkg", 0o500)):
        (top / name).chmod(mode)
    top.chmod(0o500)


def closed_files(top: Path) -> None:
    for name in ("pkg/a.py", "run.sh", "pkg/data/rows.csv"):
        (top / name).chmod(0)


def links_everywhere(top: Path) -> None:
    victim = top.parents[2] / "victim"
    (victim / "data").mkdir(parents=True)
    (victim / "data/rows.csv").write_text("precious")
    (top / "pkg/a.py").unlink()
    (top / "pkg/a.py").symlink_to(victim / "data/rows.csv")
    shutil.rmtree(top / "pkg/data")
    (top / "pkg/data").symlink_to(victim / "data")
    (top / "link.py").unlink()
    (top / "link.py").mkdir()


def no_repository(top: Path) -> None:
    (top / ".git").unlink()


def another_repository(top: Path) -> None:
    (top / ".git").unlink()
    git(top, "init", "-q")
    git(top, "add", "-A")


def a_merge(top: Path) -> None:
    git(top, "checkout", "-q", "-b", "one")
    for branch in ("two", "one"):
        git(top, "checkout", "-q", "-B", branch, "HEAD")
        (top / "pkg/a.py").write_text(f"x = '{branch}'\n")
        git(top, "commit", "-q", "-am", branch)
        git(top, "tag", f"tag-{branch}")
    git(top, "reset", "-q", "--hard", "HEAD~1")
    (top / "pkg/a.py").write_text("x = 'three'\n")
    git(top, "commit", "-q", "-am", "three")
    git(top, "merge", "-q", "tag-one", check=False)


def locked_and_staged(top: Path) -> None:
    git(top, "rm", "-q", "--cached", "pkg/a.py")
    git(top, "config", "core.autocrlf", "true")
    git(top, "stash", check=False)
    (repository(top) / "index.lock").write_text("")
    (repository(top) / "HEAD.lock").write_text("")


def ruined_repository(top: Path) -> None:
    for name in ("HEAD", "config", "index", "packed-refs"):
        (repository(top) / name).unlink()
    shutil.rmtree(repository(top) / "refs")
    (repository(top) / "HEAD").mkdir()


def no_objects(top: Path) -> None:
    shutil.rmtree(repository(top) / "objects")
    (repository(top) / "objects").write_text("not a folder")


def nothing_left(top: Path) -> None:
    shutil.rmtree(top)


def a_link_for_a_tree(top: Path) -> None:
    shutil.rmtree(top)
    top.symlink_to(top.parents[2] / "project")


def a_file_for_a_tree(top: Path) -> None:
    shutil.rmtree(top)
    top.write_text("")


RUINS = (
    litter, closed_folders, closed_files, links_everywhere, no_repository, another_repository,
    a_merge, locked_and_staged, ruined_repository, no_objects, nothing_left, a_link_for_a_tree,
    a_file_for_a_tree,
)  # fmt: skip


@pytest.mark.parametrize("ruin", RUINS)
@pytest.mark.parametrize("same_process", [True, False])
def test_the_next_commit_is_exact_whatever_a_probe_left(
    project: Project, tmp_path: Path, ruin: Callable[[Path], None], same_process: bool
):
    first = project.commit()
    wanted = facts(project.top)
    project.write("pkg/b.py", "")
    second = project.commit()
    before = everything(project)
    opened = open_checkout(str(tmp_path / "parent"), str(project.top))
    for commit in (first, second):
        opened.go_to(commit)
        ruin(Path(opened.path))
        if not same_process:
            opened.close()
            opened = open_checkout(str(tmp_path / "parent"), str(project.top))
        opened.go_to(first)
        assert {k: v for k, v in facts(Path(opened.path)).items() if "cache" not in k} == wanted
        assert git(Path(opened.path), "status", "--porcelain") == ""
        assert git(Path(opened.path), "rev-parse", "HEAD").strip() == first
        assert git(Path(opened.path), "tag", "--list", "tag-*") == ""
        shutil.rmtree(tmp_path / "victim", ignore_errors=True)
    opened.close()
    assert everything(project) == before


def test_what_a_probe_put_behind_links_outside_is_not_touched(project, checkout, tmp_path):
    commit = project.commit()
    checkout.go_to(commit)
    links_everywhere(Path(checkout.path))
    checkout.go_to(commit)
    assert (tmp_path / "victim/data/rows.csv").read_text() == "precious"


def test_an_index_that_was_cut_short_is_written_anew(project, tmp_path):
    commit = project.commit()
    with open_checkout(str(tmp_path / "parent"), str(project.top)) as opened:
        opened.go_to(commit)
    index = tmp_path / "parent/1/index"
    index.write_bytes(index.read_bytes()[:100])
    with open_checkout(str(tmp_path / "parent"), str(project.top)) as opened:
        opened.go_to(commit)
        assert facts(Path(opened.path)) == facts(project.top)


# --- ended in the middle --------------------------------------------------------------------------


class Interrupting:
    """Raises KeyboardInterrupt at the n-th call within our modules, as Ctrl-C between two steps."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PLACE):
            self.left -= 1
            if self.left == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    def during(self, act: Callable[[], object]) -> bool:
        sys.setprofile(self)
        try:
            act()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False


def test_ctrl_c_between_any_two_steps_is_repaired_by_the_next_commit(project, tmp_path):
    project.write("notes.txt", "one\n")
    project.write("pkg/.gitattributes", "*.bin filter=lfs\n")
    project.write("pkg/gone.bin", pointer_to(b"never fetched"))
    first = project.commit()
    expected = {first: files_of(project.top)}
    project.write(".gitattributes", "*.txt eol=crlf\n")
    (project.top / "pkg/a.py").unlink()
    (project.top / "pkg/gone.bin").unlink()
    project.write("pkg/a.py/inner.py", "")
    second = project.commit()
    expected[second] = {**files_of(project.top), "notes.txt": (False, b"one\r\n")}
    opened = open_checkout(str(tmp_path / "parent"), str(project.top))
    opened.go_to(first)
    after = 0
    while True:
        after += 3
        interrupted = Interrupting(after).during(lambda: opened.go_to(second))
        for commit in (first, second, first):
            opened.go_to(commit)
            assert files_of(Path(opened.path)) == expected[commit], f"after {after} calls"
            assert opened.missing == (("pkg/gone.bin",) if commit == first else ())
        if not interrupted:
            break
    opened.close()
    assert after > 60


def held(project: Project, parent: Path, commit: str) -> subprocess.Popen[str]:
    """Start a process that holds a checkout until its input ends; waits until it does."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(parent), str(project.top), commit],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_two_processes_at_once_have_two_checkouts_and_the_next_takes_a_free_one(project, tmp_path):
    commit, parent = project.commit(), tmp_path / "parent"
    with held(project, parent, commit) as one, held(project, parent, commit) as two:
        assert one.stdout is not None
        assert two.stdout is not None
        paths = {one.stdout.readline().strip(), two.stdout.readline().strip()}
        assert paths == {str(parent / "1/tree"), str(parent / "2/tree")}
        assert sweep(str(parent)) == 0
        with open_checkout(str(parent), str(project.top)) as third:
            assert third.path == str(parent / "3/tree")
        one.communicate()
        with open_checkout(str(parent), str(project.top)) as again:
            assert again.path in paths
        two.communicate()
    assert sweep(str(parent)) == 3
    assert [*parent.iterdir()] == []


def test_what_a_killed_process_held_is_swept_and_never_what_is_in_use(project, tmp_path):
    commit, parent = project.commit(), tmp_path / "parent"
    with held(project, parent, commit) as killed:
        assert killed.stdout is not None
        path = Path(killed.stdout.readline().strip())
        closed_folders(path)
        with open_checkout(str(parent), str(project.top)) as mine:
            mine.go_to(commit)
            assert sweep(str(parent)) == 0
            killed.send_signal(signal.SIGKILL)
            killed.wait()
            assert sweep(str(parent)) == 1
            assert not path.exists()
            assert facts(Path(mine.path)) == facts(project.top)
    assert sweep(str(parent)) == 1
    assert sweep(str(parent)) == 0
    assert sweep(str(tmp_path / "nowhere")) == 0


def test_a_program_that_was_started_does_not_hold_the_checkout(project, tmp_path):
    parent = tmp_path / "parent"
    opened = open_checkout(str(parent), str(project.top))
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False) as lasting:
        opened.close()
        assert sweep(str(parent)) == 1
        lasting.communicate()


def test_a_checkout_is_for_its_owner_alone(project, tmp_path):
    with open_checkout(str(tmp_path / "parent"), str(project.top)):
        assert (tmp_path / "parent/1").stat().st_mode & 0o777 == 0o700


def repository(top: Path) -> Path:
    return top.parent / "git"


def git(top: Path, *words: str, check: bool = True) -> str:
    person = ("-c", "user.name=A Person", "-c", "user.email=person@example.org")
    done = subprocess.run(["git", *person, *words], cwd=top, capture_output=True, text=True)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout
