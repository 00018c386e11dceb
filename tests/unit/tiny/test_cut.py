import json

import pytest

from relaunch.errors import RelaunchError
from relaunch.tiny.models import cut
from relaunch.tiny.models.shrunk import applied

CONFIG = {"num_hidden_layers": 3, "layer_types": ["a", "b", "a"], "num_local_experts": 3}
LAYERS = [f"model.layers.{at}.experts.{e}.w" for at in range(3) for e in range(3)]
NAMES = ["model.embed.weight", *LAYERS, "lm_head.weight"]


def put(path, names, seed=0):
    """A safetensors file with four bytes for each name."""
    told = {
        name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * at, 4 * at + 4]}
        for at, name in enumerate(names)
    }
    head = json.dumps({"__metadata__": {"format": "pt"}, **told}).encode()
    data = b"".join((seed + at).to_bytes(4, "little") for at in range(len(names)))
    path.write_bytes(len(head).to_bytes(8, "little") + head + data)


def values(path):
    return {
        one.name: int.from_bytes(path.read_bytes()[one.begin : one.end], "little")
        for one in cut.header(str(path))
    }


def test_the_first_layers_keep_their_bytes_and_all_else_stays(tmp_path):
    put(tmp_path / "model.safetensors", NAMES)
    before = values(tmp_path / "model.safetensors")
    found = cut.tensors(str(tmp_path))
    places = cut.stacks(found, CONFIG)
    assert places == {"model.layers.": 3}
    cut.write(str(tmp_path / "out"), cut.kept(found, places, 2))
    after = values(tmp_path / "out")
    assert after == {name: before[name] for name in NAMES if ".2.experts" not in name}


def test_shards_become_one_file(tmp_path):
    put(tmp_path / "a.safetensors", NAMES[:4])
    put(tmp_path / "b.safetensors", NAMES[4:], seed=100)
    index = {name: "a.safetensors" if name in NAMES[:4] else "b.safetensors" for name in NAMES}
    text = json.dumps({"weight_map": index})
    (tmp_path / "model.safetensors.index.json").write_text(text)
    found = cut.tensors(str(tmp_path))
    cut.write(str(tmp_path / "out"), cut.kept(found, {"model.layers.": 3}, 1))
    assert values(tmp_path / "out")["lm_head.weight"] == 100 + len(NAMES) - 5
    assert len(values(tmp_path / "out")) == 5


def test_the_configuration_tells_of_the_layers_that_stay():
    assert applied(CONFIG, cut.fewer(CONFIG, {3}, 2)) == {
        "num_hidden_layers": 2, "layer_types": ["a", "b"], "num_local_experts": 3,
    }  # fmt: skip


@pytest.mark.parametrize("size", [0, 7, 20, 300])
def test_a_file_that_ends_early_is_one_line(tmp_path, size):
    put(tmp_path / "model.safetensors", NAMES)
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(whole[:size])
    with pytest.raises(RelaunchError, match="no whole safetensors file"):
        cut.tensors(str(tmp_path))
