"""What becomes smaller: files, words and variables; a config set; or the kept call of a trial.

Each has its parts, where the small ones go, the failure that must stay, and places for attempts.
"""

from __future__ import annotations

import os

from relaunch.record import Record
from relaunch.session.shrinking.hunt import Hunt
from relaunch.session.shrinking.parts import read_parts
from relaunch.session.shrinking.places import Place, are_named, copies, look_of
from relaunch.session.shrinking.results import Results

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from relaunch.search.shrink.model import Model
    from relaunch.session.project import Project
    from relaunch.session.shrinking.kept_call import KeptCall
    from relaunch.session.shrinking.told import Event, Request

    Parts = Mapping[str, Model]
    Places = Callable[[str, int], list[Place]]


class Subject(Record):
    """What a search is about."""

    original: Parts
    results: Results
    hunt: Hunt
    places: Places
    """Makes so many places in a folder."""
    seen: Mapping[str, tuple[Any, ...]] = {}
    """How the files looked when they were read: the program may write to them when it is run."""
    call: str = ""
    """The call that is replayed, if one is."""


def subject_of(
    project: Project, request: Request, tell: Callable[[Event], object], call: KeptCall | None
) -> Subject:
    """Read what is asked for; UsageError for what cannot be."""
    if call is not None:
        return _call(project, request, tell, call)
    paths = {file: os.path.join(request.recipe.cwd, file) for file in request.files}
    seen = {file: look_of(os.path.realpath(path)) for file, path in paths.items()}
    original = read_parts(request)
    hunt = Hunt(project, request, original, tell)
    if request.recipe.config_set:
        from relaunch.session.shrinking.config_set import SetPlace, SetResults

        return Subject(
            original=original,
            results=SetResults(project, request, original),
            hunt=hunt,
            places=lambda folder, count: copies(
                folder, request, original, project, count, SetPlace
            ),
            seen=seen,
        )
    return Subject(
        original=original,
        results=Results(request, original),
        hunt=hunt,
        places=lambda folder, count: _places(folder, request, original, project, count),
        seen=seen,
    )


def _places(
    folder: str, request: Request, original: Parts, project: Project, count: int
) -> list[Place]:
    if not are_named(request):
        return copies(folder, request, original, project, count)
    paths = [os.path.join(folder, str(number)) for number in range(count)]
    return [Place(path, request, original) for path in paths]


def _call(
    project: Project, request: Request, tell: Callable[[Event], object], call: KeptCall
) -> Subject:
    from relaunch.session.shrinking.kept_call import CallHunt, CallPlace, CallResults
    from relaunch.session.shrinking.told import CALL

    original = {CALL: call.read(request.keep)}
    return Subject(
        original=original,
        results=CallResults(request, original, call),
        hunt=CallHunt(project, request, original, tell, call),
        places=lambda folder, count: [
            CallPlace(os.path.join(folder, str(number)), request, original, call)
            for number in range(count)
        ],
        call=call.words,
    )
