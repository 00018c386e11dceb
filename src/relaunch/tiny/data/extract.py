"""From a big data set to a small one: look at all of it, choose, write, and say what was taken."""

from __future__ import annotations

import os

from relaunch.errors import TinyError
from relaunch.tiny.data.choose import Choosing
from relaunch.tiny.data.files import check_out, packing_named, reachable, replacing
from relaunch.tiny.data.formats import find_format, named, open_source
from relaunch.tiny.data.request import Part, Taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.tiny.data.choose import Chosen
    from relaunch.tiny.data.formats import Found
    from relaunch.tiny.data.request import Request, Tell
    from relaunch.tiny.data.source import Source

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
        if found.format == "datasets":
            return _each_split(request, tell)
        with replacing(request.out, forced=request.is_forced, unlike=request.path) as temporary:
            return _extract(request, found, temporary, tell)


def _extract(request: Request, found: Found, to: str, tell: Tell | None) -> Taken:
    """Write one file or folder, which somebody else puts in place."""
    source = open_source(request.path, found.format, has_header=request.has_header)
    if request.images or request.arrays:
        from relaunch.tiny.data.smaller import smaller

        source = smaller(source, request)
    chosen = choose(source, request, tell)

    def share(done: float) -> None:
        if tell is not None:
            tell(_LOOKING + (1 - _LOOKING) * done)

    source.write(chosen.picks, to, packing_named(request.out), share)
    notes = tuple(note for note in (found.note, *chosen.notes) if note)
    return Taken(
        format=source.format, rows=len(chosen.picks), total=chosen.total, parts=chosen.parts,
        out=request.out, bytes_before=size_of(request.path), bytes_after=size_of(to),
        notes=notes, picks=chosen.picks,
    )  # fmt: skip


def choose(source: Source, request: Request, tell: Tell | None = None) -> Chosen:
    """Look at a data set once, and choose rows."""
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


def _each_split(request: Request, tell: Tell | None) -> Taken:
    """Take rows of each split of a DatasetDict."""
    import json
    import shutil

    with open(os.path.join(request.path, "dataset_dict.json"), encoding="utf-8") as file:
        splits = json.load(file)["splits"]
    parts: list[Part] = []
    taken = []
    with replacing(request.out, forced=request.is_forced, unlike=request.path) as temporary:
        os.mkdir(temporary)
        shutil.copy(os.path.join(request.path, "dataset_dict.json"), temporary)
        for number, name in enumerate(splits):

            def share(done: float, number: int = number) -> None:
                if tell is not None:
                    tell((number + done) / len(splits))

            inner = request.but(path=os.path.join(request.path, name),
                                out=os.path.join(temporary, name))  # fmt: skip
            one = _extract(inner, find_format(inner.path), inner.out, share)
            taken.append(one)
            parts += [part.but(why=f"{part.why} of {name}") for part in one.parts]
    return Taken(
        format="datasets", rows=sum(one.rows for one in taken),
        total=sum(one.total or 0 for one in taken) if all(one.total is not None for one in taken)
        else None,
        parts=tuple(parts), out=request.out, bytes_before=size_of(request.path),
        bytes_after=size_of(request.out), notes=tuple(note for one in taken for note in one.notes),
    )  # fmt: skip


def size_of(path: str) -> int:
    """Return how many bytes a file has, or all files of a folder."""
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(
        os.path.getsize(os.path.join(folder, name))
        for folder, _, names in os.walk(path)
        for name in names
    )
