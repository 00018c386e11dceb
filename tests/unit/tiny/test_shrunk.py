from hypothesis import given
from hypothesis import strategies as st

from relaunch.tiny.models.build import Try
from relaunch.tiny.models.names import kind_of
from relaunch.tiny.models.repair import find, neighbours
from relaunch.tiny.models.shrunk import LEVELS, Change, applied, parts, sections, shrink

LLAMA = {
    "model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "max_position_embeddings": 2048, "bos_token_id": 1, "eos_token_id": [2, 31999],
    "rope_parameters": {"rope_type": "default", "mrope_section": [16, 24, 24]},
}  # fmt: skip


def small(config, level=LEVELS[0], ids=None):
    return applied(config, shrink(config, level, ids))


def test_a_decoder_becomes_small_and_stays_consistent():
    made = small(LLAMA)
    assert made["hidden_size"] == made["num_attention_heads"] * made["head_dim"] == 32
    assert made["num_attention_heads"] % made["num_key_value_heads"] == 0
    assert made["num_key_value_heads"] < made["num_attention_heads"]
    assert (made["num_hidden_layers"], made["vocab_size"]) == (2, 500)


def test_ids_that_are_too_big_move_into_the_vocabulary_and_stay_apart():
    config = {**LLAMA, "image_token_id": 31990, "video_token_id": 31991, "pad_token_id": 31990}
    made = small(config)
    assert made["image_token_id"] == made["pad_token_id"] != made["video_token_id"]
    named = [*made["eos_token_id"], made["image_token_id"], made["video_token_id"]]
    assert all(0 <= one < made["vocab_size"] for one in named)
    assert len(set(named)) == 4
    assert made["bos_token_id"] == 1


def test_ids_follow_a_tokenizer_that_was_shrunk_too():
    made = small(LLAMA, ids={1: 0, 2: 7, 31999: 9})
    assert (made["bos_token_id"], made["eos_token_id"]) == (0, [7, 9])


def test_sections_of_rotary_positions_stay_half_a_head():
    made = small(LLAMA)
    assert sum(made["rope_parameters"]["mrope_section"]) == made["head_dim"] // 2


@given(st.lists(st.integers(1, 200), min_size=1, max_size=5), st.integers(0, 50))
def test_sections_sum_up_and_none_is_empty(old, more):
    total = len(old) + more
    made = sections(old, total)
    assert (sum(made), len(made)) == (total, len(old))
    assert min(made) >= 1


def test_every_kind_of_layer_stays_and_lists_are_as_long_as_there_are_layers():
    types = ["linear", "linear", "linear", "full"] * 8
    dense = [at < 3 for at in range(32)]
    config = {**LLAMA, "layer_types": types, "is_dense": dense}
    made = small(config)
    assert made["num_hidden_layers"] == len(made["layer_types"]) == len(made["is_dense"])
    kept = set(zip(made["layer_types"], made["is_dense"], strict=True))
    assert kept == set(zip(types, dense, strict=True))


def test_a_table_by_layers_is_numbered_anew():
    table = {str(at): {"head_dim": 256} for at in range(5, 32, 6)}
    types = ["full" if str(at) in table else "sliding" for at in range(32)]
    made = small({**LLAMA, "layer_types": types, "per_layer_config": table})
    full = [str(at) for at, one in enumerate(made["layer_types"]) if one == "full"]
    assert list(made["per_layer_config"]) == full
    assert made["per_layer_config"][full[0]]["head_dim"] <= 16


def test_layers_that_are_taken_out_are_there_and_keep_their_order():
    config = {"num_hidden_layers": 24, "hidden_size": 1024, "out_indices": [6, 12, 18, 24]}
    made = small(config)
    assert made["out_indices"] == sorted(set(made["out_indices"]))
    assert max(made["out_indices"]) == made["num_hidden_layers"]


def test_stages_keep_doubling_and_heads_divide_them():
    config = {
        "embed_dim": 96, "depths": [2, 2, 6, 2], "num_heads": [3, 6, 12, 24], "image_size": 224,
        "patch_size": 4, "hidden_sizes": [96, 192, 384, 768],
    }  # fmt: skip
    made = small(config)
    assert made["hidden_sizes"] == [made["embed_dim"] * 2**at for at in range(4)]
    assert all(w % h == 0 for w, h in zip(made["hidden_sizes"], made["num_heads"], strict=True))


def test_experts_are_several_and_some_are_chosen():
    config = {
        **LLAMA,
        "n_routed_experts": 256,
        "num_experts_per_tok": 8,
        "n_group": 8,
        "topk_group": 4,
    }
    made = small(config)
    assert 1 < made["num_experts_per_tok"] < made["n_routed_experts"] <= 4
    chosen_from = made["topk_group"] * made["n_routed_experts"] // made["n_group"]
    assert chosen_from >= made["num_experts_per_tok"]


def test_tokens_of_an_image_follow_its_size():
    config = {"image_size": 336, "patch_size": 14, "image_seq_length": 576}
    made = small(config)
    assert made["image_seq_length"] == (made["image_size"] // made["patch_size"]) ** 2


def test_parts_are_shrunk_alike_so_that_they_fit_together():
    config = {"text_config": LLAMA, "vision_config": {"hidden_size": 1152, "out_hidden_size": 4096}}
    made = small(config)
    assert made["vision_config"]["out_hidden_size"] == made["text_config"]["hidden_size"]


@given(
    st.fixed_dictionaries(
        {
            "num_attention_heads": st.sampled_from([1, 2, 8, 12, 40]),
            "head": st.sampled_from([32, 64, 80, 128]),
            "num_hidden_layers": st.integers(1, 90),
            "vocab_size": st.integers(1000, 300_000),
        }
    )
)
def test_heads_always_divide_the_width(config):
    width = config["num_attention_heads"] * config.pop("head")
    for level in LEVELS:
        made = small({**config, "hidden_size": width}, level)
        assert made["hidden_size"] % made["num_attention_heads"] == 0
        assert made["hidden_size"] <= 32
        assert made["num_hidden_layers"] <= 2


def test_shrinking_changes_nothing_in_what_was_given():
    before = repr(LLAMA)
    small(LLAMA)
    assert repr(LLAMA) == before


def test_names_of_fields_tell_their_kinds():
    kinds = {
        "hidden_size": "width", "num_key_value_heads": "kv", "num_attention_heads": "heads",
        "head_dim": "headdim", "num_experts_per_tok": "top", "num_local_experts": "experts",
        "intermediate_size": "inner", "decoder_layers": "layers", "image_token_id": "id",
        "bos_token_id": "id", "vocab_size": "vocab", "kv_lora_rank": "rank", "rms_norm_eps": "",
        "rope_theta": "", "num_channels": "", "out_indices": "index", "patch_size": "patch",
    }  # fmt: skip
    assert {name: kind_of(name) for name in kinds} == kinds


def test_labels_are_no_layers_and_stay():
    config = {**LLAMA, "id2label": {"0": "no", "1": "yes"}, "label2id": {"no": 0, "yes": 1}}
    made = small(config)
    assert (made["id2label"], made["label2id"]) == (config["id2label"], config["label2id"])
    assert [path for path, _ in parts(config)] == [(), ("rope_parameters",)]


# --- repairs --------------------------------------------------------------------------------------


def test_the_first_repair_puts_the_number_that_the_complaint_names():
    changes = shrink({"hidden_dim": 2560, "num_hidden_layers": 12}, LEVELS[0])
    first = next(neighbours({}, changes, "running_mean should contain 128 elements not 32"))
    assert {one.name: one.new for one in first} == {"hidden_dim": 128, "num_hidden_layers": 2}


def test_what_a_configuration_leaves_open_is_filled_in_when_a_model_needs_it():
    config = {"vocab_size": None, "hidden_size": 32}
    first = next(neighbours(config, [], "TypeError: NoneType at pos 0"))
    assert first == [Change(path=("vocab_size",), old=None, new=500)]


def test_a_switch_is_turned_as_the_complaint_asks():
    config = {"is_decoder": False}
    first = next(neighbours(config, [], "make sure that `is_decoder=True`."))
    assert applied(config, first) == {"is_decoder": True}


def test_open_fields_with_the_same_first_word_are_filled_at_once():
    names = ("indexer_n_heads", "indexer_kv_heads", "indexer_head_dim", "indexer_budget")
    config = dict.fromkeys(names) | {"pad_token_id": None}
    first = next(neighbours(config, [], "unsupported operand type(s) for //: 'NoneType'"))
    made = applied(config, first)
    assert all(type(made[name]) is int for name in names)
    assert made["pad_token_id"] is None


def test_a_number_that_is_required_is_put_there():
    config = {"kv_heads": 2}
    first = next(neighbours(config, [], "ValueError: this model requires kv_heads=1."))
    assert applied(config, first) == {"kv_heads": 1}


def test_an_id_that_only_the_code_names_is_written_out_as_one_of_the_small_vocabulary():
    """Else all tokens were taken back: 34 MB for two ids that no configuration has."""
    changes = [Change(path=("boi_token_index",), old=255999, new=499)]
    said = "IndexError: index 10784 is out of bounds for dimension 0 with size 500"
    own = {"yes_token_index": 10784, "no_token_index": 3771, "pad_token_id": 0}
    first = next(neighbours({"pad_token_id": 0}, changes, said, own))
    made = {one.name: one.new for one in first}
    assert made == {"boi_token_index": 499, "yes_token_index": 498, "no_token_index": 497}


def test_widths_that_are_listed_need_no_multiplier_besides():
    config = {"block_configs": [[3, 32, 64, 2], [3, 64, 512, 1]], "scale": 0.75, "divisor": 16}
    made = small(config)
    widths = [one for block in made["block_configs"] for one in block[1:3]]
    assert made["scale"] == 1.0
    assert all(width % made["divisor"] == 0 for width in widths)


def test_coordinates_up_to_a_thousand_have_their_places():
    assert small({"max_2d_position_embeddings": 1024}) == {"max_2d_position_embeddings": 1024}


def test_a_missing_package_ends_the_search_at_once():
    said = "ImportError: X requires the timm library"
    found = find(LLAMA, lambda _: Try(stage="meta", error=said))
    assert found.tried.error == said
    assert found.tries <= len(LEVELS)
