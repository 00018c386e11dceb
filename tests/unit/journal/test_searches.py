"""Probes of a search in its file: what was cut or spoilt costs no other."""

from __future__ import annotations

from pathlib import Path

from relaunch.journal import searches


def test_a_line_that_was_cut_costs_no_probe_that_comes_after_it(tmp_path: Path) -> None:
    book = searches.begin(str(tmp_path), {"kind": "bisect"})
    for number in range(3):
        book.note({"commit": f"{number}"})
    path = Path(book.path, "probes.jsonl")
    path.write_bytes(path.read_bytes()[:-5])
    book.note({"commit": "3"})
    book.note({"commit": "4"})
    assert [one["commit"] for one in book.probes()] == ["0", "1", "3", "4"]
    book.release()


def test_bytes_that_are_no_text_are_no_probe(tmp_path: Path) -> None:
    book = searches.begin(str(tmp_path), {"kind": "bisect"})
    book.note({"commit": "0"})
    with Path(book.path, "probes.jsonl").open("ab") as file:
        file.write(b"\xff\xfe{}\n")
    book.note({"commit": "1"})
    assert [one["commit"] for one in book.probes()] == ["0", "1"]
    book.release()
