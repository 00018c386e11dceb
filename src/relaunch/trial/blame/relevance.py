"""Which failed calls matter: programs look for many files that need not be there."""

from __future__ import annotations

import os

from relaunch.trial.blame.hits import MISSING, RUN_OUT, SIGBUS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from relaunch.look.stacks import Frame
    from relaunch.trial.blame.hits import Hit

LAST = 5
"""So many of those that ran out of nothing are shown unasked."""
_LOOKS = frozenset(
    ("stat", "lstat", "fstatat", "newfstatat", "statx", "access", "faccessat", "faccessat2",
     "readlink", "readlinkat")
)  # fmt: skip
_ASKING = frozenset(
    ("exists", "lexists", "isfile", "isdir", "islink", "ismount", "is_file", "is_dir", "is_symlink",
     "which", "_access_check", "realpath", "_joinrealpath", "samefile", "getmtime", "checkcache",
     "updatecache", "_candidate_tempdir_list", "get_importer", "addsitedir", "resolve", "glob",
     "_rmtree_safe_fd")
)  # fmt: skip
"""Functions of the standard library that ask whether something is there."""
_OF_PYTHON = frozenset(("pyvenv.cfg", "pybuilddir.txt", "sitecustomize.py", "usercustomize.py"))
_OF_SYSTEM = (
    "/etc/ld.so.", "/usr/lib/locale/", "/usr/share/locale", "/var/run/nscd/", "/run/nscd/",
    "/proc/", "/sys/", "/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/var/lib/dpkg/",
    "/usr/share/zoneinfo", "/etc/selinux", "/dev/tty", "/etc/suid-debug",
)  # fmt: skip
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


def why_hidden(hit: Hit) -> str:
    """Say in a word why a call that failed is no news; nothing when it is."""
    if _is_ours(hit):
        return "relaunch"
    if hit.error in RUN_OUT:
        return ""
    if hit.error not in MISSING and hit.call not in ("connect", *_LOOKS):
        return "" if not hit.path.startswith(_OF_SYSTEM) else "system"
    return _why_not_there(hit)


def _is_ours(hit: Hit) -> bool:
    files = [one.file for one in hit.frames[:6]]
    return hit.path.startswith(_OURS) or any(file.startswith(_OURS) for file in files)


def _why_not_there(hit: Hit) -> str:
    name = os.path.basename(hit.path)
    if _imports(hit.frames):
        return "import"
    if name in _OF_PYTHON or name.endswith(("._pth", ".pyc")) or _is_home(name):
        return "import"
    if hit.path.startswith(_OF_SYSTEM):
        return "system"
    if not hit.frames and (".so" in name or name.endswith((".zip", ".pth"))):
        return "import"
    if any(one.function in _ASKING and _is_library(one.file) for one in hit.frames[:3]):
        return "looked for"
    if hit.call in _LOOKS and not hit.frames:
        return "looked for"
    return ""


def _is_home(name: str) -> bool:
    """Tell the files by which Python finds its own library."""
    return name.startswith("python3") and name.endswith((".zip", "lib-dynload", ".pth"))


def _imports(frames: Sequence[Frame]) -> bool:
    """Tell whether the import system itself is looking: its frame is the innermost."""
    ours = ("<frozen importlib", "<frozen zipimport", "<frozen site")
    return bool(frames) and frames[0].file.startswith(ours)


def _is_library(file: str) -> bool:
    return file.startswith("<frozen ") or ("/lib/python3" in file and "-packages/" not in file)


def sort_out(hits: Sequence[Hit], found: Mapping[int, Iterable[str]], ours: str = "") -> list[Hit]:
    """Join calls that are alike, hide what was found later, and put what matters first.

    Below `ours` are files of rl itself.

    `found` has of each process the paths that were there after all. The order is that of a reader:
    what ran out, the last first; then what was missing or refused, the last first; then the hidden.
    """
    names = {pid: {os.path.basename(path) for path in paths} for pid, paths in found.items()}
    joined = [_hide_found(hit, names) for hit in _join(hits)]
    if ours:
        joined = [h.but(hidden="relaunch") if h.path.startswith(ours) else h for h in joined]
    return sorted(joined, key=_rank)


def _rank(hit: Hit) -> tuple[bool, bool, bool, float]:
    """Order them; what failed without a line failed after it, as the last words of a program do."""
    return bool(hit.hidden), hit.error not in RUN_OUT, not hit.frames, -hit.when


def _hide_found(hit: Hit, names: Mapping[int, set[str]]) -> Hit:
    later = hit.error in MISSING and os.path.basename(hit.path) in names.get(hit.pid, ())
    return hit.but(hidden="found later") if later and not hit.hidden else hit


def _join(hits: Sequence[Hit]) -> list[Hit]:
    """Make one of the hits that differ in their time alone; the last of them stays."""
    groups: dict[tuple[object, ...], Hit] = {}
    told: dict[tuple[object, ...], int] = {}
    for hit in sorted(hits, key=lambda one: one.when):
        file = (hit.error, hit.call, hit.path, hit.pid)
        lines = tuple((one.file, one.line) for one in hit.frames[:1])
        key = (*file, lines, hit.hidden)
        before = groups.pop(key, None)
        grown = max(1, hit.count - told.get(file, 0))  # a loop is told now and then, with its count
        told[file] = max(told.get(file, 0) + 1, hit.count)
        groups[key] = hit.but(count=grown + (before.count if before else 0))
    return list(groups.values())


def shown(hits: Sequence[Hit], *, everything: bool = False) -> list[Hit]:
    """Return those to show: all that ran out, and the last of the others.

    Beside what ran out, a file that no line of Python asked for is no news: shells look for many.
    """
    if everything:
        return [*hits]
    open_ones = [hit for hit in hits if not hit.hidden]
    out = [hit for hit in open_ones if hit.error in RUN_OUT]
    others = [hit for hit in open_ones if hit.error not in RUN_OUT and (hit.frames or not out)]
    return out + others[:LAST]


# --- what a failure names -------------------------------------------------------------------------

_PHRASES = {
    "No space left on device": "ENOSPC",
    "disk is full": "ENOSPC",
    "Errno 28]": "ENOSPC",
    "unexpected pos": "ENOSPC",  # torch.save does not say more
    "failed writing file": "ENOSPC",
    "os error 28": "ENOSPC",
    "Disk quota exceeded": "EDQUOT",
    "Errno 122]": "EDQUOT",
    "Too many open files in system": "ENFILE",
    "Too many open files": "EMFILE",
    "Errno 24]": "EMFILE",
    "Cannot allocate memory": "ENOMEM",
    "Unable to allocate": "ENOMEM",
    "MemoryError": "ENOMEM",
    "Errno 12]": "ENOMEM",
    "Bus error": SIGBUS,
    "bus error": SIGBUS,
    "SIGBUS": SIGBUS,
    "Read-only file system": "EROFS",
    "Text file busy": "ETXTBSY",
    "Connection refused": "ECONNREFUSED",
    "Address already in use": "EADDRINUSE",
    "Input/output error": "EIO",
    "File too large": "EFBIG",
    "Stale file handle": "ESTALE",
    "No such file or directory": "ENOENT",
    "Permission denied": "EACCES",
    "Operation not permitted": "EPERM",
}
_WITH_PATH = frozenset(("ENOENT", "EACCES", "EPERM", "EROFS", "ETXTBSY"))
"""Named with a path, as these usually are, the failure needs no blame."""


def named(text: str, signal: int | None = None) -> tuple[str, ...]:
    """Return the errors of the system that the text of a failure names, but says no path of."""
    text = text.replace("OutOfMemoryError", "")  # a GPU's memory is no matter of calls
    found = dict.fromkeys(
        error
        for phrase, error in _PHRASES.items()
        if phrase in text and not (error in _WITH_PATH and _has_path(text, phrase))
    )
    if signal == 7:
        found[SIGBUS] = None
    if "ENFILE" in found:
        found.pop("EMFILE", None)
    return tuple(found)


def _has_path(text: str, phrase: str) -> bool:
    """Tell whether the line of a phrase has a path: `...: '/data/x'` behind, `cat: x: ` before."""
    lines = [line for line in text.splitlines() if phrase in line]
    behind = [line.partition(phrase)[2] for line in lines]
    before = [line.partition(phrase)[0] for line in lines]
    return any("'" in part or "/" in part for part in behind) or any(
        part.count(": ") > 1 or "/" in part for part in before
    )


def unexplained(names: Iterable[str], hits: Sequence[Hit]) -> tuple[str, ...]:
    """Return the errors that a failure names and no hit with a path is of."""
    known = {hit.error for hit in hits if not hit.hidden and (hit.path or hit.error == "ENOMEM")}
    if "EDQUOT" in known or "ENOSPC" in known:
        known |= {"ENOSPC", "EDQUOT"}
    return tuple(name for name in names if name not in known)
