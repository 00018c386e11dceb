"""The environment in which a commit was tested: what is in it, and how a person makes it again."""

from __future__ import annotations

import os
import shlex

from relaunch.inside.secret_shapes import mask
from relaunch.journal.store import read_json, write_file
from relaunch.record import Record
from relaunch.trial.place.environment import folders_of
from relaunch.trial.place.frozen_packages import pins
from relaunch.trial.place.pythons import version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BROUGHT_ALONG = frozenset(("pip", "setuptools", "wheel"))
"""What a new environment that has a pip of its own may have."""
_MOST_ON_A_LINE = 8


class Used(Record):
    """What a commit was tested in; nothing but the rung where that was what was there."""

    rung: str = ""
    python: str = ""
    """Its version."""
    base: str = ""
    """The Python that it was made of: those of pyenv are not always found by their version."""
    path: str = ""
    """Where it is kept; `rl gc` removes it some day."""
    packages: Mapping[str, str] = {}
    """What was installed there, as installers take it: `attrs` to `attrs==19.1.0`."""
    is_built: bool = False
    """The commit itself was installed too."""
    also: str = ""
    """Whose packages can be imported there too."""
    made_by: str = ""

    listed_in: str = ""
    """A file with the packages, one on a line."""

    @property
    def install(self) -> tuple[str, ...]:
        """The commands that make it again in a folder `env`."""
        if not self.path:
            return ()
        base = shlex.quote(self.base)
        if self.made_by == "uv":
            first, add = f"uv venv -p {base} env", "uv pip install -p env"
        else:
            first, add = f"{base} -m venv env", "env/bin/pip install"
        pinned = " ".join(shlex.quote(one) for one in self.packages.values())
        if len(self.packages) > _MOST_ON_A_LINE and self.listed_in:
            pinned = f"-r {shlex.quote(self.listed_in)}"
        installing = [f"{add} {pinned}"] if pinned else []
        building = [f"{add} --no-deps -e ."] if self.is_built else []
        return (first, *installing, *building)


def used_by(rung: str, python: str, tools: Mapping[str, str], listed_in: str) -> Used:
    """Look at the environment of a probe; `python` is its Python, nothing if it needed none.

    `tools` are of the command itself, and taken from the command's Python where it has none. The
    packages are written to the file `listed_in`.
    """
    root = os.path.dirname(os.path.dirname(python))
    if not python or not os.path.isdir(root):
        return Used(rung=rung)
    own, below, inherited = folders_of(root)
    found = pins(below or own)
    packages = {**tools, **found} if inherited else found
    made_by = str((read_json(os.path.join(os.path.dirname(root), "made")) or {}).get("made_by", ""))
    left_out = _BROUGHT_ALONG if made_by == "venv" else frozenset()
    packages = {name: packages[name] for name in sorted(packages) if name not in left_out}
    write_file(listed_in, mask("".join(f"{one}\n" for one in packages.values()).encode()))
    return Used(
        rung=rung,
        python=version_of(python),
        base=os.path.realpath(python),
        path=root,
        packages=packages,
        is_built=bool(below),
        also=_above(inherited),
        made_by=made_by,
        listed_in=listed_in,
    )


def _above(sites: Sequence[str]) -> str:
    """Return the Python whose packages these folders are, by its prefix."""
    return os.path.abspath(os.path.join(sites[0], *[os.pardir] * 3)) if sites else ""
