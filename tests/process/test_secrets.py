"""Secrets: never in the journal, wherever they come from; but what was typed can be run again."""

import json
import os
import subprocess
import sys
import zlib

import pytest

from relaunch.session import alloc
from relaunch.trial.launch.slurm.held import scrubbed, stale

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
        (["db.password=abcdef12"], ["db.password=<redacted>"]),
        (["wandb", "login", "abcdef12" * 5], ["wandb", "login", "<redacted>"]),
        (["postgres://u:abcdef12@db/x"], ["postgres://u:<redacted>@db/x"]),
    ],
)
def test_a_secret_typed_into_the_command_is_nowhere_and_never_run_as_a_mask(world, typed, shown):
    ran = world.rl("-q", "--", "echo", *typed)
    assert ran.stdout == " ".join(typed) + "\n"
    assert start_of(world, "1")["command"] == ["echo", *shown]
    for verb in (["show", "1", "--json"], ["log", "--json"], ["show", "1"], ["log"]):
        assert "abcdef12" not in world.rl(*verb).stdout
    assert b"abcdef12" not in kept(world)
    for verb in (["-q"], ["again", "1"]):
        ran = world.rl(*verb)
        assert ran.returncode == 2
        assert ran.stdout == ""
        assert "the secret was not kept" in ran.stderr
    assert len(list((world.journal / "trials").iterdir())) == 1


def test_a_variable_in_the_place_of_a_secret_is_kept_and_run_again(world):
    line = 'echo wandb login $KEY; echo redis-cli -a ${KEY} ping; echo curl -u me:"$KEY" x'
    ran = world.rl("-q", "--reset", line, "--", "true", env={"KEY": "abcdef12"})
    assert start_of(world, "1")["resets"] == [line]
    assert world.rl("-q", env={"KEY": "abcdef12"}).stdout == ran.stdout


def test_ordinary_words_of_a_command_are_kept_and_run_again(world):
    typed = ["--tokenizer", "gpt2", "--max-tokens=512", "pad_token=<pad>", "--token_type", "a"]
    world.write("creds.json", "{}")
    typed += ["--credentials", "creds.json", "--private-key=creds.json"]
    typed += ["--key=value", "--author", "me", "model.token_dim=64", "--auth=basic", "-p", "8000"]
    ran = world.rl("-q", "--", "echo", *typed)
    assert start_of(world, "1")["command"] == ["echo", *typed]
    assert world.rl("-q").stdout == ran.stdout


def test_a_command_with_the_value_of_a_variable_takes_it_from_there_again(world):
    words = ["--", "echo", f"--token={SECRET}", f"Bearer {SECRET}"]
    world.rl("-q", *words, env={"HF_TOKEN": SECRET})
    assert start_of(world, "1")["command"][1] == "--token=<redacted:HF_TOKEN>"
    assert SECRET.encode() not in kept(world)
    assert (
        world.rl("-q", env={"HF_TOKEN": "another1"}).stdout == "--token=another1 Bearer another1\n"
    )
    ran = world.rl("again", "1")
    assert ran.returncode == 2
    assert "export HF_TOKEN=..." in ran.stderr


def test_a_reset_of_the_settings_with_a_secret_is_run_again_and_not_kept(world):
    world.settings('[run]\nreset = ["echo --password=abcdef12"]\n[record]\nalso = []\n')
    for words in (["--", "true"], []):
        assert "--password=abcdef12" in world.rl(*words).stdout
    assert b"abcdef12" not in kept(world)


def test_what_the_program_says_of_a_typed_secret_is_not_kept(world):
    world.rl("-m", "with abcdef12", "--", "sh", "-c", "echo got $1", "sh", "--password=abcdef12")
    world.rl("--env", "DB_URL=pg://u:ab-cdef12@h", "--", "sh", "-c", "echo ${DB_URL#*u:}")
    assert b"abcdef12" not in kept(world)
    assert b"ab-cdef12" not in kept(world)


def test_known_secrets_are_found_in_other_forms(world):
    secret = 'p4"ss/wörd & more'
    program = (
        "import base64, json, os, urllib.parse as u\ns = os.environ['DB_PASSWORD']\n"
        "b = base64.b64encode\n"
        "print(json.dumps([s]), repr([s]), u.quote(s), u.quote_plus(s), s.encode().hex())\n"
        "for user in ('u', 'us', 'use'): print(b(f'{user}:{s}'.encode()).decode())\n"
    )
    ran = world.rl("--", sys.executable, "-c", program, env={"DB_PASSWORD": secret})
    assert ran.stdout.count("\n") == 4
    output = (world.journal / "trials/1/output.0").read_text()
    for core in (
        "ss/w",
        "ss%2Fw",
        "more",
        "6d6f7265",
        "cDQic3M",
        "BzL3fDtnJk",
        "czvdw7ZyZC",
        "L3fDtnJk",
    ):
        assert core not in output


def test_a_secret_given_by_hand_must_be_given_again(world):
    world.rl("--env", "API_KEY=abcdefgh", "--", "sh", "-c", "echo $API_KEY")
    assert b"abcdefgh" not in kept(world)
    for words in ([], ["again", "1"]):
        ran = world.rl(*words)
        assert ran.returncode == 2
        assert "API_KEY was given by hand and is a secret" in ran.stderr
    assert world.rl("--env", "API_KEY=abcdefgh").stdout == "abcdefgh\n"


def test_secrets_in_older_trials_are_swept_and_the_trials_stay(world):
    token = "gh" + "p_0123456789abcdefghij0123456789abcdef"
    world.rl("-m", "a note", "--", "echo", "hello TOKEN and more")
    world.rl("-m", "untouched", "--", "echo", "hello")
    trial = world.journal / "trials/1"
    for name in ("start.json", "output.0"):
        text = (trial / name).read_text()
        (trial / name).write_text(text.replace("TOKEN", token).replace("a note", f"with {token}"))
    (trial / "exact.json").write_text(json.dumps({"command": ["echo", token]}))
    times = (trial / "output.0").stat().st_mtime_ns
    planned = world.rl("gc", "--secrets", "--dry-run")
    assert "would be masked: 4 secrets in #1" in planned.stderr
    assert token.encode() in kept(world)
    found = json.loads(world.rl("gc", "--secrets", "--json").stdout)
    assert found["masked"] == [{"id": "1", "secrets": 4, "calls_gone": 0}]
    assert token.encode() not in kept(world)
    assert (trial / "output.0").stat().st_mtime_ns == times
    shown = world.rl("show", "1", "--output").stdout
    assert shown.startswith("hello <redacted>***")
    assert shown.endswith("*** and more\n")
    assert start_of(world, "1")["note"] == "with <redacted>"
    assert "nothing looks like a secret" in world.rl("gc", "--secrets").stderr
    assert world.rl("gc", "--secrets", "--older", "1d").returncode == 2


def test_a_kept_call_with_a_secret_is_swept_sealed_or_not(world):
    token = "gh" + "p_0123456789abcdefghij0123456789abcdef"
    world.write("fails.py", "def f(x):\n    return x / 0\nf('a text')\n")
    world.rl("--", sys.executable, "fails.py")
    (call,) = (world.journal / "trials/1/capture").iterdir()
    (call / "random.plain").write_bytes(token.encode())
    (call / "seal").unlink()  # as an older rl left it
    world.rl("gc", "--secrets")
    assert not call.exists()


def test_a_kept_call_without_its_secrets_is_not_swept(world):
    world.write(
        "fails.py",
        "import json\n\ndef f(x, password, api_key, **more):\n"
        "    raise ValueError('password=' + 'none')\n\n"
        "f(1, **json.load(open('in.json')))\n",
    )
    given = {"password": "quiet-lamp-7", "api_key": "tenletters", "secret": ["sober-fork-99", 5]}
    given["text"] = "host=h password=brisk-oven-42 dbname=x\n"
    given["header"] = "Authorization: Basic calm-river-31"
    world.write("in.json", json.dumps(given))
    world.rl("--", sys.executable, "fails.py")
    assert any((world.journal / "trials/1/capture").iterdir())
    ran = world.rl("gc", "--secrets")
    assert "nothing looks like a secret" in ran.stderr
    assert "same" in world.rl("replay", "1", "--json").stdout


def test_a_kept_call_that_was_made_smaller_goes_too(world):
    token = "gh" + "p_0123456789abcdefghij0123456789abcdef"
    world.rl("--", "false")
    for name, content in (("1", token.encode()), ("2", token.encode("utf-32-le")), ("3", b"x")):
        call = world.journal / "trials/1/small" / name
        call.mkdir(parents=True)
        (call / "0.pickle").write_bytes(b"\x80\x05\0" + content)
    found = json.loads(world.rl("gc", "--secrets", "--json").stdout)
    assert found["masked"] == [{"id": "1", "secrets": 0, "calls_gone": 2}]
    assert [one.name for one in call.parent.iterdir()] == ["3"]


def test_files_that_are_put_back_as_they_were_are_not_swept(world):
    text = "password = 'abcd1234efgh'\n"
    world.rl("--", "true")
    for name in ("shapes/0.before", "undo/copy-1"):
        path = world.journal / "trials/1" / name
        path.parent.mkdir()
        path.write_text(text)
    world.rl("gc", "--secrets")
    assert (path.parent.parent / "shapes/0.before").read_text() == text
    assert path.read_text() == text


def test_two_commands_with_different_secrets_are_not_called_the_same(world):
    for secret in ("abcd1234efgh", "abcd1234efgh", "zzzz1234efgh"):
        world.rl("--", "true", f"--token={secret}")
    same, other = (world.rl("diff", *pair.split()).stdout for pair in ("1 1.2", "1 2"))
    assert "secrets" not in same
    assert "secrets  changed (values not kept)" in other
    assert b"zzzz1234efgh" not in kept(world)


def test_a_sweep_that_was_killed_leaves_no_secret_in_the_index(world):
    token = "gh" + "p_0123456789abcdefghij0123456789abcdef"
    world.rl("-m", "a note", "--", "true")
    start = world.journal / "trials/1/start.json"
    text = start.read_text()
    start.write_text(text.replace("a note", f"with {token}"))
    os.utime(start.parent, (1e9, 1e9))
    world.rl("log", "--verdict", "passed")
    (index,) = world.home.rglob("*.sqlite")
    assert token.encode() in index.read_bytes()
    start.write_text(text)  # it was masked, and then rl was killed
    world.rl("gc", "--secrets")
    assert not index.exists()


def test_a_search_with_a_secret_is_not_resumed_with_a_mask(world):
    world.rl("repeat", "2", "--", "sh", "-c", "exit 0", "x", "--api-key", "abcdefgh12")
    assert b"abcdefgh12" not in kept(world)
    start = json.loads((world.journal / "searches/1/start.json").read_text())
    assert "--api-key" in json.dumps(start)
    ran = world.rl("repeat", "--resume")
    assert ran.returncode == 2
    assert "<redacted>" in ran.stderr


def test_a_kept_call_of_a_command_with_a_secret_is_replayed(world):
    world.write("t.py", "def f(n):\n    raise ValueError(n)\nf(3)\n")
    world.rl("--", sys.executable, "t.py", "--token=abcdefgh12")
    ran = world.rl("replay", "1", "--json")
    assert "was not kept" not in ran.stderr
    assert json.loads(ran.stdout)["verdict"] == "same"


def test_what_is_kept_can_be_read_by_its_owner_alone(world, tmp_path):
    loose = tmp_path / "loose"
    (loose / ".relaunch").mkdir(parents=True, mode=0o755)
    world.rl("--", "true", cwd=loose)
    world.rl("--", "true")
    for folder in (world.journal, loose / ".relaunch"):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_of_files_beside_the_code_those_that_git_ignores_are_not_kept(world):
    world.write(".gitignore", ".env\n")
    world.write(".env", f"HF_TOKEN={SECRET}\n")
    world.write("new.py", "print(1)\n")
    world.rl("--", sys.executable, "new.py")
    objects = (world.journal / "git/objects").rglob("*")
    packed = [zlib.decompress(one.read_bytes()) for one in objects if one.is_file()]
    assert any(b"print(1)" in one for one in packed)
    assert not any(SECRET.encode() in one for one in packed)


def test_of_the_environment_of_an_allocation_only_what_slurm_says_is_written(tmp_path):
    kept = tmp_path / "env"
    script = ["sh", "-c", f"exec 3>/dev/null; {alloc._GRANTED}", "rl", str(kept), "true"]
    env = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": "7", "SLURM_JWT": SECRET, "HF_TOKEN": SECRET}
    subprocess.run(script, env=env, check=True)
    assert kept.read_bytes() == b"SLURM_JOB_ID=7\0"


def test_who_a_user_is_to_slurm_goes_with_a_program_and_is_of_no_other_job():
    env = {"SLURM_JWT": SECRET, "SLURM_JOB_ID": "6"}
    assert scrubbed(env) == {"SLURM_JWT": SECRET}
    assert stale(env) == ["SLURM_JOB_ID"]
