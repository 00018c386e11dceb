"""`rl tiny find`: where a sentinel lies, in files, folders, cores, or a live process."""

from __future__ import annotations

import os

from relaunch.cli import draw
from relaunch.errors import TinyError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterator, Sequence

    from relaunch.tiny.finding.pattern import Pattern, Run

EXAMPLES = """\
Examples
  rl tiny find 0xDEADBEEF core.bin
  rl tiny find 0xDEADBEEF dumps/ --context 32
  rl tiny find 0xDEADBEEF --pid 4242              a live process
  rl tiny find 1203 --dtype float32,int64 out.pt  a number as elements
  rl tiny find 0xCAFE *.bin --json

Both byte orders are looked for. Touching hits are one run; hits that lie in
elements twice as wide, with zeros between, are told as such. Addresses are told
for ELF cores. Exit code: 0 found, 1 not found.
"""
FOUND, NOT_FOUND = 0, 1
_MOST = 50


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("value", metavar="VALUE", help="0xDEADBEEF; with --dtype a number")
    parser.add_argument("path", metavar="PATH", nargs="*", help="files and folders")
    parser.add_argument("--pid", metavar="PID", help="the memory of a live process")
    parser.add_argument("--dtype", metavar="NAMES", default="",
                        help="the number as elements: float32,int64")  # fmt: skip
    parser.add_argument("-C", "--context", metavar="BYTES", nargs="?", const="32", default="",
                        help="a hexdump around each run (32)")  # fmt: skip
    parser.add_argument("--most", metavar="N", default=str(_MOST),
                        help=f"show so many runs ({_MOST}), all are counted")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="as JSON: schema relaunch/tiny-find/1")


class Place:
    """One thing to look into: a file, or the regions of a process."""

    def __init__(self, name: str, read: Callable[[int, int], bytes], note: str = "") -> None:
        """Know its name, and how to read it."""
        self.name = name
        self.read = read
        self.note = note


def main(args: Namespace) -> int:
    """Look, and tell each run."""
    from relaunch.cli.launch_options import whole_number
    from relaunch.tiny.finding.pattern import patterns_of

    if args.command is not None:
        raise UsageError("rl tiny find runs no command", hint="rl tiny find --help")
    names = [one for one in args.dtype.split(",") if one]
    try:
        patterns = patterns_of(args.value, names)
    except ValueError as error:
        raise UsageError(str(error), hint="rl tiny find 0xDEADBEEF FILE") from None
    if not args.path and not args.pid:
        raise UsageError("where?", hint=f"rl tiny find {args.value} core.bin, or --pid PID")
    told = _Told(args, most=whole_number(args.most, "--most"),
                 context=whole_number(args.context or "0", "--context"))  # fmt: skip
    for place, run in _everywhere(args, patterns):
        told.run(place, run)
    return told.end()


def _everywhere(args: Namespace, patterns: Sequence[Pattern]) -> Iterator[tuple[Place, Run]]:
    if args.pid:
        yield from _in_process(args.pid, patterns)
    files = list(_files(args.path))
    total = sum(size for _, size in files) or 1
    from relaunch.cli.tiny_data import Progress
    from relaunch.tiny.finding.search import search_file

    done = 0
    with Progress() as progress:
        for path, size in files:
            before = done

            def tell(here: int, before: int = before) -> None:
                progress((before + here) / total)

            for run in search_file(path, patterns, tell):
                progress.clear()
                yield Place(path, lambda at, many, path=path: _read(path, at, many)), run  # type: ignore[misc]  # the default
            done += size


def _read(path: str, at: int, many: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(at)
        return file.read(many)


def _files(paths: Sequence[str]) -> Iterator[tuple[str, int]]:
    for path in paths:
        if os.path.isdir(path):
            for folder, below, names in os.walk(path):
                below.sort()
                for name in sorted(names):
                    full = os.path.join(folder, name)
                    if os.path.isfile(full) and os.access(full, os.R_OK):
                        yield full, os.path.getsize(full)
        elif os.path.isfile(path):
            yield path, os.path.getsize(path)
        else:
            what = "is no file" if os.path.exists(path) else "does not exist"
            raise TinyError(f"{path} {what}", hint=f"ls {os.path.dirname(path) or '.'}")


def _in_process(text: str, patterns: Sequence[Pattern]) -> Iterator[tuple[Place, Run]]:
    from relaunch.cli.launch_options import whole_number
    from relaunch.tiny.finding.places import Memory
    from relaunch.tiny.finding.search import search

    memory = Memory(whole_number(text, "--pid"))
    try:
        for region in memory.regions:
            place = Place(f"process {memory.pid}", memory.read, region.name)
            for run in search(memory.read, region.begin, region.end, patterns):
                yield place, run
    finally:
        memory.close()


class _Told:
    """Tells runs as they come, or all at the end as JSON."""

    def __init__(self, args: Namespace, *, most: int, context: int) -> None:
        self._args = args
        self._most = most
        self._context = context
        self._runs: list[dict[str, object]] = []
        self._count = self._bytes = 0
        self._last = ""
        self._segments: dict[str, list[object]] = {}

    def run(self, place: Place, run: Run) -> None:
        self._count += 1
        self._bytes += run.count * len(run.pattern.data)
        if self._count > self._most:
            return
        address = self._address(place, run.offset)
        if self._args.json:
            self._runs.append({
                "where": place.name, "offset": run.offset, "end": run.end, "count": run.count,
                "size": len(run.pattern.data), "step": run.step, "order": run.pattern.words,
                "address": address, "note": place.note,
            })  # fmt: skip
            return
        if place.name != self._last:
            draw.say(draw.clean(place.name) + "\n")
            self._last = place.name
        at = f" at address 0x{address:x}" if address is not None and not place.note else ""
        note = f"  {place.note}" if place.note else ""
        draw.say(draw.clean(f"  0x{run.offset:x}..0x{run.end:x}: {run.words}{at}{note}") + "\n")
        if self._context:
            from relaunch.tiny.finding.search import dump

            lines = dump(place.read, run.offset, run.end - run.offset, self._context)
            draw.say("".join(f" {line}\n" for line in lines))

    def _address(self, place: Place, offset: int) -> int | None:
        from relaunch.tiny.finding.places import address_of, core_segments

        if place.note:
            return offset
        if place.name not in self._segments:
            self._segments[place.name] = list(core_segments(place.name))
        return address_of(self._segments[place.name], offset)  # type: ignore[arg-type]  # Segments

    def end(self) -> int:
        if self._args.json:
            draw.say_json("tiny-find", {"value": self._args.value, "runs": self._runs,
                                        "count": self._count, "bytes": self._bytes})  # fmt: skip
        elif self._count > self._most:
            draw.remark(
                f"rl: {self._count:,} runs in all, {self._most} shown: --most {self._count}"
            )
        elif not self._count:
            draw.remark(f"rl: {self._args.value} is nowhere there")
        return FOUND if self._count else NOT_FOUND
