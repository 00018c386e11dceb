"""The user's repository, from which a checkout borrows: where it is, how it is set; only read."""

from __future__ import annotations

import os

from relaunch.errors import PlaceError
from relaunch.record import Record
from relaunch.textfile import read_if_there
from relaunch.trial.place.checkouts.gitcall import ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_REFS = ("refs/heads", "refs/tags", "refs/remotes", "refs/replace")
_GLOBAL = "info/attributes-of-the-user"
_KEPT = ("autocrlf", "eol", "ignorecase", "precomposeunicode", "symlinks", "filemode")
_SPARSE = ("sparsecheckout", "sparsecheckoutcone")
_CONFIG = """\
[core]
\trepositoryformatversion = {version}
\tbare = false
\tlogAllRefUpdates = false
\thooksPath = /dev/null
\tfsmonitor = false
\tuntrackedCache = false
\tsplitIndex = false
\tattributesFile = {attributes}
{kept}[index]
\tversion = 2
\tsparse = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""
_SHA256 = "[extensions]\n\tobjectFormat = sha256\n"


class Lender(Record):
    """One repository of the user: a project's, or a submodule's."""

    top: str
    """Its work tree; need not exist for a submodule."""
    git_dir: str
    common_dir: str
    settings: dict[str, str]
    rules: dict[str, bytes]
    """Files for a repository of ours that decide which bytes a commit means."""
    other_files: dict[str, bytes]
    """Files for it that `git describe` and `git status` read: branches, tags and the like."""

    @property
    def sha256(self) -> bool:
        """Tell the object format."""
        return self.settings.get("extensions.objectformat") == "sha256"

    @property
    def large_files(self) -> str:
        """The folder in which git-lfs keeps what pointers point to."""
        storage = os.path.expanduser(self.settings.get("lfs.storage", "lfs"))
        return os.path.join(self.common_dir, storage, "objects")

    @property
    def foreign_filters(self) -> frozenset[str]:
        """Filters that would change bytes on their way out, and that are not run in a checkout."""
        found = set()
        for name, value in self.settings.items():
            driver, _, key = name.removeprefix("filter.").rpartition(".")
            if name.startswith("filter.") and key in ("smudge", "process") and value != "cat":
                found.add(driver)
        return frozenset(found - {"lfs"})

    def deciding_files(self, git_dir: str) -> dict[str, bytes]:
        """Return those files of a repository of ours on which the bytes in its tree depend."""
        attributes = os.path.join(git_dir, _GLOBAL)
        return {"config": os.fsencode(self._config(attributes)), **self.rules}

    def _config(self, attributes: str) -> str:
        sparse = self.settings.get("core.sparsecheckout", "").lower() in ("true", "yes", "on", "1")
        names = (*_KEPT, *_SPARSE) if sparse else _KEPT
        kept = "".join(
            f"\t{name} = {_quoted(self.settings[f'core.{name}'])}\n"
            for name in names
            if f"core.{name}" in self.settings
        )
        text = _CONFIG.format(version=int(self.sha256), attributes=_quoted(attributes), kept=kept)
        return text + (_SHA256 if self.sha256 else "")


def lender_at(top: str) -> Lender:
    """Read the repository of the work tree `top`, also of a linked one."""
    git_dir = _git_dir_of(top)
    if not git_dir:
        raise PlaceError(f"{top} is no work tree of git", hint=f"git -C {top} status")
    lender = _read_lender(top, git_dir)
    if lender is None:
        raise PlaceError(f"git cannot read {git_dir}", hint=f"git -C {top} status")
    return lender


def submodule_lenders(lender: Lender, name: str, path: str) -> Iterator[Lender]:
    """Give each repository that the user may have of a submodule."""
    top = os.path.join(lender.top, path)
    found = [_git_dir_of(top)]
    if name and ".." not in name.split("/"):
        found += [f"{folder}/modules/{name}" for folder in (lender.git_dir, lender.common_dir)]
    for git_dir in dict.fromkeys(found):
        its = _read_lender(top, git_dir) if os.path.exists(f"{git_dir}/HEAD") else None
        if its is not None:
            yield its


def _read_lender(top: str, git_dir: str) -> Lender | None:
    shared = read_if_there(f"{git_dir}/commondir").strip()
    # A submodule's repository may name a work tree that is gone, and git would not start.
    env = {"GIT_DIR": git_dir, "GIT_WORK_TREE": git_dir}
    listed = ask("config", "-z", "--list", env=env)
    if listed.code:
        return None
    common_dir = os.path.normpath(os.path.join(git_dir, shared))
    settings = dict(_setting(one) for one in listed.text.split("\0") if one)
    return Lender(
        top=top,
        git_dir=git_dir,
        common_dir=common_dir,
        settings=settings,
        rules={
            "objects/info/alternates": os.fsencode(_line(f"{common_dir}/objects")),
            "info/sparse-checkout": _read(f"{git_dir}/info/sparse-checkout"),
            "info/attributes": _read(f"{common_dir}/info/attributes"),
            _GLOBAL: _read(_attributes_file(settings)),
        },
        other_files={
            "packed-refs": b"# pack-refs with: sorted \n" + _refs(env),
            "info/exclude": b"__pycache__/\n" + _read(f"{common_dir}/info/exclude"),
            **({"shallow": shallow} if (shallow := _read(f"{common_dir}/shallow")) else {}),
        },
    )


def _refs(env: dict[str, str]) -> bytes:
    return ask("for-each-ref", "--format=%(objectname) %(refname)", *_REFS, env=env).out


def _attributes_file(settings: dict[str, str]) -> str:
    xdg = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.expanduser(settings.get("core.attributesfile", f"{xdg}/git/attributes"))


def _setting(text: str) -> tuple[str, str]:
    name, line_end, value = text.partition("\n")
    return name, value if line_end else "true"


def _git_dir_of(top: str) -> str:
    """Follow `.git` of a work tree; empty if there is none."""
    found = os.path.join(top, ".git")
    if os.path.isfile(found):
        text = read_if_there(found)
        found = os.path.join(top, text[7:].strip()) if text.startswith("gitdir:") else ""
    return os.path.realpath(found) if found and os.path.exists(f"{found}/HEAD") else ""


def _line(path: str) -> str:
    """Write a path as a line of git's list of object folders."""
    plain = "\n" not in path and not path.startswith(("#", '"'))
    return f"{path if plain else _quoted(path)}\n"


def _quoted(text: str) -> str:
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inner}"'


def _read(path: str) -> bytes:
    return os.fsencode(read_if_there(path))
