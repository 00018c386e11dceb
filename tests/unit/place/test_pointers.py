"""Pointers of git-lfs: what is one, and what it says."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from relaunch.trial.place.checkouts.pointers import Pointer, read_pointer

HEAD = b"version https://git-lfs.github.com/spec/v1\n"


def written(pointer: Pointer, line_end: str = "\n") -> bytes:
    lines = (f"oid sha256:{pointer.sha256}", f"size {pointer.size}", "")
    return HEAD.replace(b"\n", line_end.encode()) + line_end.join(lines).encode()


@given(st.binary(), st.integers(0, 1 << 60), st.sampled_from(["\n", "\r\n"]))
def test_what_is_written_is_read(data: bytes, size: int, line_end: str) -> None:
    pointer = Pointer(sha256=hashlib.sha256(data).hexdigest(), size=size)
    assert read_pointer(written(pointer, line_end)) == pointer


@given(st.binary())
def test_other_files_are_no_pointers(data: bytes) -> None:
    assert read_pointer(data) is None
    found = read_pointer(HEAD + data)
    assert found is None or len(found.sha256) == 64


def test_a_pointer_that_is_off_is_none() -> None:
    good = written(Pointer(sha256="a" * 64, size=1))
    assert read_pointer(good) is not None
    for bad in (
        good.replace(b"a" * 64, b"../" * 21 + b"a"),
        good.replace(b"sha256", b"md5"),
        good.replace(b"size 1", b"size one"),
        good + b"x" * 1024,
    ):
        assert read_pointer(bad) is None
