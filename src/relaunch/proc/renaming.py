"""Renames that a plain rename(2) cannot do: swap two names, or never replace what is there."""

from __future__ import annotations

import os
import sys

_AT_FDCWD = -2 if sys.platform == "darwin" else -100
_NO_REPLACE = 4 if sys.platform == "darwin" else 1
_EXCHANGE = 2


def exchange(
    one: str, other: str, *, src_dir_fd: int = _AT_FDCWD, dst_dir_fd: int = _AT_FDCWD
) -> None:
    """Swap two names at once; an OSError where the kernel or the file system cannot."""
    _rename(one, other, src_dir_fd, dst_dir_fd, _EXCHANGE)


def rename_new(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
    """Rename a file of our own; FileExistsError if the new name is taken: nothing is changed."""
    try:
        _rename(old, new, src_dir_fd, dst_dir_fd, _NO_REPLACE)
    except FileExistsError:
        raise
    except OSError as error:
        try:  # a file system that cannot promise it for renames does so for links
            os.link(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:
            if os.path.lexists(f"/proc/self/fd/{dst_dir_fd}/{new}"):
                raise FileExistsError(error.errno, "it is there", new) from None
            # A folder: an empty one that is made between these two lines is replaced.
            os.rename(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        else:
            os.unlink(old, dir_fd=src_dir_fd)


def _rename(old: str, new: str, old_in: int, new_in: int, how: int) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    name = "renameatx_np" if sys.platform == "darwin" else "renameat2"
    call = getattr(libc, name, None)
    if call is None:
        raise OSError(f"no {name} here")
    if call(old_in, os.fsencode(old), new_in, os.fsencode(new), ctypes.c_uint(how)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), new)
