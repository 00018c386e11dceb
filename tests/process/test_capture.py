"""What is kept of a failed call, in real processes; and that the program never notices."""

from __future__ import annotations

import json
import os
import stat
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.process.test_hook import PYTHONS as EVERY_PYTHON
from tests.process.test_hook import Run as HookRun
from tests.process.test_hook import bare_env, version_of

from relaunch.inside.protocol import capturing

SECRET = "sk-3f9a71c2d4e5b6a7"


class Run(HookRun):
    """One program run without and with the hook that keeps failed calls."""

    def __init__(self, tmp_path: Path, source: str, **more: Any) -> None:
        self.root = tmp_path
        (tmp_path / "reports").mkdir(exist_ok=True)
        self.limits = {"budget": 64 << 20, "limit_s": 5.0, **more.pop("limits", {})}
        self.secrets = more.pop("secrets", ())
        python = more.pop("python", sys.executable)
        options = more.pop("options", ())
        super().__init__(tmp_path, python, source, *options, reports=tmp_path / "reports", **more)

    def _run(self, argv: Any, env: Any, cwd: Any) -> Any:
        if "RELAUNCH_HOOK" in env:
            env = {
                **env,
                **capturing(**self.limits, secrets=self.secrets, roots=[str(self.root)]),
            }
        return super()._run(argv, env, cwd)

    @property
    def facts(self) -> list[dict[str, Any]]:
        found = sorted((self.root / "capture").glob("*/facts.json"))
        return [json.loads(path.read_text()) for path in found]

    @property
    def bytes(self) -> bytes:
        """All that was written."""
        files = [path for path in (self.root / "capture").rglob("*") if path.is_file()]
        return b"".join(path.read_bytes() for path in files)


def test_a_failed_call_is_kept_for_its_owner_alone(tmp_path):
    run = Run(tmp_path, "def f(x):\n    return x / 0\nf(1)\n")
    assert run.hooked == run.plain
    (facts,) = run.facts
    assert [frame["qualname"] for frame in facts["frames"]] == ["<module>", "f"]
    assert facts["error"]["type"] == "ZeroDivisionError"
    for path in [tmp_path / "capture", *(tmp_path / "capture").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_nothing_is_kept_of_a_program_that_does_not_fail(tmp_path):
    run = Run(tmp_path, "try:\n    1 / 0\nexcept ZeroDivisionError:\n    print('dealt with')\n")
    assert run.hooked == run.plain
    assert not (tmp_path / "capture").exists()


@pytest.mark.parametrize("last", ["KeyboardInterrupt", "SystemExit(3)"])
def test_who_asks_to_stop_has_not_failed(tmp_path, last):
    run = Run(tmp_path, f"raise {last}\n")
    assert run.hooked == run.plain
    assert not (tmp_path / "capture").exists()


@pytest.mark.parametrize("python", EVERY_PYTHON, ids=version_of)
def test_every_python_fails_as_without_us(tmp_path, python):
    run = Run(tmp_path, "def f(x):\n    return x / 0\nf(1)\n", python=python)
    assert run.hooked == run.plain
    version = version_of(python)
    is_new = version == "this" or tuple(map(int, version.split(".")[:2])) >= (3, 11)
    assert bool(run.facts) == is_new


ENDINGS = {
    "an excepthook of its own": "import sys; sys.excepthook = lambda *e: print('mine'); f(1)",
    "an excepthook that fails": "import sys; sys.excepthook = lambda *e: 1 / 0; f(1)",
    "the end of the process": "import os\ntry:\n    f(1)\nfinally:\n    os._exit(7)",
    "a signal": "import os\ntry:\n    f(1)\nfinally:\n    os.kill(os.getpid(), 9)",
    "an exit handler that fails": "import atexit; atexit.register(divmod, 1, 0); f(1)",
    "an exit handler that prints": "import atexit; atexit.register(print, 'bye'); f(1)",
    "a daemon thread": "import threading, time\n"
    "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nf(1)",
    "a handler for children": "import signal\n"
    "signal.signal(signal.SIGCHLD, lambda *a: print('child!'))\nf(1)",
    "children that nobody waits for": "import signal\n"
    "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nf(1)",
    "a folder that is gone": "import os\nos.mkdir('d'); os.chdir('d'); os.rmdir('../d'); f(1)",
    "closed streams": "import os, sys\nsys.stdout.close(); f(1)",
    "unflushed output": "print('x' * 100, end=''); f(1)",
    "a handler at fork": "import os\n"
    "os.register_at_fork(after_in_child=lambda: print('forked', flush=True))\nf(1)",
    "warnings as errors": "import warnings, threading, time\nwarnings.simplefilter('error')\n"
    "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nf(1)",
    "mocks left in place": "import builtins, os, time\n"
    "builtins.open = os.open = os.write = os.fork = lambda *a, **k: 1 / 0\n"
    "os.rename = time.time = time.monotonic = os.getpid = os.open\nf(1)",
    "no recursion left": "import sys\nsys.setrecursionlimit(60)\nf(1)",
    "a full process table": "import resource\n"
    "resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))\nf(1)",
    "a full disk": "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\nf(1)",
    "no files left": "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))\nf(1)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_program_ends_as_without_us_with(tmp_path, ending):
    run = Run(tmp_path, f"def f(x):\n    return x / 0\n{ENDINGS[ending]}\n")
    assert run.hooked == run.plain
    assert [path.name for path in (tmp_path / "capture").glob(".*")] == []


OBJECTS = {
    "loud": "def __getstate__(self):\n        print('seen'); os.write(1, b'seen'); return {}",
    "hanging": "def __getstate__(self):\n        time.sleep(60)",
    "busy": "def __reduce__(self):\n        while True: pass",
    "crashing": "def __reduce__(self):\n        os.abort()",
    "exiting": "def __reduce__(self):\n        os._exit(0)",
    "greedy": "def __reduce__(self):\n        return (bytearray, (1 << 34,), bytearray(1 << 30))",
    "meddling": "def __reduce__(self):\n        os.unlink('keep.txt'); return (int, ())",
    "raising what is no exception": "def __reduce__(self):\n        raise KeyboardInterrupt",
    "odd": "def __reduce__(self):\n        return 5",
    "lying": "__class__ = property(lambda self: 1 / 0)",
    "endless": "def __getattr__(self, name):\n        return type(self)()",
}


@pytest.mark.parametrize("which", OBJECTS)
def test_an_object_cannot_break_the_program_by_being_kept(tmp_path, which):
    source = f"""\
import os, time
class Odd:
    {OBJECTS[which]}
def f(odd, x):
    return x / 0
f(Odd(), 1)
"""
    run = Run(tmp_path, source, limits={"limit_s": 0.5})
    assert run.hooked == run.plain


def test_neighbours_of_an_object_that_cannot_be_kept_stay(tmp_path):
    run = Run(
        tmp_path,
        """\
        import socket
        def f(rows, table, x):
            return x / 0
        f([1, socket.socket(), 3], {"a": open("/etc/hosts"), "b": (i for i in range(3))}, 1)
        """,
    )
    (facts,) = run.facts
    frame = facts["frames"][-1]
    assert any(one.startswith("rows[1]: a socket.socket") for one in frame["missing"])
    assert frame["notes"] == ["table['a']: file /etc/hosts: opened again at byte 0"]
    assert frame["kept"]


def test_endless_recursion_keeps_both_ends(tmp_path):
    run = Run(tmp_path, "def f(n):\n    return f(n + 1)\nf(0)\n")
    assert run.hooked == run.plain
    (facts,) = run.facts
    assert len(facts["frames"]) == 30
    assert facts["depth"] > 500


def test_a_program_out_of_memory_keeps_little(tmp_path):
    run = Run(
        tmp_path,
        """\
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
        def f(kept, size):
            return bytearray(size)
        f(bytearray(40 << 20), 1 << 31)
        """,
    )
    assert run.hooked == run.plain
    assert len(run.bytes) < 4 << 20


def test_what_is_over_the_budget_is_named(tmp_path):
    source = "def f(big, small):\n    return small / 0\nf(list(range(500_000)), 1)\n"
    run = Run(tmp_path, source, limits={"budget": 1 << 20})
    assert run.hooked == run.plain
    (facts,) = run.facts
    assert facts["frames"][-1]["missing"] == ["big: a list (over the budget)"]
    assert len(run.bytes) < 2 << 20


def test_threads_and_workers_are_named(tmp_path):
    run = Run(
        tmp_path,
        """\
        import multiprocessing, threading
        def f(x):
            return x / 0
        if __name__ == "__main__":
            thread = threading.Thread(target=f, args=(1,), name="a thread")
            thread.start(); thread.join()
            context = multiprocessing.get_context("fork")
            process = context.Process(target=f, args=(2,), name="a process")
            process.start(); process.join()
            try:
                with context.Pool(1) as pool:
                    pool.map(f, [3])
            except ZeroDivisionError:
                print("caught")
        """,
    )
    assert run.hooked[:2] == run.plain[:2]
    who = sorted(facts["who"] for facts in run.facts)
    assert who == ["a process", "a thread", "ForkPoolWorker-2"] or len(who) == 3


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_fail_as_without_us(tmp_path, method):
    run = Run(
        tmp_path,
        f"""\
        import multiprocessing, traceback
        from concurrent.futures import ProcessPoolExecutor
        def f(x):
            traceback.print_stack(limit=1)
            return x / 0
        class Own(multiprocessing.get_context("{method}").Process):
            def run(self):
                f(5)
        if __name__ == "__main__":
            process = Own(name="own")
            process.start(); process.join()
            print(process.exitcode, process.name)
            context = multiprocessing.get_context("{method}")
            with ProcessPoolExecutor(1, context) as pool:
                print(repr(pool.submit(f, 1).exception()))
            with context.Pool(1) as pool:
                pool.apply(f, (2,))
        """,
    )
    assert run.hooked == run.plain
    assert len(run.facts) >= 3
    assert {facts["error"]["type"] for facts in run.facts} == {"ZeroDivisionError"}


def test_a_worker_that_is_asked_again_keeps_its_first_failure_only(tmp_path):
    run = Run(
        tmp_path,
        """\
        import multiprocessing
        def f(x):
            return x / 0
        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(1) as pool:
                for n in range(20):
                    try:
                        pool.apply(f, (n,))
                    except ZeroDivisionError:
                        pass
            print("done")
        """,
    )
    assert run.hooked == run.plain
    assert len(run.facts) == 1


def test_failures_without_end_are_not_kept_without_end(tmp_path):
    run = Run(
        tmp_path,
        """\
        import threading
        threading.excepthook = lambda args: None
        def f(x):
            return x / 0
        for n in range(50):
            thread = threading.Thread(target=f, args=(n,))
            thread.start(); thread.join()
        f(1)
        """,
    )
    assert run.hooked == run.plain
    assert len(run.facts) <= 3


SECRETS = f"""
class Client:
    def __init__(self, token):
        self.headers = {{"Authorization": "Bearer " + token}}
        self.options = {{"retries": 3}}
def call(client, api_key, url, password, token):
    return 1 / 0
call(Client("{SECRET}"), "{SECRET}", "https://u:{SECRET}@host/", "hunter2", "word")
"""


def test_secrets_are_not_kept(tmp_path):
    run = Run(tmp_path, SECRETS)
    assert run.hooked == run.plain
    (facts,) = run.facts
    assert SECRET.encode() not in run.bytes
    assert b"hunter2" not in run.bytes.replace(b'"hunter2"', b"")
    assert set(facts["secrets"].values()) >= {"api_key", "password"}


def test_secrets_of_the_environment_are_not_kept(tmp_path):
    source = """\
        import os
        def call(text, raw):
            raise ValueError("no " + text)
        call(os.environ["HF_TOKEN"], bytearray(os.environ["HF_TOKEN"].encode()))
        """
    run = Run(tmp_path, source, env={"HF_TOKEN": SECRET}, secrets=["HF_TOKEN"])
    assert run.hooked == run.plain
    assert SECRET.encode() not in run.bytes
    assert run.facts[0]["error"]["message"] == "no <HF_TOKEN>"


def test_modules_of_ours_are_not_among_the_programs(tmp_path):
    run = Run(
        tmp_path,
        """\
        import atexit, sys
        atexit.register(lambda: print(sorted(m for m in sys.modules if "relaunch" in m)))
        def f(x):
            return x / 0
        f(1)
        """,
    )
    assert run.hooked == run.plain
    assert run.facts


def test_files_of_the_user_named_like_the_standard_library_are_left_alone(tmp_path):
    for name in ("pickle", "json", "copyreg", "opcode", "zlib", "random", "re", "enum", "typing"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('never import me')\n")
    run = Run(tmp_path, "def f(x):\n    return x / 0\nf(1)\n")
    assert run.hooked == run.plain


def test_the_environment_says_what_a_capture_may_take():
    env = capturing(budget=5, limit_s=2.5, secrets=["A", "B"], roots=["/x", "/y"])
    assert env == {"RELAUNCH_CAPTURE": "5 2.5 A B", "RELAUNCH_ROOTS": "/x:/y"}
    assert os.pathsep == ":"
    assert bare_env()["LANG"] == textwrap.dedent("C.UTF-8")
