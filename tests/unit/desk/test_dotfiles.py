"""Blocks in dotfiles, and undo: what was there before is there after, whatever it was."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.desk import dotfiles
from relaunch.desk.rcfiles import Change, Edit, fold, sourced_text, with_block, world
from relaunch.errors import RelaunchError

texts = st.text(alphabet=st.sampled_from("ab\n\r# <>é\udc80\t"), max_size=40)


@given(texts, st.sampled_from(["one\n", "one\ntwo\n"]))
def test_a_block_leaves_what_was_there_and_is_put_only_once(text, body):
    once = with_block(text, "history", body)
    assert once.startswith(text)
    assert body in once
    assert with_block(once, "history", body) == once


@given(texts)
def test_a_block_of_another_version_is_renewed_where_it_stands(text):
    old = with_block(text, "history", "old\n") + "alias mine=true\n"
    new = with_block(old, "history", "new\n")
    assert new == with_block(text, "history", "new\n") + "alias mine=true\n"


def test_two_blocks_of_one_file_are_one_edit(tmp_path):
    path = str(tmp_path / "rc")
    edits = fold([Change(path=path, block=name, body=f"{name}\n") for name in ("a", "b")])
    assert [edit.path for edit in edits] == [path]
    assert "\na\n" in edits[0].text
    assert "\nb\n" in edits[0].text


@given(files=st.dictionaries(st.sampled_from("abc"), st.binary(max_size=30)), new=texts)
def test_undo_is_exact_for_any_bytes(tmp_path_factory, files, new):
    home = tmp_path_factory.mktemp("home")
    for name, data in files.items():
        (home / name).write_bytes(data)
        (home / name).chmod(0o600)
    before = {path.name: (path.read_bytes(), path.stat().st_mode) for path in home.iterdir()}
    edits = [Edit(path=str(home / name), text=new) for name in "ab"]
    edits.append(Edit(path=str(home / "made/deep/c"), text=new))
    backups = str(tmp_path_factory.mktemp("backups"))
    dotfiles.apply(edits, backups, label="test")
    assert (home / "a").read_bytes() == new.encode("utf-8", "surrogateescape")
    dotfiles.undo(backups)
    after = {path.name: (path.read_bytes(), path.stat().st_mode) for path in home.iterdir()}
    assert after == before


def test_a_kill_between_two_files_can_be_undone(tmp_path, monkeypatch):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1\n")
    two.write_text("2\n")
    edits = [Edit(path=str(one), text="new\n"), Edit(path=str(two), text="new\n")]
    backups = str(tmp_path / "backups")
    real = os.replace

    def replace(source: str, target: str) -> None:
        if target == str(two):
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        dotfiles.apply(edits, backups, label="test")
    monkeypatch.undo()
    assert (one.read_text(), two.read_text()) == ("new\n", "2\n")
    done = dotfiles.undo(backups)
    assert (done.restored, done.untouched) == ((str(one),), (str(two),))
    assert (one.read_text(), two.read_text()) == ("1\n", "2\n")
    assert sorted(os.listdir(tmp_path)) == ["backups", "one", "two"]


def test_a_spoilt_manifest_is_one_line(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1/manifest.json").write_text("{")
    with pytest.raises(RelaunchError, match="cannot be read"):
        dotfiles.undo(str(tmp_path))


def test_a_link_that_leads_nowhere_yet_is_followed(tmp_path):
    (tmp_path / "rc").symlink_to("dotfiles/rc")
    edits = [Edit(path=str(tmp_path / "rc"), text="x\n")]
    dotfiles.apply(edits, str(tmp_path / "backups"), label="test")
    assert (tmp_path / "dotfiles/rc").read_text() == "x\n"
    assert (tmp_path / "rc").is_symlink()
    dotfiles.undo(str(tmp_path / "backups"))
    assert (tmp_path / "rc").is_symlink()
    assert not (tmp_path / "dotfiles").exists()


def test_files_that_source_each_other_end(tmp_path: Path):
    (tmp_path / "a").write_text(f"source {tmp_path}/b\n# . {tmp_path}/c\none\n")
    (tmp_path / "b").write_text(". $HOME/a\ntwo\n")
    (tmp_path / "c").write_text("three\n")
    text = sourced_text(str(tmp_path / "a"), str(tmp_path))
    assert "two" in text
    assert "three" not in text


def test_empty_variables_are_as_good_as_none():
    here = world({"HOME": "/h", "XDG_CONFIG_HOME": "", "ZDOTDIR": ""})
    assert (here.config, here.zdotdir, here.shell) == ("/h/.config", "/h", "")
