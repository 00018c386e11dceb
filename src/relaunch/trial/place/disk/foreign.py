"""Folders of others, for a person with no other id than their own.

Overlay copies a folder before it writes there, with its owner; where that owner has no name, the
write fails. So such folders are there beforehand, ours, with the rights that we have in them.
"""

from __future__ import annotations

import os
import time

_LONGEST_S = 0.02


def take_over(upper: int, real: int) -> int:
    """Make the folders of others below `real` in `upper`, the nearest first, as far as time allows.

    Returns how many files of others were seen that we may write to, which nothing can be done for.
    """
    until = time.monotonic() + _LONGEST_S
    me, group = os.geteuid(), os.getegid()
    device = os.stat(f"/proc/self/fd/{real}").st_dev
    to_see = [""]
    files = 0
    for folder in to_see:
        if time.monotonic() > until:
            break
        try:
            entries = list(os.scandir(f"/proc/self/fd/{real}/{folder}"))
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink():
                continue
            try:
                about = entry.stat(follow_symlinks=False)
            except OSError:  # it went, as processes and other people's files do
                continue
            is_own = about.st_uid == me and about.st_gid == group
            path = os.path.join(folder, entry.name)
            if about.st_dev != device:  # what is mounted there has a layer of its own
                continue
            if entry.is_dir(follow_symlinks=False):
                to_see.append(path)
                if not is_own:
                    _make(upper, path, about, rights_in(entry.path))
            elif not is_own and os.access(entry.path, os.W_OK, effective_ids=True):
                files += 1
            if time.monotonic() > until:
                break
    return files


def _make(upper: int, path: str, about: os.stat_result, rights: int) -> None:
    new = f"/proc/self/fd/{upper}/{path}"
    try:
        os.makedirs(new, 0o755, exist_ok=True)
        os.chmod(new, about.st_mode & 0o7077 | rights << 6)
        os.utime(new, ns=(about.st_atime_ns, about.st_mtime_ns))
    except OSError:
        pass


def rights_in(path: str) -> int:
    """Return what we may do there, as three bits."""
    asks = (os.R_OK, os.W_OK, os.X_OK)
    return sum(ask for ask in asks if os.access(path, ask, effective_ids=True))
