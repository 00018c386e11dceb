"""The rules of the house that a machine can check."""

import argparse
import ast
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from tests.conftest import World

from relaunch import settings
from relaunch.cli.main import VERBS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
DEAR = {
    "argparse", "asyncio", "ctypes", "dataclasses", "datetime", "difflib", "enum", "hashlib",
    "importlib.metadata", "json", "logging", "pathlib", "re", "rich", "shlex", "shutil", "signal",
    "sqlite3", "subprocess", "tempfile", "threading", "tomllib", "typing",
}  # fmt: skip


def modules() -> list[str]:
    """Every module of ours by its dotted name."""
    found = []
    for path in sorted((SOURCE / "relaunch").rglob("*.py")):
        if all(
            (folder / "__init__.py").exists() for folder in path.parents if SOURCE in folder.parents
        ):
            dotted = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
            found.append(dotted.removesuffix(".__init__"))
    return found


def clean_env() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "RELAUNCH", "COV"))}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1"}


# --- modules --------------------------------------------------------------------------------------


# Each module is imported in a fork of an interpreter that has imported one of those it imports
# itself, and nothing else: as alone as in a fresh one, without loading all of them each time.
IMPORT_EACH = """
import importlib, json, os, sys
below = json.loads(sys.argv[1])

def visit(name):
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    code = 0
    try:
        importlib.import_module(name)
        print("imported", name, flush=True)
        for one in below.get(name, ()):
            visit(one)
    except BaseException as error:
        print(name, type(error).__name__, error, flush=True)
        code = 1
    os._exit(code)

for one in below[""]:
    visit(one)
"""


def imports_of(name: str, known: set[str]) -> set[str]:
    """Modules of ours that this one imports at its top level, and the package it lies in."""
    path = SOURCE.joinpath(*name.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found = {name.rpartition(".")[0]}
    for node in ast.parse(source.read_bytes()).body:
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(f"{node.module}.{one.name}" for one in node.names)}
    return found & known


def import_tree() -> dict[str, list[str]]:
    """Hang each module below the one of its imports that loads the most itself."""
    known = set(modules())
    direct = {name: imports_of(name, known) for name in known}

    def loads(name: str) -> set[str]:
        found, coming = set[str](), [name]
        while coming:
            if (one := coming.pop()) not in found:
                found.add(one)
                coming += direct[one]
        return found

    loaded = {name: loads(name) for name in known}
    below: dict[str, list[str]] = {"": []}
    for name in sorted(known):
        before = sorted(one for one in direct[name] if name not in loaded[one])
        dearest = max(before, key=lambda one: len(loaded[one]), default="")
        below.setdefault(dearest, []).append(name)
    return below


def test_each_module_can_be_imported_alone_without_a_warning():
    names = modules()
    assert len(names) > 20
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_EACH, json.dumps(import_tree())],
        env=clean_env(), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.stderr == ""
    assert sorted(done.stdout.splitlines()) == [f"imported {name}" for name in sorted(names)]


MAY_WRITE = {"cli/draw.py", "cli/screen.py"}
"""What reaches the terminal passes through one place, where nothing stays that it would obey."""
TO_A_PIPE = {
    "desk/oneliner/ask.py", "tiny/models/worker.py", "trial/launch/held_agent.py",
    "trial/place/installer.py",
}  # fmt: skip
"""Processes of ours whose output another one of ours reads."""


def test_only_one_place_writes_to_the_terminal():
    found = []
    for path in (SOURCE / "relaunch").rglob("*.py"):
        name = path.relative_to(SOURCE / "relaunch").as_posix()
        if name.startswith("inside/") or name in MAY_WRITE | TO_A_PIPE:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = (one for one in ast.walk(tree) if isinstance(one, ast.Call))
        found += [f"{name}:{one.lineno}" for one in calls if is_direct_write(one)]
    assert not found


def is_direct_write(node: ast.Call) -> bool:
    words = ast.unparse(node.func)
    is_numbered = words == "os.write" and ast.unparse(node.args[0]) in ("1", "2")
    is_stream = words.startswith(("sys.stdout.", "sys.stderr.", "sys.__std"))
    return words == "print" or is_numbered or (is_stream and ".write" in words)


def test_every_module_opens_with_a_line_that_says_what_it_is_for():
    for path in (SOURCE / "relaunch").rglob("*.py"):
        first = path.read_text(encoding="utf-8").split("\n", 1)[0]
        assert first.startswith('"""'), path
        assert len(first) > 15, path


def test_the_layers_hold():
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as l; l()"],
        cwd=ROOT, env=clean_env(), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


# --- the hot path ---------------------------------------------------------------------------------


def loaded(world: World, *words: str) -> set[str]:
    """Modules that a command line has loaded by its end, beyond those of bare Python."""
    script = (
        "import sys; bare = set(sys.modules)\n"
        "import os; from relaunch.cli.main import main\n"
        "try: main(sys.argv[2:])\n"
        "finally:\n"
        "    with open(sys.argv[1], 'w') as file: file.write('\\n'.join(set(sys.modules) - bare))\n"
    )
    listing = world.root / "loaded"
    done = subprocess.run(
        [sys.executable, "-c", script, str(listing), *words],
        env=world.env, cwd=world.project, capture_output=True, text=True, timeout=300,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return set(listing.read_text().split("\n"))


def test_help_loads_no_command_module_and_nothing_dear(world: World):
    found = loaded(world, "--help")
    commands = {f"relaunch.cli.{verb}" for verb in VERBS}
    assert found & commands == set()
    assert found & DEAR == set()


def test_a_launch_loads_nothing_dear(world: World):
    for _ in range(2):  # settings written this very moment are kept parsed from the second on
        world.rl("--", "true")
    assert loaded(world, "-m", "again", "--", "true") & DEAR == set()


def test_a_one_liner_loads_nothing_dear(world: World):
    for _ in range(2):
        world.rl("py", "1")
    assert loaded(world, "py", "x = 3; for i in range(x): json.dumps(i)") & DEAR == set()


def test_the_log_loads_nothing_dear(world: World):
    for word in ("one", "two"):
        world.rl("-m", word, "--", "echo", word)
    world.rl("log")
    assert loaded(world, "log") & DEAR == set()


# --- the verbs ------------------------------------------------------------------------------------


def module_of(verb: str) -> ModuleType:
    return importlib.import_module(f"relaunch.cli.{verb}")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_a_real_example(verb):
    module = module_of(verb)
    lines = [line for line in module.EXAMPLES.splitlines() if line.startswith("  ")]
    named = ("rl ",) if verb == "run" else (f"rl {verb}", f'cd "$(rl {verb}', "rl doctor")
    assert [line for line in lines if line.strip().startswith(named)], module.EXAMPLES


@pytest.mark.parametrize("verb", VERBS)
def test_every_example_is_made_of_words_the_verb_knows(verb):
    parser = argparse.ArgumentParser(prog=f"rl {verb}")
    module_of(verb).arguments(parser)
    known = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", parser.format_help()))
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                known |= set(re.findall(r"--?[a-zA-Z][\w-]*", below.format_help()))
    for line in module_of(verb).EXAMPLES.splitlines():
        used = line.strip().split("  ")[0].split("#")[0].split(" -- ")[0].split("|")[0]
        if used.startswith(f"rl {verb} "):
            words = re.findall(r"(?<=\s)--?[a-zA-Z][\w-]*", re.sub(r"'[^']*'|\"[^\"]*\"", "", used))
            assert set(words) <= known, line


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_page_in_the_docs(verb):
    assert f"reference/verbs/{verb}.md" in (ROOT / "mkdocs.yml").read_text()
    page = script("reference").page(verb, VERBS[verb])
    assert page.startswith(f"# rl {verb}\n")
    assert "    rl " in page


@cache
def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"house_{name}", ROOT / f"scripts/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_help_of_every_verb_is_printed_and_fits_80_columns(world: World):
    code = (
        "import sys\nfrom relaunch.cli.main import main\n"
        f"for verb in {list(VERBS)!r}:\n    print('==', verb, main([verb, '--help']), flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**world.env, "COLUMNS": "80"}, cwd=world.project,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.stderr == ""
    assert re.findall(r"^== (\w+) 0$", done.stdout, re.MULTILINE) == list(VERBS)
    options = [line for line in done.stdout.splitlines() if line.startswith("  -")]
    assert max(len(line) for line in options) <= 80


# --- words on paper -------------------------------------------------------------------------------


def test_the_readme_is_short_and_shows_a_session_early():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) < 150
    assert any(line.startswith("$ rl ") for line in lines[:15])
    assert {"$ make demo", "$ make test"} <= {line.split("  ")[0] for line in lines}


def test_every_setting_is_in_the_reference():
    text = (ROOT / "docs/reference/settings.md").read_text()
    for section, keys in settings.KEYS.items():
        for key in keys:
            if key != "*":
                assert f"`{section}.{key}`" in text, f"{section}.{key}"


def test_the_example_in_the_settings_reference_is_valid():
    text = (ROOT / "docs/reference/settings.md").read_text()
    example = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    "))
    checked = settings.parse(example.encode(), "settings.md", own=True)
    assert set(checked) == set(settings.KEYS)


def test_every_schema_is_in_the_reference():
    text = (ROOT / "docs/reference/json.md").read_text()
    for path in (SOURCE / "relaunch/cli").glob("*.py"):
        source = path.read_text()
        named = re.findall(r'say_json\(\s*"([\w-]+)"', source)
        named += re.findall(r'"relaunch/([\w-]+)/\d+"', source)
        for name in named:
            assert f"\n## relaunch/{name}/" in text, f"{path.name}: {name}"


def test_every_file_that_is_written_is_in_the_reference(world: World):
    text = (ROOT / "docs/reference/files.md").read_text()
    before = {str(path) for path in world.root.rglob("*")}
    world.write("relaunch.toml", '[metrics]\nloss = "loss (.*)"\n')
    world.write("conf/a.toml", "x = 1\n")
    for words in (
        ["-m", "one", "--", sys.executable, "-c", "raise ValueError"],
        ["--frozen"],
        ["mark", "1", "good"],
        ["again", "1"],
        ["back", "1"],
        ["set", "new", "other", "--from", "conf"],
        ["-s", "other", "--", "true"],
        ["log", "--verdict", "failed"],
        ["gc"],
    ):
        done = world.rl(*words)
        assert "internal fault" not in done.stderr, done.stderr
    listed = set(re.findall(r"`([^`]+)`", text))
    known = {name.rstrip("/").removesuffix("/N") for name in listed}
    for path in world.journal.iterdir():
        assert path.name in known, path.name
    for path in (world.journal / "trials" / "1").iterdir():
        assert path.name.startswith("output.") or path.name in known, path.name
    for path in (world.journal / "frozen" / "1").iterdir():
        assert path.name.startswith("index-") or path.name in known, path.name
    git = "project/.git"
    ours = (f"{git}/relaunch", f"{git}/refs/relaunch", f"{git}/logs/refs/relaunch",
            "project/conf", "project/relaunch.toml", "project@1", "home/.cache")  # fmt: skip
    tops = tuple(str(world.root / one) for one in ours)
    new = {str(path) for path in world.root.rglob("*")} - before
    assert [path for path in new if not path.startswith(tops)] == []
    refs = world.git("for-each-ref", "--format=%(refname)").split()
    assert refs == ["refs/heads/main", "refs/relaunch/base"]
    world.git("update-ref", "-d", "refs/relaunch/base")  # as the page says
    world.git("config", "--remove-section", "gc.refs/relaunch/*")
    assert "relaunch" not in (world.project / ".git" / "config").read_text()


def test_links_in_the_papers_lead_somewhere():
    for paper in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", paper.read_text()):
            assert (paper.parent / target).exists(), f"{paper.name}: {target}"


def test_each_coming_change_is_one_sentence():
    files = [path for path in (ROOT / "changelog.d").glob("*.md") if path.name != "README.md"]
    for path in files:
        lines = path.read_text().splitlines()
        assert len(lines) == 1, path.name
        assert lines[0][0] == "`" or lines[0][0].isupper(), path.name
        assert lines[0].endswith("."), path.name
        assert not re.search(r"[.!?] [A-Z]", lines[0]), path.name


def test_the_licence_is_the_whole_apache_licence():
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text()


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_tracked_file_names_a_workplace_or_a_package_host():
    words = ["/work" + "/main", "/work" + "/shared", "python" + "hosted"]
    words += ["/opt" + "/wheels", "arti" + "factory", "/home" + "/runner", "Co-" + "authored-by"]
    words += ["extra-index" + "-url", "find" + "-links", "/tmp" + "/brief"]
    found = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        found += [f"{path.relative_to(ROOT)}: {word}" for word in words if word in text]
    assert found == []


def test_the_shell_scripts_are_plain_sh_and_may_be_run():
    for path in [*ROOT.glob("scripts/*.sh"), ROOT / ".ci/run"]:
        assert os.access(path, os.X_OK), path
        done = subprocess.run(["sh", "-n", str(path)], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), path


def test_the_version_is_written_in_one_place(world: World):
    import relaunch

    done = world.rl("--version")
    assert done.stdout.strip() == f"rl {relaunch.__version__}"
    assert json.dumps(relaunch.__version__) not in (ROOT / "pyproject.toml").read_text()
