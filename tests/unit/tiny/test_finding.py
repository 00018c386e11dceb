"""Where a pattern lies: exactly what was planted, wherever blocks end."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.tiny.finding import search as searching
from relaunch.tiny.finding.pattern import patterns_of
from relaunch.tiny.finding.places import address_of, core_segments, read_maps
from relaunch.tiny.finding.search import dump, search

MARK = 0xDEADBEEF


def runs_in(data: bytes, text: str = "0xDEADBEEF", dtypes: tuple[str, ...] = ()):
    found = search(lambda at, size: data[at : at + size], 0, len(data), patterns_of(text, dtypes))
    return [(run.offset, run.count, run.step, run.pattern.words) for run in found]


PIECES = st.lists(
    st.tuples(st.binary(min_size=1, max_size=9), st.integers(0, 5), st.booleans()), max_size=12
)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(searching, "BLOCK", 16)


@given(PIECES)
@examples(100)
@example([(b"x" * 14, 5, False), (b"y", 4, True)])
def test_all_that_was_planted_is_found_and_nothing_else(pieces):
    searching.BLOCK = 16
    data, planted = bytearray(), []
    for gap, count, is_big in pieces:
        gap = bytes(byte for byte in gap if byte not in b"\xde\xad\xbe\xef\0\xff") or b"."
        data += gap
        if count:
            order: Literal["big", "little"] = "big" if is_big else "little"
            planted.append((len(data), count, 4, f"{order}-endian"))
            data += MARK.to_bytes(4, order) * count
    assert sorted(runs_in(bytes(data))) == planted


def test_a_run_over_many_blocks_is_one():
    data = b"abc" + MARK.to_bytes(4, "little") * 1000 + b"xyz"
    assert runs_in(data) == [(3, 1000, 4, "little-endian")]


def test_elements_twice_as_wide_are_told_as_such():
    data = b"#" + MARK.to_bytes(8, "little") * 20 + b"#"
    ((offset, count, step, words),) = runs_in(data)
    assert (offset, count, step, words) == (1, 20, 8, "little-endian")
    run = next(
        search(lambda at, size: data[at : at + size], 0, len(data), patterns_of("0xDEADBEEF"))
    )
    assert run.words == "20 x 4 bytes little-endian, each in 8"


def test_a_pattern_that_reads_the_same_both_ways_is_told_once():
    assert runs_in(b"\0" + b"\xaa" * 8, "0xAAAAAAAA") == [(1, 2, 4, "either-endian")]


def test_a_number_is_looked_for_in_types():
    import struct

    data = b"...." + struct.pack("<3f", 1203, 1203, 1203) + struct.pack(">q", 1203)
    assert runs_in(data, "1203", ("float32", "int64")) == [
        (4, 3, 4, "float32 little-endian"),
        (16, 1, 8, "int64 big-endian"),
    ]
    with pytest.raises(ValueError, match="no number for int64"):
        patterns_of("1.5", ("int64",))


def test_a_dump_shows_what_is_around():
    data = bytes(range(64)) + b"MARKMARK" + bytes(64)
    lines = dump(lambda at, size: data[at : at + size], 64, 8, 16)
    assert lines[0].startswith("00000030  30 31")
    assert "|MARKMARK........|" in lines[1]
    assert len(lines) == 3


def test_regions_of_a_process_that_may_be_read():
    text = (
        "00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/dbus daemon\n"
        "00e03000-00e24000 rw-p 00000000 00:00 0 [heap]\n"
        "7f00-7f01 ---p 00000000 00:00 0 \n"
        "ffff0-fffff r--p 00000000 00:00 0 [vvar]\n"
        "7ffc0000-7ffc1000 rw-p 00000000 00:00 0 \n"
    )
    names = [region.name for region in read_maps(text)]
    assert names == ["/usr/bin/dbus daemon", "[heap]", "[anonymous]"]


def test_an_offset_in_a_core_is_an_address(tmp_path):
    import struct

    head = b"\x7fELF\x02\x01" + bytes(10) + struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64,
                                                      56, 1, 0, 0, 0)  # fmt: skip
    table = struct.pack("<IIQQQQQQ", 1, 6, 0x1000, 0x7F0000, 0, 0x100, 0x100, 0x1000)
    path = tmp_path / "core"
    path.write_bytes(head + table + bytes(0x1000 - 120) + b"x" * 0x100)
    segments = core_segments(str(path))
    assert address_of(segments, 0x1010) == 0x7F0010
    assert address_of(segments, 10) is None
    (tmp_path / "plain").write_bytes(b"no core")
    assert core_segments(str(tmp_path / "plain")) == []
