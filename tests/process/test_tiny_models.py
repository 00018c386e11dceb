"""`rl tiny model` and `rl tiny tokenizer` in real processes, with torch and transformers."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import World
from tests.needs import missing

from relaunch.tiny.models import start
from relaunch.tiny.models.rows import passed, why

SAMPLE = [
    "llama LlamaForCausalLM", "mamba MambaForCausalLM", "bert BertForMaskedLM",
    "t5 T5ForConditionalGeneration", "mixtral MixtralForCausalLM",
    "deepseek_v3 DeepseekV3ForCausalLM", "vit ViTForImageClassification",
    "swin SwinForImageClassification",
    "resnet ResNetForImageClassification", "whisper WhisperForConditionalGeneration",
    "qwen2_vl Qwen2VLForConditionalGeneration", "gemma4_text Gemma4ForCausalLM",
]  # fmt: skip


@functools.cache
def _has(python: str) -> bool:
    line = "import torch, transformers, tokenizers"
    return subprocess.run([python, "-c", line], capture_output=True).returncode == 0


def python_with_transformers() -> str:
    python = os.environ.get("RELAUNCH_TORCH_PYTHON") or sys.executable
    if not _has(python):
        missing(f"this test needs torch and transformers, and {python} has none: make torch")
    return python


def ask(word: str, request: dict[str, object]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python_with_transformers(), start.__file__, word], input=json.dumps(request), text=True,
        capture_output=True, timeout=200,
    )  # fmt: skip


def test_architectures_of_every_family_become_tiny_and_do_all_that_a_model_does(tmp_path: Path):
    file = tmp_path / "rows.jsonl"
    done = ask("rows", {"file": str(file), "seconds": 60, "only": SAMPLE})
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert {f"{row['type']} {row['class']}": why(row) for row in rows if not passed(row)} == {}
    assert len(rows) == len(SAMPLE)
    found = {family for row in rows for family in row["families"]}
    assert found == {
        "decoder",
        "encoder",
        "encoder-decoder",
        "MoE",
        "vision",
        "audio",
        "multimodal",
    }
    assert all("generate" in row["checks"] for row in rows if "decoder" in row["families"])


MAKE = """
import sys, torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers, decoders
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast
t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
t.pre_tokenizer, t.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
text = open(sys.argv[2], encoding="utf-8").read().splitlines()
t.train_from_iterator(text, trainers.WordPieceTrainer(vocab_size=1500, special_tokens=specials))
t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
fast = PreTrainedTokenizerFast(
    tokenizer_object=t, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
    sep_token="[SEP]", mask_token="[MASK]", model_max_length=512,
)
fast.save_pretrained(sys.argv[1])
torch.manual_seed(1)
config = BertConfig(vocab_size=t.get_vocab_size(), hidden_size=48, num_hidden_layers=6,
                    num_attention_heads=4, intermediate_size=96)
BertForMaskedLM(config).save_pretrained(sys.argv[1])
"""


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of six layers and a WordPiece tokenizer, made by the libraries: a hub's snapshot."""
    hub = tmp_path_factory.mktemp("hub")
    folder = hub / "models--some--bert/snapshots/abc"
    subprocess.run(
        [python_with_transformers(), "-c", MAKE, str(folder), argument_text()], check=True,
        capture_output=True, timeout=200,
    )  # fmt: skip
    return folder


def argument_text() -> str:
    """A real text that every Python has."""
    import argparse

    return str(argparse.__file__)


LOAD = """
import sys, torch
from transformers import AutoModelForMaskedLM, AutoTokenizer
t, m = AutoTokenizer.from_pretrained(sys.argv[1]), AutoModelForMaskedLM.from_pretrained(sys.argv[1])
x = t(["def parse(args): return 1", "a"], return_tensors="pt", padding=True)
print(
    len(t), m.config.vocab_size, int(x["input_ids"].max()),
    t.decode(x["input_ids"][0], skip_special_tokens=True), len(m.bert.encoder.layer),
    tuple(m(**x).logits.shape)[-1], t.mask_token_id, t.model_max_length, sep="|",
)
"""


def test_a_folder_or_its_hub_id_becomes_tiny_with_its_tokenizer_and_the_same_bytes(
    world: World, big: Path
):
    python = python_with_transformers()
    for source, out in ((str(big), "one"), ("some/bert", "two")):
        done = world.rl(
            "tiny", "model", source, "-o", out, "--python", python, "--vocab", "300",
            env={"HF_HUB_CACHE": str(big.parents[2])}, timeout=200,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert "hidden_size" in done.stdout
    assert "48 -> 32" in done.stdout
    assert "WordPiece, 1,500 -> 300 tokens" in done.stdout
    one, two = (world.project / out for out in ("one", "two"))
    assert (one / "model.safetensors").read_bytes() == (two / "model.safetensors").read_bytes()
    assert (one / "model.safetensors").stat().st_size < 1_000_000
    told = subprocess.run(
        [python, "-c", LOAD, str(one)], capture_output=True, text=True, check=True
    )
    count, vocab, highest, text, layers, width, mask, longest = told.stdout.strip().split("|")
    assert (count, vocab, width, layers, longest) == ("300", "300", "300", "2", "128")
    assert int(highest) < 300
    assert int(mask) < 300
    assert text.replace(" ", "") == "defparse(args):return1"


def test_the_first_layers_keep_their_real_weights(world: World, big: Path):
    python = python_with_transformers()
    words = ("tiny", "model", str(big), "-o", "cut", "--layers", "2", "--python", python)
    done = world.rl(*words, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "num_hidden_layers  6 -> 2" in done.stdout
    script = """
import sys, torch
from transformers import AutoModelForMaskedLM as A
a, b = (A.from_pretrained(one).state_dict() for one in sys.argv[1:])
same = all(torch.equal(a[name], b[name]) for name in b)
print(len(b), same, any(".layer.2." in name for name in b))
"""
    told = subprocess.run(
        [python, "-c", script, str(big), str(world.project / "cut")], capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert told.stdout.split()[1:] == ["True", "False"]


TRAIN = """
import sys
from tokenizers import Tokenizer, decoders, models, normalizers, processors, trainers
from tokenizers import pre_tokenizers
text = open(sys.argv[1], encoding="utf-8").read().splitlines()
kind, out = sys.argv[2:]
specials = ["<s>", "</s>", "<unk>"]
if kind == "BPE":
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=1200, special_tokens=specials,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
elif kind == "Unigram":
    t = Tokenizer(models.Unigram())
    t.normalizer, t.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
    t.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=1200, special_tokens=specials, unk_token="<unk>")
elif kind == "WordPiece":
    t = Tokenizer(models.WordPiece(unk_token="<unk>"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer, t.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=1200, special_tokens=specials)
else:
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(vocab_size=1200, special_tokens=specials)
t.train_from_iterator(text, trainer)
named = [("<s>", 0), ("</s>", 1)]
t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=named)
t.save(out)
"""


@pytest.mark.parametrize("kind", ["BPE", "WordPiece", "Unigram", "WordLevel"])
def test_a_trained_tokenizer_of_each_kind_gives_texts_back_as_before(world: World, kind: str):
    python = python_with_transformers()
    world.write("big/.keep", "")
    big, sample = world.project / "big/tokenizer.json", world.write("sample.txt", "x = parse(args)")
    subprocess.run([python, "-c", TRAIN, argument_text(), kind, str(big)], check=True, timeout=100)
    checked = ("--python", python, "--json")
    done = world.rl("tiny", "tokenizer", "big", "--vocab", "350", "-o", "small", *checked)
    assert done.returncode == 0, done.stderr + done.stdout
    told = json.loads(done.stdout)
    assert (told["kind"], told["size"], told["checked"]["size"]) == (kind, 350, 350)
    assert told["checked"]["differ"] == []
    assert kind == "WordLevel" or told["checked"]["texts"] > 100
    done = world.rl("tiny", "tokenizer", str(big), "--text", str(sample), "-o", "used", *checked)
    assert json.loads(done.stdout)["checked"]["sample_same"] is True


# --- wrong words ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("model", "nowhere/at/all", "-o", "out"), "no file or folder `nowhere/at/all`"),
        (("model", "empty", "-o", "out"), "has no config.json"),
        (("model", "typeless", "-o", "out"), "has no model_type"),
        (("model", "torn/config.json", "-o", "out"), "is not whole JSON"),
        (("model", "some/hub-id", "-o", "out"), "not in the local cache"),
        (("model", "typeless", "-o", "empty/../typeless"), "has no model_type"),
        (("model", "llama", "-o", "typeless"), "is there already"),
        (("model", "llama", "--layers", "0", "-o", "out"), "a whole number from 1 on"),
        (("model", "llama", "--layers", "2", "-o", "out"), "no folder with weights"),
        (("model", "llama", "-o", "out", "--python", "sh"), "`sh` is no Python"),
        (("tokenizer", "nowhere", "-o", "out"), "no file or folder `nowhere`"),
        (("tokenizer", "typeless", "-o", "out"), "has no tokenizer.json"),
        (("tokenizer", "torn/config.json", "-o", "out"), "is not whole JSON"),
        (("tokenizer", "typeless/config.json", "-o", "out"), "is no tokenizer.json"),
        ((), "which one"),
    ],
)  # fmt: skip
def test_wrong_words_get_one_line_and_exit_code_two(
    world: World, words: tuple[str, ...], said: str
):
    world.write("empty/.keep", "")
    world.write("typeless/config.json", '{"hidden_size": 8}')
    world.write("torn/config.json", '{"model_type": "lla')
    done = world.rl("tiny", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (world.project / "out").exists()


def test_a_python_without_torch_is_one_line_with_the_command_to_type(world: World):
    bare = world.root / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    done = world.rl("tiny", "model", "llama", "-o", "out", "--python", str(bare / "bin/python"))
    assert done.returncode == 2
    assert "has no torch and transformers" in done.stderr
    assert "-m pip install torch transformers" in done.stderr


def test_an_unknown_type_is_answered_with_the_nearest(world: World):
    python = python_with_transformers()
    done = world.rl("tiny", "model", "lama", "-o", "out", "--python", python)
    assert done.returncode == 2
    assert "has no model type `lama`; did you mean `llama`?" in done.stderr
    assert len(done.stderr.splitlines()) == 1
