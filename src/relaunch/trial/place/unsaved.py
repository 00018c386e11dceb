"""Finds edits that sit in an editor and not yet on the disk: the launch would test the OLD code.

Starts from the editors that live now, not from the files: looking through the whole project for
swap files would cost every relaunch more than everything else together.
"""

from __future__ import annotations

import os

from relaunch.record import Record
from relaunch.trial.place.editors.traces import CODE, EMACS, NANO, VIM
from relaunch.trial.place.editors.traces import Unsaved as Unsaved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


class _Editor(Record):
    kind: str
    pid: int


def unsaved_buffers(project: str, *, home: str, env: Mapping[str, str]) -> list[Unsaved]:
    """Return the files inside `project` with unsaved edits, each once, sorted by path."""
    project = os.path.realpath(project)
    inside = project.rstrip("/") + "/"
    found: dict[str, Unsaved] = {}
    for edit in _all_edits(project, home, env):
        real = os.path.realpath(edit.path)
        if real.startswith(inside) and real not in found:
            found[real] = edit.but(path=real)
    return [found[path] for path in sorted(found)]


def still_unsaved(edit: Unsaved) -> bool:
    """Tell whether the edit is still waiting; cheap enough to ask ten times a second."""
    if edit.editor == VIM:
        from relaunch.trial.place.editors.vim import is_still_unsaved
    elif edit.editor == EMACS:
        from relaunch.trial.place.editors.emacs import is_still_unsaved
    elif edit.editor == NANO:
        from relaunch.trial.place.editors.nano import is_still_unsaved
    else:
        from relaunch.trial.place.editors.code import is_still_unsaved
    return is_still_unsaved(edit)


def _all_edits(project: str, home: str, env: Mapping[str, str]) -> Iterator[Unsaved]:
    """Ask each editor that lives; one that does not costs not even its import."""
    editors = _living_editors()
    for editor in editors:
        if editor.kind == VIM:
            from relaunch.trial.place.editors import vim

            yield from vim.edits(editor.pid, home)
        elif editor.kind == NANO:
            from relaunch.trial.place.editors import nano

            yield from nano.edits(editor.pid)
    emacs_pids = [editor.pid for editor in editors if editor.kind == EMACS]
    if emacs_pids:  # all of them share one look through the folders
        from relaunch.trial.place.editors import emacs

        yield from emacs.edits(emacs_pids, project)
    folders = _backup_folders(home, env)
    if folders:
        from relaunch.trial.place.editors import code

        yield from code.edits(folders)


def _backup_folders(home: str, env: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return where VS Code and its kin keep backups here, with the name of each."""
    bases = {
        "config": env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"),
        "data": env.get("XDG_DATA_HOME") or os.path.join(home, ".local/share"),
        "mac": os.path.join(home, "Library/Application Support"),
    }
    folders = [
        (os.path.join(bases[base], folder, "Backups"), editor)
        for base, folder, editor in _CODE_FOLDERS
    ]
    return [(folder, editor) for folder, editor in folders if os.path.isdir(folder)]


def _living_editors() -> list[_Editor]:
    """Return the editors whose processes we may look into; on a system without /proc, none.

    The link to the program tells and filters at once: it cannot be read for processes of others.
    """
    editors = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            try:
                kind = _editor_kind(os.readlink(f"/proc/{name}/exe"))
            except OSError:
                continue
            if kind:
                editors.append(_Editor(kind=kind, pid=int(name)))
    return editors


def _editor_kind(program: str) -> str:
    """Read `/usr/bin/vim.basic`, `/nix/.../.emacs-29.1-wrapped`, `/usr/bin/nvim (deleted)`."""
    name = program.rpartition("/")[2]
    if "vim" in name or name in ("vi", "nvi"):
        return VIM
    if "emacs" in name:
        return "" if "emacsclient" in name else EMACS
    return NANO if name.startswith(("nano", "rnano")) else ""
