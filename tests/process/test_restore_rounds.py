"""Restore: random edits over repositories with every trap, each snapshot given back whole.

What is not given back must be named by the snapshot itself.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.depth import takes_turns
from tests.snapshots import Project, facts

from relaunch.journal.snapshot.afterwards import changed_since
from relaunch.journal.snapshot.code import Code, from_json, to_json
from relaunch.jsontext import dumps, loads

ROUNDS = 20
NAMES = [
    "train.py",
    "a b.txt",
    "new\nline.py",
    'quo"te\\.py',
    "byte\udcff.py",
    "été.py",
    "-dash",
    "*.star",
    ":colon",
    "x.lfs",
    "u.enc",
    "i.id",
    ".hidden",
    "note.skip",
]
FOLDERS = ["", "pkg", "pkg/deep", "data", "a b", "nested", "skip.skip"]
CAP = 4096


class Editor:
    """Does one random thing to a project at a time."""

    def __init__(self, project: Project, seed: int) -> None:
        self.project = project
        self.top = project.top
        self.random = random.Random(seed)
        self.is_git = (self.top / ".git").exists()

    def step(self) -> str:
        choices: list[Callable[[], None]] = [
            self.write,
            self.write,
            self.write,
            self.sly_edit,
            self.sly_edit,
            self.delete,
            self.empty_folder,
            self.link,
            self.executable,
            self.big,
            self.pipe,
            self.replace,
            self.rename,
            self.touch,
            self.nest,
            self.break_ours,
            self.pause,
            self.pause,
        ]
        if self.is_git:
            choices += [self.commit, self.commit, self.hide, self.flags, self.travel, self.collect]
            choices += [self.amend, self.add_by_force, self.attributes]
        act = self.random.choice(choices)
        act()
        return act.__name__

    def path(self) -> Path:
        folder = self.top / self.random.choice(FOLDERS)
        if not folder.is_dir() or folder.is_symlink():
            folder = self.top
        return folder / self.random.choice(NAMES)

    def files(self) -> list[Path]:
        found = []
        for name, fact in facts(self.top).items():
            # The rules of ignoring stay as they are: this test knows them too.
            if isinstance(fact, tuple) and fact[0] != "link" and name != ".gitignore":
                found.append(self.top / name)
        return sorted(found)

    def some_file(self) -> Path | None:
        files = self.files()
        return self.random.choice(files) if files else None

    def write(self) -> None:
        path = self.top / self.random.choice(FOLDERS) / self.random.choice(NAMES)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            clear(path)
            path.write_bytes(self.bytes(self.random.randint(0, 300)))
        except OSError:
            pass  # a file or a dangling link stands in the way

    def bytes(self, size: int) -> bytes:
        return bytes(self.random.choice(b"ab\r\n\0\xff$Id$ ") for _ in range(size))

    def sly_edit(self) -> None:
        """Same size, same modification time, at once after the last snapshot."""
        path = self.some_file()
        if path:
            was = path.stat()
            path.write_bytes(self.bytes(was.st_size))
            os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))

    def delete(self) -> None:
        path = self.some_file()
        if path:
            path.unlink()

    def empty_folder(self) -> None:
        name = self.random.choice(["hollow", "pkg/hollow/inner", "data/x/y"])
        try:
            (self.top / name).mkdir(parents=True, exist_ok=True)
        except OSError:
            pass

    def link(self) -> None:
        path = self.path()
        clear(path)
        path.symlink_to(self.random.choice(["nowhere", "pkg", "train.py", "../outside", "."]))

    def executable(self) -> None:
        path = self.some_file()
        if path:
            path.chmod(path.stat().st_mode ^ 0o111)

    def big(self) -> None:
        path = self.some_file() or self.path()
        if not path.is_dir():
            path.write_bytes(self.bytes(CAP + self.random.randint(1, 300)))

    def pipe(self) -> None:
        path = self.path()
        clear(path)
        os.mkfifo(path)

    def replace(self) -> None:
        """A file becomes a folder, a folder a file or a link."""
        path = self.top / self.random.choice(["pkg", "data", "train.py", "pkg/deep"])
        if not path.parent.is_dir() or path.parent.is_symlink():
            return
        was_folder = path.is_dir() and not path.is_symlink()
        clear(path)
        if not was_folder:
            path.mkdir()
            (path / "inner.py").write_bytes(self.bytes(20))
        elif self.random.random() < 0.5:
            path.write_bytes(self.bytes(20))
        else:
            path.symlink_to("a b")

    def rename(self) -> None:
        source, target = (self.top / name for name in self.random.sample(FOLDERS[1:], 2))
        free = target.parent.is_dir() and not os.path.lexists(target)
        if source.is_dir() and free and not target.is_relative_to(source):
            source.rename(target)

    def touch(self) -> None:
        for path in self.files():
            os.utime(path)

    def pause(self) -> None:
        """Let times grow old enough to be trusted, so that git is asked for less."""
        self.project.take(max_file=CAP)
        time.sleep(0.02)
        self.project.take(max_file=CAP)

    def nest(self) -> None:
        path = self.top / self.random.choice(["nested", "pkg/inner repo"])
        if not path.parent.is_dir() or (path.exists() and not path.is_dir()) or path.is_symlink():
            return
        nested = Project(path) if not (path / ".git").exists() else Project(path, git=False)
        nested.write("lib.py", self.bytes(30))
        if self.random.random() < 0.6:
            nested.git("add", "-A", check=False)  # it can hold a repository without commits
            nested.git("commit", "-q", "--allow-empty", "-m", "more", check=False)
        nested.write("dirty.py", self.bytes(30))

    def break_ours(self) -> None:
        """Damage what we remember; the objects stay."""
        private = self.project.private
        victims = [path for path in sorted(private.glob("roots/*/*")) if path.is_file()]
        if victims:
            path = self.random.choice(victims)
            kept = self.random.choice([b"", b"DIRC broken", path.read_bytes()[:100]])
            path.write_bytes(kept)
            (path.parent / "index.lock").write_bytes(b"")

    def commit(self) -> None:
        self.project.git("add", "-A", check=False)
        self.project.git("commit", "-q", "--allow-empty", "-m", "more", check=False)

    def amend(self) -> None:
        self.project.git("add", "-A", check=False)
        self.project.git("commit", "-q", "--amend", "--allow-empty", "-m", "am", check=False)

    def travel(self) -> None:
        self.project.git("reset", "-q", "--hard", "HEAD~1", check=False)

    def collect(self) -> None:
        self.project.git("reflog", "expire", "--expire=now", "HEAD", check=False)
        self.project.git("gc", "-q", "--prune=now", check=False)

    def hide(self) -> None:
        flag = self.random.choice(["--assume-unchanged", "--skip-worktree"])
        path = self.some_file()
        if path:
            name = os.path.relpath(path, self.top)
            self.project.git("update-index", flag, "--", name, check=False)
            path.write_bytes(self.bytes(40))

    def flags(self) -> None:
        name, value = self.random.choice(
            [
                ("core.trustctime", "false"),
                ("core.checkStat", "minimal"),
                ("core.autocrlf", "true"),
                ("core.fileMode", "false"),
                ("core.untrackedCache", "true"),
            ]
        )
        self.project.git("config", name, value)

    def add_by_force(self) -> None:
        self.project.write("forced.skip", self.bytes(30))
        self.project.git("add", "-f", "forced.skip", check=False)

    def attributes(self) -> None:
        self.project.git("config", "filter.x.clean", "tr ab AB")
        self.project.write(
            ".gitattributes",
            "* text=auto eol=crlf\n*.id ident\n*.lfs filter=x -text\n"
            "*.enc working-tree-encoding=UTF-16\n",
        )


def clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


def ignored(name: str) -> bool:
    return any(part.endswith(".skip") for part in name.split("/"))


def differences(
    was: dict[str, object], given: dict[str, object], named: set[str]
) -> list[tuple[str, object, object]]:
    """List what is not given back as it was, and not named."""
    found: list[tuple[str, object, object]] = []
    for name in sorted(was.keys() | given.keys()):
        if was.get(name) == given.get(name):
            continue
        if name not in given and (ignored(name) or name in named):
            continue
        if was.get(name) == "folder" and any(path.startswith(name + "/") for path in named):
            continue  # it held nothing but what is named
        if was.get(name) == "folder" and only_ignored(name, was):
            continue
        found.append((name, was.get(name), given.get(name)))
    return found


def only_ignored(name: str, was: dict[str, object]) -> bool:
    below = [path for path in was if path.startswith(name + "/") and was[path] != "folder"]
    return bool(below) and all(ignored(path) for path in below)


def named_by(code: Code) -> set[str]:
    top = code.roots[0].path
    return {
        os.path.relpath(os.path.join(root.path, out.path), top)
        for root in code.roots
        for out in root.left_out
    }


def overgrown(top: Path, code: Code) -> bool:
    """Tell whether files of a project are inside a repository of its own."""
    roots = {root.path for root in code.roots}
    if any(str(path.parent) not in roots for path in top.rglob(".git")):
        return True
    known = (*code.roots[0].new, *(out.path for out in code.roots[0].left_out))
    return any((top / parent / ".git").exists() for name in known for parent in parents(name))


def parents(name: str) -> list[str]:
    parts = name.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


@takes_turns
@pytest.mark.parametrize(
    ("seed", "kind"),
    [(n, kind) for n, kind in enumerate(["git"] * 6 + ["plain"] * 2 + ["sha256", "module"])],
)
def test_every_snapshot_is_given_back_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, kind: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = Project(tmp_path / "project", git=kind != "plain", sha256=kind == "sha256")
    project.write("train.py", "print(1)\n")
    project.write("pkg/model.py", "x = 1\n")
    project.write(".gitignore", "*.skip\n")
    if kind == "module":
        other = Project(tmp_path / "other")
        other.write("lib.py", "y = 1\n")
        other.commit()
        project.git("submodule", "--quiet", "add", str(other.top), "module")
    if kind != "plain" and seed:
        project.commit()
    editor = Editor(project, seed)
    past: list[tuple[Code, dict[str, object], list[str]]] = []
    for number in range(ROUNDS):
        done = [editor.step() for _ in range(editor.random.randint(1, 4))]
        was = facts(project.top)
        code = project.take(max_file=CAP)
        story = f"seed {seed}, round {number}: {done}"
        assert not [root.problem for root in code.roots if root.problem], story
        given, _ = project.restored(code, tmp_path / f"back-{number}")
        assert differences(was, given, named_by(code)) == [], story
        again = project.take(max_file=CAP)
        for root, same in zip(code.roots, again.roots, strict=True):
            assert root.__dict__ == same.__dict__, story
        assert changed_since(project.home, code) == (), story
        # What we remember must not show in what we see, but for one thing: files that we knew
        # before a repository grew around them stay files of the project.
        if number % 3 == 2 and not overgrown(project.top, code):
            for folder in Path(project.home.journal).glob("git*/roots/*"):
                shutil.rmtree(folder)
            anew = project.take(max_file=CAP)
            for root, same in zip(code.roots, anew.roots, strict=True):
                assert root.__dict__ == same.__dict__, f"anew, {story}"
        past.append((from_json(loads(dumps(to_json(code)))), was, done))
    for number, (code, was, done) in enumerate(past):
        given, _ = project.restored(code, tmp_path / f"again-{number}")
        assert differences(was, given, named_by(code)) == [], f"long after {number}: {done}"


def test_the_eyes_of_this_test_see_a_changed_mode_a_lost_folder_and_another_byte() -> None:
    was: dict[str, object] = {"a": (False, b"1"), "b": "folder", "c": (False, b"1")}
    given: dict[str, object] = {"a": (True, b"1"), "c": (False, b"2")}
    assert [name for name, _, _ in differences(was, given, set())] == ["a", "b", "c"]
    assert stat.S_IXUSR == 0o100
