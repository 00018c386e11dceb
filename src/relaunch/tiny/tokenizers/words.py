"""Cuts a sample text into the words that a tokenizer would see: its normaliser and pre-tokeniser.

Written from their description in tokenizer.json; what is not known here passes text on as it is.
"""

from __future__ import annotations

import re
import unicodedata

from relaunch.errors import RelaunchError
from relaunch.patterns import NotFinished, Patience

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_GPT2 = r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+"
_CLASSES = {
    r"\p{L}": r"[^\W\d_]", r"\p{N}": r"\d", r"\p{P}": r"[^\w\s]", r"\p{S}": r"[^\w\s]",
    r"\p{M}": r"(?!)", r"\p{Lu}": r"[A-Z]", r"\p{Ll}": r"[a-z]", r"\p{Lt}": r"(?!)",
    r"\p{Lm}": r"(?!)", r"\p{Lo}": r"[^\W\d_a-zA-Z]",
}  # fmt: skip


def byte_letters() -> list[str]:
    """Return the 256 letters that stand for bytes in a byte-level vocabulary, by the byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, extra = {}, 0
    for byte in range(256):
        if byte in plain:
            letters[byte] = chr(byte)
        else:
            letters[byte] = chr(256 + extra)
            extra += 1
    return [letters[byte] for byte in range(256)]


def words(tokenizer: dict[str, Any], text: str) -> list[str]:
    """Return the words of a text as the model of this tokenizer gets them."""
    text = _normalised(tokenizer.get("normalizer"), text)
    return [word for word in _split(tokenizer.get("pre_tokenizer"), [text]) if word]


def _normalised(rule: dict[str, Any] | None, text: str) -> str:
    if not rule:
        return text
    kind = rule.get("type", "")
    if kind == "Sequence":
        for one in rule.get("normalizers", []):
            text = _normalised(one, text)
    elif kind in ("NFC", "NFD", "NFKC", "NFKD"):
        text = unicodedata.normalize(kind, text)
    elif kind in ("Nmt", "Precompiled"):
        text = unicodedata.normalize("NFKC", text)
    elif kind == "Lowercase":
        text = text.lower()
    elif kind == "StripAccents":
        text = _without_accents(text)
    elif kind == "Strip":
        text = text.strip()
    elif kind == "Prepend":
        text = rule.get("prepend", "") + text if text else text
    elif kind == "Replace":
        text = rule.get("content", "").join(_between(_matches(rule, text), text))
    elif kind == "BertNormalizer":
        text = _bert(rule, text)
    elif kind == "ByteLevel":
        text = _as_bytes(text)
    return text


def _bert(rule: dict[str, Any], text: str) -> str:
    if rule.get("clean_text"):
        text = re.sub(r"\s", " ", re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]", "", text))
    if rule.get("handle_chinese_chars"):
        text = re.sub(r"([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])", r" \1 ", text)
    lower = bool(rule.get("lowercase"))
    if rule.get("strip_accents") or (rule.get("strip_accents") is None and lower):
        text = _without_accents(text)
    return text.lower() if lower else text


def _without_accents(text: str) -> str:
    apart = unicodedata.normalize("NFD", text)
    return "".join(one for one in apart if unicodedata.category(one) != "Mn")


def _as_bytes(text: str) -> str:
    letters = byte_letters()
    return "".join(letters[byte] for byte in text.encode("utf-8", "surrogatepass"))


def _pattern(pattern: Any) -> str:
    """Return a pattern of the file as one of `re`; an unknown one matches nothing."""
    if isinstance(pattern, dict) and "String" in pattern:
        return re.escape(str(pattern["String"]))
    text = pattern.get("Regex", "") if isinstance(pattern, dict) else str(pattern or "")
    for theirs, ours in _CLASSES.items():
        text = re.sub(
            r"\[\^?(?:[^\]\\]|\\.)*\]|" + re.escape(theirs),
            lambda found, t=theirs, o=ours: _in_class(found[0], t, o),
            text,
        )
    try:
        re.compile(text)
    except re.error:
        return r"(?!)"
    return text


def _matches(rule: dict[str, Any], text: str) -> list[re.Match[str]]:
    pattern = re.compile(_pattern(rule.get("pattern")))
    try:
        return Patience().all(pattern, text)
    except NotFinished as why:
        raise RelaunchError(f"a pattern of tokenizer.json cannot be followed: {why}") from None


def _between(matches: list[re.Match[str]], text: str) -> list[str]:
    starts = [0, *(found.end() for found in matches)]
    ends = [*(found.start() for found in matches), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def _in_class(found: str, theirs: str, ours: str) -> str:
    """Replace a class by itself, or inside brackets by letters that `re` knows."""
    if not found.startswith("["):
        return ours
    inside = {r"[^\W\d_]": "a-zA-Z\u00aa-\u02af\u0370-\ufaff", r"[^\w\s]": "!-/:-@\\[-`{-~"}
    return found.replace(theirs, inside.get(ours, ours.strip("[]") if ours[0] != "(" else ""))


def _split(rule: dict[str, Any] | None, pieces: list[str]) -> list[str]:
    if not rule:
        return pieces
    kind = rule.get("type", "")
    if kind == "Sequence":
        for one in rule.get("pretokenizers", []):
            pieces = _split(one, pieces)
        return pieces
    return [word for at, piece in enumerate(pieces) for word in _one(kind, rule, piece, at == 0)]


def _one(kind: str, rule: dict[str, Any], text: str, first: bool) -> list[str]:
    if kind == "ByteLevel":
        if rule.get("add_prefix_space") and text and not text.startswith(" "):
            text = " " + text
        found = re.findall(_GPT2, text) if rule.get("use_regex", True) else [text]
        return [_as_bytes(one) for one in found]
    if kind == "Metaspace":
        return _metaspace(rule, text, first)
    if kind == "Whitespace":
        return re.findall(r"\w+|[^\w\s]+", text)
    if kind == "WhitespaceSplit":
        return text.split()
    if kind == "BertPreTokenizer":
        return re.findall(r"[^\W_]+|[^\w\s]|_", text)
    if kind == "Punctuation":
        return re.findall(r"[^\w\s]|_|(?:[^\W_]|\s)+", text)
    if kind == "Digits":
        return re.findall(r"\d|\D+" if rule.get("individual_digits") else r"\d+|\D+", text)
    if kind == "Split":
        return _apart(rule, text)
    return [text]


def _metaspace(rule: dict[str, Any], text: str, first: bool) -> list[str]:
    mark = rule.get("replacement", "\u2581")
    text = text.replace(" ", mark)
    scheme = rule.get("prepend_scheme") or (
        "always" if rule.get("add_prefix_space", True) else "never"
    )
    if (scheme == "always" or (scheme == "first" and first)) and not text.startswith(mark):
        text = mark + text
    if rule.get("split") is False:
        return [text]
    return re.findall(f"{re.escape(mark)}?[^{re.escape(mark)}]+|{re.escape(mark)}", text)


def _apart(rule: dict[str, Any], text: str) -> list[str]:
    """Cut around the matches of a pattern, and keep them or not."""
    keep, pieces, last = rule.get("behavior", "Isolated"), [], 0
    for found in _matches(rule, text):
        if found.start() > last:
            pieces.append(text[last : found.start()])
        if found[0] and keep != "Removed":
            pieces.append(found[0])
        last = max(last, found.end())
    return [*pieces, text[last:]]
