"""From the word of a person (`v4.33.0`, `main`, `HEAD~3`, `1abbb16`) to the commit it means."""

from __future__ import annotations

import os

from relaunch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.history.repository import Repository

SHORT = 10
"""How much of an id is shown: unambiguous in any repository that fits on a disk."""
_NEAREST = 3
_MOST_COMPARED = 5000
_HEX = frozenset("0123456789abcdef")


def resolve(repo: Repository, word: str) -> str:
    """Return the full id of the commit that `word` means; UsageError if there is none."""
    if not word or word[0] in "-^" or "\0" in word:
        raise UsageError(f"`{word}` names no commit", hint="git log --oneline")
    done = repo.try_git("rev-parse", "--verify", f"{word}^{{commit}}")
    found = done.text.strip()
    if done.code == 0 and _HEX.issuperset(found):
        return found
    raise _ambiguous(repo, word) or _unknown(repo, word)


def _ambiguous(repo: Repository, word: str) -> UsageError | None:
    """Return the fault if the word is, or begins with, a short id of several commits."""
    start = word.partition("~")[0].partition("^")[0].lower()
    done = repo.try_git("rev-parse", f"--disambiguate={start}")
    if done.code or not _HEX.issuperset(start):
        return None
    kinds = os.fsdecode(repo.git("cat-file", "--batch-check", data=done.out)).split("\n")
    commits = [line[:SHORT] for line in kinds if " commit " in line or " tag " in line]
    if len(commits) < 2:
        return None
    return UsageError(
        f"`{word}` is ambiguous: {', '.join(commits[:4])}{', ...' if len(commits) > 4 else ''}",
        hint=f"git log -1 {commits[0]}",
    )


def _unknown(repo: Repository, word: str) -> UsageError:
    peeled = os.fsencode(f"{word}^{{}}\n{word}\n")  # a path after a colon cannot be peeled
    done = repo.try_git("cat-file", "--batch-check=%(objecttype)", data=peeled)
    for kind in done.text.split("\n"):
        if kind in ("blob", "tree"):
            return UsageError(f"`{word}` is a {kind}, not a commit", hint="git log --oneline")
    near = nearest(word, _names(repo))
    told = f"; nearest: {', '.join(near)}" if near else ""
    if repo.is_shallow:
        count = repo.git("rev-list", "--count", "HEAD").decode().strip()
        cut = f"this clone is shallow, its history is cut at {_commits(int(count))}"
        return UsageError(f"no revision `{word}`: {cut}{told}", hint="git fetch --unshallow --tags")
    hint = f"git log -1 {near[0]}" if near else "git fetch --all --tags"
    return UsageError(f"no revision `{word}`{told}", hint=hint)


def _commits(count: int) -> str:
    return "1 commit" if count == 1 else f"{count:,} commits"


def _names(repo: Repository) -> list[str]:
    """List tags, then branches, then remote branches, as a person would type them."""
    kinds = ("refs/tags/", "refs/heads/", "refs/remotes/")
    listed = os.fsdecode(repo.git("for-each-ref", "--format=%(refname)", *kinds)).split("\n")
    return [
        name.removeprefix(kind)
        for kind in kinds
        for name in listed
        if name.startswith(kind) and not name.endswith("/HEAD")
    ]


def nearest(word: str, names: Sequence[str]) -> list[str]:
    """Return up to three names that the person may have meant, the likeliest first."""
    meant = _bare(word)
    same = [name for name in names if _bare(name) == meant or name.endswith(f"/{word}")]
    longer = [
        name
        for name in names
        if _continues(_bare(name), meant) or _continues(name.lower(), word.lower())
    ]
    found = [*same, *sorted(longer, key=_natural)]
    if not found:
        from difflib import get_close_matches

        found = get_close_matches(word, names[:_MOST_COMPARED], n=_NEAREST)
    return list(dict.fromkeys(found))[:_NEAREST]


def _bare(name: str) -> str:
    """Strip what people leave out or add: `V4.33` is `v4.33` is `4.33` is `release-4.33`."""
    low = name.lower()
    for start in ("release", "version", "ver", "rel", "v", "r"):
        rest = low.removeprefix(start).lstrip("-_./")
        if rest != low and rest[:1].isdigit():
            return rest
    return low


def _continues(name: str, start: str) -> bool:
    """Tell whether `name` goes on where `start` ends a part: 4.33 -> 4.33.1, not 4.331."""
    return name.startswith(start) and not name[len(start) :][:1].isalnum()


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Sort 4.9 before 4.10."""
    parts: list[str] = [""]
    for char in name:
        if parts[-1] and char.isdecimal() != parts[-1][-1].isdecimal():
            parts.append("")
        parts[-1] += char
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]
