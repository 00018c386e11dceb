"""What a snapshot is: for each root of code a base commit, a tree, and what was left out."""

from __future__ import annotations

import os

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROJECT, NESTED, EDITABLE, PYTHONPATH = "project", "nested", "editable", "pythonpath"


class Caps(Record):
    """How much a snapshot may keep; what is over is remembered by path, size and hash."""

    max_file: int = 1 << 20
    """Bytes of one file that git does not have yet."""
    max_new: int = 20 << 20
    """Bytes of all such files in one attempt."""
    max_files: int = 50_000
    also: tuple[str, ...] = ()
    """Globs, relative to the project, of files to keep although git ignores them."""


class LeftOut(Record):
    """A file that was there and is not in the tree."""

    path: str
    size: int
    digest: str
    """Of samples of its bytes; empty when it cannot be read."""
    why: str


class Root(Record):
    """One work tree of code; paths are relative to it, `changed` to `deleted` against `base`."""

    path: str
    kind: str
    base: str
    """HEAD at that time; empty outside git and before the first commit."""
    tree: str
    changed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    """Empty without a base: there all of the tree is new."""
    deleted: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    empty_dirs: tuple[str, ...] = ()
    problem: str = ""


class Code(Record):
    """All the code of one trial; the project comes first."""

    roots: tuple[Root, ...]

    @property
    def digest(self) -> str:
        """Identify the code: equal for equal files, wherever the project and its base lie."""
        from _blake2 import blake2b

        top = self.roots[0].path if self.roots else ""
        words = []
        for root in self.roots:
            path = root.path[len(top) :] if (root.path + "/").startswith(top + "/") else root.path
            words += [root.kind, path, root.tree, *root.empty_dirs]
            words += [f"{out.path}\1{out.size}\1{out.digest}" for out in root.left_out]
        text = "\0".join(words).encode("utf-8", "surrogateescape")
        return blake2b(text, digest_size=16).hexdigest()


def to_json(code: Code) -> dict[str, Any]:
    """Write it as plain data; undecodable bytes of names stay as surrogates."""
    return {"roots": [_root_to_json(root) for root in code.roots]}


def from_json(value: dict[str, Any]) -> Code:
    """Read what `to_json` or another user wrote: no path leads out of where it says that it is."""
    return Code(roots=tuple(_root_from_json(root) for root in value.get("roots", ())))


def _root_to_json(root: Root) -> dict[str, Any]:
    found = {
        name: list(part) if isinstance(part, tuple) else part
        for name, part in root.__dict__.items()
        if part
    }
    if root.left_out:
        found["left_out"] = [dict(out.__dict__) for out in root.left_out]
    return found


def _root_from_json(value: dict[str, Any]) -> Root:
    path = value.get("path", "")
    return Root(
        path=os.path.normpath(path) if path else "",
        kind=value.get("kind", PROJECT),
        base=value.get("base", ""),
        tree=value.get("tree", ""),
        changed=tuple(value.get("changed", ())),
        new=tuple(value.get("new", ())),
        deleted=tuple(value.get("deleted", ())),
        left_out=tuple(LeftOut(**out) for out in value.get("left_out", ())),
        empty_dirs=tuple(filter(is_inner, value.get("empty_dirs", ()))),
        problem=value.get("problem", ""),
    )


def is_inner(path: str) -> bool:
    """Tell whether a relative path leads below the folder that it is relative to."""
    return not os.path.isabs(path) and os.pardir not in path.split(os.sep)
