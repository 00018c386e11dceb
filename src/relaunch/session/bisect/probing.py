"""What runs the probes of a bisection: workers in checkouts, with their builds and packages."""

from __future__ import annotations

import os
import sys

from relaunch.errors import UsageError
from relaunch.session.bisect.build import MOST_BYTES, Build
from relaunch.session.bisect.crew import Crew
from relaunch.session.bisect.forks import Forks
from relaunch.session.bisect.oracle import Oracle
from relaunch.session.bisect.repair import Ladder
from relaunch.trial.place.builds import Builds
from relaunch.trial.place.checkout import open_checkout, sweep
from relaunch.trial.place.doubts import interpreter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from relaunch.history.repository import Repository
    from relaunch.journal.searches import Search
    from relaunch.session.bisect.driver import Driver
    from relaunch.session.bisect.told import Request
    from relaunch.session.project import Project
    from relaunch.trial.launch.forks import Fork
    from relaunch.trial.place.checkout import Checkout

_INSTALL_S = 600.0
"""What making one environment may take."""


class Probing:
    """Where and how the commits of one search are run."""

    def __init__(
        self,
        project: Project,
        request: Request,
        repo: Repository,
        book: Search,
        *,
        overlay: dict[str, str],
        when: Callable[[str], float],
    ) -> None:
        """Prepare; each checkout gets the files of `overlay`, `when` tells the time of a commit."""
        self._request, self._repo, self._book = request, repo, book
        self._journal = project.home.journal
        self._checkouts = os.path.join(self._journal, "checkouts")
        self._builds = Builds(os.path.join(book.path, "builds"), MOST_BYTES)
        self.oracle = Oracle(
            recipe=request.recipe,
            top=repo.top,
            build=self._build() if request.build else None,
            overlay=overlay,
            redact=tuple(project.settings.record.redact),
            ladder=self._ladder(),
            repairs=request.repair,
            when=when,
        )

    def _build(self) -> Build:
        request = self._request
        return Build(
            line=request.build,
            kept_in=self._builds.folder,
            timeout_s=request.build_timeout_s,
            always=request.rebuild,
        )

    def _ladder(self) -> Ladder:
        recipe = self._request.recipe
        env = {**os.environ, **recipe.env}
        python = interpreter(recipe.argv, env, recipe.cwd) if self._request.repair else None
        ladder = Ladder(os.path.join(self._journal, "environments"), python, env, _INSTALL_S)
        with self._book.reading():
            for probe in self._book.probes():
                if probe.get("rung") and probe.get("helped", True):
                    ladder.learn(probe["needs"], probe["rung"], probe.get("extra", ()))
        return ladder

    def allow_other_pythons(self) -> None:
        """Let commits that need another Python have it from now on."""
        self.oracle.ladder.may_change_python = True

    @property
    def may_fork(self) -> bool:
        """Whether probes may begin with their imports done: the answer is then run afresh."""
        request = self._request
        is_rare = (
            request.never_fails_before
            or request.always_fails_after
            or request.always_fails_before
            or request.never_fails_after
            or request.ends > 1
        )
        return request.fork and request.confirm > 0 and not is_rare and sys.platform == "linux"

    def crew(self, driver: Driver) -> Crew:
        """Return the workers of this machine that run what a driver asks for."""
        self.sweep()
        self._builds.begin()

        def probe(
            checkout: Checkout,
            commit: str,
            folder: str,
            marker: str,
            fork: Fork | None = None,
            is_noted: bool = False,
        ) -> bytes:
            is_traced = driver.is_to_trace(commit)
            oracle = self.oracle.but(fork=fork, is_noted=is_noted, is_traced=is_traced)
            return oracle.probe(checkout, commit, folder, marker)

        forks = Forks(os.path.join(self._book.path, "forks"), self._repo.top)
        return Crew(
            probe,
            place=lambda: open_checkout(self._checkouts, self._repo.top),
            doing=driver.tell_preparing,
            learnt=lambda one: self.oracle.ladder.learn(one.needs, one.rung, one.extra),
            jobs=max(1, self._request.jobs),
            outputs=os.path.join(self._book.path, "probes"),
            forks=forks if self.may_fork else None,
        )

    def sweep(self) -> None:
        """Remove the checkouts that nobody uses: a killed search leaves them."""
        sweep(self._checkouts)

    def remove_builds(self) -> None:
        """Remove what was built: the search is over."""
        self._builds.remove()


def overlay_of(repo: Repository, request: Request) -> dict[str, str]:
    """Find the files that each checkout gets; UsageError for one that it cannot have."""
    recipe = request.recipe
    words = [word for word in recipe.argv if not word.startswith("-")]
    names = [*repo.untracked(os.path.join(recipe.cwd, word) for word in words)]
    found = {name: os.path.join(repo.top, name) for name in names}
    found = {name: path for name, path in found.items() if os.path.isfile(path)}
    for word in request.files:
        path = os.path.join(recipe.cwd, word)
        name = repo.inner(path)
        if not name or not os.path.isfile(path):
            raise UsageError(
                f"--with {word}: no file of {repo.top}", hint="rl bisect --with conf.yaml"
            )
        found[name] = os.path.join(repo.top, name)
    return found
