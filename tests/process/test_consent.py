"""What somebody else wrote into the settings runs after the user said so, and not before."""

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import World

RESET = "[run]\nreset = 'echo reset >> ran'\n"
SHOWN = "reset: echo reset >> ran (relaunch.toml)"


def by_somebody(world: World, message: str = "settings") -> None:
    """Commit everything as somebody else."""
    world.git("add", "-A")
    world.git("commit", "-q", "--author", "Eve <eve@example.org>", "-m", message)


def mine(world: World) -> None:
    """Say who the user is, as people do."""
    world.git("config", "--global", "user.email", "Person@Example.org")
    world.env["GIT_AUTHOR_EMAIL"] = ""


def commit(world: World) -> None:
    """Commit everything as the user."""
    world.git("add", "-A")
    world.git("commit", "-q", "--author", "A Person <person@example.org>", "-m", "mine")


def ran(world: World) -> int:
    """How often the reset has run."""
    file = world.project / "ran"
    return len(file.read_text().splitlines()) if file.exists() else 0


@pytest.fixture
def cloned(world: World) -> World:
    mine(world)
    world.write("relaunch.toml", RESET)
    by_somebody(world)
    return world


def test_a_reset_that_came_with_a_clone_is_refused_where_nobody_can_be_asked(cloned):
    done = cloned.rl("--", "true")
    assert done.returncode == 2
    assert ran(cloned) == 0
    assert done.stderr.startswith(f"rl: not run: {SHOWN}: Eve <eve@example.org> wrote it (")
    assert done.stderr.endswith("try: rl trust, or rl --no-reset\n")
    assert done.stderr.count("\n") == 1


def test_what_was_allowed_once_is_not_asked_about_again_until_it_changes(cloned):
    assert cloned.rl("trust").stdout == f"{SHOWN}\n"
    for _ in range(2):
        done = cloned.rl("--", "true")
        assert done.returncode == 0
        assert f"rl: {SHOWN}\n" in done.stderr
    assert ran(cloned) == 2
    cloned.write("relaunch.toml", RESET.replace("echo", "printf"))
    by_somebody(cloned)
    assert cloned.rl("--", "true").returncode == 2
    cloned.write("relaunch.toml", RESET)
    by_somebody(cloned)
    assert cloned.rl("--", "true").returncode == 0  # as it was allowed


def test_what_is_allowed_in_one_project_is_not_in_another(cloned):
    cloned.rl("trust")
    other = cloned.root / "other"
    cloned.git("clone", "-q", str(cloned.project), str(other))
    assert cloned.rl("--", "true", cwd=other).returncode == 2
    cloned.rl("trust", "--remove")
    assert cloned.rl("--", "true").returncode == 2


def test_what_i_wrote_myself_is_shown_and_never_asked_about(world: World):
    mine(world)
    world.write("relaunch.toml", RESET)
    for step in ("not tracked", "staged", "committed", "committed with another line"):
        if step == "staged":
            world.git("add", "-A")
        elif step == "committed":
            commit(world)
        elif step == "committed with another line":
            world.write("relaunch.toml", RESET + "clear = false\n")
            by_somebody(world, step)
        done = world.rl("--", "true")
        assert (done.returncode, f"rl: {SHOWN}\n" in done.stderr) == (0, True), step
    assert ran(world) == 4


def test_outside_of_git_what_is_mine_is_not_asked_about_where_there_is_no_git(world: World):
    tools, folder = world.root / "tools", world.root / "folder"
    for made in (tools, folder):
        made.mkdir()
    for name in ("sh", "true"):
        (tools / name).symlink_to(shutil.which(name) or name)
    (folder / "relaunch.toml").write_text(RESET)
    world.write("relaunch.toml", RESET)
    done = world.rl("--", "true", cwd=folder, env={"PATH": str(tools)})
    assert (done.returncode, f"rl: {SHOWN}\n" in done.stderr) == (0, True), done.stderr
    done = world.rl("--", "true", env={"PATH": str(tools)})
    assert done.returncode == 2
    assert "git does not say who wrote that: git cannot be started" in done.stderr


def test_a_command_of_mine_beside_settings_of_somebody_else_is_mine(cloned):
    cloned.write("relaunch.toml", RESET.replace("echo", "printf"))
    assert cloned.rl("--", "true").returncode == 0
    cloned.write("relaunch.toml", RESET + "# a comment makes it no command of mine\n")
    assert cloned.rl("--", "true").returncode == 2
    commit(cloned)
    assert cloned.rl("--", "true").returncode == 2


def test_without_an_address_every_commit_is_somebody_elses(cloned):
    cloned.git("config", "--global", "--unset", "user.email")
    assert cloned.rl("--", "true").returncode == 2


def test_in_ci_a_variable_or_a_setting_of_my_own_allows_all(cloned):
    assert cloned.rl("--", "true", env={"RELAUNCH_TRUST": "1"}).returncode == 0
    assert cloned.rl("--", "true", env={"RELAUNCH_TRUST": "0"}).returncode == 2
    config = cloned.home / ".config/relaunch/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[trust]\nask = 'never'\n")
    assert cloned.rl("--", "true").returncode == 0
    assert ran(cloned) == 2


def test_a_project_cannot_allow_itself(cloned):
    cloned.write("relaunch.toml", RESET + "[trust]\nask = 'never'\n")
    by_somebody(cloned)
    done = cloned.rl("--", "true")
    assert done.returncode == 2
    assert "relaunch.toml:3:2: `trust` is read in " in done.stderr
    assert ran(cloned) == 0


def test_what_a_relative_variable_names_in_a_clone_is_not_my_own(cloned):
    cloned.write("here/relaunch/config.toml", "[trust]\nask = 'never'\n")
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        cloned.env[name] = "here"
    assert cloned.rl("--", "true").returncode == 2
    assert ran(cloned) == 0
    cloned.rl("trust")
    assert os.listdir(cloned.project / "here/relaunch") == ["config.toml"]


def test_always_asks_about_my_own_too(world: World):
    mine(world)
    world.write("relaunch.toml", RESET)
    commit(world)
    assert world.rl("--", "true").returncode == 0
    config = world.home / ".config/relaunch/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[trust]\nask = 'always'\n")
    assert world.rl("--", "true").returncode == 2
    world.rl("trust")
    assert world.rl("--", "true").returncode == 0


def test_pyproject_and_a_marker_below_the_repository_are_asked_about_too(world: World):
    mine(world)
    text = "[project]\nname = 'x'\n[tool.relaunch.run]\nreset = ['touch ran', ['touch', 'a b']]\n"
    world.write("pyproject.toml", text)
    world.write("sub/relaunch.toml", RESET)
    by_somebody(world)
    done = world.rl("--", "true")
    assert done.returncode == 2
    assert "reset: touch ran (pyproject.toml); reset: touch 'a b' (pyproject.toml)" in done.stderr
    (world.project / "sub/.relaunch").mkdir()
    assert world.rl("--", "true", cwd=world.project / "sub").returncode == 2
    assert not (world.project / "sub/ran").exists()


VERBS = {
    "rl": ("--", "true"),
    "run": ("run", "--", "true"),
    "warm": ("warm", "--", sys.executable, "-c", "1"),
    "table": ("-n", "2", "--", "true"),
    "sweep": ("sweep", "--env", "A=1,2", "--", "true"),
    "blame": ("blame", "--", "true"),
    "probe": ("probe", "x.py:1", "--", sys.executable, "x.py"),
    "where": ("where", "x.py:1", "--", sys.executable, "x.py"),
    "sync": ("run", "--sync=compare", "--", sys.executable, "x.py"),
    "shapes": ("shapes", "x.py", "--", sys.executable, "x.py"),
    "watch": ("run", "--watch", "--", "true"),
}


@pytest.mark.parametrize("words", VERBS.values(), ids=VERBS)
def test_no_verb_runs_what_was_not_allowed(cloned, words):
    cloned.write("x.py", "x = 1\n")
    done = cloned.rl(*words)
    assert done.returncode == 2
    assert ran(cloned) == 0
    assert SHOWN in done.stderr


def test_every_verb_that_does_not_refuse_leaves_the_reset_alone(cloned):
    cloned.write("x.py", "raise SystemExit(1)\n")
    python = (sys.executable, "x.py")
    for words in (
        ("py", "1"),
        ("repeat", "-n", "2", "--", *python),
        ("grow", "--arg", "n=1..2", "--", *python, "{n}"),
        ("bisect", "--", *python),
        ("again", "-1"),
        ("back", "-1"),
        ("replay",),
    ):
        cloned.rl(*words)
        assert ran(cloned) == 0, words


def answer(world: World, text: str) -> tuple[int, str]:
    """Type `rl -- true` on a terminal, and answer."""
    near, far = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "relaunch", "--", "true"], cwd=world.project, env=world.env,
        stdin=far, stdout=far, stderr=far, start_new_session=True,
    )  # fmt: skip
    os.close(far)
    shown, sent = b"", False
    while True:
        try:
            shown += os.read(near, 4096)
        except OSError:
            break
        if b"[y/N] > " in shown and not sent:
            os.write(near, text.encode())
            sent = True
    os.close(near)
    return process.wait(), shown.decode()


@pytest.mark.parametrize(("said", "code", "times"), [("y\n", 0, 2), ("\n", 2, 0), ("\x04", 2, 0)])
def test_on_a_terminal_it_is_shown_and_asked_once(cloned, said, code, times):
    found, shown = answer(cloned, said)
    assert found == code
    assert "before the launch this would run; Eve <eve@example.org> wrote it (" in shown
    assert f"    {SHOWN}" in shown
    assert cloned.rl("--", "true").returncode == code
    assert ran(cloned) == times


def test_what_is_shown_holds_nothing_that_a_terminal_obeys(cloned):
    cloned.write("relaunch.toml", '[run]\nreset = "true \\u001b]0;x\\u0007\\nfalse"\n')
    by_somebody(cloned)
    found, shown = answer(cloned, "n\n")
    assert found == 2
    assert "reset: true \\x1b]0;x\\x07\\nfalse (relaunch.toml)" in shown
    assert "\x1b]0;" not in cloned.rl("trust", "--show").stdout


def test_what_is_allowed_is_listed_as_json(cloned):
    cloned.rl("trust", "--json")
    told = json.loads(cloned.rl("trust", "--list", "--json").stdout)
    (one,) = told["consents"]
    assert (told["schema"], told["folders"]) == ("relaunch/trust/1", [])
    assert (one["project"], one["lines"]) == (str(cloned.project), [SHOWN])
    store = Path(cloned.home / ".local/state/relaunch/trust.json")
    assert store.stat().st_mode & 0o777 == 0o600


def test_a_form_that_git_does_not_keep_makes_no_command_mine(world: World):
    mine(world)
    world.write(".gitattributes", "relaunch.toml ident\n")
    world.write("relaunch.toml", "[run]\nreset = 'echo reset $Id$ >> ran'\n")
    by_somebody(world)
    clone = world.root / "clone"
    world.git("clone", "-q", str(world.project), str(clone))
    assert "$Id: " in (clone / "relaunch.toml").read_text()
    for text in ("", "# a line of mine\n"):
        with open(clone / "relaunch.toml", "a") as file:
            file.write(text)
        assert world.rl("--", "true", cwd=clone).returncode == 2
    assert not (clone / "ran").exists()


def test_settings_behind_a_filter_of_mine_or_a_link_are_those_of_who_committed_them(world: World):
    mine(world)
    world.git("config", "--global", "filter.turn.clean", "rev")
    world.git("config", "--global", "filter.turn.smudge", "rev")
    world.write(".gitattributes", "relaunch.toml filter=turn\n")
    world.write("relaunch.toml", RESET)
    by_somebody(world)
    assert world.rl("--", "true").returncode == 2
    (world.project / "relaunch.toml").unlink()
    world.write(".gitattributes", "")
    world.write("other/settings.toml", RESET)
    (world.project / "relaunch.toml").symlink_to("other/settings.toml")
    by_somebody(world)
    assert world.rl("--", "true").returncode == 2
    assert ran(world) == 0


TAIL = "[record]\nmax_file = '1M'\n\n\n\n\n\n# end\n"


def on_a_branch_of_somebody(world: World) -> None:
    """Have them add the reset on `pr`, and the user change the end of the file on `main`."""
    mine(world)
    world.write("relaunch.toml", TAIL)
    commit(world)
    world.git("branch", "-M", "main")
    world.git("checkout", "-q", "-b", "pr")
    world.write("relaunch.toml", RESET + TAIL)
    by_somebody(world)
    world.git("checkout", "-q", "main")
    world.write("relaunch.toml", TAIL.replace("end", "the end"))
    commit(world)


def merged(world: World) -> None:
    world.git("merge", "-q", "--no-edit", "pr")


def merged_and_edited(world: World) -> None:
    world.git("merge", "-q", "--no-edit", "pr")
    world.write("relaunch.toml", RESET + TAIL.replace("end", "an end"))
    commit(world)


def merging(world: World) -> None:
    world.git("merge", "-q", "--no-commit", "pr")
    world.git("branch", "-q", "-D", "pr")


def checked_out(world: World) -> None:
    world.git("checkout", "-q", "pr", "--", "relaunch.toml")


def made_readable(world: World) -> None:
    world.write("relaunch.toml", RESET + TAIL + "[broken")
    by_somebody(world)
    world.write("relaunch.toml", RESET + TAIL)
    commit(world)


def under_another_name(world: World) -> None:
    world.git("rm", "-q", "relaunch.toml")
    world.write("other.toml", RESET.replace("run", "tool.relaunch.run"))
    (world.project / "pyproject.toml").symlink_to("other.toml")
    by_somebody(world)
    world.write("other.toml", RESET.replace("run", "tool.relaunch.run") + "# end\n")
    commit(world)


WAYS = (merged, merged_and_edited, merging, checked_out, made_readable, under_another_name)


@pytest.mark.parametrize("way", WAYS)
def test_a_reset_that_i_merged_or_checked_out_is_still_of_who_wrote_it(world: World, way):
    on_a_branch_of_somebody(world)
    way(world)
    done = world.rl("--", "true")
    assert (done.returncode, ran(world)) == (2, 0), done.stderr
    assert "Eve <eve@example.org> wrote it (" in done.stderr


def test_a_reset_of_mine_is_mine_after_a_merge_of_somebodys_changes(world: World):
    mine(world)
    world.write("relaunch.toml", TAIL)
    commit(world)
    world.git("checkout", "-q", "-b", "pr")
    world.write("relaunch.toml", TAIL.replace("end", "the end"))
    by_somebody(world)
    world.git("checkout", "-q", "-")
    world.write("relaunch.toml", RESET + TAIL)
    commit(world)
    world.git("merge", "-q", "--no-edit", "pr")
    assert world.rl("--", "true").returncode == 0
    assert ran(world) == 1


def test_in_a_shallow_clone_the_last_commit_makes_no_command_mine(cloned):
    cloned.write("relaunch.toml", RESET + "# mine\n")
    commit(cloned)
    shallow = cloned.root / "shallow"
    cloned.git("clone", "-q", "--depth", "1", f"file://{cloned.project}", str(shallow))
    done = cloned.rl("--", "true", cwd=shallow)
    assert done.returncode == 2
    assert f"not run: {SHOWN}: who wrote it is not in this clone: its history" in done.stderr
    assert not (shallow / "ran").exists()
    (shallow / "relaunch.toml").write_text(RESET.replace("echo", "printf"))
    assert cloned.rl("--", "true", cwd=shallow).returncode == 0  # written here


BARE = ("HEAD", "config", "objects/info/kept", "refs/heads/kept")
"""What makes a folder a bare repository for git, wherever it lies."""


def test_a_bare_repository_among_the_files_of_a_clone_makes_no_command_mine(world: World):
    mine(world)
    sub = world.project / "sub"
    for name in BARE:
        world.write(f"sub/{name}", "ref: refs/heads/none\n" if name == "HEAD" else "")
    world.write("sub/config", "[core]\nrepositoryformatversion = 0\nbare = true\n")
    world.write("sub/relaunch.toml", RESET)
    by_somebody(world)
    (sub / ".relaunch").mkdir()
    done = world.rl("--", "true", cwd=sub)
    assert done.returncode == 2, done.stderr
    assert f"not run: {SHOWN}: git does not say who wrote that: " in done.stderr
    assert not (sub / "ran").exists()


def test_a_git_file_that_leads_nowhere_makes_no_command_mine(cloned: World):
    tree = cloned.root / "tree"
    cloned.git("worktree", "add", "-q", str(tree))
    (cloned.project / ".git").rename(cloned.root / "moved")
    for folder in (tree, tree / "sub"):
        (folder / ".relaunch").mkdir(parents=True)
        (folder / "relaunch.toml").write_text(RESET)
        done = cloned.rl("--", "true", cwd=folder)
        assert done.returncode == 2
        assert "git does not say who wrote that: " in done.stderr
        assert not (folder / "ran").exists()


def test_on_a_branch_without_a_commit_the_other_branches_say_who_wrote_it(cloned: World):
    cloned.git("checkout", "-q", "--orphan", "new")
    assert cloned.rl("--", "true").returncode == 2
    cloned.write("relaunch.toml", RESET.replace("echo", "printf"))
    assert cloned.rl("--", "true").returncode == 0


@pytest.mark.parametrize("to", ["../other/relaunch.toml", ".git/kept.toml", "via.toml"])
def test_a_link_of_somebody_to_a_file_of_mine_makes_no_command_mine(world: World, to: str):
    mine(world)
    (world.root / "other").mkdir()
    world.git("init", "-q", cwd=world.root / "other")
    (world.root / "other/relaunch.toml").write_text(RESET)
    (world.project / ".git/kept.toml").write_text(RESET)
    (world.project / "via.toml").symlink_to("../other/relaunch.toml")
    link = world.project / "relaunch.toml"
    if to == "via.toml":
        by_somebody(world)
        link.symlink_to(to)
        commit(world)
    else:
        link.symlink_to(to)
        by_somebody(world)
    done = world.rl("--", "true")
    assert (done.returncode, ran(world)) == (2, 0), done.stderr
    assert "Eve <eve@example.org> wrote it (" in done.stderr
    link.unlink()
    link.symlink_to(world.root / "other/relaunch.toml")  # as I want it: no commit has that
    (world.project / "via.toml").unlink()
    assert world.rl("--", "true").returncode == 0


ACCENT = RESET.replace("reset >>", "reset \xe9 >>")
OTHER_FORMS = {
    "a pointer": ("relaunch.toml filter=large\n", RESET, RESET + "# mine\n"),
    "another encoding": ("relaunch.toml working-tree-encoding=latin1\n", ACCENT, ACCENT + "#\n"),
    "not readable": ("", RESET + "[broken", RESET),
}
"""Attributes, the file as somebody committed it, and as the user has edited it."""


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_an_edit_of_mine_beside_a_command_that_git_keeps_in_another_form(world: World, form: str):
    mine(world)
    world.git("config", "--global", "filter.large.clean", "echo oid $(git hash-object --stdin)")
    attributes, committed, edited = OTHER_FORMS[form]
    world.write(".gitattributes", attributes)
    world.write("relaunch.toml", committed)
    by_somebody(world)
    world.write("relaunch.toml", edited)
    done = world.rl("--", "true")
    assert (done.returncode, ran(world)) == (2, 0), done.stderr
    assert "Eve <eve@example.org> wrote it (" in done.stderr


def test_a_filter_that_the_repository_itself_names_is_not_run_to_learn_who_wrote_a_command(
    cloned: World,
):
    trap = cloned.root / "sprung"
    cloned.git("config", "filter.trap.clean", "cat")
    cloned.git("config", "filter.trap.smudge", f"touch {trap}; cat")
    cloned.write(".gitattributes", "relaunch.toml filter=trap\n")
    cloned.write("relaunch.toml", RESET.replace("echo", "echo another"))
    done = cloned.rl("--", "true")
    assert (done.returncode, ran(cloned)) == (2, 0), done.stderr
    assert not trap.exists()


def test_a_bare_rl_asks_about_what_took_the_place_of_a_hidden_password(world: World):
    mine(world)
    world.write("relaunch.toml", "[run]\nreset = 'curl -V -u me:password-of-mine'\n")
    commit(world)
    assert world.rl("--", "true").returncode == 0
    assert world.rl().returncode == 0
    world.write("relaunch.toml", "[run]\nreset = 'curl -V -u me:$(touch${IFS}ran)'\n")
    by_somebody(world)
    for words in ((), ("again", "1"), ("-n", "2")):
        done = world.rl(*words)
        assert done.returncode == 2
        assert not (world.project / "ran").exists(), words
        assert "the secret was not kept" in done.stderr


def test_what_runs_again_is_shown_again_and_asked_about_while_the_settings_say_it(cloned: World):
    assert cloned.rl("--", "true", env={"RELAUNCH_TRUST": "1"}).returncode == 0
    done = cloned.rl()
    assert done.returncode == 2
    assert done.stderr.startswith(f"rl: not run: {SHOWN}: Eve <eve@example.org> wrote it (")
    cloned.rl("trust")
    assert f"rl: {SHOWN}\n" in cloned.rl().stderr
    assert f"rl: {SHOWN}\n" in cloned.rl("-n", "2").stderr
    cloned.write("relaunch.toml", "")
    earlier = "rl: reset: echo reset >> ran (of #1)\n"
    assert earlier in cloned.rl("again", "1").stderr
    assert earlier.replace("#1", "#1.2") not in cloned.rl("--no-reset").stderr
