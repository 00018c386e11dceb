"""`--src CLONE` against every way a package can already be installed, and bytecode that lies."""

import os
import py_compile
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.conftest import World

from relaunch.errors import PlaceError
from relaunch.inside import guard
from relaunch.trial.place.bytecode import stale_bytecode
from relaunch.trial.place.source import proof, source_env

FINDER_FIRST = """
import sys
from importlib.util import spec_from_file_location
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "mypkg":
            return spec_from_file_location(name, {path!r} + "/__init__.py",
                                           submodule_search_locations=[{path!r}])
def install():
    sys.meta_path.{how}
"""


def package(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "inner.py").write_text("")
    return folder


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(path)], check=True)
    return path


def site_of(venv: Path) -> Path:
    (site,) = venv.glob("lib/python*/site-packages")
    return site


INSTALLS = ("nothing", "copy", "pth", "finder last", "finder first", "imported by a pth")
STARTS = (
    ("beside.py",),
    ("-c", "import mypkg.inner, sys; print(mypkg.inner.__file__)"),
    ("-m", "show"),
)


@pytest.mark.parametrize("layout", ["src", "flat"])
@pytest.mark.parametrize("install", INSTALLS)
def test_the_clone_wins_over_every_install_and_every_start(
    venv: Path, tmp_path: Path, install: str, layout: str
) -> None:
    clone, other, project = tmp_path / "clone", tmp_path / "other", tmp_path / "project"
    mine = package(clone / "src" / "mypkg" if layout == "src" else clone / "mypkg")
    theirs = package(other / "mypkg")
    package(project / "mypkg")  # even a copy beside the script
    for name in ("beside.py", "show.py"):
        (project / name).write_text("import mypkg.inner\nprint(mypkg.inner.__file__)\n")
    site = site_of(venv)
    for entry in site.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    if install == "copy":
        shutil.copytree(theirs, site / "mypkg")
    elif install == "pth":
        (site / "x.pth").write_text(f"{other}\n")
    elif install.startswith("finder"):
        how = "insert(0, Finder)" if install == "finder first" else "append(Finder)"
        (site / "x_finder.py").write_text(FINDER_FIRST.format(path=str(theirs), how=how))
        (site / "x.pth").write_text("import x_finder; x_finder.install()\n")
    elif install == "imported by a pth":
        (site / "x.pth").write_text(f"{other}\nimport mypkg\n")
    changes, expected = source_env([str(clone)], {})
    assert expected == {"mypkg": str(mine)}
    hook = tmp_path / "hook"  # what the real hook does, and nothing else
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(
        f"import os, runpy\n"
        f"runpy.run_path({guard.__file__!r})['install']"
        f"(os.environ['RELAUNCH_SRC_ROOTS'].split(os.pathsep))\n"
    )
    env = {**changes, "PYTHONPATH": f"{hook}:{changes['PYTHONPATH']}"}
    for start in STARTS:
        done = subprocess.run(
            [venv / "bin" / "python", *start], cwd=project, env=env, capture_output=True, text=True
        )
        assert done.stdout.strip() == str(mine / "inner.py"), (start, done.stderr)


def test_a_finder_that_pushes_in_front_later_loses_from_the_second_import_on(
    tmp_path: Path,
) -> None:
    mine, theirs = package(tmp_path / "a" / "mypkg"), package(tmp_path / "b" / "mypkg")
    program = (
        f"import runpy, sys\n"
        f"runpy.run_path({guard.__file__!r})['install'](['mypkg={mine}'])\n"
        f"class Late:\n"
        f"    def find_spec(self, name, path=None, target=None): return None\n"
        f"sys.meta_path.insert(0, Late())\n"
        f"import textwrap\n"
        f"assert type(sys.meta_path[0]).__name__ == 'SourceGuard'\n"
        f"sys.path.insert(0, {str(theirs.parent)!r})\n"
        f"import mypkg; print(mypkg.__file__)\n"
    )
    out = subprocess.check_output([sys.executable, "-S", "-c", program], text=True)
    assert out.strip() == str(mine / "__init__.py")


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.8", "3.9", "3.10", "3.12", "3.13"])
def test_the_guard_works_in_old_and_new_pythons(tmp_path: Path, version: str) -> None:
    name = f"python{version}"
    versions = Path(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))) / "versions"
    found = sorted(versions.glob(f"{version}.*/bin/{name}"))
    python = str(found[0]) if found else shutil.which(name)
    if not python:
        pytest.skip(f"there is no {name} here to try the guard in")
    mine = package(tmp_path / "mypkg")
    program = (
        f"import runpy\n"
        f"runpy.run_path({guard.__file__!r})['install'](['mypkg={mine}'])\n"
        f"import mypkg; print(mypkg.__file__)\n"
    )
    out = subprocess.check_output([python, "-c", program], text=True, cwd="/")
    assert out.strip() == str(mine / "__init__.py")


def test_several_packages_and_clones_each_find_their_root(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    package(one / "src" / "alpha")
    package(one / "src" / "beta")
    (one / "src" / "gamma.py").touch()
    package(two / "delta")
    package(two / "tests")
    package(two / "beta")
    changes, expected = source_env([str(one), str(two)], {"PYTHONPATH": "/before"})
    assert expected == {
        "alpha": f"{one}/src/alpha",
        "beta": f"{one}/src/beta",
        "gamma": f"{one}/src/gamma.py",
        "delta": f"{two}/delta",
    }
    assert changes["PYTHONPATH"] == f"{one}/src:{two}:/before"


def test_a_package_inside_a_namespace_is_guarded_by_its_full_name(tmp_path: Path) -> None:
    package(tmp_path / "src" / "corp" / "cloud" / "store")
    changes, expected = source_env([str(tmp_path)], {})
    assert expected == {"corp.cloud.store": f"{tmp_path}/src/corp/cloud/store"}
    assert changes["PYTHONPATH"] == f"{tmp_path}/src"


def test_a_folder_named_by_the_build_and_the_package_itself_are_found(tmp_path: Path) -> None:
    inner = package(tmp_path / "python" / "fast")
    package(tmp_path / "docs")
    (tmp_path / "pyproject.toml").write_text('[tool.maturin]\npython-source = "python"\n')
    assert source_env([str(tmp_path)], {})[1] == {"fast": str(inner)}
    assert source_env([str(inner)], {})[1] == {"fast": str(inner)}


def test_a_clone_without_a_package_is_refused_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="no such directory"):
        source_env([str(tmp_path / "nothing")], {})
    inner = tmp_path / "packages" / "one"
    package(inner / "src" / "one")
    (inner / "pyproject.toml").touch()
    with pytest.raises(PlaceError, match="no package there") as caught:
        source_env([str(tmp_path)], {})
    assert caught.value.hint == f"rl --src {inner} -- CMD"


def test_the_proof_names_the_file_and_says_wrong_when_it_is_another(tmp_path: Path) -> None:
    mine, theirs = package(tmp_path / "a" / "mypkg"), package(tmp_path / "b" / "mypkg")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    expected = {"mypkg": str(mine)}
    right = f"{tmp_path}/link/mypkg/__init__.py"
    wrong = f"{theirs}/__init__.py"
    assert proof(expected, {"mypkg": right}) == [f"mypkg was loaded from {right}"]
    assert proof(expected, {"mypkg": wrong}) == [
        f"WRONG: mypkg was loaded from {wrong}, not from {mine}"
    ]
    assert proof(expected, {}) == ["mypkg was not imported"]


# --- bytecode


def compiled(path: Path, mode: py_compile.PycInvalidationMode) -> Path:
    return Path(py_compile.compile(str(path), invalidation_mode=mode, doraise=True) or "")


TIMED = py_compile.PycInvalidationMode.TIMESTAMP
CHECKED = py_compile.PycInvalidationMode.CHECKED_HASH
UNCHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH


def value_imported(path: Path) -> str:
    """What Python itself makes of the source and its bytecode."""
    return subprocess.check_output(
        [sys.executable, "-B", "-c", f"import {path.stem}; print({path.stem}.x)"],
        cwd=path.parent,
        text=True,
    ).strip()


def is_told(path: Path) -> bool:
    lines = stale_bytecode([str(path)], env={}, python=None, project=str(path.parent))
    return bool(lines)


@pytest.mark.parametrize("mode", [TIMED, CHECKED, UNCHECKED])
@pytest.mark.parametrize("edit", ["none", "touch", "chmod", "later", "same second", "kept time"])
def test_bytecode_is_told_exactly_when_python_would_run_the_old(
    tmp_path: Path, mode: py_compile.PycInvalidationMode, edit: str
) -> None:
    path = tmp_path / "module.py"
    path.write_text("x = 1\n")
    whole = int(time.time()) - 100
    os.utime(path, ns=(whole * 10**9, whole * 10**9))
    before = path.stat()
    made = compiled(path, mode)
    if edit == "same second":  # compiled right after the first save, saved again within the second
        os.utime(made, ns=(whole * 10**9 + 10**8, whole * 10**9 + 10**8))
    if edit not in ("none", "touch", "chmod"):
        path.write_text("x = 2\n")
    if edit == "touch":
        os.utime(path)
    if edit == "chmod":
        path.chmod(0o755)
    if edit == "same second":
        os.utime(path, ns=(whole * 10**9 + 7 * 10**8,) * 2)
    if edit == "kept time":
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    runs_old = value_imported(path) != ("2" if "x = 2" in path.read_text() else "1")
    assert is_told(path) == runs_old
    if mode is UNCHECKED and edit == "later":
        assert runs_old  # or this test tests nothing


def test_a_deleted_module_that_can_still_be_imported_is_told(tmp_path: Path) -> None:
    path = tmp_path / "gone.py"
    path.write_text("x = 1\n")
    py_compile.compile(str(path), cfile=str(path) + "c")
    path.unlink()
    assert value_imported(path) == "1"
    (line,) = stale_bytecode([str(path)], env={}, python=None, project=str(tmp_path))
    assert line == f"gone.py is gone, but can still be imported: rm {path}c"


def test_damaged_bytecode_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("x = 1\n")
    made = compiled(path, TIMED)
    for data in (b"", b"short", made.read_bytes()[:20]):
        made.write_bytes(data)
        is_told(path)


# --- the whole way


def test_rl_src_runs_against_the_clone_and_proves_it(world: World) -> None:
    clone = world.root / "clone"
    mine = package(clone / "src" / "mypkg")
    (mine / "__init__.py").write_text("print('the clone')\n")
    package(world.project / "mypkg")
    world.write("run.py", "import mypkg\n")
    done = world.rl("--src", str(clone), "--", sys.executable, "run.py")
    assert (done.returncode, done.stdout) == (0, "the clone\n"), done.stderr
    assert f"mypkg was loaded from {mine}/__init__.py" in done.stderr
    assert "WRONG" not in done.stderr
