"""The plugin in real runs of pytest: the right copy, failures that become trials, peeks."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import World
from tests.depth import takes_turns
from tests.needs import every_python

SOURCE = Path(__file__).parents[2] / "src"
TESTS = sysconfig.get_path("purelib")
PRICE = (
    "WHOSE = {whose!r}\n\ndef price(prices, name):\n    found = prices[name]\n    return found\n"
)
TEST = """\
import shop
from shop.inner import price

def test_good():
    assert price({"a": 1}, "a") == 1
    print("imported", shop.__file__)

def test_bad():
    assert price({"a": 1}, "b") == 1
"""
EDITABLE = """\
import importlib.util, sys
class Editable:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        known = {known!r}
        if name in known:
            return importlib.util.spec_from_file_location(name, known[name])
def install():
    sys.meta_path.{how}
"""


class Shop:
    """A checkout with tests, and a venv that has pytest, relaunch and what is put into it."""

    def __init__(self, world: World, python: str = sys.executable) -> None:
        self.world = world
        world.env["PYTEST_ADDOPTS"] = "-p no:hypothesispytest"  # workers are asked for here
        real = os.path.realpath(python)
        version = re.search(r"python3\.\d+", subprocess.run(
            [python, "-c", "import os; print(os.__file__)"], capture_output=True, text=True,
            check=True).stdout)  # fmt: skip
        assert version
        venv = world.root / "venv"
        self.site = venv / "lib" / version[0] / "site-packages"
        self.site.mkdir(parents=True)
        (venv / "bin").mkdir()
        self.python = venv / "bin" / "python"
        self.python.symlink_to(real)
        alone = "include-system-site-packages = false"
        (venv / "pyvenv.cfg").write_text(f"home = {os.path.dirname(real)}\n{alone}\n")
        (self.site / "zz_pytest.pth").write_text(f"{SOURCE}\n{TESTS}\n")
        self.program = venv / "bin" / "pytest"
        start = "import sys, pytest\nsys.exit(pytest.main())\n"
        self.program.write_text(f"#!{self.python}\n{start}")
        self.program.chmod(0o755)

    def package(self, folder: Path, whose: str, name: str = "shop") -> Path:
        """Put a copy of the package there."""
        path = folder / name.replace(".", "/")
        path.mkdir(parents=True, exist_ok=True)
        (path / "__init__.py").write_text("")
        (path / "inner.py").write_text(PRICE.format(whose=whose))
        return path

    def plain(self, *words: str, **how):
        """Run pytest with relaunch installed, and not asked for."""
        return self.world.shell(f"{self.program} -p no:cacheprovider {' '.join(words)}", **how)

    def pytest(self, *words: str, **how):
        """Run pytest with the plugin."""
        return self.plain("-o", "relaunch=true", *words, **how)

    def clone(self) -> Path:
        """Return another clone of the project, with its own copy."""
        folder = self.world.root / "elsewhere"
        self.package(folder, "another clone")
        return folder


@pytest.fixture
def shop(world):
    return Shop(world)


# --- nothing is done until somebody asks

FIXED = "import shop.inner\ndef test(): assert shop.inner.WHOSE == 'this checkout'\n"
ASKED = {
    "by its name": ("-p relaunch", {}),
    "by its module": ("-p relaunch.pytest_plugin", {}),
    "in the ini file": ("-o relaunch=true", {}),
    "for all runs of a shell": ("", {"PYTEST_ADDOPTS": "-p relaunch"}),
}
SET_BY = ("TOX_ENV_NAME", "NOX_CURRENT_SESSION", "CI", "GITHUB_ACTIONS")


@pytest.fixture
def fixed(shop):
    """A bug that is fixed in the checkout, and not in the package that is installed."""
    shop.world.write("pyproject.toml", '[project]\nname = "shop"\n')
    shop.package(shop.world.project / "src", "this checkout")
    install_copy(shop, "shop")
    shop.world.write("tests/test_fixed.py", FIXED)
    return shop


def test_to_install_relaunch_turns_no_failing_test_green(fixed):
    without, installed = fixed.plain("-p", "no:relaunch"), fixed.plain()
    assert without.returncode == installed.returncode == 1

    def said(text: str) -> str:
        return re.sub(r"in \d+\.\d+s =*|(, |plugins: )relaunch-[\d.]+", "", text)

    assert said(installed.stdout) == said(without.stdout)
    assert not fixed.world.journal.exists()


@pytest.mark.parametrize(("words", "env"), ASKED.values(), ids=ASKED.keys())
def test_the_plugin_is_active_where_it_was_asked_for(fixed, words, env):
    done = fixed.plain("-q", words, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rl: shop is that of this checkout" in done.stdout


def test_under_tox_nox_and_ci_what_is_installed_is_tested_and_why_is_said(fixed):
    for variable, (words, env) in zip(SET_BY, ASKED.values(), strict=True):
        done = fixed.plain(words, env={**env, variable: "1"})
        assert done.returncode == 1, done.stdout + done.stderr
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("rl:")]
        assert line.startswith(f"rl: not active: {variable} is set: ")
    assert "rl:" not in fixed.plain(env={"CI": "1"}).stdout
    assert not fixed.world.journal.exists()


@takes_turns
def test_pytest_under_rl_tests_the_checkout_with_workers_too(fixed):
    for words in (
        [str(fixed.program), "-q"],
        [str(fixed.python), "-m", "pytest", "-q", "-n", "2"],
    ):
        done = fixed.world.rl("--", *words, "-p", "no:cacheprovider")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "rl: shop is that of this checkout" in done.stdout
        there = fixed.world.rl("--", *words, env={"CI": "true"})
        assert there.returncode == 1, there.stdout + there.stderr
        assert "edits here are not tested" in there.stderr


def test_what_rl_starts_only_in_turn_is_not_asked(fixed):
    fixed.world.write("Makefile", f"test:\n\t{fixed.program} -p no:cacheprovider tests\n")
    assert fixed.world.rl("--", "make", "test").returncode == 2
    inner = f"[{str(fixed.program)!r}, '-p', 'no:cacheprovider', 'tests/test_fixed.py']"
    fixed.world.write(
        "outer/test_outer.py",
        f"import subprocess\ndef test(): assert subprocess.run({inner}).returncode == 1\n",
    )
    for workers in ([], ["-n", "1"]):
        done = fixed.world.rl("--", str(fixed.program), "-q", *workers, "outer")
        assert done.returncode == 0, done.stdout


def test_what_is_installed_with_relaunch_starts_nowhere_by_itself(world):
    groups = {one.group for one in metadata.distribution("relaunch").entry_points}
    assert groups == {"pytest11"}
    assert not list(SOURCE.rglob("*.pth"))
    loaded = "import sys; print([name for name in sys.modules if 'relaunch' in name])"
    assert world.shell(f"{sys.executable} -c {shlex.quote(loaded)}").stdout == "[]\n"


# --- tests import the checkout

LAYOUTS = {
    "src": ("src", "shop"),
    "flat": ("", "shop"),
    "python": ("python", "shop"),
    "namespace": ("src", "acme.shop"),
}


def install_copy(shop: Shop, name: str) -> None:
    shop.package(shop.site, "an installed copy", name)


def install_pth(shop: Shop, name: str) -> None:
    shop.package(shop.world.root / "clone", "another clone", name)
    (shop.site / "a_clone.pth").write_text(f"{shop.world.root / 'clone'}\n")


def install_finder(how: str):
    def install(shop: Shop, name: str) -> None:
        folder = shop.package(shop.world.root / "clone", "another clone", name)
        known = {name: str(folder / "__init__.py"), f"{name}.inner": str(folder / "inner.py")}
        (shop.site / "editable_finder.py").write_text(EDITABLE.format(known=known, how=how))
        (shop.site / "a_clone.pth").write_text("import editable_finder; editable_finder.install()")

    return install


def install_nothing(shop: Shop, name: str) -> None:
    pass


INSTALLS = {
    "copy": install_copy,
    "pth": install_pth,
    "finder last": install_finder("append(Editable)"),
    "finder first": install_finder("insert(0, Editable)"),
    "nothing": install_nothing,
}


@takes_turns
@pytest.mark.parametrize("install", INSTALLS.values(), ids=INSTALLS.keys())
@pytest.mark.parametrize(("folder", "name"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_tests_import_the_checkout_whatever_is_installed(shop, folder, name, install):
    project = shop.world.project
    where = f'[tool.hatch]\npackages = ["{folder}/{name}"]\nwhere = ["{folder}"]\n'
    shop.world.write("pyproject.toml", f'[project]\nname = "{name}"\nversion = "1"\n{where}')
    shop.package(project / folder, "this checkout", name)
    install(shop, name)
    shop.world.write(
        "tests/test_whose.py",
        f"import {name}.inner\ndef test(): assert {name}.inner.WHOSE == 'this checkout'\n",
    )
    for mode in ("prepend", "importlib"):
        done = shop.pytest("-q", "--import-mode", mode)
        assert done.returncode == 0, done.stdout
        told = done.stdout.count("is that of this checkout")
        # Without us a finder that comes last is not even asked for a part of a namespace.
        is_found_anyway = "." in name and install is INSTALLS["finder last"]
        assert told == (install is not install_nothing and not is_found_anyway), done.stdout
    alone = shop.plain("-q")
    assert alone.returncode != 0, "without the plugin this layout has to fail, or it shows nothing"


def test_what_was_prevented_is_told_with_its_cause(shop):
    shop.package(shop.world.project / "src", "this checkout")
    shop.world.write("pyproject.toml", '[project]\nname = "shop"\n')
    install_pth(shop, "shop")
    shop.world.write("tests/test_it.py", "import shop.inner\ndef test(): pass\n")
    (first, second) = [
        line
        for line in shop.pytest("-q").stdout.splitlines()
        if line.startswith(("rl: shop", "    not"))
    ]
    clone = shop.world.root / "clone"
    assert first == "rl: shop is that of this checkout (src/shop/__init__.py),"
    assert second.startswith(f"    not {clone}/shop/__init__.py: sys.path[")
    assert second.endswith(f"put there by {shop.site}/a_clone.pth")
    in_workers = shop.pytest("-q", "-n", "2")
    assert in_workers.stdout.count("rl: shop is that of this checkout") == 1, in_workers.stdout


def test_the_guard_can_be_turned_off(shop):
    shop.package(shop.world.project / "src", "this checkout")
    shop.world.write("pyproject.toml", '[project]\nname = "shop"\n')
    install_copy(shop, "shop")
    shop.world.write(
        "tests/test_it.py",
        "import shop.inner\ndef test(): assert shop.inner.WHOSE == 'an installed copy'\n",
    )
    done = shop.pytest("-q", "-o", "relaunch_front=false")
    assert done.returncode == 0, done.stdout
    assert "rl:" not in done.stdout


def test_rl_has_no_doubt_of_tests_that_the_plugin_leads_to_the_checkout(shop):
    shop.package(shop.world.project / "src", "this checkout")
    shop.world.write("pyproject.toml", '[project]\nname = "shop"\n')
    install_copy(shop, "shop")
    shop.world.write("tests/test_it.py", "import shop.inner\ndef test(): pass\n")
    doubt = "edits here are not tested"
    for words, is_doubted in (((), False), (("-p", "no:relaunch"), True),
                              (("-o", "relaunch_front=false"), True)):  # fmt: skip
        done = shop.world.rl("--", str(shop.program), "-q", *words)
        assert (doubt in done.stderr) == is_doubted, done.stderr
        assert ("is that of this checkout" in done.stdout) == (not is_doubted)


def test_a_folder_that_happens_to_have_the_name_of_a_library_gives_way_to_it(shop):
    shop.world.write("pyproject.toml", '[project]\nname = "mine"\n')
    shop.world.write("shop/__init__.py", "")
    shop.world.write("shop/goods.py", "")
    library = shop.package(shop.site, "a library")
    for name in ("orders", "people", "stock"):
        (library / f"{name}.py").write_text("")
    test = "import shop.inner\ndef test(): assert shop.inner.WHOSE == 'a library'\n"
    shop.world.write("tests/test_it.py", test)
    done = shop.pytest("-q")
    assert done.returncode == 0, done.stdout
    assert "rl:" not in done.stdout


def test_a_file_named_like_a_module_of_python_does_not_shadow_it(shop):
    shop.world.write("pyproject.toml", '[project]\nname = "json"\npy-modules = ["json"]\n')
    shop.world.write("json.py", "raise SystemExit('shadowed')\n")
    shop.world.write("tests/test_it.py", "import json\ndef test(): json.dumps(1)\n")
    assert shop.pytest("-q").returncode == 0


def test_what_only_a_build_makes_is_borrowed_and_told(shop):
    shop.world.write("pyproject.toml", '[project]\nname = "shop"\n')
    shop.package(shop.world.project / "src", "this checkout")
    installed = shop.package(shop.site, "an installed copy")
    (installed / "_version.py").write_text("# file generated by a build\nversion = '3'\n")
    (installed / "gone.py").write_text("")
    shop.world.write(
        "tests/test_it.py",
        "import pytest\nfrom shop._version import version\nfrom shop.inner import WHOSE\n"
        "def test():\n"
        "    assert (version, WHOSE) == ('3', 'this checkout')\n"
        "    with pytest.raises(ModuleNotFoundError):\n"
        "        import shop.gone\n",
    )
    done = shop.pytest("-q")
    assert done.returncode == 0, done.stdout
    assert f"rl: shop._version is only made by a build: {installed}/_version.py" in done.stdout


def test_a_copy_that_another_plugin_had_imported_is_named(shop):
    shop.world.write("pyproject.toml", '[project]\nname = "shop"\n')
    shop.package(shop.world.project / "src", "this checkout")
    installed = shop.package(shop.site, "an installed copy")
    (shop.site / "early_plugin.py").write_text("import shop.inner\n")
    shop.world.write("tests/test_it.py", "import shop\ndef test(): pass\n")
    done = shop.pytest("-q", "-p", "early_plugin")
    assert (
        f"rl: WRONG FILE: shop had been imported by another plugin from {installed}" in done.stdout
    )
    first = shop.plain("-q", "-p", "relaunch", "-p", "early_plugin")
    assert first.returncode == 0


# --- failures become trials


@pytest.fixture
def failing(shop):
    shop.world.write("pyproject.toml", '[project]\nname = "shop"\n')
    shop.package(shop.world.project / "src", "this checkout")
    shop.world.write("tests/test_it.py", TEST)
    shop.world.commit()
    return shop


def trials(shop) -> list[dict[str, Any]]:
    done = shop.world.rl("log", "--json")
    return json.loads(done.stdout)["trials"] if done.returncode == 0 else []


@every_python
def test_a_failing_test_becomes_a_trial_that_can_be_replayed(world, python):
    shop = Shop(world, python)
    shop.world.write("pyproject.toml", '[project]\nname = "shop"\n')
    shop.package(shop.world.project / "src", "this checkout")
    shop.world.write("tests/test_it.py", TEST)
    shop.world.commit()
    done = shop.pytest("-q")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    at = lines.index("rl: #1 tests/test_it.py::test_bad")
    assert lines[at + 1] == "    test_it.py::test_bad: KeyError: 'b'"
    assert lines[at + 2] == "rl: next: rl replay 1, rl show 1, rl again 1"
    shown = shop.world.rl("show", "1").stdout
    words = "-p no:cacheprovider -o relaunch=true -q tests/test_it.py::test_bad"
    assert f"bin/pytest {words}" in shown
    assert "by        pytest: seen in a run of many" in shown
    assert "KeyError: 'b'" in shop.world.rl("show", "1", "--output").stdout
    replayed = shop.world.rl("replay")
    assert replayed.returncode == 1
    assert "still fails: inner.py:4 KeyError: 'b'" in replayed.stderr
    again = shop.world.rl("again", "1")
    assert "same failure as #1" in again.stderr, again.stderr
    inner = shop.world.project / "src/shop/inner.py"
    inner.write_text(inner.read_text().replace("prices[name]", "prices.get(name, 1)"))
    assert shop.world.rl("replay", "1").returncode == 0


def test_nothing_is_kept_of_a_run_that_passes(failing):
    done = failing.pytest("-q", "-k", "good")
    assert done.returncode == 0
    assert "rl:" not in done.stdout
    assert not failing.world.journal.exists()


def test_the_words_and_the_exit_code_of_pytest_stay_as_they_are(failing):
    ours = failing.pytest("--color=no", "-p", "no:randomly")
    plain = failing.plain("--color=no", "-p", "no:randomly", "-p", "no:relaunch",
                          env={"PYTHONPATH": "src"})  # fmt: skip
    assert ours.returncode == plain.returncode == 1

    def told(text: str) -> list[str]:
        kept = [
            line for line in text.splitlines() if not line.startswith(("rl: ", "    test_it.py::"))
        ]
        return [re.sub(r"in \d+\.\d+s =*|, relaunch-[\d.]+", "", line) for line in kept]

    assert told(ours.stdout) == told(plain.stdout)


def test_a_bare_rl_repeats_what_rl_ran_not_what_pytest_did(failing):
    failing.world.rl("--", "true")
    failing.pytest("-q")
    assert "rl #1.2" in failing.world.rl().stderr


KINDS = """\
import unittest, pytest

@pytest.fixture
def broken():
    raise LookupError("in the fixture")

@pytest.fixture
def late():
    yield 1
    raise OSError("in the teardown")

def test_setup(broken): pass
def test_teardown(late): pass

class TestOld(unittest.TestCase):
    def test_equal(self): self.assertEqual(1, 2)

@pytest.mark.parametrize("word", ["a b", "c/d"])
def test_each(word): assert word == "x"

def test_fails(): pytest.fail("on purpose")

def test_does_not_raise():
    with pytest.raises(ValueError):
        pass

def test_exits(): raise SystemExit(3)

@pytest.mark.xfail
def test_expected(): assert 0

def test_skipped(): pytest.skip("why not")
"""


@takes_turns
def test_every_way_to_fail_is_kept_and_no_way_to_pass(shop):
    shop.world.write("tests/test_kinds.py", KINDS)
    shop.world.write("tests/test_broken.py", "import nowhere_at_all\n")
    shop.pytest("-q", "--continue-on-collection-errors")
    kept = [(one["id"], one["command"][-1]) for one in trials(shop)]
    assert sorted(test for _, test in kept) == [
        "tests/test_broken.py",
        "tests/test_kinds.py::TestOld::test_equal",
        "tests/test_kinds.py::test_does_not_raise",
        "tests/test_kinds.py::test_each[a b]",
        "tests/test_kinds.py::test_each[c/d]",
        "tests/test_kinds.py::test_exits",
        "tests/test_kinds.py::test_fails",
        "tests/test_kinds.py::test_setup",
        "tests/test_kinds.py::test_teardown",
    ]
    by_test = {test: number for number, test in kept}
    for test, said in (
        ("tests/test_kinds.py::test_setup", "LookupError: in the fixture"),
        ("tests/test_kinds.py::test_teardown", "OSError: in the teardown"),
        ("tests/test_kinds.py::test_each[a b]", "assert 'a b' == 'x'"),
        ("tests/test_kinds.py::test_fails", "Failed: on purpose"),
    ):
        again = shop.world.rl("again", by_test[test])
        assert said in again.stderr, again.stderr
        assert f"same failure as #{by_test[test]}" in again.stderr, again.stderr


PATCHES = """\
import builtins, os, subprocess, time

def test_all_is_patched(monkeypatch, tmp_path):
    def never(*args, **more): raise RuntimeError("patched")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setenv("PATH", "")
    for module, name in ((builtins, "open"), (os, "open"), (os, "mkdir"), (os, "fork"),
                         (subprocess, "Popen"), (time, "time"), (time, "monotonic")):
        monkeypatch.setattr(module, name, never)
    price = {"a": 1}
    assert price["b"]
"""


def test_what_a_test_patched_does_not_keep_its_failure_from_being_kept(shop):
    shop.world.write("tests/test_patches.py", PATCHES)
    done = shop.pytest("-q")
    assert "rl: #1 tests/test_patches.py::test_all_is_patched" in done.stdout, done.stdout
    assert "KeyError: 'b'" in shop.world.rl("replay", "1").stderr


def test_workers_keep_their_failures_too_and_a_broken_file_once(failing):
    failing.world.write("tests/test_broken.py", "import nowhere_at_all\n")
    anyway = "--continue-on-collection-errors"
    done = failing.pytest("-q", anyway, "-n", "2")
    kept = re.findall(r"^rl: #(\d+) (.*)$", done.stdout, re.MULTILINE)
    assert sorted(test for _, test in kept) == [
        "tests/test_broken.py",
        "tests/test_it.py::test_bad",
    ], done.stdout
    number = {test: number for number, test in kept}["tests/test_it.py::test_bad"]
    assert "still fails" in failing.world.rl("replay", number).stderr
    again = failing.pytest("-q", anyway, "tests/test_it.py")
    assert f"rl: #{number}.2 " in again.stdout, again.stdout


def test_of_many_failures_the_first_are_kept_and_the_others_counted(shop):
    shop.world.write(
        "tests/test_many.py",
        "import pytest\n@pytest.mark.parametrize('n', range(25))\ndef test(n): assert n < 0\n",
    )
    done = shop.pytest("-q")
    assert len(re.findall(r"^rl: #", done.stdout, re.MULTILINE)) == 5
    assert "rl: and 15 more, up to #20: rl log" in done.stdout
    assert len(trials(shop)) == 20
    assert "rl: 5 more that failed are not kept: the first ones are enough" in done.stdout
    assert not list((shop.world.root / "tmp").glob("relaunch-pytest*"))


def test_keeping_can_be_turned_off(failing):
    done = failing.pytest("-q", "-o", "relaunch_keep=false")
    assert done.returncode == 1
    assert "rl:" not in done.stdout
    assert not failing.world.journal.exists()


def test_under_rl_the_run_is_the_trial_and_each_failure_can_be_replayed(shop):
    shop.world.write(
        "tests/test_two.py",
        "def inner(n): return {}[n]\ndef test_a(): inner('a')\ndef test_b(): inner('b')\n",
    )
    done = shop.world.rl("--", str(shop.python), "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 1
    assert "rl: #" not in done.stdout
    assert len(trials(shop)) == 1
    listed = json.loads(shop.world.rl("replay", "--list", "--json").stdout)
    assert [one["who"] for one in listed["captures"]] == [
        "tests/test_two.py::test_a", "tests/test_two.py::test_b",
    ]  # fmt: skip


def test_a_secret_is_not_kept_with_a_failure(shop):
    shop.world.write(
        "tests/test_secret.py",
        "import os\ndef test(): assert os.environ['MY_TOKEN'] == 'x', os.environ['MY_TOKEN']\n",
    )
    done = shop.pytest("-q", env={"MY_TOKEN": "hunter2hunter2"})
    assert "rl: #1" in done.stdout
    for path in shop.world.journal.rglob("*"):
        if path.is_file():
            assert b"hunter2hunter2" not in path.read_bytes(), path


def test_a_journal_that_cannot_be_written_is_told_in_a_line(failing):
    (failing.world.root / "a_file").write_text("")
    failing.world.journal.write_text("a file where the journal belongs")
    done = failing.pytest("-q", env={"XDG_STATE_HOME": str(failing.world.root / "a_file")})
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert len([line for line in done.stdout.splitlines() if line.startswith("rl: ")]) == 1


def test_an_interrupted_run_has_kept_what_failed_before(failing):
    failing.world.write("tests/test_it.py", TEST + "\ndef test_stop(): raise KeyboardInterrupt\n")
    done = failing.pytest("-q")
    assert done.returncode == 2
    assert "rl: #1 tests/test_it.py::test_bad" in done.stdout
    assert len(trials(failing)) == 1


def test_a_killed_run_has_kept_what_failed_before(failing):
    failing.world.write(
        "tests/test_it.py",
        TEST + "\ndef test_die():\n"
        "    import glob, os, time\n"
        f"    while not glob.glob('{failing.world.journal}/trials/1/end.json'): time.sleep(0.01)\n"
        "    os.kill(os.getpid(), 9)\n",
    )
    assert failing.pytest("-q").returncode == 137
    (trial,) = trials(failing)
    assert "KeyError" in trial["signature"]["title"]


# --- peeks


def test_a_peek_shows_values_test_by_test(failing):
    place = "src/shop/inner.py:4"
    for workers in ((), ("-n", "2")):
        done = failing.pytest("-q", *workers, f"--relaunch-peek '{place} found len(prices)'")
        text = done.stdout.partition("relaunch peek ==")[2]
        good = f"tests/test_it.py::test_good\n  {place} found=1  len(prices)=1\n"
        assert good in text, done.stdout
        assert f"tests/test_it.py::test_bad\n  {place} found=<UnboundLocalError" in text
        times = " in 2 processes" if workers else ""
        assert f"rl: {place} hit 2 times{times}\n" in text


def test_a_peek_where_nothing_comes_by_says_why(failing):
    done = failing.pytest("-q", "-k", "good", "--relaunch-peek 'tests/test_it.py:9 shop'")
    assert "rl: tests/test_it.py:9 never hit: LINE NOT REACHED" in done.stdout, done.stdout


def test_a_peek_at_no_place_is_one_line_and_no_test_is_run(failing):
    for asked, said in (
        ("src/shop/innr.py:4 found", "did you mean src/shop/inner.py?"),
        ("src/shop/inner.py:2 found", "near is src/shop/inner.py:"),
        ("src/shop/inner.py:4 'found +'", "is no expression"),
        ("hello", "is no place"),
    ):
        done = failing.pytest("-q", f'--relaunch-peek "{asked}"')
        assert done.returncode == 4, done.stdout
        (line,) = [line for line in done.stderr.splitlines() if line]
        assert line.startswith("ERROR: --relaunch-peek: ")
        assert said in line
        assert "Traceback" not in done.stderr
    assert not list((failing.world.root / "tmp").glob("relaunch-*"))


def test_a_peek_asks_for_itself_alone_and_in_ci_too(fixed):
    peek = "--relaunch-peek 'tests/test_fixed.py:2 shop.inner.WHOSE'"
    done = fixed.plain("-q", peek, env={"CI": "true"})
    assert done.returncode == 1
    assert "shop.inner.WHOSE='an installed copy'" in done.stdout
    assert not fixed.world.journal.exists()


def test_a_peek_leaves_files_and_reports_as_they_are(failing):
    before = failing.world.git("status", "--porcelain", "--ignored")
    failing.pytest("-q", "--relaunch-peek 'src/shop/inner.py:4 found'", "-o", "relaunch_keep=false")
    assert failing.world.git("status", "--porcelain", "--ignored") == before


# --- what it costs


def test_a_plugin_that_is_not_asked_loads_one_file(failing):
    failing.world.write("tests/test_it.py", "def test(): pass\n")
    failing.world.write(
        "conftest.py",
        "import sys\ndef pytest_unconfigure():\n"
        "    print('LOADED', sorted(n for n in sys.modules if n.startswith('relaunch')))\n",
    )

    def loaded(stdout: str) -> list[str]:
        (names,) = re.findall(r"LOADED \[(.*)\]", stdout)
        return [name.strip("'") for name in names.split(", ")]

    assert loaded(failing.plain("-q", "-s").stdout) == ["relaunch", "relaunch.pytest_plugin"]
    assert loaded(failing.pytest("-q", "-s").stdout) == [
        "relaunch",
        "relaunch.inside",
        "relaunch.inside.as_installed",
        "relaunch.inside.front",
        "relaunch.inside.guard",
        "relaunch.inside.layout",
        "relaunch.pytest_plugin",
        "relaunch.pytest_plugin.session",
    ]
