"""A file of the user's is replaced whole, and drafts of killed ones do not stay beside it."""

import os
import subprocess
import sys
from pathlib import Path

from relaunch.desk.replace import replace_file


def draft(path: Path, pid: int, *, age_s: int = 3600) -> Path:
    made = Path(f"{path}.rl-{pid}")
    made.write_text("half")
    when = made.stat().st_mtime - age_s
    os.utime(made, (when, when))
    return made


def test_drafts_of_the_killed_go_and_all_others_stay(tmp_path: Path) -> None:
    path = tmp_path / ".bashrc"
    path.write_text("before")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead = draft(path, ended.pid)
    stay = [
        draft(path, os.getppid()),  # it lives
        draft(path, ended.pid + 1_000_000_000, age_s=0),  # young: it may be of another host
        draft(tmp_path / "other", ended.pid),
        draft(path, 1).rename(f"{path}.rl-old"),
    ]
    if os.geteuid() == 0:
        stay.append(draft(path, ended.pid + 2_000_000_000))
        os.chown(stay[-1], 65534, 65534)
    os.symlink("other", f"{path}.rl-{ended.pid + 3_000_000_000}")
    replace_file(str(path), b"after", 0o600)
    assert path.read_text() == "after"
    assert not dead.exists()
    assert all(one.exists() for one in stay)
    assert os.path.lexists(f"{path}.rl-{ended.pid + 3_000_000_000}")
