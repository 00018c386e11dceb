"""Builds a model from plain data and tries it: forward, backward, generate, save and load.

Runs in the user's Python, beside torch and transformers.
"""

from __future__ import annotations

import copy
import os
import re
import tempfile
import warnings

from relaunch.record import Record
from relaunch.tiny.models import inputs
from relaunch.tiny.models.names import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

STAGES = ("config", "meta", "big", "build", "forward", "ok")
MOST_BYTES = 1_000_000
_MOST_PARAMETERS = 40_000_000
_FORWARD_TRIES = 14
_MOST_TOLD = 3
_LAYOUT = re.compile(r"unpack|[Ee]xpected \d+D|must be a \dD|unbatched|number of dims")


class Try(Record):
    """How far a configuration came."""

    stage: str
    error: str = ""
    model: Any = None
    config: Any = None
    inputs: Any = None
    bytes: int = 0

    @property
    def reached(self) -> int:
        """A number that grows with every stage."""
        return STAGES.index(self.stage)


def config_from(cls: Any, data: Mapping[str, Any]) -> Any:
    """Return the configuration object, derived fields computed anew."""
    config = cls.from_dict(_stated(cls, data))
    return config[0] if isinstance(config, tuple) else config


def _stated(cls: Any, data: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out numbers that the class computes from others."""
    import dataclasses

    if not dataclasses.is_dataclass(cls):
        return dict(copy.deepcopy(data))
    fields = {field.name for field in dataclasses.fields(cls)}
    fields |= set(getattr(cls, "attribute_map", {}) or {})
    made = {}
    for name, value in data.items():
        number = isinstance(value, (int, list)) and not isinstance(value, bool)
        computed = number and kind_of(name) not in ("", "id", "index") and name != "num_classes"
        if name not in fields and computed and not _settable(cls, name):
            continue
        if name in ("out_features", "stage_names") and data.get("out_indices") is not None:
            continue  # the names of what out_indices says by number
        made[name] = _stated_part(name, value)
    return made


def _settable(cls: Any, name: str) -> bool:
    """Tell whether a class hands a number on to its parts, so that it must be told."""
    return getattr(getattr(cls, name, None), "fset", None) is not None


def _stated_part(name: str, value: Any) -> Any:
    if not isinstance(value, dict) or "model_type" not in value:
        return copy.deepcopy(value)
    from transformers import CONFIG_MAPPING

    try:
        return _stated(CONFIG_MAPPING[value["model_type"]], value)
    except KeyError:
        return copy.deepcopy(value)


def attempt(cls: Any, config_class: Any, data: Mapping[str, Any], seed: int) -> Try:
    """Build a model and call it once; never raises for what the model does."""
    import torch

    try:
        config = config_from(config_class, data)
    except Exception as error:  # a configuration refuses in many ways
        return Try(stage="config", error=_said(error))
    try:
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = cls(copy.deepcopy(config))
        count = sum(one.numel() for one in model.parameters())
    except Exception as error:
        if not _only_meta(error):
            return Try(stage="meta", error=_said(error), config=config)
        count = 0
    if count > _MOST_PARAMETERS:
        return Try(
            stage="big", error=f"{count:,} parameters", config=config, bytes=count * 4, model=model
        )
    try:
        model = seeded(cls, config, seed)
    except Exception as error:
        return Try(stage="build", error=_said(error), config=config)
    size = bytes_of(model)
    try:
        with torch.no_grad():
            given = called(model)[0]
    except Exception as error:
        return Try(stage="forward", error=_said(error), config=config, model=model, bytes=size)
    return Try(stage="ok", config=config, model=model, inputs=given, bytes=size)


def _only_meta(error: Exception) -> bool:
    """Tell whether a model cannot be built without memory, whatever its numbers."""
    words = ("meta tensor", "Tensor.item() cannot be called", "meta device", "on device meta")
    return any(word in str(error) for word in (*words, "'meta'", "Cannot copy out of meta"))


def _said(error: Exception) -> str:
    text = re.sub(r"\s+", " ", str(error)).strip()
    return f"{type(error).__name__}: {text}"[:600]


def seeded(cls: Any, config: Any, seed: int) -> Any:
    """Return the model with weights that depend on the seed alone."""
    import torch

    torch.manual_seed(seed)
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)  # memory left as it was becomes nan
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = cls(copy.deepcopy(config)).float().eval()
    finally:
        torch.use_deterministic_algorithms(before)
    made = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for _, one in sorted([*model.named_parameters(), *model.named_buffers()]):
            if one.is_floating_point() and not one.isfinite().all() and one.isnan().any():
                fresh = torch.randn(one.shape, generator=made) * 0.02
                one.copy_(torch.where(one.isnan(), fresh.to(one.dtype), one))
    return model


def bytes_of(model: Any) -> int:
    """Return how many bytes the weights take, shared ones once."""
    seen: dict[int, int] = {}
    for one in model.state_dict().values():
        seen[one.data_ptr() or id(one)] = one.numel() * one.element_size()
    return sum(seen.values())


def largest(model: Any) -> list[list[Any]]:
    """Return name, shape and bytes of the biggest weights, for who wonders why it is no smaller."""
    found = [[name, list(one.shape), one.numel() * one.element_size()]
             for name, one in model.state_dict().items()]  # fmt: skip
    found.sort(key=lambda one: (-one[2], one[0]))
    least = found[0][2] / 10
    return [one for one in found[:_MOST_TOLD] if one[2] > least]


def called(model: Any) -> tuple[dict[str, Any], Any]:
    """Call a model with inputs that it takes; return them and what came out."""
    facts = inputs.Facts(model)
    names = inputs.first_names(model)
    layouts = inputs.first_layouts(names)
    first: Exception | None = None
    for _ in range(_FORWARD_TRIES):
        given = inputs.make(facts, names, layouts)
        try:
            return given, model(**copy.copy(given))
        except Exception as error:  # the model says in its own way what it wants
            more = inputs.wanted(str(error), facts, names)
            if "pixel_values" in names[1:] and "features and image tokens" in str(error):
                names.remove("pixel_values")  # it reads them only where the text has their tokens
                first = None
                continue
            if first is None or (_LAYOUT.search(str(first)) and not _LAYOUT.search(str(error))):
                first = error
            if more and len(names) < 8:
                names += more
                first = None
                continue
            if not _next_layout(facts, names, layouts):
                break
    assert first is not None
    raise first


def _next_layout(facts: inputs.Facts, names: list[str], layouts: dict[str, int]) -> bool:
    """Take the next layout of the first input that has one left."""
    for name in names:
        at = layouts.get(name, 0) + 1
        if at < inputs.layouts_of(facts, name):
            layouts[name] = at
            return True
        if inputs.layouts_of(facts, name) > 1:
            layouts[name] = 0
    return False


# --- is it a whole model? -------------------------------------------------------------------------


def check(model: Any, given: Mapping[str, Any], generates: bool) -> dict[str, str]:
    """Try what a person does with a model; each answer is `ok` or what went wrong."""
    told = {"forward": "ok"}
    steps: list[tuple[str, Callable[[], None]]] = [("backward", lambda: _backward(model, given))]
    if generates and can_generate(model):
        steps.append(("generate", lambda: _generate(model, given)))
    steps.append(("save and load", lambda: _reload(model, given)))
    for name, step in steps:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                step()
            told[name] = "ok"
        except Exception as error:
            told[name] = _said(error)[:300]
    return told


def can_generate(model: Any) -> bool:
    """Tell whether it makes text."""
    try:
        return bool(model.can_generate())
    except Exception:
        return False


def floats_of(value: Any) -> list[Any]:
    """Return the tensors of numbers in an output, in their order."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, dict):
        return [one for part in value.values() for one in floats_of(part)]
    if not isinstance(value, (list, tuple)):
        return []  # a cache, say
    return [one for part in value for one in floats_of(part)]


def _backward(model: Any, given: Mapping[str, Any]) -> None:
    import torch

    torch.manual_seed(0)
    model.train()
    try:
        out = [one for one in floats_of(model(**copy.copy(given))) if one.requires_grad]
        if not out:
            raise ValueError("no output depends on the weights")
        torch.stack([one.float().mean() for one in out]).sum().backward()
        if not any(one.grad is not None for one in model.parameters()):
            raise ValueError("no weight got a gradient")
    finally:
        model.eval()
        model.zero_grad(set_to_none=True)


def _generate(model: Any, given: Mapping[str, Any]) -> None:
    kept = {name: value for name, value in given.items() if name != "decoder_input_ids"}
    if set(kept) == {"input_ids"} and kept["input_ids"].dim() == 2:
        kept["input_ids"] = kept["input_ids"][:, :4]
    known = model.generation_config
    start = (
        known.decoder_start_token_id,
        known.bos_token_id,
        model.config.to_dict().get("bos_token_id"),
    )
    if getattr(model.config, "is_encoder_decoder", False) and start == (None, None, None):
        kept["decoder_start_token_id"] = 0  # a default configuration need not have one
    try:
        model.generate(**kept, max_new_tokens=3, do_sample=False)
    except ValueError as error:
        if "Input length of input_ids" not in str(error):
            raise
        kept["input_ids"] = kept["input_ids"][:, :4]  # it knows by itself how long texts become
        model.generate(**kept, max_new_tokens=3, do_sample=False)


def _reload(model: Any, given: Mapping[str, Any]) -> None:
    import torch

    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = type(model).from_pretrained(folder).float().eval()
        left, right = model.state_dict(), again.state_dict()
        for name, one in left.items():
            if name not in right or not torch.equal(one.nan_to_num(), right[name].nan_to_num()):
                raise ValueError(f"{name} is not what was saved")
        if not os.listdir(folder):
            raise ValueError("nothing was saved")
        with torch.no_grad():
            torch.manual_seed(0)
            before = floats_of(model(**copy.copy(given)))
            torch.manual_seed(0)
            after = floats_of(again(**copy.copy(given)))
        if not all(
            torch.allclose(a, b, atol=1e-4, equal_nan=True)
            for a, b in zip(before, after, strict=True)
        ):
            raise ValueError("the loaded model gives another result")
