"""Secrets: never in the journal, wherever they come from; but what was typed can be run again."""

import json
import sys

import pytest

SECRET = "s3cr3t-s3cr3t-s3cr3t"


def kept(world) -> bytes:
    files = (path for path in world.journal.rglob("*") if path.is_file())
    return b"".join(path.read_bytes() for path in files)


def start_of(world, trial_id):
    return json.loads((world.journal / "trials" / trial_id / "start.json").read_text())


@pytest.mark.parametrize(
    "words",
    [
        ["--", "sh", "-c", "echo $HF_TOKEN"],
        ["--", "sh", "-c", "printf s3cr3t-; sleep 0.2; echo s3cr3t-s3cr3t"],
        ["--reset", "echo $HF_TOKEN", "--", "true"],
        ["--reset", "echo $HF_TOKEN; false", "--", "true"],
        ["--", sys.executable, "-c", "import os; raise ValueError(os.environ['HF_TOKEN'])"],
        ["--", sys.executable, "-c", "import os; print('why', os.environ['HF_TOKEN']); exit(3)"],
        ["-m", f"with {SECRET}", "--", "true"],
    ],
)
def test_a_secret_of_the_environment_is_passed_on_but_not_kept(world, words):
    ran = world.rl(*words, env={"HF_TOKEN": SECRET})
    assert SECRET.encode() not in kept(world)
    assert "HF_TOKEN" in start_of(world, "1")["env"]["redacted"]
    assert SECRET in ran.stdout + ran.stderr or "true" in words


def test_a_key_of_several_lines_is_found_line_by_line(world):
    key = "-----BEGIN KEY-----\n" + "\n".join("abcdefgh" * 4 + str(n) for n in range(3))
    world.rl("--", "sh", "-c", 'echo "$SSH_KEY" | tail -2', env={"SSH_KEY": key})
    assert b"abcdefgh" * 4 not in kept(world)


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (["--api-key", "abcdef12"], ["--api-key", "<redacted>"]),
        (["--hf_token=abcdef12"], ["--hf_token=<redacted>"]),
        (["postgres://u:pw123456@db/x"], ["postgres://u:<redacted>@db/x"]),
        (["--tokenizer", "gpt2"], ["--tokenizer", "gpt2"]),
    ],
)
def test_a_secret_typed_into_the_command_is_not_shown_but_can_be_repeated(world, typed, shown):
    ran = world.rl("-q", "--", "echo", *typed)
    assert start_of(world, "1")["command"] == ["echo", *shown]
    for verb in (["show", "1", "--json"], ["log", "--json"], ["show", "1"], ["log"]):
        text = world.rl(*verb).stdout
        assert "abcdef12" not in text
        assert "pw123456" not in text
    assert world.rl("-q").stdout == ran.stdout == " ".join(typed) + "\n"
    assert world.rl("again", "1").stdout == ran.stdout


def test_a_secret_given_by_hand_must_be_given_again(world):
    world.rl("--env", "API_KEY=abcdefgh", "--", "sh", "-c", "echo $API_KEY")
    assert b"abcdefgh" not in kept(world)
    for words in ([], ["again", "1"]):
        ran = world.rl(*words)
        assert ran.returncode == 2
        assert "API_KEY was given by hand and is a secret" in ran.stderr
    assert world.rl("--env", "API_KEY=abcdefgh").stdout == "abcdefgh\n"
