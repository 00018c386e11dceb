"""What lies in the folder, or where PYTHONPATH leads, is for programs: nothing of ours loads it."""

import shutil
import sys
from pathlib import Path

import pytest
from tests.conftest import World
from tests.needs import INSTALLED, needs
from tests.supervising import PATIENCE_S

RL = (sys.executable, str(Path(__file__).parents[2] / "bin/rl"))
"""The script that an installer puts in place, with the Python that it names."""
AT_EVERY_START = {"encodings", "sitecustomize", "usercustomize"}
"""What Python loads before the first line of any program."""
FOR_A_MODULE = (
    "relaunch", "abc", "collections", "contextlib", "functools", "importlib", "keyword", "operator",
    "reprlib", "types", "warnings",
)  # fmt: skip
"""What Python itself looks for in the folder with `-m relaunch`."""
TRAP = """\
import sys
with open({sprung!r}, "a") as file:
    file.write(f"{{__name__}} in {{sys.orig_argv[:6]}}\\n")
"""


@pytest.fixture
def sprung(world: World) -> Path:
    """A file in which each module of the project that was loaded is named; one for every module."""
    found = world.root / "sprung"
    for name in {*sys.stdlib_module_names, "pip", "relaunch"} - AT_EVERY_START:
        if name not in sys.builtin_module_names:
            (world.project / f"{name}.py").write_text(TRAP.format(sprung=str(found)))
    world.write("x.txt", "1\n2\n3\n")
    world.commit()
    return found


VERBS: dict[str, tuple[str, ...]] = {
    "run": ("--", "false"),
    "frozen": ("--frozen", "--hang", "60", "--memory", "1G", "--", "false"),
    "table": ("-n", "2", "--", "false"),
    "again": ("again", "1"),
    "log": ("log", "--json", "--text", "x"),
    "show": ("show", "1", "--json"),
    "diff": ("diff", "1", "2"),
    "back": ("back", "1"),
    "mark": ("mark", "1", "bad", "why"),
    "bisect": ("bisect", "--good", "HEAD~1", "--bad", "HEAD", "--", "test", "!", "-e", "re.py"),
    "releases": ("bisect", "--release", "attrs==21.1.0..21.2.0", "--", "false"),
    "sweep": ("sweep", "--env", "A=1,2", "-j", "2", "--", "false"),
    "grow": ("grow", "n=1..4", "--", "sh", "-c", "test {n} -lt 2"),
    "shrink": ("shrink", "x.txt", "--", "grep", "-v", "2", "x.txt"),
    "repeat": ("repeat", "-n", "3", "--", "false"),
    "race": ("race", "-n", "2", "--", "false"),
    "blame": ("blame", "--", "cat", "nowhere"),
    "stacks": ("stacks", "1"),
    "watch": ("watch", "--once"),
    "warm": ("warm", "status"),
    "sets": ("set", "ls"),
    "tiny": ("tiny", "payload", "2x3"),
    "trust": ("trust", "--list"),
    "where": ("where", "json", "email"),
    "py": ("py", "--show", "1 + 1"),
    "py that asks": ("py", "--show", "not_there.x + json.x"),
    "doctor": ("doctor",),
    "completion": ("completion", "bash"),
    "gc": ("gc", "--keep", "1"),
    "help": ("run", "--help"),
}


ASK_A_PYTHON = ("where", "py that asks")
"""Of the user's, which starts with the PYTHONPATH of the user, and what its packages load then."""


@pytest.mark.parametrize("verb", VERBS)
def test_no_module_of_the_folder_is_loaded(world: World, sprung: Path, verb: str):
    words = VERBS[verb]
    for path in ("",) if verb in ASK_A_PYTHON else ("", f".:{world.project}"):
        env = {"PYTHONPATH": path, "PYTHONSTARTUP": "re.py"}
        for before in (("--", "true"), ("--", "false"), words):
            found = world.start([*RL, *before], env=env)
            _, err = found.communicate(timeout=PATIENCE_S)
        assert not sprung.exists(), sprung.read_text()
        assert b"Traceback" not in err, err.decode()


def test_as_a_module_too_nothing_but_the_package_itself_is_looked_for_there(
    world: World, sprung: Path
):
    for name in FOR_A_MODULE:
        (world.project / f"{name}.py").unlink()
    for path in ("", "."):
        done = world.rl("doctor", env={"PYTHONPATH": path}, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        assert not sprung.exists(), sprung.read_text()


ASKS = """\
import sys
from relaunch.proc.ours import ask_python
from relaunch.trial.place.pythons import version_of
python = sys.argv[1]
said = ask_python(python, "", "print(sys.path[0] == '')")
print(version_of(python).rpartition(".")[0], said.text)
"""


@pytest.mark.parametrize("version", INSTALLED)
def test_a_python_that_is_asked_loads_no_module_of_the_folder(
    world: World, sprung: Path, version: str
):
    for safe in ("", "1"):
        words = [sys.executable, "-I", "-c", ASKS, INSTALLED[version]]
        found = world.start(words, env={"PYTHONSAFEPATH": safe})
        out, err = found.communicate(timeout=PATIENCE_S)
        assert not sprung.exists(), sprung.read_text()
        assert out.decode().split() == [version, str(not safe)], err


def test_the_program_sees_its_path_as_it_was(world: World):
    code = "import os, sys; print(os.environ['PYTHONPATH'], sys.path[0] == '')"
    python = shutil.which("python3") or sys.executable
    plain = world.shell(f'PYTHONPATH=a:b {python} -c "{code}"').stdout
    done = world.rl("-q", "--", python, "-c", code, env={"PYTHONPATH": "a:b"})
    assert done.stdout.split()[0].split(":")[-2:] == ["a", "b"]
    assert done.stdout.split()[1] == plain.split()[1]


def test_rl_calls_itself_again_without_the_folders_modules(world: World, sprung: Path):
    needs("tmux")
    from relaunch.proc.ours import rl_words

    done = world.start([*rl_words(), "--version"], env={"PYTHONPATH": "."})
    out, err = done.communicate()
    assert (done.returncode, out.split()[:1]) == (0, [b"rl"]), err
    assert not sprung.exists()


TOOLS = (
    "git", "uv", "py-spy", "pystack", "strace", "tmux", "sinfo", "scontrol", "squeue", "srun",
    "salloc", "python", "python3", "python3.9", "ps", "cc", "gcc", "gdb", "nvidia-smi", "pip",
)  # fmt: skip
BARE_PATHS = ("{here}:", "{here}:.", ".:{here}")


@pytest.mark.parametrize("path", BARE_PATHS)
def test_no_tool_that_lies_in_the_folder_is_started(world: World, path: str):
    sprung, here = world.root / "sprung", world.root / "tools"
    here.mkdir()
    for tool in ("git", "sh", "true", "false", "sleep"):  # all others are missing
        (here / tool).symlink_to(shutil.which(tool) or tool)
    for name in TOOLS:
        (world.project / name).write_text(f"#!/bin/sh\necho $0 $* >> {sprung}\n")
        (world.project / name).chmod(0o755)
    world.commit()
    env = {"PATH": path.format(here=here)}
    for words in (
        ("--", "true"), ("--hang", "0.2", "--", "sleep", "1"), ("log",), ("doctor",),
        ("bisect", "--good", "HEAD~1", "--bad", "HEAD", "--", "false"), ("stacks", "--job", "1"),
        ("blame", "--", "false"), ("watch", "--once"), ("--slurm", "--", "true"), ("stacks", "1"),
    ):  # fmt: skip
        found = world.start([*RL, *words], env=env)
        _, err = found.communicate(timeout=PATIENCE_S)
        assert b"Traceback" not in err, err.decode()
        assert b"internal fault" not in err, err.decode()
        assert not sprung.exists(), (words, sprung.read_text())


def test_no_part_of_a_tool_that_lies_in_the_folder_is_started_either(world: World):
    needs("cc")
    needs("strace")
    sprung = world.root / "sprung"
    for name in ("cat", "sleep", "strace", "cc", "gcc", "cc1", "as", "collect2", "ld"):
        (world.project / name).write_text(f"#!/bin/sh\necho $0 $* >> {sprung}\nexit 1\n")
        (world.project / name).chmod(0o755)
    env = {"PATH": f".:{world.env['PATH']}"}
    for words in (("blame", "--", "/bin/true"), ("blame", "--by", "strace", "--", "/bin/true")):
        done = world.rl(*words, env=env)
        assert done.returncode == 0, done.stderr
        assert "it saw nothing" not in done.stderr
    world.rl("doctor", env=env)
    assert not sprung.exists(), sprung.read_text()


def test_no_part_of_the_shell_that_holds_an_allocation_is_started_from_the_folder(world: World):
    sprung, here = world.root / "sprung", world.root / "tools"
    here.mkdir()
    (here / "salloc").write_text("#!/bin/sh\necho salloc: error: no nodes >&2\nexit 1\n")
    (here / "salloc").chmod(0o755)
    for name in ("tail", "cat", "sed", "tr", "sleep", "salloc", "sinfo", "squeue"):
        (world.project / name).write_text(f"#!/bin/sh\necho $0 $* >> {sprung}\nexit 1\n")
        (world.project / name).chmod(0o755)
    done = world.rl("alloc", "--", "-N1", env={"PATH": f".:{here}:{world.env['PATH']}"})
    assert done.returncode == 2, done.stderr
    assert "no nodes" in done.stderr
    assert not sprung.exists(), sprung.read_text()
