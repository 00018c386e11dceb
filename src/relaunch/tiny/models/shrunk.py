"""From a model's configuration to that of a tiny one: same fields, small numbers that fit together.

A configuration is plain data here, as in config.json. All widths become one number, so that what
was equal stays equal across parts; lists of widths (stages of a vision model) are scaled as one.
"""

from __future__ import annotations

import re

from relaunch.record import Record
from relaunch.tiny.models.names import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

_LEFT = frozenset(("id2label", "label2id", "task_specific_params", "quantization_config"))
_TIED_TO_IMAGE = re.compile(
    r"image_seq_len(gth)?|num_image_tokens|mm_tokens_per_image|num_patches|num_position_embeddings"
    r"|vision_soft_tokens_per_image|image_token_len"
)
_SCALED = re.compile(r"(width|depth)_(coefficient|multiplier)|width_mult|dim_multiplier")


class Level(Record):
    """How small: the first that gives a megabyte is taken."""

    width: int = 32
    heads: int = 4
    head_dim: int = 8
    inner: int = 64
    base: int = 8
    """The smallest width in a list of widths."""
    layers: int = 2
    depth: int = 2
    """Layers of one stage, where there are several."""
    vocab: int = 500
    positions: int = 128


LEVELS = (
    Level(),
    Level(depth=1),
    Level(width=16, inner=32, base=4, depth=1, head_dim=4, vocab=300, positions=64),
)


class Change(Record):
    """One field that differs."""

    path: tuple[str, ...]
    old: Any
    new: Any

    @property
    def name(self) -> str:
        """As it is said: `vision_config.hidden_size`."""
        return ".".join(self.path)


def shrink(
    config: Mapping[str, Any], level: Level, ids: Mapping[int, int] | None = None
) -> list[Change]:
    """Return what to change in a configuration; `ids` says what the tokens' ids become."""
    found: list[Change] = []
    lists = _stage_widths(config)
    few = (min(lists, default=1) / level.base, max(lists, default=1) / level.base / 16, 1.0)
    scale = max(few)
    for path, part in parts(config):
        found += _Part(path, part, level, scale).changes()
    found += _maps(config, found)
    found += _ids(config, min(level.vocab, _vocab(config)), ids)
    return found


def _maps(config: Mapping[str, Any], changes: list[Change]) -> list[Change]:
    """Scale the sizes of feature maps, wherever they stand, as the picture was scaled."""
    ratio = 0.0
    for change in changes:
        if kind_of(change.path[-1]) == "image" and not change.path[-1].startswith("pretrain"):
            old, new = (
                max(one) if isinstance(one, list) else one for one in (change.old, change.new)
            )
            patch = [c for c in changes if c.path == (*change.path[:-1], "patch_size")]
            finer = patch[0].old / patch[0].new if patch and type(patch[0].new) is int else 1.0
            ratio = max(ratio, new / old * finer)
    found = []
    for path, part in parts(config):
        sizes = part.get("backbone_feature_sizes")
        if ratio and isinstance(sizes, list):
            made = [[max(1, round(one * ratio)) for one in row] for row in sizes]
            found.append(Change(path=(*path, "backbone_feature_sizes"), old=sizes, new=made))
    return found


def applied(config: Mapping[str, Any], changes: list[Change]) -> dict[str, Any]:
    """Return a copy with the changes made."""
    made = _copy(config)
    for change in changes:
        part = made
        for name in change.path[:-1]:
            part = part.get(name) if isinstance(part, dict) else None
        if isinstance(part, dict):
            part[change.path[-1]] = _copy(change.new)
    return dict(made)


def parts(config: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield a configuration and every one inside it, each with where it is."""
    waiting: list[tuple[tuple[str, ...], Mapping[str, Any]]] = [((), config)]
    while waiting:
        path, part = waiting.pop(0)
        yield path, part
        for name, value in part.items():
            if isinstance(value, dict) and name not in _LEFT and not by_layer(value):
                waiting.append(((*path, name), value))


def by_layer(value: Mapping[str, Any]) -> bool:
    """Tell whether a table has numbers of layers for names."""
    return bool(value) and all(str(name).isdecimal() for name in value)


def is_ints(value: object) -> bool:
    """Tell whether this is a list of whole numbers."""
    return isinstance(value, list) and bool(value) and all(type(one) is int for one in value)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(one) for name, one in value.items()}
    return [_copy(one) for one in value] if isinstance(value, list) else value


def _stage_widths(config: Mapping[str, Any]) -> set[int]:
    """Return the widths that stand in lists, and those of parts whose stages double them."""
    found: set[int] = set()
    for _, part in parts(config):
        staged = _is_staged(part)
        for name, value in part.items():
            if kind_of(name) == "nested":
                found |= _widths_in(value)
            if kind_of(name) == "width":
                if is_ints(value) and len(value) > 1:
                    found |= {one for one in value if one > 4}
                elif staged and type(value) is int and name in ("embed_dim", "embedding_size"):
                    found.add(value)
    return found


def _each(value: Any, made: Callable[[int], int]) -> Any:
    """Return nested lists with each width in them made anew; kernels and strides are no widths."""
    if isinstance(value, list):
        return [_each(one, made) for one in value]
    return made(value) if type(value) is int and value > 12 else value


def _widths_in(value: Any) -> set[int]:
    if isinstance(value, list):
        return {width for one in value for width in _widths_in(one)}
    return {value} if type(value) is int and value > 12 else set()


def _is_staged(part: Mapping[str, Any]) -> bool:
    """Tell whether a part has stages: its depths or heads are lists."""
    staged = ("depths", "num_heads", "blocks_per_stage", "layer_depths", "num_attention_heads")
    return any(is_ints(part.get(name)) and len(part[name]) > 1 for name in staged)


def _vocab(config: Mapping[str, Any]) -> int:
    sizes = [
        part[name]
        for _, part in parts(config)
        for name in ("vocab_size", "decoder_vocab_size", "text_vocab_size")
        if type(part.get(name)) is int and part[name] > 1
    ]
    return min(sizes, default=1 << 40)


# --- one part -------------------------------------------------------------------------------------


class _Part:
    """The numbers of one part, made small together."""

    def __init__(
        self, path: tuple[str, ...], part: Mapping[str, Any], level: Level, scale: float
    ) -> None:
        self.path, self.part, self.level, self.scale = path, part, level, scale
        self.staged = _is_staged(part)
        self.new: dict[str, Any] = {}

    def changes(self) -> list[Change]:
        for name, value in self.part.items():
            made = self._made(name, value)
            if made is not None:
                self.new[name] = made
        self._inner()
        self._image()
        self._layers()
        self._heads()
        self._experts()
        self._rope()
        self._special()
        return [
            Change(path=(*self.path, name), old=self.part.get(name), new=new)
            for name, new in self.new.items()
            if new != self.part.get(name)
        ]

    def value(self, name: str) -> Any:
        return self.new.get(name, self.part.get(name))

    def of(self, kind: str) -> list[str]:
        """Return the fields of a kind that are single numbers."""
        return [n for n, v in self.part.items() if type(v) is int and v > 0 and kind_of(n) == kind]

    def _made(self, name: str, value: Any) -> Any:
        if type(value) is float and _SCALED.fullmatch(name):
            return min(value, 1.0 if name == "depth_coefficient" else self.level.base / 80)
        kind = kind_of(name)
        if kind == "nested" and isinstance(value, list):
            return _each(value, self._stage)
        if not kind or kind in ("nested", "id", "index", "image", "kv", "top", "layers"):
            return None
        if type(value) is int:
            return self._small(kind, name, value)
        if is_ints(value):
            if kind == "width":
                return [self._stage(one) for one in value]
            if kind == "heads":
                return [_power_of_two(one // max(min(value), 1), self.level.heads) for one in value]
            return [self._small(kind, name, one) for one in value]
        if kind == "width" and isinstance(value, list) and value and all(map(is_ints, value)):
            return [[self._stage(one) for one in row] for row in value]
        return None

    def _small(self, kind: str, name: str, value: int) -> int:
        level = self.level
        if value <= 1:
            return value
        if kind == "width":
            if self.staged and (
                name in ("embed_dim", "embedding_size") or self._listed_width(value)
            ):
                return self._stage(value)
            return min(value, level.width) if value > 8 else value
        limits = {
            "vocab": level.vocab, "heads": level.heads, "headdim": level.head_dim, "rank": 8,
            "inner": level.inner, "positions": level.positions, "patch": 8, "state": 8,
            "experts": 4, "shared": 1, "groups": 2, "codes": 256, "window": 16,
            "windows": 2 if name.endswith("_side") else 4,
        }  # fmt: skip
        return min(value, limits[kind])

    def _listed_width(self, value: int) -> bool:
        lists = [v for n, v in self.part.items() if kind_of(n) in ("width", "nested")]
        return any(value in _widths_in(one) for one in lists if isinstance(one, list))

    def _stage(self, value: int) -> int:
        """Scale a width of a list; what is a width of this part by itself stays equal to it."""
        if value <= 4:
            return value
        alone = [n for n, v in self.part.items() if v == value and kind_of(n) == "width"]
        if any(type(self.part[name]) is int for name in alone) and not self.staged:
            return min(value, self.level.width)
        step = self.level.base
        return max(step, round(value / self.scale / step) * step)

    # --- what must fit together

    def _inner(self) -> None:
        """Keep an inner width a multiple of the width, where it was: some models count on it."""
        width = next((n for n in ("hidden_size", "d_model") if type(self.part.get(n)) is int), "")
        for name in self.of("inner"):
            times, rest = divmod(self.part[name], self.part[width] if width else 1 << 30)
            if not rest and 2 <= times <= 4 and self.level.base > 4 and width in self.new:
                self.new[name] = times * self.new[width]

    def _image(self) -> None:
        for name in [n for n in self.part if kind_of(n) == "image"]:
            value, patch = self.part[name], self.part.get("patch_size")
            if isinstance(patch, list):
                patch = patch[0] if patch else None
            if not isinstance(patch, int):
                patch = 4 if self.staged else 16
            small = 4 * min(patch, 8) if patch >= 8 else 64
            if type(value) is int and value > small:
                self.new[name] = small
                self._tied_to_image(value, patch, small, min(patch, 8) if patch >= 8 else patch)
            elif is_ints(value):
                least = max(min(value), 1)
                self.new[name] = [one * small // least if least > small else one for one in value]

    def _tied_to_image(self, old: int, patch: int, new: int, new_patch: int) -> None:
        side, new_side = old // patch, new // new_patch
        if self.part.get("image_embedding_size") == side:
            self.new["image_embedding_size"] = new_side
        for name, value in self.part.items():
            if type(value) is int and _TIED_TO_IMAGE.fullmatch(name) and value > 1:
                extra = value - side * side
                fits = abs(extra) <= 2
                scaled = new_side**2 + extra if fits else value * new_side**2 // side**2
                self.new[name] = max(1, scaled)

    def _layers(self) -> None:
        """Make layers few; lists with an entry for each lose the same ones; every kind stays."""
        indexes = [self.part[n] for n in self.part if kind_of(n) == "index"]
        most = max((len(set(one)) for one in indexes if is_ints(one)), default=0)
        for name, value in self.part.items():
            if kind_of(name) != "layers":
                continue
            if is_ints(value):
                tied = self._tied(len(value)) if len(value) > 6 else []
                if name not in tied:
                    self.new[name] = [min(one, self.level.depth) for one in value]
            elif type(value) is int and value > 1:
                self._fewer(name, value, most)

    def _fewer(self, name: str, old: int, most: int) -> None:
        tied = self._tied(old)
        lists = [self.part[one] for one in tied]
        if old <= 6 and any(len(one) == old for n, one in self._lists() if kind_of(n) != "layers"):
            return  # a number of stages, with a list of widths or strides for each
        rows = list(zip(*map(_hashable, lists), strict=True)) if lists else []
        tables = [
            n for n, v in self.part.items()
            if n not in _LEFT and isinstance(v, dict) and by_layer(v) and max(map(int, v)) < old
        ]  # fmt: skip
        if tables:
            rows = [(*(rows[at] if rows else ()), self._listed(tables, at)) for at in range(old)]
        kinds = list(dict.fromkeys(rows))
        first = [rows.index(kind) for kind in kinds]
        new = max(self.level.layers, min(len(kinds), 8), min(most + 1, 6) if most > 1 else 0)
        shared = self.part.get("num_kv_shared_layers")
        if type(shared) is int and shared > 0:  # each kind once before and once among the shared
            last = [old - 1 - rows[::-1].index(kind) for kind in kinds]
            self.new["num_kv_shared_layers"] = len(kinds)
            first, new = sorted({*first, *last}), 2 * len(kinds)
        if new >= old:
            return
        kept = _kept(first, new, old)
        self.new[name] = len(kept)
        for one in tied:
            self.new[one] = [self.value(one)[at] for at in kept]
        for one in tables:
            self.new[one] = self._by_layer(self.part[one], kept)
        self._indexes(old, len(kept))

    def _listed(self, tables: list[str], at: int) -> str:
        found = [v for name in tables for k, v in self.part[name].items() if int(k) == at]
        return repr(found)

    def _by_layer(self, table: Mapping[str, Any], kept: list[int]) -> dict[str, Any]:
        """Return what a table says of the layers that stay, under their new numbers."""
        made = {}
        for name, value in table.items():
            if int(name) not in kept:
                continue
            part = _Part((), value, self.level, self.scale) if isinstance(value, dict) else None
            small = applied(value, part.changes()) if part else value
            made[str(kept.index(int(name)))] = small
        return made

    def _lists(self) -> list[tuple[str, list[Any]]]:
        return [(n, v) for n, v in self.part.items() if isinstance(v, list) and v]

    def _tied(self, length: int) -> list[str]:
        """Return the lists with one entry for each layer."""
        if length <= 4:
            named = re.compile(r".*(layer_types?|layers_block_type|_layers|_per_layer|_types?)")
            return [n for n, v in self._lists() if len(v) == length and named.fullmatch(n)]
        return [n for n, v in self._lists() if len(v) == length and kind_of(n) != "index"]

    def _indexes(self, old: int, new: int) -> None:
        """Let numbers of layers be of layers that are there: in order, the last the last."""
        for name, value in self.part.items():
            if kind_of(name) != "index":
                continue
            if name == "kv_source_layers" and isinstance(value, list) and len(value) == old:
                self.new[name] = list(range(new))  # each layer its own
            elif type(value) is int:
                self.new[name] = value if -new <= value < new else (new - 1 if value > 0 else -1)
            elif is_ints(value) and max(map(abs, value)) >= new:
                self.new[name] = _fewer_indexes(value, old, new)

    def _heads(self) -> None:
        """Keep kv heads a divisor of heads, and heads times their width a multiple of a width."""
        for name in [n for n in self.part if kind_of(n) == "kv"]:
            self._kv(name)
        widths = [n for n in (*self.of("width"), *self.of("inner")) if n in self.new]
        for dim in [n for n in self.of("headdim") if not n.startswith(("qk_", "v_head"))]:
            for heads in self.of("heads"):
                if not _one_word(heads, dim):
                    continue
                whole = self.part[heads] * self.part[dim]
                for width in sorted(widths, key=lambda n: kind_of(n) != "width"):
                    times, rest = divmod(whole, self.part[width])
                    if rest or not 1 <= times <= 4:
                        continue
                    self.new[dim] = max(2, times * self.value(width) // self.value(heads))
                    break

        both = ("qk_nope_head_dim", "qk_rope_head_dim")
        if all(type(self.part.get(name)) is int for name in (*both, "qk_head_dim")):
            self.new["qk_head_dim"] = sum(self.value(name) for name in both)
        if self.part.get("qk_rope_head_dim") and self.part.get("head_dim") == self.part[both[1]]:
            self.new["head_dim"] = self.value(both[1])

    def _kv(self, name: str) -> None:
        value = self.part[name]
        heads = [self.part[n] for n in self.of("heads") if "index" not in n and "linear" not in n]
        if type(value) is int and value > 1:
            few = value < max(heads, default=value)
            self.new[name] = min(value, max(self.level.heads // 2, 1) if few else self.level.heads)
        elif is_ints(value):
            self.new[name] = [min(one, max(self.level.heads // 2, 1)) for one in self.value(name)]

    def _experts(self) -> None:
        experts = min((self.value(n) for n in self.of("experts")), default=4)
        for name in [n for n in self.part if kind_of(n) == "top"]:
            value = self.part[name]
            if type(value) is int and value > 0:
                self.new[name] = min(value, 2, experts)
        for name in ("topk_group", "topk_groups"):
            if type(self.part.get(name)) is int:
                self.new[name] = min(self.part[name], 1)

    def _rope(self) -> None:
        """Keep sections of rotary positions the same share of a head."""
        dims = [n for n in ("head_dim", "qk_rope_head_dim") if type(self.part.get(n)) is int]
        old = self.part[dims[0]] if dims else self._head_width(self.part.get)
        new = self.value(dims[0]) if dims else self._head_width(self.value)
        if not old or not new:
            return
        for name, value in self.part.items():
            if not isinstance(value, dict) or not name.startswith("rope"):
                continue
            fixed = _with_sections(value, old, new)
            if fixed != value:
                self.new[name] = fixed

    def _head_width(self, get: Callable[[str], Any]) -> int:
        width = get("hidden_size") or get("d_model")
        heads = get("num_attention_heads") or get("num_heads")
        return width // heads if type(width) is int and type(heads) is int and heads else 0

    def _special(self) -> None:
        """Fit what only a few have: sums of widths, tables with two sides, ids of labels."""
        for name, value in self.part.items():
            if isinstance(value, dict) and value.get("model_type") == "timm_backbone":
                self.new[name] = _resnet(value, self.level.base)
        if type(self.part.get("num_pos_feats")) is int and self.part["num_pos_feats"] >= 64:
            self.new["num_pos_feats"] = self.level.width // 2
        if type(self.part.get("max_keypoints")) is int:
            self.new["max_keypoints"] = 16
        if type(self.part.get("merge_index")) is int:  # of a layer before those that are taken out
            self.new["merge_index"] = 0
        if type(self.part.get("fine_matching_slice_dim")) is int:
            self.new["fine_matching_slice_dim"] = 2
        head = self._head_width(self.part.get)
        if head and self.part.get("dim_bbox_projection") == head:
            self.new["dim_bbox_projection"] = self._head_width(self.value)
        if not self.of("layers"):  # they count layers of another part
            for name, value in self.part.items():
                if is_ints(value) and name.endswith(
                    ("hook_ids", "extract_layers", "target_layers")
                ):
                    self.new[name] = _fewer_indexes(value, max(value) + 1, len({*value}))
        patch = self.part.get("patch_size")
        if type(patch) is int and patch >= 128:  # a picture of its own for the parts inside
            self.new["patch_size"] = 32
        rope = self.part.get("rope_parameters")
        wider = rope.get("partial_rotary_factor") if isinstance(rope, dict) else 1.0
        if type(wider) is float and wider > 1:  # it turns the width, so many heads it must have
            for name in ("num_attention_heads", "num_key_value_heads"):
                self.new[name] = min(self.part.get(name) or 1, int(2 * wider))
        self._global_blocks()
        if "block_configs" in self.part and type(self.part.get("scale")) is float:
            self.new["scale"] = 1.0  # the widths themselves are small
            if type(self.part.get("divisor")) is int:
                self.new["divisor"] = self.level.base
        labels = self.part.get("id2label")
        if isinstance(labels, dict) and len(labels) > 64:
            self.new["id2label"] = dict(list(labels.items())[:8])
            kept = set(self.new["id2label"].values())
            named = self.part.get("label2id") or {}
            self.new["label2id"] = {k: v for k, v in named.items() if k in kept}
        axial = self.part.get("axial_pos_embds_dim")
        if isinstance(axial, list) and is_ints(axial) and len(axial) == 2:
            half = self.level.width // 2
            self.new["axial_pos_embds_dim"] = [half, self.level.width - half]
            if is_ints(self.part.get("axial_pos_shape")):
                self.new["axial_pos_shape"] = [4, 8]
        shape, coordinate = self.part.get("shape_size"), self.part.get("coordinate_size")
        if type(shape) is int and type(coordinate) is int:  # four of one and two of the other
            width = self.value("hidden_size")
            self.new["coordinate_size"] = coordinate = width // 6
            self.new["shape_size"] = (width - 4 * coordinate) // 2

    def _global_blocks(self) -> None:
        """Let a block that sees the whole picture be the second of its stage, as it was inside."""
        blocks, whole = self.part.get("blocks_per_stage"), self.part.get("global_attention_blocks")
        if not isinstance(blocks, list) or not isinstance(whole, list) or not whole:
            return
        stage = next((at for at in range(len(blocks)) if sum(blocks[: at + 1]) > whole[0]), 0)
        new = self.value("blocks_per_stage")
        self.new["global_attention_blocks"] = [sum(new[:stage]) + 1] if new[stage] > 1 else []


def _resnet(timm: Mapping[str, Any], base: int) -> Any:
    """Return a tiny ResNet where timm's is asked for, which has one size only."""
    if not str(timm.get("backbone") or "").startswith("resnet"):
        return timm
    count = len(timm.get("out_indices") or [4])
    return {
        "model_type": "resnet", "embedding_size": base, "layer_type": "bottleneck",
        "hidden_sizes": [base * 2, base * 2, base * 4, base * 4], "depths": [1, 1, 1, 1],
        "out_indices": list(range(5 - count, 5)), "num_channels": timm.get("num_channels") or 3,
    }  # fmt: skip


def _power_of_two(ratio: int, most: int) -> int:
    made = 1
    while made * 2 <= min(ratio, most):
        made *= 2
    return made


def _hashable(values: list[Any]) -> list[str]:
    return [repr(one) for one in values]


def _kept(first: list[int], count: int, old: int) -> list[int]:
    """Return which layers stay: the first of every kind, then others, in their order."""
    kept = sorted(first)[:count]
    for at in range(old):
        if len(kept) >= count:
            break
        if at not in kept:
            kept.append(at)
    return sorted(kept)


def _fewer_indexes(value: list[int], old: int, new: int) -> list[int]:
    known = sorted({one for one in value if one >= 0})
    top = new if max(value) >= old else new - 1
    lowest = top - len(known) + 1
    place = {one: max(lowest + at, 0) for at, one in enumerate(known)}
    return [place[one] if one >= 0 else max(one, -new) for one in value]


def _with_sections(value: dict[str, Any], old: int, new: int) -> dict[str, Any]:
    made = dict(value)
    for name, inner in value.items():
        if isinstance(inner, dict):
            made[name] = _with_sections(inner, old, new)
        elif is_ints(inner) and "section" in name:
            made[name] = sections(inner, max(len(inner), round(sum(inner) * new / old)))
        elif isinstance(inner, list) and 2 * len(inner) == old:  # a factor for each pair of numbers
            made[name] = inner[: new // 2]
    return made


def sections(old: list[int], total: int) -> list[int]:
    """Share `total` among sections as they were shared, none empty."""
    whole = sum(old)
    made = [max(1, one * total // whole) if one else 0 for one in old]
    while sum(made) != total:
        gaps = [one * total / whole - now for one, now in zip(old, made, strict=True)]
        if sum(made) < total:
            made[gaps.index(max(gaps))] += 1
        else:
            able = [gap if now > 1 else 1e9 for gap, now in zip(gaps, made, strict=True)]
            made[able.index(min(able))] -= 1
    return made


def _one_word(heads: str, dim: str) -> bool:
    """Tell whether two names speak of the same heads: `mamba_n_heads`, `mamba_d_head`."""
    for word in ("mamba", "linear_key", "linear_value", "linear", "index", "swa", "resampler"):
        first, *rest = word.split("_")
        if first in heads or first in dim:
            return first in heads and first in dim and all(r in heads and r in dim for r in rest)
    return True


# --- ids of tokens --------------------------------------------------------------------------------


def _ids(config: Mapping[str, Any], vocab: int, ids: Mapping[int, int] | None) -> list[Change]:
    """Let every id that is named be one of the small vocabulary; what was one stays one."""
    known: dict[int, int] = dict(ids or {})
    taken = set(known.values())
    free = iter([at for at in range(vocab - 1, -1, -1) if at not in taken])

    def small(old: int) -> int:
        if ids is None and old < vocab - 64:
            return old
        if old not in known:
            known[old] = next(free, vocab - 1)
        return known[old]

    found = []
    for path, part in parts(config):
        for name, value in part.items():
            if kind_of(name) != "id":
                continue
            new: Any = value
            if type(value) is int and value >= 0:
                new = small(value)
            elif is_ints(value):
                new = [small(one) if one >= 0 else one for one in value]
            if new != value:
                found.append(Change(path=(*path, name), old=value, new=new))
    return found
