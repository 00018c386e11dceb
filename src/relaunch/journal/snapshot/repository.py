"""Our private git repository beside the journal, and the one way in which git is called.

It keeps bytes exactly (no line-end conversion, no filters), obeys no setting of the user, and never
collects garbage by itself.
"""

from __future__ import annotations

import os
import time

from relaunch.errors import SnapshotError
from relaunch.journal.store import write_file
from relaunch.proc.capture import capture, complaint
from relaunch.proc.git import git_env
from relaunch.textfile import make_own_folder, read_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.proc.capture import Captured

SNAPSHOTS = "refs/relaunch/snapshots"
_WHO = "relaunch <relaunch@localhost>"

_CONFIG = """\
[core]
\trepositoryformatversion = {version}
\tbare = false
\tfilemode = true
\tsymlinks = true
\tignorecase = false
\tprecomposeunicode = false
\ttrustctime = true
\tcheckStat = default
\tfsmonitor = false
\tuntrackedCache = false
\tsplitIndex = false
\tsparseCheckout = false
\tautocrlf = false
\tsafecrlf = false
\teol = lf
\tlogAllRefUpdates = true
\thooksPath = /dev/null
\tlooseCompression = 1
\tprotectHFS = false
\tprotectNTFS = false
[gc]
\tauto = 0
\treflogExpire = never
\treflogExpireUnreachable = never
[maintenance]
\tauto = false
[index]
\tthreads = 1
"""
_SHA256 = "[extensions]\n\tobjectFormat = sha256\n"
# `false` is no valid working-tree-encoding: git dies of it, so that one is unset.
_ATTRIBUTES = "* -text -filter -ident !eol !working-tree-encoding !crlf\n"
NOISE = "\n".join(
    (
        ".*.sw[a-p]", ".*.un~", "*~", ".#*", "\\#*#", "4913", ".DS_Store", "__pycache__/",
        "*.py[co]", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/",
        ".ipynb_checkpoints/", "",
    )
)  # fmt: skip
"""What no project means to keep and opening an editor or running a test leaves behind."""
SKIPPED_OUTSIDE_GIT = (
    "__pycache__",
    ".venv",
    "venv",
    "node_modules",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".ipynb_checkpoints",
)


class Repository:
    """A private repository of one object format."""

    def __init__(self, journal: str, *, sha256: bool = False) -> None:
        """Use `<journal>/git`; nothing is written before `ensure`."""
        self.path = os.path.join(journal, "git-sha256" if sha256 else "git")
        self.sha256 = sha256
        self._is_checked = False
        self.objects = os.path.join(self.path, "objects")
        self.outside_git = os.path.join(self.path, "info", "outside-git")

    def ensure(self) -> None:
        """Make the repository; cheap when it is there, and mends what is missing of it."""
        try:
            whole = map(_has_content, map(self._path_of, ("info/outside-git", "config", "HEAD")))
            if all(whole) and os.path.isdir(self.objects):
                return
            self.mend()
        except OSError as error:
            raise SnapshotError(f"cannot write {self.path}: {error.strerror}") from None

    def mend(self) -> None:
        """Write all but the objects anew. `git init` would cost a process and read templates."""
        make_own_folder(os.path.dirname(self.path))
        # It may hold files that others cannot read in the project. Another may make it meanwhile.
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        for folder in ("objects/info", "objects/pack", "refs", "info", "roots"):
            os.makedirs(os.path.join(self.path, folder), mode=0o700, exist_ok=True)
        outside = "*.py[co]\n" + "".join(f"{name}/\n" for name in SKIPPED_OUTSIDE_GIT)
        for name, text in self._deciding.items():
            self._put(name, text)
        self._put("info/exclude", NOISE)
        self._put("info/outside-git", outside, is_synced=True)  # last: it says all is there

    @property
    def _deciding(self) -> dict[str, str]:
        """Return the files that say what git does here, and that it is a repository."""
        config = _CONFIG.format(version=int(self.sha256)) + (_SHA256 if self.sha256 else "")
        head = "ref: refs/heads/none\n"
        return {"config": config, "info/attributes": _ATTRIBUTES, "HEAD": head}

    def _check(self) -> None:
        """Undo what somebody wrote into the settings, or to have others read in their place.

        Programs that rl ran could write there, and git would start what is named. Some file systems
        fill with zeros what a power cut kept from the disk.
        """
        if self._is_checked or not os.path.isdir(self.path):
            return
        try:
            for name, text in self._deciding.items():
                path = self._path_of(name)
                if os.path.islink(path) or read_if_there(path) != text:
                    self._put(name, text)
            if os.path.lexists(common := os.path.join(self.path, "commondir")):
                os.unlink(common)
        except OSError as error:
            raise SnapshotError(f"cannot write {self.path}: {error.strerror}") from None
        self._is_checked = True

    def _put(self, name: str, text: str, *, is_synced: bool = False) -> None:
        write_file(self._path_of(name), text.encode(), is_synced=is_synced)

    def _path_of(self, name: str) -> str:
        return os.path.join(self.path, name)

    def git(
        self,
        top: str,
        *args: str,
        index: str = "",
        borrow: Sequence[str] = (),
        data: bytes = b"",
    ) -> Captured:
        """Run git on the work tree `top`; `borrow` lists object folders that may be read too."""
        self._check()
        env = {**git_env(alone=True), "GIT_DIR": self.path, "GIT_WORK_TREE": top}
        env["GIT_OBJECT_DIRECTORY"] = self.objects
        if index:
            env["GIT_INDEX_FILE"] = index
        if borrow:
            env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = ":".join(map(_quoted, borrow))
        done = capture(("git", "-C", top, *args), env=env, data=data)
        if done.code == 127:
            raise SnapshotError("git cannot be started: the code is not kept", hint="rl doctor")
        return done

    def must(
        self,
        top: str,
        *args: str,
        index: str = "",
        borrow: Sequence[str] = (),
        data: bytes = b"",
    ) -> bytes:
        """Run git and return its output; SnapshotError with its first line if it fails."""
        done = self.git(top, *args, index=index, borrow=borrow, data=data)
        if done.code:
            raise SnapshotError(f"git {args[0]} in {top}: {complaint(done)}")
        return done.out

    def has(self, oid: str) -> bool:
        """Tell whether an object can be here; packs are not looked into."""
        if self.has_loose(oid):
            return True
        try:
            return bool(os.listdir(os.path.join(self.objects, "pack")))
        except OSError:
            return False

    def has_loose(self, oid: str) -> bool:
        """Tell whether an object has a file of its own; an empty one is what a power cut left."""
        return _has_content(os.path.join(self.objects, oid[:2], oid[2:]))

    def remember(self, tree: str) -> None:
        """Keep `tree` from any garbage collection: one ref, and a reflog line for each tree."""
        log = os.path.join(self.path, "logs", SNAPSHOTS)
        line = reflog_line(tree)
        try:
            try:
                _append(log, line)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(log), mode=0o700, exist_ok=True)
                _append(log, line)
            ref = os.path.join(self.path, SNAPSHOTS)
            if not os.path.exists(ref):
                os.makedirs(os.path.dirname(ref), mode=0o700, exist_ok=True)
                write_file(ref, f"{tree}\n".encode())
        except OSError as error:
            raise SnapshotError(f"cannot write {log}: {error.strerror}") from None


def reflog_line(tree: str) -> str:
    """Return the line that keeps a tree."""
    return f"{'0' * len(tree)} {tree} {_WHO} {int(time.time())} +0000\tsnapshot\n"


def _has_content(path: str) -> bool:
    """Tell whether a file is there and not empty, as a power cut can leave it."""
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


def _append(path: str, line: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, line.encode())
    finally:
        os.close(fd)


def _quoted(path: str) -> str:
    """Quote a path for git's colon-separated lists where it must be."""
    if ":" not in path and not path.startswith('"') and "\n" not in path:
        return path
    inner = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inner}"'
