"""The seal of a kept call: valid for what this user sealed, as it was, and for nothing else."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from relaunch.journal.seal import Unsealed, content, is_private, seal, sealed, trouble


class Kept:
    """A trial with a kept call, and the home of a user."""

    def __init__(self, root: Path) -> None:
        self.trial, self.call = root / "trial", root / "trial/capture/1-1"
        self.call.mkdir(parents=True, mode=0o700)
        (self.trial / "start.json").write_text("{}")
        for name in ("facts.json", "0.pickle", "memory"):
            (self.call / name).write_bytes(name.encode())

    def seal(self) -> None:
        seal(str(self.trial), str(self.call), is_own=True)

    def sealed(self) -> dict[str, str]:
        return sealed(str(self.trial), str(self.call))[0]

    def refusal(self) -> str:
        with pytest.raises(Unsealed) as refused:
            self.sealed()
        return str(refused.value)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Kept(tmp_path)


def test_what_was_sealed_is_told_file_by_file(kept: Kept) -> None:
    kept.seal()
    assert sorted(kept.sealed()) == ["0.pickle", "facts.json", "memory"]


def test_a_key_that_a_power_cut_emptied_is_made_anew(kept: Kept, tmp_path: Path) -> None:
    key = tmp_path / "state/relaunch/key"
    kept.seal()
    key.write_bytes(b"")
    assert "32 bytes" in trouble()
    kept.seal()
    assert (trouble(), bool(kept.sealed())) == ("", True)
    assert os.listdir(key.parent) == ["key"]


def test_a_call_that_is_only_trusted_does_not_become_our_own(kept: Kept) -> None:
    for is_own in (True, False):
        seal(str(kept.trial), str(kept.call), is_own=is_own)
        assert sealed(str(kept.trial), str(kept.call))[1] is is_own


def test_what_a_replay_writes_beside_the_call_breaks_no_seal(kept: Kept) -> None:
    kept.seal()
    (kept.call / "replay.json").write_text("{}")
    (kept.call / "result.1-2.tmp").write_text("{}")
    assert kept.sealed()


@pytest.mark.parametrize(
    "name", ["facts.json", "0.pickle", "memory", "9.pickle", "../../start.json"]
)
def test_any_other_byte_breaks_it(kept: Kept, name: str) -> None:
    kept.seal()
    path = kept.call / name
    path.write_bytes((path.read_bytes() if path.exists() else b"") + b"x")
    assert kept.refusal() == "it was changed after it was sealed"


def test_a_file_that_was_removed_breaks_it(kept: Kept) -> None:
    kept.seal()
    (kept.call / "memory").unlink()
    assert kept.refusal() == "it was changed after it was sealed"


def test_words_of_the_trial_that_were_changed_break_it(kept: Kept) -> None:
    kept.seal()
    (kept.trial / "start.json").write_text('{"env_set": {"LD_PRELOAD": "x"}}')
    assert kept.refusal() == "it was changed after it was sealed"


def test_the_seal_of_another_user_is_none(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.seal()
    monkeypatch.setenv("XDG_STATE_HOME", str(kept.trial / "elsewhere"))
    assert "No such file" in kept.refusal()
    other = Kept(kept.trial / "other")
    other.seal()
    assert kept.refusal() == "its seal is not yours"


def test_a_seal_is_for_one_call_alone(kept: Kept) -> None:
    kept.seal()
    seal_of_first = (kept.call / "seal").read_bytes()
    (kept.call / "0.pickle").write_bytes(b"another")
    kept.seal()
    (kept.call / "seal").write_bytes(seal_of_first)
    assert kept.refusal() == "it was changed after it was sealed"


@pytest.mark.parametrize("text", [b"", b"\n", b"0\n{}", b"\xff", b"a" * 64 + b"\n{}", b"\0" * 99])
def test_a_broken_seal_is_refused(kept: Kept, text: bytes) -> None:
    (kept.call / "seal").write_bytes(text)
    kept.trial.joinpath("mine").mkdir()
    Kept(kept.trial / "mine").seal()  # there is a key
    assert kept.refusal() in ("its seal is not yours", "its seal cannot be read")


@pytest.mark.parametrize("name", ["0.pickle", "seal"])
def test_links_and_pipes_are_refused_and_not_waited_for(kept: Kept, name: str) -> None:
    kept.seal()
    path = kept.call / name
    moved = path.rename(kept.trial / "moved")
    path.symlink_to(moved)
    assert kept.refusal()
    path.unlink()
    os.mkfifo(path)
    assert kept.refusal()


def test_a_file_without_end_is_refused_by_its_size(kept: Kept) -> None:
    kept.seal()
    os.truncate(kept.call / "memory", 1 << 40)
    assert kept.refusal() == "it was changed after it was sealed"


def test_a_file_that_is_swapped_after_the_check_is_not_read(kept: Kept) -> None:
    kept.seal()
    files = kept.sealed()
    (kept.call / "0.pickle").write_bytes(b"swapped!")
    with pytest.raises(Unsealed, match=r"0.pickle is being changed"):
        content(str(kept.call), "0.pickle", files)


def test_a_key_that_others_can_read_is_no_key(kept: Kept) -> None:
    kept.seal()
    (key,) = kept.trial.parent.glob("state/relaunch/key")
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o640)
    assert "it must be yours, with mode 600" in kept.refusal()
    assert trouble() == f"{key}: it must be yours, with mode 600"
    key.chmod(0o600)
    assert trouble() == ""
    key.write_bytes(b"short")
    assert "it must have 32 bytes" in kept.refusal()


def test_of_many_that_make_the_key_at_once_all_have_one(kept: Kept) -> None:
    calls = [Kept(kept.trial / str(number)) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(Kept.seal, calls))
    assert all(call.sealed() for call in calls)


def test_what_others_can_write_to_is_not_private(kept: Kept) -> None:
    assert is_private(str(kept.call))
    (kept.call / "memory").chmod(0o622)
    assert not is_private(str(kept.call))
    (kept.call / "memory").chmod(0o600)
    kept.call.chmod(0o777)
    assert not is_private(str(kept.call))
    kept.call.chmod(0o700)
    (kept.call / "link").symlink_to("memory")
    assert not is_private(str(kept.call))
