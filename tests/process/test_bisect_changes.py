"""`rl bisect --env` and `--deps`: the changes that matter among many that do not."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import zipfile

import pytest
from tests.building import Package, install_from_wheels, package
from tests.conftest import World
from tests.depth import takes_turns
from tests.supervising import wait_until

PYTHON = sys.executable


def env_files(world: World, old: dict[str, str], new: dict[str, str]) -> list[str]:
    for name, pairs in (("good.env", old), ("bad.env", new)):
        world.write(name, "".join(f"{key}={value}\n" for key, value in pairs.items()))
    return ["--env", "good.env", "bad.env"]


NEEDED = (["FLAG_3"], ["FLAG_2", "FLAG_9"], ["FLAG_0", "FLAG_5", "FLAG_7"])


@pytest.mark.parametrize("needed", NEEDED)
def test_just_the_variables_that_are_needed_are_named(world: World, needed: list[str]) -> None:
    old = {f"FLAG_{number}": "0" for number in range(10)}
    new = {f"FLAG_{number}": "1" for number in range(10)}
    test = " and ".join(f"os.environ['{name}'] == '1'" for name in needed)
    world.write("my.py", f"import os\nif {test}:\n    raise ValueError('both')\n")
    words = env_files(world, old, new)
    done = world.rl("bisect", *words, "--json", "--", PYTHON, "my.py")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["name"] for one in found["changes"]] == needed
    assert found["runs"] <= 30


def test_a_variable_that_is_gone_or_new_counts(world: World) -> None:
    world.write("my.py", "import os\nassert 'KEPT' in os.environ, 'it is gone'\n")
    words = env_files(world, {"KEPT": "1", "A": "1", "B": "2"}, {"A": "2", "C": "3"})
    done = world.rl("bisect", *words, "--", PYTHON, "my.py")
    assert done.returncode == 0, done.stderr
    assert "it fails with this change" in done.stdout
    assert "KEPT: 1 " in done.stdout
    assert "(not there)" in done.stdout


def test_files_that_set_the_same_are_refused(world: World) -> None:
    words = env_files(world, {"A": "1"}, {"A": "1"})
    done = world.rl("bisect", *words, "--", PYTHON, "-c", "pass")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "set the same" in done.stderr
    done = world.rl("bisect", "--env", "good.env", "none.env", "--", PYTHON, "-c", "pass")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_a_search_begun_in_one_folder_goes_on_in_another(world: World) -> None:
    env_files(world, {"A": "1", "B": "1"}, {"A": "2", "B": "2"})
    (world.project / "inner").mkdir()
    words = ("--env", "../good.env", "../bad.env", "--", "sh", "-c", "test $B = 1")
    done = world.rl("bisect", "--budget", "2", *words, cwd=world.project / "inner")
    assert done.returncode == 1, done.stderr
    done = world.rl("bisect", "--resume", "--json")
    assert done.returncode == 0, done.stderr
    assert [one["name"] for one in json.loads(done.stdout)["changes"]] == ["B"]


def test_ends_that_do_the_same_get_a_hint_that_fits(world: World) -> None:
    words = env_files(world, {"A": "1"}, {"A": "2"})
    done = world.rl("bisect", *words, "--", "false")
    assert done.returncode == 2
    assert "try: env > good.env" in done.stderr


def test_what_is_secret_is_found_and_not_shown(world: World) -> None:
    world.write("my.py", "import os\nassert os.environ['API_TOKEN'] != 'sesame-open-42', 'no'\n")
    words = env_files(world, {"API_TOKEN": "sesame-shut-41"}, {"API_TOKEN": "sesame-open-42"})
    for option in ((), ("--json",)):
        done = world.rl("bisect", *words, *option, "--", PYTHON, "my.py")
        assert done.returncode == 0, done.stderr
        assert "API_TOKEN" in done.stdout
        assert "sesame" not in done.stdout + done.stderr
    kept = [path.read_bytes() for path in world.journal.rglob("*") if path.is_file()]
    assert b"sesame" not in b"".join(kept)


def test_an_interrupted_search_among_variables_goes_on_and_repeats_nothing(world: World) -> None:
    old = {f"FLAG_{number}": "0" for number in range(12)}
    words = env_files(world, old, dict.fromkeys(old, "1"))
    world.write(
        "my.py",
        "import os, time\ntime.sleep(0.2)\n"
        "if os.environ['FLAG_7'] == '1':\n    raise ValueError(7)\n",
    )
    process = world.start(["rl", "bisect", *words, "--", PYTHON, "my.py"])
    probes = world.journal / "searches/1/probes.jsonl"
    wait_until(lambda: probes.exists() and len(probes.read_text().splitlines()) >= 3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode == 130
    done = probes.read_text()
    again = world.rl("bisect", "--resume", "--json")
    assert again.returncode == 0, again.stderr
    assert [one["name"] for one in json.loads(again.stdout)["changes"]] == ["FLAG_7"]
    assert probes.read_text().startswith(done)
    world.write("bad.env", "OTHER=1\n")
    refused = world.rl("bisect", "--resume")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert "not what search/1 began with" in refused.stderr


@takes_turns
def test_the_package_that_broke_it_is_named(world: World) -> None:
    names = [f"part{number}" for number in range(6)]
    broken = random.Random(3).choice(names)
    for name in names:
        package(world, name, "1.0", True)
        package(world, name, "2.0", name != broken)
    for file, version in (("good.txt", "1.0"), ("bad.txt", "2.0")):
        world.write(file, "".join(f"{name}=={version}\n" for name in names))
    imports = "".join(f"import {name}\nassert {name}.works, 'broken'\n" for name in names)
    world.write("my.py", imports)
    install_from_wheels(world)
    words = ("bisect", "--deps", "good.txt", "bad.txt", "--json", "--", PYTHON, "my.py")
    done = world.rl(*words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["changes"] == [{"name": broken, "old": "1.0", "new": "2.0"}]


def test_what_was_installed_from_a_file_is_installed_from_there(world: World) -> None:
    for name, version in (("local", "1.0"), ("part", "1.0"), ("part", "2.0")):
        package(world, name, version, works=version == "1.0")
    wheels = world.root / "wheels"
    local = f"local @ file://{wheels}/local-1.0-py3-none-any.whl\n"
    for file, version in (("good.txt", "1.0"), ("bad.txt", "2.0")):
        world.write(file, f"part=={version}\n{local}")
    world.write("my.py", "import local, part\nassert local.works and part.works, 'broken'\n")
    install_from_wheels(world)
    words = ("bisect", "--deps", "good.txt", "bad.txt", "--json", "--", PYTHON, "my.py")
    done = world.rl(*words)
    assert done.returncode == 0, done.stderr
    assert [one["name"] for one in json.loads(done.stdout)["changes"]] == ["part"]


@takes_turns
def test_a_pin_for_another_system_is_not_installed(world: World) -> None:
    for version in ("1.0", "2.0"):
        package(world, "part", version, works=version == "1.0")
    for file, version in (("good.txt", "1.0"), ("bad.txt", "2.0")):
        world.write(file, f"part=={version}\npywin32=={version} ; sys_platform == 'win32'\n")
    world.write("my.py", "import part\nassert part.works, 'broken'\n")
    install_from_wheels(world)
    words = ("bisect", "--deps", "good.txt", "bad.txt", "--json", "--", PYTHON, "my.py")
    done = world.rl(*words)
    assert done.returncode == 0, done.stderr
    assert [one["name"] for one in json.loads(done.stdout)["changes"]] == ["part"]


def test_a_package_that_a_lock_takes_from_git_is_taken_from_there(world: World) -> None:
    package = Package(world.root / "sources", "sample")
    git = ["git", "-C", str(package.folder)]
    commits = []
    for works in (True, False):
        (package.folder / "sample/__init__.py").write_text(f"works = {works}\n")
        for git_words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "more"]):
            subprocess.run([*git, *git_words], check=True, env=world.env)
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, env=world.env)
        commits.append(head.stdout.decode().strip())
    for name, commit in zip(("good/uv.lock", "bad/uv.lock"), commits, strict=True):
        source = f"git = 'file://{package.folder}?rev=main#{commit}'"
        world.write(name, f"[[package]]\nname = 'sample'\nsource = {{ {source} }}\n")
    world.write("my.py", "import sample\nassert sample.works, 'broken'\n")
    world.env["UV_OFFLINE"] = world.env["PIP_NO_INDEX"] = "1"
    words = ("bisect", "--deps", "good/uv.lock", "bad/uv.lock", "--json", "--", PYTHON, "my.py")
    done = world.rl(*words)
    assert done.returncode == 0, done.stderr
    (change,) = json.loads(done.stdout)["changes"]
    assert (change["name"], change["new"].endswith(f"@{commits[1]}")) == ("sample", True)


def test_two_trials_tell_which_package_broke_it(world: World) -> None:
    """The project itself is installed from its tree, and the script lies beside the project."""
    parts = ("one", "part", "two")
    for name in parts:
        for version in ("1.0", "2.0"):
            package(world, name, version, works=(name, version) != ("part", "2.0"))
    install_from_wheels(world)
    home = world.root / "home-of-python"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", str(home)], check=True)
    (site,) = home.glob("lib/python*/site-packages")
    world.write("src/mine.py", "def check(*parts):\n    assert all(one.works for one in parts)\n")
    world.commit()
    info = site / "mine-0.1.dist-info"
    info.mkdir()
    about = {"url": world.project.as_uri(), "dir_info": {"editable": True}}
    (info / "direct_url.json").write_text(json.dumps(about))
    (info / "RECORD").write_text("mine.pth,,\n")
    (site / "mine.pth").write_text(f"{world.project}/src\n")
    (world.root / "my.py").write_text(
        f"import mine, {', '.join(parts)}\nmine.check({', '.join(parts)})\n"
    )
    command = ("--", str(home / "bin/python"), "../my.py")
    for version, code in (("1.0", 0), ("2.0", 1)):
        for name in parts:
            for old in site.glob(f"{name}-*"):
                shutil.rmtree(old)
            wheel = world.root / f"wheels/{name}-{version}-py3-none-any.whl"
            with zipfile.ZipFile(wheel) as file:
                file.extractall(site)
        assert world.rl(*command).returncode == code
    beside = os.path.dirname(PYTHON)
    world.env["PATH"] = os.pathsep.join([world.env["PATH"], beside])
    done = world.rl("bisect", "--deps", "--json", *command)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["changes"] == [{"name": "part", "old": "1.0", "new": "2.0"}]
