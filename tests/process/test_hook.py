"""The hook in real Python processes, old and new: exact when something fails, unseen otherwise."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
from __future__ import annotations

import glob
import json
import os
import pwd
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from relaunch.inside.protocol import HOOK, SCHEMA, SITE, SRC, hooked_env

_PYENV = os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".pyenv/versions/*/bin/python")
PYTHONS = sorted({sys.executable, *glob.glob(_PYENV)})


def version_of(python):
    parts = Path(python).parts
    return parts[-3] if "versions" in parts else "this"


every_python = pytest.mark.parametrize("python", PYTHONS, ids=version_of)


def bare_env(**more):
    return {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8", **more}


class Run:
    """One program run without and with the hook."""

    def __init__(self, tmp_path, python, source, *options, src=(), env=None, wrap=(), reports=None):
        script = tmp_path / "prog.py"
        script.write_text(textwrap.dedent(source))
        self.directory = tmp_path / "reports" if reports is None else reports
        if reports is None:
            self.directory.mkdir(exist_ok=True)
        plain = bare_env(**(env or {}))
        argv = [*wrap, python, *options, str(script)]
        self.plain = self._run(argv, plain, tmp_path)
        self.hooked = self._run(argv, hooked_env(plain, str(self.directory), src), tmp_path)

    def _run(self, argv, env, cwd):
        done = subprocess.run(argv, env=env, cwd=cwd, capture_output=True, timeout=300)
        return done.returncode, done.stdout, done.stderr

    @property
    def reports(self):
        return [json.loads(one.read_text()) for one in sorted(self.directory.glob("*.json"))]

    @property
    def errors(self):
        return [error for report in self.reports for error in report["exceptions"]]

    @property
    def left_over(self):
        return [one.name for one in self.directory.iterdir() if one.suffix != ".json"]


def names(error):
    return [frame["name"] for frame in error["frames"]]


@every_python
def test_a_failure_is_reported_exactly_and_the_output_is_untouched(tmp_path, python):
    run = Run(
        tmp_path,
        python,
        """\
        class Model(object):
            def forward(self):
                raise ValueError("loss is nan")
        Model().forward()
        """,
    )
    assert run.hooked == run.plain
    assert run.hooked[0] == 1
    (report,) = run.reports
    (error,) = report["exceptions"]
    assert report["schema"] == SCHEMA
    assert report["executable"] == python
    assert (error["type"], error["message"], error["thread"]) == ("ValueError", "loss is nan", None)
    assert [frame["line"] for frame in error["frames"]] == [4, 3]
    assert names(error)[-1] in ("forward", "Model.forward")
    assert run.left_over == []


@every_python
def test_a_program_that_passes_writes_nothing_and_finds_its_world_untouched(tmp_path, python):
    run = Run(
        tmp_path,
        python,
        """\
        import sys, os
        print([p for p in sys.path])
        print(sorted(m for m in sys.modules if m not in ("atexit", "_thread", "time")))
        print(sys.excepthook is sys.__excepthook__, sorted(sys.path_importer_cache) != [])
        print([p for p in sys.path_importer_cache if p.endswith(os.path.join("inside", "site"))])
        """,
    )
    assert run.hooked == run.plain
    assert run.hooked[0] == 0
    assert run.reports == []


@every_python
def test_the_users_own_sitecustomize_still_runs(tmp_path, python):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys\nsys.mine = __file__[-25:]\n")
    run = Run(
        tmp_path,
        python,
        "import sys; print(sys.mine, sys.modules['sitecustomize'].__file__[-25:])",
        env={"PYTHONPATH": str(own)},
    )
    assert run.hooked == run.plain
    assert run.hooked[0] == 0


@every_python
@pytest.mark.parametrize("body", ["raise ValueError('mine')", "import not_there_at_all"])
def test_an_error_in_the_users_sitecustomize_is_told_as_ever(tmp_path, python, body):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(body + "\n")
    run = Run(tmp_path, python, "print('on')", env={"PYTHONPATH": str(own)})
    if "2.7" not in python:  # Python 2 prints a traceback, in which our line is one more
        assert run.hooked == run.plain
    assert run.hooked[:2] == run.plain[:2]


@every_python
@pytest.mark.parametrize("option", ["-E", "-S", "-s", "-O", "-B"])
def test_options_that_change_the_start_do_not_meet_the_hook(tmp_path, python, option):
    run = Run(tmp_path, python, "print(__file__); raise OSError('x')", option)
    assert run.hooked == run.plain
    assert len(run.reports) == (0 if option in ("-E", "-S") else 1)


@every_python
def test_a_threads_failure_is_reported_though_the_program_goes_on(tmp_path, python):
    run = Run(
        tmp_path,
        python,
        """\
        import threading
        def work():
            raise KeyError("lost")
        t = threading.Thread(target=work, name="loader")
        t.start()
        t.join()
        print("done")
        """,
    )
    assert run.hooked == run.plain
    assert run.hooked[0] == 0
    if version_of(python).startswith(("2.", "3.6", "3.7")):
        return  # those have no hook for threads; the text tells
    (error,) = run.errors
    assert (error["type"], error["thread"]) == ("KeyError", "loader")
    assert names(error)[-1] == "work"


@every_python
def test_threads_are_watched_though_a_pth_file_imported_threading_first(tmp_path, python):
    version = version_of(python)
    if version.startswith(("2.", "3.6", "3.7")) or version == "this":  # a venv has no user site
        pytest.skip("no hook for threads, or no user site")
    short = ".".join(version.split(".")[:2])
    site = tmp_path / "base" / "lib" / f"python{short}" / "site-packages"
    site.mkdir(parents=True)
    (site / "early.pth").write_text("import threading\n")
    run = Run(
        tmp_path,
        python,
        """\
        import sys
        t = sys.modules["threading"].Thread(target=lambda: 1 / 0, name="early")
        t.start()
        t.join()
        """,
        env={"PYTHONUSERBASE": str(tmp_path / "base")},
    )
    assert run.hooked == run.plain
    assert [(error["type"], error["thread"]) for error in run.errors] == [
        ("ZeroDivisionError", "early")
    ]


def test_a_thread_hook_set_by_the_program_is_the_one_that_is_called(tmp_path):
    run = Run(
        tmp_path,
        sys.executable,
        """\
        import threading
        assert threading.excepthook is threading.__excepthook__
        threading.excepthook = lambda args: print("mine", args.exc_type)
        t = threading.Thread(target=lambda: 1 / 0)
        t.start(); t.join()
        """,
    )
    assert run.hooked == run.plain
    assert b"mine" in run.hooked[1]


def test_an_excepthook_of_the_program_keeps_its_place_and_the_report_is_written(tmp_path):
    run = Run(
        tmp_path,
        sys.executable,
        """\
        import sys
        sys.excepthook = lambda *a: print("mine", a[0].__name__)
        raise RuntimeError("r")
        """,
    )
    assert run.hooked == run.plain
    assert run.errors[0]["type"] == "RuntimeError"


def test_chains_and_groups_are_told_whole(tmp_path):
    run = Run(
        tmp_path,
        sys.executable,
        """\
        try:
            try:
                {}["a"]
            except KeyError as e:
                raise OSError("b") from e
        except OSError:
            raise ExceptionGroup("g", [ValueError("c"), ExceptionGroup("h", [TypeError("d")])])
        """,
    )
    (error,) = run.errors
    assert error["type"] == "ExceptionGroup"
    assert error["context"]["type"] == "OSError"
    assert error["context"]["cause"]["type"] == "KeyError"
    assert [member["type"] for member in error["members"]] == ["ValueError", "ExceptionGroup"]
    assert error["members"][1]["members"][0]["message"] == "d"


@every_python
def test_a_thousand_frames_a_huge_message_and_a_str_that_raises_are_borne(tmp_path, python):
    run = Run(
        tmp_path,
        python,
        """\
        import sys
        class Odd(Exception):
            def __str__(self):
                raise RuntimeError("no words")
        def down(n):
            if n == 0:
                raise Odd()
            down(n - 1)
        sys.setrecursionlimit(3000)
        down(900)
        """,
    )
    assert run.hooked == run.plain
    (error,) = run.errors
    assert error["message"] == "<exception str() failed>"
    assert len(error["frames"]) <= 80
    again = Run(tmp_path, python, "def f(): f()\nf()")
    assert again.hooked == again.plain
    long = Run(tmp_path, python, "raise ValueError('x' * 10000000)")
    assert long.hooked == long.plain
    assert all(len(error["message"]) <= 4000 for error in long.errors)


@every_python
def test_words_of_every_script_come_through(tmp_path, python):
    run = Run(
        tmp_path,
        python,
        """\
        accented = "caf\\xc3\\xa9" if str is bytes else "caf\\xe9"
        raise ValueError(accented + " \\"q\\" \\\\ \\t \\x01")
        """,
    )
    assert run.hooked == run.plain
    assert run.errors[0]["message"] == 'caf\xe9 "q" \\ \t \x01'


def test_a_surrogate_and_an_emoji_survive_the_way_through_json(tmp_path):
    run = Run(tmp_path, sys.executable, "raise ValueError('\\udcff \\U0001f525')")
    assert run.errors[0]["message"] == "\udcff \U0001f525"


@pytest.mark.parametrize("trouble", ["missing", "a file", "read-only"])
def test_a_report_that_cannot_be_written_costs_nothing(tmp_path, trouble):
    reports = tmp_path / "r"
    if trouble == "a file":
        reports.write_text("")
    elif trouble == "read-only":
        reports.mkdir()
        (reports / "x").mkdir()
        reports = Path("/proc/self")
    run = Run(tmp_path, sys.executable, "raise ValueError('x')", reports=reports)
    assert run.hooked == run.plain


def test_a_full_disk_leaves_no_half_report(tmp_path):
    run = Run(
        tmp_path,
        sys.executable,
        """\
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        raise ValueError("y" * 3000)
        """,
    )
    assert run.hooked == run.plain
    assert run.reports == []
    assert run.left_over == []


def test_closed_standard_streams_are_no_obstacle(tmp_path):
    run = Run(
        tmp_path,
        sys.executable,
        "raise ValueError('x')",
        wrap=("/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"),
    )
    assert run.hooked == run.plain
    assert run.errors[0]["message"] == "x"


def test_a_forked_child_tells_its_own_story_only(tmp_path):
    run = Run(
        tmp_path,
        sys.executable,
        """\
        import os, threading
        t = threading.Thread(target=lambda: 1 / 0)
        t.start(); t.join()
        pid = os.fork()
        if pid == 0:
            raise KeyError("child")
        os.waitpid(pid, 0)
        """,
    )
    assert run.hooked[0] == run.plain[0] == 0
    told = sorted([error["type"] for error in report["exceptions"]] for report in run.reports)
    assert told == [["KeyError"], ["ZeroDivisionError"]]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_works_as_without(tmp_path, method):
    run = Run(
        tmp_path,
        sys.executable,
        f"""\
        import multiprocessing as mp
        def twice(x):
            return 2 * x
        if __name__ == "__main__":
            with mp.get_context("{method}").Pool(2) as pool:
                print(pool.map(twice, range(4)))
        """,
    )
    assert run.hooked == run.plain
    assert run.reports == []


def test_children_are_hooked_too_and_os_exit_says_nothing(tmp_path):
    run = Run(
        tmp_path,
        sys.executable,
        """\
        import os, subprocess, sys
        subprocess.run([sys.executable, "-c", "raise OSError('in the child')"])
        os._exit(3)
        """,
    )
    assert run.hooked == run.plain
    assert [error["message"] for error in run.errors] == ["in the child"]


def test_a_module_of_the_user_named_like_the_standard_library_is_left_alone(tmp_path):
    for name in ("json", "traceback", "threading", "tempfile"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('never import me')\n")
    run = Run(tmp_path, sys.executable, "raise ValueError('x')")
    assert run.hooked[0] == 1
    assert b"never" not in run.hooked[2]
    assert run.errors[0]["message"] == "x"


def test_mocks_left_in_place_at_exit_do_not_disturb(tmp_path):
    run = Run(
        tmp_path,
        sys.executable,
        """\
        import builtins, os, time
        builtins.open = os.open = os.write = lambda *a, **k: 1 / 0
        os.rename = time.time = os.getpid = os.open
        def f():
            raise ValueError("x")
        f()
        """,
    )
    assert run.hooked[0] == run.plain[0] == 1
    assert [error["message"] for error in run.errors] == ["x"]


@every_python
def test_packages_asked_for_are_named_with_their_files(tmp_path, python):
    package = tmp_path / "clone" / "mypkg"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    run = Run(
        tmp_path,
        python,
        "import mypkg",
        src=("mypkg", "absent"),
        env={"PYTHONPATH": str(tmp_path / "clone")},
    )
    assert run.hooked == run.plain
    (report,) = run.reports
    assert report["exceptions"] == []
    assert {name: Path(file).parent for name, file in report["loaded"].items()} == {
        "mypkg": package
    }


def test_pytest_runs_as_without(tmp_path):
    (tmp_path / "test_it.py").write_text("def test_a():\n    assert 1 == 2\n")
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:relaunch", "-q",
            "test_it.py"]  # fmt: skip
    plain = bare_env()
    (tmp_path / "r").mkdir()
    outputs = []
    for env in (plain, hooked_env(plain, str(tmp_path / "r"))):
        done = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, timeout=300)
        outputs.append((done.returncode, done.stdout.rpartition(b" in ")[0], done.stderr))
    assert outputs[0] == outputs[1]
    assert outputs[0][0] == 1


def test_the_environment_keeps_what_the_user_put_on_the_path(tmp_path):
    env = hooked_env({"PYTHONPATH": "/a::/b", "X": "1", SRC: "old"}, "reports", ["p", "q"])
    assert env["PYTHONPATH"] == f"{SITE}:/a::/b"
    assert env[SRC] == "p,q"
    assert os.path.isabs(env[HOOK])
    assert hooked_env(env, "reports")["PYTHONPATH"] == f"{SITE}:/a::/b"
    assert SRC not in hooked_env(env, "reports")
    assert hooked_env({}, "r")["PYTHONPATH"] == SITE


def test_the_start_imports_nothing_new_but_what_the_interpreter_has_built_in(tmp_path):
    source = "import sys; print(*sorted(sys.modules))"
    run = Run(tmp_path, sys.executable, source)
    more = set(run.hooked[1].split()) - set(run.plain[1].split())
    assert {name.decode() for name in more} <= {"atexit"}
