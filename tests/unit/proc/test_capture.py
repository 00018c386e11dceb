"""What git says of itself when it fails, down to the one line that helps."""

from __future__ import annotations

import pytest

from relaunch.proc.capture import Captured, complaint


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("error: open('x'): Permission denied\nfatal: adding failed", "open('x'): Permission"),
        ("fatal: not a git repository (or any of the parent directories)", "not a git repository"),
        ("error: no write\nfatal: sha1 file: No space left on device", "sha1 file: No space"),
        ("hint: try this\nand that", "and that"),
        ("", "git ended with 128"),
    ],
)
def test_what_went_wrong_is_said_before_what_came_of_it(said, kept):
    assert complaint(Captured(code=128, out=b"", err=said.encode())).startswith(kept)
