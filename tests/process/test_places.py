"""The world of a trial: frozen copies, clones that are proven, sets in a table, old code."""

import json
import os
import subprocess
import sys

import pytest

SLOW = """\
import sys, pathlib
print("code 1", flush=True)
sys.stdin.readline()
import late
print(late.VALUE)
"""


def lines_of(ran):
    return [line for line in ran.stderr.splitlines() if line.startswith("rl")]


def end_of(world, trial_id):
    return json.loads((world.journal / "trials" / trial_id / "end.json").read_text())


@pytest.mark.parametrize("frozen", [True, False])
def test_edits_leak_into_a_run_unless_it_is_frozen(world, frozen):
    world.write("slow.py", SLOW)
    world.write("late.py", "VALUE = 'old'\n")
    world.commit()
    words = ["rl", *(["--frozen"] if frozen else []), "--", sys.executable, "slow.py"]
    process = world.start(words, stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"code 1\n"
    world.write("late.py", "VALUE = 'new'\n")
    out, err = process.communicate(b"\n", timeout=300)
    assert out == (b"old\n" if frozen else b"new\n")
    assert (b"late.py changed while it ran" in err) is not frozen
    assert end_of(world, "1")["code_changed"] == ([] if frozen else ["late.py"])


def test_a_frozen_run_sees_edited_and_untracked_files_and_its_failure_is_the_same(world):
    world.write("train.py", "raise ValueError(open('data.txt').read())\n")
    world.commit()
    world.write("data.txt", "bad row")
    world.rl("--", sys.executable, "train.py")
    ran = world.rl("--frozen", "--", sys.executable, str(world.project / "train.py"))
    assert "ValueError: bad row" in ran.stderr
    assert "same failure as #1" in ran.stderr


def test_again_runs_the_code_of_then_and_leaves_the_tree_alone(world):
    world.write("train.py", "print('then')\n")
    world.commit()
    world.write("extra.txt", "untracked then")
    world.rl("--", sys.executable, "train.py")
    world.write("train.py", "print('now')\n")
    (world.project / "extra.txt").unlink()
    before = world.git("status", "--porcelain")
    ran = world.rl("again", "1")
    assert (ran.returncode, ran.stdout) == (0, "then\n")
    assert "identical to #1" in ran.stderr
    assert world.git("status", "--porcelain") == before
    assert world.rl().stdout == "now\n"


def test_back_puts_the_code_of_then_beside_the_tree(world):
    world.write("train.py", "print('then')\n")
    world.rl("--", sys.executable, "train.py")
    world.write("train.py", "print('now')\n")
    ran = world.rl("back", "1")
    assert ran.returncode == 0
    beside = world.project.parent / "project@1"
    assert ran.stdout == "../project@1\n"
    assert (beside / "train.py").read_text() == "print('then')\n"
    assert (world.project / "train.py").read_text() == "print('now')\n"


@pytest.mark.parametrize("layout", ["src", "flat"])
def test_a_clone_given_by_src_is_the_one_loaded_and_that_is_proven(world, tmp_path, layout):
    clone = tmp_path / "clone"
    package = clone / ("src/pack" if layout == "src" else "pack")
    package.mkdir(parents=True)
    (clone / "pyproject.toml").write_text("[project]\nname = 'pack'\nversion = '1'\n")
    (package / "__init__.py").write_text("WHERE = 'clone'\n")
    world.write("pack/__init__.py", "WHERE = 'project'\n")
    world.write("use.py", "import pack; print(pack.WHERE)\n")
    assert world.rl("--", sys.executable, "use.py").stdout == "project\n"
    ran = world.rl("--src", str(clone), "--", sys.executable, "use.py")
    assert ran.stdout == "clone\n"
    assert f"rl: pack was loaded from {package / '__init__.py'}" in lines_of(ran)
    ran = world.rl("--src", str(clone), "--", sys.executable, "-S", "-E", "use.py")
    assert ran.stdout == "project\n"
    assert any("pack was not" in line or "WRONG" in line for line in lines_of(ran)), ran.stderr


def test_a_run_that_loads_another_copy_is_another_attempt(world, tmp_path):
    """Which copy was loaded is seen in the output; what is said of it must fit."""
    (tmp_path / "site/pack").mkdir(parents=True)
    (tmp_path / "site/pack/__init__.py").write_text("WHERE = 'site'\n")
    world.write("pyproject.toml", "[project]\nname = 'pack'\nversion = '1'\n")
    world.write("src/pack/__init__.py", "WHERE = 'project'\n")
    world.write("use.py", "import pack; print(pack.WHERE)\n")
    world.env["PYTHONPATH"] = str(tmp_path / "site")
    command = ("--", sys.executable, "use.py")
    for words, shown, same, is_doubted in (
        (command, "site", "", True),
        (("--src", ".", *command), "project", "", False),
        (("--src", str(tmp_path / "site"), *command), "site", "", False),
        (("--src", ".", *command), "project", "#2", False),
        (("--frozen", *command), "project", "", False),
        (("again", "1"), "project", "", False),
        (("again", "2"), "project", "#2", False),
        (command, "site", "#1", True),
    ):
        ran = world.rl(*words)
        assert ran.stdout == f"{shown}\n", words
        assert ("edits here are not tested" in ran.stderr) is is_doubted, words
        identical = [line for line in lines_of(ran) if "identical to" in line]
        assert [line.split("identical to ")[1].split()[0] for line in identical] == (
            [same] if same else []
        ), words


def test_what_is_run_again_is_the_same_whatever_the_tree_holds_now(world):
    world.write("pyproject.toml", "[project]\nname = 'pack'\nversion = '1'\n")
    world.write("src/pack/__init__.py", "WHERE = 'project'\n")
    world.write("use.py", "import pack; print(pack.WHERE)\n")
    world.env["PYTHONPATH"] = "src"
    world.rl("--", sys.executable, "use.py")
    world.write("pack.py", "")  # beside the script, it would hide the package
    (world.project / "src/pack").rename(world.project / "src/other")
    ran = world.rl("again", "1")
    assert (ran.returncode, ran.stdout) == (0, "project\n"), ran.stderr
    assert "identical to #1" in ran.stderr
    assert "edits here are not tested" not in ran.stderr


@pytest.mark.parametrize("where", ["nowhere", "lib", "in a shell"])
def test_what_is_run_again_from_another_copy_is_not_the_same(world, where):
    world.write("pyproject.toml", "[project]\nname = 'pack'\nversion = '1'\n")
    world.write("src/pack/__init__.py", "WHERE = 'project'\n")
    world.write("use.py", "try:\n    import pack\n    print(pack.WHERE)\nexcept ImportError:\n"
                          "    print('nowhere')\n")  # fmt: skip
    if where == "lib":
        world.write("lib/pack/__init__.py", "WHERE = 'lib'\n")
        world.env["PYTHONPATH"] = "lib"
    command = [sys.executable, "use.py"]
    if where == "in a shell":
        command = ["sh", "-c", f"{sys.executable} use.py"]
    first = world.rl("--", *command)
    assert first.stdout == ("lib\n" if where == "lib" else "nowhere\n")
    assert "identical to #1" in world.rl("--", *command).stderr
    for words in (("again", "1"), ("--frozen", "--", *command)):
        ran = world.rl(*words)
        assert ran.stdout == "project\n"
        assert "identical to #1" not in ran.stderr, words
    assert "in #1 a package may have come from elsewhere" in world.rl("again", "1").stderr


def test_src_wins_over_what_is_beside_the_script_and_that_is_said(world):
    world.write("src/pack/__init__.py", "WHERE = 'src'\n")
    world.write("pack/__init__.py", "WHERE = 'beside'\n")
    world.write("use.py", "import pack; print(pack.WHERE)\n")
    ran = world.rl("--src", "src", "--", sys.executable, "use.py")
    assert ran.stdout == "src\n"
    assert "edits here are not tested" not in ran.stderr
    listed = world.rl("where", "pack").stdout.splitlines()
    assert listed[1:3] == [f"  loads  {world.project}/src/pack/__init__.py", "         --src"]


def test_another_work_tree_with_an_environment_of_its_own_is_no_other_attempt(world):
    world.write("use.py", "print(1)\n")
    world.commit()
    beside = world.root / "beside"
    world.git("worktree", "add", "-q", str(beside))
    for top in (world.project, beside):
        (top / ".venv/bin").mkdir(parents=True)
        (top / ".venv/bin/python").symlink_to(os.path.realpath(sys.executable))
        home = os.path.dirname(os.path.realpath(sys.executable))
        (top / ".venv/pyvenv.cfg").write_text(f"home = {home}\n")
    world.write(".git/info/exclude", ".venv\n")
    world.rl("--", ".venv/bin/python", "use.py")
    assert "identical to #1" in world.rl("--", ".venv/bin/python", "use.py", cwd=beside).stderr


@pytest.fixture
def sets(world):
    world.write("conf/precision.yaml", "dtype: fp32\nlr: 1\n")
    world.write(
        "train.py", "text = open('conf/precision.yaml').read()\nassert 'fp32' in text, 'nan'\n"
    )
    world.write("relaunch.toml", "[metrics]\ndtype = 'dtype: (.+)'\n")
    world.commit()
    assert world.rl("set", "new", "bf16", "--from", "conf").returncode == 0
    world.write("conf@bf16/precision.yaml", "dtype: bf16\nlr: 1\n")
    return world


def test_the_table_says_which_set_fails_and_which_line_parts_them(sets):
    ran = sets.rl("-s", "base,bf16", "-n", "2", "--", sys.executable, "train.py")
    assert ran.returncode == 1
    rows = [line.split() for line in ran.stdout.splitlines()]
    assert rows[1][:2] == ["base", "2/2"]
    assert rows[2][:2] == ["bf16", "0/2"]
    assert ran.stdout.splitlines()[-1] == "only conf/precision.yaml differs: dtype: fp32 | bf16"
    assert (sets.project / "conf").readlink().name == "conf@base"


def test_the_table_as_json(sets):
    ran = sets.rl("-s", "base,bf16", "--json", "--", sys.executable, "train.py")
    value = json.loads(ran.stdout)
    assert value["schema"] == "relaunch/table/1"
    assert [(row["set"], row["passed"], row["runs"]) for row in value["rows"]] == [
        ("base", 1, 1),
        ("bf16", 0, 1),
    ]


def test_a_set_is_one_trial_like_any_other_and_frozen_too(sets):
    for options in (["-s", "bf16"], ["-s", "bf16", "--frozen"]):
        ran = sets.rl(*options, "--", sys.executable, "train.py")
        assert ran.returncode == 1
        assert "set bf16" in ran.stderr
        assert (sets.project / "conf").readlink().name == "conf@base"
    assert sets.rl("-s", "base").returncode == 0


def test_a_set_that_git_ignores_is_told_apart_and_frozen(sets):
    sets.write(".gitignore", "conf\nconf@*\n")
    words = ["-s", "bf16", "--", "cat", "conf/precision.yaml"]
    assert "rl #1 " in sets.rl(*words).stderr
    assert "rl #1.2 " in sets.rl(*words).stderr
    sets.write("conf@bf16/precision.yaml", "dtype: fp8\n")
    assert "rl #2 " in sets.rl(*words).stderr
    assert sets.rl("--frozen", *words).stdout == "dtype: fp8\n"
    copy = next((sets.journal / "frozen").glob("*/tree"))
    assert (copy / "conf" / "precision.yaml").resolve().is_relative_to(copy.resolve())


def test_again_runs_the_set_as_it_was_then(sets):
    words = ["-s", "bf16", "--", "cat", "conf/precision.yaml"]
    sets.rl(*words)
    sets.write("conf@bf16/precision.yaml", "dtype: fp8\n")
    assert sets.rl("again", "1").stdout == "dtype: bf16\nlr: 1\n"
    assert sets.rl(*words).stdout == "dtype: fp8\n"


def test_two_trials_at_once_never_mix_their_sets(sets):
    sets.write(
        "train.py",
        "import sys\nprint('up', flush=True)\nsys.stdin.readline()\n"
        "print(open('conf/precision.yaml').readline().strip())\n",
    )
    words = ["--", sys.executable, "train.py"]
    first = sets.start(["rl", "-q", "-s", "bf16", *words], stdin=subprocess.PIPE)
    assert first.stdout is not None
    assert first.stdout.readline() == b"up\n"
    second = sets.start(["rl", "-q", "-s", "base", *words], stdin=subprocess.PIPE)
    assert second.stderr is not None
    assert b"waiting" in second.stderr.readline()
    assert first.communicate(b"\n", timeout=300)[0] == b"dtype: bf16\n"
    assert second.communicate(b"\n", timeout=300)[0] == b"up\ndtype: fp32\n"
    assert (sets.project / "conf").readlink().name == "conf@base"


def test_a_flag_per_set_is_an_environment_variable(world):
    world.write("relaunch.toml", '[sets]\nflag = "MODE"\n')
    assert world.rl("-s", "fast", "--", "sh", "-c", "echo $MODE").stdout == "fast\n"


def test_after_again_bare_rl_is_back_on_the_tree(world):
    world.write("train.py", "print('then')\n")
    world.rl("--", sys.executable, "train.py")
    world.write("train.py", "print('now')\n")
    world.rl("again", "1")
    ran = world.rl()
    assert ran.stdout == "now\n"
    assert (
        json.loads((world.journal / "trials" / "2" / "start.json").read_text())["frozen"] is False
    )


def test_again_says_what_was_not_kept_and_is_another_now(world):
    world.write("relaunch.toml", '[record]\nmax_file = "10 KiB"\n')
    world.write("data.bin", b"a" * 50_000)
    world.rl("--", "head", "-c", "3", "data.bin")
    world.write("data.bin", b"b" * 50_000)
    ran = world.rl("again", "1")
    assert "not as in #1: data.bin has changed, and was not kept" in ran.stderr


def test_further_folders_and_ignored_files_can_be_kept_too(world, tmp_path):
    (tmp_path / "lib7").mkdir()
    (tmp_path / "lib7" / "code.py").write_text("then\n")
    world.write("relaunch.toml", '[record]\nalso = ["../lib7", "secret.yaml"]\n')
    world.write(".gitignore", "*.yaml\n")
    world.write("secret.yaml", "then")
    world.rl("--", "true")
    (tmp_path / "lib7" / "code.py").write_text("now\n")
    world.write("secret.yaml", "now")
    back = world.project / world.rl("back", "1").stdout.strip()
    assert (back / "secret.yaml").read_text() == "then"
    assert [p.read_text() for p in back.rglob("code.py")] == ["then\n"]


@pytest.mark.parametrize("how", ["pth", "finder"])
def test_what_is_installed_in_place_from_a_subfolder_is_frozen_too(world, tmp_path, how):
    package = world.write("packages/core/src/corep/__init__.py", "V = 1\n").parent
    world.write("run.py", "import corep; print(corep.V)\n")
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    site = next(venv.glob("lib/python3*/site-packages"))
    if how == "pth":
        (site / "core.pth").write_text(f"{package.parent}\n")
    else:
        (site / "__editable___core_finder.py").write_text(
            f"MAPPING = {{'corep': {str(package)!r}}}\n"
            "import sys, importlib.util\n"
            "class Finder:\n"
            "    @classmethod\n"
            "    def find_spec(cls, name, path=None, target=None):\n"
            "        if name in MAPPING:\n"
            "            return importlib.util.spec_from_file_location(\n"
            "                name, MAPPING[name] + '/__init__.py')\n"
            "def install(): sys.meta_path.append(Finder)\n"
        )
        (site / "core.pth").write_text("import __editable___core_finder as f; f.install()\n")
    words = ["--", str(venv / "bin" / "python"), "run.py"]
    assert world.rl(*words).stdout == "1\n"
    world.write("packages/core/src/corep/__init__.py", "V = 2\n")
    assert world.rl("again", "1").stdout == "1\n"
    assert world.rl(*words).stdout == "2\n"
