"""What a warm relaunch must not miss: each run, before and after an edit, is as a cold one is."""

import shutil
import subprocess
import sys
from functools import partial

import pytest
from tests.needs import INSTALLED
from tests.warming import BEGIN, as_cold, edit, end, first, goes_on, plain, told

# --- what a program read


def test_a_module_from_outside_the_project_counts(warm):
    (warm.root / "lib").mkdir()
    (warm.root / "lib/helper.py").write_text("WORD = 'one'\n")
    head = "import sys\nsys.path.insert(0, '../lib')\nimport helper\n"
    warm.write("train.py", f"{head}{BEGIN}print(helper.WORD)\n")
    change = lambda: (warm.root / "lib/helper.py").write_text("WORD = 'another'\n")  # noqa: E731
    before, after = as_cold(warm, change, resumes=False)
    assert before != after


def test_data_that_a_package_brings_along_counts(warm):
    (warm.project / "pkg").mkdir()
    warm.write("pkg/__init__.py", "")
    warm.write("pkg/conf.json", "1")
    text = "import pkgutil\nprint(pkgutil.get_data('pkg', 'conf.json'))\n" + BEGIN
    warm.write("train.py", text)
    before, after = as_cold(warm, lambda: warm.write("pkg/conf.json", "22"), resumes=False)
    assert before != after


def test_a_checkpoint_counts_whatever_its_name(warm):
    warm.write("model.pth", "1")
    warm.write("train.py", "print(open('model.pth').read())\n" + BEGIN)
    before, after = as_cold(warm, lambda: warm.write("model.pth", "22"), resumes=False)
    assert before != after


def test_a_module_that_was_only_looked_for_counts(warm):
    text = "import importlib.util\nprint(importlib.util.find_spec('fast') is None)\n" + BEGIN
    warm.write("train.py", text)
    before, after = as_cold(warm, lambda: warm.write("fast.py", ""), resumes=False)
    assert before != after


def test_a_database_counts_by_the_name_that_is_meant(warm):
    make = "import sqlite3\nc = sqlite3.connect({!r})\nc.execute('create table t(a)')\n"
    fill = "c.execute('insert into t values({})')\nc.commit()\nc.close()\n"
    for name in ("my data.db", "b.db"):
        assert plain(warm, "-c", make.format(name) + fill.format(1)).returncode == 0
    read = (
        "import sqlite3\nc = sqlite3.connect('file:my%20data.db?mode=ro', uri=True)\n"
        "c.execute(\"attach database 'b.db' as b\")\n"
        "print([*c.execute('select sum(a) from t')], [*c.execute('select sum(a) from b.t')])\n"
        "c.close()\n"
    )
    warm.write("train.py", read + BEGIN)
    seen: list[tuple[int, str, str]] = []
    for name in ("my data.db", "b.db"):
        more = f"import sqlite3\nc = sqlite3.connect({name!r})\n" + fill.format(5)
        seen += as_cold(warm, partial(plain, warm, "-c", more), resumes=False)
    assert len({*seen}) == 3


def test_an_installed_package_that_was_edited_counts(warm):
    folder = warm.root / "lib/site-packages"
    folder.mkdir(parents=True)
    (folder / "helper.py").write_text("WORD = 'one'\n")
    warm.env["PYTHONPATH"] = str(folder)
    warm.write("train.py", f"import helper\n{BEGIN}print(helper.WORD)\n")
    change = lambda: (folder / "helper.py").write_text("WORD = 'another'\n")  # noqa: E731
    before, after = as_cold(warm, change, resumes=False)
    assert before != after


def test_a_file_of_another_folder_counts_by_that_folder(warm):
    (warm.project / "sub").mkdir()
    warm.write("sub/data", "1")
    warm.write("data", "x")
    read = "import os\nf = os.open('data', os.O_RDONLY, dir_fd=os.open('sub', os.O_RDONLY))\n"
    warm.write("train.py", f"{read}print(os.read(f, 9))\nos.close(f)\n{BEGIN}")
    before, after = as_cold(warm, lambda: warm.write("sub/data", "22"), resumes=False)
    assert before != after


def test_a_question_to_a_program_of_that_name_only_is_one(warm):
    (warm.project / "conf").mkdir()
    warm.write("conf/hostname", "1\n")
    warm.write("train.py", "import os\nos.system('cat conf/hostname')\n" + BEGIN)
    before, after = as_cold(warm, lambda: warm.write("conf/hostname", "22\n"), resumes=False)
    assert before != after


@pytest.mark.parametrize("how", ["open(0).read()", "open('/dev/stdin').read()"])
def test_input_that_was_read_in_another_way_counts(warm, how):
    warm.write("train.py", f"print({how})\n{BEGIN}")
    as_cold(warm, resumes=False, input="words")


# --- what a program wrote


def test_what_was_written_through_a_link_comes_back(warm):
    warm.write("real", "old")
    (warm.project / "link").symlink_to("real")
    text = "f = open('link', 'w')\nf.write('new')\nf.close()\n" + BEGIN
    last = "print(open('real').read())\nopen('real', 'w').write('last')\n"
    warm.write("train.py", text + last)
    change = lambda: warm.write("train.py", text + last + "print('edited')\n")  # noqa: E731
    as_cold(warm, change)


def test_who_asks_how_long_a_log_is_gets_the_right_answer(warm):
    text = "f = open('log', 'a')\nprint(f.tell() == 0)\nf.write('line')\nf.close()\n" + BEGIN
    warm.write("train.py", text)
    cold = first(warm)
    assert cold.stdout == "True\nbegin\n"
    again = warm.rl("warm")
    assert again.stdout == "False\nbegin\n"


def test_a_pipe_with_a_name_is_no_file(warm):
    text = "import os\nif os.path.exists('p'): os.unlink('p')\nos.mkfifo('p')\n" + BEGIN
    warm.write("train.py", text + "print('end')\n")
    change = lambda: warm.write("train.py", text + "print('edited')\n")  # noqa: E731
    as_cold(warm, change, resumes=False)


def test_a_lock_ends_with_the_program(warm):
    lines = ["import fcntl", "f = open('lock', 'w')", "time.sleep(0.3)"]
    lock = "fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)"
    edit(warm, *lines, lock)
    as_cold(warm, lambda: edit(warm, *lines, lock, "print('edited')"), resumes=True)


# --- how a program is made


def test_functions_can_be_hashed_and_taken_elsewhere(warm):
    lines = [
        "import cloudpickle",
        "def square(x):",
        "    y = x * x",
        "    return y",
        "print(len({square.__code__, square.__code__}), square(3))",
        "words = [sys.executable, '-c', 'import sys, pickle; "
        "print(pickle.load(sys.stdin.buffer)(4))']",
        "data = cloudpickle.dumps(square)",
        "print(subprocess.run(words, input=data, capture_output=True, check=True).stdout)",
    ]
    edit(warm, *lines)
    as_cold(warm, end(warm, *lines))


def test_a_function_that_is_taken_elsewhere_is_the_edited_one(warm):
    take = ["import cloudpickle", "def square(x):", "    return x * x"]
    show = ["data = cloudpickle.dumps(square)", "time.sleep(0.3)"]
    show += ["print(cloudpickle.loads(data)(5))"]
    edit(warm, *take, *show)
    change = lambda: edit(warm, *take[:2], "    return x + x", *show)  # noqa: E731
    before, after = as_cold(warm, change, at=10)
    assert before != after


def test_a_resumed_program_has_the_name_of_a_cold_one(warm):
    lines = ["print(open('/proc/self/comm').read())"]
    edit(warm, *lines)
    as_cold(warm, end(warm, *lines))


DOUBTFUL = {
    "new": ("x = 1", "x = 1 is 1"),
    "gone": ("x = 1 is 1", "x = 1"),
    "moved": ("x = 1 is 1", "# above\nx = 1 is 1"),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_what_python_warns_of_is_told_as_it_is_now(warm, name):
    old, new = DOUBTFUL[name]
    edit(warm, old)
    before, after = as_cold(warm, lambda: edit(warm, new), resumes=False)
    assert before != after


def test_what_python_warned_of_is_told_once(warm):
    lines = ["x = 1 is 1"]
    edit(warm, *lines)
    _, after = as_cold(warm, end(warm, *lines))
    assert after[2].count("SyntaxWarning") == 1


WARNS = ["class Strict:", "    def __int__(self):", "        return True"]
LINES_SHOWN = {
    "by Python": ["int(Strict())  # one"],
    "before the module was loaded": ["int(Strict())  # one", "import warnings"],
    "by the module": ["import warnings", "int(Strict())  # one"],
    "as text": ["import linecache", "print(linecache.getline('train.py', 5))  # one"],
}


@pytest.mark.parametrize("is_moved", [False, True])
@pytest.mark.parametrize("name", LINES_SHOWN)
def test_a_line_that_was_shown_is_shown_as_it_is_now(warm, name, is_moved):
    text = "\n".join([*WARNS, *LINES_SHOWN[name], BEGIN])
    warm.write("train.py", text)
    new = f"# above\n{text}" if is_moved else text.replace("# one", "# two")
    before, after = as_cold(warm, lambda: warm.write("train.py", new), resumes=False)
    assert before != after


def test_what_shows_lines_is_loaded_when_the_program_loads_it(warm):
    tell = "print([name in sys.modules for name in ('linecache', 'tokenize', 'warnings')])"
    lines = ["import sys", tell, *WARNS, "int(Strict())", tell, "import linecache", tell]
    edit(warm, *lines)
    as_cold(warm, end(warm, *lines))


WRONG_CALLS = """\
import inspect, linecache, os, time
for call in (
    "stat()", "stat(1.5)", "stat('a', 'b')", "stat([])", "stat(path='none')", "lstat()",
    "lstat('.', follow_symlinks=False)", "access('.')", "access([], 0)", "readlink()",
    "readlink('.', 1)", "read()", "read(0)", "read(fd=0)", "open('none')", "open(path='none')",
    "getpid(1)", "setpgrp(1)", "setsid(a=1)", "setpgid(1)", "get_terminal_size(1, 2)", "times(1)",
):
    try:
        print(eval("os." + call))
    except Exception as error:
        print(call, type(error).__name__, error)
for name in ("stat", "lstat", "access", "readlink", "read", "open", "getpid", "setpgid"):
    print(name, inspect.signature(getattr(os, name)))
for call in ("process_time(1)", "clock_gettime()"):
    try:
        eval("time." + call)
    except TypeError as error:
        print(call, error)
try:
    linecache.getline()
except TypeError as error:
    print(error)
os.read()
"""


def test_a_call_with_wrong_arguments_fails_in_python_s_own_words(warm):
    lines = WRONG_CALLS.splitlines()
    edit(warm, *lines[:-1])
    as_cold(warm, lambda: edit(warm, *lines))


def test_who_watches_calls_sees_none_of_ours(warm):
    lines = [
        "import cProfile, pstats",
        "def work():",
        "    for n in range(3):",
        "        n += 1",
        "profile = cProfile.Profile()",
        "profile.runcall(work)",
        "print(sorted(name for _, _, name in pstats.Stats(profile).stats))",
    ]
    edit(warm, *lines)
    as_cold(warm, end(warm, *lines), resumes=False)


def test_what_a_program_puts_in_the_place_of_functions_we_do_not_use(warm):
    lines = [
        "from unittest import mock",
        "with mock.patch('builtins.open') as opened, mock.patch('os.getpid') as asked:",
        "    with mock.patch('time.perf_counter', side_effect=[1]) as clock:",
        "        time.sleep(0.3)",
        "        print('inside')",
        "print(opened.call_count, asked.call_count, clock.call_count)",
    ]
    edit(warm, *lines)
    as_cold(warm, end(warm, *lines))


def test_a_module_of_the_project_may_have_the_name_of_one_that_we_use(warm):
    warm.write("symtable.py", "MINE = 1\n")
    lines = ["import symtable", "print(symtable.MINE)"]
    edit(warm, *lines)
    as_cold(warm, end(warm, *lines))


def test_who_translates_modules_gets_them_as_they_are(warm):
    warm.write("part.py", "WORD = 'one'\n")
    lines = [
        "from importlib.machinery import FileFinder, SourceFileLoader",
        "class Loader(SourceFileLoader):",
        "    def source_to_code(self, data, path, *, _optimize=-1):",
        "        data = data.replace(b'one', b'translated')",
        "        return super().source_to_code(data, path, _optimize=_optimize)",
        "sys.path_hooks.insert(0, FileFinder.path_hook((Loader, ['.py'])))",
        "sys.path_importer_cache.clear()",
        "import part",
        "print(part.WORD)",
    ]
    edit(warm, *lines)
    before, _ = as_cold(warm, end(warm, *lines))
    assert "translated" in before[1]


def test_a_long_chain_of_branches_is_no_trouble(warm):
    chain = "".join(f"elif x == {n}:\n    y = {n}\n" for n in range(1000))
    text = f"{BEGIN}x = 3\nif x == -1:\n    y = 0\n{chain}print(y)\n"
    warm.write("train.py", text)
    as_cold(warm, lambda: warm.write("train.py", f"{text}print(1)\n"), resumes=False)


def test_names_that_become_annotated_in_a_module(warm):
    warm.write("part.py", "import time\ntime.sleep(0.3)\nx = 1\n")
    edit(warm, "import part", "print(part.x, getattr(part, '__annotations__', None))")
    text = "import time\ntime.sleep(0.3)\nx: int = 2\n"
    first(warm, "--at", "part.py:3")
    warm.write("part.py", text)
    assert told(warm.rl("warm")) == told(plain(warm))


@pytest.mark.skipif("3.12" not in INSTALLED, reason="Python 3.12 is not here")
def test_functions_with_parameters_for_types(warm):
    python = INSTALLED["3.12"]
    lines = ["def one[T](x: T) -> T:", "    y = x", "    return y", "print(one(1))"]
    edit(warm, *lines)
    warm.rl("warm", "--at", "train.py:5", "--", python, "train.py")
    edit(warm, *lines[:2], "    y, z = x, 2", *lines[2:])
    again = warm.rl("warm")
    assert "resumed at train.py:5 " in again.stderr
    assert again.stdout == "begin\n1\n"


def test_bars_of_progress_go_on(warm):
    lines = [
        "import tqdm",
        "for n in tqdm.tqdm(range(3), disable=False, file=open(os.devnull, 'w')): pass",
        "time.sleep(0.3)",
        "print(tqdm.tqdm.monitor.report())",
        "for n in tqdm.tqdm(range(3), file=open(os.devnull, 'w')): pass",
    ]
    goes_on(warm, 8, *lines)


@pytest.mark.parametrize("name", ["len", "isinstance", "open", "any", "min", "hasattr", "sorted"])
def test_a_program_may_replace_what_everybody_uses(warm, name):
    head = f"import builtins\nreal = builtins.{name}\ndef mine(*args, **more):\n"
    lines = "    return real(*args, **more)", f"builtins.{name} = mine", "one = 1", "import json"
    text = head + "\n".join(lines) + "\n" + BEGIN + "open('train.py').close()\n"
    warm.write("train.py", text)
    as_cold(warm, lambda: warm.write("train.py", text + "print(len(json.dumps([one])))\n"))


LAYOUTS = {
    "by any name": [
        "class Layout(logging.Formatter):",
        "    def format(self, record):",
        "        return str([n for name, n in vars(record).items() if name[:4] == 'line'])",
    ],
    "from a file": ["Layout = lambda: logging.Formatter(open('layout').read())"],
    "of a library": ["from shown import Layout"],
}
SHOWN = """\
import logging
class Layout(logging.Formatter):
    def format(self, record):
        return str(record.lineno)
"""


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_log_with_numbers_of_lines_has_those_of_the_edited_file(warm, name):
    warm.write("layout", "%(lineno)d")
    folder = warm.root / "lib/site-packages"
    folder.mkdir(parents=True)
    (folder / "shown.py").write_text(SHOWN)
    warm.env["PYTHONPATH"] = str(folder)
    lines = [
        "import logging",
        *LAYOUTS[name],
        "handler = logging.StreamHandler()",
        "handler.setFormatter(Layout())",
        "logging.getLogger().addHandler(handler)",
        "logging.error('here')",
        "time.sleep(0.3)",
        "print('last')",
    ]
    edit(warm, *lines)
    before, after = as_cold(warm, lambda: edit(warm, "# above", *lines), at=4 + len(lines))
    assert before != after


# --- around it


def test_a_program_may_take_any_number_for_its_files(warm):
    lines = [
        "f = open('out', 'w')",
        "for n in range(3, 600):",
        "    if n != f.fileno(): os.dup2(f.fileno(), n)",
        "time.sleep(0.3)",
        "f.flush()",
        "print(os.path.getsize('out'))",
    ]
    edit(warm, *lines)
    as_cold(warm, end(warm, *lines))


def test_few_files_are_enough(warm):
    lines = [
        "import resource",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))",
        "time.sleep(0.3)",
        "print('few')",
    ]
    goes_on(warm, 8, *lines)


def test_few_files_are_enough_for_what_forks_too(warm):
    lines = [
        "import resource",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))",
        "if os.fork() == 0:",
        "    os._exit(0)",
        "print(os.wait()[1])",
    ]
    edit(warm, *lines)
    assert told(first(warm)) == told(plain(warm))


def test_a_file_that_took_the_number_of_one_of_ours_stays_in_what_forks(warm):
    lines = [
        "os.closerange(3, 4096)",
        "for number in range(500, 600):",
        "    os.dup2(1, number)",
        "sys.stdout.flush()",
        "if os.fork() == 0:",
        "    os._exit(sum(os.write(number, b'.') != 1 for number in range(500, 600)))",
        "print(os.wait()[1])",
    ]
    edit(warm, *lines)
    assert told(first(warm)) == told(plain(warm))


def test_a_folder_that_was_made_anew_gets_snapshots_of_its_own(warm):
    edit(warm, "print('x')")
    first(warm)
    shutil.copytree(warm.project, warm.root / "copy", symlinks=True)
    shutil.rmtree(warm.project)
    (warm.root / "copy").rename(warm.project)
    assert "rl: cold: the folder is another one now" in first(warm).stderr
    assert "rl: resumed at" in first(warm).stderr


def test_words_that_an_edit_brings_count_too(warm):
    lines = ["def later():", "    return 1", "time.sleep(0.3)", "print(later())"]
    edit(warm, *lines)
    first(warm, "--at", "train.py:8")
    edit(warm, "", *lines, "print(later.__code__.co_firstlineno)")
    assert told(warm.rl("warm")) == told(plain(warm))


def test_a_module_that_is_imported_by_its_name_counts(warm):
    load = "import importlib\ntry:\n    importlib.import_module('local')\n"
    warm.write("train.py", f"{load}    print('own')\nexcept ImportError:\n    pass\n{BEGIN}")
    before, after = as_cold(warm, lambda: warm.write("local.py", ""), resumes=False)
    assert before != after


def test_a_generator_without_a_seed_draws_anew_and_one_with_a_seed_goes_on(warm):
    lines = ["import random", "one, two = random.Random(), random.Random(5)", "time.sleep(0.3)"]
    runs: list[subprocess.CompletedProcess[str]] = []
    for number in range(3):
        edit(warm, *lines, f"number = {number}", "print(one.random())", "print(two.random())")
        runs.append(warm.rl("warm") if runs else first(warm, "--at", "train.py:8"))
    for run in (runs := runs[1:]):
        assert "rl: resumed at train.py:8 " in run.stderr, run.stderr
    drawn = [run.stdout.splitlines()[1:] for run in runs]
    assert drawn[0][0] != drawn[1][0]
    assert drawn[0][1] == drawn[1][1] == plain(warm).stdout.splitlines()[2]


def test_a_function_that_becomes_large_before_it_is_called(warm):
    lines = ["def later():", "    pass", "time.sleep(0.3)", "later()"]
    edit(warm, *lines)
    first(warm, "--at", "train.py:8")
    body = [f"    v{n} = {n}" for n in range(100)]
    edit(warm, lines[0], *body, "    print(v99)", *lines[2:])
    assert told(warm.rl("warm")) == told(plain(warm))


def test_a_module_that_cannot_have_snapshots_counts_as_a_file(warm):
    chain = "".join(f"elif x == {n}:\n    y = {n}\n" for n in range(1000))
    part = "x = {}\nif x == -1:\n    y = 0\n" + chain
    warm.write("part.py", part.format(3))
    warm.write("train.py", f"import part\n{BEGIN}print(part.y)\n")
    before, after = as_cold(warm, lambda: warm.write("part.py", part.format(7)), resumes=False)
    assert before != after


# --- numbers of open files


def test_the_files_of_a_program_have_their_numbers(warm):
    lines = ["one = open('data')", "print(one.fileno(), os.pipe())", "time.sleep(0.3)"]
    warm.write("data", "1")
    after = ["two = open('data')", "print(two.fileno(), os.dup(0))"]
    edit(warm, *lines, *after)
    as_cold(warm, lambda: edit(warm, *lines, *after, "print('edited')"), at=8)


# --- leading processes


_LEADS = """\
def lead(function, *args):
    try:
        print(function.__name__, function(*args))
    except OSError as error:
        print(function.__name__, error)
"""


@pytest.mark.parametrize("before", ["", "lead(os.setpgrp)", "lead(os.setsid)"])
def test_a_program_comes_to_lead_its_group_or_session_as_ever(warm, before):
    lines = [
        "lead(os.setpgrp)",
        "lead(os.setpgid, 0, 0)",
        "lead(os.setsid)",
        "print(os.fork() and os.wait()[1] or lead(os.setsid))",
    ]
    for order in (lines, lines[::-1]):
        text = f"{BEGIN}{_LEADS}{before}\n"
        warm.write("train.py", text + "one = 1\n")
        at = f"train.py:{text.count(chr(10)) + 1}"
        warm.rl("warm", "--at", at, "--", sys.executable, "train.py")
        warm.write("train.py", text + "\n".join(order) + "\n")
        again = warm.rl("warm")
        assert f"resumed at {at} " in again.stderr
        assert told(again) == told(plain(warm))


# --- the end


def test_what_a_program_leaves_behind_ends_with_it(warm):
    lines = [
        "class One:",
        "    def __del__(self): print('gone', self.name)",
        "one, other = One(), One()",
        "one.name, other.name, one.other, other.one = 'one', 'other', other, one",
        "async def work(): pass",
        "never = work()",
        "time.sleep(0.3)",
    ]
    edit(warm, *lines)
    before, after = as_cold(warm, end(warm, *lines), at=11)
    assert before[1].count("gone") == 2
    assert "never awaited" in after[2]


def test_a_script_is_warned_of_in_each_cold_run(warm):
    edit(warm, "print(1 is 1)", r"print('\d')")
    for _ in range(2):
        done = first(warm)
        assert "rl: cold" in done.stderr
        assert 'SyntaxWarning: "is" with' in done.stderr
        assert told(done) == told(plain(warm))
        warm.rl("warm", "stop")


def test_who_collects_garbage_finds_none_of_ours(warm):
    lines = ["import gc", "def work():", "    return gc.collect()", "work()", "time.sleep(0.3)"]
    edit(warm, *lines, "print(gc.collect())")
    change = lambda: edit(warm, *lines, "print(work())", "print(gc.collect())")  # noqa: E731
    as_cold(warm, change, at=10)


def test_variables_go_in_the_order_of_the_edited_function(warm):
    text = f"""{BEGIN}class Thing:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        time.sleep(0.1)
        print("gone", self.name)
def work():
    one = Thing("one")
    two = Thing("two")
    return 1
print(work())
"""
    warm.write("train.py", text)
    hidden = text.replace("return 1\n", "return 1\n    def three(): return one\n")
    as_cold(warm, lambda: warm.write("train.py", hidden), at=10)


def test_no_object_of_the_program_is_asked_whether_it_is_true(warm):
    lines = [
        "import logging",
        "class Memory(logging.Handler):",
        "    def __len__(self):",
        "        print('asked')",
        "        return 1",
        "    def emit(self, record): pass",
        "logging.getLogger().addHandler(Memory())",
        "time.sleep(0.3)",
    ]
    edit(warm, *lines, "print(1)")
    as_cold(warm, lambda: edit(warm, *lines, "print(2)"), at=12)


DEEP = """\
LEFT = [5]
def deep(n):
    try:
        return deep(n + 1)
    except RecursionError:
        if LEFT[0]:
            LEFT[0] -= 1
            raise
        return late()
def late():
    return {}
time.sleep(0.3)
print(deep(0))
"""


def test_old_code_is_replaced_however_deep_the_program_is(warm):
    edit(warm, *DEEP.format("1").splitlines())
    as_cold(warm, lambda: edit(warm, *DEEP.format("2").splitlines()), at=17)


def test_the_deepest_call_of_all_does_not_fail_of_us(warm):
    text = f"""{BEGIN}import sys
sys.setrecursionlimit(200)
def deep(n):
    try:
        return deep(n + 1)
    except RecursionError as error:
        print("caught", error)
    reached = n
    return reached
time.sleep(0.3)
print(deep(0))
print("end")
"""
    warm.write("train.py", text)
    assert told(first(warm)) == told(plain(warm))
    as_cold(warm, lambda: warm.write("train.py", text.replace("end", "done")), at=14)


# --- what a program shows of itself


def test_what_peek_prints_is_as_in_a_cold_run(warm):
    lines = ["from relaunch import peek", "x = [1, 2]", "peek(x, os.getpid() > 0)", "peek(len(x))"]
    edit(warm, *lines)
    _, after = as_cold(warm, end(warm, *lines), at=8)
    assert after[2].endswith("train.py:7 x=[1, 2]  os.getpid() > 0=True\ntrain.py:8 len(x)=2\n")


def test_lines_that_moved_after_peek_printed_their_numbers_are_run_again(warm):
    head = "import math\n"
    lines = ["from relaunch import peek", "x = 1", "peek(x)"]
    edit(warm, *lines, "print(x)")
    change = lambda: warm.write("train.py", head + (warm.project / "train.py").read_text())  # noqa: E731
    as_cold(warm, change, resumes=False, at=8)
