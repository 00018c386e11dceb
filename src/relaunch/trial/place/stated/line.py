"""One requirement on one line, in its one spelling."""

from __future__ import annotations

import re

LINE = re.compile(
    r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[([^\]]*)\])?\s*(.*?)\s*$", re.DOTALL
)
VERSION = re.compile(r"(===|~=|==|!=|<=|>=|<|>)\s*([A-Za-z0-9._*+!-]+)$")
_MARKER_WORD = re.compile(r"'[^']*'|\"[^\"]*\"|[()]|[<>=!~]+|[^\s'\"()<>=!~]+")


def canonical(name: str) -> str:
    """Return the one spelling of a project's name: `typing_extensions` is `typing-extensions`."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def normalised(line: str) -> str:
    """Return a PEP 508 line in its one spelling; nothing when it is none."""
    found = LINE.match(line)
    if found is None:
        return ""
    head = canonical(found[1])
    if found[2] and found[2].strip():
        extras = {canonical(extra) for extra in found[2].split(",") if extra.strip()}
        head += f"[{','.join(sorted(extras))}]"
    if found[3].startswith("@"):
        url, _, marker = re.sub(r"\s+;", " ;", found[3][1:]).partition(" ;")
        return head + f" @ {url.strip()}" + (f" ; {_marker(marker)}" if marker.strip() else "")
    versions, _, marker = found[3].partition(";")
    texts = [text.strip() for text in versions.strip().strip("()").split(",") if text.strip()]
    parts = [VERSION.match(text) for text in texts]
    if not all(parts):
        return ""
    head += ",".join(sorted({part[1] + part[2] for part in parts if part}))
    return head + (f"; {_marker(marker)}" if marker.strip() else "")


def _marker(text: str) -> str:
    """Spell a marker with one blank between its words and double quotes."""
    words = [
        f'"{word[1:-1]}"' if word[0] == "'" and '"' not in word else word
        for word in _MARKER_WORD.findall(text)
    ]
    return " ".join(words).replace("( ", "(").replace(" )", ")")


def name_of(line: str) -> str:
    found = LINE.match(line)
    return canonical(found[1]) if found else ""


def under(line: str, marker: str) -> str:
    """Let a requirement hold only where `marker` does."""
    separator = " ;" if " @ " in line else ";"
    head, _, own = line.partition(separator)
    joined = f"({own.strip()}) and ({marker})" if own.strip() else marker
    return normalised(f"{head}{separator} {joined}")
