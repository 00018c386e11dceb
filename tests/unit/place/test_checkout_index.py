"""Whether a file is still the one that was put into a checkout, and what its time says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.trial.place.checkouts.index import Entry, Index, seen_of, time_of, time_of_content

YEAR_1980, YEAR_2015 = 315_532_800, 1_420_070_400


@pytest.mark.parametrize(
    ("tracked", "mode", "same"),
    [
        (0o100644, 0o644, True),
        (0o100644, 0o600, True),
        (0o100644, 0o755, False),
        (0o100644, 0o444, False),
        (0o100644, 0o000, False),
        (0o100755, 0o755, True),
        (0o100755, 0o644, False),
    ],
)
def test_permissions_count_even_within_one_tick_of_the_clock(
    tmp_path: Path, tracked: int, mode: int, same: bool
) -> None:
    file = tmp_path / "file"
    file.write_text("x = 1\n")
    file.chmod(mode)
    found = os.lstat(file)
    assert Entry(0, tracked, bytes(20), seen_of(found)).matches(found) is same


def test_a_file_with_its_old_time_and_size_is_another_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x = 1\n")
    before = os.lstat(file)
    entry = Entry(0, 0o100644, bytes(20), seen_of(before))
    other = tmp_path / "other"
    other.write_text("x = 2\n")
    os.utime(other, ns=(before.st_mtime_ns, before.st_mtime_ns))
    os.rename(other, file)
    assert not entry.matches(os.lstat(file))


@given(st.binary(min_size=20, max_size=32))
def test_every_time_can_be_put_into_a_zip_file_and_is_long_past(oid: bytes) -> None:
    a_day = 86_400
    seconds, rest = divmod(time_of(oid), 1_000_000_000)
    assert rest == 0
    assert YEAR_1980 + a_day < seconds < YEAR_2015


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_files_of_another_content_have_another_time(one: bytes, two: bytes) -> None:
    assert (time_of_content(one) == time_of_content(two)) is (one == two)


def test_the_time_of_a_content_is_that_of_its_object_in_git() -> None:
    empty = bytes.fromhex("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
    assert time_of_content(b"") == time_of(empty)


@given(st.binary(min_size=1, max_size=200))
def test_what_is_no_index_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not an index"):
        Index(data, sha256=False)
