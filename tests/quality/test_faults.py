"""rl under fire: killed at random moments, on a full disk, without permissions, eight at once.

After every fault: no trial whose program started is lost, every trial can be read, and the user's
index, stash, refs, configuration and files are what they were, byte for byte.
Few rounds of each on a push, many in `make soak`; `RELAUNCH_FAULTS=10000` makes them still more.
"""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.depth import rounds
from tests.needs import needs

from relaunch.journal.snapshot.code import from_json
from relaunch.journal.store import Journal
from relaunch.proc.tree import leftovers

FAULTS = int(os.environ.get("RELAUNCH_FAULTS") or rounds(80, 2000))
NOBODY = 65534
PROGRAM = """\
echo "$RELAUNCH_TRIAL" >> "$LEDGER"
echo some output; echo some error >&2
head -c 20000 /dev/zero
exit 3
"""


class Victim:
    """A repository with all that must survive, and a ledger of what really started."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.project = folder / "project"
        self.ledger = folder / "ledger"
        self.env = {**env, "LEDGER": str(self.ledger)}
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)
        self.project.mkdir()
        self.ledger.touch()
        self._git("init", "-q", "-b", "main")
        for n in range(30):
            (self.project / f"file{n}.py").write_text(f"print({n})\n" * 20)
        (self.project / "prog.sh").write_text(PROGRAM)
        self._git("add", "-A")
        self._git("commit", "-q", "-m", "start")
        self._git("branch", "topic")
        (self.project / "file0.py").write_text("stashed\n")
        self._git("stash")
        (self.project / "file1.py").write_text("staged\n")
        self._git("add", "file1.py")
        (self.project / "file2.py").write_text("dirty\n")
        (self.project / "untracked.txt").write_text("mine\n")
        self.before = self.fingerprint()
        self.checked = 0

    def _git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self.project, env=self.env, check=True)

    @property
    def journal(self) -> Journal:
        return Journal(str(self.project / ".git" / "relaunch"))

    def fingerprint(self) -> dict[str, str]:
        """Hash every file of the user's: work tree, index, refs, stash, configuration."""
        found = {}
        for top, folders, files in os.walk(self.project):
            inner = os.path.relpath(top, self.project)
            folders[:] = [one for one in folders if not _is_ours(os.path.join(inner, one))]
            for name in (os.path.normpath(os.path.join(inner, one)) for one in files):
                if not _is_ours(name):
                    data = (self.project / name).read_bytes()
                    if name == ".git/config":  # the two lines that keep the base of our snapshots
                        data = data.partition(b'[gc "refs/relaunch')[0]
                    found[name] = hashlib.sha1(data).hexdigest()
        return found

    def start(self, *options: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*prefix, sys.executable, "-m", "relaunch", *options, "--", "sh", "prog.sh"],
            cwd=self.project,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def check(self, *, whole: bool = False) -> None:
        """Everything that started is there, everything there can be read, nothing else changed.

        Each time for what is new since the last, with `whole` for all there is.
        """
        assert self.fingerprint() == self.before
        journal = self.journal
        for trial_id in journal.ids()[0 if whole else -20 :]:
            trial = journal.load(trial_id)
            assert trial.start["command"] == ["sh", "prog.sh"]
            assert trial.end is None or "exit_code" in trial.end
        started = self.ledger.read_text().split()
        for line in started[0 if whole else self.checked :]:
            if line.startswith("/"):  # else it ran unrecorded, with a warning
                home = os.path.dirname(os.path.dirname(line))
                assert Journal(home).load(os.path.basename(line)).path == line
        self.checked = len(started)


def _is_ours(name: str) -> bool:
    """Tell whether a file or folder is ours; objects are only added to, by whoever it is."""
    ours = (".git/objects", ".git/relaunch", ".git/refs/relaunch", ".git/logs/refs/relaunch")
    return os.path.normpath(name).startswith(ours)


@pytest.fixture
def victim(world, tmp_path) -> Victim:
    (tmp_path / "victim").mkdir()
    return Victim(tmp_path / "victim", world.env)


def edit(victim: Victim, rng: random.Random) -> None:
    """Change the code as a person between two attempts; it counts as the user's from now on."""
    name = victim.project / f"file{rng.randrange(3, 30)}.py"
    name.write_text(f"# {rng.random()}\n" * rng.randrange(1, 50))
    victim.before = victim.fingerprint()


def duration_of_one(victim: Victim) -> float:
    victim.start().communicate(timeout=300)
    begin = time.monotonic()
    assert victim.start().communicate(timeout=300)[0].startswith(b"some output")
    return time.monotonic() - begin


@pytest.mark.parametrize("seed", range(8))
def test_killed_at_any_moment_nothing_is_lost(victim, seed):
    rng = random.Random(seed)
    whole = duration_of_one(victim)
    rounds = FAULTS * 6 // 80
    for n in range(rounds):
        if n % 5 == 0:
            edit(victim, rng)
        process = victim.start()
        try:
            process.wait(rng.uniform(0, 1.1 * whole))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate(timeout=300)
        victim.check(whole=n % 100 == 0)
    victim.check(whole=True)
    out, err = victim.start().communicate(timeout=300)
    assert out.startswith(b"some output")
    assert b"not recorded" not in err
    for trial_id in victim.journal.ids()[-50:]:
        assert leftovers(victim.journal.load(trial_id).path) == []
    kept = sum(victim.journal.load(i).end is not None for i in victim.journal.ids())
    print(f"{rounds} kills, {len(victim.journal.ids())} trials kept, {kept} of them finished")


def test_eight_at_once_and_some_of_them_killed(victim):
    rng = random.Random(2)
    whole = duration_of_one(victim)
    for _ in range(max(2, FAULTS // 80)):
        edit(victim, rng)
        crowd = [victim.start("--reset", "true") for _ in range(8)]
        time.sleep(rng.uniform(0, 4 * whole))  # the moment of the fault, not a wait for anything
        for process in rng.sample(crowd, 4):
            process.kill()
        for process in crowd:
            _, err = process.communicate(timeout=300)
            assert process.returncode in (3, -signal.SIGKILL), err
        victim.check(whole=True)
    repeats = [i for i in victim.journal.ids() if "." in i]
    codes = {from_json(victim.journal.load(i).start["code"]).digest for i in repeats}
    for digest in codes:  # a repeat really has the code of its first
        same = [
            i.partition(".")[0]
            for i in repeats
            if from_json(victim.journal.load(i).start["code"]).digest == digest
        ]
        firsts = {from_json(victim.journal.load(i).start["code"]).digest for i in same}
        assert firsts == {digest}


@pytest.mark.parametrize("seed", range(4))
def test_on_a_full_disk_the_program_runs_and_one_line_says_so(world, small_disk, tmp_path, seed):
    rng = random.Random(seed)
    victim = Victim(small_disk, world.env)
    victim.ledger = tmp_path / "ledger"
    victim.ledger.touch()
    victim.env["LEDGER"] = str(victim.ledger)
    filler = small_disk / "filler"
    warned = 0
    rounds = FAULTS // 20
    for n in range(rounds):
        if n % 3 == 0:
            edit(victim, rng)
        room = rng.choice([0, 0, 4096, 8192, rng.randrange(1 << 17)])
        fill(filler, small_disk, leave=room)
        process = victim.start()
        out, err = process.communicate(timeout=300)
        filler.unlink()
        assert process.returncode == 3, err
        assert out.startswith(b"some output\n")
        assert len(victim.ledger.read_text().split()) == 1
        assert b"Traceback" not in err
        ours = [line for line in err.splitlines() if line.startswith(b"rl: ")]
        assert len(ours) <= 1, err
        warned += len(ours)
        victim.check()
        thin(victim)
    assert warned > rounds // 4
    assert b"recorded" not in victim.start().communicate(timeout=300)[1]
    print(f"{rounds} runs on a full disk, {warned} warned of")


def fill(path: Path, disk: Path, *, leave: int) -> None:
    """Write until only `leave` bytes are free."""
    with open(path, "wb") as file:
        free = shutil.disk_usage(disk).free
        try:
            os.posix_fallocate(file.fileno(), 0, max(4096, free - leave))
        except OSError:
            pass


def thin(victim: Victim) -> None:
    """Keep the small disk from filling with honest trials."""
    for trial_id in victim.journal.ids():
        shutil.rmtree(os.path.join(victim.journal.trials, trial_id))
    victim.ledger.write_text("")
    victim.checked = 0


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="relaunch-open-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_without_permissions_the_program_runs_and_one_line_says_so(world, open_folder):
    needs("setpriv")
    if os.geteuid() != 0:
        pytest.skip("becoming somebody without permissions needs root")
    rng = random.Random(4)
    (open_folder / "home").mkdir()
    env = {**world.env, "HOME": str(open_folder / "home")}
    env = {name: text for name, text in env.items() if not name.startswith("XDG_")}
    env["TMPDIR"] = str(open_folder)
    victim = Victim(open_folder, env)
    for path in (open_folder, *open_folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    become = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    victim.start(prefix=become).communicate(timeout=300)
    home = victim.project / ".git" / "relaunch"
    warned = 0
    rounds = FAULTS // 10
    for n in range(rounds):
        folders = [home, *(p for p in home.rglob("*") if p.is_dir() and "objects/" not in str(p))]
        chosen = rng.choice(sorted(folders)) if n else home / "trials"
        mode = chosen.stat().st_mode & 0o777
        chosen.chmod(rng.choice([0o000, 0o500, 0o400]) if n else 0o000)
        process = victim.start(prefix=become)
        out, err = process.communicate(timeout=300)
        chosen.chmod(mode)
        assert process.returncode == 3, (chosen, err)
        assert out.startswith(b"some output\n"), err
        assert b"Traceback" not in err, (chosen, err)
        warned += err.count(b"recorded")
        victim.check()
    victim.check(whole=True)
    assert warned
    print(f"{rounds} runs without a permission, {warned} warned of")
