"""Packages and their versions, from folders and from locks."""

import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.errors import PlaceError
from relaunch.trial.place.frozen_packages import Change, changed, freeze, lines_of, read_lock
from relaunch.trial.place.stated.line import canonical


def test_what_this_python_has_is_what_its_metadata_say() -> None:
    expected = {canonical(one.metadata["Name"]): one.version for one in distributions()}
    assert freeze(sys.executable).items() <= expected.items()
    assert freeze(sys.executable)["pytest"] == pytest.__version__


def test_folders_are_read_by_their_names_and_half_removed_packages_are_left_out(
    tmp_path: Path,
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "pyvenv.cfg").write_text("version = 3.11.7\n")
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    for name in (
        "Typing_Extensions-4.8.0.dist-info",
        "torch-2.1.0+cpu.dist-info",
        "PyYAML-5.3-py3.11.egg-info",
        "~ttrs-20.3.0.dist-info",
        "mine.egg-info",
        "attr",
    ):
        (site / name).mkdir(parents=True)
    assert freeze(str(tmp_path / "bin" / "python"), env={}) == {
        "typing-extensions": "4.8.0",
        "torch": "2.1.0+cpu",
        "pyyaml": "5.3",
    }


def test_what_is_no_python_is_told(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="is no Python"):
        freeze(str(tmp_path / "nothing"))


FORK = "git+https://host/fork.git@abc123"
PINS = """\
# pinned by a tool
--index-url https://host/simple
attrs==23.1.0
Typing_Extensions == 4.8.0 ; python_version < "3.10"
uvicorn[standard]==0.23.2 \\
    --hash=sha256:aaaa
click>=7
-e git+https://host/mine.git@abc123#egg=my_pkg
-r other.txt
other @ git+https://host/other.git@def456
"""
POETRY = """\
[[package]]
name = "attrs"
version = "23.1.0"

[package.extras]
dev = ["tests"]

[[package]]
name = "Numpy"
version = "1.24.4"

[[package]]
name = "numpy"
version = "1.26.0"

[[package]]
name = "fork"
version = "0.1.0"

[package.source]
type = "git"
url = "https://host/fork.git"
reference = "main"
resolved_reference = "abc123"

[[package]]
name = "here"
version = "1.0"

[package.source]
type = "directory"
url = "../here"

[metadata]
python-versions = "^3.8"
"""
UV = """\
version = 1
requires-python = ">=3.11"

[[package]]
name = "attrs"
version = "23.1.0"
source = { registry = "https://host/simple" }

[[package]]
name = "fork"
version = "0.1.0"
source = { git = "https://host/fork.git?rev=main#abc123" }

[[package]]
name = "mine"
source = { editable = "." }
"""
PDM = """\
[metadata]
groups = ["default"]

[[package]]
name = "attrs"
version = "23.1.0"
files = [{file = "attrs-23.1.0.tar.gz", hash = "sha256:aaaa"}]

[[package]]
name = "fork"
version = "0.1.0"
git = "https://host/fork.git"
revision = "abc123"

[[package]]
name = "mine"
version = "1.0"
path = "./mine"
"""
PIPFILE = """\
{"_meta": {"hash": {"sha256": "aaaa"}},
 "default": {"attrs": {"hashes": [], "version": "==23.1.0"},
             "fork": {"git": "https://host/fork.git", "ref": "abc123"}},
 "develop": {"pytest": {"version": "==7.4.2"}}}
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "requirements.txt",
            PINS,
            {
                "attrs": "23.1.0",
                "my-pkg": "git+https://host/mine.git@abc123",
                "other": "git+https://host/other.git@def456",
                "typing-extensions": '4.8.0 ; python_version < "3.10"',
                "uvicorn": "0.23.2",
            },
        ),
        (
            "poetry.lock",
            POETRY,
            {"attrs": "23.1.0", "fork": FORK, "numpy": "1.24.4, 1.26.0"},
        ),
        (
            "uv.lock",
            UV,
            {"attrs": "23.1.0", "fork": FORK},
        ),
        ("pdm.lock", PDM, {"attrs": "23.1.0", "fork": FORK}),
        (
            "some/folder/Pipfile.lock",
            PIPFILE,
            {"attrs": "23.1.0", "fork": FORK, "pytest": "7.4.2"},
        ),
        ("pylock.toml", '[[packages]]\nname = "attrs"\nversion = "23.1.0"\n', {"attrs": "23.1.0"}),
        ("uv.lock", "", {}),
    ],
)
def test_a_lock_is_read_whoever_wrote_it(name: str, text: str, expected: dict[str, str]) -> None:
    assert read_lock(text, name) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("poetry.lock", "[[["),
        ("uv.lock", "package = 3"),
        ("uv.lock", "[[package]]\nversion = '1'"),
        ("Pipfile.lock", "{"),
        ("Pipfile.lock", "[]"),
    ],
)
def test_a_lock_that_cannot_be_read_is_told_by_its_name(name: str, text: str) -> None:
    with pytest.raises(PlaceError, match=f"`{name}` cannot be read as a lock"):
        read_lock(text, name)


def test_what_changed_is_told_by_name() -> None:
    good = {"attrs": "22.1.0", "click": "8.0", "gone": "1"}
    bad = {"attrs": "23.1.0", "click": "8.0", "came": "2"}
    assert changed(good, bad) == [
        Change(name="attrs", old="22.1.0", new="23.1.0"),
        Change(name="came", old="", new="2"),
        Change(name="gone", old="1", new=""),
    ]


packages = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["1", "2", "3"]))


@given(packages, packages)
def test_with_the_changes_the_good_side_becomes_the_bad_one(good, bad) -> None:
    after = {**good, **{change.name: change.new for change in changed(good, bad)}}
    assert {name: version for name, version in after.items() if version} == bad
    assert changed(good, good) == []
    swapped = [Change(name=c.name, old=c.new, new=c.old) for c in changed(good, bad)]
    assert changed(bad, good) == swapped


@given(packages)
def test_pins_that_were_written_are_read_again(pinned) -> None:
    text = "".join(f"{name}=={version}\n" for name, version in pinned.items())
    assert read_lock(text, "requirements.txt") == pinned


UV_MARKED = """\
version = 1

[[package]]
name = "mine"
source = { virtual = "." }
dependencies = [{ name = "click" }, { name = "fork" }]

[[package]]
name = "click"
version = "8.0"
source = { registry = "https://host/simple" }
dependencies = [{ name = "colorama", marker = "sys_platform == 'win32'" }]

[[package]]
name = "colorama"
version = "0.4"
source = { registry = "https://host/simple" }
dependencies = [{ name = "pywin32" }]

[[package]]
name = "pywin32"
version = "306"
source = { registry = "https://host/simple" }

[[package]]
name = "fork"
version = "0.1.0"
source = { git = "ssh://git@host/fork.git?subdirectory=lib&rev=main#abc123" }
"""


def test_what_a_lock_needs_on_another_system_alone_keeps_that_condition() -> None:
    found = read_lock(UV_MARKED, "uv.lock")
    assert found == {
        "click": "8.0",
        "colorama": "0.4 ; (sys_platform == 'win32')",
        "fork": "git+ssh://git@host/fork.git@abc123#subdirectory=lib",
        "pywin32": "306 ; ((sys_platform == 'win32'))",
    }
    windows = "markers = \"sys_platform == 'win32'\""
    for name, key in (("poetry.lock", windows), ("pdm.lock", windows.replace("markers", "marker"))):
        text = f'[[package]]\nname = "pywin32"\nversion = "306"\n{key}\n'
        assert read_lock(text, name) == {"pywin32": "306 ; sys_platform == 'win32'"}


@pytest.mark.parametrize(
    ("version", "lines"),
    [
        ("1.0", ["a==1.0"]),
        ("git+https://host/a.git@abc", ["a @ git+https://host/a.git@abc"]),
        ("https://host/a.whl ; os_name == 'nt'", ["a @ https://host/a.whl ; os_name == 'nt'"]),
        ("1.0 ; os_name == 'nt', 2.0 ; os_name != 'nt'",
         ["a==1.0; os_name == 'nt'", "a==2.0; os_name != 'nt'"]),
    ],
)  # fmt: skip
def test_what_a_lock_says_is_told_to_an_installer(version: str, lines: list[str]) -> None:
    assert lines_of("a", version) == lines
