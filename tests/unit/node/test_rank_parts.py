"""The parts of a rank that need no torch: how a script ends, what is spawned, whose lines."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import types

import pytest

from relaunch.inside.node import spawning
from relaunch.inside.node.cuda import gpus
from relaunch.inside.node.script import Program, outcome
from relaunch.inside.node.threads.local import Lines, here

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ranks are for Linux")


@pytest.mark.parametrize(
    ("error", "code"),
    [(None, 0), (SystemExit(), 0), (SystemExit(3), 3), (SystemExit(-1), 255),
     (KeyboardInterrupt(), 130), (ValueError("x"), 1)],
)  # fmt: skip
def test_a_program_ends_with_the_code_that_python_gives_it(error, code, capsys):
    assert outcome(error) == code


def test_words_at_the_exit_are_shown(capsys):
    assert outcome(SystemExit("no luck")) == 1
    assert capsys.readouterr().err == "no luck\n"


def test_a_failure_shows_no_frame_of_ours(tmp_path, capsys):
    script = tmp_path / "train.py"
    script.write_text("def work():\n    raise ValueError(__name__)\nwork()\n")
    main = sys.modules["__main__"]
    try:
        with pytest.raises(ValueError, match="__main__") as found:
            Program("script", str(script), [], str(tmp_path)).run()
    finally:
        sys.modules["__main__"] = main
    found.value.__traceback__ = found.value.__traceback__ and found.value.__traceback__.tb_next
    assert outcome(found.value) == 1
    shown = capsys.readouterr().err
    assert "ValueError: __main__" in shown
    assert "relaunch" not in shown


@pytest.mark.parametrize(("nprocs", "done"), [(4, [(2, "a")]), (2, [])])
def test_who_spawns_does_the_part_of_its_own_rank(nprocs, done, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    torch = types.SimpleNamespace(
        multiprocessing=types.SimpleNamespace(spawn=lambda: 1, start_processes=lambda: 1)
    )
    spawning.install(torch)
    calls: list[tuple[int, str]] = []
    torch.multiprocessing.spawn(lambda *args: calls.append(args), args=("a",), nprocs=nprocs)
    assert calls == done
    with pytest.raises(RuntimeError, match="rl run --ranks 9"):
        torch.multiprocessing.spawn(print, nprocs=9)


def test_lines_of_threads_stay_whole_and_have_their_rank():
    near, far = os.pipe()
    stream = Lines(far)
    both = threading.Barrier(2)

    def speak(rank: int) -> None:
        here.rank = rank
        for part in ("a", "b", "c\n", "d"):
            stream.write(f"{rank}{part}")
            both.wait(300)

    threads = [threading.Thread(target=speak, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stream.end()
    os.close(far)
    with open(near, "rb") as file:
        lines = file.read().splitlines()
    assert sorted(lines) == [b"[rank 0] 0a0b0c", b"[rank 0] 0d", b"[rank 1] 1a1b1c", b"[rank 1] 1d"]


def test_a_forked_process_is_shown_with_words_and_variables_of_its_own():
    code = (
        "import os, sys\n"
        "from relaunch.inside.node import shown\n"
        "os.environ.clear()\n"
        "os.environ['RANK'] = '3'\n"
        "shown.show(['python', 't.py', 'x' * 99999], {'RANK': '3', 'OTHER': '1'})\n"
        "print([w for w in open('/proc/self/cmdline').read().split(chr(0)) if w])\n"
        "print([w for w in open('/proc/self/environ').read().split(chr(0)) if w])\n"
        "print(dict(os.environ), os.path.exists('/'))\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    lines = ["['python', 't.py']", "['RANK=3']", "{'RANK': '3'} True"]
    assert said.stdout.splitlines() == lines, said.stderr


def test_a_script_may_hide_gpus_from_itself(monkeypatch):
    monkeypatch.setattr(gpus.Gpus, "count", 4)
    assert gpus.here.visible() == 4
    for said, seen in (("0,1", 2), ("", 0), ("-1", 0), ("0,1,2,3,4,5", 4)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", said)
        assert gpus.here.visible() == seen
