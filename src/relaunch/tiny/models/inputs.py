"""What to call a model with: from the parameters of its forward, its configuration, its complaints.

Runs in the user's Python, beside torch. Where a layout cannot be known there are several, and the
model itself says which one it takes.
"""

from __future__ import annotations

import inspect
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_BATCH = 2
_LENGTH = 16
_PARTS = (
    "text_config", "vision_config", "audio_config", "encoder", "decoder", "text_encoder",
    "backbone_config", "audio_encoder", "thinker_config", "image_config", "speech_config",
    "language_config", "llm_config", "encoder_config", "decoder_config", "vq_config",
    "qformer_config",
)  # fmt: skip


class Facts:
    """What the configuration tells about inputs."""

    def __init__(self, model: Any, seed: int = 0) -> None:
        import torch

        self.torch = torch
        self.model, self.config = model, model.config
        self.random = torch.Generator().manual_seed(seed)
        self.takes = inspect.signature(model.forward).parameters
        self.parts = [self.config, *self._inner(self.config)]

    def _inner(self, config: Any, deep: int = 0) -> list[Any]:
        found = []
        named = (*_PARTS, *getattr(type(config), "sub_configs", ()))
        for name in dict.fromkeys(named):
            part = getattr(config, name, None)
            if part is not None and hasattr(part, "to_dict") and deep < 3:
                found += [part, *self._inner(part, deep + 1)]
        return found

    def number(self, *names: str, default: int = 0, of: str = "") -> int:
        """Return the first whole number under one of the names, the parts named `of` first."""
        first = [p for p in self.parts if of and of in type(p).__name__.lower()]
        for part in (*first, *self.parts):
            for name in names:
                value = getattr(part, name, None)
                if isinstance(value, (list, tuple)) and value and isinstance(value[0], int):
                    value = value[0]
                if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                    return value
        return default

    @property
    def vocab(self) -> int:
        """How many ids the model knows."""
        table = None
        try:
            table = self.model.get_input_embeddings()
        except Exception:  # models without one raise what they like
            table = None
        weight = getattr(table, "weight", None)
        has_ids = weight is not None and weight.dim() == 2 and "mbedding" in type(table).__name__
        named = self.number("vocab_size", "text_vocab_size", "src_vocab_size", default=0, of="text")
        if has_ids and weight is not None:
            return int(min(weight.shape[0], named or weight.shape[0]))
        return named or 100

    def special(self) -> set[int]:
        """Return the ids that mean something."""
        found = set()
        for part in self.parts:
            for name, value in vars(part).items():
                if "token" in name and isinstance(value, int) and not isinstance(value, bool):
                    found.add(value)
                elif "token" in name and isinstance(value, (list, tuple)):
                    found |= {one for one in value if isinstance(one, int)}
        return found

    def ids(self, length: int = _LENGTH, vocab: int = 0) -> Any:
        """Return plain ids, none of them special."""
        vocab = vocab or self.vocab
        special = self.special()
        plain = [at for at in range(min(vocab, 400)) if at not in special] or [0]
        at = self.torch.randint(0, len(plain), (_BATCH, length), generator=self.random)
        return self.torch.tensor(plain)[at]

    def floats(self, *shape: int) -> Any:
        """Return numbers around zero."""
        return self.torch.randn(*shape, generator=self.random)

    def ones(self, *shape: int) -> Any:
        """Return a mask that hides nothing."""
        return self.torch.ones(*shape, dtype=self.torch.long)

    @property
    def length(self) -> int:
        """How long a text may be, at most 16."""
        sides = getattr(self.config, "axial_pos_shape", None)
        if sides:  # a whole table is trained at once
            return int(sides[0] * sides[1])
        most = self.number(
            "max_position_embeddings", "n_positions", "max_sequence_length", of="text"
        )
        return min(_LENGTH, most) if most > 4 else _LENGTH

    def image(self) -> tuple[int, int, int]:
        """Return channels, height and width of a picture."""
        channels = self.number("num_channels", "in_channels", "in_chans", "image_channels",
                               default=3, of="vision")  # fmt: skip
        ratios = getattr(self.config, "scaled_images_ratios", None)
        if ratios:  # the smallest copy of the picture must still have a patch
            side = round(self.config.patch_size / min(ratios))
            return channels, side, side
        sizes = self._sizes()
        small = [one for one in sizes if max(one) <= 256]  # one that stayed big is of another part
        high, wide = [*small, *sizes, (64, 64)][0]
        return channels, high, wide

    def _sizes(self) -> list[tuple[int, int]]:
        """Return every size of a picture that is told, that of the vision part first."""
        found = []
        for part in sorted(
            self.parts, key=lambda p: not re.search("ision|Hiera", type(p).__name__)
        ):
            for name in ("image_size", "img_size", "input_size", "crop_size"):
                size = getattr(part, name, None)
                if isinstance(size, dict):
                    size = [size.get("height") or size.get("shortest_edge"), size.get("width")]
                if isinstance(size, (list, tuple)) and size and isinstance(size[0], int):
                    found.append((size[0], size[-1] or size[0]))
                elif isinstance(size, int) and size > 1:
                    found.append((size, size))
        return found


_PLACES = ("spatial_shapes", "pixel_position_ids", "grid_thw", "image_grid_thw", "target_sizes",
           "cu_seqlens", "grid_hws", "image_grid_hws", "patch_attention_mask")  # fmt: skip
"""With one of these a model may take patches instead of a picture."""


# --- one input ------------------------------------------------------------------------------------


def _pictures(f: Facts) -> list[Any]:
    channels, high, wide = f.image()
    frames = f.number("num_frames", "frames_per_clip", default=2)
    patch = f.number("patch_size", default=8, of="vision")
    temporal = f.number("temporal_patch_size", default=1)
    one = f.floats(_BATCH, channels, high, wide)
    layouts = [one, f.floats(_BATCH, frames, channels, high, wide)]
    if set(_PLACES) & set(f.takes):
        layouts.append(f.floats(_BATCH, 16, channels * patch * patch * temporal))
        layouts.append(f.floats(32, channels * patch * patch * temporal))
        layouts.append(f.floats(32, channels, patch, patch))
    if high != wide:
        layouts.append(f.floats(_BATCH, channels, min(high, wide), min(high, wide)))
    layouts.append(f.floats(_BATCH, channels, 64, 64))
    layouts.append(f.floats(_BATCH, 1, channels, high, wide))
    layouts.append(f.floats(_BATCH, 2, channels, high, wide))
    layouts.append(f.floats(_BATCH, channels, 224, 224))
    layouts.append(f.floats(_BATCH, channels, 96, 320))
    layouts.append(f.floats(_BATCH, 1, f.number("max_num_tiles", default=1), channels, high, wide))
    return layouts


def _features(f: Facts) -> list[Any]:
    mel = f.number("num_mel_bins", "n_mels", "feature_size", "input_feat_per_channel", "mel_bins",
                   "input_dim", "input_feat_size", "feature_projection_input_dim", "n_mel_bins",
                   default=80, of="audio")  # fmt: skip
    steps = f.number("max_source_positions", default=0)
    long = 2 * steps if 0 < steps <= 3000 else 128
    return [
        f.floats(_BATCH, mel, long), f.floats(_BATCH, long, mel), f.floats(_BATCH, 1, long, mel),
        f.floats(_BATCH, 128, mel), f.floats(_BATCH, mel, 200), f.floats(_BATCH, 1, mel, 128),
        f.floats(_BATCH, 400, mel),
    ]  # fmt: skip


def _waves(f: Facts) -> list[Any]:
    channels = f.number("audio_channels", default=1)
    bins = f.number("num_mel_bins", default=80)
    long = f.number("max_length", default=128)
    return [
        f.floats(_BATCH, 4000), f.floats(_BATCH, channels, 4800), f.floats(_BATCH, 16000),
        f.floats(_BATCH, long, bins), f.floats(_BATCH, 1, 38400), f.floats(_BATCH, 48000),
    ]  # fmt: skip


def _boxes(f: Facts) -> list[Any]:
    torch = f.torch
    low = torch.randint(0, 10, (_BATCH, f.length, 2), generator=f.random)
    box = torch.cat([low, low + 10], -1)
    return [box, torch.rand(_BATCH, f.length, 8, generator=f.random), box.float() / 30]


def _patches(f: Facts) -> list[Any]:
    channels, _, _ = f.image()
    patch = f.number("patch_size", default=8, of="vision")
    temporal = f.number("temporal_patch_size", default=1)
    return [f.floats(32, channels * patch * patch * temporal), f.floats(32, channels, patch, patch)]


def _hidden(f: Facts) -> list[Any]:
    width = f.number("hidden_size", "d_model", "n_embd", "dim", default=32)
    return [*_patches(f)[:1], f.floats(_BATCH, f.length, width), f.floats(f.length, width)]


def _embeds(f: Facts) -> list[Any]:
    width = f.number("hidden_size", "d_model", "n_embd", "encoder_hidden_size", default=32)
    return [f.floats(_BATCH, f.length, width)]


def _grid(f: Facts) -> list[Any]:
    return [f.torch.tensor([[1, 4, 4], [1, 4, 4]]), f.torch.tensor([[4, 4], [4, 4]])]


def _series(f: Facts) -> list[Any]:
    long = f.number("context_length", default=32)
    lags = max(getattr(f.config, "lags_sequence", None) or [0])
    inputs = f.number("num_input_channels", "input_size", default=1)
    return [
        f.floats(_BATCH, long, inputs), f.floats(_BATCH, long + lags), f.floats(_BATCH, long),
        f.floats(_BATCH, long + lags, inputs),
    ]  # fmt: skip


def _decoder_ids(f: Facts) -> list[Any]:
    books = f.number("num_codebooks", default=1)
    vocab = f.number("decoder_vocab_size", "tgt_vocab_size", "vocab_size", of="decoder") or f.vocab
    few = f.number("max_target_positions", "max_decoder_position_embeddings", default=8)
    long = min(8, few)
    return [f.ids(long, vocab), f.ids(long, vocab)[:, :1].repeat(books, long)]


def _pick(f: Facts, *shape: int, most: int) -> Any:
    return f.torch.randint(0, max(most, 1), shape, generator=f.random)


_MADE: dict[str, Callable[[Facts], list[Any]]] = {
    "input_ids": lambda f: [
        f.ids(f.length),
        f.ids(f.length)[:, None].repeat(1, f.number("num_codebooks", default=1), 1),
        f.ids(f.length)[..., None].repeat(
            1, 1, f.number("num_codebooks", "n_codebooks", default=1)
        ),
    ],
    "attention_mask": lambda f: [f.ones(_BATCH, f.length)],
    "decoder_input_ids": _decoder_ids,
    "decoder_attention_mask": lambda f: [f.ones(_BATCH, 8)],
    "pixel_values": _pictures,
    "pixel_values_videos": _pictures,
    "pixel_mask": lambda f: [f.ones(_BATCH, *f.image()[1:])],
    "pixel_attention_mask": lambda f: [f.ones(_BATCH, 16), f.ones(_BATCH, 1, *f.image()[1:])],
    "spatial_shapes": lambda f: [f.torch.tensor([[4, 4]] * _BATCH)],
    "input_features": _features,
    "audio_values": lambda f: [*_waves(f), *_features(f)],
    "input_values": _waves,
    "bbox": _boxes,
    "hidden_states": _hidden,
    "inputs_embeds": _embeds,
    "encoder_hidden_states": _embeds,
    "encoder_outputs": lambda f: [(one,) for one in _embeds(f)],
    "grid_thw": _grid,
    "image_grid_thw": _grid,
    "merge_sizes": lambda f: [f.torch.tensor([2] * _BATCH)],
    "image_merge_sizes": lambda f: [f.torch.tensor([2] * _BATCH)],
    "image_sizes": lambda f: [f.torch.tensor([list(f.image()[1:])] * _BATCH)],
    "patch_attention_mask": lambda f: [f.torch.ones(_BATCH, 4, 4, dtype=f.torch.bool)],
    "token_type_ids": lambda f: [_pick(f, _BATCH, f.length, most=1)],
    "position_ids": lambda f: [f.torch.arange(f.length)[None].repeat(_BATCH, 1)],
    "past_values": _series,
    "past_observed_mask": lambda f: [f.torch.ones_like(one) for one in _series(f)],
    "past_time_features": lambda f: [
        f.floats(_BATCH, one.shape[1], f.number("num_time_features", default=1))
        for one in _series(f)
    ],
    "future_values": lambda f: [f.floats(_BATCH, f.number("prediction_length", default=8))],
    "future_time_features": lambda f: [
        f.floats(
            _BATCH,
            f.number("prediction_length", default=8),
            f.number("num_time_features", default=1),
        )
    ],
    "states": lambda f: [f.floats(_BATCH, 8, f.number("state_dim", default=8))],
    "actions": lambda f: [f.floats(_BATCH, 8, f.number("act_dim", default=4))],
    "rewards": lambda f: [f.floats(_BATCH, 8, 1)],
    "returns_to_go": lambda f: [f.floats(_BATCH, 8, 1)],
    "timesteps": lambda f: [f.torch.arange(8)[None].repeat(_BATCH, 1)],
    "visual_feats": lambda f: [f.floats(_BATCH, 4, f.number("visual_feat_dim", default=32))],
    "visual_pos": lambda f: [f.floats(_BATCH, 4, f.number("visual_pos_dim", default=4))],
    "visual_embeds": lambda f: [f.floats(_BATCH, 4, f.number("visual_embedding_dim", default=32))],
    "audio_codes": lambda f: [
        _pick(f, _BATCH, f.number("num_codebooks", "num_quantizers", default=1), 8, most=16)
    ],
    "input_points": lambda f: [f.floats(_BATCH, 1, 1, 2)],
    "bool_masked_pos": lambda f: [f.torch.zeros(_BATCH, 16, dtype=f.torch.bool)],
    "image": _pictures,
    "images": _pictures,
    "prompt_pixel_values": _pictures,
    "prompt_masks": _pictures,
    "flattened_patches": lambda f: [
        f.floats(_BATCH, 8, 2 + f.number("patch_embed_hidden_size", default=32))
    ],
    "task_inputs": lambda f: [_pick(f, _BATCH, f.number("task_seq_len", default=16), most=50)],
    "xpath_tags_seq": lambda f: [
        _pick(f, _BATCH, f.length, f.number("max_depth", default=8), most=8)
    ],
    "xpath_subs_seq": lambda f: [
        _pick(f, _BATCH, f.length, f.number("max_depth", default=8), most=8)
    ],
    "spectrogram": lambda f: [
        f.floats(_BATCH, 16, f.number("model_in_dim", "num_mel_bins", default=80))
    ],
    "speech_input_ids": lambda f: [f.ids(f.length)],
    "pixel_values_images": _pictures,
    "inputs": lambda f: [
        f.ids(f.length),
        _pictures(f)[0],
        f.floats(_BATCH, f.length, f.number("d_model", default=32)),
    ],
    "entity_ids": lambda f: [_pick(f, _BATCH, 2, most=8)],
    "entity_position_ids": lambda f: [_pick(f, _BATCH, 2, 4, most=8)],
    "speaker_embeddings": lambda f: [
        f.floats(_BATCH, f.number("speaker_embedding_dim", default=32))
    ],
    "sequence_output": _embeds,
    "audio_input_ids": lambda f: [
        _pick(f, _BATCH, f.length, f.number("num_codebooks", default=1), most=16)
    ],
    "input_features_mask": lambda f: [f.ones(_BATCH, _features(f)[0].shape[-1])],
    "feature_lens": lambda f: [f.torch.tensor([64] * _BATCH)],
    "target_sizes": lambda f: [f.torch.tensor([[4, 4]] * _BATCH, dtype=f.torch.int32)],
    "grid_hws": lambda f: [f.torch.tensor([[4, 4]] * _BATCH)],
    "pixel_position_ids": lambda f: [
        f.torch.tensor([[at % 4, at // 4] for at in range(16)])[None].repeat(_BATCH, 1, 1)
    ],
    "aspect_ratio_ids": lambda f: [f.ones(_BATCH, 1)],
    "aspect_ratio_mask": lambda f: [f.ones(_BATCH, 1, f.number("max_num_tiles", default=1))],
    "labels": lambda f: [f.ids(f.length)],
}
_COMPLAINED = re.compile(r"'(\w+)'|`(\w+)`|\b(\w+_\w+|bbox|states|actions|image)\b")


def first_names(model: Any) -> list[str]:
    """Return what a model surely wants: its main input, and what has no default."""
    takes = inspect.signature(model.forward).parameters
    main = getattr(model, "main_input_name", "input_ids")
    names = [name for name in ([main] if isinstance(main, str) else main) if name in takes]
    if not names:
        known = [name for name in ("input_ids", *takes) if name in takes and name in _MADE]
        names = known[:1] or [str(main)]
    main = names[0]
    for name, one in takes.items():
        plain = one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
        if plain and one.default is one.empty and name not in names:
            names.append(name)
    config = model.config
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in takes:
        names += [] if "decoder_input_ids" in names else ["decoder_input_ids"]
    if main == "pixel_values" and "spatial_shapes" in takes:
        names += ["pixel_attention_mask", "spatial_shapes"]
    towers = {"input_ids", "pixel_values"} <= set(takes) and "pixel_values" not in names
    if towers and not _speaks(model):
        names.append("pixel_values")
    return names


def first_layouts(names: list[str]) -> dict[str, int]:
    """Return in which layout each input is made first: patches where their places are told."""
    told = {"spatial_shapes", "pixel_position_ids"} & set(names)
    return {"pixel_values": 2} if told else {}


def _speaks(model: Any) -> bool:
    try:
        return bool(model.can_generate())
    except Exception:
        return False


def make(facts: Facts, names: list[str], layouts: dict[str, int]) -> dict[str, Any]:
    """Return the inputs of these names, each in the layout that is its turn."""
    made = {}
    for name in names:
        if name not in _MADE:
            raise LookupError(f"no dummy input for `{name}`")
        known = _MADE[name](facts)
        alike = _MADE[name] is _pictures and "pixel_values" in names
        made[name] = known[layouts.get("pixel_values" if alike else name, 0) % len(known)]
    return made


def layouts_of(facts: Facts, name: str) -> int:
    """Return in how many layouts an input can be made."""
    return len(_MADE[name](facts)) if name in _MADE else 0


def wanted(message: str, facts: Facts, given: list[str]) -> list[str]:
    """Return the inputs that a complaint names and that are not given yet."""
    named = [next(filter(None, groups)) for groups in _COMPLAINED.findall(message)]
    missing = "required positional argument" in message
    found = [n for n in dict.fromkeys(named) if n in facts.takes and n not in given and n in _MADE]
    if "inputs_embeds" in found and not missing:
        found.remove("inputs_embeds")
    if not found and "NoneType" in message:  # it looked for something that was not given
        open_ones = [n for n in _PLACES if n in facts.takes and n in _MADE and n not in given]
        found = open_ones[:1]
    return found
