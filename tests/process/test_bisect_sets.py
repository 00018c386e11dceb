"""`rl bisect --set`: the lines that matter among many that do not; all else stays as it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.conftest import World
from tests.depth import takes_turns
from tests.supervising import wait_until

PYTHON = sys.executable
READ = "import pathlib, os\ntext = lambda name: pathlib.Path('conf', name).read_text()\n"


def two_sets(world: World, old: dict[str, str | bytes], new: dict[str, str | bytes]) -> None:
    """Make `conf@base`, `conf@new` and the link, and commit them."""
    for folder, files in (("conf@base", old), ("conf@new", new)):
        for name, text in files.items():
            world.write(f"{folder}/{name}", text)
        (world.project / folder).mkdir(exist_ok=True)
    (world.project / "conf").symlink_to("conf@base")
    world.commit("sets")


def tree(world: World) -> dict[str, object]:
    """Return all that a person has in the project: files with times, links with targets."""
    found: dict[str, object] = {}
    for path in sorted(world.project.rglob("*")):
        name = str(path.relative_to(world.project))
        if name.startswith(".git/"):
            continue
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file():
            found[name] = path.read_bytes(), path.stat().st_mtime_ns
    found["git"] = world.git("status", "--short", "--ignored")
    return found


def bisect(world: World, *words: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    return world.rl(
        "bisect", "--set", "base", "new", *words, "--", PYTHON, "my.py", timeout=timeout
    )


def found(world: World, *words: str) -> list[str]:
    """Search, check that nothing of the user's changed, and return the names of the changes."""
    before = tree(world)
    done = bisect(world, "--json", *words)
    assert done.returncode == 0, done.stderr
    assert tree(world) == before
    return [one["name"] for one in json.loads(done.stdout)["changes"]]


YAML = "model:\n  dtype: fp32\n  layers: 2\n  norm:\n    kind: rms\n    eps: 1\noptim:\n  lr: 0.1\n"
NEW_YAML = (
    "model:\n  dtype: bf16\n  layers: 3\n  norm:\n    kind: layer\n    eps: 2\n"
    "optim:\n  lr: 0.2\n  clip: 1\n"
)


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("'dtype: bf16' in text('a.yaml')", ["conf/a.yaml:model.dtype"]),
        ("'kind: layer' in text('a.yaml')", ["conf/a.yaml:model.norm.kind"]),
        (
            "'lr: 0.2' in text('a.yaml') and 'eps: 2' in text('a.yaml')",
            ["conf/a.yaml:model.norm.eps", "conf/a.yaml:optim.lr"],
        ),
    ],
)
def test_a_nested_key_of_yaml_is_found(world: World, test: str, expected: list[str]) -> None:
    two_sets(world, {"a.yaml": YAML, "b.txt": "x\n"}, {"a.yaml": NEW_YAML, "b.txt": "y\n"})
    world.write("my.py", f"{READ}if {test}:\n    raise ValueError('so')\n")
    assert found(world) == expected


def test_keys_of_toml_and_json_are_found_and_each_mix_can_be_read(world: World) -> None:
    old = {"a.toml": "x = 1\n[opt]\nlr = 1\n", "b.json": '{"p": {"q": 1, "r": [1, 2]}}'}
    new = {
        "a.toml": "x = 2\ny = [\n  1,\n]\n[opt]\nlr = 2\nbeta = 3\n[more]\nz = 1\n",
        "b.json": '{"p": {"q": 2, "r": [1, 3], "s": null}, "t": 1}',
    }
    two_sets(world, {**old}, {**new})
    world.write(
        "my.py",
        f"{READ}import json, tomllib\n"
        "a, b = tomllib.loads(text('a.toml')), json.loads(text('b.json'))\n"
        "if a['opt'].get('beta') == 3 and b['p']['r'][1] == 3:\n    raise ValueError('so')\n",
    )
    assert found(world) == ["conf/a.toml:opt.beta", "conf/b.json:p.r[1]"]


@takes_turns
def test_a_line_a_stretch_and_a_whole_file_are_found(world: World) -> None:
    old: dict[str, str | bytes] = {
        "a.txt": "one\ntwo\nthree\nfour\n",
        "b.bin": b"\0\1",
        "gone.txt": "x\n",
    }
    new: dict[str, str | bytes] = {
        "a.txt": "1\n2\nthree\n4\n5\n",
        "b.bin": b"\0\2",
        "come.txt": "x\n",
    }
    two_sets(world, {**old}, {**new})
    cases = {
        "text('a.txt').startswith('one\\n2\\n') or '2' in text('a.txt')": ["conf/a.txt:2"],
        "'5' in text('a.txt')": ["conf/a.txt:4"],
        "pathlib.Path('conf/b.bin').read_bytes() == b'\\0\\2'": ["conf/b.bin"],
        "os.path.exists('conf/come.txt')": ["conf/come.txt"],
        "not os.path.exists('conf/gone.txt')": ["conf/gone.txt"],
    }
    for test, expected in cases.items():
        world.write("my.py", f"{READ}if {test}:\n    raise ValueError('so')\n")
        assert found(world) == expected


def test_the_answer_names_file_and_line_and_both_texts_and_how_to_check_it(world: World) -> None:
    two_sets(world, {"a.yaml": YAML}, {"a.yaml": NEW_YAML})
    world.write("my.py", f"{READ}assert 'bf16' not in text('a.yaml'), 'loss is nan'\n")
    done = bisect(world)
    assert done.returncode == 0, done.stderr
    assert "  conf@new/a.yaml:2  model.dtype\n  - dtype: fp32\n  + dtype: bf16\n" in done.stdout
    assert "check    rl bisect --resume --keep NAME && rl -s NAME" in done.stdout
    again = world.rl("bisect", "--resume", "--keep", "smallest")
    assert again.returncode == 0, again.stderr
    assert "rl -s smallest -- " in again.stdout
    kept = (world.project / "conf@smallest/a.yaml").read_text()
    assert kept == YAML.replace("fp32", "bf16")
    run = world.rl("-s", "smallest", "--", PYTHON, "my.py")
    assert run.returncode == 1
    refused = bisect(world, "--keep", "smallest")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)


def test_an_answer_that_cannot_be_kept_is_told_all_the_same(world: World) -> None:
    two_sets(world, {"a.yaml": YAML}, {"a.yaml": NEW_YAML})
    taken = f"open({str(world.project / 'conf@small')!r}, 'w')\n"
    world.write("my.py", f"{READ}{taken}assert 'bf16' not in text('a.yaml'), 'loss is nan'\n")
    done = bisect(world, "--keep", "small")
    assert done.returncode == 2
    assert "set `small` exists" in done.stderr
    assert "conf@new/a.yaml:2  model.dtype" in done.stdout
    assert "dtype broke it" in world.rl("log", "--searches").stdout


def test_data_that_git_ignores_and_data_beside_the_project_are_found(world: World) -> None:
    two_sets(world, {"a.yaml": YAML}, {"a.yaml": NEW_YAML})
    world.write(".gitignore", "data\nruns/\n")
    world.write("data/train.bin", "1")
    (world.root / "datasets").mkdir()
    (world.root / "datasets/x").write_text("1")
    (world.project / "more").symlink_to("../datasets")
    world.commit("data")
    world.write(
        "my.py",
        f"{READ}open('data/train.bin').read()\nopen('more/x').read()\n"
        "assert 'layers: 3' not in text('a.yaml'), 'so'\n",
    )
    assert found(world) == ["conf/a.yaml:model.layers"]
    assert found(world, "-j", "3") == ["conf/a.yaml:model.layers"]


def test_where_copies_do_not_show_it_the_user_s_own_tree_can(world: World) -> None:
    two_sets(world, {"a.yaml": YAML}, {"a.yaml": NEW_YAML})
    (world.root / "beside.txt").write_text("1")
    world.write(
        "my.py",
        f"{READ}open('../beside.txt').read()\nassert 'layers: 3' not in text('a.yaml'), 'so'\n",
    )
    refused = bisect(world)
    assert refused.returncode == 2
    assert "both ends fail alike" in refused.stderr
    assert "rl bisect --set base new --here -- " in refused.stderr
    assert found(world, "--here") == ["conf/a.yaml:model.layers"]
    many = bisect(world, "--here", "-j", "2")
    assert (many.returncode, len(many.stderr.splitlines())) == (2, 1)


def test_sets_that_git_ignores_in_a_folder_it_ignores_stay_as_they_are(world: World) -> None:
    world.write(".gitignore", "local/\n")
    world.write("relaunch.toml", '[sets]\n"local/conf" = "local/conf@*"\n')
    for name, value in (("base", 1), ("new", 2)):
        world.write(f"local/conf@{name}/a.yaml", f"a: {value}\nb: {value}\n")
    (world.project / "local/conf").symlink_to("conf@base")
    world.write("my.py", "assert 'b: 2' not in open('local/conf/a.yaml').read(), 'so'\n")
    world.commit()
    assert found(world) == ["local/conf/a.yaml:b"]
    before = tree(world)
    done = world.rl("--frozen", "-s", "new", "--", PYTHON, "my.py")
    assert done.returncode == 1, done.stderr
    assert tree(world) == before


def test_a_python_file_as_a_set_never_runs_the_bytecode_of_another_mix(world: World) -> None:
    world.write("relaunch.toml", '[sets]\n"settings.py" = "settings@*.py"\n')
    world.write("settings@base.py", "".join(f"x{n} = 1\n" for n in range(8)))
    world.write("settings@new.py", "".join(f"x{n} = 2\n" for n in range(8)))
    (world.project / "settings.py").symlink_to("settings@base.py")
    world.write("my.py", "import settings\nassert settings.x5 == 1, 'so'\n")
    world.commit()
    world.env.pop("PYTHONDONTWRITEBYTECODE", None)
    assert found(world) == ["settings.py:6"]


def test_a_variable_that_carries_the_set_is_a_change_too(world: World) -> None:
    world.write("relaunch.toml", '[sets]\nflag = "MODE"\nconf = "conf@*"\n')
    two_sets(world, {"a.yaml": YAML}, {"a.yaml": NEW_YAML})
    world.write("my.py", "import os\nassert os.environ['MODE'] != 'new', 'so'\n")
    assert found(world) == ["MODE"]


def test_what_cannot_be_searched_is_refused_in_one_line(world: World) -> None:
    two_sets(world, {"a.yaml": YAML}, {"a.yaml": NEW_YAML})
    world.write("conf@twin/a.yaml", YAML)
    world.write("my.py", "pass\n")
    run = ("--", PYTHON, "my.py")
    cases = {
        ("base", "nwe"): "did you mean new",
        ("base", "twin"): "are the same",
        ("base",): "two config sets",
        ("base", "new"): "it passes at both ends",
    }
    for names, words in cases.items():
        done = world.rl("bisect", "--set", *names, *run)
        assert done.returncode == 2, done.stderr
        last = done.stderr.splitlines()[-1]
        assert words in last
        assert "rl " in last
    done = world.rl("bisect", "--set", "base", "new")
    assert "try: rl bisect --set base new -- " in done.stderr
    world.write("my.py", "raise ValueError('always')\n")
    done = bisect(world)
    assert (done.returncode, "both ends fail alike" in done.stderr) == (2, True)


def test_there_may_be_no_sets_at_all(world: World) -> None:
    world.write("my.py", "pass\n")
    done = bisect(world)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "there are no config sets here" in done.stderr


def test_what_is_secret_is_found_and_not_shown(world: World) -> None:
    old = "auth:\n  api_token: sesame-shut-41\nurl: postgres://me:sesame-a@host/db\n"
    new = "auth:\n  api_token: sesame-open-42\nurl: postgres://me:sesame-b@host/db\n"
    world.write(".gitignore", "conf*\n")
    two_sets(world, {"a.yaml": old}, {"a.yaml": new})
    for name in ("-open-42", "e-b@host"):
        world.write(
            "my.py", f"{READ}print(text('a.yaml'))\nassert {name!r} not in text('a.yaml')\n"
        )
        for option in ((), ("--json",)):
            done = bisect(world, *option)
            assert done.returncode == 0, done.stderr
            assert "redacted" in done.stdout
            assert "sesame" not in done.stdout
    kept = [path.read_bytes() for path in world.journal.rglob("*") if path.is_file()]
    assert b"sesame-open-42" not in b"".join(kept)


SLOW = (
    READ + "import time\n"
    "(pathlib.Path(os.environ['SEEN']) / str(os.getpid())).touch()\n"
    "time.sleep(float(os.environ.get('SLOW', '0')))\n"
    "assert 'layers: 3' not in text('a.yaml'), 'so'\n"
)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("where", ["copies", "here"])
def test_an_ended_search_leaves_all_as_it_was_and_goes_on(
    world: World, how: signal.Signals, where: str
) -> None:
    two_sets(world, {"a.yaml": YAML}, {"a.yaml": NEW_YAML})
    world.write("my.py", SLOW)
    seen = world.root / "seen"
    seen.mkdir()
    world.env |= {"SEEN": str(seen), "SLOW": "0.3"}
    before = tree(world)
    words = ["--set", "base", "new", *(["--here"] if where == "here" else [])]
    process = world.start(["rl", "bisect", *words, "--", PYTHON, "my.py"])
    probes = world.journal / "searches/1/probes.jsonl"
    wait_until(lambda: probes.exists() and len(probes.read_text().splitlines()) >= 3)
    count = len(list(seen.iterdir()))
    wait_until(lambda: len(list(seen.iterdir())) > count)
    process.send_signal(how)
    process.communicate(timeout=300)
    assert process.returncode == (130 if how is signal.SIGINT else -signal.SIGKILL)
    if how is signal.SIGKILL:
        assert world.rl("set", "ls").returncode == 0
    assert tree(world) == before
    done = probes.read_text()
    world.env["SLOW"] = "0"
    if where == "copies":  # it goes on with the code that it began with
        world.write("my.py", "raise SystemExit('edited')\n")
        before = tree(world)
    again = world.rl("bisect", "--resume", "--json")
    assert again.returncode == 0, again.stderr
    names = [one["name"] for one in json.loads(again.stdout)["changes"]]
    assert names == ["conf/a.yaml:model.layers"]
    assert probes.read_text().startswith(done)
    assert tree(world) == before


def test_a_search_does_not_go_on_with_other_sets(world: World) -> None:
    two_sets(world, {"a.yaml": YAML}, {"a.yaml": NEW_YAML})
    world.write("my.py", f"{READ}assert 'layers: 3' not in text('a.yaml'), 'so'\n")
    assert bisect(world, "--budget", "3").returncode == 1
    world.write("conf@new/a.yaml", NEW_YAML.replace("0.2", "0.3"))
    refused = world.rl("bisect", "--resume")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert "not what search/1 began with" in refused.stderr
