"""A program in a fork of a process that has its imports: as in a fresh process, in all it shows."""

from __future__ import annotations

import re
import sys

import pytest
from tests.depth import takes_turns
from tests.forking import LEARNING, both, environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are for Linux")

LIBRARY = "value = 1\n"
HEAD = (
    "import atexit, os, signal, subprocess, sys, threading\nimport lib\n"
    f"if os.path.exists({LEARNING!r}):\n    sys.exit()\n"
)


def alike(world, argv, **more):
    """Make sure that forks are as the fresh run, and return what was seen."""
    cold, forked = both(world, argv, **more)
    for one in forked:
        assert one == cold
    return cold


PROGRAMS = {
    "it ends": "print('out'); print('err', file=sys.stderr)",
    "it leaves with a code": "print('a'); sys.exit(3)",
    "it leaves with words": "sys.exit('no luck')",
    "it fails": "def work():\n    raise ValueError('broken')\nwork()",
    "it fails for a reason": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n"
    "    raise RuntimeError('worse') from e",
    "it fails below itself": "def down(n):\n    return down(n + 1)\ndown(0)",
    "it exits hard": "print('lost?'); sys.stdout.flush(); os._exit(4)",
    "it is killed": "print('x', flush=True); os.kill(os.getpid(), signal.SIGKILL)",
    "it ends by a signal": "os.kill(os.getpid(), signal.SIGTERM)",
    "it aborts": "os.abort()",
    "it is interrupted": "signal.raise_signal(signal.SIGINT)",
    "it handles a signal": "signal.signal(signal.SIGUSR1, lambda *_: print('usr1'))\n"
    "os.kill(os.getpid(), signal.SIGUSR1)",
    "signals are as ever": "print([signal.getsignal(n) for n in range(1, 32)], "
    "signal.pthread_sigmask(signal.SIG_BLOCK, []))",
    "something is said at exit": "atexit.register(print, 'bye')\nprint('hello')",
    "exit fails": "atexit.register(int, 'x')",
    "it reads": "print(repr(sys.stdin.read()), sys.stdin.isatty())",
    "its streams": "print([(s.isatty(), s.seekable(), s.line_buffering, s.encoding, s.errors) "
    "for s in (sys.stdin, sys.stdout, sys.stderr)])",
    "its descriptors": "print(os.open('/dev/null', os.O_RDONLY))",
    "its names": "print(sys.argv, sys.orig_argv, __name__, __file__, __package__, __spec__, "
    "sorted(globals()))",
    "its path": "print(sys.path[0], os.getcwd(), sys.flags)",
    "its stack": "f = sys._getframe()\nprint(f.f_back, len(threading.enumerate()), "
    "threading.current_thread().name)",
    "a thread fails": "def work():\n    raise KeyError('in a thread')\n"
    "t = threading.Thread(target=work, name='T')\nt.start()\nt.join()",
    "threads count": "n = []\nts = [threading.Thread(target=n.append, args=(i,)) "
    "for i in range(9)]\n[t.start() for t in ts]\n[t.join() for t in ts]\nprint(sorted(n))",
    "programs are run": "word = 'import lib; print(lib.value)'\n"
    "print(subprocess.run([sys.executable, '-c', word], capture_output=True))\n"
    "print(os.system('exit 3'), flush=True)",
    "it forks": "p = os.fork()\nif not p:\n    print('child', flush=True)\n    os._exit(5)\n"
    "print(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]))",
    "it has no children": "try:\n    os.wait()\nexcept ChildProcessError as e:\n    print(e)",
    "a child outlives it": "subprocess.Popen(['sleep', '30'])",
    "its variables": "print(sorted(n for n in os.environ if 'RELAUNCH' in n))",
    "unfinished": "print('no end of line', end='')",
    "a syntax error": "def f(:\n",
    "a warning": "import warnings\nwarnings.warn('careful')\n",
    "a loop of objects": "class A:\n    def __del__(self):\n        print('gone')\n"
    "a = A()\na.a = a\ndel a",
}  # fmt: skip


@takes_turns
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_script_does_the_same(world, name):
    python = environment(world, lib=LIBRARY)
    world.write("run.py", f"{HEAD}{PROGRAMS[name]}\n")
    alike(world, [python, "run.py", "--an", "option"])


def test_a_timeout_ends_it_with_all_it_started(world):
    python = environment(world, lib=LIBRARY)
    text = "print('begins', flush=True)\nsubprocess.run(['sleep', '60'])\n"
    world.write("run.py", HEAD + text)
    seen = alike(world, [python, "run.py"], timeout_s=1)
    assert seen["timed_out"]


def test_a_module_is_run_as_such(world):
    python = environment(world, lib=LIBRARY)
    world.write("pkg/__init__.py", "")
    world.write("pkg/near.py", "word = 'near'\n")
    text = "from .near import word\nprint(word, __name__, __package__, __spec__.name, sys.argv)\n"
    world.write("pkg/run.py", HEAD + text + "raise LookupError(word)\n")
    seen = alike(world, [python, "-m", "pkg.run", "word"])
    assert "LookupError: near" in seen["output"][1]


def test_a_package_and_a_line_of_code_are_run_as_such(world):
    python = environment(world, lib=LIBRARY)
    world.write("pkg/__init__.py", "print('init')\n")
    world.write("pkg/__main__.py", HEAD + "print(__name__, sys.path[0], sys.argv)\n1 / 0\n")
    assert alike(world, [python, "-m", "pkg"])["code"] == 1
    assert (
        alike(
            world,
            [python, "pkg"],
        )["code"]
        == 1
    )
    assert alike(world, [python, "-c", HEAD + "print(sys.argv)\n1 / 0", "word"])["code"] == 1


@takes_turns
@pytest.mark.parametrize("option", ["-u", "-O", "-B", "-Wdefault", "-Xutf8", "-P"])
def test_options_of_python_count(world, option):
    python = environment(world, lib=LIBRARY)
    text = "print(sys.flags, sys._xoptions, sys.warnoptions, sys.path, __debug__)\nassert not 1\n"
    world.write("run.py", HEAD + text)
    alike(world, [python, option, "run.py"])


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing_work(world, how):
    python = environment(world, lib=LIBRARY)
    world.write(
        "run.py",
        f"{HEAD}import multiprocessing\n\n\ndef work(n):\n    return n * lib.value / (n - 5)\n\n\n"
        f"if __name__ == '__main__':\n    context = multiprocessing.get_context({how!r})\n"
        "    with context.Pool(2) as pool:\n        print(pool.map(work, range(5)))\n"
        "        print(pool.map(work, range(9)))\n",
    )
    seen = alike(world, [python, "run.py"], env={"TMPDIR": "/tmp"})  # its sockets have short names
    assert "ZeroDivisionError" in seen["output"][1]


TESTS = {
    "passes": "def test_a():\n    assert lib.value == 1\n",
    "fails": "def test_a():\n    values = [1, 2]\n    assert sum(values) == lib.value\n",
    "cannot be collected": "import nothing_of_that_name\n",
    "fixture": "import pytest\n@pytest.fixture\ndef f():\n    yield 1\n    1 / 0\n"
    "def test_a(f):\n    print('seen')\n",
}


@takes_turns
@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("how", ["module", "script"])
def test_pytest_shows_the_same(world, name, how):
    python = environment(world, lib=LIBRARY)
    world.write("conftest.py", "def pytest_report_header():\n    return 'a header'\n")
    head = f"import os\nimport lib\nif not os.path.exists({LEARNING!r}):\n    pass\n"
    world.write("test_it.py", head + TESTS[name])
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:relaunch", "-rA"]
    script = world.write("pytest", f"#!{python}\nimport pytest\nraise SystemExit(pytest.main())\n")
    script.chmod(0o755)
    argv = [python, "-m", "pytest"] if how == "module" else ["./pytest"]
    cold, forked = both(world, [*argv, *words], env={"PYTHONHASHSEED": "0"})
    for one in forked:
        assert "why" not in one, one["why"]
        assert _timeless(one) == _timeless(cold)


def _timeless(seen):
    text = re.sub(r"[0-9]+\.[0-9]+s", "TIME", seen["output"][0])
    return {**seen, "output": [text, seen["output"][1]]}


def refused(world, text, later=None, **libraries):
    """Return why a program is not forked, and what it shows in a fresh process."""
    python = environment(world, **{"lib": LIBRARY, **libraries})
    world.write("run.py", HEAD + text)
    cold, forked = both(world, [python, "run.py"], later=later or {})
    assert forked[0].keys() == {"why"}, (cold, forked)
    return forked[0]["why"], cold["output"][0]


def test_a_file_with_the_name_of_a_library_is_seen(world):
    why, shown = refused(world, "print(lib.value)\n", {"lib.py": "value = 'mine'\n"})
    assert why.endswith("lib has the name of a library")
    assert shown == "mine\n"


def test_a_library_that_speaks_is_left_to_the_program(world):
    why, shown = refused(world, "print('end')\n", lib="print('welcome')\n")
    assert (why, shown) == ("a library prints when it is imported", "welcome\nend\n")


def test_a_library_with_a_thread_is_left_to_the_program(world):
    thread = (
        "import threading\nwait = threading.Event().wait\n"
        "threading.Thread(target=wait, daemon=True).start()\n"
    )
    assert refused(world, "", lib=thread)[0] == "a library has started a thread"


def test_a_library_with_a_process_is_left_to_the_program(world):
    process = "import subprocess\nkept = subprocess.Popen(['sleep', '9'])\n"
    assert refused(world, "kept = lib.kept.kill()\n", lib=process)[0] == (
        "a library has started a process"
    )


def test_a_library_with_an_open_file_is_left_to_the_program(world):
    text = "file = open('/proc/self/status')\n"
    assert refused(world, "", lib=text)[0].startswith("a library keeps /proc/")


def test_a_library_that_reads_a_file_of_the_project_is_left_to_the_program(world):
    world.write("lib.conf", "one")
    text = "word = open('lib.conf').read()\n"
    why, shown = refused(world, "print(lib.word)\n", {"lib.conf": "two"}, lib=text)
    assert why.startswith("an import reads ")
    assert shown == "two\n"


def test_each_fork_has_random_numbers_of_its_own(world):
    python = environment(world, lib="import random\n")
    text = "import random\nprint(random.random(), os.urandom(4))\n"
    world.write("run.py", HEAD + text)
    cold, forked = both(world, [python, "run.py"])
    assert len({one["output"][0] for one in (cold, *forked)}) == 3
