"""Shell completion as the real bash, zsh and fish see it."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import World
from tests.needs import needs
from tests.shells import Terminal

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src/relaunch/desk/completions"


@pytest.fixture
def here(world: World) -> World:
    """A project with two config sets and a file."""
    for name in ("base", "bf16"):
        world.write(f"conf@{name}/precision.yaml", "dtype: x\n")
    world.write("train model.py", "")
    world.write("clone/setup.py", "")
    world.env["PATH"] += ":/usr/bin:/bin"
    return world


def bash(world: World, *words: str) -> list[str]:
    """Complete the last word as bash would; `=` and `:` come as words of their own there."""
    script = (
        f". {shlex.quote(str(FOLDER / 'rl.bash'))}\n"
        f"COMP_WORDS=({' '.join(map(shlex.quote, ('rl', *words)))})\n"
        f"COMP_CWORD={len(words)}\n"
        "_rl; printf '%s\\n' \"${COMPREPLY[@]}\"\n"
    )
    return _lines(world, ["bash", "--norc", "-c", script])


def fish(world: World, line: str) -> list[str]:
    needs("fish")
    script = f"source {FOLDER / 'rl.fish'}; complete -C {shlex.quote(line)}"
    found = _lines(world, ["fish", "--no-config", "-c", script])
    return [entry.split("\t")[0] for entry in found]


def _lines(world: World, argv: list[str]) -> list[str]:
    done = subprocess.run(
        argv, env=world.env, cwd=world.project, capture_output=True, text=True, timeout=300
    )
    assert done.stderr == ""
    return [line for line in done.stdout.split("\n") if line]


def zsh(world: World, typed: str, expected: str) -> None:
    """Type at an interactive zsh that has the completion, and wait for what it makes of it."""
    needs("zsh")
    rc = world.home / ".zshrc"
    rc.write_text(
        "PS1='ready> '\nunsetopt zle_bracketed_paste 2>/dev/null\nautoload -Uz compinit\n"
        f"compinit -u -D\nsource {shlex.quote(str(FOLDER / '_rl'))}\n"
    )
    shell = Terminal(["zsh", "-i", "-o", "no_global_rcs"], world.env, world.project)
    try:
        at = shell.wait("ready> ")
        shell.type(typed)
        shell.wait(expected, after=at)
    finally:
        shell.close()


def test_the_files_are_what_the_parsers_say_today():
    script = [sys.executable, str(ROOT / "scripts/completions.py"), "--check"]
    done = subprocess.run(script, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_rl_completion_prints_the_file(world: World, shell):
    done = world.rl("completion", shell)
    name = {"bash": "rl.bash", "zsh": "_rl", "fish": "rl.fish"}[shell]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (FOLDER / name).read_text()


def test_an_unknown_shell_is_one_line(world: World):
    done = world.rl("completion", "tcsh")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_bash_completes_verbs_options_and_values(here):
    assert bash(here, "lo") == ["log"]
    assert {"run", "log", "doctor"} <= set(bash(here, ""))
    assert bash(here, "doctor", "--un") == ["--undo"]
    assert bash(here, "doctor", "--fix", "hi") == ["history"]
    assert "--reset" in bash(here, "--res")
    assert "--reset" in bash(here, "run", "--res")
    assert bash(here, "--color", "=", "al") == ["always"]
    assert bash(here, "--unsaved", "re") == ["refuse"]
    assert bash(here, "-m", "") == []
    assert bash(here, "--src", "cl") == ["clone"]
    assert bash(here, "completion", "f") == ["fish"]


def test_bash_completes_sets_joined_by_commas(here):
    assert bash(here, "-s", "") == ["base", "bf16"]
    assert bash(here, "-s", "base,bf") == ["base,bf16"]
    assert bash(here, "set", "use", "bf") == ["bf16"]
    assert bash(here, "set", "u") == ["use"]
    assert bash(here, "bisect", "--set", "ba") == ["base"]
    assert bash(here, "bisect", "--set", "base", "bf") == ["bf16"]


def test_no_name_of_a_file_is_run_by_the_tab_key(here):
    for name in (".relaunch/searches/3$(touch sprung)", ".relaunch/searches/4`touch sprung`"):
        (here.project / name).mkdir(parents=True)
    (here.project / ".relaunch/searches/5").mkdir()
    (here.project / "conf@$(touch sprung)").mkdir()
    assert bash(here, "show", "search/") == ["search/5"]
    assert bash(here, "-s", "$") == [r"\$\(touch\ sprung\)"]
    assert not (here.project / "sprung").exists()


def test_bash_leaves_the_words_after_the_dashes_to_the_program(here):
    assert "python3" in bash(here, "--", "python")
    assert bash(here, "-m", "why", "--", "python", "tra") == ["train model.py"]
    assert "log" not in bash(here, "--", "lo")


def test_bash_completes_on_the_tab_key(here):
    (here.home / ".bashrc").write_text(f"PS1='ready> '\n. {FOLDER / 'rl.bash'}\n")
    shell = Terminal(["bash", "-i"], here.env, here.project)
    try:
        at = shell.wait("ready> ")
        shell.type("rl comple\tba\t")
        at = shell.wait("rl completion bash ", after=at)
        shell.type("\x15rl -- cat trai\t")
        shell.wait(r"cat train\\ model\.py ", after=at)
    finally:
        shell.close()


def test_fish_completes_verbs_options_and_values(here):
    assert fish(here, "rl lo") == ["log"]
    assert fish(here, "rl doctor --un") == ["--undo"]
    assert fish(here, "rl doctor --fix hi") == ["history"]
    assert "--reset" in fish(here, "rl --res")
    assert fish(here, "rl --color al") == ["always"]
    assert fish(here, "rl -s base,bf") == ["base,bf16"]
    assert fish(here, "rl --src cl") == ["clone/"]
    assert fish(here, "rl set use bf") == ["bf16"]
    assert fish(here, "rl set u") == ["use"]
    assert fish(here, "rl bisect --set base bf") == ["bf16"]


def test_fish_leaves_the_words_after_the_dashes_to_the_program(here):
    assert "log" not in fish(here, "rl -- lo")
    assert any(word.startswith("python3") for word in fish(here, "rl -- pytho"))
    assert "train model.py" in fish(here, "rl -m why -- cat tra")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("rl comple\tba\t", "rl completion bash"),
        ("rl doctor --un\t", "rl doctor --undo"),
        ("rl doctor --fix hist\t", "rl doctor --fix history"),
        ("rl -s bf\t", "rl -s bf16"),
        ("rl set u\tbf\t", "rl set use bf16"),
        ("rl bisect --set base bf\t", "rl bisect --set base bf16"),
        ("rl --unsaved=ref\t", "rl --unsaved=refuse"),
        ("rl -m why -- cat trai\t", r"rl -m why -- cat train\\ model\.py"),
    ],
)
def test_zsh_completes_on_the_tab_key(here, typed, expected):
    zsh(here, typed, expected)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_doctor_installs_a_completion_that_new_shells_have(here, shell):
    needs(shell)
    here.env["SHELL"] = f"/bin/{shell}"
    rc = here.home / f".{shell}rc"
    rc.write_text("PS1='ready> '\n")
    done = here.rl("doctor", "--fix", "completion", "--yes")
    assert done.returncode == 0, done.stderr
    flags = ["-i"] if shell == "bash" else ["-i", "-o", "no_global_rcs"]
    terminal = Terminal([shell, *flags], here.env, here.project)
    try:
        at = terminal.wait("ready> ")
        terminal.type("rl completi\tfi\t")
        terminal.wait("rl completion fish", after=at)
    finally:
        terminal.close()


def test_doctor_installs_a_completion_that_fish_has(here):
    needs("fish")
    here.env["SHELL"] = shutil.which("fish") or "fish"
    assert here.rl("doctor", "--fix", "completion", "--yes").returncode == 0
    # fish loads a completion only for a command that exists.
    (here.bin / "relaunch").symlink_to("rl")
    for name in ("rl", "relaunch"):
        found = _lines(here, ["fish", "-c", f"complete -C '{name} completi'"])
        assert [line.split("\t")[0] for line in found] == ["completion"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_files_start_no_program_when_a_shell_starts(here, shell, tmp_path):
    needs(shell)
    (tmp_path / "empty").mkdir()
    name = {"bash": "rl.bash", "zsh": "_rl", "fish": "rl.fish"}[shell]
    before = "compdef() { :; };" if shell == "zsh" else ""
    quiet = {"bash": "--norc", "zsh": "-f", "fish": "--no-config"}[shell]
    done = subprocess.run(
        [shutil.which(shell) or shell, quiet, "-c", f"{before} source {FOLDER / name}; echo fine"],
        env={**here.env, "PATH": str(tmp_path / "empty")}, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_searches_of_the_journal_are_offered_to_show_alone(here):
    for number in (1, 12):
        (here.journal / "searches" / str(number)).mkdir(parents=True)
    (here.journal / "searches" / ".gone-7-3").mkdir()
    assert bash(here, "show", "search/") == ["search/1", "search/12"]
    assert bash(here, "diff", "search/") == []
    assert {"search/1", "search/12", "@good"} <= set(bash(here, "show", ""))
    assert fish(here, "rl show search/") == ["search/1", "search/12"]
    zsh(here, "rl show search/12\t", "search/12 ")
    zsh(here, "rl show sea\t", "search/1")
