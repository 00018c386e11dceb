"""Finding a program as execvp would, without starting one."""

import shutil

import pytest

from relaunch.errors import LaunchError
from relaunch.proc.launch import find_program


@pytest.fixture
def folders(tmp_path):
    for name in ("one", "two", "cwd"):
        (tmp_path / name).mkdir()
    return tmp_path


def put(path, mode=0o755):
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)


def test_the_first_executable_on_the_path_is_taken(folders):
    put(folders / "one" / "tool", 0o644)
    put(folders / "two" / "tool")
    env = {"PATH": f"{folders}/one:{folders}/two"}
    assert find_program("tool", str(folders), env) == f"{folders}/two/tool"


def test_an_empty_entry_and_a_relative_one_are_seen_from_the_working_directory(folders):
    put(folders / "cwd" / "tool")
    assert find_program("tool", str(folders / "cwd"), {"PATH": ""}) == "./tool"
    assert find_program("tool", str(folders), {"PATH": "cwd"}) == "cwd/tool"


def test_a_directory_of_that_name_is_passed_over(folders):
    (folders / "one" / "tool").mkdir()
    put(folders / "two" / "tool")
    env = {"PATH": f"{folders}/one:{folders}/two"}
    assert find_program("tool", str(folders), env) == f"{folders}/two/tool"


def test_without_a_path_the_systems_own_is_searched(folders):
    assert shutil.which(find_program("sh", str(folders), {})) is not None


def test_one_that_may_not_be_executed_is_126_with_the_way_out(folders):
    put(folders / "one" / "tool", 0o644)
    with pytest.raises(LaunchError, match="not executable") as caught:
        find_program("tool", str(folders), {"PATH": f"{folders}/one"})
    assert (caught.value.exit_code, caught.value.hint) == (126, f"chmod +x {folders}/one/tool")


def test_a_program_of_the_working_directory_is_hinted_at(folders):
    put(folders / "cwd" / "tool")
    with pytest.raises(LaunchError, match="not found") as caught:
        find_program("tool", str(folders / "cwd"), {"PATH": "/nowhere"})
    assert (caught.value.exit_code, caught.value.hint) == (127, "rl -- ./tool")
