"""Tiny models and tokenizers, from request to folder: which source, which Python, what came."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import tempfile

from relaunch.errors import PlaceError, RelaunchError, UsageError
from relaunch.proc.capture import capture
from relaunch.record import Record
from relaunch.tiny.data.files import disk_full, is_full
from relaunch.tiny.models import cut
from relaunch.tiny.models.shrunk import applied
from relaunch.tiny.tokenizers import folder as tokenizer_folder
from relaunch.tiny.tokenizers.folder import read_json
from relaunch.trial.place.interpreter import find_start, project_python

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from relaunch.tiny.tokenizers.folder import Made

VOCAB = 500
_START = os.path.join(os.path.dirname(tokenizer_folder.__file__), "..", "models", "start.py")
_TEXTS = ("Hello world, this is a test! 123 + 456 = 579", "def f(x):\n    return {'a': [1, 2]}\n",
          "   leading and  double  spaces", "tabs\tand\nnewlines")  # fmt: skip
_TAKEN = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
          "chat_template.jinja", "vocab.txt", "vocab.json", "merges.txt", "tokenizer.model",
          "spiece.model",
          "added_tokens.json", "generation_config.json", "preprocessor_config.json")  # fmt: skip


class ModelRequest(Record):
    """What was asked for."""

    source: str
    out: str
    layers: int = 0
    vocab: int = VOCAB
    seed: int = 0
    cls: str = ""
    python: str = ""


class Source(Record):
    """What a word meant: a folder or a file that is there, or a model type."""

    config: str = ""
    folder: str = ""
    model_type: str = ""


# --- what a word means ----------------------------------------------------------------------------


def resolve(word: str, env: Mapping[str, str]) -> Source:
    """Return what is meant: a folder, a config.json, a model of the local cache, a model type."""
    if os.path.isdir(word):
        return _of_folder(word)
    if os.path.isfile(word):
        _checked(word)
        return Source(config=word, folder=os.path.dirname(word) or ".")
    if word.endswith(".json") or word.startswith((".", "/", "~")) or word.count("/") > 1:
        raise UsageError(f"no file or folder `{word}`", hint="rl tiny model FOLDER -o OUT")
    if "/" not in word:
        return Source(model_type=word)
    cached = _cached(word, env)
    if not cached:
        raise UsageError(
            f"`{word}` is no folder here and not in the local cache; its small files suffice",
            hint=f"hf download {word} --include '*.json'",
        )
    return _of_folder(cached)


def _of_folder(folder: str) -> Source:
    path = os.path.join(folder, "config.json")
    if not os.path.exists(path):
        raise UsageError(f"{folder} has no config.json", hint="rl tiny model llama -o OUT")
    _checked(path)
    return Source(config=path, folder=folder)


def _checked(path: str) -> None:
    if not isinstance(read_json(path).get("model_type"), str):
        raise RelaunchError(
            f"{path} has no model_type, so its architecture is not known",
            hint="rl tiny model llama -o OUT",
        )


def _cached(word: str, env: Mapping[str, str]) -> str:
    """Return the newest snapshot of a hub's model in the local cache, if it has a configuration."""
    home = env.get("HF_HOME") or os.path.join(
        env.get("XDG_CACHE_HOME") or os.path.join(env.get("HOME", ""), ".cache"), "huggingface"
    )
    cache = env.get("HF_HUB_CACHE") or env.get("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")
    model = os.path.join(cache, "models--" + word.replace("/", "--"))
    try:
        with open(os.path.join(model, "refs", "main"), encoding="utf-8") as file:
            names = [file.read().strip()]
    except OSError:
        names = []
    snapshots = os.path.join(model, "snapshots")
    try:
        names += sorted(
            os.listdir(snapshots), key=lambda n: -os.stat(os.path.join(snapshots, n)).st_mtime
        )
    except OSError:
        pass
    found = (os.path.join(snapshots, name) for name in names)
    return next((one for one in found if os.path.exists(os.path.join(one, "config.json"))), "")


# --- which Python ---------------------------------------------------------------------------------


def python_with(packages: tuple[str, ...], named: str, env: Mapping[str, str], cwd: str) -> str:
    """Return a Python that has these packages, as its files say; nothing when there is none."""
    words = [named] if named else [project_python(env, cwd, ""), sys.executable]
    for word in filter(None, words):
        start = find_start((word, "-c", ""), env, cwd)
        if start is None:
            if named:
                raise UsageError(
                    f"`{named}` is no Python", hint="rl tiny model --python .venv/bin/python"
                )
            continue
        sites = start.python.site_packages
        if all(any(os.path.isdir(os.path.join(s, p)) for s in sites) for p in packages):
            return start.python.executable
    return ""


def _needs(named: str, env: Mapping[str, str], cwd: str) -> str:
    found = python_with(("torch", "transformers"), named, env, cwd)
    if found:
        return found
    word = named or project_python(env, cwd, "") or sys.executable
    raise UsageError(
        f"`{word}` has no torch and transformers; another one is named by --python",
        hint=f"{word} -m pip install torch transformers",
    )


def ask(python: str, word: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Do one piece of work in the user's Python."""
    done = capture((python, os.path.normpath(_START), word), data=json.dumps(request).encode())
    lines = done.text.strip().splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        told = done.err.decode("utf-8", "replace").strip().splitlines()
        raise RelaunchError(
            f"{python} ended with {done.code}: {told[-1] if told else 'no word'}",
            hint=f"{python} -c 'import torch, transformers'",
        )
    if answer.get("full"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if "refused" in answer:
        raise RelaunchError(answer["refused"], hint=answer.get("hint") or "")
    return answer


# --- models ---------------------------------------------------------------------------------------


def make_model(request: ModelRequest, env: Mapping[str, str], cwd: str) -> dict[str, Any]:
    """Write a tiny model, or the first layers of a real one, into a new folder."""
    source = resolve(request.source, env)
    check_out(request.out)
    if request.layers:
        return _cut_model(request, source, env, cwd)
    python = _needs(request.python, env, cwd)
    made = _tokenizer_of(source, request.vocab)
    asked = {
        "config": source.config, "type": source.model_type, "class": request.cls,
        "seed": request.seed, "vocab": made.vocab if made else request.vocab,
        "vocab_fixed": made is not None or request.vocab != VOCAB,
        "ids": list(made.ids.items()) if made else [],
    }  # fmt: skip

    def work(folder: str) -> dict[str, Any]:
        told = ask(python, "make", {**asked, "out": folder})
        told["python"] = python
        told["tokenizer"] = None
        if made is not None:
            _write_tokenizer(made, folder)
            told["tokenizer"] = tokenizer_told(made)
        return told

    return {**_into(request.out, work), "out": request.out}


def _tokenizer_of(source: Source, vocab: int) -> Made | None:
    if not source.folder or not os.path.exists(os.path.join(source.folder, "tokenizer.json")):
        return None
    return tokenizer_folder.make(source.folder, vocab)


def _write_tokenizer(made: Made, folder: str) -> None:
    """Add the tokenizer's files; the model's own configuration stays as it was saved."""
    longest = _positions(read_json(os.path.join(folder, "config.json")))
    for name, text in made.files.items():
        if name == "config.json":
            continue
        if name in ("tokenizer.json", "tokenizer_config.json") and longest:
            text = _no_longer(json.loads(text), longest)
        _write(os.path.join(folder, name), text)


def _positions(config: Mapping[str, Any]) -> int:
    """Return how long a text the tiny model takes; 0 when it does not say."""
    part = config.get("text_config") if isinstance(config.get("text_config"), dict) else config
    found = [part.get(name) for name in ("max_position_embeddings", "n_positions")] if part else []
    return next((one for one in found if type(one) is int), 0)


def _no_longer(told: dict[str, Any], longest: int) -> str:
    """Return a tokenizer's file with no text longer than the tiny model takes."""
    for part, name in ((told, "model_max_length"), (told.get("truncation"), "max_length")):
        if isinstance(part, dict) and isinstance(part.get(name), int):
            part[name] = min(part[name], longest)
    fixed = (told.get("padding") or {}).get("strategy")
    if isinstance(fixed, dict) and isinstance(fixed.get("Fixed"), int):
        fixed["Fixed"] = min(fixed["Fixed"], longest)
    return json.dumps(told, ensure_ascii=False, indent=2) + "\n"


def _cut_model(
    request: ModelRequest, source: Source, env: Mapping[str, str], cwd: str
) -> dict[str, Any]:
    if source.model_type:
        raise UsageError(
            f"--layers keeps real weights, and `{source.model_type}` is no folder with weights",
            hint=f"rl tiny model FOLDER --layers {request.layers} -o {request.out}",
        )
    config = read_json(source.config)
    found = cut.tensors(source.folder)
    places = {p: n for p, n in cut.stacks(found, config).items() if n > request.layers}
    if not places:
        raise UsageError(
            f"{source.folder} has no stack of more than {request.layers} layers",
            hint=f"rl tiny model {request.source} --layers 1 -o {request.out}",
        )
    stay = cut.kept(found, places, request.layers)
    changes = cut.fewer(config, set(places.values()), request.layers)
    python = python_with(("torch", "transformers"), request.python, env, cwd)

    def work(folder: str) -> dict[str, Any]:
        size = cut.write(os.path.join(folder, "model.safetensors"), stay)
        text = json.dumps(applied(config, changes), indent=2) + "\n"
        _write(os.path.join(folder, "config.json"), text)
        for name in _TAKEN:
            if os.path.exists(os.path.join(source.folder, name)):
                shutil.copyfile(os.path.join(source.folder, name), os.path.join(folder, name))
        told: dict[str, Any] = {"bytes": size, "kept": len(stay), "dropped": len(found) - len(stay)}
        told["bytes_before"] = sum(one.end - one.begin for one in found)
        told["changes"] = [[one.name, one.old, one.new] for one in changes]
        told["type"] = config.get("model_type")
        if python:
            told.update(ask(python, "load", {"folder": folder}))
        return told

    return {**_into(request.out, work), "out": request.out}


# --- tokenizers -----------------------------------------------------------------------------------


def make_tokenizer(
    source: str,
    out: str,
    size: int | None,
    text: str,
    python: str,
    env: Mapping[str, str],
    cwd: str,
) -> dict[str, Any]:
    """Write a tiny tokenizer into a new folder, and compare it with the first where that can be."""
    path = tokenizer_folder.tokenizer_file(source)
    check_out(out)
    made = tokenizer_folder.make(source, size, text)
    found = python_with(("tokenizers",), python, env, cwd)

    def work(folder: str) -> dict[str, Any]:
        for name, content in made.files.items():
            _write(os.path.join(folder, name), content)
        told = tokenizer_told(made)
        told["checked"] = None
        if found:
            new = os.path.join(folder, "tokenizer.json")
            texts = _texts(made.shrunk.letters)
            asked = {"old": path, "new": new, "texts": texts, "sample": text}
            told["checked"] = ask(found, "check-tokenizer", asked)
        return told

    return {**_into(out, work), "out": out}


def _texts(letters: str) -> list[str]:
    """Return texts of letters that were kept: sentences, and every letter after every tenth."""
    known = set(letters)
    texts = ["".join(one for one in text if one in known) for text in _TEXTS]
    texts += [f"{one}{two}{one}" for one in letters for two in letters[::10]]
    return [text for text in texts if text]


def tokenizer_told(made: Made) -> dict[str, Any]:
    """Return what is said about a tokenizer that was shrunk."""
    return {
        "kind": made.shrunk.kind, "before": made.shrunk.before, "size": made.shrunk.size,
        "vocab": made.vocab, "letters": len(made.shrunk.letters), "files": sorted(made.files),
        "left": made.left,
    }  # fmt: skip


# --- folders --------------------------------------------------------------------------------------


def check_out(out: str) -> None:
    """Refuse to write over anything."""
    if os.path.lexists(out) and not (os.path.isdir(out) and not os.listdir(out)):
        raise UsageError(f"{out} is there already", hint=f"rl tiny ... -o {out}-2")
    above = os.path.dirname(os.path.abspath(out))
    if not os.path.isdir(above):
        raise UsageError(f"{above} is no folder", hint=f"mkdir -p {above}")


def _into(out: str, work: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Let work fill a folder beside, and put it in place when it is whole."""
    above = os.path.dirname(os.path.abspath(out))
    try:
        folder = tempfile.mkdtemp(prefix=".tiny-", dir=above)
    except OSError as error:
        raise PlaceError(f"{above} cannot be written: {error.strerror}") from None
    try:
        told = work(folder)
        os.chmod(folder, 0o755)
        os.replace(folder, out)
    except OSError as error:
        if is_full(error):
            raise disk_full(out, error) from None
        raise PlaceError(f"{out} cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return told


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
