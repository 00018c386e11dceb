"""`rl tiny model` and `rl tiny tokenizer` in real processes, with torch and transformers."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.conftest import World, made_once
from tests.depth import takes_turns
from tests.needs import python_with_transformers

from relaunch.cli.tiny_model import screen
from relaunch.tiny.models import start
from relaunch.tiny.models.rows import passed, why

SAMPLE = [
    "llama LlamaForCausalLM", "mamba MambaForCausalLM", "bert BertForMaskedLM",
    "t5 T5ForConditionalGeneration", "mixtral MixtralForCausalLM",
    "deepseek_v3 DeepseekV3ForCausalLM", "vit ViTForImageClassification",
    "swin SwinForImageClassification",
    "resnet ResNetForImageClassification", "whisper WhisperForConditionalGeneration",
    "qwen2_vl Qwen2VLForConditionalGeneration", "gemma4_text Gemma4ForCausalLM",
    "shieldgemma2 ShieldGemma2ForImageClassification",
]  # fmt: skip


def ask(word: str, request: dict[str, object]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python_with_transformers(), start.__file__, word], input=json.dumps(request), text=True,
        capture_output=True, timeout=300,
    )  # fmt: skip


@takes_turns
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


def argument_text() -> str:
    """A real text that every Python has."""
    import argparse

    return str(argparse.__file__)


# What tiny models do when they are loaded; in one process, for that takes long to begin.
LOAD = """
import json, sys, torch
from transformers import AutoModelForMaskedLM, AutoTokenizer
big, tiny, cut = sys.argv[1:]
t, m = AutoTokenizer.from_pretrained(tiny), AutoModelForMaskedLM.from_pretrained(tiny)
x = t(["def parse(args): return 1", "a"], return_tensors="pt", padding=True)
a, b = (AutoModelForMaskedLM.from_pretrained(one).state_dict() for one in (big, cut))
print(json.dumps({
    "tokens": len(t), "vocab": m.config.vocab_size, "highest": int(x["input_ids"].max()),
    "text": t.decode(x["input_ids"][0], skip_special_tokens=True),
    "layers": len(m.bert.encoder.layer), "width": tuple(m(**x).logits.shape)[-1],
    "mask": t.mask_token_id, "longest": t.model_max_length,
    "cut is as it was": all(torch.equal(a[name], b[name]) for name in b),
    "cut has a third layer": any(".layer.2." in name for name in b),
}))
"""


class Tiny(NamedTuple):
    """Tiny models of one big one, what was said of each, and what they do."""

    folder: Path
    said: dict[str, str]
    seen: dict[str, Any]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """A big model made tiny by its folder, by its hub id, and by its first layers alone."""
    folder = made_once(tmp_path_factory, "tiny-models", make_tiny)
    said, seen = json.loads((folder / "told.json").read_text())
    return Tiny(folder / "project", said, seen)


def make_tiny(folder: Path) -> None:
    """Make a BERT of six layers and a WordPiece tokenizer: a hub's snapshot; then tiny ones."""
    world, python = World(folder), python_with_transformers()
    big = folder / "hub/models--some--bert/snapshots/abc"
    subprocess.run([python, "-c", MAKE, str(big), argument_text()], check=True, capture_output=True)
    made = {
        "one": (str(big), "--vocab", "300"),
        "two": ("some/bert", "--vocab", "300"),
        "cut": (str(big), "--layers", "2"),
    }
    said = {}
    for name, words in made.items():
        done = world.rl(
            "tiny", "model", *words, "-o", name, "--python", python,
            env={"HF_HUB_CACHE": str(big.parents[2])}, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said[name] = done.stdout
    folders = (big, world.project / "one", world.project / "cut")
    looked = subprocess.run(
        [python, "-c", LOAD, *map(str, folders)], capture_output=True, text=True, check=True
    )
    (folder / "told.json").write_text(json.dumps([said, json.loads(looked.stdout)]))


def test_a_folder_or_its_hub_id_becomes_tiny_with_its_tokenizer_and_the_same_bytes(tiny: Tiny):
    assert "hidden_size" in tiny.said["two"]
    assert "48 -> 32" in tiny.said["two"]
    assert "WordPiece, 1,500 -> 300 tokens" in tiny.said["two"]
    one, two = (tiny.folder / name / "model.safetensors" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert one.stat().st_size < 1_000_000
    seen = tiny.seen
    assert (seen["tokens"], seen["vocab"], seen["width"]) == (300, 300, 300)
    assert (seen["layers"], seen["longest"]) == (2, 128)
    assert seen["highest"] < 300
    assert seen["mask"] < 300
    assert seen["text"].replace(" ", "") == "defparse(args):return1"


def test_the_first_layers_keep_their_real_weights(tiny: Tiny):
    assert "num_hidden_layers  6 -> 2" in tiny.said["cut"]
    assert tiny.seen["cut is as it was"]
    assert not tiny.seen["cut has a third layer"]


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
    subprocess.run([python, "-c", TRAIN, argument_text(), kind, str(big)], check=True, timeout=300)
    checked = ("--python", python, "--json")
    done = world.rl("tiny", "tokenizer", "big", "--vocab", "350", "-o", "small", *checked)
    assert done.returncode == 0, done.stderr + done.stdout
    told = json.loads(done.stdout)
    assert (told["kind"], told["size"], told["checked"]["size"]) == (kind, 350, 350)
    assert told["checked"]["differ"] == []
    assert kind == "WordLevel" or told["checked"]["texts"] > 100
    done = world.rl("tiny", "tokenizer", str(big), "--text", str(sample), "-o", "used", *checked)
    assert json.loads(done.stdout)["checked"]["sample_same"] is True


# --- what is no tiny model ------------------------------------------------------------------------


@takes_turns
def test_a_model_that_stays_over_a_megabyte_is_told_with_what_is_big(world: World):
    python = python_with_transformers()
    done = world.rl("tiny", "model", "llama", "--vocab", "20000", "-o", "out", "--python", python,
                    "--json", timeout=200)  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["bytes"] > 1_000_000
    assert {name for name, _, _ in told["over"]} == {"lm_head.weight", "model.embed_tokens.weight"}
    assert {shape[0] for _, shape, _ in told["over"]} == {20000}, "as many tokens as were asked for"
    lines = [line for line in screen(told) if line.startswith("over 1 MB")]
    assert ["could not be made smaller: lm_head.weight (20000, " in line for line in lines] == [
        True
    ]


@takes_turns
def test_what_a_tiny_model_refuses_to_do_is_told_and_not_a_success(world: World):
    world.write("big/config.json", '{"model_type": "llama", "attention_dropout": 2.0}')
    python = python_with_transformers()
    done = world.rl("tiny", "model", "big", "-o", "out", "--python", python)
    assert done.returncode == 1, done.stderr
    assert "refused  backward: RuntimeError: dropout probability" in done.stdout
    assert "checked  forward, generate, save and load" in done.stdout
    assert "over 1 MB" not in done.stdout


@takes_turns
def test_a_configuration_that_no_numbers_help_is_one_line_and_leaves_nothing(world: World):
    world.write("big/config.json", '{"model_type": "llama", "hidden_act": "nonsense"}')
    python = python_with_transformers()
    done = world.rl("tiny", "model", "big", "-o", "out", "--python", python)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rl: LlamaForCausalLM cannot be made tiny: meta: KeyError: ")
    assert len(done.stderr.splitlines()) == 1
    assert {path.name for path in world.project.iterdir()} == {".git", "README.md", "big"}


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


@takes_turns
def test_an_unknown_type_is_answered_with_the_nearest(world: World):
    python = python_with_transformers()
    done = world.rl("tiny", "model", "lama", "-o", "out", "--python", python)
    assert done.returncode == 2
    assert "has no model type `lama`; did you mean `llama`?" in done.stderr
    assert len(done.stderr.splitlines()) == 1
