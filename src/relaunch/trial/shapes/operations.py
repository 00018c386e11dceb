"""What the operations of torch, numpy and jax do to the sides of an array, by their names."""

from __future__ import annotations

import ast

from relaunch.trial.shapes.notation import joined
from relaunch.trial.shapes.patterns import sides as pattern_sides
from relaunch.trial.shapes.patterns import text_of
from relaunch.trial.shapes.sides import Side, multiplied, number, spread, swapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from relaunch.trial.shapes.called import Called
    from relaunch.trial.shapes.sides import Sides


def _view(call: Called) -> Sides | None:
    return call.sizes()


def _made(call: Called) -> Sides | None:
    for name in ("size", "shape"):
        if name in call.named:
            return call.sizes([call.named[name]])
    return call.sizes()


def _filled(call: Called) -> Sides | None:
    return call.sizes(call.given[:1])


def _by_chance(call: Called) -> Sides | None:
    tuples = [one for one in call.given if isinstance(one, (ast.Tuple, ast.List))]
    return call.sizes(tuples[:1]) if tuples else _made(call) if call.named else None


def _arange(call: Called) -> Sides | None:
    begins_at_zero = len(call.given) == 2 and number(call.given[0]) == 0
    if begins_at_zero or len(call.given) == 1:
        return call.sizes(call.given[-1:])
    return None


def _eye(call: Called) -> Sides | None:
    found = call.sizes(call.given[:2])
    return [*found, *found] if found is not None and len(found) == 1 else found


def _transpose(call: Called) -> Sides | None:
    places = call.numbers()
    if call.on is None or places is None:
        return None
    if not places:
        return list(reversed(call.on))
    return swapped(call.on, places[0], places[1]) if len(places) == 2 else _permute(call)


def _permute(call: Called) -> Sides | None:
    places = call.numbers()
    if call.on is None or places is None or len(places) != len(call.on):
        return None
    is_inside = all(-len(call.on) <= place < len(call.on) for place in places)
    return [call.on[place] for place in places] if is_inside else None


def _unsqueeze(call: Called) -> Sides | None:
    place = number(call.named.get("dim") or call.named.get("axis") or next(iter(call.given), None))
    if call.on is None or place is None:
        return None
    at = place if place >= 0 else len(call.on) + 1 + place
    return [*call.on[:at], Side("1"), *call.on[at:]]


def _squeeze(call: Called) -> Sides | None:
    place = call.place(0)
    if call.on is None or place is None or not 0 <= place < len(call.on):
        return None
    side = call.on[place]
    is_one = side is not None and side.text == "1"
    return _without(call.on, place) if is_one else None


def _unbind(call: Called) -> Sides | None:
    place = call.place(0, 0)
    if call.on is None or place is None or not 0 <= place < len(call.on):
        return None
    return _without(call.on, place)


def _without(sides: Sides, place: int) -> Sides:
    return [*sides[:place], *sides[place + 1 :]]


def _flatten(call: Called) -> Sides | None:
    places = call.numbers()
    if not call.on or places is None:
        return None
    first = (places[0] if places else 0) % len(call.on)
    last = (places[1] if len(places) > 1 else -1) % len(call.on)
    known = [side for side in call.on[first : last + 1] if side is not None]
    whole: Side | None = None
    if known and len(known) == last + 1 - first:
        text = known[0].text
        for side in known[1:]:
            text = joined(text, "*", side.text)
        whole = Side(text, sure=all(side.sure for side in known))
    return [*call.on[:first], whole, *call.on[last + 1 :]]


def _reduce(call: Called) -> Sides | None:
    places = call.named.get("dim") or call.named.get("axis") or next(iter(call.given), None)
    if not call.on or places is None:
        return None
    listed = places.elts if isinstance(places, (ast.Tuple, ast.List)) else [places]
    found = [number(one) for one in listed]
    gone = {place % len(call.on) for place in found if place is not None}
    keep = call.named.get("keepdim") or call.named.get("keepdims")
    if None in found or (keep is not None and not isinstance(keep, ast.Constant)):
        return None
    if isinstance(keep, ast.Constant) and keep.value is True:
        return [Side("1") if n in gone else side for n, side in enumerate(call.on)]
    return [side for n, side in enumerate(call.on) if n not in gone]


def _split(call: Called) -> Sides | None:
    place = call.place(1, 0)
    if call.on is None or place is None or not 0 <= place < len(call.on):
        return None
    return [*call.on[:place], call.size(0), *call.on[place + 1 :]]


def _chunk(call: Called) -> Sides | None:
    place, count = call.place(1, 0), number(next(iter(call.given), None))
    if call.on is None or place is None or not 0 <= place < len(call.on):
        return None
    whole, part = call.on[place], None
    if whole is not None and count is not None:
        start = f"{count}*"
        inner = whole.text[len(start) :] if whole.text.startswith(start) else ""
        part = Side(inner or joined(whole.text, "//", str(count)), sure=whole.sure)
    return [*call.on[:place], part, *call.on[place + 1 :]]


def _matmul(call: Called) -> Sides | None:
    return multiplied(call.on, call.other(0))


def _attention(call: Called) -> Sides | None:
    value = call.other(1)
    return None if not call.on else [*call.on[:-1], value[-1] if value else None]


def _embedding(call: Called) -> Sides | None:
    return None if call.on is None else [*call.on, None]


def _linear(call: Called) -> Sides | None:
    return None if not call.on else [*call.on[:-1], None]


def _one_hot(call: Called) -> Sides | None:
    return None if call.on is None else [*call.on, call.size(0, "num_classes")]


def _cat(call: Called) -> Sides | None:
    parts = call.parts()
    known = [one for one in parts if one is not None]
    place = call.place(1, 0)
    if not known or place is None or any(len(one) != len(known[0]) for one in known):
        return None
    place %= len(known[0])
    found: Sides = []
    for n in range(len(known[0])):
        told = [side for side in (one[n] for one in known) if side is not None]
        if n != place:
            found.append(told[0] if told else None)
        else:
            found.append(_sum(told) if len(told) == len(parts) else None)
    return found


def _sum(sides: Sequence[Side]) -> Side:
    text = sides[0].text
    if len(sides) > 1 and len({side.text for side in sides}) == 1:
        text = joined(str(len(sides)), "*", text)
    else:
        for side in sides[1:]:
            text = joined(text, "+", side.text)
    return Side(text, sure=all(side.sure for side in sides))


def _stack(call: Called) -> Sides | None:
    parts = call.parts()
    known = next((one for one in parts if one is not None), None)
    place = call.place(1, 0)
    if known is None or place is None:
        return None
    at = place if place >= 0 else len(known) + 1 + place
    return [*known[:at], Side(str(len(parts))), *known[at:]]


def _repeat_each(call: Called) -> Sides | None:
    place, times = call.place(1), call.size(0)
    if call.on is None or place is None or not 0 <= place < len(call.on):
        return None
    return [*call.on[:place], _times(call.on[place], times), *call.on[place + 1 :]]


def _repeat(call: Called) -> Sides | None:
    times = call.sizes()
    if call.on is None or times is None or len(times) != len(call.on):
        return None
    return [_times(side, count) for side, count in zip(call.on, times, strict=True)]


def _times(side: Side | None, count: Side | None) -> Side | None:
    if side is None or count is None:
        return None
    if count.text == "1" or side.text == "1":
        return side if count.text == "1" else count
    return Side(joined(side.text, "*", count.text), sure=side.sure)


def _where(call: Called) -> Sides | None:
    return spread([call.on, *(call.of(one) for one in call.given)])


def _like_other(call: Called) -> Sides | None:
    return call.other(0)


def _expand(call: Called) -> Sides | None:
    found, nodes = call.sizes(), call.listed()
    if found is None or call.on is None:
        return found
    for place in range(1, min(len(found), len(call.on)) + 1):
        if number(nodes[-place]) == -1:
            found[-place] = call.on[-place]
    return found


def _einsum(call: Called) -> Sides | None:
    """Take the sides from the operands that have the letters of the result."""
    text = text_of(next(iter(call.given), None))
    if "->" not in text:
        return None
    left, _, right = text.partition("->")
    operands = call.given[1:]
    told: dict[str, Side] = {}
    for part, operand in zip(left.split(","), operands, strict=False):
        names, sides = _letters(part), call.of(operand)
        if names is not None and sides is not None and len(names) == len(sides):
            for name, side in zip(names, sides, strict=True):
                if side is not None:
                    told.setdefault(name, side)
    letters = _letters(right)
    return None if letters is None else [told.get(letter) for letter in letters]


def _letters(text: str) -> list[str] | None:
    if " " in text.strip():
        found = pattern_sides(text)
        return None if found is None else list(found)
    return list(text.strip()) if text.strip().isalpha() else None


_BY_NAME: dict[Callable[[Called], Sides | None], str] = {
    _view: "view reshape",
    _made: "zeros ones empty rand randn new_zeros new_ones new_empty",
    _filled: "full new_full",
    _by_chance: "normal uniform randint integers standard_normal",
    _arange: "arange",
    _eye: "eye",
    _transpose: "transpose t swapaxes swapdims",
    _permute: "permute",
    _unsqueeze: "unsqueeze expand_dims",
    _squeeze: "squeeze",
    _flatten: "flatten",
    _reduce: "sum mean max min amax amin argmax argmin prod std var norm logsumexp any all median",
    _split: "split",
    _chunk: "chunk",
    _unbind: "unbind",
    _matmul: "matmul bmm mm",
    _attention: "scaled_dot_product_attention",
    _embedding: "embedding",
    _linear: "linear",
    _one_hot: "one_hot",
    _cat: "cat concat concatenate",
    _stack: "stack",
    _repeat_each: "repeat_interleave",
    _repeat: "repeat",
    _where: "where",
    _like_other: "expand_as view_as reshape_as",
    _expand: "expand broadcast_to",
    _einsum: "einsum",
}
KNOWN = {name: what for what, names in _BY_NAME.items() for name in names.split()}
"""What an operation of this name does."""
