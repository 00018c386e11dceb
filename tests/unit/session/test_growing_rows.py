"""The first rows of a file: so many, whole, with the header, and the command that gets them."""

from __future__ import annotations

import csv
import io
import json

from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.recipe import Recipe
from relaunch.session.growing import rows
from relaunch.session.growing.sized import filled, names_file

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8)


@given(st.lists(st.tuples(TEXT, TEXT), max_size=12), st.integers(0, 14))
@examples(120)
def test_a_cut_table_is_the_first_rows_of_it(tmp_path_factory, table, count):
    folder = tmp_path_factory.mktemp("cut")
    written = io.StringIO(newline="")
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *table])
    source, cut = folder / "t.csv", folder / "cut.csv"
    source.write_bytes(written.getvalue().encode())
    rows.cut(str(source), count, str(cut))
    read = [*csv.reader(io.StringIO(cut.read_bytes().decode(), newline=""))]
    assert read == [["a", "b"], *map(list, table[:count])]
    assert rows.count(str(source), 100) == len(table)
    assert rows.count(str(cut), 100) == min(count, len(table))
    assert source.read_bytes().startswith(cut.read_bytes())


@given(st.lists(st.dictionaries(TEXT, TEXT, max_size=2), max_size=12), st.integers(0, 14))
@examples(80)
def test_cut_lines_are_the_first_rows(tmp_path_factory, values, count):
    folder = tmp_path_factory.mktemp("cut")
    source, cut = folder / "d.jsonl", folder / "cut.jsonl"
    source.write_text("\n\n".join(map(json.dumps, values)))
    rows.cut(str(source), count, str(cut))
    read = [json.loads(line) for line in cut.read_text().splitlines() if line]
    assert read == values[:count]
    for number, value in enumerate(values, 1):
        assert json.loads(rows.row(str(source), number)) == value


def test_in_plain_text_a_blank_line_is_a_row(tmp_path):
    (tmp_path / "t.txt").write_text("a\n\nb")
    assert rows.count(str(tmp_path / "t.txt"), 10) == 3
    assert rows.count(str(tmp_path / "t.txt"), 2) == 2
    assert rows.row(str(tmp_path / "t.txt"), 9) == ""


def test_a_tab_separated_file_keeps_its_header_and_may_have_odd_quotes(tmp_path):
    (tmp_path / "t.tsv").write_text('h\ti\n"5\t1\n6\t2\n')
    rows.cut(str(tmp_path / "t.tsv"), 1, str(tmp_path / "cut.tsv"))
    assert (tmp_path / "cut.tsv").read_text() == 'h\ti\n"5\t1\n'


def test_sizes_and_files_take_their_places_in_the_command():
    recipe = Recipe(
        argv=("run", "-n{n}", "{m} {n}", "./d.txt", "--data=/w/d.txt", "d.txt.bak", "{x}"),
        cwd="/w",
        env={"SIZE": "{n}"},
    )
    found = filled(recipe, {"n": "8", "m": "{n}"}, {"d.txt": "/cut/d.txt"})
    assert found.argv == (
        "run", "-n8", "{n} 8", "/cut/d.txt", "--data=/cut/d.txt", "d.txt.bak", "{x}",
    )  # fmt: skip
    assert found.env == {"SIZE": "8"}
    assert names_file("x/../d.txt", "d.txt", "/w")
    assert not names_file("e.txt", "d.txt", "/w")
