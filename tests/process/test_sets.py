"""`rl set` as a person types it."""

import json
import os

import pytest
from tests.conftest import World


def conf(world: World) -> None:
    world.write("conf/precision.yaml", "# how exact\ndtype: fp32\nlr: 1\n")
    world.write("conf/deep/model.yaml", "layers: 2\n")


def test_the_first_set_turns_the_folder_into_a_link(world: World) -> None:
    conf(world)
    done = world.rl("set", "new", "bf16", "--from", "conf")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "conf@bf16  (a copy of base; conf -> conf@base)\n"
    assert os.readlink(world.project / "conf") == "conf@base"
    for name in ("conf", "conf@base", "conf@bf16"):
        assert (world.project / name / "deep/model.yaml").read_text() == "layers: 2\n"


def test_sets_are_listed_compared_and_put_to_use(world: World) -> None:
    conf(world)
    world.rl("set", "new", "bf16", "--from", "conf")
    world.write("conf@bf16/precision.yaml", "# how exact\ndtype: bf16\nlr: 1\n")
    assert world.rl("set", "ls").stdout == "* base  conf@base\n  bf16  conf@bf16\n"
    different = world.rl("set", "diff", "base", "bf16").stdout
    assert "conf/precision.yaml" in different
    assert "-dtype: fp32" in different
    assert "+dtype: bf16" in different
    assert "model" not in different
    assert world.rl("set", "use", "bf16").stdout == "conf -> conf@bf16\n"
    assert world.rl("set", "ls").stdout == "  base  conf@base\n* bf16  conf@bf16\n"
    assert world.rl("set", "diff").stdout == different
    world.rl("set", "new", "third")
    copied = (world.project / "conf@third/precision.yaml").read_text()
    assert "bf16" in copied


def test_lists_and_differences_come_as_json(world: World) -> None:
    conf(world)
    world.rl("set", "new", "bf16", "--from", "conf")
    world.write("conf@bf16/new.yaml", "x: 1\n")
    listed = json.loads(world.rl("set", "ls", "--json").stdout)
    assert listed["schema"] == "relaunch/set-ls/1"
    assert [(row["name"], row["in_place"]) for row in listed["sets"]] == [
        ("base", True),
        ("bf16", False),
    ]
    found = json.loads(world.rl("set", "diff", "base", "bf16", "--json").stdout)
    assert found["files"] == [{"file": "conf/new.yaml", "lines": ["only in bf16"]}]


def test_a_single_file_and_a_folder_deep_inside_move_together(world: World) -> None:
    world.write("app/settings.toml", "a = 1\n")
    world.write("app/data/rows.csv", "1\n")
    words = ("--from", "app/settings.toml", "--from", "app/data")
    assert world.rl("set", "new", "tiny", *words).returncode == 0
    assert os.readlink(world.project / "app/settings.toml") == "settings.toml@base"
    done = world.rl("set", "use", "tiny")
    assert done.stdout == ("app/settings.toml -> settings.toml@tiny\napp/data -> data@tiny\n")


def test_a_pattern_in_the_settings_names_the_sets(world: World) -> None:
    world.write("relaunch.toml", '[sets]\n"run.yaml" = "runs/run-*.yaml"\n')
    world.write("run.yaml", "a: 1\n")
    assert world.rl("set", "new", "fast").returncode == 0
    assert os.readlink(world.project / "run.yaml") == "runs/run-base.yaml"
    assert (world.project / "runs/run-fast.yaml").read_text() == "a: 1\n"
    assert world.rl("set", "use", "fast").stdout == "run.yaml -> runs/run-fast.yaml\n"


OUTSIDE = {
    "../home/.profile": "relaunch.toml:2:1: `sets.../home/.profile`: must stay inside the project",
    "/etc/profile": "relaunch.toml:2:1: `sets./etc/profile`: must stay inside the project",
    ".git/hooks/post-checkout": "`sets..git/hooks/post-checkout`: is git's own",
    "home/.profile": "[sets] home/.profile would be made in ",
    "git/post-checkout": "[sets] git/post-checkout would be made in ",
}


@pytest.mark.parametrize("link", OUTSIDE)
def test_the_settings_of_a_project_make_no_link_elsewhere(world: World, link: str) -> None:
    world.write("relaunch.toml", f'[sets]\n"{link}" = "conf@*"\n')
    world.write("conf@a", "planted\n")
    (world.project / ".git/hooks").mkdir()
    (world.project / "home").symlink_to("../home")
    (world.project / "git").symlink_to(".git/hooks")
    (world.home / "real").write_text("mine\n")
    (world.home / ".profile").symlink_to("real")
    for words in (("-s", "a", "--", "cat", "../home/.profile"), ("set", "use", "a"),
                  ("set", "new", "b")):  # fmt: skip
        done = world.rl(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert OUTSIDE[link] in done.stderr
    assert os.readlink(world.home / ".profile") == "real"
    assert os.listdir(world.project / ".git/hooks") == []


def outside(world: World, pattern: str) -> None:
    """Have settings that want sets in the home, or in what is git's."""
    world.write("relaunch.toml", f'[sets]\nconf = "{pattern}"\n')
    (world.project / ".git/hooks").mkdir()
    (world.project / "home").symlink_to("../home")
    (world.project / "git").symlink_to(".git/hooks")


NEW_OUTSIDE = {
    ".git/hooks/post-*": "`sets.conf`: is git's own",
    "git/post-*": "[sets] git/post-commit would be made in ",
    "home/*.pth": "[sets] home/commit.pth would be made in ",
}


@pytest.mark.parametrize("pattern", NEW_OUTSIDE)
def test_the_settings_of_a_project_make_no_set_elsewhere(world: World, pattern: str) -> None:
    outside(world, pattern)
    world.write("conf", "planted\n")
    done = world.rl("set", "new", "commit")
    assert (done.returncode, done.stdout) == (2, "")
    assert NEW_OUTSIDE[pattern] in done.stderr
    assert os.listdir(world.project / ".git/hooks") == []
    assert not [*world.home.glob("*.pth")]


def test_a_mix_or_a_smaller_set_is_not_made_elsewhere_either(world: World) -> None:
    outside(world, "git/post-*")
    for name in ("base", "other"):
        world.write(f"git/post-{name}", f"{name}\n")
    (world.project / "conf").symlink_to("git/post-base")
    program = ("--", "sh", "-c", "! grep other conf")
    for words in (("bisect", "--here", "--set", "base", "other"), ("shrink", "--set", "other")):
        done = world.rl(*words, *program)
        assert done.returncode == 2, done.stderr
        assert " would be made in " in done.stderr
    assert world.rl("-s", "other", *program).returncode == 1
    assert sorted(os.listdir(world.project / ".git/hooks")) == ["post-base", "post-other"]


def test_a_tracked_folder_is_turned_with_a_warning_and_git_keeps_its_own(world: World) -> None:
    conf(world)
    head = world.commit()
    done = world.rl("set", "new", "bf16", "--from", "conf")
    assert done.returncode == 0
    assert "git tracks conf, which is a link now" in done.stderr
    assert world.git("rev-parse", "HEAD").strip() == head
    assert world.git("diff", "--cached", "--name-only") == ""
    assert "conf@base" in world.git("status", "--porcelain")


def test_bad_input_is_one_line_and_exit_2_and_changes_nothing(world: World) -> None:
    conf(world)
    for words, told in (
        (("new", "x"), "which file or folder?"),
        (("new", "x", "--from", "nothing"), "nothing does not exist"),
        (("new", "a/b", "--from", "conf"), "`a/b` cannot be the name of a set"),
        (("new", "a,b", "--from", "conf"), "`a,b` cannot be the name of a set"),
        (("new", "x", "--from", "/etc"), "/etc is outside of the project"),
        (("new", "x", "--from", "."), "is the project itself"),
        (("use", "x"), "no sets here"),
        (("diff", "x", "y"), "no sets here"),
        (("new",), "NAME"),
        (("frobnicate",), "frobnicate"),
    ):
        done = world.rl("set", *words)
        assert done.returncode == 2, (words, done.stderr)
        assert told in done.stderr, (words, done.stderr)
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
    assert sorted(os.listdir(world.project)) == [".git", "README.md", "conf"]
    world.rl("set", "new", "bf16", "--from", "conf")
    for words, told in (
        (("new", "bf16"), "set `bf16` exists"),
        (("new", "x", "--from", "conf@bf16"), "is a set already"),
        (("use", "fp8"), "no set `fp8` (there are: base, bf16)"),
        (("diff", "base", "fp8"), "no set `fp8`"),
    ):
        done = world.rl("set", *words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert told in done.stderr, (words, done.stderr)


def test_a_project_without_sets_says_how_to_make_one(world: World) -> None:
    done = world.rl("set", "ls")
    assert (done.returncode, done.stdout) == (0, "")
    assert "rl set new NAME --from conf" in done.stderr
    assert json.loads(world.rl("set", "ls", "--json").stdout)["sets"] == []


def test_a_link_replaced_by_a_folder_is_not_destroyed(world: World) -> None:
    conf(world)
    world.rl("set", "new", "bf16", "--from", "conf")
    (world.project / "conf").unlink()
    world.write("conf/mine.yaml", "mine\n")
    done = world.rl("set", "use", "bf16")
    assert done.returncode == 2
    assert "is no link any more" in done.stderr
    assert (world.project / "conf/mine.yaml").read_text() == "mine\n"


def two_sets(world: World) -> None:
    conf(world)
    world.rl("set", "new", "bf16", "--from", "conf")
    world.write("conf@bf16/precision.yaml", "dtype: bf16\n")


def test_a_trial_sees_its_set_and_the_link_is_put_back(world: World) -> None:
    two_sets(world)
    done = world.rl("-s", "bf16", "--", "cat", "conf/precision.yaml")
    assert (done.returncode, done.stdout) == (0, "dtype: bf16\n"), done.stderr
    assert os.readlink(world.project / "conf") == "conf@base"
    assert "dtype: fp32" in world.rl("--", "cat", "conf/precision.yaml").stdout


def test_an_rl_killed_in_a_trial_is_repaired_by_the_next(world: World) -> None:
    two_sets(world)
    running = world.start(["rl", "-s", "bf16", "--", "sh", "-c", "cat conf/*; sleep 60"])
    assert running.stdout is not None
    assert running.stdout.readline() == b"dtype: bf16\n"
    assert os.readlink(world.project / "conf") == "conf@bf16"
    running.kill()
    running.communicate(timeout=300)
    done = world.rl("--", "cat", "conf/precision.yaml")
    assert "dtype: fp32" in done.stdout
    assert os.readlink(world.project / "conf") == "conf@base"


def test_an_unknown_set_is_one_line_and_nothing_runs(world: World) -> None:
    two_sets(world)
    done = world.rl("-s", "fp8", "--", "touch", "ran")
    assert done.returncode == 2
    assert "no set `fp8` (there are: base, bf16)" in done.stderr
    assert not (world.project / "ran").exists()


def test_a_flag_is_handed_to_the_program(world: World) -> None:
    world.write("relaunch.toml", '[sets]\nflag = "MODE"\n')
    done = world.rl("-s", "quick", "--", "sh", "-c", "echo $MODE")
    assert (done.returncode, done.stdout) == (0, "quick\n"), done.stderr


def test_sets_compared_by_trials_end_with_the_line_that_parts_them(world: World) -> None:
    two_sets(world)
    done = world.rl("-s", "base,bf16", "-n", "2", "--", "grep", "-q", "fp32", "conf/precision.yaml")
    assert "only conf/precision.yaml differs" in done.stdout + done.stderr


@pytest.mark.parametrize(("path", "owner"), [(".git", "git"), (".git/info", "git")])
def test_what_is_gits_own_becomes_no_set(world: World, path: str, owner: str) -> None:
    done = world.rl("set", "new", "x", "--from", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"rl: {path} is {owner}'s own")
    assert not os.path.islink(world.project / ".git")
