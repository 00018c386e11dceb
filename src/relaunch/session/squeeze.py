"""A command in a smaller world, and no trial of it: `rl squeeze`."""

from __future__ import annotations

import os
import tempfile
import time

from relaunch.bytewords import in_words
from relaunch.errors import PlaceError
from relaunch.events import Prepared, Warned
from relaunch.proc.companion import Companion
from relaunch.proc.supervise import supervise
from relaunch.proc.tree import MARKER
from relaunch.session.around import companions_of
from relaunch.session.left import Note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from relaunch.events import Event
    from relaunch.proc.supervise import Ended
    from relaunch.recipe import Recipe, SmallDisk


class Scratch(Companion):
    """A folder that is there while the command runs."""

    def __init__(self, path: str) -> None:
        """Make nothing yet."""
        self.path = path
        self.files: Mapping[str, str] = {}

    def prepare(self) -> Mapping[str, str]:
        """Make it, with its files."""
        try:
            os.mkdir(self.path, 0o700)
            for path, text in self.files.items():
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
        except OSError as error:
            raise PlaceError(f"no folder for what it needs: {error}", hint="df -h") from None
        return {}

    def ended(self) -> None:
        """Take it away."""
        from shutil import rmtree

        rmtree(self.path, ignore_errors=True)

    after_our_death = ended


def squeeze(recipe: Recipe, *, label: Sequence[str], tell: Callable[[Event], object]) -> Ended:
    """Run it to its end with what its limits ask for, and say which of them was reached.

    `label` says the limits as they were typed; a shell shows it in its prompt.
    """
    from relaunch.inside.protocol import hooked_env
    from relaunch.trial.place.shellprompt import kind_of, prompted, safe_label

    if kind_of(recipe.argv) and recipe.limits.at_limit == "kill":
        recipe = recipe.but(limits=recipe.limits.but(at_limit="spare"))
    scratch = Scratch(_scratch_path(recipe.limits.disks))
    around = companions_of(recipe, scratch.path, roots=(recipe.cwd,), tell=tell)
    if recipe.limits.memory_bytes is not None:
        from relaunch.look.beside import Beside

        around = (*around, Beside("", gpu=False))
    # In a trial, its processes carry that one's marker: they are not ours alone to find.
    marker = "" if os.environ.get(MARKER) else f"{os.getpid()}.{time.time_ns()}"
    env = {**os.environ, **recipe.env}
    if marker:
        env[MARKER] = marker
    if recipe.limits.gpu_free or recipe.limits.track_memory or _tells_itself(recipe):
        env = hooked_env(env, scratch.path)
    argv = recipe.argv
    shell = prompted(argv, safe_label(label), scratch.path, env)
    if shell is not None:
        argv, scratch.files = shell.argv, shell.files
        env = {**env, **shell.env}
    keeps = [disk.path for disk in recipe.limits.disks] if recipe.limits.keep else []
    note = Note(
        scratch.path, marker, is_scratch=True, keeps=keeps,
        tell=lambda text: tell(Warned(text=text)),
    )  # fmt: skip
    ended = supervise(
        argv,
        cwd=recipe.cwd,
        env=env,
        chunk=lambda _when, _stream, _data: None,
        timeout_s=recipe.limits.timeout_s,
        companions=(note, scratch, *around),
        is_shell=True,
    )
    for companion in around:
        reached = companion.reached()
        if reached.get("title") and reached.get("act") != "spare":  # that was told at once
            tell(Warned(text=reached["title"]))
        if peak := companion.used().get("peak_bytes"):
            tell(Prepared(text=f"memory: {in_words(peak)} at most, with the files it mapped"))
    if ended.ended_processes:
        tell(Prepared(text=f"ended what it left running: {', '.join(ended.ended_processes)}"))
    return ended


def _tells_itself(recipe: Recipe) -> bool:
    """Tell whether the program is to write its own stacks at a memory limit: nobody else can."""
    if recipe.limits.memory_bytes is None:
        return False
    from relaunch.trial.place.memory.watcher import is_free_to_spy

    return not is_free_to_spy()


def _scratch_path(disks: Sequence[SmallDisk]) -> str:
    """Name a folder that no small disk hides from the command."""
    name = f"rl-squeeze-{os.getpid()}-{time.time_ns():x}"
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    for parent in (runtime, tempfile.gettempdir(), "/var/tmp", "/dev/shm", os.path.expanduser("~")):
        real = os.path.realpath(parent)
        hidden = any(f"{real}/".startswith(f"{disk.path.rstrip('/')}/") for disk in disks)
        if parent and not hidden and os.access(real, os.W_OK | os.X_OK):
            return os.path.join(real, name)
    raise PlaceError("no folder outside the small disks can be written", hint="df -h")
