"""Real editors, driven in a tmux of their own: each unsaved edit is seen, and gone once saved."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.needs import needs

from relaunch.trial.place.editors.nano import names_shown_modified
from relaunch.trial.place.editors.traces import DIRTY_AT, dirty_block
from relaunch.trial.place.unsaved import Unsaved, still_unsaved, unsaved_buffers

DEADLINE_S = 300.0


def wait_for(what: Callable[[], bool], why: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while not what():
        if time.monotonic() > end:
            pytest.fail(why)
        time.sleep(0.02)


def look(project: Path, home: Path) -> list[Unsaved]:
    return unsaved_buffers(str(project), home=str(home), env={})


class Desk:
    """A person at a terminal: one tmux server, one project, one home."""

    def __init__(self, root: Path, socket: str) -> None:
        self.root = root
        self.socket = socket
        self.home = root / "home"
        self.project = root / "project"
        self.home.mkdir()
        (self.project / "deep" / "inside").mkdir(parents=True)
        self.file = self.project / "deep" / "inside" / "train.py"
        self.file.write_text("lr = 1e-2\n")
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_STATE_HOME": str(self.home / ".local/state"),
            "TERM": "screen-256color",
            "LC_ALL": "C.UTF-8",
        }

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self.socket, "-f", "/dev/null", *words],
            env=self.env,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, *argv: str, cwd: Path | None = None, width: int = 200) -> None:
        words = ["new-session", "-d", "-s", "desk", "-x", str(width), "-y", "20"]
        self.tmux(*words, "-c", str(cwd or self.project), *argv)

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", "desk", *keys)

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", "desk")

    def shows(self, text: str) -> None:
        end = time.monotonic() + DEADLINE_S
        while text not in self.screen():
            if time.monotonic() > end:
                pytest.fail(f"no `{text}` on the screen:\n{self.screen()}")
            time.sleep(0.02)

    def unsaved(self) -> list[Unsaved]:
        return unsaved_buffers(str(self.project), home=str(self.home), env=self.env)

    def edit_is_seen(self, editor: str, path: Path | None = None) -> Unsaved:
        wait_for(lambda: bool(self.unsaved()), f"the edit in {editor} was not seen")
        (edit,) = self.unsaved()
        assert edit.path == str(path or self.file)
        assert edit.editor == editor
        assert edit.where == "%0"
        assert still_unsaved(edit)
        return edit

    def edit_is_gone(self, edit: Unsaved) -> None:
        wait_for(lambda: not still_unsaved(edit), "still unsaved after the save")
        wait_for(lambda: not self.unsaved(), "another is still unsaved after the save")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    needs("tmux")
    short = tempfile.mkdtemp(prefix="rl-tmux-")  # a socket's path may only have 107 characters
    person = Desk(tmp_path, os.path.join(short, "s"))
    yield person
    listed = subprocess.run(
        ["tmux", "-S", person.socket, "list-panes", "-a", "-F", "#{pane_pid}"],
        capture_output=True,
        text=True,
        env=person.env,
    )
    for pid in map(int, listed.stdout.split()):
        os.kill(pid, 9)
    subprocess.run(
        ["tmux", "-S", person.socket, "kill-server"], capture_output=True, env=person.env
    )
    shutil.rmtree(short)


@pytest.mark.parametrize("program", ["vim", "nvim"])
def test_an_edit_in_vim_is_seen_until_it_is_written(desk: Desk, program: str) -> None:
    needs(program)
    desk.start(program, "-u", "NONE", str(desk.file))
    desk.shows("lr = 1e-2")
    assert desk.unsaved() == []
    desk.type("A", "0", "Escape")
    edit = desk.edit_is_seen("vim")
    assert edit.pid > 0
    desk.type(":w", "Enter")
    desk.edit_is_gone(edit)
    assert desk.file.read_text() == "lr = 1e-20\n"


@pytest.mark.parametrize("program", ["vim", "nvim"])
def test_vim_in_its_default_setup_with_a_relative_name_and_two_buffers(
    desk: Desk, program: str
) -> None:
    needs(program)
    other = desk.project / "data.py"
    other.write_text("rows = 2\n")
    desk.start(program, "data.py", "deep/inside/train.py")
    desk.shows("rows = 2")
    desk.type(":set hidden", "Enter", "A", "0", "Escape", ":next", "Enter")
    desk.shows("lr = 1e-2")
    edit = desk.edit_is_seen("vim", other)
    desk.type("A", "7", "Escape")
    wait_for(lambda: len(desk.unsaved()) == 2, "the second buffer was not seen")
    desk.type(":wall", "Enter")
    desk.edit_is_gone(edit)


@pytest.mark.parametrize("program", ["vim", "nvim"])
def test_vim_with_all_swap_files_in_one_folder(desk: Desk, program: str) -> None:
    needs(program)
    swaps = desk.home / "swap"
    swaps.mkdir()
    desk.start(
        program, "-u", "NONE", "--cmd", f"set directory={swaps}// nocompatible", str(desk.file)
    )
    desk.shows("lr = 1e-2")
    desk.type("A", "0", "Escape")
    edit = desk.edit_is_seen("vim")
    assert edit.trace.startswith(str(swaps))
    desk.type(":w", "Enter")
    desk.edit_is_gone(edit)


def test_a_file_in_the_home_that_vim_writes_with_a_tilde(desk: Desk) -> None:
    needs("vim")
    project = desk.home / "work"
    project.mkdir()
    file = project / "model.py"
    file.write_text("depth = 2\n")
    desk.start("vim", "-u", "NONE", str(file))
    desk.shows("depth = 2")
    desk.type("A", "0", "Escape")
    wait_for(lambda: bool(look(project, desk.home)), "the edit was not seen")
    assert [edit.path for edit in look(project, desk.home)] == [str(file)]


def test_an_edit_outside_of_the_project_does_not_count(desk: Desk) -> None:
    needs("vim")
    elsewhere = desk.root / "project-2"  # its name begins like the project's
    elsewhere.mkdir()
    file = elsewhere / "notes.txt"
    file.write_text("buy milk\n")
    desk.start("vim", "-u", "NONE", str(file))
    desk.shows("buy milk")
    desk.type("A", "!", "Escape")
    wait_for(lambda: bool(look(elsewhere, desk.home)), "the edit was not seen at all")
    assert desk.unsaved() == []


def test_a_swap_file_left_by_a_killed_vim_is_not_an_unsaved_buffer(desk: Desk) -> None:
    needs("vim")
    desk.start("vim", "-u", "NONE", str(desk.file))
    desk.shows("lr = 1e-2")
    desk.type("A", "0", "Escape")
    edit = desk.edit_is_seen("vim")
    os.kill(edit.pid, 9)
    wait_for(lambda: not still_unsaved(edit), "a dead editor still edits")
    assert os.path.exists(edit.trace)
    assert desk.unsaved() == []


@pytest.mark.parametrize("editor", ["vim", "emacs", "nano"])
def test_an_editor_that_was_killed_and_not_collected_yet_edits_nothing(tmp_path, editor) -> None:
    trace = tmp_path / ".train.py.swp"
    trace.write_bytes(b"b0".ljust(DIRTY_AT, b"\0") + b"\x55")
    assert dirty_block(str(trace))
    killed = subprocess.Popen(["sleep", "1019"])
    edit = Unsaved(path="train.py", editor=editor, pid=killed.pid, trace=str(trace))
    killed.kill()
    os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert not still_unsaved(edit)
    finally:
        killed.wait()


def test_an_edit_in_emacs_is_seen_until_it_is_saved(desk: Desk) -> None:
    needs("emacs")
    desk.start("emacs", "-nw", "-Q", str(desk.file))
    desk.shows("lr = 1e-2")
    assert desk.unsaved() == []
    desk.type("#")
    edit = desk.edit_is_seen("emacs")
    desk.type("C-x", "C-s")
    desk.edit_is_gone(edit)


def test_a_file_opened_later_in_emacs_is_found_deep_in_the_project(desk: Desk) -> None:
    needs("emacs")
    desk.start("emacs", "-nw", "-Q", cwd=desk.home)
    desk.shows("scratch")
    desk.type("C-x", "C-f", "C-a", "C-k")
    desk.type("-l", str(desk.file))
    desk.type("Enter")
    desk.shows("lr = 1e-2")
    desk.type("#")
    edit = desk.edit_is_seen("emacs")
    desk.type("C-x", "C-s")
    desk.edit_is_gone(edit)


def test_emacs_without_lock_files_is_caught_by_its_auto_save(desk: Desk) -> None:
    needs("emacs")
    desk.start("emacs", "-nw", "-Q", "--eval", "(setq create-lockfiles nil)", str(desk.file))
    desk.shows("lr = 1e-2")
    desk.type("#")
    desk.shows("#lr = 1e-2")  # while it starts, Emacs may take two keys together for another
    desk.type("M-x")
    desk.shows("M-x")
    desk.type("-l", "do-auto-save")
    desk.shows("M-x do-auto-save")
    desk.type("Enter")
    edit = desk.edit_is_seen("emacs")
    desk.type("C-x", "C-s")
    desk.edit_is_gone(edit)


def test_nano_with_locking_is_seen_until_it_is_saved_and_again_after_the_next_edit(
    desk: Desk,
) -> None:
    needs("nano")
    desk.start("nano", "--ignorercfiles", "--locking", str(desk.file))
    desk.shows("lr = 1e-2")
    assert desk.unsaved() == []
    desk.type("#")
    edit = desk.edit_is_seen("nano")
    assert edit.trace.endswith(".swp")
    desk.type("C-s")
    desk.edit_is_gone(edit)
    desk.type("#")
    desk.edit_is_seen("nano")


@pytest.mark.parametrize("width", [40, 100])
def test_nano_without_locking_is_read_from_its_tmux_pane(desk: Desk, width: int) -> None:
    needs("nano")
    desk.start("nano", "--ignorercfiles", "deep/inside/train.py", width=width)
    desk.shows("lr = 1e-2")
    assert desk.unsaved() == []
    desk.type("#")
    edit = desk.edit_is_seen("nano")
    desk.type("C-s")
    desk.edit_is_gone(edit)


def test_nano_with_its_minibar_is_read_from_its_tmux_pane(desk: Desk) -> None:
    needs("nano")
    desk.start("nano", "--ignorercfiles", "--minibar", str(desk.file))
    desk.shows("lr = 1e-2")
    assert desk.unsaved() == []
    desk.type("#")
    edit = desk.edit_is_seen("nano")
    desk.type("C-s")
    desk.edit_is_gone(edit)


def test_the_title_bars_of_older_and_translated_nanos_are_read() -> None:
    german = "  GNU nano 5.4          lauf.py          Verändert \n\n\n\n\n^G Hilfe"
    assert names_shown_modified(german) == ["lauf.py"]
    assert names_shown_modified(german.replace("Verändert", "")) == []
    assert names_shown_modified("  GNU nano 5.4     a b.py      View\n") == []
    assert names_shown_modified("") == []


def test_a_backup_of_vs_code_is_seen_until_it_is_removed_or_saved(tmp_path: Path) -> None:
    project = tmp_path / "my project"
    project.mkdir()
    file = project / "träin.py"
    file.write_text("lr = 1e-2\n")
    for folder, editor in ((".config/Code", "VS Code"), (".config/Cursor", "Cursor")):
        backup = tmp_path / folder / "Backups" / "4f2a" / "file" / "-6e1c"
        backup.parent.mkdir(parents=True)
        uri = f"file://{tmp_path}/my%20project/tr%C3%A4in.py"
        backup.write_text(f'{uri} {{"mtime":1,"size":10,"typeId":""}}\nlr = 1e-3\n')
        (edit,) = look(project, tmp_path)
        assert (edit.path, edit.editor, edit.pid) == (str(file), editor, 0)
        assert still_unsaved(edit)
        file.write_text("lr = 1e-3\n")
        assert not still_unsaved(edit)
        assert look(project, tmp_path) == []
        file.write_text("lr = 1e-2\n")
        backup.unlink()
        assert not still_unsaved(edit)
        assert look(project, tmp_path) == []


def test_backups_that_are_no_files_here_are_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / ".config/VSCodium/Backups/1/file"
    folder.mkdir(parents=True)
    (folder / "a").write_text("vscode-remote://ssh-remote%2Bbox/home/me/x.py {}\ntext\n")
    (folder / "b").write_bytes(b"")
    (folder / "c").write_bytes(b"\xff\xfe no uri")
    assert unsaved_buffers(str(tmp_path), home=str(tmp_path), env={}) == []


def test_looking_costs_a_project_of_thousands_of_files_nothing(tmp_path: Path) -> None:
    for number in range(200):
        folder = tmp_path / f"package_{number}"
        folder.mkdir()
        for name in range(30):
            (folder / f"module_{name}.py").touch()
    look(tmp_path, tmp_path)
    spent = []
    for _ in range(5):
        before = time.process_time()
        look(tmp_path, tmp_path)
        spent.append(time.process_time() - before)
    # The processes of this machine are what it reads; an emacs among them makes it look around.
    processes = [name for name in os.listdir("/proc") if name.isdigit()]
    emacs = any("emacs" in name_of(pid) for pid in processes)
    assert min(spent) < 0.002 + len(processes) * 30e-6 + 0.020 * emacs


def name_of(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return "emacs?"  # ended just now, whatever it was
