"""What a power cut or a bad disk leaves of files: each broken one is named, and hides no other."""

from pathlib import Path

import pytest

from relaunch.errors import JournalError
from relaunch.journal.refs import state
from relaunch.journal.snapshot.loose import Objects, is_whole
from relaunch.journal.store import Journal
from relaunch.session.look_back import summarise


@pytest.mark.parametrize("rest", [b"", b"\0" * 400, b'{"exit_co', b"\xff\xfe"])
def test_an_end_that_cannot_be_read_does_not_hide_its_trial(tmp_path: Path, rest: bytes) -> None:
    journal = Journal(str(tmp_path / "journal"))
    trial = journal.begin({"command": ["true"]})
    journal.finish(trial, {"exit_code": 0})
    Path(trial.path, "end.json").write_bytes(rest)
    Path(trial.path, "mark.json").write_bytes(rest)
    again = journal.load(trial.id)
    assert (state(again), again.running) == ("unknown", False)
    row = summarise(journal, trial.id)
    what = "is not JSON" if rest else "is empty"
    assert row["unreadable"] == f"end.json {what}, mark.json {what}"
    journal.set_mark(again, {**again.mark, "verdict": "good"})
    assert journal.load(trial.id).mark == {"verdict": "good"}


def test_a_start_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "journal"))
    trial = journal.begin({"command": ["true"]})
    Path(trial.path, "start.json").write_bytes(b"")
    with pytest.raises(JournalError, match=r"start\.json is empty"):
        journal.load(trial.id)
    assert summarise(journal, trial.id)["problem"] == "start.json is empty"
    assert journal.begin({"command": ["true"]}).id == "2"


@pytest.mark.parametrize("rest", [b"", b"\0" * 30, b"x\x01", None])
def test_a_broken_object_is_stored_again(tmp_path: Path, rest: bytes | None) -> None:
    objects = Objects(str(tmp_path))
    oid = objects.write(b"blob", b"print(1)\n" * 90)
    path = tmp_path / oid[:2] / oid[2:]
    whole = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(whole[:-3] if rest is None else rest)
    assert not is_whole(str(path))
    assert objects.write(b"blob", b"print(1)\n" * 90) == oid
    assert is_whole(str(path))
    assert objects.read(oid) == b"print(1)\n" * 90
