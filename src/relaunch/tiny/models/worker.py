"""What is done in the user's Python: a tiny model from a configuration, or a cut one loaded again.

The answer is the last line of standard output, as JSON: what was found, `refused` with one line, or
that the disk is `full`.
"""

from __future__ import annotations

import difflib
import errno
import json
import os
import sys

from relaunch.tiny.models import build, repair, rows
from relaunch.tiny.models.kinds import TABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Refused(Exception):
    """One line for the person, and the command to type."""

    def __init__(self, line: str, hint: str = "") -> None:
        """Keep both."""
        super().__init__(line)
        self.hint = hint


def work(word: str, text: str) -> int:
    """Do one request and answer it."""
    request = json.loads(text)
    words: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "make": make, "load": load, "rows": _rows, "stamp": _stamp,
        "check-tokenizer": check_tokenizer,
    }  # fmt: skip
    try:
        answer = words[word](request)
    except Refused as refused:
        answer = {"refused": str(refused), "hint": refused.hint}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    return 0


def make(request: dict[str, Any]) -> dict[str, Any]:
    """Make a tiny model and save it."""
    import transformers

    config = _config(request)  # before torch is imported: what is refused is refused at once
    rows.quiet()
    cls = _class(request.get("class") or "", config)
    config = rows.fitting(cls, config)
    data = rows.plain(config)
    ids = {int(old): new for old, new in request.get("ids") or []} or None
    seed = int(request.get("seed") or 0)
    found = repair.find(
        data, lambda made: build.attempt(cls, type(config), made, seed), ids=ids,
        vocab=request.get("vocab"), is_vocab_fixed=bool(request.get("vocab_fixed")),
        seconds=float(request.get("seconds") or 120),
    )  # fmt: skip
    if found.tried.stage != "ok":
        raise Refused(
            f"{cls.__name__} cannot be made tiny: {found.tried.stage}: {found.tried.error[:300]}"
        )
    model = found.tried.model
    checks = build.check(model, found.tried.inputs, generates=True)
    out = request["out"]
    try:
        model.save_pretrained(out)
    except Exception as error:
        if not _is_full(error):
            raise
        return {"full": True}
    return {
        "class": cls.__name__, "type": data.get("model_type"), "bytes": found.tried.bytes,
        "parameters": sum(one.numel() for one in model.parameters()),
        "parameters_before": _before(cls, type(config), data),
        "changes": [[one.name, one.old, one.new] for one in found.changes],
        "over": build.largest(model) if found.tried.bytes > build.MOST_BYTES else [],
        "checks": checks, "tries": found.tries, "repaired": bool(found.first),
        "inputs": {n: list(getattr(v, "shape", ())) for n, v in found.tried.inputs.items()},
        "versions": {"transformers": transformers.__version__, "torch": _torch()},
    }  # fmt: skip


def _is_full(error: Exception) -> bool:
    """Tell whether there is no room; safetensors says so in words alone."""
    full = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return getattr(error, "errno", None) in full or any(
        f"(os error {one})" in str(error) for one in full
    )


def _torch() -> str:
    import torch

    return str(torch.__version__)


def _before(cls: Any, config_class: Any, data: dict[str, Any]) -> int | None:
    """Count the weights of the big one, which is built without memory."""
    import torch

    try:
        with torch.device("meta"):
            big = cls(build.config_from(config_class, data))
    except Exception:  # it is only told
        return None
    return int(sum(one.numel() for one in big.parameters()))


def _config(request: dict[str, Any]) -> Any:
    import transformers

    known = transformers.CONFIG_MAPPING
    path, word = request.get("config"), request.get("type")
    if not path:
        return _of_type(str(word))
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    word = data.get("model_type")
    if word not in known.keys():  # noqa: SIM118  # a lazy mapping without `in`
        if data.get("auto_map"):
            raise Refused(f"{path} needs code of its own (auto_map), which is not run")
        raise _unknown(str(word))
    try:
        config = known[word].from_dict(data)
    except Exception as error:
        raise Refused(f"{path}: {type(error).__name__}: {str(error)[:200]}") from None
    return config


def _of_type(word: str) -> Any:
    import transformers

    if word not in transformers.CONFIG_MAPPING.keys():  # noqa: SIM118
        raise _unknown(word)
    try:
        return rows.default(transformers.CONFIG_MAPPING[word])
    except Exception as error:
        raise Refused(f"`{word}` has no default configuration: {str(error)[:200]}") from None


def _unknown(word: str) -> Refused:
    import transformers

    names = list(transformers.CONFIG_MAPPING.keys())
    near = difflib.get_close_matches(word, names, 1)
    guess = f"; did you mean `{near[0]}`?" if near else ""
    version = transformers.__version__
    return Refused(
        f"transformers {version} has no model type `{word}`{guess}", "rl tiny model llama"
    )


def _class(named: str, config: Any) -> Any:
    """Return the class: the one named, the one in the configuration, else its first head."""
    import transformers
    from transformers.models.auto import modeling_auto as tables

    if named and not hasattr(transformers, named):
        raise Refused(f"transformers has no class `{named}`")
    for name in (named, *(getattr(config, "architectures", None) or [])):
        if name and hasattr(transformers, name):
            return getattr(transformers, name)
    from relaunch.tiny.models.kinds import class_of

    heads = ("decoder", "encoder-decoder", "multimodal", "encoder", "vision", "audio")
    order = [one for family in heads for one in TABLES[family]]
    name = class_of(tables, order, config.model_type)
    if not name:
        raise Refused(f"`{config.model_type}` has no model class of its own in transformers")
    return getattr(transformers, name)


def load(request: dict[str, Any]) -> dict[str, Any]:
    """Load a cut model, and call it."""
    import torch
    import transformers

    rows.quiet()
    folder = request["folder"]
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        data = json.load(file)
    config = _config({"config": os.path.join(folder, "config.json")})
    cls = _class("", config)
    model, info = cls.from_pretrained(folder, output_loading_info=True)
    missing = sorted(info["missing_keys"])
    model = model.float().eval()
    try:
        with torch.no_grad():
            build.called(model)
        told = "ok"
    except Exception as error:
        told = f"{type(error).__name__}: {error}"[:300]
    return {
        "class": cls.__name__, "type": data.get("model_type"), "missing": missing,
        "checks": {"load": "ok", "forward": told},
        "versions": {"transformers": transformers.__version__, "torch": _torch()},
    }  # fmt: skip


def _rows(request: dict[str, Any]) -> dict[str, Any]:
    rows.all_rows(
        request["file"], seconds=float(request["seconds"]), only=request.get("only") or [],
        failed=bool(request.get("failed")), jobs=int(request.get("jobs") or 1),
    )  # fmt: skip
    return {}


def _stamp(request: dict[str, Any]) -> dict[str, Any]:
    from relaunch.tiny.models import kinds

    names = [f"{one.model_type} {one.cls}" for one in kinds.installed()]
    return {"made_with": rows.stamp(), "installed": names}


def check_tokenizer(request: dict[str, Any]) -> dict[str, Any]:
    """Compare two tokenizers on texts: do they come back as from the first?"""
    import tokenizers

    old, new = (tokenizers.Tokenizer.from_file(request[name]) for name in ("old", "new"))
    for one in (old, new):
        one.no_padding()
        one.no_truncation()
    vocab = new.get_vocab()
    dense = sorted(vocab.values()) == list(range(len(vocab)))
    differ = []
    for text in request["texts"]:
        a, b = old.encode(text), new.encode(text)
        if old.decoder is None:  # it would only put blanks between tokens
            same_text = "".join(a.tokens) == "".join(b.tokens)
        else:
            same_text = old.decode(a.ids) == new.decode(b.ids)
        if not same_text:
            differ.append(text)
    sample = request.get("sample") or ""
    same = not sample or old.encode(sample).tokens == new.encode(sample).tokens
    return {
        "version": tokenizers.__version__, "size": len(vocab), "dense": dense, "differ": differ,
        "texts": len(request["texts"]), "sample_same": same,
    }  # fmt: skip
