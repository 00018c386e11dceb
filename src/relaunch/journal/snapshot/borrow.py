"""The user's repository as we see it: where HEAD is, which objects we borrow, how they are pinned.

HEAD is read from its files: asking git would cost a process on every relaunch.
"""

from __future__ import annotations

import os
import time
from errno import EAGAIN

from relaunch.journal import to_disk
from relaunch.journal.home import Home, may_write
from relaunch.journal.snapshot.state import remove
from relaunch.proc.capture import Captured, capture
from relaunch.proc.git import git_env
from relaunch.textfile import read_if_there

BASE = "refs/relaunch/base"
_KEPT = b'[gc "refs/relaunch/*"]'
_KEEP = b"%s\n\treflogExpire = never\n\treflogExpireUnreachable = never\n" % _KEPT


def read_head(home: Home) -> str:
    """Return the commit of HEAD; empty before the first commit and outside git."""
    if not home.git_dir:
        return ""
    text = read_if_there(os.path.join(home.git_dir, "HEAD")).strip()
    for _ in range(5):
        if not text.startswith("ref:"):
            return text if _is_oid(text) else ""
        name = text[4:].strip()
        if name == "refs/heads/.invalid":  # reftable keeps its refs where we do not read
            return _ask_head(home)
        text = (
            read_if_there(os.path.join(home.git_dir, name)).strip()
            or read_if_there(os.path.join(home.common_dir, name)).strip()
            or _packed(home.common_dir, name)
        )
    return ""


def uses_sha256(home: Home) -> bool:
    """Tell the object format of the user's repository."""
    config = (
        read_if_there(os.path.join(home.common_dir, "config")).lower() if home.common_dir else ""
    )
    return "objectformat" in config and "sha256" in config


def objects_of(home: Home) -> str:
    """Return the folder of the objects that can be borrowed."""
    return os.path.join(home.common_dir, "objects")


def pin(home: Home, commit: str, *, drafts: str) -> bool:
    """Keep `commit` in the user's repository from its gc, for good; False if that cannot be.

    One ref with a reflog that never expires: no branch, no line more in `git log --all`. In the
    folder `drafts`, which is ours, files are written before they take their place.
    """
    ref, log = os.path.join(home.common_dir, BASE), os.path.join(home.common_dir, "logs", BASE)
    is_broken = has_broken_pin(home)
    if not is_broken and f" {commit} " in read_if_there(log):
        return True
    if not may_write(home.common_dir):
        return False
    try:
        if is_broken:
            os.unlink(ref)
        _keep_for_good(home, drafts)
    except OSError:
        return False
    # Git since 2.36 then syncs the ref before it has its name; before, a power cut can empty it.
    words = ("-c", "core.fsync=reference", "update-ref", "-m", "base of a trial")
    if user_git(home, *words, "--create-reflog", BASE, commit).code:
        return False
    to_disk.soon(lambda: to_disk.sync([ref, log, os.path.dirname(ref), os.path.dirname(log)]))
    return True


def has_broken_pin(home: Home) -> bool:
    """Tell whether a power cut left our ref empty: git then refuses to collect garbage at all."""
    ref = os.path.join(home.common_dir, BASE) if home.common_dir else ""
    return os.path.isfile(ref) and not _is_oid(read_if_there(ref).strip())


def _keep_for_good(home: Home, drafts: str) -> None:
    """Have reflogs of ours never expire, in the settings of the user's repository.

    Not by `git config`: that syncs nothing, and a power cut could leave no settings at all.
    OSError if it cannot be done, as where git holds its lock.
    """
    path = os.path.realpath(os.path.join(home.common_dir, "config"))
    text, mode = _with_mode(path)
    if _KEPT in text:
        return
    draft = os.path.join(drafts, f"config.{os.getpid()}-{time.monotonic_ns()}.tmp")
    lock = f"{path}.lock"
    try:
        with open(draft, "xb") as file:
            file.write(text + b"\n" * (text[-1:] not in (b"", b"\n")) + _KEEP)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.close(os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            if _with_mode(path) != (text, mode):
                raise OSError(EAGAIN, os.strerror(EAGAIN), path)
            os.rename(draft, path)
        finally:
            os.unlink(lock)
    finally:
        remove(draft)


def _with_mode(path: str) -> tuple[bytes, int]:
    with open(path, "rb") as file:
        return file.read(), os.fstat(file.fileno()).st_mode & 0o7777


def user_git(home: Home, *args: str) -> Captured:
    """Run git on the user's own repository, which starts no program that it names."""
    env = {**git_env(alone=True), "GIT_DIR": home.git_dir, "GIT_WORK_TREE": home.project}
    env |= {"GIT_COMMITTER_NAME": "relaunch", "GIT_COMMITTER_EMAIL": "relaunch@localhost"}
    return capture(("git", "-C", home.project, *args), env=env)


def _ask_head(home: Home) -> str:
    done = user_git(home, "rev-parse", "--verify", "-q", "HEAD")
    return done.text.strip() if not done.code else ""


def _packed(common_dir: str, name: str) -> str:
    text = read_if_there(os.path.join(common_dir, "packed-refs"))
    end = text.find(f" {name}\n")
    return text[text.rfind("\n", 0, end) + 1 : end] if end > 0 else ""


def _is_oid(text: str) -> bool:
    return len(text) in (40, 64) and not text.strip("0123456789abcdef")


def settings_signature(home: Home, excludes: str) -> list[int]:
    """Return what changes when a settings or excludes file of git does."""
    home_dir = os.environ.get("HOME", "")
    xdg = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home_dir, ".config")
    found = []
    for path in (
        os.path.join(home.common_dir, "config"),
        os.path.join(home.git_dir, "config.worktree"),
        os.environ.get("GIT_CONFIG_GLOBAL") or os.path.join(home_dir, ".gitconfig"),
        os.path.join(xdg, "git", "config"),
        "/etc/gitconfig",
        os.path.join(home.common_dir, "info", "exclude"),
        excludes or os.path.join(xdg, "git", "ignore"),
    ):
        try:
            found.append(os.stat(path).st_ctime_ns)
        except OSError:
            found.append(0)
    return found


def excludes_file(home: Home) -> str:
    """Return the excludes file of the user's own settings; empty if there is none."""
    keep = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
    env = git_env(kept=keep)
    argv = ("git", "-C", home.project, "config", "--path", "core.excludesFile")
    done = capture(argv, env={**env, "GIT_DIR": home.git_dir})
    if not done.code:
        return done.text.rstrip("\n")
    xdg = env.get("XDG_CONFIG_HOME") or os.path.join(env.get("HOME", ""), ".config")
    path = os.path.join(xdg, "git", "ignore")
    return path if os.path.exists(path) else ""


def index_signature(home: Home) -> list[int]:
    """Return what changes when the user adds something."""
    try:
        found = os.stat(os.path.join(home.git_dir, "index"))
    except OSError:
        return []
    return [found.st_mtime_ns, found.st_size, found.st_ino]


def staged_files(home: Home, head: str) -> list[str]:
    """Name the files in the user's index that HEAD does not have."""
    if head:
        args = ("diff-index", "--cached", "--diff-filter=A", "--name-only", "-z", head)
        done = user_git(home, *args, "--ignore-submodules=all")
    else:
        done = user_git(home, "ls-files", "-z")
    return done.text.split("\0")[:-1] if not done.code else []
