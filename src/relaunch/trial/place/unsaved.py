"""Finds edits that sit in an editor and not yet on the disk: the launch would test the OLD code.

Starts from the editors that live now, not from the files: looking through the whole project for
swap files would cost every relaunch more than everything else together.
"""

from __future__ import annotations

import os
import time

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VIM, EMACS, NANO, CODE = "vim", "emacs", "nano", "VS Code"

_DIRTY_AT = 0x3EF  # vim's b0_dirty; nano writes the same block when it locks
_PID_AT, _NAME_AT = 24, 108
_WALK_BUDGET_S = 0.015
_CODE_FOLDERS = (
    ("config", "Code", CODE),
    ("config", "Code - Insiders", CODE),
    ("config", "Code - OSS", CODE),
    ("config", "VSCodium", "VSCodium"),
    ("config", "Cursor", "Cursor"),
    ("config", "Windsurf", "Windsurf"),
    ("data", "code-server", "code-server"),
    ("mac", "Code", CODE),
    ("mac", "Cursor", "Cursor"),
)
_NEVER_ENTERED = frozenset(
    ("node_modules", "__pycache__", "site-packages", "venv", "build", "dist", "wandb", "mlruns")
)


class Unsaved(Record):
    """One file of the project whose newest text is only in an editor."""

    path: str
    editor: str
    pid: int
    """0 when the editor keeps its backup without a process of its own (VS Code's hot exit)."""
    where: str = ""
    """The tmux pane of the editor, `%3`; empty when it is not in one or cannot be told."""
    trace: str = ""
    """The file that gives the edit away: swap, lock or backup; a tmux socket for a bare nano."""


class _Editor(Record):
    kind: str
    pid: int


def unsaved_buffers(project: str, *, home: str, env: Mapping[str, str]) -> list[Unsaved]:
    """Return the files inside `project` with unsaved edits, each once, sorted by path."""
    project = os.path.realpath(project)
    found: dict[str, Unsaved] = {}
    editors = _living_editors()
    for editor in editors:
        if editor.kind == EMACS:
            continue  # all of them share one look through the folders, below
        pid = editor.pid
        for edit in _vim_edits(pid, home) if editor.kind == VIM else _nano_edits(pid):
            _keep(found, edit, project)
    emacs = [editor.pid for editor in editors if editor.kind == EMACS]
    if emacs:
        for edit in _emacs_edits(emacs, project):
            _keep(found, edit, project)
    for edit in _code_edits(home, env):
        _keep(found, edit, project)
    return [found[path] for path in sorted(found)]


def still_unsaved(edit: Unsaved) -> bool:
    """Tell whether the edit is still waiting; cheap enough to ask ten times a second."""
    if edit.editor == VIM:
        return _is_alive(edit.pid) and _dirty_block(edit.trace) is not None
    if edit.editor == EMACS:
        return _is_alive(edit.pid) and os.path.lexists(edit.trace)
    if edit.editor == NANO:
        if not _is_alive(edit.pid):
            return False
        if edit.trace.endswith(".swp"):
            return _nano_lock_is_dirty(edit.trace, edit.path)
        cwd = _cwd(edit.pid)
        shown = _modified_in_pane(edit.trace, edit.where, cwd, list(_arguments(edit.pid, cwd)))
        return edit.path in map(os.path.realpath, shown)
    return _code_backup_differs(edit.trace, edit.path)


def _keep(found: dict[str, Unsaved], edit: Unsaved, project: str) -> None:
    real = os.path.realpath(edit.path)
    if real.startswith(project.rstrip("/") + "/") and real not in found:
        found[real] = edit.but(path=real)


# --- who is editing


def _living_editors() -> list[_Editor]:
    """Return the editors of this user; on a system without /proc, none."""
    me = os.geteuid()
    editors = []
    try:
        proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return []
    try:
        for name in os.listdir(proc):
            if not name.isdigit():
                continue
            try:
                # Kernel threads and others' processes are most of a machine: a stat is cheaper.
                if os.stat(name, dir_fd=proc).st_uid != me:
                    continue
                fd = os.open(name + "/comm", os.O_RDONLY, dir_fd=proc)
            except OSError:
                continue
            try:
                kind = _editor_kind(os.read(fd, 32))
            except OSError:
                continue
            finally:
                os.close(fd)
            if kind:
                editors.append(_Editor(kind=kind, pid=int(name)))
    finally:
        os.close(proc)
    return editors


def _editor_kind(comm: bytes) -> str:
    comm = comm.rstrip(b"\n")
    if b"vim" in comm or comm in (b"vi", b"view", b"ex", b"rvi"):
        return VIM
    if comm.startswith(b"emacs") and not comm.startswith(b"emacsclient"):
        return EMACS
    return NANO if comm in (b"nano", b"rnano") else ""


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _environment(pid: int) -> dict[str, str]:
    """Return the environment a process started with; empty when it may not be read."""
    pairs = (item.partition("=") for item in _proc_text(pid, "environ").split("\0"))
    return {name: value for name, equals, value in pairs if equals}


def _proc_text(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return os.fsdecode(file.read())
    except OSError:
        return ""


def _cwd(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


# --- vim and neovim keep the swap file open


def _vim_edits(pid: int, home: str) -> Iterator[Unsaved]:
    pane = None
    for swap in _open_swaps(pid):
        block = _dirty_block(swap)
        if block is None:
            continue
        if pane is None:
            pane = _environment(pid).get("TMUX_PANE", "")
        path = _swapped_file(block, swap, home)
        yield Unsaved(path=path, editor=VIM, pid=pid, where=pane, trace=swap)


def _open_swaps(pid: int) -> Iterator[str]:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")
        except OSError:
            continue
        # .swp, then .swo down to .saa when several sessions edit files of one name
        if target[:1] == "/" and target[-4:-2] in (".s", ".r", ".q"):
            yield target


def _dirty_block(swap: str) -> bytes | None:
    """Return the first block of a swap file that says its text is not saved."""
    try:
        with open(swap, "rb") as file:
            block = file.read(_DIRTY_AT + 1)
    except OSError:
        return None
    if len(block) <= _DIRTY_AT or block[:2] not in (b"b0", b"bc", b"bC", b"bd"):
        return None
    return block if block[_DIRTY_AT] == 0x55 else None


def _swapped_file(block: bytes, swap: str, home: str) -> str:
    """Return the file behind a swap: vim writes `~user/path`; else the swap's own name tells."""
    name = os.fsdecode(block[_NAME_AT : _DIRTY_AT - 1].split(b"\0")[0])
    if name.startswith("/"):
        return name
    folder, base = os.path.split(swap)
    stem = base[:-4]
    beside = stem.replace("%", "/") if "%" in stem else os.path.join(folder, stem.removeprefix("."))
    if name.startswith("~"):
        # Ours first: vim writes the user's name even where HOME is not what the system says.
        for path in (os.path.join(home, name.partition("/")[2]), os.path.expanduser(name)):
            if os.path.exists(path):
                return path
    return beside


# --- emacs leaves a lock, a dangling link `.#name -> user@host.pid:boot`, beside the file


def _emacs_edits(pids: list[int], project: str) -> Iterator[Unsaved]:
    panes: dict[int, str] = {}
    since = min(_started_at(pid) for pid in pids)
    for folder, names in _folders(pids, project):
        for name in names:
            if name.startswith(".#"):
                pid, path = _lock_owner(os.path.join(folder, name)), name[2:]
                if pid not in pids:
                    continue
            elif _auto_save_is_newer(folder, name, since):
                pid, path = _likeliest(pids, folder), name[1:-1]
            else:
                continue
            if pid not in panes:
                panes[pid] = _environment(pid).get("TMUX_PANE", "")
            yield Unsaved(
                path=os.path.join(folder, path),
                editor=EMACS,
                pid=pid,
                where=panes[pid],
                trace=os.path.join(folder, name),
            )


def _lock_owner(lock: str) -> int:
    try:
        target = os.readlink(lock)
    except OSError:
        return 0
    pid = target.rpartition("@")[2].rpartition(".")[2].partition(":")[0]
    return int(pid) if pid.isdigit() else 0


def _auto_save_is_newer(folder: str, name: str, since: float) -> bool:
    """Tell whether `#name#` is an auto-save of this session: all there is without locks."""
    if len(name) < 3 or name[-1] != "#":
        return False
    try:
        saved = os.stat(os.path.join(folder, name)).st_mtime
        return saved >= since and saved > os.stat(os.path.join(folder, name[1:-1])).st_mtime
    except OSError:
        return False


def _likeliest(pids: list[int], folder: str) -> int:
    """Return the editor that was started on this folder; an auto-save does not name its writer."""
    for pid in pids:
        cwd = _cwd(pid)
        if any(os.path.dirname(path) == folder for path in _arguments(pid, cwd)):
            return pid
    return max(pids, key=_started_at)


def _started_at(pid: int) -> float:
    try:
        return os.stat(f"/proc/{pid}").st_mtime
    except OSError:
        return time.time()


def _folders(pids: list[int], project: str) -> Iterator[tuple[str, list[str]]]:
    """Yield folders with the names that start with `.#` or `#`: those the editor was given first.

    The walk is breadth first and ends when its CPU budget does: a lock deep inside a giant tree may
    be missed, a relaunch is never slowed.
    """
    first = []
    for pid in pids:
        cwd = _cwd(pid)
        first += [os.path.dirname(path) for path in _arguments(pid, cwd)]
        first.append(cwd)
    inside = (project, project.rstrip("/") + "/")
    queue = [path for path in first if path == inside[0] or path.startswith(inside[1])]
    queue.append(project)
    seen = set()
    end = time.thread_time() + _WALK_BUDGET_S
    for folder in queue:
        if folder in seen:
            continue
        seen.add(folder)
        names = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name
                    if name[0] == "#" or name.startswith(".#"):
                        names.append(name)
                    elif name[0] == "." or name in _NEVER_ENTERED:
                        continue
                    elif entry.is_dir(follow_symlinks=False):
                        queue.append(entry.path)
        except OSError:
            continue
        if names:
            yield folder, names
        if time.thread_time() > end:
            return


def _arguments(pid: int, cwd: str) -> Iterator[str]:
    """Yield the files a process was started with, absolute."""
    for word in _proc_text(pid, "cmdline").split("\0")[1:]:
        if word and word[0] not in "-+":
            yield os.path.normpath(os.path.join(cwd, word))


# --- nano: a lock if it was told to, else only its title bar, which tmux can show us


def _nano_edits(pid: int) -> Iterator[Unsaved]:
    cwd = _cwd(pid)
    files = list(_arguments(pid, cwd))
    surroundings = _environment(pid)
    pane = surroundings.get("TMUX_PANE", "")
    locked = False
    for folder in sorted({cwd, *(os.path.dirname(path) for path in files)}):
        for lock in _nano_locks(folder, pid):
            locked = True
            path = os.path.join(folder, os.path.basename(lock)[1:-4])
            if _nano_lock_is_dirty(lock, path):
                yield Unsaved(path=path, editor=NANO, pid=pid, where=pane, trace=lock)
    if locked or not pane:
        return
    socket = surroundings.get("TMUX", "").partition(",")[0]
    for path in _modified_in_pane(socket, pane, cwd, files):
        yield Unsaved(path=path, editor=NANO, pid=pid, where=pane, trace=socket)


def _nano_locks(folder: str, pid: int) -> Iterator[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name[0] == "." and name.endswith(".swp"):
            lock = os.path.join(folder, name)
            block = _any_block(lock)
            if (
                block[2:6] == b"nano"
                and int.from_bytes(block[_PID_AT : _PID_AT + 4], "little") == pid
            ):
                yield lock


def _any_block(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_DIRTY_AT + 1)
    except OSError:
        return b""


def _nano_lock_is_dirty(lock: str, path: str) -> bool:
    """Nano's `U` stays after a save; it writes the lock again at the first change after one."""
    try:
        newer = os.stat(lock).st_mtime_ns > os.stat(path).st_mtime_ns
    except FileNotFoundError:
        newer = os.path.exists(lock)  # a new file, never saved
    except OSError:
        return False
    return newer and _dirty_block(lock) is not None


def _modified_in_pane(socket: str, pane: str, cwd: str, files: list[str]) -> list[str]:
    """Return the files that a nano in a tmux pane shows as modified."""
    from relaunch.proc.capture import capture

    if not socket or not os.path.exists(socket):
        return []
    screen = capture(("tmux", "-S", socket, "capture-pane", "-p", "-t", pane)).text
    found = []
    for name in names_shown_modified(screen):
        path = os.path.normpath(os.path.join(cwd, name))
        if name.startswith("...") and len(files) == 1:
            path = files[0]  # a narrow title bar cuts the beginning off
        if path in files or os.path.exists(path):
            found.append(path)
    return found


def names_shown_modified(screen: str) -> list[str]:
    """Read the names nano marks as modified: `name *` in its title bar, or in its minibar below.

    Before version 7 a word stood at the right end of the title bar, translated; any word there
    but those of the read-only modes counts.
    """
    lines = screen.rstrip("\n").split("\n")
    names = []
    for line in (lines[0], *lines[-4:]):
        names += [field[:-2] for field in _fields(line) if field.endswith(" *")]
    title = _fields(lines[0])
    if title and ("nano" in title[0] or title[0].startswith("[")):
        del title[0]  # the program and its version, or which of several files: room permitting
    if len(title) == 2 and title[1] not in ("View", "Restricted"):
        names.append(title[0])
    return names


def _fields(line: str) -> list[str]:
    return [field.strip() for field in line.split("  ") if field.strip()]


# --- VS Code and its kin back every unsaved buffer up, and remove the backup on save


def _code_edits(home: str, env: Mapping[str, str]) -> Iterator[Unsaved]:
    bases = {
        "config": env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"),
        "data": env.get("XDG_DATA_HOME") or os.path.join(home, ".local/share"),
        "mac": os.path.join(home, "Library/Application Support"),
    }
    for base, folder, editor in _CODE_FOLDERS:
        backups = os.path.join(bases[base], folder, "Backups")
        for workspace in _names(backups):
            files = os.path.join(backups, workspace, "file")
            for name in _names(files):
                backup = os.path.join(files, name)
                path = _backed_up_file(backup)
                if path and _code_backup_differs(backup, path):
                    yield Unsaved(path=path, editor=editor, pid=0, trace=backup)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _backed_up_file(backup: str) -> str:
    """Return the file named in the first line, `file:///home/a%20b/x.py {"mtime": ...}`."""
    try:
        with open(backup, "rb") as file:
            line = file.readline(65536)
    except OSError:
        return ""
    uri = line.partition(b" ")[0].strip()
    if not uri.startswith(b"file:///"):
        return ""
    return os.fsdecode(_unquoted(uri[7:]))


def _unquoted(text: bytes) -> bytes:
    first, *rest = text.split(b"%")
    pieces = [first]
    for piece in rest:
        try:
            pieces.append(bytes.fromhex(piece[:2].decode("ascii")) + piece[2:])
        except ValueError:
            pieces.append(b"%" + piece)
    return b"".join(pieces)


def _code_backup_differs(backup: str, path: str) -> bool:
    try:
        with open(backup, "rb") as file:
            file.readline(65536)
            text = file.read()
    except OSError:
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(text) + 1) != text
    except OSError:
        return True
