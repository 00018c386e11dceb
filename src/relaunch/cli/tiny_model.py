"""`rl tiny model`: the same architecture in a megabyte, or the first layers with real weights."""

from __future__ import annotations

import os

from relaunch.cli import draw
from relaunch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

EXAMPLES = """\
examples:
  rl tiny model llama -o tiny-llama              an installed model type
  rl tiny model checkpoints/base -o tiny         its config, with its tokenizer
  rl tiny model meta-llama/Llama-3 -o tiny       a model of the local hub cache
  rl tiny model checkpoints/base --layers 2 -o two    real weights of two layers
"""


def arguments(parser: ArgumentParser) -> None:
    """Declare what it is made from, and how."""
    parser.add_argument("source", metavar="MODEL", help="folder, config.json, hub id or model type")
    parser.add_argument("-o", "--out", metavar="DIR", required=True, help="the new folder")
    parser.add_argument(
        "--layers", metavar="N", default="", help="keep the real weights of the first N layers"
    )
    parser.add_argument("--vocab", metavar="N", default="", help="how many tokens (500)")
    parser.add_argument("--seed", metavar="N", default="0", help="same seed, same bytes (0)")
    parser.add_argument("--class", dest="cls", metavar="NAME", default="", help="the model class")
    parser.add_argument(
        "--python", metavar="FILE", default="", help="a Python with torch and transformers"
    )
    parser.add_argument("--json", action="store_true", help="as JSON: relaunch/tiny-model/1")


def main(args: Namespace) -> int:
    """Make it, and say what was changed."""
    from relaunch.session.tiny_models import VOCAB, ModelRequest, make_model

    request = ModelRequest(
        source=args.source, out=args.out, layers=whole("--layers", args.layers, 0),
        vocab=whole("--vocab", args.vocab, VOCAB, least=8), cls=args.cls, python=args.python,
        seed=whole("--seed", args.seed, 0, least=0),
    )  # fmt: skip
    told = make_model(request, os.environ, os.getcwd())
    if args.json:
        draw.say_json("tiny-model", told)
    else:
        draw.say("\n".join(screen(told)) + "\n")
    return 0 if all(one == "ok" for one in (told.get("checks") or {}).values()) else 1


def whole(option: str, text: str, default: int, *, least: int = 1) -> int:
    """Read a whole number from an option."""
    if not text:
        return default
    if not text.isdecimal() or int(text) < least:
        raise UsageError(
            f"{option} {text}: a whole number from {least} on", hint=f"{option} {least}"
        )
    return int(text)


def screen(told: dict[str, Any]) -> list[str]:
    """Draw what was made, what was changed, and what was checked."""
    lines = [
        f"{told['out']}  {told.get('class') or told.get('type')}, "
        f"{draw.size(told['bytes'])}{_was(told)}"
    ]
    names = [one[0] for one in told["changes"]]
    wide = max(map(draw.columns_of, names), default=0)
    for name, old, new in told["changes"]:
        was, now = _difference(old, new)
        lines.append(draw.clean(f"  {draw.pad(name, wide)}  {was} -> {now}"))
    pairs = []
    if "kept" in told:
        pairs.append(
            ("weights", f"{told['kept']} tensors kept as they are, {told['dropped']} left out")
        )
    if told.get("missing"):
        pairs.append(("missing", ", ".join(told["missing"][:4])))
    tokenizer = told.get("tokenizer")
    if tokenizer:
        pairs.append(
            (
                "tokenizer",
                f"{tokenizer['kind']}, {tokenizer['before']:,} -> {tokenizer['size']:,} tokens",
            )
        )
    if told.get("over"):
        pairs.append(("over 1 MB", f"could not be made smaller: {_largest(told['over'])}"))
    pairs += _checked(told)
    return [*lines, *draw.facts(pairs, draw.width(), draw.pen())]


def _largest(weights: list[list[Any]]) -> str:
    named = (f"{name} ({', '.join(map(str, shape))}) {draw.size(size)}"
             for name, shape, size in weights)  # fmt: skip
    return draw.clean(", ".join(named))


def _was(told: dict[str, Any]) -> str:
    if told.get("parameters_before"):
        return f" ({told['parameters']:,} parameters of {told['parameters_before']:,})"
    if told.get("bytes_before"):
        return f" of {draw.size(told['bytes_before'])}"
    return ""


def _checked(told: dict[str, Any]) -> list[tuple[str, str]]:
    checks = told.get("checks")
    if not checks:
        return [("checked", "not loaded: no Python with torch and transformers was found")]
    good = [name for name, one in checks.items() if one == "ok"]
    versions = told.get("versions") or {}
    with_ = f" (transformers {versions.get('transformers')}, torch {versions.get('torch')})"
    pairs = [("checked", ", ".join(good) + with_)]
    pairs += [
        ("refused", draw.clean(f"{name}: {one}")) for name, one in checks.items() if one != "ok"
    ]
    return pairs


def _difference(old: Any, new: Any) -> tuple[str, str]:
    """Show two values; of two tables only what differs."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        old, new = ({key: one.get(key) for key in keys} for one in (old, new))
    return _shown(old), _shown(new)


def _shown(value: Any) -> str:
    if isinstance(value, list) and len(value) > 4:
        return f"[{', '.join(map(str, value[:2]))}, ... {len(value)}]"
    if isinstance(value, dict):
        text = ", ".join(f"{name} {_shown(one)}" for name, one in list(value.items())[:3])
        return text + (f", ... {len(value)}" if len(value) > 3 else "")
    return str(value)
