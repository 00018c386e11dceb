"""What is written in YAML, TOML, XML, CSV, settings: it stays valid, and becomes small."""

from __future__ import annotations

import argparse
import configparser
import csv
import io
import tomllib
from html.parser import HTMLParser
from xml.etree import ElementTree
from zlib import crc32

import pytest
import yaml  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples
from tests.small import shrink

from relaunch.search.shrink.document import Document
from relaunch.search.shrink.formats.choose import read_bytes
from relaunch.search.shrink.formats.lines import part_spans
from relaunch.search.shrink.formats.yamlfile import Yaml

TEXTS = st.text(alphabet="ab c:#-'\"[]{}&*,1\n", max_size=8)
PLAIN = st.none() | st.booleans() | st.integers(-999, 999) | TEXTS
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(alphabet="abc", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)
MAPS = st.dictionaries(st.text(alphabet="xyz", min_size=1, max_size=3), VALUES, max_size=4)


def small(text, name, fails, valid, **options):
    """Shrink text by its format; each accepted step is read by a strict reader."""
    model = read_bytes(text.encode(), name, **options)
    search = shrink(
        model, lambda one: fails(one.data.decode()), each=lambda one: valid(one.data.decode())
    )
    return search.best["it"].data.decode(), search


def is_yaml(text):
    """Tell whether it is not taken as lines, of which nothing is promised."""
    return isinstance(read_bytes(text.encode(), "a.yaml").grammar, Yaml)


def by_dice(seed):
    """A failure at random: it leads into corners that no real one would."""
    return lambda text: crc32(f"{seed}{text}".encode()) % 3 == 0


@examples(80)
@given(MAPS, st.sampled_from([False, None, True]), st.integers(0, 1 << 16))
def test_yaml_stays_yaml_at_each_step(value, style, seed):
    text = yaml.safe_dump(value, default_flow_style=style)
    if is_yaml(text):
        small(text, "a.yaml", by_dice(seed), yaml.safe_load)


@pytest.mark.parametrize("more", ["", "y: 1\n"])
def test_a_quoted_text_that_ends_in_what_looks_like_a_comment_is_cut_by_lines(more):
    assert not is_yaml(f"x: '\n\n  #'\n{more}")


@examples(40)
@given(MAPS, st.sampled_from([False, None]))
def test_of_yaml_only_the_needed_key_is_left(value, style):
    value = {**value, "model": {"layers": [{"size": 64, "kind": "x"}, "y"], "rest": value}}
    text = yaml.safe_dump(value, default_flow_style=style)

    def fails(text):
        try:
            return "size" in yaml.safe_load(text)["model"]["layers"][0]
        except (KeyError, TypeError, IndexError):
            return False

    if is_yaml(text):
        best, _ = small(text, "a.yaml", fails, yaml.safe_load)
        assert len(best) <= len("model:\n  layers:\n  - size: 0\n    ")


YAML = """\
# a training run
defaults: &base
  lr: 0.001   # quite low
  steps: 1000
run:
  <<: *base
  name: "first try"
  notes: |
    several
    lines
  data: {path: /tmp/x, split: [train, test]}
  hooks:
  - a
  - name: b
    when:
      - start
      - end
"""


@pytest.mark.parametrize(
    ("path", "least"),
    [
        (("run", "hooks"), "run:\n  hooks:\n"),
        (("run", "lr"), "d: &base\n  lr: 0\nrun: *base\n"),
        (("run", "data", "path"), "run:\n  data: {path: 0}\n"),
        (("defaults", "steps"), "defaults:\n  steps: 0\n"),
    ],
)
def test_a_configuration_of_yaml_is_cut_to_one_key(path, least):
    def fails(text):
        value = yaml.safe_load(text)
        for name in path:
            if not isinstance(value, dict) or name not in value:
                return False
            value = value[name]
        return True

    best, search = small(YAML, "a.yaml", fails, yaml.safe_load)
    assert best == least
    assert search.tried <= 60


def test_an_anchor_stays_as_long_as_it_is_needed():
    best, _ = small(YAML, "a.yaml", lambda text: "*base" in text, yaml.safe_load)
    assert "&base" in best


TOML = """\
# build
[project]
name = "demo"  # the name
version = "1.0"
dependencies = [
    "numpy>=1",
    "torch",  # big
]

[tool.x]
size = 1_000
when = 2020-01-01
inner = { a = 1, b = [1, 2, 3] }

[[tool.y]]
text = '''
long
'''
[[tool.y]]
text = "z"
"""


@pytest.mark.parametrize(
    ("path", "least"),
    [
        (("project", "dependencies"), "[project]\ndependencies=0"),
        (("tool", "x", "inner", "b"), "[tool.x]\ninner={b=0}"),
        (("tool", "y"), "[[tool.y]]"),
    ],
)
def test_toml_is_cut_to_one_key_and_stays_toml(path, least):
    def fails(text):
        value = tomllib.loads(text)
        for name in path:
            if not isinstance(value, dict) or name not in value:
                return False
            value = value[name]
        return True

    best, search = small(TOML, "a.toml", fails, tomllib.loads)
    assert len(best) <= len(least)
    assert search.tried <= 150


@examples(30)
@given(st.integers(0, 1 << 16))
def test_toml_stays_toml_at_each_step(seed):
    small(TOML, "a.toml", by_dice(seed), tomllib.loads)


XML = """\
<?xml version="1.0"?>
<!-- a list -->
<catalog xmlns:x="http://x">
  <book id="1" lang="en"><title>One &amp; two</title><price>10</price></book>
  <book id="2"><title>Three</title><x:note/></book>
</catalog>
"""


def test_xml_is_cut_to_the_element_that_matters():
    def fails(text):
        return any(
            "Three" in (one.text or "") for one in ElementTree.fromstring(text).iter("title")
        )

    best, _ = small(XML, "a.xml", fails, ElementTree.fromstring)
    assert best == "<title>Three</title>"


@examples(30)
@given(st.integers(0, 1 << 16))
def test_xml_stays_well_formed_at_each_step(seed):
    small(XML, "a.xml", by_dice(seed), ElementTree.fromstring)


def test_html_with_open_ends_is_cut_to_what_matters():
    text = "<!DOCTYPE html><html><body><p>one<p>two<br><script>if (a<b) x()</script><ul><li>z</ul>"

    def fails(text):
        class Seen(HTMLParser):
            scripts = ""

            def handle_data(self, data):
                if self.cdata_elem == "script":
                    self.scripts += data

        seen = Seen()
        seen.feed(text)
        seen.close()
        return "a<b" in seen.scripts

    best, _ = small(text, "a.html", fails, str)
    assert best in ("<script>a<b", "<script>a<b</script>")


def rows(text):
    return list(csv.reader(io.StringIO(text)))


CSV = "id,name,note,score\n" + "".join(
    f'{number},"n,{number}","line\nbreak ""q""",{number / 4}\n' for number in range(200)
)


def test_a_table_loses_rows_then_columns_then_what_is_in_cells():
    def fails(text):
        found = rows(text)
        if len({len(row) for row in found}) > 1 or "score" not in found[0]:
            return False
        return any(row[found[0].index("score")] == "31.25" for row in found[1:])

    best, search = small(CSV, "a.csv", fails, rows)
    assert best == "score\n31.25"
    assert search.tried <= 120


def test_no_step_leaves_a_table_with_rows_of_different_lengths():
    def valid(text):
        assert len({len(row) for row in rows(text)}) <= 1

    small(CSV[:400].rpartition("\n")[0].rpartition("\n")[0] + "\n", "a.csv", by_dice(5), valid)


def test_settings_lose_sections_then_names():
    text = "; top\n[a]\nx = 1\ny = 2\n\n[b]\nlong = one\n  two\nport: 8080\n"
    best, _ = small(text, "a.ini", lambda text: "[b]" in text and "port" in text, str)
    assert best == "[b]\nport:"


def test_sections_get_short_names_and_settings_lose_their_blanks():
    def fails(text):
        found = configparser.ConfigParser()
        try:
            found.read_string(text)
            return any(found.getint(one, "workers") > 4 for one in found.sections())
        except (ValueError, configparser.Error):
            return False

    text = "[first]\nx = 1\n\n[section41]\n  name = a b\nworkers  =  8 \nbatch = 3\n"
    best, search = small(text, "a.ini", fails, str)
    assert best == "[s]\nworkers=5"
    assert search.tried <= 40


def test_a_table_loses_what_newlines_can_do_without():
    text = "a,b\r\n" + "".join(f"{one},x\r\n" for one in range(40))
    best, _ = small(text, "a.csv", lambda text: "31" in text, str)
    assert best == "31"


def test_options_get_names_as_short_as_their_parser_takes():
    parser = argparse.ArgumentParser(exit_on_error=False)
    for name in ("save_steps", "save_strategy", "eval_steps", "eval_strategy", "load_best", "lr"):
        parser.add_argument(f"--{name}")

    def fails(text):
        try:
            found = parser.parse_args(text.split())
        except (argparse.ArgumentError, SystemExit):
            return False
        return bool(found.save_steps and found.load_best)

    text = "--lr=0.1\n--save_steps=600\n--eval_strategy=steps\n--load_best=true\n"
    best, search = small(text, "run.args", fails, str)
    assert best == "--save_ste=0\n--lo=0"
    assert search.tried <= 50


def test_options_on_lines_lose_lines_then_values():
    text = "".join(f"--option{number}=value{number}\n" for number in range(68))
    needed = ("--option10=", "--option35=", "--option63=")
    best, search = small(text, "a.args", lambda text: all(one in text for one in needed), str)
    assert best == "--option10=\n--option35=\n--option63="
    assert search.tried <= 60


def test_keys_to_keep_stay_in_every_format():
    cases = [
        ("a.yaml", YAML, "run.name", 'name: "first try"'),
        ("a.toml", TOML, "tool.x.size", "size = 1_000"),
        ("a.csv", "a,score\n1,2\n3,4\n", "score", "score"),
        ("a.ini", "[s]\na = 1\nb = 2\n", "s.b", "b = 2"),
    ]
    for name, text, keep, left in cases:
        best, _ = small(text, name, lambda text: True, str, keep=[keep])
        assert left in best


def test_what_cannot_be_read_is_taken_as_lines_and_that_is_said():
    assert read_bytes(b'{"a": 1,\n', "a.json").how == "as lines: not JSON at byte 9"
    assert read_bytes(b"a: [1\nb: 2\n", "a.yaml").how.startswith("as lines: ")
    assert read_bytes(b"a = \n", "a.toml").how == "as lines: not TOML at byte 0"
    assert read_bytes(b'{"a": 1}\n{"a": 2}\n', "data.json").how == "data.json holds JSON lines"
    assert read_bytes(b'{"a": NaN}', "a.json").how == ""
    assert read_bytes(b"\x00\x01\x02", "a.bin").grammar.name == "bytes"


def test_bytes_lose_blocks_then_single_ones():
    data = bytes(range(256)) * 40
    best = shrink(
        Document(data, read_bytes(data, "a.bin").grammar),
        lambda model: b"\x07\x08" in model.data and model.data[:1] == b"\0",
    ).best["it"]
    assert best.data == b"\x00\x07\x08"


def test_a_line_without_end_is_cut_by_its_length_first():
    """Whole lines, words and single characters are too large, or too many, to begin with."""
    text = "żabcdefg" * 20_000
    at = len(text) // 3
    text = f"{text[:at]}<odd>{text[at:]}"
    best, search = small(text, "a.txt", lambda text: text[:1] == "ż" and "<odd>" in text, str)
    assert best == "ż<odd>"
    assert search.tried <= 150


def test_no_part_of_a_line_divides_a_character():
    data = "żółw\n".encode() * 3 + "€żaó".encode() * 500 + b"\n" + b"x" * 70
    starts, ends = part_spans(data)
    assert b"".join(data[start:end] for start, end in zip(starts, ends, strict=True)) == data[24:]
    assert all(data[start:end].decode() for start, end in zip(starts, ends, strict=True))
