"""What differs between two config sets, key by key; each probe has a mix in a copy of the code.

So the user's links and sets stay as they are, and several probes can run at once. A copy has what
git ignores by links: data is found there. What lies outside of the project and is named relative to
it is not: then the mix is put into the user's own tree, as `rl -s` does with a set.
"""

from __future__ import annotations

import os
import shlex

from relaunch.errors import UsageError
from relaunch.journal.snapshot.code import from_json
from relaunch.session import facts
from relaunch.session.attempt import code_json
from relaunch.session.bisect.changes import Differences, Setting
from relaunch.session.config_secrets import secrets_in, without_secrets
from relaunch.session.masks import REDACTED
from relaunch.session.place import Place
from relaunch.session.sets import named_sets, project_sets
from relaunch.session.take_code import take_code
from relaunch.trial.place.doubts import interpreter
from relaunch.trial.place.frozen_packages import Change
from relaunch.trial.place.setmix.files import MixedSet, read_entries, variant_of
from relaunch.trial.place.setmix.held import HeldMix, keep_mix
from relaunch.trial.place.setmix.mix import SetChange, SetMix
from relaunch.trial.place.sets import targets_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from relaunch.journal.snapshot.code import Code
    from relaunch.recipe import Recipe
    from relaunch.session.bisect.changes import Prepared
    from relaunch.session.bisect.told import Request
    from relaunch.session.project import Project
    from relaunch.trial.place.setmix.files import Entry
    from relaunch.trial.place.sets import ConfigSets

HERE = "here"


def between_sets(
    project: Project, request: Request, words: Sequence[str], kept: Mapping[str, Any]
) -> Differences:
    """Return in what two sets differ; `kept` is of the search that goes on, if one does.

    The words are the names of the two, and `here` where probes run in the user's own tree.
    """
    old, new = (_named(project, word) for word in words[:2])
    is_here = HERE in words[2:]
    sets = _sets(project, old, new)
    entries = read_entries(sets, old), read_entries(sets, new)
    mix = SetMix(*entries)
    changes = [_placed(change, sets, old, new) for change in mix.changes]
    flagged = len(changes) if sets.flag and old != new else -1  # the change of the variable
    if flagged >= 0:
        changes.append(Change(name=sets.flag, old=old, new=new))
    if not changes:
        raise UsageError(f"sets {old} and {new} are the same", hint=f"rl set diff {old} {new}")
    code = None if is_here or not sets.links else _code(project, request, kept)
    redact = project.settings.record.redact

    def mixed(numbers: frozenset[int]) -> MixedSet:
        chosen = [number for number in numbers if number != flagged]
        return MixedSet(sets=sets, entries=mix.entries(chosen))

    def apply(numbers: frozenset[int]) -> Setting:
        env = {sets.flag: new if flagged in numbers else old} if sets.flag else {}
        if not sets.links:
            return Setting(env=env)
        return Setting(
            env=env,
            place=lambda recipe, env: _prepared(project, recipe, env, mixed(numbers), code),
        )

    def keep(name: str, numbers: frozenset[int]) -> object:
        return keep_mix(mixed(numbers), name, journal=project.home.journal, tell=lambda _: None)

    texts = [text for change in mix.changes for text in (change.old, change.new)]
    return Differences(
        changes=tuple(changes),
        apply=apply,
        names=(old, new),
        source=("set", old, new, *words[2:]),
        shown=lambda change: _shown(change, redact),
        secrets=tuple(value.encode() for text in texts for value in secrets_in(text, redact)),
        identity=facts.digest(*(text for side in entries for text in _identity(side))),
        kept={"code": code_json(code)} if code is not None else {},
        hint=_hint(old, new, shlex.join(request.recipe.argv), is_here=is_here),
        keep=keep if sets.links and flagged < 0 else None,
    )


def _sets(project: Project, old: str, new: str) -> ConfigSets:
    """Return the links behind which both sets have something; others stay as they are."""
    sets = project_sets(project)
    targets = [targets_for(sets, name) for name in (old, new)]
    links = tuple(link for link in sets.links if all(link.link in one for one in targets))
    return sets.but(links=links)


def _hint(old: str, new: str, command: str, *, is_here: bool) -> str:
    """Say what to type where both sets do the same."""
    if is_here:
        return f"rl -s {old},{new} -- {command}"
    return (
        f"probes ran in copies; in your own tree: rl bisect --set {old} {new} --here -- {command}"
    )


def _prepared(
    project: Project, recipe: Recipe, env: dict[str, str], mixed: MixedSet, code: Code | None
) -> Prepared:
    """Put a mix into a copy of the code; without code, into the user's tree."""
    if code is None:
        return _Here(project, recipe, env, mixed)
    place = Place(project, recipe.but(frozen=True), tell=lambda _: None)
    place.env = env
    try:
        place.freeze(code, interpreter(recipe.argv, env, recipe.cwd), mix=mixed)
    except BaseException:
        place.close()
        raise
    return place


class _Here:
    """The user's own tree, with a mix behind its links."""

    def __init__(
        self, project: Project, recipe: Recipe, env: dict[str, str], mixed: MixedSet
    ) -> None:
        self.recipe, self.env = recipe, env
        self.roots = (project.home.project,)
        label = f"`rl bisect -- {' '.join(recipe.argv)}`"
        self._held = HeldMix(mixed, journal=project.home.journal, label=label)
        self._held.__enter__()

    def close(self) -> None:
        self._held.__exit__(None, None, None)


def _named(project: Project, word: str) -> str:
    names = named_sets(project, [word])
    if len(names) != 1:
        raise UsageError(
            f"--set {word}: one set, not {len(names)}", hint="rl bisect --set base bf16 -- CMD"
        )
    return names[0]


def _code(project: Project, request: Request, kept: Mapping[str, Any]) -> Code:
    """Return the code of the search that goes on, or take it now."""
    if "code" in kept:
        return from_json(kept["code"])
    recipe = request.recipe
    env = {**os.environ, **recipe.env}
    return take_code(project, recipe, env, interpreter(recipe.argv, env, recipe.cwd))


def _identity(entries: Mapping[str, Entry]) -> Iterator[str]:
    for path, entry in entries.items():
        data = entry.data if entry.data is not None else entry.stamp.encode()
        yield from (path, data.decode("utf-8", "surrogateescape"))


def _placed(change: SetChange, sets: ConfigSets, old: str, new: str) -> Change:
    """Name the files that a person edits, behind the link."""
    return change.but(
        old_file=variant_of(sets, old, change.file) if change.old else "",
        new_file=variant_of(sets, new, change.file) if change.new else "",
    )


# --- what may be shown


def _shown(change: Change, redact: Sequence[str]) -> Change:
    if not isinstance(change, SetChange):
        return change
    key = change.key.rpartition(".")[2].partition("[")[0]

    def shown(text: str) -> str:
        if not secrets_in(text, redact) and facts.secret_names({key: text}, redact):
            return REDACTED
        return without_secrets(text, redact)

    return change.but(old=shown(change.old), new=shown(change.new))
