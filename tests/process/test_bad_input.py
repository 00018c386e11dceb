"""Bad input gets one clear line and the right exit code; nothing lost, no traceback of ours."""

import json
import sys

import pytest


def one_line(ran, code, *texts):
    assert ran.returncode == code, ran.stderr
    ours = [line for line in ran.stderr.splitlines() if line.startswith("rl")]
    assert "Traceback" not in ran.stderr
    assert any(all(text in line for text in texts) for line in ours), ran.stderr


@pytest.mark.parametrize(
    ("words", "code", "texts"),
    [
        (["lgo"], 2, ["no verb `lgo`", "did you mean `rl log`"]),
        (["xyzzy"], 2, ["no verb `xyzzy`", "rl --help"]),
        (["python3", "train.py"], 2, ["came without `--`", "rl -- python3 train.py"]),
        (["-m", "x", "ls", "-l"], 2, ["`ls` came before `--`", "rl -m x -- ls -l"]),
        (["--"], 2, ["no command after `--`"]),
        ([], 2, ["nothing to repeat yet", "rl -- python train.py"]),
        (["--nope", "--", "true"], 2, ["no option `--nope`"]),
        (["-n", "0", "--", "true"], 2, ["-n takes 1 or more"]),
        (["-n", "x", "--", "true"], 2, ["-n takes a whole number, not `x`"]),
        (["--until", "(", "--", "true"], 2, ["--until: `(` is no regular expression"]),
        (["--env", "X", "--", "true"], 2, ["--env takes NAME=VALUE, not `X`"]),
        (["--name", "3", "--", "true"], 2, ["name"]),
        (["-s", "nope", "--", "true"], 2, ["nope"]),
        (["-s", ",", "--", "true"], 2, ["-s names no set"]),
        (["--src", "nowhere", "--", "true"], 2, ["nowhere"]),
        (["--", "no-such-program-at-all"], 127, ["no-such-program-at-all"]),
        (["--", "./README.md"], 126, ["README.md"]),
        (["--", "/"], 126, ["/"]),
        (["--reset", "exit 7", "--", "true"], 2, ["exit 7"]),
        (["show", "99"], 2, ["no trial #99"]),
        (["diff", "1", "2"], 2, ["no trial"]),
        (["again", "99"], 2, ["no trial #99"]),
        (["back", "99"], 2, ["no trial #99"]),
        (["mark", "99", "good"], 2, ["no trial #99"]),
        (["log", "--nope"], 2, ["--nope", "rl log --help"]),
        (["set", "use", "nope"], 2, ["nope"]),
    ],
)
def test_wrong_words_get_one_clear_line(world, words, code, texts):
    one_line(world.rl(*words), code, *texts)


def test_a_program_that_is_not_found_is_still_an_attempt(world):
    world.rl("--", "no-such-program-at-all")
    assert (world.journal / "trials" / "1" / "end.json").exists()
    assert "no-such-program" in world.rl("log").stdout + world.rl("show", "1").stdout


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("[run]\nreset = \n", ["relaunch.toml:2:9"]),
        ("[run]\nrest = 'x'\n", ["relaunch.toml:2:1", "reset"]),
        ("[metrics]\nloss = '('\n", ["relaunch.toml", "loss"]),
    ],
)
def test_a_corrupt_config_is_named_with_its_line(world, text, texts):
    world.write("relaunch.toml", text)
    one_line(world.rl("--", "true"), 2, *texts)


def test_a_corrupt_trial_spoils_neither_the_log_nor_the_next_attempt(world):
    for _ in range(3):
        world.rl("--", sys.executable, "-c", "pass")
        world.write("README.md", world.project.joinpath("README.md").read_text() + "x")
    (world.journal / "trials" / "2" / "start.json").write_text('{"half')
    (world.journal / "trials" / "3" / "start.json").unlink()
    listed = world.rl("log")
    assert listed.returncode == 0
    assert "unreadable" in listed.stdout + listed.stderr
    one_line(world.rl("show", "2"), 2, "start.json")
    ran = world.rl()
    assert ran.returncode == 0
    assert "rl #4" in ran.stderr


@pytest.mark.parametrize(
    ("field", "value"), [("timeout_s", "soon"), ("resets", 3), ("code", {}), ("command", None)]
)
def test_a_field_of_another_kind_is_said_in_one_line(world, field, value):
    world.rl("--", "true")
    path = world.journal / "trials/1/start.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    for words in (["again", "1"], []):
        done = world.rl(*words)
        if field == "code" and not words:  # rl takes the code of today
            assert done.returncode == 0, done.stderr
            continue
        one_line(done, 2, "#1", "was not recorded" if field == "code" else "does not hold")
        assert len(done.stderr.splitlines()) == 1, done.stderr


def test_the_current_directory_is_gone(world):
    ran = world.shell("mkdir d && cd d && rmdir ../d && rl -- true")
    assert ran.returncode == 2
    assert "the current directory is gone" in ran.stderr
