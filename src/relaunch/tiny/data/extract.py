"""From a big data set to a small one: look at all of it, choose, write, and say what was taken."""

from __future__ import annotations

import os

from relaunch.errors import TinyError
from relaunch.tiny.data.choose import Choosing, Chosen, kept
from relaunch.tiny.data.files import check_out, packing_named, reachable, replacing
from relaunch.tiny.data.formats import find_format, named, open_source
from relaunch.tiny.data.request import Part, Taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.tiny.data.formats import Found
    from relaunch.tiny.data.request import Request, Tell
    from relaunch.tiny.data.source import Source
    from relaunch.tiny.data.splits import Splits

_LOOKING = 0.9
"""The share of the work that looking takes, for who waits."""


def extract(request: Request, *, format: str = "", tell: Tell | None = None) -> Taken:
    """Write a small file of some rows of a big one."""
    with reachable(request.path):
        found = find_format(request.path, format)
        check_out(request.out, forced=request.is_forced, unlike=request.path)
        check_name(request.out, found)
        if found.format == "sqlite":
            from relaunch.tiny.data.databases import extract_database

            return extract_database(request, tell)
        with replacing(request.out, forced=request.is_forced, unlike=request.path) as temporary:
            return _extract(request, found, temporary, tell)


def _extract(request: Request, found: Found, to: str, tell: Tell | None) -> Taken:
    """Write one file or folder, which somebody else puts in place."""
    source = open_source(request.path, found.format, has_header=request.has_header)
    if request.images or request.arrays:
        from relaunch.tiny.data.smaller import smaller

        source = smaller(source, request)
    said: list[str] = []
    if (splits := _splits(source)) is not None:
        request, said = _named_in_each(splits, request)
    chosen = choose(source, request, tell)

    def share(done: float) -> None:
        if tell is not None:
            tell(_LOOKING + (1 - _LOOKING) * done)

    source.write(chosen.picks, to, packing_named(request.out), share)
    notes = tuple(note for note in (found.note, *said, *chosen.notes) if note)
    return Taken(
        format=source.format, rows=len(chosen.picks), total=chosen.total, parts=chosen.parts,
        out=request.out, bytes_before=size_of(request.path), bytes_after=size_of(to),
        notes=notes, picks=chosen.picks,
    )  # fmt: skip


def choose(source: Source, request: Request, tell: Tell | None = None) -> Chosen:
    """Look at a data set once, and choose rows."""
    if (splits := _splits(source)) is not None:
        return _choose_of_each(splits, request, tell)
    choosing = Choosing(request, of_text=source.of_text)

    def share(done: float) -> None:
        if tell is not None:
            tell(_LOOKING * done)

    for batch in source.batches(share, choosing.needs):
        choosing.see(batch)
        if choosing.is_done:
            break
    if not choosing.seen:
        raise TinyError(f"{request.path} has no {source.noun}s", hint=f"ls -l {request.path}")
    return choosing.choose()


def _splits(source: Source) -> Splits | None:
    """Return a source as the splits that it is, if it is; who reads lines loads nothing for it."""
    if source.format != "datasets":
        return None
    from relaunch.tiny.data.splits import Splits

    return source if isinstance(source, Splits) else None


def _named_in_each(source: Splits, request: Request) -> tuple[Request, list[str]]:
    """Keep what was named in every split: nobody knows which one was meant."""
    there, notes = kept(request, *source.counts)
    rows = [start + row for start, count in zip(source.starts, source.counts, strict=False)
            for row in there if row < count]  # fmt: skip
    return request.but(keep=tuple(rows)), notes


def _choose_of_each(source: Splits, request: Request, tell: Tell | None) -> Chosen:
    """Choose rows of each split, of each as many."""
    if not any(source.counts):
        raise TinyError(f"{request.path} has no rows", hint=f"ls -lR {request.path}")
    picks: list[int] = []
    parts: list[Part] = []
    notes: list[str] = []
    for number, (name, split) in enumerate(source.each.items()):
        if not source.counts[number]:
            continue

        def share(done: float, number: int = number) -> None:
            if tell is not None:
                tell((number + done) / len(source.each))

        inner = request.but(path=split.path, keep=tuple(source.of(number, request.keep)))
        chosen = choose(split, inner, share)
        picks += [source.starts[number] + pick for pick in chosen.picks]
        parts += [part.but(why=f"{part.why} of {name}") for part in chosen.parts]
        notes += chosen.notes
    if request.keep:
        parts.sort(key=lambda part: not part.why.startswith(request.keep_why))
    return Chosen(picks=tuple(picks), total=sum(source.counts), parts=tuple(parts),
                  notes=tuple(notes))  # fmt: skip


def check_name(out: str, found: Found) -> None:
    """Refuse a name that promises another format: rows are taken, never converted."""
    promised = named(out)
    ours = {"dataset": "", "datasets": "", "folder": ""}.get(found.format, found.format)
    if promised and promised != ours:
        said = f"-o {out}: the data are {found.format}, and stay so"
        raise TinyError(said, hint=f"-o {os.path.splitext(out)[0]}{ending_of(found)}")


def ending_of(found: Found) -> str:
    """Return the ending that names of such a file have."""
    endings = {"text": ".txt", "sqlite": ".db", "dataset": "", "datasets": "", "folder": ""}
    return endings.get(found.format, f".{found.format}")


def size_of(path: str) -> int:
    """Return how many bytes a file has, or all files of a folder."""
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(
        os.path.getsize(os.path.join(folder, name))
        for folder, _, names in os.walk(path)
        for name in names
    )
