"""The laws of a tokenizer that was shrunk, on vocabularies made at random."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.errors import RelaunchError
from relaunch.tiny.tokenizers import folder
from relaunch.tiny.tokenizers.encode import best_path, joined, longest, merged
from relaunch.tiny.tokenizers.shrink import shrink
from relaunch.tiny.tokenizers.words import byte_letters, words

texts = st.text(string.ascii_lowercase[:6] + " ", min_size=1, max_size=40)
pieces = st.lists(st.text("abcdef", min_size=2, max_size=5), max_size=40, unique=True)


def specials(*names, start=0):
    return [
        {"id": start + at, "content": name, "special": True, "single_word": False, "lstrip": False,
         "rstrip": False, "normalized": False}
        for at, name in enumerate(names)
    ]  # fmt: skip


def bpe(tokens):
    """A BPE whose merges build each token from the left."""
    vocab = {"<s>": 0, "</s>": 1}
    for letter in byte_letters():
        vocab.setdefault(letter, len(vocab))
    merges = []
    for token in tokens:
        for end in range(2, len(token) + 1):
            if token[:end] not in vocab:
                vocab[token[:end]] = len(vocab)
                merges.append(f"{token[: end - 1]} {token[end - 1]}")
    named = {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}
    template = {"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": named}
    return {
        "added_tokens": specials("<s>", "</s>"), "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "post_processor": template, "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, "unk_token": None},
    }  # fmt: skip


def wordpiece(tokens):
    names = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", *"abcdef", *(f"##{one}" for one in "abcdef")]
    names += [one for token in tokens for one in (token, f"##{token}")]
    vocab = {name: at for at, name in enumerate(dict.fromkeys(names))}
    return {
        "added_tokens": [*specials("[PAD]"), *specials("[UNK]", "[CLS]", start=2)],
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "normalizer": None,
        "post_processor": {"type": "BertProcessing", "sep": ["[CLS]", 3], "cls": ["[CLS]", 3]},
        "model": {"type": "WordPiece", "vocab": vocab, "unk_token": "[UNK]",
                  "continuing_subword_prefix": "##"},
    }  # fmt: skip


def unigram(tokens):
    names = dict.fromkeys(
        ["<unk>", "\u2581", *"abcdef", *tokens, *(f"\u2581{one}" for one in tokens)]
    )
    vocab = [[name, 0.0 if name == "<unk>" else -float(at)] for at, name in enumerate(names)]
    return {
        "added_tokens": specials("<unk>"), "pre_tokenizer": {"type": "Metaspace"},
        "model": {"type": "Unigram", "vocab": vocab, "unk_id": 0},
    }  # fmt: skip


def cut(tokenizer, text):
    """The tokens of a text, by our own encoders."""
    model, found = tokenizer["model"], []
    for word in words(tokenizer, text):
        if model["type"] == "BPE":
            ranks = {tuple(one.split(" ")): at for at, one in enumerate(model["merges"])}
            found += merged(list(word), ranks)[0]
        elif model["type"] == "WordPiece":
            found += longest(word, model["vocab"], "##")
        else:
            found += best_path(word, dict(model["vocab"]), 10)
    return found


def ids(tokenizer):
    vocab = tokenizer["model"]["vocab"]
    known = {t: at for at, (t, _) in enumerate(vocab)} if isinstance(vocab, list) else dict(vocab)
    return known | {one["content"]: one["id"] for one in tokenizer["added_tokens"]}


every_kind = pytest.mark.parametrize("kind", [bpe, wordpiece, unigram])


@every_kind
@given(tokens=pieces, size=st.integers(8, 400))
def test_ids_are_dense_and_specials_stay(kind, tokens, size):
    old = kind(tokens)
    made = shrink(old, size)
    new = ids(made.tokenizer)
    assert sorted(new.values()) == list(range(made.size))
    assert {one["content"] for one in old["added_tokens"]} <= set(new)
    before = ids(old)
    assert made.ids == {before[token]: at for token, at in new.items()}


@every_kind
@given(tokens=pieces, size=st.integers(8, 400), text=texts)
def test_texts_of_kept_letters_come_back_as_before(kind, tokens, size, text):
    old = kind(tokens)
    made = shrink(old, size)
    marks = str.maketrans("", "", "#")
    before, after = ("".join(cut(one, text)).translate(marks) for one in (old, made.tokenizer))
    assert after == before


@every_kind
@given(tokens=pieces, text=texts)
def test_a_sample_text_is_cut_into_the_same_tokens(kind, tokens, text):
    old = kind(tokens)
    made = shrink(old, None, text=text)
    assert cut(made.tokenizer, text) == cut(old, text)


@given(tokens=pieces, size=st.integers(260, 300))
def test_merges_are_closed_and_bytes_stay_whole(tokens, size):
    model = shrink(bpe(tokens), size).tokenizer["model"]
    assert set(byte_letters()) <= set(model["vocab"])
    for one in model["merges"]:
        left, right = one.split(" ")
        assert {left, right, joined((left, right), "")} <= set(model["vocab"])


def test_the_post_processor_is_numbered_anew():
    made = shrink(wordpiece(["abc"]), 15).tokenizer
    at = made["model"]["vocab"]["[CLS]"]
    assert made["post_processor"] == {
        "type": "BertProcessing",
        "sep": ["[CLS]", at],
        "cls": ["[CLS]", at],
    }
    assert "[unused0]" not in made["model"]["vocab"]


def test_tokens_that_a_configuration_names_stay():
    old = wordpiece([f"{a}{b}" for a in "abcdef" for b in "abcdef"])
    last = max(old["model"]["vocab"].values())
    made = shrink(old, 8, also=[last])
    token = next(t for t, at in old["model"]["vocab"].items() if at == last)
    assert made.ids[last] == made.tokenizer["model"]["vocab"][token]


def test_another_kind_of_tokenizer_is_refused_in_one_line():
    with pytest.raises(RelaunchError, match="of kind `Magic` cannot be shrunk"):
        shrink({"model": {"type": "Magic", "vocab": {}}}, 10)


def test_files_beside_speak_of_the_new_ids(tmp_path):
    old = wordpiece(["abc", "def"])
    vocab = old["model"]["vocab"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(old))
    config = {
        "vocab_size": 999,
        "pad_token_id": 0,
        "eos_token_id": vocab["def"],
        "image_token_id": 998,
    }
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "x", "text_config": config}))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [vocab["def"]]}))
    decoder = {"0": {"content": "[PAD]"}, "2": {"content": "[UNK]"}, "1": {"content": "[unused0]"}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": decoder}))
    made = folder.make(str(tmp_path), 15)
    new = ids(made.shrunk.tokenizer)
    told = json.loads(made.files["config.json"])["text_config"]
    assert told["eos_token_id"] == new["def"]
    assert told["image_token_id"] == made.shrunk.size  # of no token: after them
    assert told["vocab_size"] == made.vocab == made.shrunk.size + 1
    assert json.loads(made.files["generation_config.json"])["eos_token_id"] == [new["def"]]
    kept = json.loads(made.files["tokenizer_config.json"])["added_tokens_decoder"]
    assert {one["content"]: int(at) for at, one in kept.items()} == {
        "[PAD]": new["[PAD]"], "[UNK]": new["[UNK]"],
    }  # fmt: skip
