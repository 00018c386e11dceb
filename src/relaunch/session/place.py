"""Prepares the world of one attempt and puts it back: config set, clones, frozen copy."""

from __future__ import annotations

import os

from relaunch.errors import PlaceError
from relaunch.events import Warned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from relaunch.events import Event
    from relaunch.journal.snapshot.code import Code
    from relaunch.journal.snapshot.frozen import FrozenCopy
    from relaunch.journal.store import Trial
    from relaunch.recipe import Recipe
    from relaunch.session.project import Project
    from relaunch.trial.place.hold import HeldSet
    from relaunch.trial.place.interpreter import Interpreter
    from relaunch.trial.place.setmix.files import MixedSet
    from relaunch.trial.place.sets import ConfigSets


class Place:
    """The prepared world: `recipe` and `env` are what to launch; `close` puts it all back."""

    def __init__(
        self, project: Project, recipe: Recipe, *, tell: Callable[[Event], object]
    ) -> None:
        """Hold the config set; raises PlaceError for a set that is not there."""
        self.project = project
        self.recipe = recipe
        self.env = {**os.environ, **recipe.env}
        self.expected: dict[str, str] = {}
        """Package to the path it must be loaded from."""
        self.roots: tuple[str, ...] = (project.home.project,)
        """Where the user's own code lies in this world."""
        self._copy: FrozenCopy | None = None
        self._mix: MixedSet | None = None
        self._held: HeldSet | None = None
        self._sets = _sets_of(project, recipe.config_set)
        if self._sets is None:
            return
        if recipe.frozen:
            if self._sets.flag and recipe.config_set:
                self.env[self._sets.flag] = recipe.config_set
            return
        from relaunch.trial.place.hold import HeldSet

        held = HeldSet(
            self._sets,
            recipe.config_set,
            journal=project.home.journal,
            label=f"`{' '.join(recipe.argv)}`",
            tell=lambda text: tell(Warned(text=text)),
        )
        held.__enter__()
        self._held = held
        self.env.update(held.env)

    def foretold_env(
        self, code: Code | None, python: Interpreter | None, *, frozen: bool
    ) -> dict[str, str]:
        """Return the environment in which imports are looked for, by the places of the originals.

        A frozen copy of `code` is made later; what it will put first is first here too.
        """
        env = dict(self.env)
        if frozen and code is not None:
            from relaunch.journal.snapshot.frozen import led_by
            from relaunch.trial.place.syspath import linked_folders

            tops = [os.path.join(root.path, "") for root in code.roots]
            linked = linked_folders(python.site_packages) if python is not None else []
            first = [one for one in linked if any(f"{one}/".startswith(top) for top in tops)]
            first += led_by([(root.kind, root.path) for root in code.roots])
            rest = [part for part in env.get("PYTHONPATH", "").split(os.pathsep) if part]
            if first:
                env["PYTHONPATH"] = os.pathsep.join([*first, *rest])
        if self.recipe.src:
            from relaunch.trial.place.source import source_env

            try:
                env.update(source_env(self.recipe.src, env)[0])
            except PlaceError:
                pass  # told when they are to be used
        return env

    def use_clones(self) -> None:
        """Lead imports to the clones of `--src`."""
        if not self.recipe.src:
            return
        from relaunch.trial.place.source import source_env

        clones = self.recipe.src
        if self._copy is not None:
            clones = tuple(map(self._copy.map, clones))
        changes, self.expected = source_env(clones, self.env)
        self.env.update(changes)
        self.roots = (*self.roots, *clones)

    def freeze(
        self,
        code: Code,
        python: Interpreter | None,
        *,
        again: Trial | None = None,
        mix: MixedSet | None = None,
    ) -> list[str]:
        """Move the launch into a copy of `code`, out of reach of edits; say what is not as then.

        With a `mix`, the copy has these files behind its links, and no set.
        """
        from relaunch.journal.snapshot.frozen import frozen_copy

        copy = frozen_copy(self.project.home, code)
        self._copy = copy
        if mix is not None:
            self._mix = mix
            mix.put_into(copy.path)
        elif self._sets is not None and self._sets.links and self.recipe.config_set:
            self._put_set_into(copy, self._sets, self.recipe.config_set)
        self.env.update(copy.env(self.env))
        self._lead_installs_to(copy, python)
        cwd = copy.map(self.recipe.cwd)
        self.env["PWD"] = cwd
        top = self.project.home.project + os.sep
        argv = [copy.map(word) if word.startswith(top) else word for word in self.recipe.argv]
        probes = tuple(one.but(file=copy.map(one.file)) for one in self.recipe.probes)
        self.recipe = self.recipe.but(cwd=cwd, argv=tuple(argv), probes=probes)
        self.roots = tuple(map(copy.map, (root.path for root in code.roots)))
        return self._not_as_then(copy, code, again) if again is not None else []

    def _lead_installs_to(self, copy: FrozenCopy, python: Interpreter | None) -> None:
        """Put the copies of what is installed in place before the originals."""
        if python is None:
            return
        from relaunch.trial.place.syspath import linked_folders

        mapped = [(folder, copy.map(folder)) for folder in linked_folders(python.site_packages)]
        first = [there for here, there in mapped if here != there]
        rest = [part for part in self.env.get("PYTHONPATH", "").split(os.pathsep) if part]
        if first:
            self.env["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*first, *rest]))

    def _not_as_then(self, copy: FrozenCopy, code: Code, again: Trial) -> list[str]:
        """Name what an old trial ran with and this one does not: it was not kept, only noted."""
        from relaunch.journal.snapshot.choose import sample_digest

        lines = [f"not as in #{again.id}: {name}" for name in copy.missing]
        for root in code.roots:
            for out in root.left_out:
                path = os.path.join(root.path, out.path)
                if os.path.isfile(path) and sample_digest(path, out.size) != out.digest:
                    lines.append(f"not as in #{again.id}: {out.path} has changed, and was not kept")
        if again.start.get("set_digest", "") != self.set_digest():
            lines.append(f"not as in #{again.id}: set {self.recipe.config_set or 'in place'}")
        return lines

    def _put_set_into(self, copy: FrozenCopy, sets: ConfigSets, name: str) -> None:
        """Turn the copy's own links; a set that git ignores is not in it yet, and copied there."""
        from relaunch.trial.place.setedit import copy_into, own_folder
        from relaunch.trial.place.sets import point, targets_for

        targets = {copy.map(link): target for link, target in targets_for(sets, name).items()}
        for link in targets:
            own_folder(copy.path, os.path.dirname(link))
        variants = [os.path.join(os.path.dirname(link), t) for link, t in targets.items()]
        if all(os.path.exists(path) and not os.path.islink(path) for path in variants):
            for link, target in targets.items():
                point(link, target)
        else:
            copy_into(sets, name, copy.path)

    def set_digest(self) -> str:
        """Return what the program's set says; git may ignore it, so the code does not tell."""
        if self._sets is None or not self._sets.links:
            return ""
        from relaunch.trial.place.sets import content_digest

        copy = self._copy.path if self._copy is not None else ""
        return content_digest(self._sets, "" if copy else self.recipe.config_set, project=copy)

    def close(self) -> None:
        """Put the world back; safe to call twice."""
        if self._held is not None:
            self._held.__exit__(None, None, None)
            self._held = None
        if self._copy is not None:
            if self._mix is not None:
                self._mix.take_out(self._copy.path)
            self._copy.close()
            self._copy = None


def _sets_of(project: Project, name: str) -> ConfigSets | None:
    """Return the sets of the project; None when it has none and none is asked for."""
    from relaunch.session.sets import project_sets

    sets = project_sets(project)
    if sets.links or sets.flag:
        return sets
    if name:
        raise PlaceError(
            f"no set `{name}`: there are no config sets here", hint="rl set new NAME --from conf"
        )
    return None
