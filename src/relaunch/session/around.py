"""What is beside the program while it runs: small disks, limits, held memory, eyes on its calls."""

from __future__ import annotations

import os

from relaunch.errors import UsageError
from relaunch.events import Prepared, Warned
from relaunch.recipe import Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from relaunch.events import Event
    from relaunch.proc.companion import Companion
    from relaunch.recipe import Recipe, SmallDisk


def asks_for_more(recipe: Recipe) -> bool:
    """Tell whether anything is to be beside the program; usually nothing."""
    return recipe.watch or recipe.blame or bool(recipe.ranks or limit_words(recipe.limits))


def limit_words(limits: Limits) -> list[str]:
    """Say what of the machine the program may take, where that is less than all."""
    words = [f"disk {disk.path} {_looks(disk)}" for disk in limits.disks]
    if limits.memory_bytes is not None:
        words.append(f"memory {limits.memory_bytes >> 20} MiB")
    words += [f"hang {limits.hang_s:g} s"] if limits.hang_s is not None else []
    words += ["pause at the peak"] if limits.pause_at_peak else []
    return words + [f"{gpu.bytes >> 20} MiB of GPU memory" for gpu in limits.gpu_free]


def _looks(disk: SmallDisk) -> str:
    from relaunch.trial.place.disk.words import limit_of

    return limit_of(disk)


def companions_of(
    recipe: Recipe,
    folder: str,
    *,
    roots: Sequence[str],
    tell: Callable[[Event], object],
    peak_bytes: int = 0,
    secrets: Sequence[bytes] = (),
) -> tuple[Companion, ...]:
    """Return them in the order in which they begin; what they find goes to the trial's `folder`.

    `roots` are the folders of the user's own code; the last run of it had `peak_bytes`, 0 when
    nobody watched it.
    """

    def say(text: str) -> None:
        tell(Prepared(text=text))

    def clean(data: bytes) -> bytes:
        from relaunch.trial.redact import redact

        return redact(data, secrets)

    found: list[Companion] = []
    if recipe.limits.gpu_free:
        found.append(_small_gpu(recipe, folder, say))
    # First: a process that sees other mounts may not find its group any more.
    is_each_ranks = bool(recipe.ranks) and not recipe.threads
    if recipe.limits.memory_bytes is not None and not is_each_ranks:
        found.append(_memory(recipe.limits, folder, roots, say, clean))
    if recipe.limits.pause_at_peak:
        found.append(_at_peak(peak_bytes, folder, roots, say, clean))
    if recipe.watch and not recipe.ranks and not _asks_inside(recipe.limits):
        from relaunch.trial.place.memory.nearing import KernelWatch

        found.append(KernelWatch(folder=folder, roots=roots))
    if recipe.limits.disks:
        found.append(_small_disks(recipe, folder, say, tell))
    if recipe.limits.hang_s is not None:
        found.append(_hang(recipe.limits, folder, roots, say, clean))
    if recipe.ranks:
        from relaunch.trial.launch.node import RanksTold

        found.append(RanksTold(folder))
    if recipe.watch:
        from relaunch.look.beside import Beside

        found.append(Beside(folder))
    if recipe.blame:
        from relaunch.session.blaming import blamer

        found.append(blamer(recipe, folder, say))
    return tuple(found)


def _asks_inside(limits: Limits) -> bool:
    """Tell whether a limit has somebody beside the program already who asks it where it is."""
    return limits.pause_at_peak or (limits.memory_bytes is not None and limits.memory_by != "data")


def beside_a_run(
    recipe: Recipe, folder: str, root: str, marker: str, secrets: Sequence[bytes]
) -> tuple[Companion, ...]:
    """Return what is beside a run of a search, which is told of at its end only."""
    if not asks_for_more(recipe):
        return ()
    found = companions_of(recipe, folder, roots=(root,), tell=lambda _: None, secrets=secrets)
    if recipe.limits.memory_bytes is None and not recipe.limits.disks:
        return found
    from relaunch.session.left import Note

    return (Note(folder, marker), *found)


def _small_disks(
    recipe: Recipe, folder: str, say: Callable[[str], None], tell: Callable[[Event], object]
) -> Companion:
    """Return the small disks; the trial's own folder stays real, for what our hook writes there."""
    from relaunch.trial.place.disk.smalldisks import SmallDisks

    words = (os.path.join(recipe.cwd, word) for word in recipe.argv)
    files = (recipe.cwd, *(word for word in words if os.path.isfile(word)))
    return SmallDisks(
        recipe.limits.disks,
        keep=recipe.limits.keep,
        folder=folder,
        needed=tuple(os.path.realpath(file) for file in files),
        say=say,
        warn=lambda text: tell(Warned(text=text)),
    )


def _small_gpu(recipe: Recipe, folder: str, say: Callable[[str], None]) -> Companion:
    from relaunch.trial.place.gpu import SmallGpu

    env = {**os.environ, **recipe.env}
    limits = recipe.limits
    return SmallGpu(limits.gpu_free, by=limits.gpu_by, env=env, folder=folder, say=say)


def _memory(
    limits: Limits,
    folder: str,
    roots: Sequence[str],
    say: Callable[[str], object],
    clean: Callable[[bytes], bytes],
) -> Companion:
    if limits.memory_by == "data":
        from relaunch.trial.place.memory.data import DataLimit

        return DataLimit(limits, say=say)
    from relaunch.trial.place.memory.limit import MemoryLimit

    return MemoryLimit(limits, folder=folder, roots=roots, say=say, clean=clean)


def _hang(
    limits: Limits,
    folder: str,
    roots: Sequence[str],
    say: Callable[[str], object],
    clean: Callable[[bytes], bytes],
) -> Companion:
    from relaunch.trial.hang.beside import HangWatch

    assert limits.hang_s is not None
    return HangWatch(
        limits.hang_s, limits.on_hang, folder=folder, roots=roots, say=say, clean=clean
    )


def _at_peak(
    peak_bytes: int,
    folder: str,
    roots: Sequence[str],
    say: Callable[[str], object],
    clean: Callable[[bytes], bytes],
) -> Companion:
    if not peak_bytes:
        raise UsageError("the peak of this command is not known yet", hint="rl --watch -- CMD")
    from relaunch.trial.place.memory.peak import PeakPause

    return PeakPause(peak_bytes, folder=folder, roots=roots, say=say, clean=clean)
