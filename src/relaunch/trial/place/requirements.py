"""What one revision needs, read from its own files; nothing of them is ever run."""

from __future__ import annotations

from relaunch.jsontext import dumps
from relaunch.record import Record
from relaunch.trial.place.stated.line import normalised
from relaunch.trial.place.stated.lists import from_lines
from relaunch.trial.place.stated.said import TESTING
from relaunch.trial.place.stated.sections import from_conda, from_setup_cfg
from relaunch.trial.place.stated.setup_script import from_setup_script
from relaunch.trial.place.stated.tables import from_pipfile, from_pyproject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from relaunch.trial.place.stated.said import Said


class Requirements(Record):
    """What a revision needs: `needs` are PEP 508 lines, normalised and sorted."""

    needs: tuple[str, ...] = ()
    build: tuple[str, ...] = ()
    """What building it needs, where that is stated."""
    python: str = ""
    """Which Pythons it allows, as `>=3.8,<4`."""
    dynamic: bool = False
    """Something could not be read: there may be more needs than these."""
    name: str = ""
    found_in: tuple[str, ...] = ()
    """The files that the needs were read from."""
    extras: Mapping[str, tuple[str, ...]] = {}
    """What its tests and its developers need, by the name it has there: `test`, `tests`, `dev`."""
    missing: tuple[str, ...] = ()
    """Files that these name and that were not handed in; with them, more can be read."""

    @property
    def digest(self) -> str:
        """Name the set of needs, wherever it was found."""
        from _blake2 import blake2b

        text = dumps(list(self.needs)).encode("ascii")
        return blake2b(text, digest_size=16).hexdigest()


def requirements(files: Mapping[str, bytes]) -> Requirements:
    """Read what there is of pyproject.toml, setup.cfg, setup.py and the like of one revision.

    The first that states its needs is believed, in the order in which installers look.
    """
    texts = {name: data.decode("utf-8-sig", "replace") for name, data in files.items()}
    pyproject = list(from_pyproject(texts))
    said = [
        *(one for one in pyproject if one.builds),
        *from_setup_cfg(texts),
        *from_setup_script(texts),
        *(one for one in pyproject if not one.builds),
        *from_lines(texts),
        *from_pipfile(texts),
        *from_conda(texts),
    ]
    at = next((at for at, one in enumerate(said) if one.needs is not None), len(said))
    unsure = any(one.dynamic for one in said[:at])
    if at < len(said) and said[at].file in ("setup.cfg", "setup.py"):
        unsure = False  # a pyproject.toml that leaves it to setuptools means these
    taken = said[at : at + 1]
    lines = [line for one in taken for line in one.needs or () if line.strip()]
    unread = any(one.dynamic for one in taken) or not all(map(normalised, lines))
    return Requirements(
        needs=_sorted(lines),
        build=_sorted(next((one.build for one in said if one.build), ())),
        python=next((one.python for one in said if one.python), "").replace(" ", ""),
        dynamic=unsure or unread,
        name=next((one.name for one in said if one.name), ""),
        found_in=tuple(dict.fromkeys(f for one in taken for f in (one.file, *one.also_read))),
        extras=_testing(said),
        missing=tuple(sorted({name for one in said[: at + 1] for name in one.missing})),
    )


def _testing(said: Sequence[Said]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for one in said:
        for name, lines in one.extras.items():
            if name in TESTING:
                found.setdefault(name, _sorted(lines))
    return found


def _sorted(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({line for line in map(normalised, lines) if line}))
