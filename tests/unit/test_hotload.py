"""The bundle of bytecode of a launch: taken while sources are the same, written where it may be."""

from __future__ import annotations

import sys

import pytest

from relaunch import hotload


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where the bundle of this test is kept."""
    monkeypatch.setattr(hotload, "_BUNDLE", str(tmp_path / "kept" / "launch.bundle"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    return tmp_path / "kept"


def begin() -> hotload.Bundle:
    bundle = hotload.use()
    assert bundle is not None
    return bundle


def test_what_a_launch_loaded_is_found_by_the_next(place):
    place.mkdir()
    hotload.keep(begin())
    found = begin()
    assert not found.stale
    assert found.find_spec("relaunch.hotload") is not None
    assert found.find_spec("relaunch.no_such_module") is None
    assert [path.name for path in place.iterdir()] == ["launch.bundle"]


def test_where_it_may_not_be_written_nothing_is_compiled(place, monkeypatch):
    monkeypatch.setattr(hotload, "_compiled", lambda source: pytest.fail(f"{source} is compiled"))
    hotload.keep(begin())
    assert not place.exists()


def test_a_source_that_is_torn_leaves_nothing_behind(place, monkeypatch):
    def torn(source: str) -> None:
        raise SyntaxError(source)

    place.mkdir()
    monkeypatch.setattr(hotload, "_compiled", torn)
    hotload.keep(begin())
    assert not list(place.iterdir())
