"""A folder's tokenizer made tiny, with all that speaks of its ids: configurations and templates."""

from __future__ import annotations

import json
import os

from relaunch.errors import RelaunchError, UsageError
from relaunch.record import Record
from relaunch.tiny.models.names import kind_of
from relaunch.tiny.models.shrunk import parts
from relaunch.tiny.tokenizers.shrink import shrink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from relaunch.tiny.tokenizers.shrink import Shrunk

CONFIGS = ("config.json", "generation_config.json")
_COPIED = ("special_tokens_map.json", "chat_template.jinja", "chat_template.json")
_UNREADABLE = (
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "vocab.txt",
    "merges.txt",
)


class Made(Record):
    """What was written, and what was not."""

    shrunk: Shrunk
    vocab: int
    """Ids in config.json: those of the tokenizer, and those that only the configuration has."""
    files: dict[str, str]
    """The text of each file, by its name."""
    left: list[str]
    """Files of the folder that speak of the old ids and were not taken along."""
    ids: dict[int, int]


def read_json(path: str) -> dict[str, Any]:
    """Return a file's JSON object, or say in one line what is wrong with it."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except FileNotFoundError:
        raise UsageError(f"{path} is not there") from None
    except OSError as error:
        raise RelaunchError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise RelaunchError(f"{path} is not whole JSON: {error}") from None
    if not isinstance(value, dict):
        raise RelaunchError(f"{path} holds no JSON object")
    return value


def tokenizer_file(source: str) -> str:
    """Return the tokenizer.json that a folder or a path means."""
    if not os.path.exists(source):
        raise UsageError(f"no file or folder `{source}`", hint="rl tiny tokenizer FOLDER -o OUT")
    if not os.path.isdir(source):
        return source
    path = os.path.join(source, "tokenizer.json")
    if os.path.exists(path):
        return path
    there = [name for name in _UNREADABLE if os.path.exists(os.path.join(source, name))]
    if not there:
        raise UsageError(f"{source} has no tokenizer.json", hint="rl tiny tokenizer FOLDER")
    line = "from transformers import AutoTokenizer as A; A.from_pretrained(D).save_pretrained(D)"
    raise UsageError(
        f"{source} has {there[0]} but no tokenizer.json, which transformers can write",
        hint=f'python -c "D={source!r}; {line}"',
    )


def make(source: str, size: int | None, text: str = "") -> Made:
    """Return the files of a tiny tokenizer from a folder or a tokenizer.json."""
    path = tokenizer_file(source)
    tokenizer = read_json(path)
    if not isinstance(tokenizer.get("model"), dict) or "vocab" not in tokenizer["model"]:
        raise RelaunchError(f"{path} is no tokenizer.json: it has no model with a vocabulary")
    folder = os.path.dirname(path) or "."
    beside = {name: _beside(folder, name) for name in (*CONFIGS, "tokenizer_config.json")}
    named = {at for name in CONFIGS if (one := beside[name]) for at in ids_of(one)}
    shrunk = shrink(tokenizer, size, text=text, also=named)
    ids = _all_ids(shrunk, named)
    vocab = max([shrunk.size - 1, *ids.values()]) + 1
    files = {"tokenizer.json": _text(shrunk.tokenizer)}
    for name in CONFIGS:
        if (config := beside[name]) is not None:
            files[name] = _text(with_ids(config, ids, vocab))
    if (config := beside["tokenizer_config.json"]) is not None:
        files["tokenizer_config.json"] = _text(_tokenizer_config(config, shrunk.ids))
    for name in _COPIED:
        if os.path.exists(os.path.join(folder, name)):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                files[name] = file.read()
    left = [name for name in _UNREADABLE if os.path.exists(os.path.join(folder, name))]
    return Made(shrunk=shrunk, vocab=vocab, files=files, left=left, ids=ids)


def _beside(folder: str, name: str) -> dict[str, Any] | None:
    path = os.path.join(folder, name)
    return read_json(path) if os.path.exists(path) else None


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _all_ids(shrunk: Shrunk, named: set[int]) -> dict[int, int]:
    """Return new ids for all that are named; those of no token come after the tokens'."""
    ids = dict(shrunk.ids)
    for old in sorted(named - set(ids)):
        ids[old] = shrunk.size + len(ids) - len(shrunk.ids)
    return ids


def ids_of(config: Mapping[str, Any]) -> set[int]:
    """Return the ids of tokens that a configuration names, its parts included."""
    found: set[int] = set()
    for _, part in parts(config):
        for name, value in part.items():
            if kind_of(name) == "id":
                values = value if isinstance(value, list) else [value]
                found |= {one for one in values if type(one) is int and one >= 0}
    return found


def with_ids(config: Mapping[str, Any], ids: Mapping[int, int], vocab: int) -> dict[str, Any]:
    """Return a configuration that speaks of the new ids."""
    made: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, dict) and name not in ("id2label", "label2id"):
            made[name] = with_ids(value, ids, vocab)
        elif kind_of(name) == "id" and isinstance(value, list):
            made[name] = [ids.get(one, one) if type(one) is int else one for one in value]
        elif kind_of(name) == "id" and type(value) is int:
            made[name] = ids.get(value, value)
        elif name in ("vocab_size", "decoder_vocab_size", "text_vocab_size") and value:
            made[name] = vocab
        else:
            made[name] = value
    return made


def _tokenizer_config(config: dict[str, Any], ids: Mapping[int, int]) -> dict[str, Any]:
    made = dict(config)
    decoder = config.get("added_tokens_decoder")
    if isinstance(decoder, dict):
        made["added_tokens_decoder"] = {
            str(ids[int(at)]): token for at, token in decoder.items() if int(at) in ids
        }
    return made
