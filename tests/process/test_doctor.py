"""rl doctor: what it finds is so, what it fixes works in the real program, and undo is exact."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import World
from tests.depth import takes_turns
from tests.needs import INSTALLED, missing, needs
from tests.shells import Terminal

PYTHONS = ("python3.11", "python3.12", "python3.13")


@pytest.fixture(autouse=True)
def _cache(world: World, native_cache: Path) -> None:
    """Have the shim of `rl blame` compiled already: each report would do so anew."""
    world.env["XDG_CACHE_HOME"] = str(native_cache)


@pytest.fixture
def bash_world(world: World) -> World:
    world.env["SHELL"] = "/bin/bash"
    world.env["XDG_STATE_HOME"] = str(world.root / "state")
    (world.home / ".bashrc").write_text("shopt -s histappend\nPS1='ready> '\n")
    return world


@pytest.fixture
def zsh_world(world: World) -> World:
    needs("zsh")
    world.env["SHELL"] = "/usr/bin/zsh"
    (world.home / ".zshrc").write_text("PS1='ready> '\n")
    return world


def fix(world: World, name: str) -> None:
    done = world.rl("doctor", "--fix", name, "--yes")
    assert done.returncode == 0, done.stderr


def report(world: World) -> dict[str, Any]:
    done = world.rl("doctor", "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def advice(world: World, fix: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in report(world)["desk"] if one["fix"] == fix)
    return found


def tree(folder: Path) -> dict[str, Any]:
    """Everything under a folder, exactly; the backups are kept elsewhere."""
    found = {}
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        mtime_ns = 0 if path.is_dir() else info.st_mtime_ns
        found[str(path)] = (info.st_mode, content, mtime_ns)
    return found


# --- the shell's history --------------------------------------------------------------------------


def killed_history(world: World, argv: list[str], history: str) -> list[str]:
    """Run three commands in an interactive shell, kill it, and see what it kept."""
    shell = Terminal(argv, world.env, world.project)
    try:
        at = shell.wait("ready> ")
        for word in ("one", "two", "three"):
            shell.type(f"echo said-{word}\n")
            at = shell.wait(rf"[\r\n]said-{word}\s[\s\S]*ready> ", after=at)
        shell.kill()
    finally:
        shell.close()
    path = world.home / history
    text = path.read_text() if path.exists() else ""
    return re.findall(r"echo said-(\w+)", text)


def test_a_killed_bash_loses_its_history_without_the_fix_and_keeps_it_with(bash_world):
    assert killed_history(bash_world, ["bash", "-i"], ".bash_history") == []
    assert "`history -a` missing" in advice(bash_world, "history")["text"]
    fix(bash_world, "history")
    kept = killed_history(bash_world, ["bash", "-i"], ".bash_history")
    assert kept == ["one", "two", "three"]
    assert advice(bash_world, "history")["ok"]


def test_the_history_fix_leaves_a_prompt_command_working(bash_world):
    bashrc = bash_world.home / ".bashrc"
    bashrc.write_text("PS1='ready> '\nPROMPT_COMMAND='echo [status $?];'\n")
    fix(bash_world, "history")
    shell = Terminal(["bash", "-i"], bash_world.env, bash_world.project)
    try:
        at = shell.wait("ready> ")
        shell.type("(exit 7)\n")
        at = shell.wait(r"\[status 7\]\s+ready> ", after=at)
        shell.type("declare -p PROMPT_COMMAND; echo done\n")
        shell.wait(r"history -a[\s\S]*done", after=at)
        assert "syntax error" not in shell.screen
    finally:
        shell.close()


def test_a_killed_zsh_loses_its_history_without_the_fix_and_keeps_it_with(zsh_world):
    argv = ["zsh", "-i", "-o", "no_global_rcs"]
    assert killed_history(zsh_world, argv, ".zsh_history") == []
    assert not advice(zsh_world, "history")["ok"]
    fix(zsh_world, "history")
    assert killed_history(zsh_world, argv, ".zsh_history") == ["one", "two", "three"]
    assert advice(zsh_world, "history")["ok"]


def test_history_written_by_a_sourced_file_is_seen(bash_world):
    (bash_world.home / ".bash_prompt").write_text("PROMPT_COMMAND='history -a'\n")
    (bash_world.home / ".bashrc").write_text("[ -f ~/.bash_prompt ] && . ~/.bash_prompt\n")
    assert advice(bash_world, "history")["ok"]


# --- inputrc, nano, vim, pdb ----------------------------------------------------------------------


def test_arrow_up_finds_what_begins_with_the_typed_words(bash_world):
    fix(bash_world, "inputrc")
    shell = Terminal(["bash", "-i"], bash_world.env, bash_world.project)
    try:
        at = shell.wait("ready> ")
        for word in ("alpha", "beta"):
            shell.type(f"echo {word}-$((40 + 2))\n")
            at = shell.wait(rf"{word}-42\s+ready> ", after=at)
        shell.type("echo a\x1b[A")
        at = shell.wait(r"echo alpha-\$", after=at)
        shell.type("\n")
        shell.wait(r"[\r\n]alpha-42\s+ready> ", after=at)
    finally:
        shell.close()


def test_a_new_inputrc_keeps_the_systems_bindings(bash_world):
    fix(bash_world, "inputrc")
    assert (bash_world.home / ".inputrc").read_text().startswith("$include /etc/inputrc\n")


def test_nano_leaves_a_lock_beside_the_file_it_edits(world: World):
    needs("nano")
    fix(world, "nano")
    world.write("code.py", "x = 1\n")
    nano = Terminal(["nano", "code.py"], world.env, world.project)
    try:
        nano.wait("x = 1")
        assert (world.project / ".code.py.swp").exists()
    finally:
        nano.close()


def test_vim_without_swap_files_is_told_and_mended(world: World):
    needs("vim")
    vimrc = world.home / ".vimrc"
    vimrc.write_text('" set swapfile\nset nocompatible noswapfile\n')
    assert "invisible" in advice(world, "vim")["text"]
    fix(world, "vim")
    assert advice(world, "vim")["ok"]
    ask = ["vim", "-es", "-u", str(vimrc), "+verbose set swapfile?", "+qa!"]
    said = subprocess.run(ask, env=world.env, capture_output=True, text=True, timeout=300)
    shown = said.stdout + said.stderr
    assert "swapfile" in shown
    assert "noswapfile" not in shown


@pytest.mark.parametrize("python", PYTHONS)
def test_the_pdb_aliases_work_in_every_python_we_support(world: World, python):
    found = subprocess.run([python, "-c", ""], env=world.env, capture_output=True, check=False)
    if python == f"python3.{sys.version_info.minor}":
        python = sys.executable
    elif found.returncode:
        pytest.skip(f"no working {python} on this PATH")
    fix(world, "pdb")
    world.write(
        "prog.py",
        "class Box:\n    def __init__(self):\n        self.size = 41\n\n\n"
        "def grow(box):\n    box.size += 1\n    return box\n\n\n"
        "box = Box()\ngrow(box)\nprint('the end')\n",
    )
    typed = "b 12\nc\npd box\nsl\nnl\npd\nq\n"
    done = subprocess.run(
        [python, "-m", "pdb", "prog.py"], input=typed, env=world.env, cwd=world.project,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    shown = done.stdout
    assert "{'size': 41}" in shown, shown
    assert re.search(r"6\s+->\s*def grow", shown), shown
    assert re.search(r"7\s+->\s+box\.size", shown), shown
    assert "{'box': <__main__.Box" in shown, shown
    assert "***" not in shown, shown
    assert "%" not in shown, shown


# --- writing and taking back ----------------------------------------------------------------------


def test_without_a_terminal_and_without_yes_nothing_is_written(bash_world):
    before = tree(bash_world.home)
    done = bash_world.rl("doctor", "--fix", "all")
    assert done.returncode == 2
    assert "+# >>> relaunch: history" in done.stdout
    assert "add --yes" in done.stderr
    assert tree(bash_world.home) == before


def test_on_a_terminal_it_asks_and_no_means_no(bash_world):
    argv = [sys.executable, "-m", "relaunch", "doctor", "--fix", "history"]
    before = tree(bash_world.home)
    for answer, code in (("n", 1), ("y", 0)):
        terminal = Terminal(argv, bash_world.env, bash_world.project)
        try:
            terminal.wait(r"write 1 file\? \[y/N\] ")
            assert tree(bash_world.home) == before
            terminal.type(f"{answer}\n")
            terminal.wait("nothing was changed" if code else "backup in")
            assert terminal.process.wait(300) == code
        finally:
            terminal.close()
    assert tree(bash_world.home) != before


def test_everything_can_be_fixed_at_once_and_taken_back_exactly(bash_world):
    bashrc = bash_world.home / ".bashrc"
    real = bash_world.home / "dotfiles"
    real.mkdir()
    (real / "nanorc").write_bytes(b"# caf\xe9, no newline at the end")
    (real / "nanorc").chmod(0o640)
    (bash_world.home / ".nanorc").symlink_to("dotfiles/nanorc")
    os.utime(bashrc, ns=(10**18, 10**18 + 7))
    before = tree(bash_world.home)
    fix(bash_world, "all")
    assert all(one["ok"] for one in report(bash_world)["desk"])
    assert (bash_world.home / ".nanorc").is_symlink()
    assert (real / "nanorc").stat().st_mode & 0o777 == 0o640
    assert (real / "nanorc").read_bytes().startswith(b"# caf\xe9, no newline at the end\n")
    done = bash_world.rl("doctor", "--undo")
    assert done.returncode == 0, done.stderr
    assert tree(bash_world.home) == before


def test_fixing_twice_changes_nothing_the_second_time(bash_world):
    fix(bash_world, "all")
    before = tree(bash_world.home)
    done = bash_world.rl("doctor", "--fix", "all", "--yes")
    assert "nothing to fix" in done.stderr
    assert tree(bash_world.home) == before


def test_undo_takes_back_one_fix_at_a_time_latest_first(bash_world):
    start = tree(bash_world.home)
    fix(bash_world, "history")
    middle = tree(bash_world.home)
    fix(bash_world, "completion")
    assert bash_world.rl("doctor", "--undo").returncode == 0
    assert tree(bash_world.home) == middle
    assert bash_world.rl("doctor", "--undo").returncode == 0
    assert tree(bash_world.home) == start
    done = bash_world.rl("doctor", "--undo")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "nothing to undo" in done.stderr


def test_undo_refuses_a_file_that_was_edited_since_and_shows_how(bash_world):
    bashrc = bash_world.home / ".bashrc"
    old = bashrc.read_bytes()
    fix(bash_world, "all")
    with bashrc.open("a") as file:
        file.write("alias mine=true\n")
    edited = tree(bash_world.home)
    done = bash_world.rl("doctor", "--undo")
    assert done.returncode == 2
    assert "was edited since" in done.stderr
    assert "-alias mine=true" in done.stdout
    assert tree(bash_world.home) == edited
    assert bash_world.rl("doctor", "--undo", "--force").returncode == 0
    assert bashrc.read_bytes() == old


def test_a_file_that_cannot_be_read_is_one_line(bash_world):
    (bash_world.home / ".inputrc").mkdir()
    done = bash_world.rl("doctor", "--fix", "inputrc", "--yes")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert ".inputrc cannot be read: Is a directory" in done.stderr


@pytest.mark.parametrize("words", [["--fix", "histroy"], ["--fix", "all", "--undo"], ["--fixx"]])
def test_wrong_words_are_one_line_and_exit_2(world: World, words):
    done = world.rl("doctor", *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


# --- the report -----------------------------------------------------------------------------------


def test_the_report_changes_nothing_and_fits_80_columns(bash_world):
    before = tree(bash_world.home), tree(bash_world.project)
    done = bash_world.rl("doctor")
    assert done.returncode == 0, done.stderr
    assert max(len(line) for line in done.stdout.splitlines() if "/" not in line) <= 80
    assert "fix: rl doctor --fix history" in done.stdout
    assert "\x1b" not in done.stdout
    assert (tree(bash_world.home), tree(bash_world.project)) == before


def test_where_nothing_can_be_written_it_says_what_to_type(world: World):
    if os.geteuid() != 0:
        pytest.skip("a /tmp that cannot be written to needs root")
    # Still readable: this checkout may lie there.
    locked = "mount --rbind {0} {0} && mount -o remount,bind,ro {0}"
    mounts = " && ".join(locked.format(folder) for folder in ("/tmp", "/var/tmp"))
    line = f"{mounts} && cd /proc && exec {sys.executable} -m relaunch doctor"
    paths = os.pathsep.join(path for path in sys.path if path)
    env = {**world.env, "PYTHONPATH": paths}
    words = ["unshare", "-m", "sh", "-c", line]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    said = "rl: things are tried in a temporary folder, and none can be written to"
    assert (done.returncode, done.stderr) == (2, f"{said}   try: TMPDIR=FOLDER rl doctor\n")


def test_every_ladder_stands_on_a_rung_and_the_hook_is_proven(world: World):
    found = {ladder["name"]: ladder for ladder in report(world)["ladders"]}
    assert all(ladder["taken"] for ladder in found.values())
    assert found["code"]["taken"] == "your repository"
    assert found["failures"]["taken"] == "hook"
    assert found["journal"]["taken"] == "locked"


def test_without_git_the_ladder_says_what_is_lost(world: World, tmp_path):
    (tmp_path / "empty").mkdir()
    done = world.rl("doctor", "--json", env={"PATH": str(tmp_path / "empty")})
    code = next(x for x in json.loads(done.stdout)["ladders"] if x["name"] == "code")
    assert code["taken"] == "none"
    assert code["rungs"][1]["raise_it"] == "install git"


@pytest.mark.parametrize("words", ["doctor", "doctor --json"])
def test_in_a_directory_that_is_gone_it_says_so_in_one_line(world: World, words: str):
    done = world.shell(f"mkdir gone && cd gone && rmdir ../gone && rl {words}")
    assert (done.returncode, done.stdout) == (2, "")
    said = [line for line in done.stderr.splitlines() if line.startswith("rl: ")]
    assert said == ["rl: the current directory is gone   try: cd ~"]
    assert "internal fault" not in done.stderr


# --- what a search among commits needs ------------------------------------------------------------


def rungs(world: World, name: str, **env: str) -> tuple[str, list[dict[str, Any]]]:
    """Return what a ladder stands on, and all its rungs."""
    done = world.rl("doctor", "--json", env=env)
    assert done.returncode == 0, done.stderr
    (found,) = [one for one in json.loads(done.stdout)["ladders"] if one["name"] == name]
    return found["taken"], found["rungs"]


def linked(world: World, *programs: str) -> str:
    """Return a PATH on which there are these programs alone."""
    folder = world.root / "few"
    folder.mkdir(exist_ok=True)
    for program in programs:
        (folder / os.path.basename(program)).symlink_to(program)
    return str(folder)


@takes_turns
def test_commits_are_checked_out_beside_a_repository_alone(world: World):
    assert rungs(world, "commits")[0] == "checkouts beside"
    shutil.rmtree(world.project / ".git")
    taken, found = rungs(world, "commits")
    assert (taken, found[0]["raise_it"]) == ("none", "run it inside a git repository")
    path = linked(world, sys.executable)
    assert rungs(world, "commits", PATH=path)[1][0]["raise_it"] == "install git"


def test_the_installer_is_tried_and_what_would_be_better_is_said(world: World, monkeypatch):
    beside = os.path.dirname(sys.executable)
    monkeypatch.setenv("PATH", f"{beside}{os.pathsep}{os.environ['PATH']}")
    needs("uv")
    git, uv = shutil.which("git"), shutil.which("uv")
    assert git is not None
    assert uv is not None
    path = linked(world, git, uv)
    real = os.path.realpath(sys.executable)
    (world.root / "few/python").write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    (world.root / "few/python").chmod(0o755)
    assert rungs(world, "packages", PATH=path)[0] == "uv"
    (world.root / "few/uv").unlink()
    (world.root / "few/uv").write_text('#!/bin/sh\ntest "$1" = --version\n')
    (world.root / "few/uv").chmod(0o755)
    taken, found = rungs(world, "packages", PATH=path)
    assert taken in ("pip", "venv")  # that uv answers, and makes nothing
    assert found[0]["raise_it"] == "pip install uv"
    assert not found[0]["ok"]


def test_other_pythons_are_counted(world: World):
    env = {"PATH": linked(world, sys.executable), "PYENV_ROOT": str(world.root / "pyenv")}
    mine = f"{sys.version_info[0]}.{sys.version_info[1]}.{sys.version_info[2]}"
    taken, found = rungs(world, "pythons", **env)
    assert taken == mine
    assert "uv python install" in found[0]["raise_it"]
    others = {version: path for version, path in INSTALLED.items() if not mine.startswith(version)}
    for version, path in others.items():
        (world.root / "pyenv/versions" / version / "bin").mkdir(parents=True)
        (world.root / "pyenv/versions" / version / "bin/python").symlink_to(path)
    if not others:
        missing("this test counts another Python than its own")
    taken, found = rungs(world, "pythons", **env)
    assert taken == f"{len(others)} besides {mine}"
    assert all(f"{version}." in found[0]["means"] for version in others)


# --- warm relaunches ------------------------------------------------------------------------------


def warm_rung(world: World) -> dict[str, Any]:
    (ladder,) = [one for one in report(world)["ladders"] if one["name"] == "warm"]
    rung: dict[str, Any] = ladder["rungs"][0]
    assert ladder["taken"] == ("snapshots" if rung["ok"] else "cold")
    return rung


def use_python(world: World, executable: str) -> None:
    folder = world.root / "python"
    folder.mkdir()
    (folder / "python").symlink_to(executable)
    world.env["PATH"] = f"{folder}:{world.env['PATH']}"


def test_a_warm_relaunch_is_tried_with_the_projects_python(world):
    use_python(world, sys.executable)
    rung = warm_rung(world)
    assert rung["ok"], rung
    assert str(world.root / "python" / "python") in rung["means"]


def test_a_python_that_has_no_snapshots_is_named_with_what_it_needs(world):
    # The newest that is too old: an older one takes ten seconds to make an environment.
    kept = [Path.home() / ".pyenv/versions" / one for one in ("3.10.*", "3.9.*", "3.[0-8].*")]
    found = [path for one in kept for path in glob.glob(f"{one}/bin/python")]
    found += [path for one in ("3.10", "3.9") if (path := shutil.which(f"python{one}"))]
    if not found:
        pytest.skip("no Python older than 3.11 is here")
    use_python(world, found[0])
    rung = warm_rung(world)
    assert not rung["ok"]
    assert rung["raise_it"].startswith("CPython 3.11 to 3.13 for the project, not cpython 3.")


def test_what_is_in_the_way_of_every_snapshot_is_found(world):
    use_python(world, sys.executable)
    site = world.root / "site"
    site.mkdir()
    lines = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True,"
    (site / "sitecustomize.py").write_text(f"{lines} name='spy').start()\n")
    world.env["PYTHONPATH"] = str(site)
    rung = warm_rung(world)
    assert not rung["ok"]
    assert rung["raise_it"] == "a tiny program left no snapshot: a thread is running: spy", rung
