"""Histories to check out, what git makes of a commit, and a user's place to the last bit."""

from __future__ import annotations

import hashlib
import io
import os
import random
import stat
import tarfile
from pathlib import Path

from tests.snapshots import Project, facts

NAMES = (
    b"a.py", b"b.py", b"mod/__init__.py", b"mod/deep/c.py", b"data.txt", b"crlf.txt", b"-dash",
    b"sp ace", b"quo\"te", b"back\\slash", b"new\nline", b"\xff\xfe.bin", "ü/ñ.txt".encode(),
    b"glob[*]?", b"mod/run.sh", b"#hash", b":colon", b"mod/.gitattributes", b".gitattributes",
)  # fmt: skip
ATTRIBUTES = (
    b"*.txt text eol=crlf\n", b"*.txt text eol=lf\n", b"*.txt ident\n", b"* -text\n", b"",
    b"data.txt export-ignore\n*.py export-subst\n",
)  # fmt: skip


def random_history(project: Project, seed: int, commits: int, *, attributes: bool) -> list[str]:
    """Commit random edits of every kind; returns the commits."""
    chance = random.Random(seed)
    made = []
    for _ in range(commits):
        for _ in range(chance.randint(1, 6)):
            name = chance.choice(NAMES)
            if attributes or not name.endswith(b".gitattributes"):
                _edit(os.fsencode(project.top) + b"/" + name, chance)
        made.append(project.commit())
    return made


def _edit(path: bytes, chance: random.Random) -> None:
    kind = chance.choice(("write", "write", "write", "remove", "mode", "link", "folder"))
    if path.endswith(b".gitattributes"):
        kind = chance.choice(("write", "write", "remove"))
    if not _make_room(path):
        return
    if kind == "write":
        _write(path, _content(path, chance))
    elif kind == "mode" and os.path.isfile(path) and not os.path.islink(path):
        os.chmod(path, chance.choice((0o644, 0o755)))
    elif kind == "link":
        os.symlink(chance.choice((b"a.py", b"nowhere", b"mod", b"/no/where")), _gone(path))
    elif kind == "folder":
        os.mkdir(_gone(path))
        _write(path + b"/inner.py", _content(path, chance))
    else:
        _gone(path)


def _make_room(path: bytes) -> bool:
    """Make the folder for a path, a file in its way gone; False where a link leads elsewhere."""
    folder = os.path.dirname(path)
    if os.path.islink(folder) or os.path.isfile(folder):
        os.unlink(folder)
    if os.path.islink(os.path.dirname(folder)):
        return False
    os.makedirs(folder, exist_ok=True)
    return True


def _content(path: bytes, chance: random.Random) -> bytes:
    if path.endswith(b".gitattributes"):
        return chance.choice(ATTRIBUTES)
    return b"".join(
        chance.choice((b"x = 1\n", b"y = 2\n", b"$Id$\n", b"$Format:%H$\n", b"\n"))
        for _ in range(chance.randint(0, 4))
    )


def _write(path: bytes, data: bytes) -> None:
    if os.path.islink(path) or os.path.isdir(path):
        _gone(path)
    with open(path, "wb") as file:
        file.write(data)


def _gone(path: bytes) -> bytes:
    if os.path.isdir(path) and not os.path.islink(path):
        for name in os.listdir(path):
            _gone(path + b"/" + name)
        os.rmdir(path)
    elif os.path.lexists(path):
        os.unlink(path)
    return path


def by_git(project: Project, commit: str, target: Path) -> dict[str, object]:
    """What git itself makes of a commit in a fresh clone."""
    project.git("clone", "-q", "--no-checkout", str(project.top), str(target))
    project.git("checkout", "-q", "--detach", commit, cwd=target)
    return facts(target)


def by_archive(project: Project, commit: str) -> dict[str, object]:
    """The files of a commit as `git archive` has them; for histories without attributes."""
    found: dict[str, object] = {}
    if not project.git("ls-tree", commit):
        return found  # tarfile takes an empty archive for a broken one
    packed = os.fsencode(project.git("archive", "--format=tar", commit))
    with tarfile.open(fileobj=io.BytesIO(packed), errors="surrogateescape") as archive:
        for one in archive:
            if one.issym():
                found[one.name] = ("link", one.linkname)
            elif (file := archive.extractfile(one)) is not None:
                found[one.name] = (bool(one.mode & 0o100), file.read())
    return found


def pointer_to(data: bytes) -> str:
    """What git-lfs commits in place of a large file."""
    digest = hashlib.sha256(data).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(data)}\n"


def files_of(top: Path) -> dict[str, object]:
    """All in a tree but its folders and Python's bytecode."""
    return {
        name: fact
        for name, fact in facts(top).items()
        if fact != "folder" and "__pycache__" not in name
    }


def everything(project: Project) -> dict[str, object]:
    """A user's place to the last bit: work tree, repository, and what git says of them."""
    found: dict[str, object] = {}
    for here, folders, files in os.walk(project.top):
        for name in (*folders, *files):
            path = os.path.join(here, name)
            was = os.lstat(path)
            data = Path(path).read_bytes() if stat.S_ISREG(was.st_mode) else b""
            digest = hashlib.sha256(data).hexdigest()
            # Git touches an object that a borrower wanted to write and found to be there.
            when = 0 if "/.git/objects/" in path else was.st_ctime_ns
            found[path] = (was.st_mode, when, was.st_ino, digest)
    for words in (
        ("worktree", "list"),
        ("stash", "list"),
        ("for-each-ref",),
        ("rev-parse", "HEAD"),
    ):
        found[" ".join(words)] = project.git(*words)
    return found
