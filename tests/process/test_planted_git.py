"""Programs that a repository's own git settings name are never started, by no verb."""

import os
import sys
from pathlib import Path

import pytest
from tests.conftest import World

from relaunch.proc.git import without_filters

HOOKS = (
    "post-checkout", "post-index-change", "reference-transaction", "pre-commit", "post-commit",
    "fsmonitor-watchman", "post-merge", "pre-auto-gc", "post-rewrite",
)  # fmt: skip
PROGRAM = """\
import sys
from pathlib import Path
number = int(Path("n").read_text())
sys.exit(number > 2)
"""


def settings(trap: Path) -> str:
    """Git's settings that name a program: each would start the trap."""
    keys = {
        "core": ("fsmonitor", "sshCommand", "alternateRefsCommand", "editor", "pager", "askPass",
                 "gitProxy"),
        "diff": ("external",),
        'diff "trap"': ("command", "textconv"),
        'filter "trap"': ("clean", "smudge", "process"),
        'merge "trap"': ("driver",),
        "uploadpack": ("packObjectsHook",),
        "gpg": ("program",),
        "credential": ("helper",),
        "alias": ("status", "log"),
        'submodule "sub"': ("update",),
        "pager": ("log", "diff", "blame", "status"),
        "gc": ("recentObjectsHook",),
    }  # fmt: skip
    text = f"[core]\n\thooksPath = {trap.parent}/hooks\n[log]\n\tshowSignature = true\n"
    text += '[filter "trap"]\n\trequired = true\n[commit]\n\tgpgSign = true\n'
    for section, names in keys.items():
        text += f"[{section}]\n" + "".join(f"\t{name} = {trap}\n" for name in names)
    return text


class Planted:
    """A project with history, trials and a search, whose git settings are traps."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sprung = world.root / "sprung"
        self.trap = world.root / "trap"
        self.trap.write_text(f'#!/bin/sh\necho "$0 $*" >> {self.sprung}\nexit 1\n')
        self.trap.chmod(0o755)
        (world.root / "hooks").mkdir()
        for name in HOOKS:
            (world.root / "hooks" / name).symlink_to(self.trap)
        world.write("x.py", PROGRAM)
        world.write(".gitattributes", "* filter=trap diff=trap merge=trap\n")
        for number in range(5):
            world.write("n", f"{number}\n")
            world.commit(f"number {number}")
        self.python = (sys.executable, "x.py")
        world.rl("--", *self.python)
        world.write("n", "1\n")
        world.rl("--", *self.python)
        self.journal = world.project / ".git/relaunch"

    def plant(self, git_dir: Path) -> None:
        """Put the traps into a repository."""
        with open(git_dir / "config", "a") as file:
            file.write(settings(self.trap))
        (git_dir / "hooks").mkdir(exist_ok=True)
        for name in HOOKS:
            hook = git_dir / "hooks" / name
            hook.unlink(missing_ok=True)
            hook.symlink_to(self.trap)
        (git_dir / "info").mkdir(exist_ok=True)
        (git_dir / "info/attributes").write_text("* filter=trap diff=trap merge=trap\n")

    def touch(self) -> None:
        """Make git look into files: their times say nothing any more."""
        for path in self.world.project.glob("*"):
            os.utime(path, (1, 1)) if path.is_file() else None


VERBS: dict[str, list[tuple[str, ...]]] = {
    "rl": [("--", "{python}", "x.py")],
    "frozen": [("--frozen", "--", "{python}", "x.py")],
    "again": [("again", "1")],
    "back": [("back", "1", "--to", "{root}/back"), ("back", "2")],
    "bisect": [("bisect", "--good", "HEAD~4", "--bad", "HEAD", "--", "{python}", "x.py")],
    "bisect changes": [("bisect", "--", "{python}", "x.py")],
    "diff": [("diff", "1", "2"), ("diff", "1", "2", "--stat")],
    "show": [("show", "1"), ("show", "2"), ("log",)],
    "gc": [("gc", "--keep", "1")],
    "doctor": [("doctor",)],
    "sets": [("set", "new", "a", "--from", "n"), ("set", "ls"), ("-s", "a", "--", "true")],
    "searches": [("repeat", "-n", "2", "--", "{python}", "x.py"),
                 ("sweep", "--env", "A=1,2", "-j", "2", "--", "{python}", "x.py")],
}  # fmt: skip


@pytest.fixture
def planted(world: World) -> Planted:
    return Planted(world)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("where", ["the repository", "the journal"])
def test_no_verb_starts_what_git_settings_name(planted: Planted, verb: str, where: str):
    world = planted.world
    planted.plant(world.project / ".git" if where == "the repository" else planted.journal / "git")
    planted.touch()
    for words in VERBS[verb]:
        done = world.rl(*(w.format(python=sys.executable, root=world.root) for w in words))
        assert "Traceback" not in done.stderr
    assert not planted.sprung.exists(), planted.sprung.read_text()


def test_the_traps_would_spring(planted: Planted):
    """Git itself, in the same repository, starts them."""
    planted.plant(planted.world.project / ".git")
    planted.touch()
    planted.world.shell("git status; git diff; git log -p -1; git checkout -q HEAD~1 -- n")
    sprung = planted.sprung.read_text()
    assert len({*sprung.split()}) > 3


def test_a_submodules_own_filters_are_not_run_and_its_edits_are_told_of(world: World):
    planted = Planted(world)
    world.git("init", "-q", str(world.root / "other"))
    other = ("-C", str(world.root / "other"))
    (world.root / "other" / "file").write_text("one\n")
    (world.root / "other" / ".gitattributes").write_text("* filter=trap\n")
    world.git(*other, "add", "-A")
    world.git(*other, "commit", "-qm", "one")
    world.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", "../other", "sub")
    world.commit("with a submodule")
    planted.plant(world.project / ".git/modules/sub")
    world.write("sub/file", "two\n")
    words = ("--good", "HEAD~4", "--bad", "HEAD", "--", *planted.python)
    done = world.rl("bisect", *words)
    assert not planted.sprung.exists(), planted.sprung.read_text()
    assert "sub" in done.stderr + done.stdout


def test_a_repository_that_names_filters_as_the_user_does_has_the_users():
    listed = "\0".join(
        (
            "global", "filter.lfs.clean\ngit-lfs clean", "global", "filter.lfs.required\ntrue",
            "local", "filter.lfs.clean\nevil", "local", "filter.a=b.process\nevil", "",
        )
    )  # fmt: skip
    assert without_filters(listed) == [
        ("filter.a=b.clean", ""),
        ("filter.a=b.smudge", ""),
        ("filter.a=b.process", ""),
        ("filter.a=b.required", "false"),
        ("filter.lfs.clean", "git-lfs clean"),
        ("filter.lfs.smudge", ""),
        ("filter.lfs.process", ""),
        ("filter.lfs.required", "true"),
    ]
