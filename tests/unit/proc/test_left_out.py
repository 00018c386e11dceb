from __future__ import annotations

from relaunch.proc.left_out import left_out


def test_rungs_are_left_out_by_name():
    assert left_out({"RELAUNCH_WITHOUT": "overlay, tmpfs"}) == {"overlay", "tmpfs"}
    assert left_out({}) == frozenset()
