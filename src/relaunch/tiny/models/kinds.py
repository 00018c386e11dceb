"""Which models are installed, which class stands for each, and what family it is of.

The families come from transformers' own tables of classes, by rule; a model may be of several:
  decoder          in the table of causal language models
  encoder-decoder  in the table of sequence-to-sequence language models
  encoder          in the table of masked language models
  vision           in a table of image or video tasks, or of backbones
  audio            in a table of audio tasks
  multimodal       in a table of tasks on images, sounds and text together
  MoE              besides: its configuration has a number of experts above one
What is in none of these but has a base class: multimodal when it takes ids and pictures or sounds,
vision or audio when it takes those, else of text: an encoder-decoder when its configuration says
so, a decoder when its forward makes a causal mask, else an encoder. The rest is `other`.
"""

from __future__ import annotations

import inspect

from relaunch.record import Record
from relaunch.tiny.models.names import kind_of
from relaunch.tiny.models.shrunk import parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

FAMILIES = (
    "decoder",
    "encoder",
    "encoder-decoder",
    "MoE",
    "vision",
    "audio",
    "multimodal",
    "other",
)
TABLES = {
    "decoder": ("CAUSAL_LM",),
    "encoder-decoder": ("SEQ_TO_SEQ_CAUSAL_LM",),
    "encoder": ("MASKED_LM",),
    "vision": (
        "IMAGE_CLASSIFICATION", "OBJECT_DETECTION", "SEMANTIC_SEGMENTATION", "IMAGE_SEGMENTATION",
        "INSTANCE_SEGMENTATION", "UNIVERSAL_SEGMENTATION", "DEPTH_ESTIMATION", "NORMAL_ESTIMATION",
        "POINTMAP_ESTIMATION", "POSE_ESTIMATION", "KEYPOINT_DETECTION", "KEYPOINT_MATCHING",
        "IMAGE_MATTING", "IMAGE_TO_IMAGE", "MASK_GENERATION", "MASKED_IMAGE_MODELING",
        "CAUSAL_IMAGE_MODELING", "TABLE_RECOGNITION", "TEXT_RECOGNITION", "VIDEO_CLASSIFICATION",
        "BACKBONE", "IMAGE",
    ),
    "audio": (
        "SPEECH_SEQ_2_SEQ", "CTC", "RNNT", "TDT", "AUDIO_CLASSIFICATION", "TEXT_TO_WAVEFORM",
        "TEXT_TO_SPECTROGRAM", "AUDIO_FRAME_CLASSIFICATION", "AUDIO_XVECTOR", "AUDIO_TOKENIZATION",
    ),
    "multimodal": (
        "IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "VISUAL_QUESTION_ANSWERING", "RETRIEVAL",
        "DOCUMENT_QUESTION_ANSWERING", "ZERO_SHOT_IMAGE_CLASSIFICATION",
        "ZERO_SHOT_OBJECT_DETECTION",
    ),
}  # fmt: skip
_PICTURES = ("pixel_values", "pixel_values_videos", "images", "image")
_SOUNDS = ("input_values", "input_features", "audio_values", "audio_codes")


class Kind(Record):
    """A model type with a class that stands for it."""

    model_type: str
    cls: str
    families: tuple[str, ...] = ()
    """Those whose tables have it; empty where only the class itself can tell."""


def installed() -> list[Kind]:
    """Return every model type of the installed transformers with its class for each family.

    A class that stands for its type in several families is there once, and counts in all of them.
    """
    from transformers.models.auto import modeling_auto as tables

    found = []
    for model_type in sorted(tables.CONFIG_MAPPING_NAMES):
        classes: dict[str, tuple[str, ...]] = {}
        for family, names in TABLES.items():
            cls = next((c for name in names if (c := _class(tables, name, model_type))), "")
            if cls:
                classes[cls] = (*classes.get(cls, ()), family)
        if not classes and (base := _base(tables, model_type)):
            classes[base] = ()
        for cls, stands_for in classes.items():
            found.append(Kind(model_type=model_type, cls=cls, families=stands_for))
    return found


def class_of(tables: Any, names: Iterable[str], model_type: str) -> str:
    """Return the first class that these tables have for a type, else its base class."""
    found = (_class(tables, name, model_type) for name in names)
    return next(filter(None, found), "") or _base(tables, model_type)


def _class(tables: Any, name: str, model_type: str) -> str:
    cls = getattr(tables, f"MODEL_FOR_{name}_MAPPING_NAMES", {}).get(model_type, "")
    return str(cls[0] if isinstance(cls, (tuple, list)) else cls)


def _base(tables: Any, model_type: str) -> str:
    for name in ("MODEL_FOR_PRETRAINING_MAPPING_NAMES", "MODEL_MAPPING_NAMES"):
        cls = getattr(tables, name, {}).get(model_type, "")
        if cls:
            return cls[0] if isinstance(cls, (tuple, list)) else str(cls)
    return ""


def families(kind: Kind, cls: Any, config: Mapping[str, Any]) -> list[str]:
    """Return the families that a row counts in."""
    found = kind.families or (_by_itself(cls, config),)
    return [*found, "MoE"] if has_experts(config) else [*found]


def has_experts(config: Mapping[str, Any]) -> bool:
    """Tell whether some part of it chooses among experts."""
    return any(
        type(value) is int and value > 1 and kind_of(name) == "experts"
        for _, part in parts(config)
        for name, value in part.items()
    )


def _by_itself(cls: Any, config: Mapping[str, Any]) -> str:
    try:
        takes = set(inspect.signature(cls.forward).parameters)
        source = inspect.getsource(cls.forward)
    except (OSError, TypeError, AttributeError):
        return "other"
    main = getattr(cls, "main_input_name", "input_ids")
    pictures, sounds = takes & set(_PICTURES), takes & set(_SOUNDS)
    if "input_ids" in takes and (pictures or sounds):
        return "multimodal"
    if pictures or main in _PICTURES:
        return "vision"
    if sounds or main in _SOUNDS:
        return "audio"
    if "input_ids" not in takes:
        return "other"
    if config.get("is_encoder_decoder"):
        return "encoder-decoder"
    return "decoder" if "causal_mask" in source else "encoder"
