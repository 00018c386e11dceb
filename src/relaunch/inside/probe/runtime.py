"""What a probe does when the program comes to it."""

from __future__ import annotations

import sys
import time

from relaunch.inside.probe.chain import callers
from relaunch.inside.probe.counts import ENOUGH
from relaunch.inside.probe.dynamo import untraced
from relaunch.inside.probe.memory import hide
from relaunch.inside.probe.rings import Rings
from relaunch.inside.shown import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from relaunch.inside.probe.counts import Counts
    from relaunch.inside.probe.notes import Notes
    from relaunch.inside.probe.voice import Voice

    Probe = Mapping[str, Any]
    Action = Callable[[tuple[Any, ...]], None]

_CHAINS = 50
"""So many ways to a line are told apart."""
_sleep = time.sleep


class Runtime:
    """The probes of this process, and the one function through which their calls come in."""

    def __init__(
        self, probes: Sequence[Probe], *, voice: Voice, counts: Counts, notes: Notes
    ) -> None:
        """Prepare what each probe does."""
        self.probes = probes
        self.voice = voice
        self.counts = counts
        self.notes = notes
        self.rings = Rings(notes.folder)
        self.retire: Callable[[int], None] = lambda number: None
        """Called with a probe that has seen enough."""
        self.look: Callable[..., None] = lambda *_: None
        """Looks for nan and inf."""
        self._told: set[tuple[int, str]] = set()
        self._chains: dict[int, set[Any]] = {}
        self._parts: dict[int, list[str]] = {}
        self._actions = [self._action(number, probe) for number, probe in enumerate(probes)]

    def function(self) -> Any:
        """Return what the injected calls call."""
        actions = self._actions

        def rl(number: int, *values: Any) -> None:
            try:
                actions[number](values)
            except KeyboardInterrupt as error:  # while it sleeps: the program's own lines tell that
                error.__traceback__ = None
                hide(rl)
                raise

        runtime: Any = rl
        runtime.Failure = Exception
        asides = (self._due, self._passed, self._doubt, self._part, self._failed, self._whole,
                  self._raised, self._whole_raised)  # fmt: skip
        runtime.finite = untraced(self.look)
        for aside in asides:
            setattr(rl, aside.__name__[1:], untraced(aside))
        if any(probe["kind"] == "shapes" for probe in self.probes):
            from relaunch.inside.shapes.begin import begin

            begin(self.notes)
        if any(probe["kind"] == "section" for probe in self.probes):
            from relaunch.inside.probe.measure import offer

            offer(runtime, self.probes, self.counts)
        return rl

    def begin_again(self) -> None:
        """Be a new process, after a fork."""
        self.counts.begin()
        self.rings.begin()
        self.voice.begin(is_fork=True)
        self._chains.clear()

    # --- what the injected code calls ------------------------------------------------------------

    def _due(self, number: int) -> bool:
        """Count, and tell whether this is one of the times that were asked for."""
        probe = self.probes[number]
        self.counts.values[2 * number] += 1
        count = self.counts.values[2 * number]
        every, first = probe.get("every") or 1, probe.get("first")
        return (count - 1) % every == 0 and (first is None or (count - 1) // every < first)

    def _passed(self, number: int) -> None:
        self.counts.values[2 * number + 1] += 1

    def _doubt(self, number: int) -> None:
        """Tell once that a condition cannot be answered."""
        self._passed(number)
        error = sys.exc_info()[1]
        self._once(number, f"--if {self.probes[number]['if']}: {_told(error)}")

    def _raised(self, number: int, *values: Any) -> None:
        """Show the values at a line that raised an exception, which goes on its way."""
        error = sys.exc_info()[1]
        words = [self._word(number, n, value) for n, value in enumerate(values)]
        if not self.probes[number].get("sparse"):
            self.counts.values[2 * number] += 1
        self._say(number, "  ".join([*words, f"(raises {_told(error)})"]))

    def _part(self, number: int, index: int, value: Any) -> None:
        self._parts.setdefault(number, []).append(self._word(number, index, value))

    def _failed(self, number: int, index: int) -> None:
        label = self.probes[number]["labels"][index]
        error = sys.exc_info()[1]
        is_unset = isinstance(error, NameError) and error.name == label[:-1]
        word = label + ("<not set>" if is_unset else f"<{_told(error)}>")
        self._parts.setdefault(number, []).append(word)

    def _whole_raised(self, number: int) -> None:
        failed = sys.exc_info()[1]
        self._whole(number, f"(raises {_told(failed and failed.__context__)})")

    def _whole(self, number: int, *more: str) -> None:
        """Say what could be found out of several expressions of which one failed."""
        words = [*self._parts.pop(number, []), *more]
        if not self.probes[number].get("sparse"):
            self.counts.values[2 * number] += 1
        self._say(number, "  ".join(words))

    # --- what probes do --------------------------------------------------------------------------

    def _action(self, number: int, probe: Probe) -> Action:
        make = {
            "peek": self._peek,
            "log": self._log,
            "count": self._count,
            "where": self._where,
            "who": self._who,
            "sleep": self._sleep,
            "break": self._break,
            "die": self._die,
            "shapes": lambda *_: lambda values: None,
            "package": lambda *_: lambda values: None,
            "section": self._section,
        }[probe["kind"]]
        return self._never_failing(number, make(number, probe))

    def _never_failing(self, number: int, act: Action) -> Action:
        def action(values: tuple[Any, ...]) -> None:
            try:
                act(values)
            except Exception as error:
                self._once(number, f"the probe failed: {_told(error)}")

        return action

    def _counter(self, number: int, probe: Probe) -> Callable[[], None]:
        """Return what counts a hit: where `due` is asked, that has done so."""
        counts, at = self.counts, 2 * number

        def count() -> None:
            counts.values[at] += 1

        return (lambda: None) if probe.get("sparse") else count

    def _peek(self, number: int, probe: Probe) -> Action:
        head = f"{probe['label']} "
        labels = probe["labels"]
        counts, at, voice = self.counts, 2 * number, self.voice
        last = probe.get("last")
        if len(labels) == 1 and not probe.get("sparse") and not last:
            start = head + labels[0]

            def peek_one(values: tuple[Any, ...]) -> None:
                counts.values[at] += 1
                voice.say(start + show(values[0]))

            return peek_one
        count = self._counter(number, probe)

        def peek(values: tuple[Any, ...]) -> None:
            count()
            words = [label + show(value) for label, value in zip(labels, values, strict=False)]
            self._say(number, "  ".join(words))

        return peek

    def _log(self, number: int, probe: Probe) -> Action:
        count = self._counter(number, probe)

        def log(values: tuple[Any, ...]) -> None:
            count()
            self._say(number, str(values[0]))

        return log

    def _count(self, number: int, probe: Probe) -> Action:
        count = self._counter(number, probe)
        return lambda values: count()

    def _where(self, number: int, probe: Probe) -> Action:
        counts, at, chains = self.counts, 2 * number, self._chains

        def count(values: tuple[Any, ...]) -> None:
            counts.values[at] += 1
            if number not in chains:
                chains[number] = set()
                self.notes.add("hit", probe=number, chain=callers(), thread=_thread())
            elif counts.values[at] >= ENOUGH:
                for one in known:
                    self.retire(one)

        # The first probe of a place is the question; the others only help where it has no answer.
        known = [n for n, one in enumerate(self.probes) if one["label"] == probe["label"]]
        if known[0] != number:
            known = [number]
        return count

    def _who(self, number: int, probe: Probe) -> Action:
        known = self._chains
        count = self._counter(number, probe)

        def who(values: tuple[Any, ...]) -> None:
            count()
            chain = tuple(callers())
            seen = known.setdefault(number, set())
            if chain in seen or len(seen) >= _CHAINS:
                return
            seen.add(chain)
            self.notes.add("hit", probe=number, chain=list(chain), thread=_thread())
            lines = [f"{probe['label']} is called by", *(f"  {one}" for one in chain)]
            self.voice.say(("\n" + self.voice.prefix).join(lines))

        return who

    def _sleep(self, number: int, probe: Probe) -> Action:
        seconds = probe["seconds"]
        count = self._counter(number, probe)

        def sleep(values: tuple[Any, ...]) -> None:
            count()
            import os

            self._say(number, f"sleeps {seconds:g} s, process {os.getpid()}")
            _sleep(seconds)

        return sleep

    def _break(self, number: int, probe: Probe) -> Action:
        count = self._counter(number, probe)

        def stop(values: tuple[Any, ...]) -> None:
            count()
            from relaunch.inside.probe.pause import debug_here

            debug_here(self.notes.folder)

        return stop

    def _die(self, number: int, probe: Probe) -> Action:
        count = self._counter(number, probe)

        def die(values: tuple[Any, ...]) -> None:
            count()
            import os

            chain = callers()
            self.notes.add("hit", probe=number, chain=chain, thread=_thread())
            for one in reversed(chain):
                self.voice.say(f"  called by {one}")
            self._say(number, f"dies here, process {os.getpid()}")
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
            os._exit(probe["code"])

        return die

    def _section(self, number: int, probe: Probe) -> Action:
        return lambda values: None  # the code around its statements calls what `offer` gave it

    # --- words -----------------------------------------------------------------------------------

    def _word(self, number: int, index: int, value: Any) -> str:
        probe = self.probes[number]
        if probe["kind"] == "log":
            return str(value)
        return str(probe["labels"][index]) + show(value)

    def _say(self, number: int, text: str) -> None:
        probe = self.probes[number]
        line = f"{probe['label']} {text}"
        if probe.get("last"):
            self.rings.keep(number, self.counts.values[2 * number], probe["last"], line)
        else:
            self.voice.say(line)

    def _once(self, number: int, text: str) -> None:
        if (number, text) not in self._told:
            self._told.add((number, text))
            self.voice.say(f"{self.probes[number]['label']} {text}")
            self.notes.add("trouble", probe=number, text=text)


def _told(error: BaseException | None) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:200]
    except Exception:
        return type(error).__name__


def _thread() -> str:
    """Return the name of this thread, if it is not the main one."""
    threading: Any = sys.modules.get("threading")
    if threading is None:
        return ""
    thread = threading._active.get(threading.get_ident())
    return "" if thread is None or thread is threading._main_thread else str(thread.name)
