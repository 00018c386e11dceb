"""The running program as we know it: its sources, how far it came, and its snapshots.

`stop(n)` is called by the program itself, between two statements, when the flag there is set: the
first time it comes by, and now and then in loops. There it may leave a snapshot behind; and there,
after an edit, a function that is still running gets its new code.
"""

from __future__ import annotations

import copy
import ctypes
import os
import signal
import sys
import weakref
from _thread import get_ident
from sys import _getframe, getrecursionlimit
from time import perf_counter
from types import CodeType, FrameType

from . import children, compare, held, linetable, morph, quiet, shown, sites, unseen
from .flags import Flags
from .loaded import CannotResume, Loaded, has_sites
from .stencils import Stencils

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .loaded import Rewrite

_OFTEN = 0.05
"""Seconds between two snapshots at the least."""
_SHARE = 0.03
"""Of the program's time that forking may take; writing to what is shared then takes as much."""
_WORTH = 0.03
"""Seconds of work after which a snapshot before an edited statement is worth its fork."""
_SPACING = 0.1
"""Of the time that the program has run, between two snapshots: closer ones would be thinned out."""
_BUSY = 3e-5
"""Seconds between two visits of a place that is so busy that even a question would be felt."""
_GENERATORS = 0x2A0
_TURNED = bytes([1, *bytes(255)])
"""To make of the sites that were passed those that were not."""
_PROFILES = (
    "cProfile", "profile.Profile", "profile.run(", "setprofile(", "settrace(", "sys.monitoring",
    "trace.Trace", "addaudithook",
)  # fmt: skip
"""Words of programs that watch which functions are called: they would see ours."""
_AT_FORK = "register_at_fork"
"""Word of programs that would notice our forks."""
_TERMINAL = ("/dev/tty", "ctermid", "tcgetpgrp", "tcsetpgrp")
"""Words of programs that reach for the terminal of their session: a resumed one has none."""


def give_up(why: str) -> None:
    """End the program: what it would do from here on is not what its sources say."""
    os.write(2, f"rl: this warm run cannot go on: {why}; rl warm stop\n".encode())
    os._exit(125)


class Program:
    """What runs in this process."""

    def __init__(self) -> None:
        self.flags = Flags()
        self.flags.set(sites.CAUGHT, sites.CAUGHT + 1)
        self.seen = bytearray()
        self.files: dict[str, Loaded] = {}
        self.versions: list[Loaded] = []
        """Every version of every file there ever was, by their first sites."""
        self.began = perf_counter()
        self.spent = 0.0
        self.due_at = self.began + _OFTEN
        self.often = _OFTEN
        self.kept = Stencils("")
        """What was compiled in earlier runs."""
        self.asked: list[tuple[str, int]] = []
        """Files and lines at which there must be a snapshot."""
        self.wanted: set[int] = set()
        """The sites there."""
        self.edited: set[int] = set()
        """The sites before statements that were edited last."""
        self.morphed: list[weakref.ref[CodeType]] = []
        """Code that only single frames have, which may wait where nobody sees them."""
        self.visits: dict[int, float] = {}
        """When doors were passed that are asked at the next visit too."""
        self.past_imports = -1
        """The site after the imports of the script."""
        self.resumed = self.began
        self.dearest = 0.0
        """What a snapshot of this process took at the most."""
        self.told: Any = b""
        """In a forked child: where the program itself sees by which sites it came."""
        self.told_end = 0
        """The sites that both know by the same numbers."""
        self.deep: dict[int, int] = {}
        """Sites that the program passed as deep as it can be, where it could not call us."""
        self.caught = False
        """The program may know the numbers of its lines, as from an exception that it caught."""
        self.dissects = False
        """The program may know what its functions are made of, also of those it did not call."""
        self.apart = False
        """Snapshots must not be children of the program: it may wait for any child."""
        self.never = ""
        """Why no snapshot can be taken any more; empty while they can."""
        self.is_closed = False
        """Modules that are loaded from now on stay as they are."""
        self.is_watched = False
        """The program would notice when it calls us."""
        self.inside = 0
        """The thread that called us and has not come back yet."""
        self.mask: Any = None
        """The signals that the program itself holds back, while it calls us."""

        def call(number: int) -> None:
            if self.thread() == self.inside:  # we called the program: it replaced some builtin
                return
            mask, limit = self.no_mask(), self.limit()
            self.sigmask(self.block, None, mask)  # a handler that is due raises here
            try:
                self.sigmask(self.block, self.signals, None)
                self.set_limit(limit + self.room)  # however deep the program is
                before = self.pause()
                try:
                    self.inside, self.mask = self.thread(), mask
                    self.stop(number)
                finally:
                    self.inside, self.mask = 0, None
                    self.go_on(before)
            except self.cannot as error:
                self.give_up(f"{error}")
            except self.too_deep:
                self._pass(number)
            except BaseException:  # from a handler of the program: what was asked is asked again
                self.flags.set(0, len(self.seen))
                raise
            finally:
                try:
                    self.set_limit(limit)
                finally:
                    self.sigmask(self.unblock, mask, None)

        call.__name__ = sites.STOP
        self.call = call
        """What the program calls; a plain function, so that Python returns from it straight.

        Functions of the program take it along when they are pickled, so it names only builtins.
        """
        self.shoot: Callable[[Program, int, FrameType], bool] = lambda *_: False
        """Takes a snapshot; True in a process that was resumed from it."""
        self.settle: Callable[[], object] = lambda: None
        """Waits until all snapshots are known to the host."""

    thread, limit = staticmethod(get_ident), staticmethod(getrecursionlimit)
    set_limit = staticmethod(ctypes.pythonapi.Py_SetRecursionLimit)
    room = 200
    """Levels that our own work may take where the program has none left."""
    pause, go_on = staticmethod(quiet.pause), staticmethod(quiet.go_on)
    no_mask, signals, sigmask = held.Mask, held.ALL, staticmethod(held.sigmask)
    block, unblock = int(signal.SIG_BLOCK), int(signal.SIG_SETMASK)
    give_up = staticmethod(give_up)
    cannot = (morph.CannotMorph, CannotResume)
    too_deep = (RecursionError, ctypes.ArgumentError)

    def __reduce__(self) -> tuple[Any, ...]:
        return bool, ()  # in another process it is never called

    @property
    def elapsed(self) -> float:
        """Seconds that the program has run, those before its snapshot included."""
        return perf_counter() - self.began

    # --- sources

    def load(
        self,
        text: str,
        file: str,
        known: bytes = b"",
        rewrite: Rewrite | None = None,
        *,
        is_warned_of: bool = True,
    ) -> Loaded:
        """Read a file of the project and number its sites; SyntaxError as Python would say it.

        `rewrite` changes the tree before it is compiled, as pytest does with assertions. What is
        doubtful in the text is told only if nobody was warned of it yet.
        """
        if not is_warned_of:
            return self._load(text, file, known, rewrite, is_warned_of)
        with compare.Unwarned():
            return self._load(text, file, known, rewrite, is_warned_of)

    def _load(
        self, text: str, file: str, known: bytes, rewrite: Rewrite | None, is_warned_of: bool
    ) -> Loaded:
        source, stencil = self._compiled(text, file, rewrite, is_warned_of)
        if any(word in text for word in compare.LINES):
            self.caught = True
        self.dissects = self.dissects or any(word in text for word in compare.CODES)
        self.apart = self.apart or children.are_spoken_of(text)
        if any(word in text for word in _TERMINAL) and any(map(os.isatty, range(3))):
            self.never = "it speaks of its terminal by name"
        if _AT_FORK in text:
            self.never = "it acts whenever it is forked"
        if any(word in text for word in _PROFILES):
            self.never, self.is_watched = "it watches which functions are called", True
        first = len(self.seen)
        code, skips = sites.bound(stencil, file, first, self.flags.flag, self.call, self.deep)
        loaded = Loaded(source, first, code, stencil, skips, rewrite)
        self.seen += known or bytes(source.size)
        self.flags.set(loaded.first, loaded.first + 1 if self.is_watched else loaded.end)
        self.files[file] = loaded
        if not self.versions:
            self.past_imports = first + sites.past_imports(source.tree.body)
        self.versions.append(loaded)
        self._heed(loaded)
        return loaded

    def _compiled(
        self, text: str, file: str, rewrite: Rewrite | None, is_warned_of: bool
    ) -> tuple[compare.Source, sites.Stencil]:
        """Return a file, and its code with holes for what only this process has.

        Only who compiles is warned, so that is kept only where nobody is to be warned any more.
        """
        is_kept = is_warned_of and rewrite is None
        stencil = self.kept.read(text, file) if is_kept else None
        if stencil is not None:
            return compare.Source(text, file, size=len(stencil[2])), stencil
        source = compare.Source(text, file)
        tree = sites.instrument(source.tree, source.blocks)
        if rewrite is not None:
            tree = copy.deepcopy(tree)
            rewrite(tree, text)
        stencil = sites.stencil(tree, source.blocks, file)
        if is_kept:
            self.kept.write(text, file, stencil)
        return source, stencil

    def want(self, places: Iterable[str]) -> None:
        """Have a snapshot at these files and lines, wherever the program still comes by."""
        named = (place.rpartition(":") for place in places)
        self.asked = [(os.path.normpath(name), int(line)) for name, _, line in named]
        for loaded in self.files.values():
            self._heed(loaded)

    def _heed(self, loaded: Loaded) -> None:
        numbers = [loaded.at(line) for name, line in self.asked if loaded.is_named(name)]
        loaded.open(numbers)
        self.wanted.update(numbers)

    def place_of(self, frame: FrameType | None) -> str:
        """Say by file and line which statement of the project is being executed; empty if none."""
        while frame is not None:
            loaded = self.files.get(frame.f_code.co_filename)
            if loaded is not None:
                return f"{loaded.source.file}:{loaded.statement(frame.f_lineno)}"
            frame = frame.f_back
        return ""

    def version(self, number: int) -> Loaded:
        """Return the version of a file that a site belongs to."""
        low, high = 0, len(self.versions)
        while high - low > 1:
            middle = (low + high) // 2
            if self.versions[middle].first <= number:
                low = middle
            else:
                high = middle
        return self.versions[low]

    # --- between two statements

    def stop(self, number: int) -> None:
        """Look what is to be done here, in the frame of the program."""
        frame = unseen.user(_getframe(1))
        if self.deep:
            self._count_deep()
        if number == sites.CAUGHT:
            self.caught = True
            self.flags.clear(number)
            if self.told_end:
                self.told[number] = 1
            return
        if self.version(number).stale:
            first = quiet.mark()
            number = self._renew(number, frame)
            quiet.hide(first)
        if self.is_watched:
            self.part()
        self.flags.clear(number)
        now = perf_counter()
        due = now >= self.due_at or number in self.wanted
        if number == self.past_imports:
            # Most edits leave these alone; the ladder keeps this one when others are thinned out.
            due = due or now - self.began > self.often
        if number in self.edited:
            # The next edit is probably here too; and to come here again takes longer than a fork.
            due = due or now - self.resumed > max(_WORTH, 2 * self.dearest)
        self.wanted.discard(number)
        self.edited.discard(number)
        if due:
            first = quiet.mark()  # or who collects garbage would find some of ours
            if self.shoot(self, number, frame) and self.version(number).stale:
                number = self._renew(number, frame)
            quiet.hide(first)
        self.seen[number] = 1
        if number < self.told_end:
            self.told[number] = 1
        self._close(number, frame.f_code)

    def _close(self, number: int, code: CodeType) -> None:
        """Ask no more at a site that was passed, unless it is a door that is not busy.

        How busy a door is tell two visits, one right after the other.
        """
        loaded = self.version(number)
        if number in loaded.doors:
            now = perf_counter()
            before = self.visits.pop(number, None)
            if before is None:
                self.visits[number] = now
                self.flags.set(number, number + 1)
                return
            if now - before > _BUSY:
                return
        loaded.close(number, code)

    def part(self) -> None:
        """Be called no more, by whoever sets flags, but to go on in edited code."""
        self.flags.separate()
        self._ask_in_stale()

    def close_all(self) -> None:
        """Be in no function any more: somebody reads what they are made of."""
        self.never, self.is_closed = "torch.compile reads the program's bytecode", True
        self.part()
        for version in self.versions:
            for code in sites.codes_of(version.code):
                for number in sites.stop_calls(code):
                    version.close(number, code, openly=True)

    def _ask_in_stale(self) -> None:
        for version in self.versions:
            if version.stale:
                self.flags.set(version.first, version.end)

    def _pass(self, number: int) -> None:
        """Let the program go on that is as deep as it can be: it must not fail of us."""
        if self.version(number).stale:
            give_up("it is too deep to be edited")
        self.seen[number] = 1
        if number < self.told_end:
            self.told[number] = 1

    def _count_deep(self) -> None:
        """Count what was passed meanwhile."""
        while self.deep:
            number, _ = self.deep.popitem()
            if number == sites.CAUGHT:
                self.caught = True
            else:
                self.seen[number] = 1
            if number == sites.CAUGHT or number < self.told_end:
                self._tell(number)

    def _tell(self, number: int) -> None:
        if self.told_end:
            self.told[number] = 1

    def tell(self, told: Any, shoot: Callable[[Program, int, FrameType], bool]) -> None:
        """In a forked child: stop once wherever nobody came by yet, to tell that we did."""
        if not self.told_end:
            self.told, self.told_end = told, len(self.seen)
        self.flags.put(bytes(self.seen).translate(_TURNED))
        self.flags.set(sites.CAUGHT, sites.CAUGHT + 1)
        self._ask_in_stale()
        self.due_at = float("-inf")
        self.shoot = shoot

    def hear(self, told: bytes, caught: bool) -> None:
        """Count as executed what forked children executed."""
        both = int.from_bytes(told, "little") | int.from_bytes(self.seen, "little")
        self.seen[:] = both.to_bytes(len(self.seen), "little")
        self.caught = self.caught or caught

    def rest(self) -> None:
        """Take no more snapshots: the program is over but for what it does at its very end.

        A signal that comes while we wait there comes too late for it.
        """
        try:
            mask = held.hold()
            self.due_at = float("inf")
            self.settle()
            held.release(mask)
        except (KeyboardInterrupt, SystemExit):
            pass

    def paid(self, seconds: float) -> None:
        """Note what a snapshot cost, and when the next one pays."""
        self.spent += seconds
        self.dearest = max(self.dearest, seconds)
        self.wait(
            max(
                seconds / _SHARE,
                self.began + self.spent / _SHARE - perf_counter(),
                self.elapsed * _SPACING,
            )
        )

    def wait(self, seconds: float) -> None:
        """Take no snapshot for so long; with `often` zero, as tests have it, at every place."""
        self.due_at = perf_counter() + (max(self.often, seconds) if self.often else 0.0)

    # --- after an edit

    def edit(self, texts: dict[str, str], stack: list[FrameType]) -> None:
        """Take new sources for old ones, in a process that was just resumed.

        CannotResume if a function that is running cannot go on in them.
        """
        self.resumed = perf_counter()
        for file, text in texts.items():
            old = self.files.get(file)
            if old is None or old.source.text == text:
                continue
            seen = self.seen[old.first : old.end]
            file = old.source.file  # the very text: Python knows equal files by its address
            with compare.Unwarned():
                new_source = compare.Source(text, file)
            # The host has looked at names; `symtable` would cost a level of recursion here.
            why, moves = compare.compare(old.source, new_source, seen, names=False)
            if why:
                raise CannotResume(why)
            new = self.load(text, file, old.carried(new_source, seen), old.rewrite)
            if self.never:
                raise CannotResume(self.never)
            edits = compare.first_edits(old.source, new.source)
            self.edited.update(new.first + number for number in edits)
            old.stale = True
            old.open()
            self.flags.set(old.first, old.end)
            new.check(stack)
            if moves.any:
                self._move(old.source.file, stack, moves)
            shown.forget(file)

    def _move(self, file: str, stack: list[FrameType], moves: compare.Moves) -> None:
        """Correct the lines of code that goes on as it is: to its next site, or for good.

        That may be code of any older version, which was corrected with each edit since.
        """
        codes = [frame.f_code for frame in stack]
        codes += [code for one in self.morphed if (code := one()) is not None]
        codes = [code for code in codes if code.co_filename == file]
        codes += [
            code
            for version in self.versions
            if version.stale and version.source.file == file
            for code in sites.codes_of(version.code)
            if code.co_flags & _GENERATORS or not has_sites(code)
        ]
        for code in {id(code): code for code in codes}.values():
            linetable.move(code, moves)

    def _renew(self, number: int, frame: FrameType) -> int:
        """Give a running function its new code; returns the number of the site there."""
        old = self.version(number)
        new = self.files[old.source.file]
        path, index = old.place(number)
        number = new.site(path, index)
        code, call = new.call_at(number, frame.f_code)
        function = morph.function_of(frame)
        if function is not None and function.__code__.co_filename == code.co_filename:
            morph.warm_up(code, function.__code__)
            function.__code__ = code
        morph.morph(frame, code, call)
        self.morphed = [one for one in self.morphed if one() is not None]
        self.morphed.append(weakref.ref(frame.f_code))
        return number


def fork() -> int:
    """Fork as `os.fork` does, without its warning about threads: those that hurt were refused."""
    api = ctypes.pythonapi
    vars(sys)["_relaunch_forks"] = True  # for what else of ours is loaded
    api.PyOS_BeforeFork()
    pid = ctypes.PyDLL(None).fork()
    if pid == 0:
        api.PyOS_AfterFork_Child()
    else:
        api.PyOS_AfterFork_Parent()
    del vars(sys)["_relaunch_forks"]
    if pid < 0:
        raise OSError("no more processes")
    return int(pid)


def frames(innermost: FrameType) -> list[FrameType]:
    """List the frames of the program, innermost first."""
    found = []
    frame: FrameType | None = innermost
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found
