"""`rl tiny`: tiny data, a tiny model, a payload that stands out; each word is a module."""

from __future__ import annotations

from relaunch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from types import ModuleType

EXAMPLES = """\
Examples
  rl tiny data big.parquet --rows 100 --stratify label -o small.parquet
  rl tiny data big.jsonl --keep-failing -- python load.py {}
  rl tiny payload '(2,3) float32'
  rl tiny payload --like batch.pt --sentinel 0xDEADBEEF -o marked.pt
  rl tiny find 0xDEADBEEF core.bin
  rl tiny model llama -o tiny-llama
  rl tiny tokenizer checkpoints/base --vocab 500 -o tiny-tok

Each word has its own help: rl tiny data --help
"""
WORDS = {
    "data": "a small extract of a big data set",
    "payload": "arrays whose values tell who they are",
    "find": "where a sentinel lies: in files, cores, live processes",
    "model": "a model of the same kind, small enough to start at once",
    "tokenizer": "a tokenizer of the same kind with few words",
}
"""Each is the module `cli/tiny_WORD.py`, with EXAMPLES, arguments and main as a verb has them."""


def arguments(parser: ArgumentParser) -> None:
    """Declare each word with its options, for help, docs and completion."""
    import argparse

    below = parser.add_subparsers(dest="word", metavar="|".join(WORDS))
    for word, text in WORDS.items():
        one = below.add_parser(
            word,
            help=text,
            description=text,
            epilog=_module(word).EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        _module(word).arguments(one)


def main(args: Namespace) -> int:
    """Reached only without a word."""
    raise UsageError(f"which one: {', '.join(WORDS)}?", hint="rl tiny --help")


def quick(words: list[str]) -> int | None:
    """Run one word with a parser of its own; the help of all is argparse's."""
    from relaunch.cli.launch_options import nearest

    if not words or words[0] in ("-h", "--help"):
        return None
    word = words[0]
    if word not in WORDS:
        near = nearest(word, [*WORDS])
        guess = f"; did you mean `rl tiny {near}`?" if near else ""
        raise UsageError(f"no `rl tiny {word}`{guess}", hint="rl tiny --help")
    return _run(word, words[1:])


def _run(word: str, words: list[str]) -> int:
    from relaunch.cli.main import parsed

    module = _module(word)
    own, command = words, None
    if "--" in words:
        at = words.index("--")
        own, command = words[:at], words[at + 1 :]
    args = parsed(module, own, called=f"rl tiny {word}", about=WORDS[word])
    if isinstance(args, int):
        return args
    args.command = command
    return int(module.main(args))


def _module(word: str) -> ModuleType:
    from importlib import import_module

    return import_module(f"relaunch.cli.tiny_{word}")
