"""Finds what was shrunk wrongly: the complaint names numbers; changes are taken back or adopted."""

from __future__ import annotations

import math
import re
import time

from relaunch.record import Record
from relaunch.tiny.models.build import MOST_BYTES, Try
from relaunch.tiny.models.names import kind_of
from relaunch.tiny.models.shrunk import LEVELS, Change, applied, is_ints, parts, sections, shrink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    Attempt = Callable[[Mapping[str, Any]], Try]

MOST_TRIES = 160


class Found(Record):
    """The tiny configuration and what it took."""

    changes: list[Change]
    tried: Try
    tries: int
    first: str
    """What the first attempt complained of."""


class _Search:
    def __init__(
        self, config: Mapping[str, Any], attempt: Attempt, seconds: float, tokens: int | None
    ) -> None:
        self.config, self.attempt, self.tokens = config, attempt, tokens
        self.ends = time.process_time() + seconds  # a busy machine is no reason to give up
        self.tries = 0

    def left(self) -> float:
        return self.ends - time.process_time()

    def over(self) -> bool:
        return self.tries >= MOST_TRIES or self.left() < 0

    def try_(self, changes: list[Change]) -> Try:
        self.tries += 1
        return self.attempt(applied(self.config, changes))


def find(
    config: Mapping[str, Any],
    attempt: Attempt,
    *,
    seconds: float = 40.0,
    ids: Mapping[int, int] | None = None,
    vocab: int | None = None,
    is_vocab_fixed: bool = False,
) -> Found:
    """Return the smallest that works, or the one that came furthest.

    `is_vocab_fixed`: somebody counts on so many tokens, so there are no fewer to save bytes.
    """
    search = _Search(config, attempt, seconds, vocab if is_vocab_fixed else None)
    best: Found | None = None
    first = ""
    hopeless: set[str] = set()
    for level in LEVELS:
        changes = shrink(config, level.but(vocab=vocab) if vocab else level, ids)
        tried = search.try_(changes)
        first = first or tried.error
        if tried.stage == "big" and level is LEVELS[-1]:
            changes, tried = _smaller(search, changes, tried)
        said = re.sub(r"\d+", "0", tried.error)
        if tried.stage not in ("ok", "big") and said not in hopeless:
            left = search.left()
            changes, tried = _repaired(search, changes, tried)
            if tried.stage != "ok" and search.left() < left / 2:
                hopeless.add(said)  # what took so long is not tried again
        if tried.stage == "ok" and tried.bytes > MOST_BYTES and level is LEVELS[-1]:
            changes, tried = _smaller(search, changes, tried)
        found = Found(changes=changes, tried=tried, tries=search.tries, first=first)
        if best is None or _rank(found) > _rank(best):
            best = found
        if (tried.stage == "ok" and tried.bytes <= MOST_BYTES) or search.over():
            break
    assert best is not None
    return best.but(tries=search.tries)


def _rank(found: Found) -> tuple[int, float]:
    return found.tried.reached, -float(found.tried.bytes)


def _repaired(search: _Search, changes: list[Change], tried: Try) -> tuple[list[Change], Try]:
    """Go on while a step brings the model further, each step a single change or two."""
    if tried.error.startswith("ImportError"):
        return changes, tried  # no number helps where a package is missing
    for _ in range(4):
        step = _step(search, changes, tried)
        if step is None:
            break
        changes, tried = step
        if tried.stage == "ok":
            break
    return changes, tried


def _step(search: _Search, changes: list[Change], tried: Try) -> tuple[list[Change], Try] | None:
    other: tuple[list[Change], Try] | None = None
    own = _own_ids(tried.model)
    for next_ in neighbours(search.config, changes, tried.error, own):
        if search.over():
            break
        made = search.try_(next_)
        if made.stage == "ok" or made.reached > tried.reached:
            return next_, made
        if (
            other is None
            and made.reached == tried.reached
            and _numbers(made.error) != _numbers(tried.error)
        ):
            other = next_, made
    return other if not search.over() else None


def _own_ids(model: Any) -> dict[str, int]:
    """Return the ids of tokens that a model has by itself, whatever its configuration says."""
    named = vars(model) if model is not None else {}
    return {name: value for name, value in named.items()
            if type(value) is int and kind_of(name) == "id"}  # fmt: skip


def neighbours(
    config: Mapping[str, Any],
    changes: list[Change],
    error: str,
    own: Mapping[str, int] | None = None,
) -> Iterator[list[Change]]:
    """Yield what to try next, the likeliest first: the complaint's numbers lead.

    `own` are ids that the model has where its configuration names none.
    """
    numbers = _numbers(error)
    yield from _named_ids(config, changes, error, own or {})
    yield from _sections(config, changes, error)
    yield from _flags(config, changes, error)
    yield from _all_stages(config, changes, error)
    yield from _filled(config, changes, error)
    yield from _exchanged(changes, numbers)
    ranked = sorted(changes, key=lambda one: _doubt(one, numbers, error))
    for one in ranked[:6]:
        yield from _replaced(changes, one, numbers)
    yield from _adopted(config, changes, numbers)
    for one in ranked[6:40]:
        yield _without(changes, one)
    for at, one in enumerate(ranked[:8]):
        for two in ranked[at + 1 : 8]:
            yield _without(_without(changes, one), two)


def _named_ids(
    config: Mapping[str, Any], changes: list[Change], error: str, own: Mapping[str, int]
) -> Iterator[list[Change]]:
    """Yield ids beyond the vocabulary written out as small ones, where the code has them."""
    found = re.search(r"index (\d+) is out of bounds for dimension \d+ with size (\d+)", error)
    if not found or int(found[1]) not in own.values():
        return
    size = int(found[2])
    beyond = [name for name, value in own.items() if value >= size and name not in config]
    taken = {one.new for one in changes if type(one.new) is int}
    free = [at for at in range(size - 1, -1, -1) if at not in taken]
    made = [Change(path=(name,), old=None, new=at) for name, at in zip(beyond, free, strict=False)]
    yield [*changes, *made]


def _sections(
    config: Mapping[str, Any], changes: list[Change], error: str
) -> Iterator[list[Change]]:
    """Yield sections of rotary positions that the code has by itself, written out to fit."""
    split = re.search(r"sum exactly to (\d+).*split_sizes=\[([\d, ]+)\]", error)
    if not split:
        return
    total, old = int(split[1]), [int(word) for word in split[2].split(",")]
    if not 0 < total < sum(old):
        return
    now = {one.path: one.new for one in changes}
    wider = next(times for times in (1, 2, 4, 8) if total * times >= min(len(old), 8))
    for path, part in parts(config):
        for name, value in part.items():
            if isinstance(value, dict) and name.startswith("rope"):
                place = (*path, name)
                made = {**now.get(place, value), "mrope_section": sections(old, total * wider)}
                head = (*path, "head_dim")
                rest = [one for one in changes if one.path not in (place, *([head] * (wider > 1)))]
                if wider > 1:
                    width = now.get(head) or 8
                    rest.append(Change(path=head, old=part.get("head_dim"), new=wider * width))
                yield [*rest, Change(path=place, old=value, new=made)]


def _flags(config: Mapping[str, Any], changes: list[Change], error: str) -> Iterator[list[Change]]:
    """Yield a switch turned as the complaint asks: `is_decoder=True`."""
    now = {one.path: one.new for one in changes}
    for name, word in re.findall(r"requires (?:`?\w+`? )?`?(\w+)\s?={1,2}\s?(\d+)\b", error):
        for path, part in parts(config):
            place = (*path, name)
            if name in part and now.get(place, part[name]) != int(word):
                rest = [one for one in changes if one.path != place]
                yield [*rest, Change(path=place, old=part[name], new=int(word))]
    for name, word in re.findall(r"(\w+)\s?=\s?(True|False)", error):
        if type(config.get(name)) is bool and config[name] != (word == "True"):
            yield [*changes, Change(path=(name,), old=config[name], new=word == "True")]


def _filled(config: Mapping[str, Any], changes: list[Change], error: str) -> Iterator[list[Change]]:
    """Yield what a default configuration leaves open and the model needs, filled in."""
    if "language unknown" in error and config.get("languages"):
        spoken = Change(path=("default_language",), old=None, new=config["languages"][0])
        yield [*changes, spoken]
    yield from _lists(config, changes, error)
    if "has no attribute 'rope_theta'" in error:
        for path, part in parts(config):
            if path and "rope_theta" not in part:
                yield [*changes, Change(path=(*path, "rope_theta"), old=None, new=10000.0)]
    for path, part in parts(config):
        if "torch.clamp" in error and "clip_qkv" in part and part["clip_qkv"] is None:
            yield [*changes, Change(path=(*path, "clip_qkv"), old=None, new=8.0)]
    if not any(word in error for word in ("NoneType", "KeyError", "get_seq_length", "empty()")):
        return
    fill = {
        "vocab": 500, "headdim": 8, "top": 2, "experts": 4, "shared": 1, "heads": 4, "kv": 1,
        "width": 32, "inner": 64, "rank": 8, "layers": 2, "groups": 1, "index": [1],
        "id": 1,
    }  # fmt: skip
    now = {one.path: one.new for one in changes}
    found = []
    for path, part in parts(config):
        for name, first in part.items():
            place = (*path, name)
            value = now.get(place, first)
            layers = now.get((*path, "num_hidden_layers"))
            if value is None and name in ("layer_types", "mlp_layer_types") and layers:
                of_layer = "full_attention" if name == "layer_types" else "sparse"
                found.append(Change(path=place, old=None, new=[of_layer] * layers))
            elif value is None and kind_of(name) in fill and name != "cross_attention_hidden_size":
                found.append(Change(path=place, old=None, new=fill[kind_of(name)]))
            elif value is None and name.endswith(("_budget", "_compress_ratio")):
                found.append(Change(path=place, old=None, new=16 if name[-1] == "t" else 4))
            elif isinstance(value, list) and len({*map(str, value)}) == 1 and len(value) > 1:
                other = {"linear_attention": "full_attention", "mamba": "attention"}
                if value[0] in other:
                    made = [*value[:-1], other[value[0]]]
                    found.append(Change(path=place, old=part[name], new=made))
            elif value == {} and name == "rope_parameters":
                missing = re.search(r"KeyError: '(\w+)'", error)
                rope = {"rope_type": "default", "rope_theta": 10000.0}
                made_rope = {missing[1]: rope} if missing else rope
                found.append(Change(path=place, old={}, new=made_rope))
    yield from _together(changes, found)
    for one in found:
        yield [*(two for two in changes if two.path != one.path), one]
    if len(found) > 1:
        taken = {one.path for one in found}
        yield [*(two for two in changes if two.path not in taken), *found]


def _together(changes: list[Change], found: list[Change]) -> Iterator[list[Change]]:
    """Yield open fields with the same first word filled at once: `indexer_n_heads`, ..."""
    groups: dict[tuple[str, ...], list[Change]] = {}
    for one in found:
        word = one.path[-1].partition("_")[0]
        groups.setdefault((*one.path[:-1], word), []).append(one)
    for group in groups.values():
        if len(group) > 2:
            taken = {one.path for one in group}
            yield [*(two for two in changes if two.path not in taken), *group]


def _all_stages(
    config: Mapping[str, Any], changes: list[Change], error: str
) -> Iterator[list[Change]]:
    """Yield every stage taken out, where a head joins as many as there are stages."""
    found = re.search(r"to have (\d+) channels, but got (\d+)", error)
    times = int(found[1]) / int(found[2]) if found and int(found[2]) else 0
    for path, part in parts(config):
        stages, taken = part.get("depths") or [], part.get("out_indices") or []
        if is_ints(stages) and is_ints(taken) and len(stages) == times != len(taken):
            every = list(range(1, len(stages) + 1))
            yield [*changes, Change(path=(*path, "out_indices"), old=taken, new=every)]


def _lists(config: Mapping[str, Any], changes: list[Change], error: str) -> Iterator[list[Change]]:
    """Yield lists that are open or empty by default, with something in them, all at once."""
    if not any(word in error for word in ("not subscriptable", "non-empty list", "real number")):
        return
    labels = len(config.get("id2label") or [0, 1])
    fill = {"out_channels": [32, 32], "kernel_sizes": [4, 4], "scale_factors": [1.0],
            "class_thresholds": [0.5] * labels, "class_order": [*range(labels)]}  # fmt: skip
    found = []
    for path, part in parts(config):
        for name, value in part.items():
            made = next((new for end, new in fill.items() if name.endswith(end)), None)
            if made is not None and (value is None or value == []):
                found.append(Change(path=(*path, name), old=value, new=made))
        if found and part.get("num_feature_levels") == 0:
            found.append(Change(path=(*path, "num_feature_levels"), old=0, new=1))
    taken = {one.path for one in found}
    if found:
        yield [*(one for one in changes if one.path not in taken), *found]


def _exchanged(changes: list[Change], numbers: list[int]) -> Iterator[list[Change]]:
    """Yield a number that the complaint names in the place of another that it names."""
    for one in changes:
        if type(one.old) is type(one.new) is int and one.new in numbers and one.new > 3:
            for value in numbers[:4]:
                if value != one.new and 3 < value < one.old:
                    yield [two.but(new=value) if two is one else two for two in changes]


def _doubt(one: Change, numbers: list[int], error: str) -> tuple[int, int]:
    """Return how little a change is to be doubted."""
    score = 0
    values = one.new if isinstance(one.new, list) else [one.new]
    olds = one.old if isinstance(one.old, list) else [one.old]
    score -= 4 * (one.path[-1] in error)
    score -= 2 * any(value in numbers for value in olds if type(value) is int and value > 3)
    score -= sum(value in numbers for value in values if type(value) is int and value > 3) > 0
    order = ("layers", "heads", "headdim", "groups", "image", "patch", "kv", "state", "rank")
    kind = kind_of(one.path[-1])
    return score, order.index(kind) if kind in order else len(order)


def _replaced(changes: list[Change], one: Change, numbers: list[int]) -> Iterator[list[Change]]:
    """Yield a change taken back, and other numbers in its place."""
    if type(one.new) is int and type(one.old) is int:
        others = [2 * one.new, 4 * one.new, one.new // 2, *numbers[:4]]
        for value in dict.fromkeys(others):
            if 0 < value < one.old and value != one.new:
                yield [two.but(new=value) if two is one else two for two in changes]
    yield _without(changes, one)


def _adopted(
    config: Mapping[str, Any], changes: list[Change], numbers: list[int]
) -> Iterator[list[Change]]:
    """Yield unchanged numbers that the complaint names, set to another that it names."""
    changed = {one.path for one in changes}
    for path, part in parts(config):
        for name, value in part.items():
            if (*path, name) in changed or type(value) is not int or value not in numbers:
                continue
            for new in numbers[:4]:
                if 0 < new < value:
                    yield [*changes, Change(path=(*path, name), old=value, new=new)]


def _without(changes: list[Change], one: Change) -> list[Change]:
    return [two for two in changes if two is not one]


def _numbers(text: str) -> list[int]:
    return list(dict.fromkeys(int(word) for word in re.findall(r"\d+", text)[:24] if len(word) < 7))


# --- too big --------------------------------------------------------------------------------------


def _smaller(search: _Search, changes: list[Change], tried: Try) -> tuple[list[Change], Try]:
    """Shrink what the biggest weights are made of, whatever its name."""
    for _ in range(16):
        if search.over() or tried.bytes <= MOST_BYTES:
            break
        for next_ in _less(search.config, changes, tried.model, search.tokens):
            made = search.try_(next_)
            if made.reached >= tried.reached and 0 < made.bytes < tried.bytes:
                changes, tried = next_, made
                break
            if search.over():
                break
        else:
            break
    return changes, tried


def _halved(value: Any) -> Any:
    if isinstance(value, list):
        return [_halved(one) for one in value]
    return max(4, value // 2) if type(value) is int and value > 4 else value


def _less(
    config: Mapping[str, Any], changes: list[Change], model: Any, tokens: int | None
) -> Iterator[list[Change]]:
    sizes = sorted(
        ((one.numel(), tuple(one.shape)) for one in model.state_dict().values()), reverse=True
    )
    sides = list(dict.fromkeys(side for _, shape in sizes[:4] for side in sorted(shape)[::-1]))
    now = {one.path: one.new for one in changes}
    for side in sides:
        if side < 16:
            continue
        root = math.isqrt(side)
        for path, part in parts(config):
            patch = now.get((*path, "patch_size"), part.get("patch_size"))
            for name, value in part.items():
                place = (*path, name)
                current = now.get(place, value)
                if tokens is not None and current == tokens and kind_of(name) == "vocab":
                    continue
                if (
                    type(current) is int
                    and root * root == side
                    and root >= 16
                    and (current == root or (type(patch) is int and current == root * patch))
                ):  # a row for each pixel or patch
                    made: Any = current // 4
                elif type(current) is int and side - 3 <= current <= side + 3:
                    made = max(8, current // 4)
                elif (
                    type(current) is int
                    and name not in ("vocab_size",)
                    and current
                    and (side % current == 0 and side // current <= 16 and current > 8)
                ):
                    made = max(8, current // 2)
                elif is_ints(current) and side in current:
                    made = [max(4, one // 2) if one > 8 else one for one in current]
                else:
                    continue
                rest = [one for one in changes if one.path != place]
                yield [*rest, Change(path=place, old=value, new=made)]
    nested = {
        (*path, name): now.get((*path, name), value)
        for path, part in parts(config)
        for name, value in part.items()
        if kind_of(name) == "nested"
    }
    if nested:
        rest = [one for one in changes if one.path not in nested]
        yield rest + [Change(path=p, old=v, new=_halved(v)) for p, v in nested.items()]
    for path, part in parts(config):
        for name, value in part.items():
            place = (*path, name)
            if tokens is not None and kind_of(name) == "vocab":
                continue
            if type(value) is int and value >= 256 and place not in now and kind_of(name) != "id":
                yield [*changes, Change(path=place, old=value, new=value // 8)]
