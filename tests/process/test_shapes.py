"""`rl shapes`: comments from real programs, written, checked and taken back."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import sys
import tempfile
from pathlib import Path

import pytest
from tests import arrays
from tests.needs import every_python

MODEL = """\
from arrays import Linear


class Attention:
    def __init__(self, n_head, width):
        self.n_head = n_head
        self.qkv = Linear(width, 3 * width)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)  # split heads
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = q @ k.transpose(-2, -1)
        return att.sum(-1)


def unused(x):
    y = x + 1
    return y
"""
COMMENTED = """\
from arrays import Linear


class Attention:
    def __init__(self, n_head, width):
        self.n_head = n_head
        self.qkv = Linear(width, 3 * width)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)  # (B, T, C)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)  # split heads
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)  # (B, n_head, T, C//n_head)
        att = q @ k.transpose(-2, -1)  # (B, n_head, T, T)
        return att.sum(-1)  # (B, n_head, T)


def unused(x):
    y = x + 1
    return y
"""
TRAIN = """\
import sys
from arrays import Array
from model import Attention

model = Attention(6, 48)
for B in map(int, sys.argv[1:]):
    print(model.forward(Array(B, 7, 48)).shape)
"""
RUN = ("--", sys.executable, "train.py", "2", "5")


@pytest.fixture
def model(world):
    world.write("arrays.py", Path(arrays.__file__).read_bytes())
    world.write("model.py", MODEL)
    world.write("train.py", TRAIN)
    world.commit()
    return world


def text(world, name="model.py"):
    return (world.project / name).read_bytes().decode()


def remarks(done):
    return [line[4:] for line in done.stderr.splitlines() if line.startswith("rl: ")]


@every_python
def test_shapes_are_written_with_the_names_of_the_code(model, python):
    done = model.rl("shapes", "model.py", "--", python, "train.py", "2", "5")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(2, 6, 7)\n(5, 6, 7)\n"
    assert text(model) == COMMENTED
    told = remarks(done)
    assert told[0] == "model.py: 4 comments written   undo: rl shapes --undo"
    assert told[1] == "model.py:12 left out: the line would be over 100 long"


def test_writing_twice_changes_nothing(model):
    model.rl("shapes", "model.py", *RUN)
    before = os.stat(model.project / "model.py").st_mtime_ns
    done = model.rl("shapes", "model.py", *RUN)
    assert text(model) == COMMENTED
    assert os.stat(model.project / "model.py").st_mtime_ns == before
    assert remarks(done)[0] == "model.py: 0 comments written, 4 held already"


def test_undo_puts_back_every_byte_and_then_the_run_before(model):
    path = model.project / "model.py"
    path.chmod(0o750)
    model.rl("shapes", "model.py:Attention", "--line-length", "60", *RUN)
    first = path.read_bytes()
    assert first.count(b"# (") == 3
    model.rl("shapes", "model.py", "--line-length", "200", *RUN)
    assert b"# split heads (B, n_head, T, C//n_head)" in path.read_bytes()
    done = model.rl("shapes", "--undo")
    assert remarks(done) == ["model.py is as it was before"]
    assert path.read_bytes() == first
    model.rl("shapes", "--undo", "model.py")
    assert path.read_bytes() == MODEL.encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    done = model.rl("shapes", "--undo")
    assert done.returncode == 2
    assert remarks(done)[0].startswith("nothing to undo")


def test_undo_leaves_later_edits_elsewhere_and_refuses_edited_lines(model):
    model.rl("shapes", "model.py", *RUN)
    model.write("model.py", "import os\n" + text(model))
    assert model.rl("shapes", "--undo").returncode == 0
    assert text(model) == "import os\n" + MODEL
    model.write("model.py", MODEL)
    model.rl("shapes", "model.py", *RUN)
    edited = COMMENTED.replace("att = q @ k", "att = 1 * q @ k")
    model.write("model.py", edited)
    done = model.rl("shapes", "--undo")
    assert done.returncode == 2
    assert "model.py:14 was edited since its comment was written" in done.stderr
    assert text(model) == edited


def test_a_dry_run_shows_a_diff_and_writes_nothing(model):
    done = model.rl("shapes", "--dry-run", "model.py", *RUN)
    assert text(model) == MODEL
    assert "+        att = q @ k.transpose(-2, -1)  # (B, n_head, T, T)\n" in done.stdout
    assert remarks(done)[0] == "model.py: 4 comments to write"
    patch = done.stdout[done.stdout.index("---") :]
    assert model.shell("patch -p0", input=patch).returncode == 0
    assert text(model) == COMMENTED


def test_without_a_command_it_is_the_last_one(model):
    model.rl(*RUN)
    assert model.rl("shapes", "model.py").returncode == 0
    assert text(model) == COMMENTED


def test_only_what_is_named_is_looked_at(model):
    model.write("train.py", TRAIN + "from model import unused\nunused(Array(3))\n")
    model.rl("shapes", "model.py:unused", *RUN)
    assert text(model) == MODEL.replace("y = x + 1", "y = x + 1  # (3,)")


def test_a_second_command_tells_names_apart(model):
    once = ("--", sys.executable, "train.py", "6")
    done = model.rl("shapes", "model.py", *once)
    assert done.returncode == 0
    model.write("model.py", MODEL)
    also = f"{sys.executable} train.py 9"
    done = model.rl("shapes", "model.py", "--also", also, *once)
    assert done.stdout == "(6, 6, 7)\n(9, 6, 7)\n"
    assert text(model) == COMMENTED


def test_a_check_tells_what_no_longer_holds(model):
    model.write("model.py", COMMENTED.replace("# (B, n_head, T, T)", "# (B, T, T)"))
    done = model.rl("shapes", "--check", "model.py", *RUN)
    assert done.returncode == 1
    assert done.stdout.splitlines()[2:] == [
        "model.py:14  (B, T, T)  saw (2, 6, 7, 7): it has 4 dimensions, not 3"
    ]
    assert remarks(done)[-1] == "model.py: 3 shape comments hold, 1 does not"
    model.write("model.py", COMMENTED)
    done = model.rl("shapes", "--check", "model.py", *RUN)
    assert done.returncode == 0
    assert remarks(done)[-1] == "model.py: 4 shape comments hold"
    assert text(model) == COMMENTED


def test_a_check_knows_names_that_nobody_has(model):
    said = COMMENTED.replace("# (B, n_head, T, C//n_head)", "# (B, nh, T, hs)")
    model.write("model.py", said.replace("# (B, n_head, T)", "# (B, hs, nh)"))
    done = model.rl("shapes", "--check", "model.py", *RUN)
    assert done.returncode == 1
    assert "model.py:15  (B, hs, nh)  saw (2, 6, 7): hs is 8, not 6" in done.stdout


def test_a_check_that_comes_to_no_comment_is_no_success(model):
    model.write("model.py", MODEL.replace("y = x + 1", "y = x + 1  # (B, T)"))
    done = model.rl("shapes", "--check", "model.py", *RUN)
    assert done.returncode == 1
    assert remarks(done)[-1] == "model.py: 0 shape comments hold, 1 not reached"


def test_the_exit_code_of_the_program_is_passed_on_and_what_was_seen_is_written(model):
    model.write("train.py", TRAIN + "sys.exit(3)\n")
    done = model.rl("shapes", "model.py", *RUN)
    assert done.returncode == 3
    assert text(model) == COMMENTED


def test_what_was_seen_before_a_failure_is_written(model):
    broken = MODEL.replace("att = q @ k.transpose(-2, -1)", "att = q @ k")
    model.write("model.py", broken)
    done = model.rl("shapes", "model.py", *RUN)
    assert done.returncode == 1
    assert "AssertionError" in done.stderr
    assert "dim=2)  # (B, T, C)" in text(model)


def test_what_was_seen_before_an_interrupt_is_written(model):
    model.write("train.py", TRAIN + "import signal\nprint('ready', flush=True)\nsignal.pause()\n")
    running = model.start(["rl", "shapes", "model.py", *RUN])
    assert running.stdout is not None
    while b"ready" not in running.stdout.readline():
        pass
    os.killpg(running.pid, signal.SIGINT)
    running.communicate(timeout=300)
    assert running.returncode in (-signal.SIGINT, 130, 1)
    assert text(model) == COMMENTED


def test_as_json(model):
    done = model.rl("shapes", "--json", "--dry-run", "model.py", *RUN)
    found = json.loads(done.stdout[done.stdout.index("{") :])
    assert found["schema"] == "relaunch/shapes/1"
    lines = {one["line"]: one for one in found["files"][0]["lines"]}
    assert lines[14]["shapes"] == "(B, n_head, T, T)"
    assert lines[14]["state"] == "new"
    assert lines[12]["why"] == "the line would be over 100 long"


def test_windows_line_ends_a_byte_order_mark_and_another_encoding_stay(model):
    data = MODEL.replace("\n", "\r\n").encode("utf-8-sig")
    model.write("model.py", data)
    model.rl("shapes", "model.py", *RUN)
    expected = COMMENTED.replace("\n", "\r\n").encode("utf-8-sig")
    assert (model.project / "model.py").read_bytes() == expected
    latin = ("# coding: latin-1\n# \xe9\n" + MODEL).encode("latin-1")
    model.write("model.py", latin)
    model.rl("shapes", "model.py", *RUN)
    written = (model.project / "model.py").read_bytes()
    assert written == ("# coding: latin-1\n# \xe9\n" + COMMENTED).encode("latin-1")


def test_the_length_of_lines_is_that_of_the_formatter(model):
    model.write("pyproject.toml", "[tool.black]\nline-length = 50\n")
    done = model.rl("shapes", "model.py", *RUN)
    assert "over 50 long" in done.stderr
    assert text(model).count("# (B") == 1


PROCESSES = """\
import multiprocessing, os, sys
from arrays import Array
from model import Attention

def work(B):
    Attention(6, 48).forward(Array(B, 7, 48))
    if sys.argv[1] == "raw":
        os._exit(0)

if __name__ == "__main__":
    if sys.argv[1] == "raw":
        for B in (2, 5):
            if os.fork() == 0:
                work(B)
            os.wait()
    else:
        context = multiprocessing.get_context(sys.argv[1])
        with context.Pool(2) as pool:
            pool.map(work, [2, 5], chunksize=1)
"""


@pytest.mark.parametrize("how", ["raw", "fork", "spawn", "forkserver"])
def test_processes_of_every_kind_are_seen(model, how):
    model.write("train.py", PROCESSES)
    # The server's socket lies there: its path may have 107 characters.
    model.env["TMPDIR"] = tempfile.gettempdir()
    done = model.rl("shapes", "model.py", "--", sys.executable, "train.py", how)
    assert done.returncode == 0, done.stderr
    assert text(model) == COMMENTED


def test_the_program_of_a_test_suite(model):
    model.write("test_it.py", "from arrays import Array\nfrom model import Attention\n"
                "def test_it():\n    for B in (2, 5):\n"
                "        Attention(6, 48).forward(Array(B, 7, 48))\n")  # fmt: skip
    done = model.rl("shapes", "model.py", "--", sys.executable, "-m", "pytest", "-q", "-p",
                    "no:cacheprovider", "test_it.py")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert text(model) == COMMENTED


SCRIPT = """\
from arrays import Array
B, T = 5, 7
x = Array(B, T)
for n in range(2):
    y = x.view(T, B); z = x.sum(1)
"""


def test_a_script_itself(model):
    model.write("script.py", SCRIPT)
    done = model.rl("shapes", "script.py", "--", sys.executable, "script.py")
    assert done.returncode == 0
    assert text(model, "script.py") == SCRIPT.replace(
        "x = Array(B, T)", "x = Array(B, T)  # (B, T)"
    ).replace("x.sum(1)", "x.sum(1)  # y (T, B), z (B,)")


def test_a_file_that_changes_while_it_runs_is_not_written(model):
    model.write("train.py", TRAIN + "open('model.py', 'a').write('# later\\n')\n")
    done = model.rl("shapes", "model.py", *RUN)
    assert done.returncode == 1
    assert "model.py changed while it ran; nothing is written" in done.stderr
    assert text(model) == MODEL + "# later\n"


def test_a_trial_is_kept_like_any_other_without_the_numbers_that_were_seen(model):
    model.rl("shapes", "model.py", "-m", "which shapes?", *RUN)
    assert "which shapes?" in model.rl("log").stdout
    assert list(model.journal.glob("trials/1/shapes/*")) != []
    assert list(model.journal.glob("trials/1/probes/*.shapes")) == []


def test_the_screens(model, golden):
    model.write("model.py", COMMENTED.replace("# (B, n_head, T, T)", "# (B, T, T)"))
    said = []
    for words in (["--check"], ["--dry-run", "--args"], [], ["--undo"]):
        run = [] if words == ["--undo"] else ["model.py", "--", sys.executable, "train.py", "6"]
        done = model.rl("shapes", *words, *run, env={"COLUMNS": "80"})
        typed = " ".join(words + ["model.py -- python train.py 6"] * bool(run))
        said.append(f"$ rl shapes {typed}\n{done.stdout}--- stderr\n{done.stderr}")
        said.append(f"--- exit {done.returncode}\n\n")
    text = re.sub(r"in [\d.]+ s", "in 0.1 s", "".join(said))
    golden("screens/shapes.txt", re.sub(r"base [0-9a-f]{7}", "base 0123456", text))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["shapes"], "no file: FILE or FILE:FUNCTION"),
        (["shapes", "nowhere.py"], "nowhere.py: No such file or directory"),
        (["shapes", "modle.py"], "did you mean model.py?"),
        (["shapes", "."], ". is a folder: name files"),
        (["shapes", "model.py:Attention.foward"], "near is model.py:Attention.forward"),
        (["shapes", "model.py:forward"], "near is model.py:Attention.forward"),
        (["shapes", "--check", "--dry-run", "model.py"], "--check and --dry-run at once"),
        (["shapes", "--undo", "--", "ls"], "--undo runs nothing"),
        (["shapes", "model.py", "--also", "'", "--", "ls"], "--also `'`: No closing quotation"),
        (["shapes", "model.py", "--line-length", "x", "--", "true"], "takes a whole number"),
        (["shapes", "broken.py", "--", "ls"], "broken.py: this Python cannot read it"),
        (["shapes", "model.py"], "nothing to repeat yet"),
    ],
)
def test_bad_input_gets_one_clear_line(model, words, told):
    model.write("broken.py", "x = = 1\n")
    done = model.rl(*words)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert text(model) == MODEL


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(model):
    (model.project / "model.py").chmod(0o444)
    done = model.rl("shapes", "model.py", *RUN)
    assert done.returncode == 2
    assert "model.py cannot be written" in done.stderr
    assert done.stdout == ""


def test_a_program_out_of_reach_is_told_in_one_line(model):
    done = model.rl("shapes", "model.py", "--", sys.executable, "-I", "-c", "pass")
    assert done.returncode == 1
    assert "isolates itself" in done.stderr
    done = model.rl("shapes", "model.py", "--", sys.executable, "-c", "import model")
    assert remarks(done)[0] == "model.py was loaded, and nothing in it was called"
    done = model.rl("shapes", "model.py", "--", sys.executable, "-c", "pass")
    assert "NEVER IMPORTED" in done.stderr
