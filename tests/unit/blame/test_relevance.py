"""Which failed calls matter, in which order, and whether they explain a failure."""

from typing import Any

import pytest

from relaunch.look.stacks import Frame
from relaunch.trial.blame.hits import Hit
from relaunch.trial.blame.relevance import named, shown, sort_out, unexplained, why_hidden

IMPORTER = "<frozen importlib._bootstrap_external>"
USER = (Frame(file="/home/me/train.py", line=3, function="load"),)


def hit(error: str, path: str = "/data/x", **more: object) -> Hit:
    fields: dict[str, Any] = {"call": "openat", "pid": 1, "frames": USER, **more}
    return Hit(error=error, path=path, **fields)


def test_a_file_that_the_program_wanted_is_news():
    assert why_hidden(hit("ENOENT")) == ""


@pytest.mark.parametrize(
    ("file", "function", "reason"),
    [
        (IMPORTER, "_path_stat", "import"),
        ("/usr/lib/python3.11/genericpath.py", "exists", "looked for"),
        ("<frozen genericpath>", "isfile", "looked for"),
        ("/usr/lib/python3.12/shutil.py", "which", "looked for"),
        ("/home/me/lib.py", "exists", ""),
    ],
)
def test_who_only_asks_whether_a_file_is_there_is_no_news(file, function, reason):
    frames = (Frame(file=file, line=1, function=function), *USER)
    assert why_hidden(hit("ENOENT", call="stat", frames=frames)) == reason


@pytest.mark.parametrize(
    "path",
    ["/venv/pyvenv.cfg", "/usr/lib/locale/C/LC_TIME", "/opt/lib/libm.so.6", "/etc/ld.so.preload"],
)
def test_what_the_loader_and_the_locale_search_is_no_news(path):
    assert why_hidden(hit("ENOENT", path, frames=()))


def test_a_missing_file_in_an_import_of_the_users_own_module_is_news():
    outer = Frame(
        file="<frozen importlib._bootstrap>", line=1, function="_call_with_frames_removed"
    )
    deeper = (Frame(file="/home/me/config.py", line=2, function="<module>"), outer, outer, *USER)
    assert why_hidden(hit("ENOENT", "/home/me/config.yaml", frames=deeper)) == ""


def test_space_is_always_news_even_of_a_module_being_written():
    frames = (Frame(file=IMPORTER, line=1, function="_write_atomic"),)
    assert why_hidden(hit("ENOSPC", "/x/__pycache__/a.pyc", frames=frames)) == ""


def test_what_ran_out_comes_first_and_the_last_before_the_earlier():
    hits = [
        hit("ENOSPC", "/a", when=1.0),
        hit("ENOENT", "/b", when=2.0),
        hit("ENOSPC", "/c", when=3.0),
        hit("EACCES", "/d", when=4.0),
    ]
    assert [one.path for one in sort_out(hits, {})] == ["/c", "/a", "/d", "/b"]


def test_the_last_words_of_a_program_do_not_hide_the_line_that_ran_out():
    hits = [hit("ENOSPC", "/a", when=1.0), hit("ENOSPC", "/a", when=2.0, frames=())]
    assert sort_out(hits, {})[0].frames == USER


def test_calls_that_are_alike_are_one_with_their_count():
    (one,) = sort_out([hit("ENOSPC", when=float(n)) for n in range(7)], {})
    assert (one.count, one.when) == (7, 6.0)


def test_a_loop_of_which_not_all_was_told_has_its_whole_count():
    told = [*range(1, 51), 64, 128]
    (one,) = sort_out([hit("ENOSPC", when=float(n), count=n) for n in told], {})
    assert one.count == 128


def test_a_name_that_was_found_in_another_folder_later_is_hidden():
    (one,) = sort_out([hit("ENOENT", "/usr/local/bin/ls")], {1: ["/bin/ls"]})
    assert one.hidden == "found later"
    (other,) = sort_out(
        [hit("ENOENT", "/usr/local/bin/ls")], {2: ["/bin/ls"]}
    )  # by another process
    assert other.hidden == ""


def test_our_own_files_are_hidden():
    (one,) = sort_out([hit("ENOENT", "/journal/trials/3/capture/x")], {}, "/journal/trials/3")
    assert one.hidden == "relaunch"


def test_of_what_ran_out_all_is_shown_and_of_the_rest_the_last_five():
    hits = sort_out(
        [hit("ENOENT", f"/m{n}", when=float(n)) for n in range(9)]
        + [hit("ENOSPC", f"/s{n}", when=float(n)) for n in range(9)],
        {},
    )
    assert [one.path for one in shown(hits)] == [f"/s{n}" for n in range(8, -1, -1)] + [
        f"/m{n}" for n in range(8, 3, -1)
    ]
    assert len(shown(hits, everything=True)) == 18


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("OSError: [Errno 28] No space left on device", ("ENOSPC",)),
        ("sqlite3.OperationalError: database or disk is full", ("ENOSPC",)),
        ("[enforce fail at inline_container.cc:672] . unexpected pos 7 vs 5", ("ENOSPC",)),
        ("OSError: [Errno 24] Too many open files: 'x'", ("EMFILE",)),
        ("RuntimeError: DataLoader worker is killed by signal: Bus error.", ("SIGBUS",)),
        ("ConnectionRefusedError: [Errno 111] Connection refused", ("ECONNREFUSED",)),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'x.csv'", ()),
        ("cat: x.csv: No such file or directory", ()),
        ("PermissionError: [Errno 13] Permission denied", ("EACCES",)),
        ("ValueError: 28 is no device", ()),
    ],
)  # fmt: skip
def test_a_failure_names_errors_of_the_system(text, names):
    assert named(text) == names


def test_a_bus_error_is_named_by_its_signal():
    assert named("", 7) == ("SIGBUS",)
    assert named("", 9) == ()


def test_only_a_hit_with_a_path_explains_a_failure():
    assert unexplained(("ENOSPC",), [hit("ENOSPC")]) == ()
    assert unexplained(("ENOSPC",), [hit("ENOSPC", "")]) == ("ENOSPC",)
    assert unexplained(("ENOSPC",), [hit("ENOENT")]) == ("ENOSPC",)
    assert unexplained(("SIGBUS", "ENOSPC"), [hit("ENOSPC")]) == ("SIGBUS",)


def test_beside_what_ran_out_a_file_that_no_line_asked_for_is_no_news():
    of_a_shell, of_a_line = hit("ENOENT", "/etc/rc", frames=()), hit("ENOENT", "/data/y")
    space = hit("ENOSPC")
    assert shown([space, of_a_shell, of_a_line]) == [space, of_a_line]
    assert shown([of_a_shell]) == [of_a_shell]


def test_a_gpu_that_is_full_is_no_failed_call():
    assert named("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB") == ()
