"""Asks before commands run that somebody else wrote into the settings of a project: once for each.

The rule of direnv, with one exception: what the user wrote themselves is never asked about. The
commands are somebody else's where the commit that brought them is, or where the file belongs to
another user. All launches with commands of the settings come through here.
"""

from __future__ import annotations

import os

from relaunch.errors import PlaceError, RelaunchError, SettingsError
from relaunch.events import Warned
from relaunch.record import Record
from relaunch.trust import change_store, own_settings, read_store, trusts_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from relaunch.events import Event
    from relaunch.history.repository import Repository
    from relaunch.session.project import Project

    Command = str | tuple[str, ...]

CONSENTS = "consents"
_TIPS = ("--branches", "--remotes", "--tags", "MERGE_HEAD", "CHERRY_PICK_HEAD", "FETCH_HEAD")
"""Where what no commit of this branch has may come from: a merge under way, a checkout."""
_MOST_COMMITS = 500
"""So many changes of a settings file are looked at for the one that brought a command."""
_MOST_LINKS = 40
"""The kernel follows no more."""


class Wanted(Record):
    """What the settings would run, and who else is behind it; `why` is empty for the user's own."""

    file: str
    commands: tuple[Command, ...]
    digest: str
    why: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """Show each command on a line, with the file that says it."""
        name = os.path.basename(self.file)
        return tuple(f"reset: {shown(one)} ({name})" for one in self.commands)


def shown(command: Command) -> str:
    """Write a command as a person would type it, on one line that hides no line of it."""
    if not isinstance(command, str):
        from shlex import join

        command = join(command)
    return command.replace("\n", "\\n")


def pass_commands(
    project: Project,
    *,
    tell: Callable[[Event], object],
    ask: Callable[[Wanted], bool] | None,
) -> None:
    """Show what the settings run; PlaceError where that is somebody else's and was not allowed.

    Without a person to ask, nothing that was not allowed is run.
    """
    wanted = wanted_by(project)
    if wanted is None:
        return
    if not wanted.why:
        for line in wanted.lines:
            tell(Warned(text=line))
        return
    if ask is None:
        what = "; ".join(wanted.lines)
        raise PlaceError(f"not run: {what}: {wanted.why}", hint="rl trust, or rl --no-reset")
    if not ask(wanted):
        raise PlaceError("not launched: its reset is not to be run", hint="rl --no-reset")
    allow(project, wanted)


def pass_earlier(
    project: Project,
    commands: tuple[Command, ...],
    trial: str,
    *,
    tell: Callable[[Event], object],
    ask: Callable[[Wanted], bool] | None,
) -> None:
    """Show what ran before an earlier trial and runs again; ask where the settings still say it."""
    if commands == project.settings.run.reset:
        pass_commands(project, tell=tell, ask=ask)
    else:
        show_earlier(commands, trial, tell=tell)


def show_earlier(
    commands: tuple[Command, ...], trial: str, *, tell: Callable[[Event], object]
) -> None:
    """Show what ran before an earlier trial and runs again."""
    for one in commands:
        tell(Warned(text=f"reset: {shown(one)} (of #{trial})"))


def wanted_by(project: Project) -> Wanted | None:
    """Return what the settings would run; nothing where they run nothing."""
    settings = project.settings
    commands, file = settings.run.reset, settings.reset_from
    if not commands:
        return None
    wanted = Wanted(file=file, commands=commands, digest=_digest(project, commands))
    is_own = file == own_settings() and not _belongs_to_another(file)
    if is_own or trusts_all() or settings.trust.ask == "never":
        return wanted
    always = settings.trust.ask == "always"
    kept = read_store()[CONSENTS].get(wanted.digest)
    if isinstance(kept, dict) and not (always and kept.get("own")):
        return wanted
    why = _somebody_else(file, commands)
    if why or always:
        return wanted.but(why=why or "the settings of a project are always asked about")
    allow(project, wanted, own=True)  # so that git need not be asked again
    return wanted


def allow(project: Project, wanted: Wanted, *, own: bool = False) -> None:
    """Remember that these commands may run in this project."""
    import time

    entry: dict[str, Any] = {
        "project": project.home.project,
        "lines": list(wanted.lines),
        "when": time.time(),
        **({"own": True} if own else {}),
    }
    try:
        change_store(CONSENTS, wanted.digest, entry)
    except OSError as error:
        if not own:
            what = f"what was allowed cannot be kept: {error.strerror}"
            raise PlaceError(what, hint="RELAUNCH_TRUST=1 rl ...") from None


def _digest(project: Project, commands: tuple[Command, ...]) -> str:
    from _blake2 import blake2b

    words = [os.path.realpath(project.home.project), repr(commands)]
    return blake2b("\0".join(words).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


# --- who wrote it ---------------------------------------------------------------------------------


def _belongs_to_another(file: str) -> bool:
    try:
        return os.stat(file).st_uid not in (os.geteuid(), 0)
    except OSError:
        return True


def _somebody_else(file: str, commands: tuple[Command, ...]) -> str:
    """Say who else wrote the commands; nothing where it was the user, as far as git knows."""
    from relaunch.trust import whose

    if _belongs_to_another(file):
        return f"{os.path.basename(file)} belongs to {whose(file)}"
    from relaunch.history.repository import Repository

    try:
        for path in _links_to(file):
            folder, name = os.path.split(path)
            repo = Repository(top=folder, common="")
            if why := _introduced_by(repo, name, os.path.basename(file), commands):
                return why
    except RelaunchError as error:
        return f"git does not say who wrote that: {error.message}"
    return ""


def _links_to(file: str) -> Iterator[str]:
    """Give each link on the way to a file, and the file: somebody chose where they lead."""
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(file)
        file = os.path.join(os.path.realpath(folder), name)
        yield file
        if not os.path.islink(file):
            break
        file = os.path.join(os.path.dirname(file), os.readlink(file))


def _has_git_above(folder: str) -> bool:
    while not os.path.lexists(os.path.join(folder, ".git")):
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return False
    return True


class Version(Record):
    """A commit that changed the settings file."""

    commit: str
    parents: tuple[str, ...]
    email: str
    author: str
    is_cut: bool
    """What was before is not in this clone."""


def _introduced_by(repo: Repository, name: str, kind: str, commands: tuple[Command, ...]) -> str:
    if not _has_git_above(repo.top):
        return ""
    asked = ("rev-parse", "--is-inside-work-tree")
    inside = repo.try_git(*asked)
    if inside.code and b"not a git repository (or any" in inside.err:
        return ""
    if inside.code or inside.text.strip() != "true":
        repo.git(*asked)  # says why it cannot be known
        raise RelaunchError(f"{repo.top} is git's own")
    is_unborn = repo.try_git("rev-parse", "--verify", "--quiet", "HEAD^{commit}").code
    wanted = _as_kept(commands)
    for tips in (_TIPS,) if is_unborn else (("HEAD",), _TIPS):
        rows = _log(repo, name, tips)
        texts = _versions(repo, name, [row.commit for row in rows])
        resets = {row.commit: _resets_in(text, kind) for row, text in zip(rows, texts, strict=True)}
        found = brought_by(rows, resets, wanted)
        if not found and tips == ("HEAD",) and rows and _can_be_of_head(repo, name, kind, wanted):
            found = rows  # git wrote it in another form than it keeps
        mine = _addresses(repo) if found else ()
        for row in found:
            if row.is_cut:
                return f"who wrote it is not in this clone: its history begins at {row.commit[:7]}"
            if row.email.lower() not in mine:
                return f"{row.author} <{row.email}> wrote it ({row.commit[:7]})"
        if found:
            return ""
    return ""  # in no commit: it was written here


def _can_be_of_head(repo: Repository, name: str, kind: str, wanted: tuple[Command, ...]) -> bool:
    """Tell whether the commands came with HEAD, though no commit shows them as they are.

    So it is in a file that is a pointer, has another encoding, or was broken and is repaired.
    """
    if not repo.is_changed(name):
        return True
    if not repo.git("ls-tree", "HEAD", "--", name).startswith(b"100"):
        return False
    written = repo.written(name)
    return written is None or _resets_in(written, kind) in (wanted, None)


def brought_by(
    rows: list[Version],
    resets: dict[str, tuple[Command, ...] | None],
    wanted: tuple[Command, ...],
) -> list[Version]:
    """Return the commits that could have brought the commands; pure.

    A merge has brought nothing that one of its parents has. A version that cannot be read may have
    had them, whoever made it readable later.
    """
    by_commit = {row.commit: row for row in rows}
    to_see = [row.commit for row in rows if resets[row.commit] == wanted]
    seen: set[str] = set()
    found = []
    while to_see:
        commit = to_see.pop()
        if commit in seen:
            continue
        seen.add(commit)
        row = by_commit[commit]
        before = [one for one in row.parents if resets.get(one, wanted) in (wanted, None)]
        to_see += [one for one in before if one in by_commit]
        is_cut = row.is_cut or any(one not in by_commit for one in before)
        if is_cut or not before or resets[commit] is None:
            found.append(row.but(is_cut=is_cut))
    return found


def _log(repo: Repository, name: str, tips: tuple[str, ...]) -> list[Version]:
    """List the commits that changed a file; parents are those that changed it too."""
    out = repo.git(
        "log", "--no-show-signature", "--parents", f"--max-count={_MOST_COMMITS}",
        "--format=%H%x00%P%x00%D%x00%ae%x00%an", "--ignore-missing", *tips, "--", name,
    )  # fmt: skip
    rows = []
    for line in out.decode("utf-8", "replace").split("\n")[:-1]:
        commit, parents, names, email, author = line.split("\0")
        rows.append(
            Version(
                commit=commit, parents=tuple(parents.split()), email=email, author=author,
                is_cut="grafted" in names.split(", "),
            )
        )  # fmt: skip
    return rows


def _addresses(repo: Repository) -> set[str]:
    """Return what the user is called in commits, in lower case."""
    said = [repo.try_git("config", name).text.strip() for name in ("user.email", "author.email")]
    found = {*said, os.environ.get("GIT_AUTHOR_EMAIL", "")}
    return {one.lower() for one in found if one}


def _versions(repo: Repository, name: str, commits: list[str]) -> Iterator[bytes]:
    """Give the file as it was in each commit; nothing where it was not there."""
    data = "".join(f"{commit}:./{name}\n" for commit in commits).encode()
    out = repo.git("cat-file", "--batch", data=data) if commits else b""
    while out:
        head, _, out = out.partition(b"\n")
        if head.endswith(b" missing"):
            yield b""
            continue
        size = int(head.rsplit(b" ", 1)[1])
        yield out[:size]
        out = out[size + 1 :]


def _as_kept(commands: tuple[Command, ...]) -> tuple[Command, ...]:
    """Undo what git itself writes into a file: the attribute `ident` fills in `$Id$`."""
    import re

    def kept(text: str) -> str:
        return re.sub(r"\$Id:[^$\n]*\$", "$Id$", text)

    return tuple(kept(one) if isinstance(one, str) else tuple(map(kept, one)) for one in commands)


def _resets_in(text: bytes, kind: str) -> tuple[Command, ...] | None:
    """Return the commands in a version of the file; None if it holds no settings, but a pointer."""
    from relaunch.settings import parse

    table = ("tool", "relaunch") if kind == "pyproject.toml" else ()
    try:
        found = parse(text, kind, table).get("run", {}).get("reset", ())
    except (SettingsError, AttributeError):
        return None
    return _as_kept(tuple(one if isinstance(one, str) else tuple(one) for one in found))
