from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import random
import tempfile
import tomllib
from xml.etree import ElementTree

import pytest
import zstandard
from tests.small import shrink

from relaunch.search.shrink import large
from relaunch.search.shrink.document import Document
from relaunch.search.shrink.formats import choose, folder
from relaunch.search.shrink.formats.words import Environment, Words
from relaunch.search.shrink.packed import Packed

LINES = b"".join(b'{"id": %d, "text": "some text"}\n' % number for number in range(3000))


def through_a_file(folder, fails):
    """Tell by what is written, as a program would; the file is new each time."""
    count = 0

    def written(model):
        nonlocal count
        count += 1
        path = folder / f"attempt{count}"
        model.write(str(path))
        try:
            return fails(path)
        finally:
            path.unlink()

    return written


@pytest.fixture
def small_limit(monkeypatch):
    """What is large begins at 8 kB: the same code, without gigabytes."""
    for module in (large, choose):
        monkeypatch.setattr(module, "SMALL", 8192)
    monkeypatch.setattr(large, "_FINEST", 64)


def test_what_is_read_is_never_touched(tmp_path):
    path = tmp_path / "data.json"
    path.write_bytes(LINES)
    os.utime(path, (1, 1))
    model = choose.read(str(path))
    fails = through_a_file(tmp_path, lambda file: b'"id": 77,' in file.read_bytes())
    search = shrink(model, fails)
    assert search.best["it"].data == b'{"id": 77,"":0}'
    assert (path.read_bytes(), path.stat().st_mtime) == (LINES, 1)
    assert sorted(os.listdir(tmp_path)) == ["data.json"]


@pytest.mark.parametrize("packer", [gzip, bz2, lzma])
def test_a_compressed_file_is_written_compressed_again(tmp_path, packer):
    path = tmp_path / "data.jsonl.packed"
    path.write_bytes(packer.compress(LINES))
    fails = through_a_file(tmp_path, lambda file: b"2345" in packer.decompress(file.read_bytes()))
    best = shrink(choose.read(str(path)), fails).best["it"]
    best.write(str(tmp_path / "small"))
    assert packer.decompress((tmp_path / "small").read_bytes()) == b"2345"


def test_the_same_content_is_the_same_compressed_file(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(LINES))
    model = choose.read(str(path))
    for name in ("one", "two"):
        model.write(str(tmp_path / name))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("needed", [[7], [2999], [1, 1501], [10, 700, 2300]])
def test_a_large_file_is_cut_by_ranges_at_newlines(tmp_path, needed):
    path = tmp_path / "data.jsonl"
    path.write_bytes(LINES)
    model = choose.read(str(path))
    assert isinstance(model, large.Large)
    read = 0

    def fails(file):
        nonlocal read
        data = file.read_bytes()
        read += len(data)
        for line in data.splitlines():
            json.loads(line)
        return all(b'"id": %d,' % number in data for number in needed)

    search = shrink(model, through_a_file(tmp_path, fails))
    assert len(search.best["it"].data.splitlines()) == len(needed)
    assert path.read_bytes() == LINES
    print(f"{len(needed)} needed: {search.tried} attempts, read {read / len(LINES):.1f} times")
    assert read <= (4 + 8 * len(needed)) * len(LINES)


@pytest.mark.usefixtures("small_limit")
def test_several_workers_come_to_the_same_in_a_large_file(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_bytes(LINES)
    fails = through_a_file(tmp_path, lambda file: b'"id": 1234,' in file.read_bytes())
    one = shrink(choose.read(str(path)), fails)
    three = shrink(choose.read(str(path)), fails, workers=3)
    resumed = shrink(choose.read(str(path)), fails, known=one.known)
    assert one.best["it"].key == three.best["it"].key == resumed.best["it"].key
    assert resumed.tried == 0


@pytest.mark.usefixtures("small_limit")
def test_a_large_table_keeps_the_names_of_its_columns(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b"id,name\n" + b"".join(b"%d,n%d\n" % (one, one) for one in range(3000)))

    def fails(file):
        first, *rest = file.read_bytes().splitlines()
        return b"id" in first and any(line.split(b",")[0] == b"2000" for line in rest)

    best = shrink(choose.read(str(path)), through_a_file(tmp_path, fails)).best["it"]
    assert best.data == b"id\n2000"


@pytest.mark.usefixtures("small_limit")
def test_a_large_file_without_lines_is_cut_as_bytes(tmp_path):
    path = tmp_path / "one.line"
    path.write_bytes(b"x" * 50_000 + b"NEEDED" + b"y" * 30_000)
    model = choose.read(str(path))
    assert getattr(model, "how", "") == "as bytes: no newline in the first megabyte"
    fails = through_a_file(tmp_path, lambda file: b"NEEDED" in file.read_bytes())
    assert shrink(model, fails).best["it"].data == b"NEEDED"


@pytest.mark.usefixtures("small_limit")
def test_a_large_compressed_file_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    path = tmp_path / "data.jsonl.gz"
    path.write_bytes(gzip.compress(LINES))
    fails = through_a_file(tmp_path, lambda file: b"2345" in gzip.decompress(file.read_bytes()))
    search = shrink(choose.read(str(path)), fails)
    assert search.best["it"].inner.data == b"2345"
    assert os.listdir(tmp_path / "temp") == []  # not even now: a kill leaves nothing either


def zst(data):
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def test_a_zst_file_of_several_frames_is_read_to_its_end(tmp_path):
    path = tmp_path / "data.jsonl.zst"
    path.write_bytes(b"".join(map(zst, LINES.splitlines(keepends=True))))
    model = choose.read(str(path))
    assert isinstance(model, Packed)
    assert isinstance(model.inner, Document)
    assert model.inner.data == LINES


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, lzma.compress, zst], ids=["gz", "bz2", "xz", "zst"]
)
@pytest.mark.parametrize("is_large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_compressed_file_that_is_cut_or_damaged_is_bytes(
    tmp_path, pack, is_large, damage, monkeypatch
):
    if is_large:
        monkeypatch.setattr(choose, "SMALL", 100)
        monkeypatch.setattr(large, "SMALL", 100)
    data = bytearray(pack(random.Random(5).randbytes(9000)))
    if damage == "cut":
        del data[len(data) // 2 :]
    else:
        data[len(data) // 2] ^= 0xFF
        data[-6] ^= 0xFF
    path = tmp_path / "folder" / "data.packed"
    path.parent.mkdir()
    path.write_bytes(data)
    model = choose.read(str(path))
    inner = folder.read(str(path.parent)).model_of("data.packed")
    for one in (model, inner):
        assert getattr(one, "how", "") == "it is cut or damaged: as bytes"
        assert one is not None
        assert one.bytes == len(data)


def test_an_option_goes_with_its_value():
    words = ["run", "--size", "10", "-v", "--lr=0.1", "--offset", "-5", "--", "--raw", "x"]
    assert Words(words).units == [
        (0, 1), (1, 3), (3, 4), (4, 5), (5, 7), (7, 8), (8, 9), (9, 10),
    ]  # fmt: skip


def test_sixty_eight_options_are_three_after_few_attempts():
    words = [f"--option{number}=v{number}" for number in range(68)]
    needed = {"--option10", "--option35", "--option63"}
    sizes = []

    def fails(model):
        found = needed <= {word.partition("=")[0] for word in model.words}
        sizes.append(len(model.words) if found else 68)
        return found

    search = shrink(Words(words), fails)
    assert search.best["it"].words == ("--option10=", "--option35=", "--option63=")
    print(f"options: 3 after {sizes.index(3) + 1}, done after {search.tried} attempts")
    assert sizes.index(3) < 40


def test_words_to_keep_stay():
    words = Words(["--model", "big", "--size=3", "file"], keep=["model", "file"])
    assert shrink(words, lambda model: True).best["it"].words == ("--model", "big", "file")


def test_variables_go_and_what_stays_is_made_plain():
    variables = {f"VAR{number}": f"value {number}" for number in range(30)}
    search = shrink(
        Environment({**variables, "PATH": "/bin"}, keep=["PATH"]),
        lambda model: "7" in model.variables.get("VAR7", ""),
    )
    assert search.best["it"].variables == {"PATH": "/bin", "VAR7": "7"}


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("newline", [b"\n", b""], ids=["lines", "one line"])
@pytest.mark.parametrize(
    ("name", "first", "row", "last", "needed"),
    [
        (
            "rows.xml",
            b"<?xml version='1.0'?>|<rows>|",
            b"<row id='%d'>|<name>n%d</name>|<v>1</v>|</row>|",
            b"</rows>",
            b"<name>n777</name>",
        ),
        ("rows.toml", b"", b"[[rows]]\nid = %d\nname = 'n%d'\n", b"", b"[[rows]]\nname='n777'"),
    ],
    ids=["xml", "toml"],
)
def test_a_large_text_with_structure_is_cut_at_lines_or_tags(
    tmp_path, name, first, row, last, needed, newline
):
    rows = b"".join(row % (number, number) for number in range(1500))
    path = tmp_path / name
    path.write_bytes((first + rows + last).replace(b"|", newline))

    def fails(file):
        try:
            if name.endswith(".toml"):
                found = tomllib.loads(file.read_text())["rows"]
                return any(one.get("name") == "n777" for one in found)
            found = ElementTree.parse(file).iter("name")
            return any(one.text == "n777" for one in found)
        except (ValueError, KeyError, AttributeError, ElementTree.ParseError):
            return False

    model = choose.read(str(path))
    assert isinstance(model, large.Large)
    search = shrink(model, through_a_file(tmp_path, fails), most=150)
    assert search.best["it"].data == needed
