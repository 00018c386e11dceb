"""Imports the libraries of a program before it starts, and tells whether a fork would be as good.

It is refused for all that a fork does not copy, and for all that the program would have met in
another way: output, files of its own that were read, modules that nobody noted.
"""

from __future__ import annotations

import os
import sys
import time

from relaunch.inside.forks import noted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

_ENDINGS = (".py", ".pyc", ".so")


class Unwanted(BaseException):
    """A library imports what only the program may load; nothing that was done here is of use."""


class Libraries:
    """What is imported here, and whether it is still what was noted."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        """Take what a run of the program noted: `modules`, `roots`, and its `path` there."""
        self._modules: list[tuple[str, str, str]] = spec["modules"]
        self._kinds = {name: (kind, file) for name, kind, file in self._modules}
        self._tops = tuple(os.path.join(os.path.realpath(one), "") for one in spec["roots"])
        self._path: list[str] = spec["path"]
        self._stamps: dict[str, tuple[int, int]] = {}
        self._names: set[str] = set()
        self.had = set(sys.modules)
        self.took_s = 0.0
        self.count = 0

    def load(self) -> str:
        """Import them; returns why they are of no use, or nothing."""
        began = time.perf_counter()
        opened = _Opened(self._tops)
        own = {name for name, (kind, _) in self._kinds.items() if kind == noted.OWN}
        gate = _Gate(own - self.had)
        sys.meta_path.insert(0, gate)
        path = list(sys.path)
        sys.path[:] = [one for one in path if not _is_in(one, self._tops)]
        why = ""
        for name, kind, _ in self._modules:
            if kind == noted.LIBRARY and name not in sys.modules and not _is_below(name, own):
                try:
                    __import__(name)
                except BaseException as error:
                    why = why or f"{name} cannot be imported alone: {type(error).__name__}"
                if gate.was_tried:
                    raise Unwanted(name, *gate.names)
        sys.meta_path.remove(gate)
        if sys.path != [one for one in path if not _is_in(one, self._tops)]:
            why = why or "a library changes sys.path"
        sys.path[:] = path
        self.took_s = time.perf_counter() - began
        found = opened.close()
        return why or (f"an import reads {found}" if found else self._compare())

    def _compare(self) -> str:
        """Look whether all that is loaded now was there in the program too, from the same files."""
        for name, module in list(sys.modules.items()):
            if name in self.had or name == "__main__":
                continue
            kind, file = self._kinds.get(name, ("", ""))
            if not kind or kind == noted.OWN:
                return f"{name} is loaded by a library"
            now = getattr(module, "__file__", None)
            if kind == noted.LIBRARY and now != file:
                return f"{name} is loaded from {now}"
            self._names.add(name.partition(".")[0])
            self.count += 1
            if isinstance(now, str):
                self._stamps[now] = _stamp(now)
        self.had = set(sys.modules)
        return ""

    def stale(self) -> str:
        """Say what makes them others than those of the program as it is now; empty if nothing."""
        changed = next((file for file, was in self._stamps.items() if _stamp(file) != was), "")
        if changed:
            return f"{changed} changed"
        for folder in self._path:
            for name in _modules_in(folder):
                if name in self._names:
                    return f"{os.path.join(folder, name)} has the name of a library"
        return ""

    def forget_own(self) -> None:
        """Let the program look for its own modules itself, and load what only we needed."""
        for entry in list(sys.path_importer_cache):
            if _is_in(entry, self._tops):
                del sys.path_importer_cache[entry]
        for name in set(sys.modules) - self.had:
            del sys.modules[name]


class _Gate:
    """The first finder of imports: lets nothing in that is the program's."""

    def __init__(self, own: set[str]) -> None:
        self._own = own
        self.was_tried = False
        self.names: list[str] = []
        """The modules that wanted it, and those that wanted them."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Find nothing; whoever imports what it may not is noted, for libraries may go on."""
        if name in self._own:
            self.was_tried = True
            for module in list(sys.modules.values()):
                spec: Any = getattr(module, "__spec__", None)
                if getattr(spec, "_initializing", False):
                    self.names.append(spec.name)
            raise Unwanted(name)


class _Opened:
    """Notices which files of the user an import opens; an audit hook stays, so it is told when."""

    def __init__(self, tops: tuple[str, ...]) -> None:
        self._tops: tuple[str, ...] | None = tops
        self._found = ""
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        tops = self._tops
        if tops is None or event != "open" or self._found or not isinstance(args[0], str | bytes):
            return
        path = os.path.realpath(os.fsdecode(args[0]))
        if path.startswith(tops) and "-packages/" not in path:
            self._found = path

    def close(self) -> str:
        self._tops = None
        return self._found


def unforkable(own: Collection[int]) -> str:
    """Say what a fork would not have; empty if it would be equal.

    `own` are descriptors that were there before any import, and those of ours.
    """
    import _thread

    if _thread._count():
        return "a library has started a thread"
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return "a library has started a process"
    except ChildProcessError:
        pass
    for fd, name in opened().items():
        if fd not in own and name not in ("/dev/null", "/dev/urandom"):
            return f"a library keeps {name} open"
    return native_threads()


def opened() -> dict[int, str]:
    """Return the descriptors of this process, and what each is."""
    found = {}
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:  # the one by which the folder is read
            continue
    return found


def native_threads() -> str:
    """Say which library has threads that a fork would not have; empty if none has."""
    if len(os.listdir("/proc/self/task")) == 1:
        return ""
    from relaunch.inside.warm import pools

    return pools.unsafe() or ("PyTorch has a pool of threads" if pools.has_torch_pool() else "")


def keep_torch_whole() -> None:
    """Have forks end without unloading torch's operators one by one.

    That takes each of them 30 ms, and pages that all share are copied for it; nothing sees it.
    """
    unload = getattr(sys.modules.get("torch.library"), "_del_library", None)
    if unload is None:
        return
    import weakref

    for one in [*getattr(weakref.finalize, "_registry", ())]:
        found = one.peek()
        if found is not None and found[1] is unload:
            one.atexit = False


def renew_random() -> None:
    """Give numpy's generator another state in each fork; Python's own has one already."""
    numpy: Any = sys.modules.get("numpy.random.mtrand")
    if numpy is not None:
        numpy._rand.seed()


def _is_in(entry: str, tops: tuple[str, ...]) -> bool:
    """Tell whether a folder is the user's own; what is installed is not, wherever it lies."""
    real = os.path.join(os.path.realpath(entry), "")
    return real.startswith(tops) and "-packages/" not in real


def _is_below(name: str, packages: set[str]) -> bool:
    """Tell whether a module is of one of these packages."""
    while "." in name:
        name = name.rpartition(".")[0]
        if name in packages:
            return True
    return False


def _modules_in(folder: str) -> list[str]:
    """List the names that an import finds in a folder."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = [name.partition(".")[0] for name in names if name.endswith(_ENDINGS)]
    packages = [name for name in names if "." not in name]
    found += [one for one in packages if os.path.exists(os.path.join(folder, one, "__init__.py"))]
    return found


def _stamp(file: str) -> tuple[int, int]:
    try:
        found = os.stat(file)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
