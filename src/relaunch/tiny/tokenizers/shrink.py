"""A tokenizer.json with few tokens: which stay, and their new numbers. Pure: data in, data out.

What must stay: tokens that are special or named (by the post-processor, by a configuration), the
whole alphabet of bytes, or else the letters. Then what a sample text uses, then the best of the
rest. The rules that cut text are kept as they are. As merges, pieces and scores are only taken
away, a text whose tokens all stay is cut as before.
"""

from __future__ import annotations

import copy
import json
import re
import string

from relaunch.errors import RelaunchError
from relaunch.record import Record
from relaunch.tiny.tokenizers.encode import best_path, joined, longest, merged
from relaunch.tiny.tokenizers.words import byte_letters, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

KINDS = ("BPE", "WordPiece", "Unigram", "WordLevel")
_SPARE = re.compile(r".*(reserved|unused|placeholder|extra_id|dummy).*", re.IGNORECASE)
_MARK = "\u2581"


class Shrunk(Record):
    """The small tokenizer, and what became of the ids."""

    tokenizer: dict[str, Any]
    kind: str
    ids: dict[int, int]
    """The new id of each old one that stayed."""
    before: int
    size: int
    """How many ids there are; they are 0 to size - 1."""
    letters: str
    """Texts of these are cut and put together again as before."""


def kind_of_model(model: dict[str, Any]) -> str:
    """Return which of the four kinds it is; older files do not say."""
    named = model.get("type")
    if named in KINDS:
        return str(named)
    if named is None and isinstance(model.get("vocab"), list):
        return "Unigram"
    if named is None and "merges" in model:
        return "BPE"
    if named is None and "continuing_subword_prefix" in model:
        return "WordPiece"
    raise RelaunchError(f"a tokenizer of kind `{named}` cannot be shrunk: only {', '.join(KINDS)}")


def shrink(
    tokenizer: dict[str, Any], size: int | None, *, text: str = "", also: Iterable[int] = ()
) -> Shrunk:
    """Return the tokenizer with about `size` tokens; None takes only what must stay and `text`."""
    cut = _Cut(copy.deepcopy(tokenizer), size, set(also))
    cut.take_named()
    cut.take_letters(text)
    if text:
        cut.take_used(text)
    if size is not None:
        cut.fill(size)
    return cut.written()


class _Cut:
    def __init__(self, tokenizer: dict[str, Any], size: int | None, also: set[int]) -> None:
        self.tokenizer, self.size, self.also = tokenizer, size, also
        self.model = tokenizer["model"]
        self.kind = kind_of_model(self.model)
        vocab = self.model["vocab"]
        self.scores: dict[str, float] = {}
        if self.kind == "Unigram":
            self.old = {token: at for at, (token, _) in enumerate(vocab)}
            self.scores = dict(vocab)
        else:
            self.old = dict(vocab)
        self.prefix = self.model.get("continuing_subword_prefix") or ""
        self.suffix = self.model.get("end_of_word_suffix") or ""
        self.added: list[dict[str, Any]] = tokenizer.get("added_tokens") or []
        rules = [tokenizer.get(name) for name in ("normalizer", "pre_tokenizer", "decoder")]
        self.bytes = '"ByteLevel"' in json.dumps(rules)
        self.kept: dict[str, None] = {}
        self.merges = [
            tuple(one) if isinstance(one, list) else tuple(one.split(" ", 1))
            for one in self.model.get("merges") or []
        ]
        self.ranks = {pair: at for at, pair in enumerate(self.merges)}
        self.before = len({*self.old, *(one["content"] for one in self.added)})

    def keep(self, token: str) -> bool:
        if token not in self.old:
            return False
        self.kept[token] = None
        return True

    # --- what must stay

    def take_named(self) -> None:
        by_id = {at: token for token, at in self.old.items()}
        named = {by_id[at] for at in self.also if at in by_id}
        named |= _named_by(self.tokenizer.get("post_processor"))
        named.add(self.model.get("unk_token") or "")
        if self.kind == "Unigram" and self.model.get("unk_id") is not None:
            named.add(by_id[self.model["unk_id"]])
        named.add((self.tokenizer.get("padding") or {}).get("pad_token") or "")
        self._spare(named)
        named |= {one["content"] for one in self.added}
        if self.model.get("byte_fallback") or self.kind == "Unigram":
            named |= {f"<0x{byte:02X}>" for byte in range(256)}
        for token in sorted(named & set(self.old), key=lambda one: self.old[one]):
            self.keep(token)

    def _spare(self, named: set[str]) -> None:
        """Let go of special tokens that only wait for a meaning, where they would fill the rest."""
        if self.size is None or len(self.added) <= self.size // 8:
            return
        self.added = [
            one
            for one in self.added
            if one["content"] in named
            or one["id"] in self.also
            or not _SPARE.fullmatch(one["content"])
        ]

    def take_letters(self, text: str) -> None:
        if self.bytes:
            for letter in byte_letters():
                self.keep(letter)
        wanted = dict.fromkeys(string.printable + _MARK)
        if text:
            wanted.update(dict.fromkeys("".join(words(self.tokenizer, text))))
            wanted.update(dict.fromkeys(text))
        for letter in wanted:
            self.keep(letter)
            if self.prefix:
                self.keep(self.prefix + letter)
            if self.suffix:
                self.keep(letter + self.suffix)

    # --- what a text uses

    def take_used(self, text: str) -> None:
        longest_piece = max(map(len, self.scores), default=1)
        for word in dict.fromkeys(words(self.tokenizer, text)):
            if self.kind == "BPE":
                self._take_merged(word)
            elif self.kind == "WordPiece":
                for token in longest(word, self.old, self.prefix):
                    self.keep(token)
            elif self.kind == "Unigram":
                for token in best_path(word, self.scores, longest_piece):
                    self.keep(token)
            else:
                self.keep(word)

    def _take_merged(self, word: str) -> None:
        tokens, used = merged(self._letters_of(word), self.ranks, self.prefix)
        for pair in used:
            for token in (*pair, joined(pair, self.prefix)):
                self.keep(token)
        for token in tokens:
            self.keep(token)
        if self.model.get("ignore_merges"):
            self.keep(word)

    def _letters_of(self, word: str) -> list[str]:
        letters = [self.prefix + one if at else one for at, one in enumerate(word)]
        if self.suffix and letters:
            letters[-1] += self.suffix
        return letters

    # --- the best of the rest

    def fill(self, size: int) -> None:
        own = {one["content"] for one in self.added} - set(self.old)
        room = size - len(own)
        for token in self._best():
            if len(self.kept) >= room:
                break
            self.keep(token)

    def _best(self) -> Iterable[str]:
        if self.kind == "BPE":
            for left, right in self.merges:
                if left in self.kept and right in self.kept:
                    yield joined((left, right), self.prefix)
        elif self.kind == "Unigram":
            yield from sorted(self.old, key=lambda token: (-self.scores[token], self.old[token]))
        else:
            for token in sorted(self.old, key=lambda one: self.old[one]):
                if not _SPARE.fullmatch(token):
                    yield token

    # --- written anew

    def written(self) -> Shrunk:
        order = sorted(self.kept, key=lambda token: self.old[token])
        new = {token: at for at, token in enumerate(order)}
        old = dict(self.old)
        for one in sorted(self.added, key=lambda one: int(one["id"])):
            old[one["content"]] = one["id"]
            one["id"] = new.setdefault(one["content"], len(new))
        self.tokenizer["added_tokens"] = sorted(self.added, key=lambda one: int(one["id"]))
        if self.kind == "Unigram":
            unknown = self.model.get("unk_id")
            if unknown is not None:
                self.model["unk_id"] = new[next(t for t, at in self.old.items() if at == unknown)]
            self.model["vocab"] = [[token, self.scores[token]] for token in order]
        else:
            self.model["vocab"] = {token: new[token] for token in order}
        if self.kind == "BPE":
            self._write_merges(set(order))
        _renumber(self.tokenizer.get("post_processor"), new)
        padding = self.tokenizer.get("padding")
        if padding and padding.get("pad_token") in new:
            padding["pad_id"] = new[padding["pad_token"]]
        return Shrunk(
            tokenizer=self.tokenizer, kind=self.kind, before=self.before, size=len(new),
            ids={old[token]: at for token, at in new.items()}, letters=self._round_trip(),
        )  # fmt: skip

    def _write_merges(self, kept: set[str]) -> None:
        as_lists = bool(self.model["merges"]) and isinstance(self.model["merges"][0], list)
        self.model["merges"] = [
            list(pair) if as_lists else " ".join(pair)
            for pair in self.merges
            if {*pair, joined(pair, self.prefix)} <= kept
        ]

    def _round_trip(self) -> str:
        """Return the letters of which every word can be made."""
        if self.kind == "WordLevel":
            return ""
        if self.bytes or f"<0x{0:02X}>" in self.kept:
            return string.printable
        return "".join(
            one
            for one in string.printable
            if one in self.kept
            and (not self.prefix or self.prefix + one in self.kept)
            and (not self.suffix or one + self.suffix in self.kept)
        )


def _named_by(rule: Any) -> set[str]:
    """Return the tokens that a post-processor names."""
    if isinstance(rule, list):
        return {token for one in rule for token in _named_by(one)}
    if not isinstance(rule, dict):
        return set()
    found = {token for token in (rule.get("tokens") or []) if isinstance(token, str)}
    for name in ("sep", "cls"):
        if isinstance(rule.get(name), list):
            found.add(rule[name][0])
    return found | {token for one in rule.values() for token in _named_by(one)}


def _renumber(rule: Any, new: dict[str, int]) -> None:
    """Write the new ids into a post-processor, in place."""
    if isinstance(rule, list):
        for one in rule:
            _renumber(one, new)
    if not isinstance(rule, dict):
        return
    if isinstance(rule.get("tokens"), list) and isinstance(rule.get("ids"), list):
        rule["ids"] = [new[token] for token in rule["tokens"]]
    for name in ("sep", "cls"):
        if isinstance(rule.get(name), list):
            rule[name] = [rule[name][0], new[rule[name][0]]]
    for one in rule.values():
        _renumber(one, new)
