"""What an earlier run left behind, and which promises of the kernel hold here."""

import os
import signal
import subprocess
import sys

from tests.supervising import PATIENCE_S, environment, is_running, python, run

from relaunch.proc.tree import MARKER, end_all, ladder, leftovers


def test_every_rung_holds_on_linux():
    if sys.platform == "linux":
        assert [(name, works) for name, works, _ in ladder() if not works] == []


def test_the_ladder_leaves_no_process_of_its_own():
    lines = (
        "import os",
        "from relaunch.proc.tree import ladder, processes",
        "ladder()",
        "print([p.name for p in processes() if p.parent == os.getpid()])",
    )
    ran = subprocess.run(python(*lines), capture_output=True, text=True, timeout=PATIENCE_S)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")


def test_processes_of_a_trial_are_found_and_ended_whoever_their_parent_is():
    env = {**os.environ, MARKER: "lost.1"}
    script = "trap '' TERM; echo deaf; while :; do sleep 0.1; done"
    deaf = subprocess.Popen(["sh", "-c", script], env=env, stdout=-1, start_new_session=True)
    other = subprocess.Popen(["sleep", "1020"], env={**env, MARKER: "lost.12"})
    try:
        assert deaf.stdout is not None
        assert deaf.stdout.readline() == b"deaf\n"
        found = leftovers("lost.1")
        assert deaf.pid in found
        assert other.pid not in found
        assert end_all(found, grace_s=0.3) == []
        assert deaf.wait(timeout=PATIENCE_S) == -signal.SIGKILL
        assert is_running(other.pid)
    finally:
        other.kill()
        other.wait()
        deaf.communicate()


def test_the_program_carries_the_marker_it_was_given_or_one_of_its_own(tmp_path):
    assert run(tmp_path, "sh", "-c", f"echo ${MARKER}").stdout.strip()
    given = {**environment(tmp_path), MARKER: "mine"}
    from tests.supervising import command

    ran = subprocess.run(command("sh", "-c", f"echo ${MARKER}"), env=given, capture_output=True)
    assert ran.stdout == b"mine\n"


def test_whoever_supervises_a_program_is_no_subreaper_afterwards():
    """Else the daemons that it starts later would be its children, and never be collected."""
    lines = (
        "import os",
        "from relaunch.proc.prctl import is_subreaper",
        "from relaunch.proc.supervise import supervise",
        "supervise(['true'], cwd='/', env=os.environ, chunk=print)",
        "print(is_subreaper())",
    )
    ran = subprocess.run(python(*lines), capture_output=True, text=True, timeout=PATIENCE_S)
    assert ran.stdout == "False\n", ran


def test_without_the_subreaper_the_marker_still_finds_who_left(tmp_path):
    lines = (
        "import os",
        "import relaunch.proc.supervise as room",
        "room.become_subreaper = lambda: False",
        f"script = 'setsid sh -c \"echo \\\\$\\\\$ > {tmp_path}/far; exec sleep 1021\" & echo x'",
        f"script += '; while [ ! -s {tmp_path}/far ]; do :; done'",
        "ended = room.supervise(['sh', '-c', script], cwd='/', env=os.environ, chunk=print)",
        "print(ended.exit_code, [who.split(' ', 1)[1] for who in ended.ended_processes])",
    )
    ran = subprocess.run(python(*lines), capture_output=True, text=True, timeout=PATIENCE_S)
    assert ran.stdout.endswith("0 ['sleep 1021']\n"), ran
    assert not is_running(int((tmp_path / "far").read_text()))
