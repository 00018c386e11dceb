"""Environments of old revisions, made by the real installers from packages that build themselves.

The packages lie in the test's own folder and bring their build tool along: no registry is asked,
but for the tests that say so.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.building import Package
from tests.depth import takes_turns
from tests.needs import INSTALLED, missing, needs
from tests.power import disk

from relaunch.errors import PlaceError
from relaunch.trial.place.environment import Environment, Environments
from relaunch.trial.place.frozen_packages import freeze
from relaunch.trial.place.installer import ways
from relaunch.trial.place.pythons import pythons, version_of
from relaunch.trial.place.requirements import Requirements


@pytest.fixture(autouse=True)
def _own_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find the uv that is installed beside the Python of the tests."""
    beside = os.path.dirname(sys.executable)
    monkeypatch.setenv("PATH", os.pathsep.join([beside, os.environ.get("PATH", os.defpath)]))


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment of installers that ask no registry, and whose caches are empty."""
    return {
        **os.environ,
        "UV_OFFLINE": "1",
        "UV_CACHE_DIR": str(tmp_path / "uv-cache"),
        "PIP_NO_INDEX": "1",
        "PIP_CACHE_DIR": str(tmp_path / "pip-cache"),
    }


@pytest.fixture(params=["uv", "pip"])
def by_each(request: pytest.FixtureRequest, env: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The same, once with uv and once without."""
    if request.param == "uv":
        needs("uv")
        return env
    return {**env, "PATH": str(tmp_path / "no-programs")}


def environments(tmp_path: Path, env: dict[str, str], **options) -> Environments:
    return Environments(str(tmp_path / "environments"), sys.executable, env=env, **options)


def run(environment: Environment, *argv: str, **more: str) -> str:
    """Run a program in an environment and return what it says."""
    done = subprocess.run(
        argv, env={**os.environ, **environment.env, **more}, capture_output=True, text=True
    )
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def imports(environment: Environment, names: str) -> str:
    return run(environment, environment.python, "-c", f"import {names}; print('imported')")


# --- making and reusing


def test_an_environment_is_made_once_and_has_what_is_needed(by_each, tmp_path: Path) -> None:
    package = Package(tmp_path, "sample")
    said: list[str] = []
    made = environments(tmp_path, by_each, tell=said.append).for_requirements(package.needs)
    assert made.made_by == ways(by_each)[0]
    assert imports(made, "sample") == "imported"
    assert run(made, "sample") == "here"
    assert freeze(made.python, env={}) == {"sample": "1.0"}
    assert "sample" in Path(made.log).read_text()
    by = f"(Python {version_of(sys.executable)}, {made.made_by})"
    assert said == [f"making an environment with {package.needs.needs[0]} {by}", ""]
    again = environments(tmp_path, by_each, tell=said.append).for_requirements(package.needs)
    assert again == made
    assert (len(said), package.builds) == (2, 1)


def test_other_needs_extras_inheritance_or_pythons_get_an_environment_of_their_own(
    env, tmp_path: Path
) -> None:
    needs("uv")
    one, other = Package(tmp_path, "one"), Package(tmp_path, "other")
    plain = environments(tmp_path, env)
    made = [
        plain.for_requirements(Requirements()),
        plain.for_requirements(one.needs),
        plain.for_requirements(one.needs, extra=other.needs.needs),
        environments(tmp_path, env, inherit=("/nowhere",)).for_requirements(one.needs),
    ]
    assert len({environment.python for environment in made}) == 4
    assert imports(made[0], "one").startswith("ModuleNotFoundError")
    assert imports(made[1], "other").startswith("ModuleNotFoundError")
    assert imports(made[2], "one, other") == "imported"


def test_every_python_gets_its_own(env, tmp_path: Path) -> None:
    needs("uv")
    package = Package(tmp_path, "sample")
    for version, python in INSTALLED.items():
        made = Environments(str(tmp_path / "e"), python, env=env).for_requirements(package.needs)
        assert imports(made, "sample") == "imported"
        assert version_of(made.python).startswith(version + ".")


def test_what_is_inherited_comes_last_and_brings_no_checkout_of_today(env, tmp_path: Path) -> None:
    package = Package(tmp_path, "sample")
    today = tmp_path / "today"
    (today / "sample").mkdir(parents=True)
    (today / "sample" / "__init__.py").write_text("raise SystemExit('today')")
    (today / "tool_of_mine.py").write_text("")
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "of_today.py").write_text("")
    (today / "editable.pth").write_text(f"{tmp_path / 'checkout'}\n")
    made = environments(tmp_path, env, inherit=(str(today),)).for_requirements(package.needs)
    assert imports(made, "sample, tool_of_mine") == "imported"
    assert imports(made, "of_today").startswith("ModuleNotFoundError")


def test_variables_that_lead_installers_astray_are_kept_from_them(by_each, tmp_path: Path) -> None:
    package = Package(tmp_path, "sample")
    wrong = tmp_path / "wrong"
    (wrong / "sample-1.0.dist-info").mkdir(parents=True)
    (wrong / "sample-1.0.dist-info" / "METADATA").write_text("Name: sample\nVersion: 1.0\n")
    astray = {
        **by_each,
        "PYTHONPATH": str(wrong),
        "PIP_TARGET": str(wrong),
        "VIRTUAL_ENV": str(wrong),
    }
    made = environments(tmp_path, astray).for_requirements(package.needs)
    assert imports(made, "sample") == "imported"


@takes_turns
def test_a_python_without_pip_gets_environments_that_have_one(env, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    python = str(bare / "bin" / "python")
    env = {**env, "PATH": str(tmp_path / "no-programs")}
    assert ways(env, python) == ["venv"]
    package = Package(tmp_path, "sample")
    made = Environments(str(tmp_path / "e"), python, env=env).for_requirements(package.needs)
    assert made.made_by == "venv"
    assert imports(made, "sample, pip") == "imported"


def test_a_rung_that_cannot_make_an_environment_leaves_it_to_the_next(env, tmp_path: Path) -> None:
    broken = tmp_path / "bin" / "uv"
    broken.parent.mkdir()
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] || exit 3\n')
    broken.chmod(0o755)
    env = {**env, "PATH": f"{broken.parent}:/usr/bin:/bin"}
    made = environments(tmp_path, env).for_requirements(Package(tmp_path, "sample").needs)
    assert made.made_by == "pip"
    assert imports(made, "sample") == "imported"


def test_an_environment_whose_python_is_gone_is_made_anew(env, tmp_path: Path) -> None:
    needs("uv")
    package = Package(tmp_path, "sample")
    made = environments(tmp_path, env).for_requirements(package.needs)
    Path(made.python).unlink()
    again = environments(tmp_path, env).for_requirements(package.needs)
    assert imports(again, "sample") == "imported"
    assert not Path(made.python).parent.exists()


def test_a_python_that_does_not_run_is_told(env, tmp_path: Path) -> None:
    nothing = Environments(str(tmp_path), str(tmp_path / "nothing"), env=env)
    with pytest.raises(PlaceError, match=r"does not run|has neither"):
        nothing.for_requirements(Requirements())


# --- what goes wrong


def test_a_failing_installation_is_told_and_not_tried_again(by_each, tmp_path: Path) -> None:
    package = Package(tmp_path, "broken", "raise RuntimeError('no compiler of 2014 here')")
    with pytest.raises(PlaceError) as first:
        environments(tmp_path, by_each).for_requirements(package.needs)
    assert "no compiler of 2014 here" in first.value.message
    assert "broken" in first.value.message
    assert first.value.hint.startswith("cat ")
    assert package.builds == 1
    with pytest.raises(PlaceError) as again:
        environments(tmp_path, by_each).for_requirements(package.needs)
    assert again.value.message == first.value.message
    assert package.builds == 1
    folder = again.value.hint.split()[2]
    subprocess.run(["rm", "-r", folder], check=True)
    (package.folder / "before.py").write_text("")
    made = environments(tmp_path, by_each).for_requirements(package.needs)
    assert imports(made, "broken") == "imported"


def test_a_fault_of_the_network_is_not_remembered_for_the_next_one(env, tmp_path: Path) -> None:
    package = Package(tmp_path, "away", "raise OSError('Temporary failure in name resolution')")
    asked = environments(tmp_path, env)
    for _ in range(2):
        with pytest.raises(PlaceError, match="Temporary failure"):
            asked.for_requirements(package.needs)
    assert package.builds == 1
    (package.folder / "before.py").write_text("")
    made = environments(tmp_path, env).for_requirements(package.needs)
    assert imports(made, "away") == "imported"


class Pipe:
    """A named pipe on which the build of a package tells who it is, and then waits."""

    WAITING = """
        import os, subprocess, sys
        argv = [sys.executable, "-c", "import time; time.sleep(1000)"]
        child = subprocess.Popen(argv, start_new_session=True)
        with open({told!r}, "w") as file:
            file.write("%d %d" % (os.getpid(), child.pid))
        open({go!r}).read()
        child.kill()
    """

    def __init__(self, folder: Path) -> None:
        self.told, self.go = folder / "told", folder / "go"
        for path in (self.told, self.go):
            os.mkfifo(path)
        self.before = textwrap.dedent(self.WAITING).format(told=str(self.told), go=str(self.go))

    def building(self) -> list[int]:
        """Wait until the build runs; return handles of its processes that can be waited for."""
        return [os.pidfd_open(int(pid)) for pid in self.told.read_text().split()]

    def release(self) -> None:
        self.go.write_text("go")


@pytest.fixture
def pipe(tmp_path: Path) -> Pipe:
    return Pipe(tmp_path)


def all_ended(handles: list[int], within_s: float = 30) -> bool:
    ended = [bool(select.select([handle], [], [], within_s)[0]) for handle in handles]
    for handle in handles:
        os.close(handle)
    return all(ended)


def test_a_time_limit_ends_the_installer_with_all_its_children(by_each, tmp_path, pipe) -> None:
    package = Package(tmp_path, "slow", pipe.before)
    reader = os.open(pipe.told, os.O_RDONLY | os.O_NONBLOCK)
    pids: list[bytes] = []
    for limit_s in (4, 16, 64):  # a busy machine may need longer to come to the build
        if not pids:
            with pytest.raises(PlaceError, match=f"it took over {limit_s} s"):
                environments(tmp_path, by_each, limit_s=limit_s).for_requirements(package.needs)
            pids = os.read(reader, 100).split()
    os.close(reader)
    assert len(pids) == 2
    assert not any(Path(f"/proc/{pid.decode()}/cwd").exists() for pid in pids)
    # Not remembered: with more time, or on another day, it may be done.
    (package.folder / "before.py").write_text("")
    made = environments(tmp_path, by_each).for_requirements(package.needs)
    assert imports(made, "slow") == "imported"


ASKING = """
import sys
sys.path.insert(0, sys.argv[1])
from relaunch.trial.place.environment import Environments
from relaunch.trial.place.requirements import Requirements
import os
made = Environments(
    sys.argv[2], sys.executable, env=os.environ, tell=lambda line: print(line, flush=True)
).for_requirements(Requirements(needs=(sys.argv[3],)))
print(made.python, flush=True)
"""
SOURCE = str(Path(__file__).parents[2] / "src")


@pytest.fixture
def asking(
    tmp_path: Path, env: dict[str, str]
) -> Iterator[Callable[[Package], subprocess.Popen[str]]]:
    """Start a process that asks for an environment; it is killed if it is still there."""
    started: list[subprocess.Popen[str]] = []

    def start(package: Package) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", ASKING, SOURCE, str(tmp_path / "environments")]
        process = subprocess.Popen(
            [*argv, *package.needs.needs], env=env, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_what_a_killed_process_left_half_made_is_made_anew(asking, env, tmp_path, pipe) -> None:
    package = Package(tmp_path, "slow", pipe.before)
    process = asking(package)
    building = pipe.building()
    process.send_signal(signal.SIGKILL)
    assert all_ended(building)
    (package.folder / "before.py").write_text("")
    made = environments(tmp_path, env).for_requirements(package.needs)
    assert imports(made, "slow") == "imported"
    [folder] = (tmp_path / "environments").iterdir()
    assert [path for path in folder.iterdir() if path.is_dir()] == [Path(made.python).parents[1]]


def test_an_environment_that_says_it_is_made_is_whole_after_a_power_cut(
    env, tmp_path: Path
) -> None:
    package = Package(tmp_path, "sample")
    with disk(tmp_path) as real:
        parent = str(real.at / "environments")
        made = Environments(parent, sys.executable, env=env).for_requirements(package.needs)
        with open(real.at / "other", "wb") as other:  # all names are on the disk with this
            os.fsync(other.fileno())
        root = Path(made.env["VIRTUAL_ENV"])
        sizes = {
            path.relative_to(real.at): path.stat().st_size
            for path in root.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        with real.cut("cut") as at:
            assert (at / root.relative_to(real.at)).with_name("made").is_file()
            assert {path: (at / path).stat().st_size for path in sizes} == sizes


def test_two_processes_at_once_make_one_environment(asking, env, tmp_path, pipe) -> None:
    package = Package(tmp_path, "slow", pipe.before)
    first = asking(package)
    building = pipe.building()
    second = asking(package)
    what = f"an environment with {package.needs.needs[0]}"
    assert second.stdout.readline() == f"waiting: another process makes {what}\n"
    pipe.release()
    assert first.stdout.readline().startswith(f"making {what}")
    assert first.stdout.readline() == second.stdout.readline() != ""
    assert package.builds == 1
    assert all_ended(building)


# --- the checkout itself


GENERATES = """
import os
with open(os.path.join(HERE, "sample", "_version.py"), "w") as file:
    file.write("version = '1.0'")
"""


def test_a_checkout_is_installed_on_top_and_what_it_generates_is_there(
    by_each, tmp_path: Path
) -> None:
    helper = Package(tmp_path / "helper", "helper")
    uses_it = "def main():\n    import sample\n    print(sample.__file__)\n"
    (helper.folder / "helper" / "__init__.py").write_text(uses_it)
    tree = Package(tmp_path / "tree", "sample", GENERATES)
    kept = environments(tmp_path, by_each)
    base = kept.for_requirements(helper.needs)
    made = kept.editable(base, str(tree.folder), tree_id="abc")
    assert imports(made, "sample._version, helper") == "imported"
    assert imports(base, "sample").startswith("ModuleNotFoundError")
    assert run(made, "sample") == "here"
    # A script of a package below runs with the checkout too.
    assert run(made, "helper") == str(tree.folder / "sample" / "__init__.py")


def test_what_the_next_checkout_removed_is_put_back_without_building(env, tmp_path: Path) -> None:
    tree = Package(tmp_path, "sample", GENERATES)
    kept = environments(tmp_path, env)
    base = kept.for_requirements(Requirements())
    made = kept.editable(base, str(tree.folder), tree_id="abc")
    builds = tree.builds
    generated = tree.folder / "sample" / "_version.py"
    generated.write_text("version = 'of another revision'")
    assert kept.editable(base, str(tree.folder), tree_id="abc") == made
    assert generated.read_text() == "version = '1.0'"
    generated.unlink()
    again = environments(tmp_path, env).editable(base, str(tree.folder), tree_id="abc")
    assert again == made
    assert imports(made, "sample._version") == "imported"
    assert (tree.folder / "builds").read_text().count("built") == builds


def test_another_tree_is_installed_anew(env, tmp_path: Path) -> None:
    tree = Package(tmp_path, "sample", GENERATES)
    kept = environments(tmp_path, env)
    base = kept.for_requirements(Requirements())
    one = kept.editable(base, str(tree.folder), tree_id="abc")
    (tree.folder / "before.py").write_text(GENERATES.replace("1.0", "2.0"))
    other = kept.editable(base, str(tree.folder), tree_id="def")
    assert one.python != other.python
    assert "2.0" in (tree.folder / "sample" / "_version.py").read_text()


def test_a_build_tool_that_knows_no_editable_installs_builds_it(by_each, tmp_path: Path) -> None:
    tree = Package(tmp_path, "sample", editable=False)
    kept = environments(tmp_path, by_each)
    base = kept.for_requirements(Requirements())
    made = kept.editable(base, str(tree.folder), tree_id="abc")
    inside = run(made, made.python, "-c", "import sample; print(sample.__file__)")
    assert inside.startswith(str(Path(made.python).parents[1]))


def test_a_checkout_that_cannot_be_installed_is_told_and_not_tried_again(env, tmp_path) -> None:
    tree = Package(tmp_path, "sample", "raise RuntimeError('no Fortran here')")
    kept = environments(tmp_path, env)
    base = kept.for_requirements(Requirements())
    with pytest.raises(PlaceError, match="no Fortran here"):
        kept.editable(base, str(tree.folder), tree_id="abc")
    builds = tree.builds
    with pytest.raises(PlaceError, match="no Fortran here"):
        environments(tmp_path, env).editable(base, str(tree.folder), tree_id="abc")
    assert tree.builds == builds


# --- other Pythons


def test_pythons_are_found_on_path_and_among_those_of_pyenv(tmp_path: Path) -> None:
    real = os.path.realpath(sys.executable)
    others = {os.path.realpath(python) for python in INSTALLED.values()} - {real}
    folder, root = tmp_path / "bin", tmp_path / "pyenv"
    folder.mkdir()
    (folder / "python3").symlink_to(sys.executable)
    (folder / "python").symlink_to("python3")
    for number, other in enumerate(sorted(others)):
        (root / "versions" / str(number) / "bin").mkdir(parents=True)
        (root / "versions" / str(number) / "bin" / "python").symlink_to(other)
    for name in ("shims/python3", "bin/python3.99", "bin/python-config"):
        script = tmp_path / name
        script.parent.mkdir(exist_ok=True)
        script.write_text("#!/bin/sh\nexit 1\n")
        script.chmod(0o755)
    env = {"PATH": f"{tmp_path / 'shims'}:{folder}", "PYENV_ROOT": str(root)}
    found = pythons(env)
    assert {path for _, path in found} == {real, *others}
    assert found == sorted(
        found, key=lambda pair: [int(number) for number in pair[0].split(".")], reverse=True
    )
    for version, path in found:
        said = subprocess.check_output([path, "--version"], text=True)
        assert said == f"Python {version}\n"


# --- what needs the registry


@pytest.fixture
def registry(tmp_path: Path) -> Environments:
    """Environments from the registry that this machine is set up for."""
    needs("uv")
    asked = Environments(str(tmp_path / "registered"), sys.executable, env=os.environ, limit_s=60)
    try:
        asked.for_requirements(Requirements(needs=("toml==0.10.2",)))
    except PlaceError as error:
        missing(f"this test takes small packages from the registry: {error.message}")
    return asked


def test_packages_are_those_of_the_day(registry: Environments) -> None:
    needed = Requirements(needs=("attrs",))
    of_then = registry.for_requirements(needed, before=1609459200)
    assert freeze(of_then.python, env={}) == {"attrs": "20.3.0"}
    assert registry.for_requirements(needed, before=1609459200 + 3600) == of_then
    assert registry.for_requirements(needed).python != of_then.python


def test_a_version_that_never_was_is_told(registry: Environments) -> None:
    with pytest.raises(PlaceError, match=r"there is no version of attrs==999"):
        registry.for_requirements(Requirements(needs=("attrs==999",)))


def test_without_uv_the_packages_of_a_day_are_refused(env, tmp_path: Path) -> None:
    env = {**env, "PATH": str(tmp_path / "no-programs")}
    with pytest.raises(PlaceError, match="can only be found by uv") as refused:
        environments(tmp_path, env).for_requirements(Requirements(), before=1609459200)
    assert refused.value.hint == "pip install uv"
