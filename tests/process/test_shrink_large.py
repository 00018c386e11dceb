"""`rl shrink` of files that are too large to be read as a whole, with real programs."""

from __future__ import annotations

import json
import os
import sys

from tests.depth import takes_turns

PYTHON = sys.executable
LOAD = """\
import json, sys

def load(path):
    with open(path) as file:
        data = json.load(file)
    for one in data["annotations"]:
        if one["area"] is None:
            raise ValueError("no area")

load(sys.argv[1])
"""
COUNT = """\
import sys
if "bad" in open(sys.argv[1]).read():
    raise ValueError("bad")
"""


def write_coco(path, annotations, bad):
    """Write a document on one line, as COCO's are."""
    one = '{{"segmentation": [[{0}.5, 17.25, {0}, 40.0]], "area": {1}, "id": {0}, "text": "]}}"}}'
    with open(path, "w") as file:
        file.write('{"info": {"year": 2017}, "images": [')
        images = (f'{{"id": {number}, "file": "{number:012}.jpg"}}' for number in range(20_000))
        file.write(", ".join(images) + '], "annotations": [')
        file.write(", ".join(one.format(n, "null" if n == bad else n) for n in range(annotations)))
        file.write('], "categories": [{"id": 1, "name": "person"}]}')


@takes_turns
def test_one_bad_record_in_a_document_of_one_line_is_all_that_is_left(world):
    world.write("load.py", LOAD)
    path = world.project / "instances.json"
    write_coco(path, 500_000, 345_678)
    size = os.path.getsize(path)
    assert size > 42_000_000
    done = world.rl(
        "shrink", "--json", "instances.json", "--", PYTHON, "load.py", "instances.json", timeout=300
    )
    assert done.returncode == 0, done.stderr + done.stdout
    found = json.loads(done.stdout)
    small = (world.project / "instances.small.json").read_bytes()
    assert json.loads(small) == {"annotations": [{"area": None}]}
    assert os.path.getsize(path) == size
    print(f"{size:,} bytes: {found['attempts']} attempts in {found['seconds']:.1f} s")


def test_a_wrong_name_to_keep_in_a_large_file_is_refused_in_one_line(world):
    world.write("count.py", COUNT)
    write_coco(world.project / "a.json", 400_000, 7)
    with open(world.project / "a.yaml", "w") as file:
        file.writelines(f"- text: a line of it, number {number}\n" for number in range(1_000_000))
    for name, keep, said in (
        ("a.json", "anotations.*", "nothing is called so"),
        (
            "a.yaml",
            "*.text",
            "`a.yaml` is too large for its names to be read   try: --also 'grep -q text a.yaml'",
        ),
    ):
        assert os.path.getsize(world.project / name) > 1 << 25
        done = world.rl("shrink", name, "--keep", keep, "--", PYTHON, "count.py", name)
        assert done.returncode == 2
        assert f"--keep {keep}: {said}" in done.stderr
        assert done.stdout == ""


@takes_turns
def test_an_edit_of_a_large_file_is_seen_when_the_search_goes_on(world):
    world.write("load.py", LOAD)
    path = world.project / "instances.json"
    write_coco(path, 400_000, 345_678)
    words = ("instances.json", "--budget", "2", "--", PYTHON, "load.py", "instances.json")
    assert world.rl("shrink", *words).returncode in (0, 1)
    data = path.read_bytes()
    at = data.find(b'"id": 123456')
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(b'"id": 923456')
    done = world.rl("shrink", "--resume")
    assert done.returncode == 2
    assert "`instances.json` is another one since search/1" in done.stderr
