"""Foretold against seen: for each way to start and to install, which copy is imported in truth?"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.depth import takes_turns

from relaunch.trial.place.doubts import doubts, interpreter
from relaunch.trial.place.interpreter import find_start

MARK = "import os\nopen(os.environ['OUT'], 'w').write(__file__)\n"
FINDER = """
import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
MAPPING: dict[str, str] = {mapping!r}
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in MAPPING:
            return spec_from_file_location(name, MAPPING[name] + "/__init__.py",
                                           submodule_search_locations=[MAPPING[name]])
def install():
    sys.meta_path.append(Finder)
"""


class Bench:
    """One real venv, made once; installs come and go."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.venv = root / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.venv)], check=True)
        self.bin = self.venv / "bin"
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        self.site = self.venv / "lib" / version / "site-packages"
        tools = str(Path(pytest.__file__).parent.parent)
        (self.site / "zz_tools.pth").write_text(f"{tools}\n")
        self.script("pytest", "import sys, pytest\nsys.exit(pytest.console_main())\n")
        self.script("mytool", "import mypkg\n")
        self.script(
            "torchrun",
            "import subprocess, sys\nsys.exit(subprocess.call([sys.executable, *sys.argv[2:]]))\n",
        )
        self.clone = root / "other clone"
        package = self.clone / "src" / "mypkg"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(MARK)

    def script(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(f"#!{self.bin}/python\n{text}")
        path.chmod(0o755)

    def install(self, kind: str, own: Path) -> None:
        for path in self.site.iterdir():
            if path.name.startswith(("mypkg", "__editable__")):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        elsewhere = self.clone / "src"
        if kind == "copy":
            shutil.copytree(own, self.site / "mypkg")
        elif kind == "editable":
            (self.site / "__editable__.mypkg-1.pth").write_text(f"{own.parent}\n")
        elif kind == "other clone":
            (self.site / "__editable__.mypkg-1.pth").write_text(f"{elsewhere}\n")
        elif kind == "other finder":
            (self.site / "__editable___mypkg_1_finder.py").write_text(
                FINDER.format(mapping={"mypkg": f"{elsewhere}/mypkg"})
            )
            (self.site / "__editable__.mypkg-1.pth").write_text(
                "import __editable___mypkg_1_finder; __editable___mypkg_1_finder.install()\n"
            )

    def project(self, layout: str) -> tuple[Path, Path]:
        project = self.root / "project"
        shutil.rmtree(project, ignore_errors=True)
        own = project / "src" / "mypkg" if layout == "src" else project / "mypkg"
        own.mkdir(parents=True)
        (own / "__init__.py").write_text(MARK)
        (own / "cli.py").write_text("")
        (project / "pyproject.toml").write_text('[project]\nname = "mypkg"\nversion = "1"\n')
        for name in ("run.py", "scripts/run.py", "tests/test_it.py"):
            path = project / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("import mypkg\ndef test_it(): pass\n")
        return project, own


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


PYTEST_WORDS = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist")
# name: command, variables, files of the project
WAYS: dict[str, tuple[tuple[str, ...], dict[str, str], dict[str, str]]] = {
    "a script at the top": (("python", "run.py"), {}, {}),
    "a script in a folder": (("python", "scripts/run.py"), {}, {}),
    "a module": (("python", "-m", "mypkg.cli"), {}, {}),
    "code": (("python", "-c", "import mypkg"), {}, {}),
    "isolated": (("python", "-I", "-c", "import mypkg"), {}, {}),
    "safe path by variable": (("python", "run.py"), {"PYTHONSAFEPATH": "1"}, {}),
    "PYTHONPATH=.": (("python", "scripts/run.py"), {"PYTHONPATH": "."}, {}),
    "PYTHONPATH=src": (("python", "scripts/run.py"), {"PYTHONPATH": "src"}, {}),
    "PYTHONPATH=src but -E": (("python", "-E", "scripts/run.py"), {"PYTHONPATH": "src"}, {}),
    "PYTHONPATH of another clone": (("python", "run.py"), {"PYTHONPATH": "../other clone/src"}, {}),
    "a console script of its own": (("mytool",), {}, {}),
    "torchrun": (("torchrun", "--nproc=1", "run.py"), {}, {}),
    "env in front": (("env", "PYTHONPATH=src", "python", "scripts/run.py"), {}, {}),
    "pytest": (("pytest", *PYTEST_WORDS, "tests"), {}, {}),
    "python -m pytest": (("python", "-m", "pytest", *PYTEST_WORDS, "tests"), {}, {}),
    "pytest with a conftest at the top": (
        ("pytest", *PYTEST_WORDS), {}, {"conftest.py": ""}
    ),
    "pytest with tests as a package": (
        ("pytest", *PYTEST_WORDS, "tests/test_it.py"), {}, {"tests/__init__.py": ""}
    ),
    "pytest with pythonpath in its ini": (
        ("pytest", *PYTEST_WORDS), {}, {"pytest.ini": "[pytest]\npythonpath = src .\n"}
    ),
    "pytest with importlib mode": (
        ("pytest", *PYTEST_WORDS, "--import-mode=importlib"), {}, {"conftest.py": ""}
    ),
}  # fmt: skip
INSTALLS = ("nothing", "copy", "editable", "other clone", "other finder")


@takes_turns
@pytest.mark.parametrize("way", WAYS)
def test_a_doubt_is_raised_exactly_when_another_copy_is_imported(bench: Bench, way: str) -> None:
    command, variables, files = WAYS[way]
    for layout in ("flat", "src"):
        for install in INSTALLS:
            if "pytest" in way and install not in ("copy", "other finder"):
                continue  # half a second each, and nothing new for pytest
            project, own = bench.project(layout)
            bench.install(install, own)
            for name, text in files.items():
                (project / name).write_text(text)
            seen = imported(bench, project, command, variables)
            foretold = shadow_lines(bench, project, command, variables)
            wrong = bool(seen) and os.path.realpath(seen) != str(own / "__init__.py")
            case = f"{layout}, installed: {install}, {way}: imported {seen or 'nothing'}"
            assert bool(foretold) == wrong, f"{case}; foretold {foretold}"
            if wrong:
                assert os.path.dirname(seen) in foretold[0], case


def surroundings(bench: Bench, variables: dict[str, str]) -> dict[str, str]:
    return {
        "PATH": f"{bench.bin}:{os.environ['PATH']}",
        "HOME": str(bench.root),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPYCACHEPREFIX": str(bench.root / "bytecode"),
        **variables,
    }


def imported(
    bench: Bench, project: Path, command: tuple[str, ...], variables: dict[str, str]
) -> str:
    out = bench.root / "out"
    out.unlink(missing_ok=True)
    env = {**surroundings(bench, variables), "OUT": str(out)}
    path = shutil.which(command[0], path=env["PATH"])
    assert path
    subprocess.run([path, *command[1:]], cwd=project, env=env, capture_output=True, timeout=300)
    return os.path.normpath(project / out.read_text()) if out.exists() else ""


def shadow_lines(
    bench: Bench, project: Path, command: tuple[str, ...], variables: dict[str, str]
) -> list[str]:
    env = surroundings(bench, variables)
    python = interpreter(command, env, str(project))
    assert python is not None
    lines = doubts(command, cwd=str(project), env=env, project=str(project), python=python)
    return [line for line in lines if line.startswith("`mypkg`")]


def test_the_interpreter_of_every_command_is_described_as_it_describes_itself(
    bench: Bench,
) -> None:
    project, _ = bench.project("flat")
    asked = "import sys, sysconfig; print(sys.prefix, sysconfig.get_path('purelib'))"
    prefix, site = subprocess.check_output([bench.bin / "python", "-c", asked], text=True).split()
    env = surroundings(bench, {})
    for command in (
        ("python", "run.py"),
        ("python3", "-u", "-X", "dev", "-m", "mypkg"),
        ("pytest", "-x"),
        ("nice", "-n", "3", "timeout", "10", "pytest"),
        ("env", "-u", "FOO", "A=1", "python", "-c", "1"),
        (str(bench.bin / "torchrun"), "run.py"),
        ("../venv/bin/python", "run.py"),
    ):
        found = interpreter(command, env, str(project))
        assert found is not None, command
        assert found.version == f"{sys.version_info[0]}.{sys.version_info[1]}"
        assert (found.prefix, found.site_packages) == (prefix, (site,)), command


def test_what_is_not_python_has_no_interpreter(bench: Bench) -> None:
    env = surroundings(bench, {})
    for command in (("ls",), ("sh", "-c", "python x.py"), ("nosuchprogram",), ("make", "test"), ()):
        assert interpreter(command, env, str(bench.root)) is None
        lines = doubts(command, cwd=str(bench.root), env=env, project=str(bench.root), python=None)
        assert lines == []


def test_the_runner_of_a_project_picks_its_own_environment(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(bench.venv)
    inside = tmp_path / "deep"
    inside.mkdir()
    (inside / "run.py").touch()
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    for command in (
        ("uv", "run", "pytest", "-x"),
        ("uv", "run", "--with", "rich", "run.py"),
        ("uv", "run", "-m", "mypkg"),
        ("poetry", "run", "python", "run.py"),
    ):
        start = find_start(command, env, str(inside))
        assert start is not None, command
        assert os.path.realpath(start.python.prefix) == str(bench.venv)


def test_doubting_costs_less_than_three_milliseconds(bench: Bench) -> None:
    project, own = bench.project("src")
    bench.install("copy", own)
    for number in range(40):
        (project / f"folder{number}").mkdir()
    env = surroundings(bench, {})
    command = ("pytest", "tests")
    spent = []
    for _ in range(7):
        before = time.process_time()
        python = interpreter(command, env, str(project))
        doubts(command, cwd=str(project), env=env, project=str(project), python=python)
        spent.append(time.process_time() - before)
    assert min(spent) < 0.003
