"""Programs that run on other machines: what an engine has to be able to do, and which there are."""

from __future__ import annotations

from relaunch.errors import UsageError
from relaunch.proc.companion import Companion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from relaunch.proc.supervise import Ended
    from relaunch.recipe import Elsewhere


class Launcher(Companion):
    """Runs one program elsewhere, by a command of its engine that runs here in its stead.

    To add an engine: a class like this one, and its name in `ENGINES`. As a companion it also ends
    what runs elsewhere when we are killed.
    """

    @classmethod
    def find(cls, home: str, words: Sequence[str], env: Mapping[str, str]) -> Elsewhere:
        """Return where programs run now; UsageError when there is nothing for them.

        `home` is where the journal keeps what a project holds, `words` what the engine is told.
        """
        raise NotImplementedError

    @classmethod
    def seats(cls, where: Elsewhere, env: Mapping[str, str]) -> int:
        """Return how many programs can run there, each on a machine of its own."""
        return 1

    @classmethod
    def end_left(cls, home: str, env: Mapping[str, str]) -> None:
        """End what runs there for an rl that was killed, whether or not a trial tells of it."""

    def __init__(
        self, where: Elsewhere, env: Mapping[str, str], argv: Sequence[str] = (), cwd: str = "."
    ) -> None:
        """Take a program; `env` is what it would have here. Without one it can only be ended."""
        raise NotImplementedError

    def announcement(self) -> tuple[str, list[str]]:
        """Say where it is about to run, and what a person should know besides."""
        return "", []

    def argv(self) -> tuple[str, ...]:
        """Return the command that runs the program there, and stays until it has ended."""
        raise NotImplementedError

    def environment(self, env: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
        """Return what the command and the program get; what a person has `given` stays so."""
        return {**env, **given}

    def take(self, stream: int, data: bytes) -> bytes:
        """Return what of the command's output is the program's; no data is its end."""
        return data

    def really(self, ended: Ended) -> Ended:
        """Say how the program ended; where the command was cut short, end the program too."""
        return ended

    def lost(self) -> str:
        """Say why its end tells nothing of the program: the machine it ran on was lost."""
        return ""

    def missing(self) -> str:
        """Say why the program never began."""
        return ""

    def cancel(self) -> None:
        """End what runs there; also what an rl that was killed has left, by its marker in `env`."""

    def after_our_death(self) -> None:
        """End it, in the guard."""
        self.cancel()

    def close(self) -> None:
        """Leave nothing behind; called once, whatever happened."""


def _slurm() -> type[Launcher]:
    from relaunch.trial.launch.slurm.step import Step

    return Step


SLURM = "slurm"
ENGINES: dict[str, Callable[[], type[Launcher]]] = {SLURM: _slurm}
"""Each is loaded only when it is wanted."""


def engine_of(name: str) -> type[Launcher]:
    """Return the engine of this name; UsageError for one that this rl has not."""
    if name not in ENGINES:
        words = f"this rl knows no engine `{name}`, only {', '.join(ENGINES)}"
        raise UsageError(words, hint="rl -- CMD")
    return ENGINES[name]()


def launcher_of(
    where: Elsewhere, env: Mapping[str, str], argv: Sequence[str] = (), cwd: str = "."
) -> Launcher:
    """Return who runs a program elsewhere; `env` is what the program would have here."""
    return engine_of(where.engine)(where, env, argv, cwd)
