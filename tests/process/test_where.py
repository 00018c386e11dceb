"""`rl where`: the right verdict with the right cause, however the wrong file came to be loaded."""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import shutil
import signal
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import World
from tests.depth import takes_turns
from tests.needs import every_python

CORE = """\
class Loader:
    def next(self):
        return 1
    def skip(self, x):
        if x > 10:
            y = 2
        return 3
def plain():
    return 5
"""
USE = "from pkg.core import Loader\nLoader().next()\nLoader().skip(3)\n"
TARGET = "pkg/core.py:Loader.next"
EDITABLE = """\
import importlib.util, sys
class _EditableFinder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "pkg":
            return importlib.util.spec_from_file_location(name, {init!r})
def install():
    sys.meta_path.append(_EditableFinder)
"""


class Stage:
    """A project, other clones beside it, and a venv of its own without pip."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.root = world.root
        self.python = sys.executable
        self.command: list[str] = []
        self.env: dict[str, str] = {}
        self.cwd = world.project

    def package(self, folder: Path, *, init: bool = True) -> Path:
        """Put the package `pkg` there."""
        (folder / "pkg").mkdir(parents=True)
        if init:
            (folder / "pkg" / "__init__.py").write_text("")
        (folder / "pkg" / "core.py").write_text(CORE)
        return folder

    def venv(self, name: str = "venv") -> Path:
        """Make a venv and return where its packages are."""
        folder = self.root / name
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        site = folder / "lib" / version / "site-packages"
        site.mkdir(parents=True)
        (folder / "bin").mkdir()
        real = os.path.realpath(sys.executable)
        (folder / "bin" / "python").symlink_to(real)
        home = os.path.dirname(real)
        (folder / "pyvenv.cfg").write_text(f"home = {home}\nversion = {sys.version.split()[0]}\n")
        self.python = str(folder / "bin" / "python")
        return site

    def use(self, text: str = USE, name: str = "use.py") -> None:
        self.world.write(name, text)
        self.command = [self.python, name]

    def where(self, target: str) -> dict[str, Any]:
        done = self.world.rl("where", "-q", "--json", target, "--", *self.command, env=self.env,
                             cwd=self.cwd)  # fmt: skip
        assert "{" in done.stdout, done.stderr
        (found,) = json.loads(done.stdout[done.stdout.index("{\n") :])["places"]
        assert (done.returncode == 0) == (found["verdict"] == "EXECUTED")
        return dict(found)


@pytest.fixture
def stage(world):
    return Stage(world)


def check(found, word, cause=""):
    assert found["verdict"] == word, found
    assert cause in found["cause"], found
    if word != "EXECUTED":
        assert found["cause"]


# --- the right file


@every_python
def test_a_package_beside_the_script(stage, python):
    stage.python = python
    stage.package(stage.world.project)
    stage.use()
    found = stage.where(TARGET)
    check(found, "EXECUTED", "1 time")
    assert "pkg/core.py:3 Loader.next < use.py:2 <module>" in found["details"][0]


def test_a_script_itself(stage):
    stage.use("def main():\n    return 1\nmain()\n")
    check(stage.where("use.py:main"), "EXECUTED")
    check(stage.where("use.py:3"), "EXECUTED")
    check(stage.where("use.py"), "EXECUTED")


def test_a_src_layout_by_pythonpath(stage):
    stage.package(stage.world.project / "src")
    stage.env["PYTHONPATH"] = "src"
    stage.use()
    check(stage.where(f"src/{TARGET}"), "EXECUTED")


def test_a_module_run_by_its_name(stage):
    stage.package(stage.world.project)
    stage.world.write("pkg/__main__.py", "from pkg.core import plain\nplain()\n")
    stage.command = [stage.python, "-m", "pkg"]
    check(stage.where("pkg/__main__.py:2"), "EXECUTED")
    check(stage.where("pkg/core.py:plain"), "EXECUTED")


def test_a_folder_that_a_pth_file_adds(stage):
    site = stage.venv()
    clone = stage.package(stage.root / "clone")
    (site / "clone.pth").write_text(f"{clone}\n")
    stage.use()
    check(stage.where(f"{clone}/{TARGET}"), "EXECUTED")


def test_an_editable_install_of_this_checkout(stage):
    site = stage.venv()
    stage.package(stage.world.project / "src")
    init = str(stage.world.project / "src/pkg/__init__.py")
    (site / "__editable___pkg_1_0_finder.py").write_text(EDITABLE.format(init=init))
    line = "import __editable___pkg_1_0_finder; __editable___pkg_1_0_finder.install()\n"
    (site / "__editable__.pkg-1.0.pth").write_text(line)
    stage.use()
    check(stage.where(f"src/{TARGET}"), "EXECUTED")


def test_a_namespace_package(stage):
    stage.package(stage.world.project, init=False)
    stage.use()
    check(stage.where(TARGET), "EXECUTED")


def test_a_file_named_through_a_link(stage):
    stage.package(stage.world.project)
    (stage.world.project / "link").symlink_to("pkg")
    stage.use()
    check(stage.where("link/core.py:Loader.next"), "EXECUTED")


def test_the_checkout_in_tests_of_pytest(stage):
    stage.package(stage.world.project)
    text = "from pkg.core import Loader\ndef test_it():\n    assert Loader().next() == 1\n"
    stage.world.write("tests/test_it.py", text)
    for mode in ("prepend", "importlib"):
        stage.command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                         f"--import-mode={mode}", "tests"]  # fmt: skip
        check(stage.where(TARGET), "EXECUTED")
        check(stage.where("tests/test_it.py:3"), "EXECUTED")


# --- the wrong file


def test_an_installed_copy_wins(stage):
    site = stage.venv()
    stage.package(site)
    stage.package(stage.world.project / "src")
    stage.use()
    found = stage.where(f"src/{TARGET}")
    check(found, "WRONG FILE", f"pkg.core was loaded from {site}/pkg/core.py")
    assert "where packages are installed" in found["cause"]


def test_a_pth_file_leads_to_another_clone(stage):
    site = stage.venv()
    other = stage.package(stage.root / "other")
    (site / "__editable__.pkg.pth").write_text(f"{other}\n")
    stage.package(stage.world.project / "src")
    stage.use()
    check(stage.where(f"src/{TARGET}"), "WRONG FILE",
          f"put there by {site}/__editable__.pkg.pth")  # fmt: skip


def test_an_editable_install_leads_to_another_clone(stage):
    site = stage.venv()
    other = stage.package(stage.root / "other")
    init = str(other / "pkg/__init__.py")
    (site / "__editable___pkg_1_0_finder.py").write_text(EDITABLE.format(init=init))
    line = "import __editable___pkg_1_0_finder; __editable___pkg_1_0_finder.install()\n"
    (site / "__editable__.pkg-1.0.pth").write_text(line)
    stage.package(stage.world.project / "src")
    stage.use()
    check(stage.where(f"src/{TARGET}"), "WRONG FILE",
          f"the editable install {site}/__editable___pkg_1_0_finder.py")  # fmt: skip


def test_pythonpath_leads_to_another_clone(stage):
    other = stage.package(stage.root / "other")
    stage.package(stage.world.project / "src")
    stage.env["PYTHONPATH"] = str(other)
    stage.use()
    check(stage.where(f"src/{TARGET}"), "WRONG FILE", "from PYTHONPATH")


def test_another_venv_has_its_own_copy(stage):
    mine = stage.package(stage.venv("mine"))
    theirs = stage.package(stage.venv("theirs"))
    stage.use()
    check(stage.where(f"{mine}/{TARGET}"), "WRONG FILE", str(theirs))


def test_another_part_of_a_namespace_comes_first(stage):
    one = stage.package(stage.root / "one", init=False)
    two = stage.package(stage.root / "two", init=False)
    stage.env["PYTHONPATH"] = f"{one}{os.pathsep}{two}"
    stage.use()
    check(stage.where(f"{two}/{TARGET}"), "WRONG FILE", f"{one}/pkg/core.py")
    check(stage.where(f"{one}/{TARGET}"), "EXECUTED")


def test_a_zip_file_comes_first(stage):
    stage.package(stage.world.project / "src")
    with zipfile.ZipFile(stage.root / "lib.zip", "w") as file:
        file.writestr("pkg/__init__.py", "")
        file.writestr("pkg/core.py", CORE)
    stage.env["PYTHONPATH"] = f"{stage.root}/lib.zip{os.pathsep}src"
    stage.use()
    check(stage.where(f"src/{TARGET}"), "WRONG FILE", "lib.zip/pkg/core.py")


def test_a_script_has_the_name_of_a_library(stage):
    stage.world.write("colorsys.py", "def rgb_to_hsv(*_): return 1\n")
    stage.use("import colorsys\ncolorsys.rgb_to_hsv(1, 2, 3)\n")
    library = os.path.join(os.path.dirname(os.__file__), "colorsys.py")
    check(stage.where(f"{library}:rgb_to_hsv"), "WRONG FILE", "the folder of the script")


def test_the_current_folder_comes_first_with_m(stage):
    site = stage.venv()
    stage.package(site)
    (site / "pkg/__main__.py").write_text("from pkg.core import plain\nplain()\n")
    stage.package(stage.world.project)
    stage.world.write("pkg/__main__.py", "from pkg.core import plain\nplain()\n")
    stage.command = [stage.python, "-m", "pkg"]
    check(stage.where(f"{site}/pkg/core.py:plain"), "WRONG FILE", "the current folder")


def test_a_worktree_is_not_the_main_tree(stage):
    stage.package(stage.world.project)
    stage.use()
    stage.world.commit()
    stage.world.git("worktree", "add", "-q", str(stage.root / "tree"))
    stage.cwd = stage.root / "tree"
    check(stage.where(f"{stage.world.project}/{TARGET}"), "WRONG FILE", f"{stage.root}/tree/pkg")


def test_bytecode_that_is_not_of_its_source(stage):
    stage.package(stage.world.project)
    stage.use()
    core = stage.world.project / "pkg/core.py"
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(core), invalidation_mode=mode)
    core.write_text(CORE.replace("return 1", "return 9"))
    check(stage.where(TARGET), "WRONG FILE", importlib.util.cache_from_source(str(core)))


def test_a_compiled_module_beside_its_source(stage):
    name = "_csv"
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    library = Path(sysconfig.get_path("platstdlib")) / "lib-dynload" / f"{name}{suffix}"
    if not library.exists():
        pytest.skip("this Python has no extension modules as files")
    shutil.copy(library, stage.world.project)
    stage.world.write(f"{name}.py", "def reader(): pass\n")
    stage.use(f"import {name}\n{name}.reader([])\n")
    check(stage.where(f"{name}.py:reader"), "WRONG FILE", suffix)


def test_the_program_puts_a_folder_first(stage):
    other = stage.package(stage.root / "other")
    stage.package(stage.world.project)
    stage.use(f"import sys\nsys.path.insert(0, {str(other)!r})\n{USE}")
    check(stage.where(TARGET), "WRONG FILE", "put there while it ran")


# --- never imported


def test_nothing_imports_it(stage):
    stage.package(stage.world.project)
    stage.use("print(1)\n")
    check(stage.where(TARGET), "NEVER IMPORTED", "nothing imported pkg.core")


def test_nothing_imports_it_and_nothing_could(stage):
    clone = stage.package(stage.root / "clone")
    stage.use("print(1)\n")
    check(stage.where(f"{clone}/{TARGET}"), "NEVER IMPORTED", "no entry of sys.path leads to it")


def test_nothing_imports_it_and_another_would_be_loaded(stage):
    other = stage.package(stage.root / "other")
    stage.package(stage.world.project / "src")
    stage.env["PYTHONPATH"] = str(other)
    stage.use("print(1)\n")
    check(stage.where(f"src/{TARGET}"), "NEVER IMPORTED", f"an import would load {other}")


# --- not called, not reached


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        ("class Sub(Loader):\n    def next(self): return 2\nSub().next()", "Sub overrides it"),
        ("Loader.next = lambda self: 3\nLoader().next()", "was replaced by <lambda>"),
        ("del Loader.next", "was deleted"),
        ("from unittest import mock\np = mock.patch.object(Loader, 'next')\np.start()",
         "was replaced by a MagicMock"),
        ("", "nothing called it"),
    ],
    ids=["override", "monkeypatch", "deleted", "mock", "nobody"],
)  # fmt: skip
def test_another_function_runs_instead(stage, lines, cause):
    stage.package(stage.world.project)
    stage.use(f"from pkg.core import Loader\n{lines}\n")
    check(stage.where(TARGET), "NOT CALLED", cause)


def test_a_c_function_stands_in(stage):
    stage.use("import heapq\nheapq.heappush([], 1)\n")
    library = os.path.join(os.path.dirname(os.__file__), "heapq.py")
    check(stage.where(f"{library}:heappush"), "NOT CALLED", "the C function _heapq.heappush")


def test_a_line_that_a_condition_keeps_away(stage):
    stage.package(stage.world.project)
    stage.use()
    check(stage.where("pkg/core.py:6"), "LINE NOT REACHED", "line 5 `if x > 10:` was run 1 time")
    check(stage.where("pkg/core.py:9"), "NOT CALLED", "plain is loaded, and nothing called it")


# --- no probe possible


@pytest.mark.parametrize("flag", ["-I", "-E", "-S", "-sE"])
def test_a_python_that_lets_nobody_in(stage, flag):
    stage.use("x = 1\n")
    stage.command.insert(1, flag)
    check(stage.where("use.py:1"), "NO PROBE POSSIBLE", f"python {flag}")


def test_a_program_that_is_not_python(stage):
    stage.use("x = 1\n")
    stage.command = ["true"]
    check(stage.where("use.py:1"), "NO PROBE POSSIBLE", "no Python process began")


def test_an_import_hook_that_compiles_by_itself(stage):
    stage.package(stage.world.project)
    stage.world.write("hook.py", """\
import importlib.machinery as m, sys
class Loader(m.SourceFileLoader):
    def source_to_code(self, data, path):
        return compile(data, path, "exec")
class Finder:
    def find_spec(self, name, path=None, target=None):
        spec = m.PathFinder.find_spec(name, path)
        if spec and name == "pkg.core":
            spec.loader = Loader(name, spec.origin)
        return spec
sys.meta_path.insert(0, Finder())
""")  # fmt: skip
    stage.use(f"import hook\n{USE}")
    check(stage.where(TARGET), "NO PROBE POSSIBLE", "an import hook of hook compiles core.py")


# --- what a person sees


def test_the_screen_says_word_cause_and_fix(stage):
    other = stage.package(stage.root / "other")
    stage.package(stage.world.project / "src")
    stage.env["PYTHONPATH"] = str(other)
    stage.use()
    done = stage.world.rl("where", f"src/{TARGET}", "--", *stage.command, env=stage.env)
    assert done.returncode == 1
    first, second = done.stdout.splitlines()[-2:]
    assert first.startswith(f"src/{TARGET}  WRONG FILE: pkg.core was loaded from {other}")
    assert second.strip().startswith("try: ")


def test_counting_stops_when_it_is_known(stage):
    stage.use("n = 0\nfor i in range(30_000):\n    n += 1\n")
    found = stage.where("use.py:3")
    check(found, "EXECUTED", "10,000 times and more")


def test_every_copy_of_a_package_is_listed(stage):
    site = stage.venv()
    stage.package(site)
    stage.package(stage.world.project)
    stage.use()
    stage.world.rl("--", *stage.command)
    done = stage.world.rl("where", "pkg")
    lines = done.stdout.splitlines()
    assert lines[1] == f"  loads  {stage.world.project}/pkg/__init__.py"
    assert lines[3] == f"  hidden {site}/pkg/__init__.py"
    assert stage.world.rl("where", "nopkg").returncode == 1


def test_without_a_command_the_path_of_the_last_one_counts(stage):
    stage.package(stage.world.project)
    stage.package(stage.world.project / "tools")
    stage.package(stage.root / "clone")
    stage.use("import pkg\n", name="tools/use.py")
    stage.command[-1:] = ["tools/use.py"]
    for words, folder in (
        (stage.command, "tools"),
        ([stage.python, "-m", "tools.use"], "."),
        ([stage.python, "-P", "tools/use.py"], "../clone"),
    ):
        stage.world.rl("--", *words, env={"PYTHONPATH": str(stage.root / "clone")})
        done = stage.world.rl("where", "pkg", env={"PYTHONPATH": str(stage.root / "clone")})
        first = (stage.world.project / folder).resolve() / "pkg/__init__.py"
        assert done.stdout.splitlines()[1] == f"  loads  {first}", done.stdout
    stage.world.rl("--", stage.python, "-I", "tools/use.py")
    done = stage.world.rl("where", "pkg", env={"PYTHONPATH": str(stage.root / "clone")})
    assert done.returncode == 1
    assert "not found" in done.stdout


@every_python
def test_with_a_command_what_it_puts_on_its_path_counts(stage, python):
    stage.python = python
    clone = stage.package(stage.root / "clone")
    stage.package(stage.world.project)
    stage.use(f"import sys\nsys.path.insert(0, {str(clone)!r})\nimport pkg\n")
    done = stage.world.rl("where", "-q", "pkg", "use.py:3", "--", *stage.command)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:6] == [
        f"  loaded {clone}/pkg/__init__.py",
        f"         sys.path[0] {clone}, put there while it ran",
        f"  hidden {stage.world.project}/pkg/__init__.py",
        f"         sys.path[1] {stage.world.project}",
        "use.py:3  EXECUTED: 1 time",
    ]


def test_a_part_of_a_package_and_two_processes_with_two_copies(stage):
    clone = stage.package(stage.root / "clone")
    stage.package(stage.world.project)
    again = f"subprocess.run([{stage.python!r}, '-m', 'pkg.core'], cwd={str(clone)!r})\n"
    stage.use(f"import subprocess, pkg.core\n{again}")
    done = stage.world.rl("where", "-q", "--json", "pkg", "pkg.core", "--", *stage.command)
    whole, part = json.loads(done.stdout)["loaded"]
    of_ours, of_clone = f"{stage.world.project}/pkg", f"{clone}/pkg"
    files = {one["file"] for one in whole["from"]}
    assert files == {f"{of_ours}/__init__.py", f"{of_clone}/__init__.py"}
    assert [one["file"] for one in part["from"]] == [f"{of_ours}/core.py"]
    assert done.returncode == 0


def test_a_package_that_nobody_imports_is_said_to_be_none(stage):
    stage.package(stage.world.project)
    stage.use("x = 1\n")
    done = stage.world.rl("where", "-q", "pkg", "--", *stage.command)
    assert done.returncode == 1
    assert "pkg  NEVER IMPORTED: no import of it was seen in 1 Python process of `" in done.stdout
    assert f"  loads  {stage.world.project}/pkg/__init__.py" in done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "import os\nif os.fork() == 0:\n    import pkg\n    os._exit(0)\nos.wait()\n",
        "import os, sys\nimport pkg\nsys.stdout.flush()\nos.execvp('true', ['true'])\n",
        "import os, signal\nif os.fork() == 0:\n    import pkg\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\nos.wait()\n",
        "import pkg, sys\ndel sys.modules['pkg']\n",
        "import importlib\nimportlib.import_module('pkg')\n",
        "import multiprocessing\ndef work(n):\n    import pkg\n    return n\n"
        "if __name__ == '__main__':\n    fork = multiprocessing.get_context('fork')\n"
        "    with fork.Pool(2) as pool:\n        pool.map(work, range(4))\n",
    ],
    ids=["fork", "exec", "kill", "forgotten", "by name", "pool"],
)
def test_an_import_is_known_however_its_process_ends(stage, text):
    stage.package(stage.world.project)
    stage.use(text)
    done = stage.world.rl("where", "-q", "pkg", "--", *stage.command)
    assert f"  loaded {stage.world.project}/pkg/__init__.py\n" in done.stdout, done.stdout
    assert done.returncode == 0


def test_who_only_asks_for_a_package_imports_nothing(stage):
    stage.package(stage.world.project)
    stage.use("import importlib.util\nprint(importlib.util.find_spec('pkg').origin)\n")
    done = stage.world.rl("where", "-q", "pkg", "--", *stage.command)
    assert "pkg  NEVER IMPORTED: no import of it was seen in 1 Python process of `" in done.stdout


def test_what_a_signal_ended_is_told_before_we_end_so_too(stage):
    stage.package(stage.world.project)
    stage.use("import os, signal, pkg\nos.kill(os.getpid(), signal.SIGTERM)\n")
    done = stage.world.rl("where", "-q", "pkg", "use.py:1", "--", *stage.command)
    assert done.returncode == -signal.SIGTERM
    assert f"  loaded {stage.world.project}/pkg/__init__.py\n" in done.stdout
    assert "use.py:1  EXECUTED: 1 time" in done.stdout


def test_all_parts_of_a_namespace_are_loaded_and_none_is_hidden(stage):
    for name in ("one", "two"):
        stage.world.write(f"../{name}/space/{name}.py", "")
    stage.env["PYTHONPATH"] = f"{stage.root / 'one'}:{stage.root / 'two'}"
    stage.use("import space.one, space.two\n")
    done = stage.world.rl("where", "-q", "space", "--", *stage.command, env=stage.env)
    assert f"  loaded {stage.root}/one/space\n" in done.stdout
    assert f"  also   {stage.root}/two/space (namespace)\n" in done.stdout
    listed = stage.world.rl("where", "space", env=stage.env).stdout
    assert f"  also   {stage.root}/two/space (namespace)\n" in listed
    assert "hidden" not in done.stdout + listed


def test_a_folder_by_two_names_hides_nothing_of_itself(stage):
    stage.package(stage.root / "real")
    (stage.root / "link").symlink_to("real")
    stage.env["PYTHONPATH"] = f"{stage.root / 'link'}:{stage.root / 'real'}"
    stage.use("import pkg, os\n")
    done = stage.world.rl("where", "-q", "pkg", "os", "--", *stage.command, env=stage.env)
    assert f"  loaded {stage.root}/link/pkg/__init__.py\n" in done.stdout
    assert "hidden" not in done.stdout


@pytest.mark.parametrize(
    "odd", ["class Odd:\n    __slots__ = ()\n", "class Odd:\n    __path__ = None\n"]
)
def test_an_odd_module_takes_nothing_from_the_others(stage, odd):
    stage.package(stage.world.project)
    stage.use(f"import sys, pkg\n{odd}sys.modules['odd'] = Odd()\n")
    done = stage.world.rl("where", "-q", "odd", "pkg", "use.py:1", "--", *stage.command)
    assert f"  loaded {stage.world.project}/pkg/__init__.py\n" in done.stdout
    assert "use.py:1  EXECUTED: 1 time" in done.stdout


def test_a_file_that_is_not_there_is_no_package_and_nothing_is_run(stage):
    stage.use("open('ran', 'w')\n")
    done = stage.world.rl("where", "tarin.py", "--", *stage.command)
    assert done.returncode == 2
    assert done.stderr.startswith("rl: no file `tarin.py` here")
    assert not (stage.world.project / "ran").exists()


def test_what_the_last_command_had_counts_and_not_what_is_set_now(stage):
    clone = stage.package(stage.root / "clone")
    (clone / "pyproject.toml").write_text("[project]\nname = 'pkg'\nversion = '1'\n")
    stage.package(stage.world.project)
    stage.use("import pkg\n", name="tools/use.py")
    stage.command[-1:] = ["tools/use.py"]
    copy = f"  loads  {clone}/pkg/__init__.py\n"
    stage.world.rl("--", *stage.command, env={"PYTHONPATH": str(clone)})
    assert copy in stage.world.rl("where", "pkg").stdout
    stage.world.rl("--src", str(clone), "--", *stage.command)
    assert copy in stage.world.rl("where", "pkg", env={"PYTHONPATH": "."}).stdout
    with zipfile.ZipFile(stage.world.project / "app.pyz", "w") as archive:
        archive.writestr("__main__.py", "import inner\n")
        archive.writestr("inner/__init__.py", "")
    stage.world.rl("--", stage.python, "app.pyz")
    assert f"{stage.world.project}/app.pyz/inner/__init__.py" in (
        stage.world.rl("where", "inner").stdout
    )


def test_what_only_a_run_can_tell_is_not_said(stage):
    stage.use("x = 1\n")
    stage.world.rl("--", stage.python, "-S", "use.py")
    done = stage.world.rl("where", "pip")
    assert done.returncode == 2
    assert done.stderr.startswith("rl: the last command loads no site: what it finds only a run")
    stage.world.write("gone/use.py", "x = 1\n")
    stage.world.rl("--", stage.python, "use.py", cwd=stage.world.project / "gone")
    shutil.rmtree(stage.world.project / "gone")
    done = stage.world.rl("where", "pip")
    assert done.returncode == 2
    assert "the folder of the last command is gone" in done.stderr
    stage.world.rl("--", "sh", "-c", f"{stage.python} use.py")
    assert "is no Python that can be told" in stage.world.rl("where", "json").stdout


IMPORTS = {
    "reloaded": (
        "import sys, importlib, pkg\nsys.path.insert(0, OTHER)\nimportlib.reload(pkg)\n",
        ["here", "other"],
    ),
    "twice": (
        "import sys, pkg\ndel sys.modules['pkg']\nsys.path.insert(0, OTHER)\nimport pkg\n",
        ["here", "other"],
    ),
    "by hand": (
        "import sys, pkg, importlib.util as u\n"
        "spec = u.spec_from_file_location('pkg', OTHER + '/pkg/__init__.py')\n"
        "sys.modules['pkg'] = u.module_from_spec(spec)\n",
        ["here", "other"],
    ),
    "by a hook that answers once": (
        "import sys, importlib.util as u\nclass Once:\n    def find_spec(self, name, *_):\n"
        "        if name == 'pkg':\n            sys.meta_path.remove(self)\n"
        "            return u.spec_from_file_location(name, OTHER + '/pkg/__init__.py')\n"
        "sys.meta_path.insert(0, Once())\nimport pkg\nassert OTHER in pkg.__file__\n",
        ["other"],
    ),
}


@takes_turns
@every_python
@pytest.mark.parametrize("way", IMPORTS)
def test_all_copies_that_were_loaded_are_told_and_hooks_answer_as_ever(stage, python, way):
    text, copies = IMPORTS[way]
    stage.python = python
    other = stage.package(stage.root / "other")
    stage.package(stage.world.project)
    stage.use(f"OTHER = {str(other)!r}\n{text}")
    done = stage.world.rl("where", "-q", "--json", "pkg", "--", *stage.command)
    assert done.returncode == 0, done.stderr
    places = {"here": stage.world.project, "other": other}
    (found,) = json.loads(done.stdout)["loaded"]
    assert [one["file"] for one in found["from"]] == [
        f"{places[name]}/pkg/__init__.py" for name in copies
    ]


@takes_turns
@every_python
def test_an_import_that_fails_is_told_as_such_and_its_traceback_is_as_ever(stage, python):
    stage.python = python
    stage.world.write("pkg/__init__.py", "import pkg.inner\n")
    stage.world.write("pkg/inner.py", "1 / 0\n")
    stage.use("import pkg\n")
    plain = stage.world.shell(" ".join(stage.command))
    done = stage.world.rl("where", "-q", "pkg", "pkg.inner", "--", *stage.command)
    assert done.stdout.count("  failed ") == 2
    assert done.stdout.count("         ZeroDivisionError: division by zero\n") == 2
    assert plain.stderr in done.stderr
    stage.world.write("use.py", "import pkg.none\n")
    stage.world.write("pkg/__init__.py", "")
    plain = stage.world.shell(" ".join(stage.command))
    done = stage.world.rl("where", "-q", "pkg", "pkg.none", "--", *stage.command)
    assert plain.stderr in done.stderr


def test_what_was_there_before_the_program_is_loaded(stage):
    stage.use("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    done = stage.world.rl("where", "-q", "os", "sys", "--", *stage.command)
    assert done.stdout.count("  loaded ") == 2
    assert "NEVER" not in done.stdout


def test_a_module_that_the_program_made_has_no_file(stage):
    stage.use("import sys, types\nsys.modules['pkg'] = types.ModuleType('pkg')\nimport pkg\n")
    done = stage.world.rl("where", "-q", "pkg", "--", *stage.command)
    assert "  loaded (no file)\n         put among the modules by the program\n" in done.stdout
