"""What a search, a limit, a mark and a killed rl leave in the journal has no secret in it."""

import json
import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path

from tests.conftest import World
from tests.planted import password, tokens

SHOW = "import os, sys; print(sys.argv[1:]); raise ValueError(sys.argv[-1])"
"""A program that says all that it was given, and fails."""
SAY = "import os\nlog.info('hello')\nlog.info(open(os.environ['SAID']).read())\n"


def kept(folder: Path, *secrets: str) -> set[str]:
    """Return the files of a folder with one of these in them, also where they are compressed."""
    found = set()
    for path in (path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        try:
            data += zlib.decompress(data)
        except zlib.error:
            pass
        if any(secret.encode() in data for secret in secrets):
            found.add(str(path))
    return found


def test_no_setting_of_a_sweep_that_is_a_secret_is_kept(world: World) -> None:
    one, two, given = password(), password(), password()
    ran = world.rl(
        *("sweep", "--env", f"API_KEY={one},{two}", "--arg", f"word={given},plain"),
        *("--", sys.executable, "-c", SHOW, "--password", "{word}", "{word}"),
    )
    assert "4 of 4" in ran.stdout
    assert not kept(world.journal, one, two, given)
    said = json.loads(world.rl("sweep", "--log", "--json").stdout)
    assert (
        len({tuple(one["settings"].values()) for one in said["probes"]}) == 4
    )  # each is told from the others
    resumed = world.rl("sweep", "--resume")
    assert resumed.returncode == 2
    assert "the secret was not kept" in resumed.stderr


def test_a_search_hides_what_the_settings_call_a_secret(world: World) -> None:
    world.settings('[record]\nalso = []\nredact = ["ZAUBER*"]\n')
    secret = password()
    env = {"ZAUBERWORT": secret}
    command = ("--", sys.executable, "-c", SHOW, secret)
    world.rl("repeat", "2", *command, env=env)
    world.rl("grow", "n=1..2", *command, "{n}", env=env)
    world.rl(*command, env=env)
    world.rl("mark", "1", "bad", f"it was {secret}", env=env)
    assert not kept(world.journal, secret)
    start = json.loads((world.journal / "searches" / "1" / "start.json").read_text())
    assert start["request"]["command"][-1] == "<redacted:ZAUBERWORT>"
    assert world.rl("repeat", "--resume", env=env).returncode == 1  # it knows the value again


def test_gc_masks_what_the_settings_call_a_secret(world: World) -> None:
    secret = password()
    world.rl("--", sys.executable, "-c", SHOW, secret)
    assert kept(world.journal, secret)
    world.settings('[record]\nalso = []\nredact = ["ZAUBER*"]\n')
    world.rl("gc", "--secrets", env={"ZAUBERWORT": secret})
    assert not kept(world.journal, secret)


def test_what_a_bisection_starts_from_has_no_secret(world: World) -> None:
    secret = password()
    for number in range(3):
        world.write("t.py", f"import sys\nassert {number} < 1, sys.argv\n")
        world.commit(str(number))
    ran = world.rl(
        *("bisect", "--good", "HEAD~2", "--", sys.executable, "t.py", f"--token={secret}")
    )
    assert ran.returncode == 0, ran.stderr
    assert not kept(world.journal, secret)
    assert len(world.rl("bisect", "--log").stdout.splitlines()) > 2


def test_the_page_of_stacks_at_a_limit_has_no_secret(world: World) -> None:
    secret = password()
    grow = "x = []\nwhile True: x.append('y' * 1_000_000)"
    world.rl(
        *("run", "--memory", "80M", "--memory-by", "watch"),
        *("--", sys.executable, "-c", grow, f"--token={secret}"),
    )
    page = next((world.journal / "trials").glob("*/stacks.txt")).read_text()
    assert "--token=<redacted>" in page
    assert not kept(world.journal, secret)


def test_the_page_of_stacks_of_a_hang_has_no_secret(world: World) -> None:
    secret = password()
    hang = "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()"
    world.rl("run", "--hang", "2", "--", sys.executable, "-c", hang, f"--token={secret}")
    page = next((world.journal / "trials").glob("*/stacks.txt")).read_text()
    assert "--token=<redacted>" in page
    assert not kept(world.journal, secret)


def test_what_watches_for_nan_notes_no_secret(world: World) -> None:
    secret = password()
    world.write("t.py", SHOW)
    world.rl("run", "--nan", "--", sys.executable, "t.py", f"--token={secret}")
    assert any((world.journal / "trials" / "1" / "probes").glob("*.jsonl"))
    assert not kept(world.journal, secret)


def test_what_a_probe_asks_is_kept_without_its_secrets(world: World) -> None:
    secret, named, token = password(), password(), tokens()["github"]
    world.write("t.py", "import sys\nx = len(sys.argv)\n")
    asked = (f"x == {secret!r}", f"dict(password={named!r})", f"x == {token!r}")
    ran = world.rl(
        *("probe", "t.py:2", *asked, "--if", f"x != {secret!r}", "--", sys.executable, "t.py"),
        env={"HF_TOKEN": secret},
    )
    assert f"x == {token!r}=False" in ran.stderr + ran.stdout
    assert not kept(world.journal, secret, named, token)
    assert "<redacted:HF_TOKEN>" in (world.journal / "trials/1/start.json").read_text()


def test_the_log_of_loggers_has_no_secret_that_no_variable_has(world: World) -> None:
    token, block = tokens()["anthropic"], tokens()["key block"]
    world.write("t.py", f"from relaunch import get_logger\nlog = get_logger('x')\n{SAY}")
    said = world.root / "tmp" / "said.txt"
    said.write_text(f"{token}\n{block}\nand more")
    world.rl("--", sys.executable, "t.py", env={"SAID": str(said)})
    assert "and more" in (world.journal / "trials/1/log.txt").read_text()
    assert not kept(world.journal, token, *block.splitlines()[1:-1])


def test_what_the_program_of_a_killed_rl_wrote_is_masked_by_the_next_one(world: World) -> None:
    known, named = password(), password()
    ready = world.root / "tmp" / "ready"
    os.mkfifo(ready)
    child = f"import os; raise ValueError(os.environ['HF_TOKEN'] + ' password={named}')"
    world.write(
        "t.py",
        f"import subprocess, sys\nsubprocess.run([sys.executable, 'child.py'])\n"
        f"open({str(ready)!r}, 'w').close()\nsys.stdin.read()\n",
    )
    world.write("child.py", child)
    near, far = os.pipe()
    running = world.start(
        ["rl", "--", sys.executable, "t.py"],
        env={"HF_TOKEN": known},
        stdin=near,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    open(ready).close()
    running.send_signal(signal.SIGKILL)
    running.wait()
    os.close(near)
    os.close(far)
    (world.project / "child.py").unlink()
    trial = world.journal / "trials" / "1"
    assert kept(trial, known, named)
    world.rl("--", "true", env={"HF_TOKEN": known})
    assert not kept(trial, known, named)


def test_a_kept_call_has_no_secret_of_the_command_under_another_name(world: World) -> None:
    secret, url = password(), password()
    world.write(
        "t.py",
        "import os, sys\n\ndef f(x, y):\n    raise ValueError('no')\n\n"
        "f(sys.argv[1].partition('=')[2], os.environ['DB'].partition('@')[0])\n",
    )
    env = {"DB": f"redis://:{url}@h/0"}
    world.rl("--", sys.executable, "t.py", f"--token={secret}", env=env)
    assert any((world.journal / "trials" / "1" / "capture").rglob("1.p*"))
    assert not kept(world.journal, secret, url)


def test_a_bundle_has_no_value_of_a_variable_that_is_a_secret(world: World) -> None:
    word, option, other = password(), password(), password()
    world.write("data.jsonl", "".join(f'{{"i": {i}}}\n' for i in range(9)))
    world.write("notes.txt", f"the word is {word}\npassword: {other}\n")
    world.write("t.py", "import sys\nassert '7' not in open(sys.argv[1]).read()\n")
    world.commit()
    env = {"HF_TOKEN": word, "DB_PASSWORD": option}
    ran = world.rl(
        *("shrink", "data.jsonl", "--bundle", "bundle", "--", sys.executable, "t.py"),
        *("data.jsonl", word, "notes.txt", f"--word={option}"),
        env=env,
    )
    assert "fails there too" in ran.stdout
    assert not kept(world.project / "bundle", word, option, other)
    assert "SECRET_2" in (world.project / "bundle" / "run.sh").read_text()


def test_what_was_masked_stays_so_where_the_failure_needs_more_than_that(world: World) -> None:
    secret = password()
    world.write("data.jsonl", "".join(f'{{"i": {i}}}\n' for i in range(9)))
    world.write("notes.txt", f"password: {secret}\n")
    world.write(".git/elsewhere", "7")
    read = "open('.git/elsewhere').read()"
    world.write("t.py", f"import sys\nassert {read} not in open(sys.argv[1]).read()\n")
    world.commit()
    ran = world.rl(
        *("shrink", "data.jsonl", "--bundle", "bundle", "--", sys.executable, "t.py"),
        *("data.jsonl", "notes.txt"),
    )
    assert "bundle: does not fail there" in ran.stdout
    assert not kept(world.project / "bundle", secret)


def test_what_the_programs_of_a_killed_search_wrote_is_masked_by_the_next_search(
    world: World,
) -> None:
    known, given = password(), password()
    ready, never = world.root / "tmp" / "ready", world.root / "tmp" / "never"
    os.mkfifo(ready)
    os.mkfifo(never)
    child = f"import os; raise ValueError(os.environ['HF_TOKEN'] + ' password={known}')"
    world.write("child.py", child)
    world.write(
        "t.py",
        f"import subprocess, sys\nsubprocess.run([sys.executable, 'child.py'])\n"
        f"open({str(ready)!r}, 'w').close()\nopen({str(never)!r}).close()\n",
    )
    running = world.start(
        ["rl", "repeat", "2", "--", sys.executable, "t.py", f"--token={given}"],
        env={"HF_TOKEN": given},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    open(ready).close()
    running.send_signal(signal.SIGKILL)
    running.wait()
    (world.project / "child.py").unlink()
    search = world.journal / "searches" / "1"
    assert kept(search, known, given)
    world.rl("repeat", "1", "--", "true", env={"HF_TOKEN": given})
    assert not kept(search, known, given)
