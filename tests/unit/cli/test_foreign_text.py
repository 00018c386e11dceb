"""What others wrote (notes, names, paths, variables) is shown, never obeyed by the terminal."""

import argparse
import json
from pathlib import Path

import pytest

from relaunch.cli import back, diff, draw, gc, log, mark, show
from relaunch.journal.home import find_home
from relaunch.journal.output import STDOUT, OutputWriter
from relaunch.journal.snapshot.code import Caps, to_json
from relaunch.journal.snapshot.take import take

EVIL = "\x1b[31mred\x07\x9b2J"


def trial(folder: Path, word: str, **start: object) -> None:
    """Write a trial that has `word` wherever a text may stand."""
    folder.mkdir(parents=True)
    env = {
        "values": {"PYTHONPATH": f"/lib/{word}", word: word, "TZ": word},
        "hashes": {f"H{word}": word},
        "redacted": [f"S{word}"],
    }
    root = {
        "path": f"/elsewhere/{word}", "kind": "editable", "base": word, "tree": word,
        "changed": [word], "new": [word], "deleted": [word], "empty_dirs": [word],
        "left_out": [{"path": word, "size": 3, "digest": word, "why": word}], "problem": word,
    }  # fmt: skip
    whole: dict[str, object] = {
        "format": 1, "when": 1e9, "command": ["python", word], "cwd": f"/work/{word}", "note": word,
        "set": word, "env": env, "resets": [word, ["rm", word]], "until": word, "match": word,
        "env_set": {word: word}, "env_set_redacted": [word], "exit_code": word, "src": [word],
        "python": {"version": word, "executable": word},
        "host": {"name": word, "kernel": word, "cpus": word, "gpus": [word]},
        "code": {"roots": [root], "digest": word}, "unsaved": [word], "doubts": [word],
        "rl": {"host": word}, "packages": "",
    }  # fmt: skip
    end = {
        "exit_code": 1, "duration_s": 1.0, "told": word, "metrics": {word: word},
        "signature": {"kind": word, "title": word, "digest": word}, "loaded": {word: word},
        "code_changed": [word], "ended_processes": [word], "resets": [{"exit_code": word}],
    }  # fmt: skip
    (folder / "start.json").write_text(json.dumps({**whole, **start}))
    (folder / "end.json").write_text(json.dumps(end))
    said = {"verdict": word, "text": word, "name": word, "when": 1.0}
    (folder / "mark.json").write_text(json.dumps(said))
    writer = OutputWriter(str(folder))
    writer.chunk(0.0, STDOUT, word.encode())
    writer.close()


@pytest.fixture
def trials(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "300")
    folder = tmp_path / ".relaunch" / "trials"
    trial(folder / "1", EVIL)
    trial(folder / "2", f"other {EVIL}")
    (folder / EVIL).mkdir()
    return folder


def said(capfd, module, *words):
    parser = argparse.ArgumentParser()
    module.arguments(parser)
    assert module.main(parser.parse_args(words)) == 0
    out, err = capfd.readouterr()
    return out + err


@pytest.mark.usefixtures("trials")
@pytest.mark.parametrize(
    ("module", "words"),
    [
        (show, ["1"]),
        (show, ["1", "--env", "--code"]),
        (show, ["1", "--json"]),
        (log, ["--all"]),
        (log, ["--text", "red"]),
        (log, ["--json"]),
        (diff, ["1", "2"]),
        (diff, ["1", "2", "--stat"]),
        (diff, ["1", "2", "--json"]),
        (mark, ["1", "bad", EVIL]),
        (gc, ["--older", "1s", "--dry-run"]),
        (gc, ["--older", "1s"]),
        (gc, ["--dry-run", "--json"]),
    ],
)
def test_no_screen_obeys_what_a_trial_holds(capfd, module, words):
    text = said(capfd, module, *words)
    assert [char for char in text if not char.isprintable() and char != "\n"] == []
    assert "red" in text


@pytest.mark.usefixtures("trials")
def test_each_foreign_text_is_still_to_be_seen(capfd):
    text = said(capfd, show, "1", "--env", "--code")
    shown = draw.clean(EVIL)
    for line in (f"why      {shown}", f"set      {shown}", f"[{shown}]", f"  M {shown}",
                 f"PYTHONPATH=$'/lib/{shown}'".replace("\\x9b", "\\xc2\\x9b"),
                 f"S{shown} (redacted)", f"--env {shown}=(redacted)"):  # fmt: skip
        assert line in text, line


def test_back_names_a_file_that_is_missing_without_obeying_its_name(tmp_path, monkeypatch, capfd):
    project = tmp_path / f"it{EVIL}"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path))
    (project / ".relaunch").mkdir()
    (project / f"big{EVIL}").write_bytes(b"x" * 2000)
    code = take(find_home(str(project)), caps=Caps(max_file=1000))
    trial(project / ".relaunch" / "trials" / "1", "plain", code=to_json(code))
    parser = argparse.ArgumentParser()
    back.arguments(parser)
    assert back.main(parser.parse_args(["1"])) == 0
    out, err = capfd.readouterr()
    assert [char for char in err if not char.isprintable() and char != "\n"] == []
    assert draw.clean(f"big{EVIL}: over") in err
    assert out == f"../it{EVIL}@1\n", "the directory's very name, for cd"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ({"set": "bf16", "set_digest": "a1"}, {"set": "bf16", "set_digest": "b2"},
         "set      bf16: same name, other text"),
        ({"set": "", "set_digest": "a1"}, {"set": "", "set_digest": "b2"},
         "set      the set in place: same name, other text"),
        ({"set": "bf16", "set_digest": "a1"}, {"set": "fp32", "set_digest": "b2"},
         "set      bf16 -> fp32"),
    ],
)  # fmt: skip
def test_diff_tells_an_edited_set_from_the_same_one(tmp_path, monkeypatch, capfd, old, new, line):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C")
    for number, start in (("1", old), ("2", new)):
        trial(tmp_path / ".relaunch" / "trials" / number, "plain", **start)
    lines = said(capfd, diff, "1", "2").splitlines()
    assert line in lines
    assert not [other for other in lines if other.startswith("same") and " set" in other]
    edited = json.loads(said(capfd, diff, "1", "2", "--json"))["set_edited"]
    assert edited == ("other text" in line)


def test_diff_says_nothing_of_the_text_of_sets_that_was_not_recorded(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for number, start in (("1", {"set": "bf16"}), ("2", {"set": "bf16", "set_digest": "b2"})):
        trial(tmp_path / ".relaunch" / "trials" / number, "plain", **start)
    assert "other text" not in said(capfd, diff, "1", "2")
