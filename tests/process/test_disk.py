"""`rl run --disk`: the folder looks small, and is the same afterwards, whatever happens."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import World
from tests.needs import needs
from tests.people import Person, person, plain, root
from tests.supervising import PATIENCE_S, is_running, kill_at_once, wait_until

__all__ = ["person", "plain", "root"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="--disk needs Linux")

FILL = """\
import os, sys
folder = sys.argv[1]
disk = os.statvfs(folder)
print("looks", disk.f_blocks * disk.f_frsize, sorted(os.listdir(folder)))
file, count = os.open(folder + "/new", os.O_WRONLY | os.O_CREAT), 0
try:
    while True:
        count += os.write(file, bytes(4096))
finally:
    print("wrote", count)
"""
MANY = """\
import sys
count = 0
try:
    while True:
        open(f"{sys.argv[1]}/{count}", "w").close()
        count += 1
finally:
    print("made", count)
"""
WORKS = """\
import os, shutil, sys
os.chdir(sys.argv[1])
with open("model.pt", "ab") as file:
    file.write(b"more")
os.remove("log.txt")
os.rename("notes", "words")
shutil.rmtree("old")
os.mkdir("old")
open("old/new", "w").write("new")
os.chmod("tool", 0o700)
os.symlink("model.pt", "latest")
"""
FULL = "was full: "
NO_ADMIN = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
_FORBID = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
NO_MOUNTS = ("unshare", "-Ur", "sh", "-c", _FORBID, "sh", *NO_ADMIN)
"""As in a container that allows neither mounts nor namespaces."""


def image(folder: Path) -> dict[str, tuple[object, ...]]:
    """All that is in a folder: rights, owners, times and every byte."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        about = path.lstat()
        if path.is_symlink():
            inside = os.readlink(path)
        elif path.is_file():
            inside = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            inside = ""
        facts = (about.st_mode, about.st_uid, about.st_gid, about.st_nlink, about.st_mtime_ns)
        found[str(path.relative_to(folder))] = (*facts, inside)
    return found


def checkpoints(who: Person) -> Path:
    """A folder like one with checkpoints, which belongs to the person."""
    folder = who.project / "ckpt"
    (folder / "old" / "deep").mkdir(parents=True)
    (folder / "model.pt").write_bytes(os.urandom(300_000))
    (folder / "log.txt").write_text("a log\n")
    (folder / "notes").write_text("words\n")
    (folder / "old" / "deep" / "file").write_text("deep\n")
    (folder / "tool").write_text("#!/bin/sh\n")
    (folder / "link").symlink_to("model.pt")
    os.link(folder / "notes", folder / "notes too")
    for name, text in {"fill.py": FILL, "many.py": MANY, "works.py": WORKS}.items():
        who.world.write(name, text)
    who.owns()
    return folder


def mounts(who: Person) -> list[str]:
    """What is mounted for everybody below the person's world."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if str(who.world.root) in line]


# --- as large as asked ----------------------------------------------------------------------------


def test_no_page_more_than_asked_can_be_written(person):
    folder = checkpoints(person)
    before = image(folder)
    done = person.rl("run", "--disk", "ckpt=3M", "--", person.python, "fill.py", "ckpt")
    assert f"looks {3 << 20} {sorted(os.listdir(folder))}" in done.stdout
    assert f"wrote {3 << 20}\n" in done.stdout
    assert "OSError: [Errno 28] No space left on device" in done.stderr
    assert "rl: ckpt looks 3 MiB (overlay, discarded at the end)" in done.stderr
    assert f"rl: ckpt {FULL}3 MiB used of 3 MiB" in done.stderr
    assert done.returncode == 1
    assert image(folder) == before
    assert mounts(person) == []


def test_as_many_files_as_asked_can_be_made(person):
    folder = checkpoints(person)
    before = image(folder)
    words = ["run", "--disk", "ckpt=3M,inodes=70", "--", person.python, "many.py", "ckpt"]
    done = person.rl(*words)
    assert "made 70\n" in done.stdout
    assert "ckpt looks 3 MiB, 70 inodes" in done.stderr
    assert f"ckpt {FULL}0 B used of 3 MiB, 0 of 70 inodes free" in done.stderr
    assert image(folder) == before


def test_inodes_alone_leave_room_for_bytes(person):
    checkpoints(person)
    script = (
        "import os; d = os.statvfs('ckpt'); print(d.f_bavail * d.f_frsize > 1 << 20, d.f_ffree)"
    )
    done = person.rl("run", "--disk", "ckpt=inodes=7", "--", person.python, "-c", script)
    assert done.stdout == "True 7\n", done.stderr


def test_a_program_that_deletes_what_it_wrote_was_at_the_limit_all_the_same(person):
    checkpoints(person)
    line = "dd if=/dev/zero of=ckpt/x bs=64k 2>err; sync; sleep 0.2; rm ckpt/x; true"
    done = person.rl("run", "--disk", "ckpt=2M", "--", "sh", "-c", line)
    assert f"ckpt {FULL}2 MiB used of 2 MiB" in done.stderr
    assert "in the end 0 B" in done.stderr
    assert json.loads((person.world.journal / "trials/1/end.json").read_text())["reached"][
        "limit_bytes"
    ] == (2 << 20)


def test_a_repeated_launch_has_the_same_disks(person):
    checkpoints(person)
    person.rl("run", "--disk", "ckpt=3M", "--", person.python, "fill.py", "ckpt")
    done = person.rl()
    assert f"disk {person.project.resolve()}/ckpt 3 MiB" in " ".join(done.stderr.split())
    assert f"wrote {3 << 20}\n" in done.stdout, done.stderr
    assert "ckpt looks 3 MiB (overlay, discarded at the end)" in done.stderr


def test_a_disk_with_room_left_is_not_called_full(person):
    checkpoints(person)
    done = person.rl("run", "--disk", "ckpt=2M", "--", "cp", "ckpt/model.pt", "ckpt/copy")
    assert done.returncode == 0
    assert FULL not in done.stderr


def test_a_file_that_is_copied_whole_before_a_change_is_named(person):
    checkpoints(person)
    script = "open('ckpt/model.pt', 'ab')"
    done = person.rl("run", "--disk", "ckpt=64K", "--", person.python, "-c", script)
    assert "No space left on device" in done.stderr
    assert (
        "rl: ckpt/model.pt was there before, and is copied whole before it is changed"
        in done.stderr
    )


# --- the folder is the same afterwards ------------------------------------------------------------


def test_nothing_a_program_does_there_reaches_the_folder(person):
    folder = checkpoints(person)
    before = image(folder)
    words = ["run", "--disk", "ckpt=9M", "--", person.python, "works.py", "ckpt"]
    done = person.rl(*words)
    assert done.returncode == 0, done.stderr
    assert image(folder) == before


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_an_rl_that_is_ended_leaves_the_folder_and_no_process_or_mount(person, how):
    folder = checkpoints(person)
    before = image(folder)
    scratch = sorted(os.listdir(person.world.env["TMPDIR"]))
    script = "rm ckpt/log.txt; echo x >> ckpt/model.pt; echo $$ $PPID; exec sleep 60"
    process = person.start("run", "-q", "--disk", "ckpt=9M", "--keep", "--", "sh", "-c", script)
    assert process.stdout is not None
    program, rl = map(int, process.stdout.readline().split())
    below = children(rl)
    if how == signal.SIGINT:
        os.killpg(process.pid, how)
    else:
        os.kill(rl, how)
    process.communicate(timeout=300)
    wait_until(lambda: not any(is_running(pid) for pid in (program, *below)))
    assert len(below) >= 3  # the guard, the one that has the disk, the program
    assert mounts(person) == []
    assert sorted(os.listdir(person.world.env["TMPDIR"])) == scratch
    if how == signal.SIGKILL:  # nobody was left to keep anything
        assert image(folder) == before
    else:
        assert not (folder / "log.txt").exists()


def test_a_program_outlives_the_process_that_has_its_disk(person):
    folder = checkpoints(person)
    before = image(folder)
    line = (
        "rm ckpt/log.txt; echo $$ $PPID; read go; ls ckpt/model.pt; df --output=size ckpt | tail -1"
    )
    words = person.words("run", "--disk", "ckpt=3M", "--keep", "--", "sh", "-c", line)
    process = person.world.start(words, stdin=subprocess.PIPE)
    assert process.stdout is not None
    program, rl = map(int, process.stdout.readline().split())
    for pid in children(rl):
        if pid != program and os.readlink(f"/proc/{pid}/ns/mnt") != os.readlink(
            "/proc/self/ns/mnt"
        ):
            os.kill(pid, signal.SIGKILL)
    out, err = process.communicate(b"go\n", timeout=300)
    assert out.split() == [b"ckpt/model.pt", b"3072"]
    assert b"not kept, or not whole: the process that had the small disks is gone" in err
    assert image(folder) == before


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_ctrl_c_leaves_the_folder_as_it_was(person):
    folder = checkpoints(person)
    before = image(folder)
    script = "rm -r ckpt/*; echo ready; exec sleep 60"
    process = person.start("run", "-q", "--disk", "ckpt=9M", "--", "sh", "-c", script)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=300)
    assert image(folder) == before


def test_the_next_rl_finds_nothing_to_clean_up_but_the_record(person):
    checkpoints(person)
    process = person.start("run", "--disk", "ckpt=9M", "--", "sh", "-c", "echo $PPID; sleep 60")
    assert process.stdout is not None
    rl = int(process.stdout.readline())
    os.kill(rl, signal.SIGKILL)
    process.communicate(timeout=300)
    done = person.rl("run", "--", "true")
    # The program dies with its rl, by the kernel's hand; a quick next rl may still see it.
    kept = r"rl: the rl of #1 was killed; its record is kept(, ended \d of its processes)?\n"
    assert re.search(kept, done.stderr), done.stderr


# --- over any folder ------------------------------------------------------------------------------


def test_a_folder_with_an_equals_sign_in_its_name_can_be_small(person):
    folder = person.project / "ckpt/epoch=3"
    folder.mkdir(parents=True)
    person.owns()
    line = "df --output=size ckpt/epoch=3 | tail -1"
    for limits in ("3M", "3M,inodes=64", "inodes=64,3M"):
        done = person.rl("run", "--disk", f"ckpt/epoch=3={limits}", "--", "sh", "-c", line)
        assert done.stdout.split() == ["3072"], done.stderr
    grown = person.rl("grow", "--disk", "ckpt/epoch=3=1M..4M", "--step", "1M", "--", "true")
    assert "passes" in grown.stdout, grown.stderr
    done = person.rl("run", "--disk", "ckpt/epoch=4=1G", "--", "true")
    assert "--disk ckpt/epoch=4=1G: `4=1G` is no limit of a disk" in done.stderr, done.stderr


def test_the_folder_of_the_program_itself_can_be_small(person):
    folder = checkpoints(person)
    before = image(folder)
    script = "import os; open('new', 'w').close(); print(os.listdir()); raise LookupError('mine')"
    person.world.write("fails.py", script)
    person.owns()
    done = person.rl("run", "--disk", ".=3M", "--", person.python, "fails.py")
    assert "'fails.py'" in done.stdout
    assert "'new'" in done.stdout
    assert not (person.project / "new").exists()
    assert image(folder) == before
    # Told by the hook in the program, through the trial's own folder, which stays real.
    assert os.listdir(person.world.journal / "trials/1/reports")
    assert "rl replay" in done.stderr


def test_a_folder_with_the_project_and_all_of_ours_in_it_can_be_small(person):
    """As /tmp often is; other tests may have mounts there."""
    checkpoints(person)
    around = str(person.world.root)
    done = person.rl("run", "--disk", f"{around}=3M", "--", person.python, "fill.py", around)
    assert f"wrote {3 << 20}\n" in done.stdout, done.stderr
    assert not (person.world.root / "new").exists()
    assert os.listdir(person.world.journal / "trials/1/reports")


def test_several_folders_have_a_disk_each_also_one_within_another(person):
    checkpoints(person)
    (person.project / "out").mkdir()
    person.owns()
    sizes = (
        "import os; print([os.statvfs(f).f_blocks >> 8 for f in ('.', 'ckpt', 'ckpt/old', 'out')])"
    )
    disks = ["--disk", "ckpt/old=1M", "--disk", "ckpt=3M", "--disk", "out=5M"]
    script = f"{sizes}; print(open('ckpt/old/deep/file').read()); open('ckpt/old/x', 'w')"
    done = person.rl("run", *disks, "--", person.python, "-c", script)
    assert f"{[os.statvfs(person.project).f_blocks >> 8, 3, 1, 5]}\ndeep\n" in done.stdout, (
        done.stderr
    )
    assert done.stderr.count("discarded at the end") == 3
    assert not (person.project / "ckpt/old/x").exists()


def test_a_name_that_mount_options_would_split_is_a_folder_like_others(person):
    checkpoints(person)
    folder = person.project / "a,b:c\\d e"
    folder.mkdir()
    (folder / "file").write_text("here")
    person.owns()
    done = person.rl("run", "--disk", f"{folder}=1M", "--", "cat", str(folder / "file"))
    assert done.stdout == "here", done.stderr


def test_a_file_system_mounted_below_is_untouched_too(root):
    needs("unshare")
    checkpoints(root)
    lines = 'mount -t tmpfs x ckpt/old && echo there > ckpt/old/file && "$@"; cat ckpt/old/file'
    with_mount = ("unshare", "-m", "sh", "-c", lines, "sh")
    line = "cat ckpt/old/file; echo x > ckpt/old/file; df --output=size -B 1M ckpt/old | tail -1"
    done = root.rl("run", "--disk", "ckpt=3M", "--", "sh", "-c", line, before=with_mount)
    assert done.stdout.split() == ["there", "3", "there"], done.stderr


def test_a_mount_that_is_hidden_leads_nowhere_though_a_link_has_its_place(root):
    needs("unshare")
    checkpoints(root)
    (root.project / "outside").mkdir()
    lines = (
        "mount -t tmpfs x ckpt/old && mount -t tmpfs y ckpt && ln -s ../outside ckpt/old && "
        'echo there > ckpt/file && "$@"; ls outside ckpt'
    )
    with_mounts = ("unshare", "-m", "sh", "-c", lines, "sh")
    line = "echo x > outside/x; rm ckpt/file"
    done = root.rl("run", "--disk", "ckpt=3M", "--", "sh", "-c", line, before=with_mounts)
    assert done.stdout.split() == ["ckpt:", "file", "old", "outside:", "x"], done.stderr


def test_the_root_of_all_folders_can_be_small_for_root(root):
    folder = checkpoints(root)
    before = image(folder)
    words = ["--disk", "/=9M", "--disk", "ckpt=3M", "--", root.python, "fill.py"]
    done = root.rl("run", *words, "ckpt")
    assert f"wrote {3 << 20}\n" in done.stdout, done.stderr
    done = root.rl("run", *words, str(root.project))
    assert f"wrote {9 << 20}\n" in done.stdout, done.stderr
    assert "rl: / was full: 9 MiB used of 9 MiB" in done.stderr
    assert "moved" not in done.stderr
    assert image(folder) == before
    assert not (root.project / "new").exists()


def test_what_a_plain_user_cannot_have_is_said(plain):
    checkpoints(plain)
    done = plain.rl("run", "--disk", "/=9M", "--", "true")
    assert done.returncode == 2
    assert "there are mounts below it, and without root they cannot be left out" in done.stderr


def test_a_small_shared_memory_kills_who_touches_more(person):
    script = (
        "import mmap, os\n"
        "file = os.open('/dev/shm/relaunch-test', os.O_RDWR | os.O_CREAT)\n"
        "os.ftruncate(file, 2 << 20)\n"
        "mmap.mmap(file, 2 << 20).write(bytes(2 << 20))\n"
    )
    done = person.rl("run", "--disk", "/dev/shm=1M", "--", person.python, "-c", script)
    assert done.returncode == -signal.SIGBUS
    assert f"/dev/shm {FULL}1 MiB used of 1 MiB" in done.stderr
    assert not os.path.exists("/dev/shm/relaunch-test")


def test_a_full_shared_memory_has_no_room_for_a_lock(person):
    script = (
        "import multiprocessing, os\n"
        "os.write(os.open('/dev/shm/relaunch-test', os.O_WRONLY | os.O_CREAT), bytes(8192))\n"
        "multiprocessing.Lock()\n"
    )
    done = person.rl("run", "--disk", "/dev/shm=4K", "--", person.python, "-c", script)
    assert "OSError: [Errno 28] No space left on device" in done.stderr
    assert FULL in done.stderr


def test_it_is_the_same_on_a_terminal(person):
    needs("script")
    checkpoints(person)
    line = " ".join(person.words("run", "--disk", "ckpt=3M", "--", "df", "-B1M", "ckpt"))
    done = person.world.shell(f"script -qec '{line}' /dev/null")
    assert "overlay" in done.stdout
    assert "ckpt looks 3 MiB" in done.stdout


# --- who runs it ----------------------------------------------------------------------------------


def test_a_plain_user_is_who_they_were(plain):
    checkpoints(plain)
    lines = (
        "id -u; id -g; touch ckpt/new; stat -c %u:%g ckpt/new ckpt ckpt/model.pt\n"
        "grep CapEff /proc/self/status"
    )
    done = plain.rl("run", "--disk", "ckpt=3M", "--", "sh", "-c", lines)
    uid, gid, *owners, _, capabilities = done.stdout.split()
    assert owners == [f"{uid}:{gid}"] * 3, done.stdout
    assert int(capabilities, 16) == 0


def test_a_plain_user_can_write_in_folders_of_others_that_they_may_write_in(plain):
    folder = checkpoints(plain)
    if not plain.become:
        pytest.skip("only root can make files of others")
    for name, mode in {"shared": 0o777, "closed": 0o755}.items():
        (folder / name).mkdir()
        (folder / name).chmod(mode)
    (folder / "theirs").write_text("theirs")
    (folder / "theirs").chmod(0o666)
    before = image(folder)
    lines = (
        "echo x > ckpt/shared/x && cat ckpt/shared/x\n"
        "echo x > ckpt/closed/x; mv ckpt/notes ckpt/theirs"
    )
    done = plain.rl("run", "--disk", "ckpt=3M", "--", "sh", "-c", lines)
    assert done.stdout == "x\n", done.stderr
    assert "Permission denied" in done.stderr
    assert "1 file of others there can be read and replaced, not written to in place" in done.stderr
    assert done.returncode == 0
    assert image(folder) == before


def test_in_a_namespace_like_that_of_a_container_it_is_the_same(person):
    needs("unshare")
    folder = checkpoints(person)
    before = image(folder)
    words = ["run", "--disk", "ckpt=3M", "--", person.python, "fill.py", "ckpt"]
    done = person.rl(*words, before=("unshare", "-Urm"))
    assert f"wrote {3 << 20}\n" in done.stdout, done.stderr
    assert image(folder) == before


def test_where_nobody_may_mount_one_line_says_what_would_allow_it_and_nothing_runs(person):
    needs("unshare")
    needs("setpriv")
    folder = checkpoints(person)
    before = image(folder)
    for more in ((), ("--keep",)):
        words = ("run", *more, "--disk", "ckpt=3M", "--", "sh", "-c", "echo x > ckpt/x")
        done = person.rl(*words, before=NO_MOUNTS)
        line = done.stderr.splitlines()[-1]
        assert (done.returncode, line.count("no small disk over ckpt: no user name")) == (2, 1)
        assert re.search(r"   try: (sudo sysctl|docker|podman|securityContext)", line), line
        assert image(folder) == before


def test_a_small_disk_can_be_on_a_small_disk(person):
    folder = checkpoints(person)
    before = image(folder)
    inner = person.words("run", "--disk", "ckpt=1M", "--", person.python, "fill.py", "ckpt")
    done = person.rl("run", "--disk", "ckpt=3M", "--", *inner[len(person.become) :])
    assert f"wrote {1 << 20}\n" in done.stdout, done.stderr
    assert image(folder) == before


def test_root_who_may_not_mount_has_files_of_all_owners(root):
    needs("setpriv")
    folder = checkpoints(root)
    before = image(folder)
    line = "touch ckpt/new && chown 5:6 ckpt/new && stat -c %u:%g ckpt/new"
    done = root.rl("run", "--disk", "ckpt=3M", "--", "sh", "-c", line, before=NO_ADMIN)
    assert done.stdout == "5:6\n", done.stderr
    assert image(folder) == before


# --- kept at the end ------------------------------------------------------------------------------


def test_what_is_kept_is_what_the_program_would_have_left(person):
    """A second folder, in which the same program really works, is the model."""
    folder, model = checkpoints(person), person.project / "model"
    subprocess.run(["cp", "-a", folder, model], check=True)
    done = person.rl("run", "--keep", "--disk", "ckpt=9M", "--", person.python, "works.py", "ckpt")
    assert done.returncode == 0, done.stderr
    assert "ckpt looks 9 MiB (overlay, kept at the end)" in done.stderr
    assert "rl: kept " in done.stderr
    subprocess.run([sys.executable, "works.py", "model"], cwd=person.project, check=True)
    assert contents(folder) == contents(model)
    assert not [name for name in os.listdir(folder) if name.startswith(".")]


def contents(folder: Path) -> dict[str, tuple[object, ...]]:
    """What is in a folder, but for times and owners; overlay cuts hard links of what it copies."""
    found = image(folder)
    return {name: (facts[0], facts[-1]) for name, facts in found.items()}


def test_a_folder_that_was_moved_is_kept_moved(root):
    folder, model = checkpoints(root), root.project / "model"
    (folder / "a" / "b" / "c").mkdir(parents=True)
    (folder / "a" / "b" / "c" / "file").write_text("c")
    (folder / "a" / "file").write_text("a")
    subprocess.run(["cp", "-a", folder, model], check=True)
    moves = (
        "import os, sys; os.chdir(sys.argv[1])\n"
        "os.rename('a/b/c', 'moved'); open('moved/more', 'w').write('more')\n"
        "os.rename('a', 'z'); os.rename('old', 'a'); os.rename('z', 'old')\n"
        "os.rename('old/b', 'old/e'); os.remove('old/file')\n"
    )
    root.world.write("moves.py", moves)
    done = root.rl("run", "--keep", "--disk", "ckpt=9M", "--", root.python, "moves.py", "ckpt")
    assert done.returncode == 0, done.stderr
    subprocess.run([sys.executable, "moves.py", "model"], cwd=root.project, check=True)
    assert contents(folder) == contents(model)


def test_folders_within_folders_are_kept_and_deleted_however_deep(plain):
    folder = plain.world.root / "small"  # not in the project, which git looks through
    folder.mkdir()
    plain.owns()
    makes = (
        "import os, sys; os.chdir(sys.argv[1])\n"
        "for _ in range(350): os.mkdir('d'); os.chdir('d')\n"
        "open('leaf', 'w').write('x')\n"
    )
    run = ("run", "--keep", "--disk", f"{folder}=90M", "--")
    done = plain.rl(*run, plain.python, "-c", makes, str(folder))
    assert "rl: kept 1 file, 1 B" in done.stderr.splitlines(), done.stderr
    done = plain.rl(*run, "rm", "-r", str(folder / "d"))
    assert "rl: kept 0 files, 0 B, 1 deleted" in done.stderr.splitlines(), done.stderr
    assert os.listdir(folder) == []


def test_names_of_one_file_and_holes_are_kept(person):
    folder = checkpoints(person)
    script = (
        "import os\n"
        "open('ckpt/one', 'w').write('x'); os.link('ckpt/one', 'ckpt/old/two')\n"
        "file = open('ckpt/holes', 'wb'); file.truncate(1 << 30)\n"
        "file.seek(1 << 29); file.write(b'x')\n"
        "os.mkfifo('ckpt/pipe')\n"
    )
    done = person.rl("run", "--keep", "--disk", "ckpt=9M", "--", person.python, "-c", script)
    assert (folder / "one").samefile(folder / "old" / "two"), done.stderr
    assert (folder / "holes").stat().st_size == 1 << 30
    assert (folder / "holes").stat().st_blocks < 100
    assert stat.S_ISFIFO((folder / "pipe").stat().st_mode)


def test_what_cannot_be_kept_is_told_and_the_rest_is_kept(plain):
    folder = checkpoints(plain)
    if not plain.become:
        pytest.skip("only root can take a folder away from somebody")
    line = "echo x > ckpt/old/x; echo y > ckpt/y; echo ready; read go"
    process = plain.world.start(
        plain.words("run", "--keep", "--disk", "ckpt=9M", "--", "sh", "-c", line),
        stdin=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    os.chown(folder / "old", 0, 0)
    _, err = process.communicate(b"go\n", timeout=300)
    assert b"rl: not kept: old/x: Permission denied" in err
    assert (folder / "y").read_text() == "y\n"


def test_what_another_program_changed_meanwhile_is_kept_beside(person):
    folder = checkpoints(person)
    line = "echo program > ckpt/log.txt; rm ckpt/tool; echo new > ckpt/new; echo ready; read go"
    words = person.words("run", "--keep", "--disk", "ckpt=9M", "--", "sh", "-c", line)
    process = person.world.start(words, stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    for name in ("log.txt", "tool"):
        (folder / name).write_text("other")
    _, err = process.communicate(b"go\n", timeout=PATIENCE_S)
    said = b"rl: another program was at work there: "
    assert said + b"log.txt is the other program's, log.txt.kept this one's" in err
    assert said + b"tool was not deleted" in err
    found = [(folder / f"log.txt{end}").read_text() for end in ("", ".kept")]
    assert found == ["other", "program\n"]
    assert ((folder / "tool").read_text(), (folder / "new").read_text()) == ("other", "new\n")


def test_what_another_user_has_open_is_theirs_though_a_plain_user_cannot_see_it(plain):
    folder = checkpoints(plain)
    if not plain.become:
        pytest.skip("only root can make files of others")
    (folder / "theirs").write_text("before;")
    (folder / "theirs").chmod(0o666)
    line = "echo program > new; mv new ckpt/theirs"
    with (folder / "theirs").open("a") as file:
        done = plain.rl("run", "--keep", "--disk", "ckpt=9M", "--", "sh", "-c", line)
        file.write("late;")
    assert (folder / "theirs").read_text() == "before;late;", done.stderr
    assert (folder / "theirs.kept").read_text() == "program\n"


def test_a_folder_that_was_replaced_meanwhile_is_not_written_to(person):
    folder = checkpoints(person)
    line = "echo program > ckpt/log.txt; echo ready; read go"
    words = person.words("run", "--keep", "--disk", "ckpt=9M", "--", "sh", "-c", line)
    process = person.world.start(words, stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    away = folder.rename(person.project / "away")
    (person.project / "victim").mkdir()
    (person.project / "victim/log.txt").write_text("theirs")
    folder.symlink_to("victim")
    _, err = process.communicate(b"go\n", timeout=PATIENCE_S)
    assert (person.project / "victim/log.txt").read_text() == "theirs"
    assert (away / "log.txt").read_text() == "program\n"
    assert f"at work there: {folder} is {away} now".encode() in err


def test_two_runs_at_once_are_both_kept(person):
    folder = checkpoints(person)
    line = "echo $$ > ckpt/log.txt; echo $$; read go"
    words = person.words("run", "--keep", "--disk", "ckpt=9M", "--", "sh", "-c", line)
    runs = [person.world.start(words, stdin=subprocess.PIPE) for _ in range(2)]
    wrote = set()
    for process in runs:
        assert process.stdout is not None
        wrote.add(process.stdout.readline().decode())
    for process in runs:
        process.communicate(b"go\n", timeout=PATIENCE_S)
    assert {(folder / name).read_text() for name in ("log.txt", "log.txt.kept")} == wrote


def names_on_their_way(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".relaunch-")]


def killed_while_it_keeps(who: Person, verb: str, *, whom: str) -> tuple[Path, str]:
    """Kill it with something on its way; return that, and what rl said."""
    folder = checkpoints(who)
    line = "head -c 30000000 /dev/zero > ckpt/new; echo $$ $PPID; read go"
    for _ in range(100):  # until it was killed in time
        words = who.words(verb, "--keep", "--disk", "ckpt=90M", "--", "sh", "-c", line)
        process = who.world.start(words, stdin=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        program, rl = map(int, process.stdout.readline().split())
        mounts = os.readlink(f"/proc/{program}/ns/mnt")
        holder = next(pid for pid in children(rl) if os.readlink(f"/proc/{pid}/ns/mnt") == mounts)
        process.stdin.write(b"go\n")
        process.stdin.flush()
        while process.poll() is None and not (names := names_on_their_way(folder)):
            pass
        if whom == "everybody":
            if process.poll() is None:
                kill_at_once(process.pid)
        elif is_running(holder):
            os.kill(holder, signal.SIGKILL)
        err = process.communicate(timeout=PATIENCE_S)[1].decode()
        if names and names_on_their_way(folder):
            return folder / names[0], err
        (folder / "new").unlink()
    raise AssertionError("it kept all before it was killed, each time")


@pytest.mark.parametrize("whom", ["the one that has the disk", "everybody"])
@pytest.mark.parametrize("verb", ["run", "squeeze"])
def test_what_was_on_its_way_when_it_was_killed_is_named_and_stays(person, verb, whom):
    left, err = killed_while_it_keeps(person, verb, whom=whom)
    before = image(left.parent)
    if whom == "everybody":
        wait_until(lambda: not is_running(int(left.name.split("-")[1])))
        err = person.rl("run", "--", "true").stderr
    said = f"rl: killed while it kept: ckpt/{left.name} has not its name; it stays so"
    assert err.splitlines().count(said) == 1, err
    assert said not in person.rl("run", "--", "true").stderr.splitlines()
    assert image(left.parent) == before


def test_what_was_on_its_way_is_named_where_its_process_seems_to_run(root):
    """In a container the next process has the same number at once."""
    left, _ = killed_while_it_keeps(root, "run", whom="everybody")
    mine = left.rename(left.with_name(f".relaunch-{os.getpid()}-1"))
    said = f"rl: ckpt/{mine.name} has not its name yet: process {os.getpid()} keeps it"
    assert said in root.rl("run", "--", "true").stderr


def test_where_nothing_was_on_its_way_the_folder_is_not_looked_through(person):
    folder = checkpoints(person)
    (folder / ".relaunch-1-1").touch()
    script = "echo ready; exec sleep 60"
    process = person.start("run", "--keep", "--disk", "ckpt=9M", "--", "sh", "-c", script)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    kill_at_once(process.pid)
    process.communicate(timeout=PATIENCE_S)
    done = person.rl("run", "--", "true")
    assert "its record is kept" in done.stderr
    assert "has not its name" not in done.stderr


def test_searches_with_several_runs_at_once_leave_the_folder_as_it_was(person):
    folder = checkpoints(person)
    before = image(folder)
    line = "echo $$ > ckpt/log.txt; rm ckpt/notes; head -c 2500000 /dev/zero > ckpt/model.pt"
    words = ("grow", "-j", "4", "--disk", "ckpt=1M..4M", "--step", "1M")
    done = person.rl(*words, "--", "sh", "-c", line)
    assert "passes" in done.stdout, done.stderr
    assert image(folder) == before


def test_a_mount_below_that_is_kept_stays_on_its_own_file_system(root):
    needs("unshare")
    checkpoints(root)
    (root.project / "outside").mkdir()
    lines = (
        "mount -t tmpfs x ckpt/old && echo there > ckpt/old/file && mkdir ckpt/old/deep && "
        'mount --bind outside ckpt/old/deep && "$@"; ls ckpt/old ckpt/old/deep; cat ckpt/old/file'
    )
    with_mount = ("unshare", "-m", "sh", "-c", lines, "sh")
    line = "echo x > ckpt/old/file; echo y > ckpt/old/deep/y; rm -r ckpt/notes"
    done = root.rl("run", "--keep", "--disk", "ckpt=3M", "--", "sh", "-c", line, before=with_mount)
    assert done.stdout.split() == ["ckpt/old:", "deep", "file", "ckpt/old/deep:", "y", "x"]
    assert os.listdir(root.project / "outside") == ["y"]
    assert sorted(os.listdir(root.project / "ckpt/old")) == ["deep"]


# --- the lower rungs ------------------------------------------------------------------------------


def test_without_overlay_the_folder_looks_empty_and_that_is_said(person):
    folder = checkpoints(person)
    before = image(folder)
    words = ["run", "--disk", "ckpt=3M,inodes=9", "--", person.python, "fill.py", "ckpt"]
    done = person.rl(*words, env={"RELAUNCH_WITHOUT": "overlay"})
    assert f"looks {3 << 20} []" in done.stdout, done.stderr
    assert f"wrote {3 << 20}\n" in done.stdout
    assert "ckpt looks 3 MiB, 9 inodes and empty: what is there is not seen" in done.stderr
    assert "(tmpfs, discarded at the end)" in done.stderr
    assert image(folder) == before


def test_what_is_kept_of_a_disk_that_looked_empty_replaces_nothing(person):
    folder = checkpoints(person)
    (folder / "model.pt").chmod(0o600)
    before = image(folder)
    line = "echo more >> ckpt/log.txt; mkdir -m 777 ckpt/old; echo x > ckpt/old/x; echo y > ckpt/y"
    words = ["run", "--keep", "--disk", "ckpt=3M", "--", "sh", "-c", line]
    done = person.rl(*words, env={"RELAUNCH_WITHOUT": "overlay"})
    said = "rl: log.txt was there and was not seen: what was written is log.txt.kept"
    assert said in done.stderr.splitlines()
    after = image(folder)
    for name in ("log.txt", "model.pt", "old/deep/file"):
        assert after[name] == before[name]
    assert after["old"][0] == before["old"][0]
    assert (folder / "log.txt.kept").read_text() == "more\n"
    assert ((folder / "old/x").read_text(), (folder / "y").read_text()) == ("x\n", "y\n")


def test_an_empty_folder_needs_no_overlay(person):
    checkpoints(person)
    (person.project / "empty").mkdir()
    person.owns()
    words = ["run", "--keep", "--disk", "empty=3M", "--", "sh", "-c", "echo x > empty/x"]
    done = person.rl(*words)
    assert "empty looks 3 MiB (tmpfs, kept at the end)" in done.stderr
    assert os.listdir(person.project / "empty") == ["x"]


def test_a_disk_that_looks_empty_never_hides_the_program(person):
    checkpoints(person)
    words = ["run", "--disk", ".=3M", "--", person.python, "fill.py", "."]
    done = person.rl(*words, env={"RELAUNCH_WITHOUT": "overlay"})
    assert done.returncode == 2
    assert f"tmpfs: it would hide {os.path.realpath(person.project)}" in done.stderr


def test_a_small_disk_that_is_larger_than_memory_is_warned_of(person):
    checkpoints(person)
    done = person.rl("run", "--disk", "ckpt=900T", "--", "true")
    said = r"rl: 900 TiB of small disk lie in memory, of which \S+ [MGT]iB are free"
    assert re.search(said, done.stderr), done.stderr
    done = person.rl("run", "--disk", "ckpt=9M", "--", "true")
    assert "lie in memory" not in done.stderr


def test_doctor_shows_the_rungs_and_leaves_nothing(person, native_cache):
    shutil.copytree(native_cache, person.world.env["XDG_CACHE_HOME"], dirs_exist_ok=True)
    person.owns()
    env = {"RELAUNCH_WITHOUT": "overlay,tmpfs"}
    done = person.rl("doctor", "--json", env=env)
    found = {one["name"]: one for one in json.loads(done.stdout)["ladders"]}["small disk"]
    rungs = {rung["name"]: rung for rung in found["rungs"]}
    assert list(rungs) == ["overlay", "tmpfs", "none"]
    assert [rungs[name]["ok"] for name in ("overlay", "tmpfs")] == [False, False]
    assert "RELAUNCH_WITHOUT" in rungs["overlay"]["raise_it"]
    found = {
        one["name"]: one for one in json.loads(person.rl("doctor", "--json").stdout)["ladders"]
    }
    assert [rung["ok"] for rung in found["small disk"]["rungs"][:2]] == [True, True]
    assert mounts(person) == []
    assert os.listdir(person.world.env["TMPDIR"]) == []


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("ckpt", "--disk takes DIR=SIZE, not `ckpt`"),
        ("ckpt=", "--disk takes DIR=SIZE, not `ckpt=`"),
        ("ckpt=lots", "--disk ckpt takes a size such as 5G, 500M or 1.5GiB, not `lots`"),
        ("ckpt=0", "--disk ckpt takes a size such as 5G, 500M or 1.5GiB, not `0`"),
        ("ckpt=-1M", "not `-1M`"),
        ("ckpt=30%", "not `30%`"),
        ("ckpt=1M,inodes=0", "`inodes=0` is no limit of a disk"),
        ("ckpt=1M,inodes=many", "`inodes=many` is no limit of a disk"),
        ("ckpt=1M,colour=blue", "`colour=blue` is no limit of a disk"),
        ("nowhere=1M", "--disk nowhere: the directory does not exist"),
        ("fill.py=1M", "--disk fill.py: it is no directory"),
    ],
)
def test_wrong_words_get_one_clear_line(world: World, word, text):
    world.write("fill.py", FILL)
    (world.project / "ckpt").mkdir()
    done = world.rl("run", "--disk", word, "--", "true")
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if text in line], done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_a_small_disk_there_is_nothing_to_keep(world: World):
    done = world.rl("run", "--keep", "--", "true")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--keep is about what is written to a small disk" in done.stderr


def test_one_folder_has_one_size(world: World):
    (world.project / "ckpt").mkdir()
    done = world.rl("run", "--disk", "ckpt=1M", "--disk", "./ckpt/=2M", "--", "true")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--disk ./ckpt/ is given twice" in done.stderr


def test_a_folder_that_may_not_be_looked_at_is_said_to_be_so(plain):
    closed = plain.project / "closed"
    (closed / "inner").mkdir(parents=True)
    plain.owns()
    closed.chmod(0)
    done = plain.rl("run", "--disk", "closed/inner=1M", "--", "true")
    closed.chmod(0o755)
    assert done.returncode == 2
    assert "--disk closed/inner: Permission denied" in done.stderr
    done = plain.rl("run", "--disk", "/proc/1/root=1M", "--", "true")
    assert (done.returncode, done.stderr.count("Permission denied")) == (2, 1)


def test_where_no_rung_works_one_line_says_why(world: World):
    (world.project / "ckpt").mkdir()
    (world.project / "ckpt/file").touch()
    for verb in (["run"], ["squeeze"], ["blame"]):
        everything = {"RELAUNCH_WITHOUT": "overlay,tmpfs"}
        done = world.rl(*verb, "--disk", "ckpt=1M", "--", "true", env=everything)
        said = "rl: no small disk over ckpt: overlay: left out; tmpfs: left out   try: unset RELAU"
        assert (done.returncode, done.stderr.count(said)) == (2, 1), done.stderr
    done = world.rl("grow", "--disk", "ckpt=1M..2M", "--", "true", env=everything)
    assert done.returncode == 1
    assert "no small disk over ckpt: overlay: left out" in done.stdout


@pytest.mark.parametrize("folder", ["/proc", "/sys", "/dev", "/dev/pts", "/sys/fs/cgroup", "link"])
def test_the_folders_of_the_kernel_are_refused_also_through_a_link(person, folder):
    (person.project / "link").symlink_to("/proc/sys")
    null = os.stat("/dev/null")
    for verb in ("run", "squeeze", "blame"):
        done = person.rl(verb, "--disk", f"{folder}=1M", "--", "true")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert f"--disk {folder}: what is there is the kernel's (" in done.stderr
    assert os.stat("/dev/null") == null


@pytest.mark.parametrize("kind", ["proc", "devtmpfs"])
@pytest.mark.parametrize("folder", ["/dev/shm/of-a-test", "ckpt"])
def test_file_systems_of_the_kernel_are_refused_wherever_they_are_mounted(root, kind, folder):
    """Also in shared memory, and where /dev has files, as in a container."""
    needs("unshare")
    checkpoints(root)
    line = (
        "mount -t tmpfs x /mnt && mkdir /mnt/shm && touch /mnt/null /mnt/urandom && "
        "mount --bind /dev/null /mnt/null && mount --bind /dev/urandom /mnt/urandom && "
        f'mount --rbind /mnt /dev && mkdir -p {folder} && mount -t {kind} x {folder} && exec "$@"'
    )
    other_devices = ("unshare", "-m", "sh", "-c", line, "sh")
    done = root.rl("run", "--disk", f"{folder}=1M", "--", "true", before=other_devices)
    assert done.returncode == 2, done.stderr
    assert f"--disk {folder}: what is there is the kernel's (" in done.stderr


def test_a_folder_that_became_a_link_since_it_was_named_is_refused(person):
    folder = checkpoints(person)
    person.rl("run", "--disk", "ckpt=3M", "--", "true")
    folder.rename(person.project / "real")
    folder.symlink_to("real")
    for where in ("real", "/proc"):
        folder.unlink()
        folder.symlink_to(where)
        done = person.rl()
        assert done.returncode == 2
        assert "ckpt is another folder now   try: ls -ld ckpt\n" in done.stderr
    folder.unlink()
    folder.mkdir()


def test_a_folder_that_becomes_a_link_before_it_is_mounted_over_is_refused(root):
    """Else the program would see that folder wherever the link leads, as in place of /etc."""
    needs("strace")
    folder = checkpoints(root)
    (root.project / "victim").mkdir()
    log = root.project / "calls"
    log.touch()
    second = "inject=mount:delay_enter=1000000:when=2"  # the first is about all mounts
    strace = ("strace", "-qq", "-f", "-o", str(log), "-e", "trace=mount", "-e", second)
    words = root.words("run", "--disk", "ckpt=3M", "--", "cat", "/proc/self/mountinfo")
    process = root.world.start([*strace, *words])
    wait_until(lambda: "mount(" in log.read_text())
    folder.rename(root.project / "aside")
    folder.symlink_to("victim")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert b"victim" not in out
    assert b"ckpt is another folder now   try: ls -ld ckpt\n" in err
    assert process.returncode == 2


def test_a_folder_that_is_removed_before_it_is_mounted_over_is_not_made_anew(root):
    needs("strace")
    folder = root.project / "ckpt"
    folder.mkdir()
    log = root.project / "calls"
    log.touch()
    stop = ["-e", "trace=getdents64", "-e", "inject=getdents64:signal=SIGSTOP", "-P", str(folder)]
    words = root.words("run", "--disk", "ckpt=3M", "--", "true")
    process = root.world.start(["strace", "-qq", "-f", "-o", str(log), *stop, *words])
    here, stops = os.readlink("/proc/self/ns/mnt"), 0
    while process.poll() is None:
        stopped = [line for line in log.read_text().splitlines() if "stopped by SIGSTOP" in line]
        for line in stopped[stops:]:
            pid = int(line.split()[0])
            if folder.exists() and os.readlink(f"/proc/{pid}/ns/mnt") != here:
                folder.rmdir()  # it was seen to be empty, and nothing is mounted yet
            os.kill(pid, signal.SIGCONT)
            stops += 1
    assert b"no small disk over ckpt: " in process.communicate()[1]
    assert not folder.exists()


def test_the_copies_of_an_older_rl_are_named_once_and_all_files_stay(world: World):
    """It was killed while a program wrote; it meant the next one to put the folder back."""
    folder = world.project / "ckpt"
    folder.mkdir()
    (folder / "a.txt").write_text("saved by an editor")
    (folder / "b.txt").write_text("new since")
    about = (folder / "a.txt").stat()
    world.rl("run", "--", "true")
    trial = world.journal / "trials/1"
    (trial / "end.json").unlink()
    start = json.loads((trial / "start.json").read_text())
    start["rl"]["started"] = 1  # of a process that is gone
    (trial / "start.json").write_text(json.dumps(start))
    (world.journal / "running").mkdir(exist_ok=True)
    (world.journal / "running/1").touch()
    notes = trial / "undo"
    notes.mkdir()
    file = f"{about.st_dev}-{about.st_ino}"
    entry = {"path": str(folder / "a.txt"), "mode": about.st_mode, "uid": 0, "gid": 0,
             "file": file, "mtime": 1, "leads": ""}  # fmt: skip
    head = {"folders": [str(folder)], "spared": []}
    (notes / "list").write_text(f"{json.dumps(head)}\n{json.dumps(entry)}")
    (notes / f"copy-{file}").write_text("before")
    before, saved = image(folder), image(notes)
    done = world.rl("run", "--", "true")
    assert f"{folder} as its program had changed it, and so it stays" in done.stderr, done.stderr
    assert f"(1) stays too, in {notes}: `list` has the names" in done.stderr
    assert "saved before" not in world.rl("run", "--", "true").stderr
    assert (image(folder), image(notes)) == (before, saved)
