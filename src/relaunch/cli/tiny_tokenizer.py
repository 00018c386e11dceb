"""`rl tiny tokenizer`: the same kind of tokenizer with a few hundred tokens, numbered anew."""

from __future__ import annotations

import os

from relaunch.cli import draw
from relaunch.errors import RelaunchError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

EXAMPLES = """\
examples:
  rl tiny tokenizer checkpoints/base --vocab 500 -o tiny-tok
  rl tiny tokenizer base/tokenizer.json --text sample.txt -o tiny-tok
"""


def arguments(parser: ArgumentParser) -> None:
    """Declare what it is made from, and what stays."""
    parser.add_argument("source", metavar="DIR", help="a folder or its tokenizer.json")
    parser.add_argument("-o", "--out", metavar="DIR", required=True, help="the new folder")
    parser.add_argument("--vocab", metavar="N", default="", help="how many tokens (500)")
    parser.add_argument(
        "--text", metavar="FILE", default="", help="keep every token that this text uses"
    )
    parser.add_argument(
        "--python", metavar="FILE", default="", help="a Python with tokenizers, to compare both"
    )
    parser.add_argument("--json", action="store_true", help="as JSON: relaunch/tiny-tokenizer/1")


def main(args: Namespace) -> int:
    """Make it, and say what became of it."""
    from relaunch.cli.tiny_model import whole
    from relaunch.session.tiny_models import VOCAB, make_tokenizer

    size = whole("--vocab", args.vocab, 0, least=8) or (None if args.text else VOCAB)
    told = make_tokenizer(
        args.source, args.out, size, _text(args.text), args.python, os.environ, os.getcwd()
    )
    if args.json:
        draw.say_json("tiny-tokenizer", told)
    else:
        draw.say("\n".join(screen(told, size)) + "\n")
    checked = told["checked"] or {}
    return 1 if checked.get("differ") or checked.get("dense") is False else 0


def _text(path: str) -> str:
    if not path:
        return ""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        raise UsageError(
            f"no file `{path}`", hint="rl tiny tokenizer DIR --text FILE -o OUT"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise RelaunchError(f"{path} cannot be read as text: {error}") from None


def screen(told: dict[str, Any], size: int | None) -> list[str]:
    """Draw what was made and how it was compared."""
    lines = [f"{told['out']}  {told['kind']}, {told['before']:,} -> {told['size']:,} tokens"]
    pairs = []
    if size is not None and told["size"] > size:
        pairs.append(("more", f"{told['size']:,} must stay: specials, letters, what was asked for"))
    pairs.append(("files", ", ".join(told["files"])))
    if told["left"]:
        pairs.append(("left out", f"{', '.join(told['left'])}: tokenizer.json says it all"))
    checked = told["checked"]
    if not checked:
        pairs.append(("checked", "not compared: no Python with tokenizers was found"))
    else:
        good = checked["texts"] - len(checked["differ"])
        pairs.append(
            (
                "checked",
                f"{good} of {checked['texts']} texts come back as before "
                f"(tokenizers {checked['version']})",
            )
        )
        pairs += [("differs", draw.clean(repr(text))) for text in checked["differ"][:3]]
        if not checked["sample_same"]:
            pairs.append(("differs", "the sample text is cut into other tokens than before"))
    return [draw.clean(lines[0]), *draw.facts(pairs, draw.width(), draw.pen())]
