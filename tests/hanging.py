"""Programs that hang, and programs that are only quiet; and all of them run at once, watched.

`python -m tests.hanging NAME...` runs them beside each other and prints what was found, as JSON.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from relaunch.proc.supervise import supervise
from relaunch.trial.hang.beside import HangWatch

SILENCE_S, HEALTHY_S = 3.0, 6.5
"""After this long a suspect counts as hung, and this long a healthy program is watched."""
LONGEST_S = 240.0
"""Only a deadlock that is not recognised at all runs this long."""
NEVER_S = 1000.0
"""What is certain does not wait for a silence."""
AT_ONCE = 14

# --- these can never go on: certain within five seconds -------------------------------------------

DEADLOCKS = {
    "two locks in two orders": """
        import threading, time
        a, b = threading.Lock(), threading.Lock()
        def hold(one, other):
            with one:
                time.sleep(0.1)
                with other: pass
        for pair in ((a, b), (b, a)):
            threading.Thread(target=hold, args=pair).start()
    """,
    "a lock taken twice": """
        import threading
        lock = threading.Lock()
        with lock:
            lock.acquire()
    """,
    "a queue that nobody fills": """
        import queue
        queue.Queue().get()
    """,
    "a queue whose work is never called done": """
        import queue, threading
        q = queue.Queue()
        def work():
            while True: q.get()
        threading.Thread(target=work, daemon=True).start()
        q.put(1); q.join()
    """,
    "a condition that was notified too early": """
        import threading
        c = threading.Condition()
        with c: c.notify()
        with c: c.wait()
    """,
    "a barrier with one thread too few": """
        import threading
        b = threading.Barrier(3)
        threading.Thread(target=b.wait).start()
        b.wait()
    """,
    "a thread is joined that waits for our lock": """
        import threading
        lock = threading.Lock()
        def work():
            with lock: pass
        with lock:
            t = threading.Thread(target=work); t.start(); t.join()
    """,
    "a task of a pool waits for another of the same pool": """
        from concurrent.futures import ThreadPoolExecutor
        pool = ThreadPoolExecutor(1)
        pool.submit(lambda: pool.submit(print).result()).result()
    """,
    "an event of asyncio that is never set": """
        import asyncio
        async def main(): await asyncio.Event().wait()
        asyncio.run(main())
    """,
    "a future of asyncio that nobody resolves": """
        import asyncio
        async def work(): pass
        async def main():
            done = asyncio.get_running_loop().create_future()
            async def finish(): done.set_result(1)
            finish  # never awaited, nor even called
            await done
        asyncio.run(main())
    """,
    "a coroutine of asyncio that is never awaited": """
        import asyncio
        async def main():
            ready = asyncio.Event()
            async def prepare(): ready.set()
            never = prepare()  # made, and neither awaited nor given to the loop
            await ready.wait()
        asyncio.run(main())
    """,
    "the loop of asyncio waits for itself in a thread": """
        import asyncio
        async def work(): return 1
        async def main():
            loop = asyncio.get_running_loop()
            asyncio.run_coroutine_threadsafe(work(), loop).result()
        asyncio.run(main())
    """,
    "a child waits on a queue of multiprocessing": """
        import multiprocessing as mp
        def work(q): q.get()
        q = mp.get_context("fork").Queue()
        p = mp.get_context("fork").Process(target=work, args=(q,)); p.start(); p.join()
    """,
    "a child is joined before its queue is read": """
        import multiprocessing as mp
        def work(q): q.put("x" * 1_000_000)
        q = mp.get_context("fork").Queue()
        p = mp.get_context("fork").Process(target=work, args=(q,)); p.start(); p.join()
    """,
    "a spawned child waits on a queue": """
        import multiprocessing as mp
        def work(q): q.get()
        if __name__ == "__main__":
            c = mp.get_context("spawn")
            q = c.Queue()
            p = c.Process(target=work, args=(q,)); p.start(); p.join()
    """,
    "a fork while another thread had a lock": """
        import os, threading, time
        lock = threading.Lock()
        def work():
            with lock: time.sleep(0.2)
        threading.Thread(target=work).start()
        time.sleep(0.05)
        if os.fork() == 0:
            lock.acquire()
        os.wait()
    """,
    "a worker died with a lock of multiprocessing": """
        import multiprocessing as mp, os
        lock = mp.get_context("fork").Lock()
        def work():
            lock.acquire(); os._exit(0)
        p = mp.get_context("fork").Process(target=work); p.start(); p.join()
        lock.acquire()
    """,
    "both ends of a pipe of multiprocessing wait": """
        import multiprocessing as mp
        one, two = mp.Pipe()
        p = mp.get_context("fork").Process(target=two.recv); p.start()
        one.recv()
    """,
    "a worker of a pool waits for a worker that will not come": """
        import multiprocessing as mp
        def work(n): barrier.wait()
        c = mp.get_context("fork")
        barrier = c.Barrier(3)
        with c.Pool(2) as pool: pool.map(work, range(2), chunksize=1)
    """,
    "a queue of a manager that nobody fills": """
        import multiprocessing as mp
        with mp.get_context("fork").Manager() as manager:
            manager.Queue().get()
    """,
    "a thread of C waits with the GIL in its hands": """
        import ctypes, threading, time
        libc, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)
        def work():
            while True: time.sleep(0.02)
        threading.Thread(target=work, daemon=True).start()
        libc.pthread_mutex_lock(mutex)
        libc.pthread_mutex_lock(mutex)
    """,
    "the output of a child fills its pipe": """
        import subprocess, sys
        subprocess.Popen([sys.executable, "-S", "-c", "print('x' * 1_000_000)"],
                         stdout=subprocess.PIPE).wait()
    """,
    "parent and child both write to a full pipe": """
        import subprocess, sys
        child = "import sys; sys.stdout.write('x' * 1_000_000); sys.stdin.read()"
        p = subprocess.Popen([sys.executable, "-S", "-c", child],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        p.stdin.write(b"y" * 1_000_000)
    """,
    "the end of a pipe never comes: we hold it ourselves": """
        import os
        near, far = os.pipe()
        os.read(near, 1)
    """,
    "the child of a shell waits for its parent": """
        import subprocess
        p = subprocess.Popen(["sh", "-c", "cat; true"], stdin=subprocess.PIPE)
        p.wait()
    """,
    "both ends of a socket pair listen": """
        import socket, threading
        a, b = socket.socketpair()
        threading.Thread(target=a.recv, args=(1,)).start()
        b.recv(1)
    """,
    "two processes read from each other over loopback": """
        import os, socket
        server = socket.create_server(("127.0.0.1", 0))
        if os.fork() == 0:
            server.accept()[0].recv(1)
        socket.create_connection(server.getsockname()).recv(1)
    """,
    "a client asks a server of its own that is deadlocked": """
        import socket, threading
        lock = threading.Lock(); lock.acquire()
        server = socket.create_server(("127.0.0.1", 0))
        def serve():
            connection, _ = server.accept()
            with lock: connection.send(b"x")
        threading.Thread(target=serve).start()
        socket.create_connection(server.getsockname()).recv(1)
    """,
    "a lock on a file that we have ourselves": """
        import fcntl
        a, b = open(__file__), open(__file__)
        fcntl.flock(a, fcntl.LOCK_EX)
        fcntl.flock(b, fcntl.LOCK_EX)
    """,
    "two processes take locks on files in two orders": """
        import fcntl, os, time, tempfile
        names = [tempfile.mkstemp()[1] for _ in range(2)]
        if os.fork() == 0: names.reverse()
        files = [open(name, "w") for name in names]
        fcntl.lockf(files[0], fcntl.LOCK_EX)
        time.sleep(0.3)
        try: fcntl.lockf(files[1], fcntl.LOCK_EX)
        except OSError: fcntl.flock(files[1], fcntl.LOCK_EX); open(os.pipe()[0]).read()
        os.wait()
    """,
    "an event of the kernel that nobody writes": """
        import os
        os.eventfd_read(os.eventfd(0))
    """,
}

# --- these hang too, but something ends their waits by itself: suspects after a silence -----------

SUSPECTS = {
    "polling for what never comes": """
        import time
        done = []
        while not done: time.sleep(0.05)
    """,
    "waits with a time limit, again and again": """
        import threading
        stop = threading.Event()
        while not stop.wait(0.1): pass
    """,
    "a task of asyncio polls": """
        import asyncio
        async def main():
            while True: await asyncio.sleep(0.05)
        asyncio.run(main())
    """,
    "spinning in Python": """
        done = False
        while not done: pass
    """,
    "spinning in C, as one who waits for a GPU": """
        import collections, itertools
        collections.deque(itertools.repeat(0), maxlen=0)
    """,
    "a named pipe that nobody opens": """
        import os, tempfile
        name = tempfile.mktemp(); os.mkfifo(name)
        open(name)
    """,
    "a child is deadlocked, and its parent looks now and then": """
        import os, threading, time
        if (pid := os.fork()) == 0:
            lock = threading.Lock(); lock.acquire(); lock.acquire()
        while os.waitpid(pid, os.WNOHANG) == (0, 0): time.sleep(0.1)
    """,
    "a program with CUDA, whose driver listens, waits for an event": r"""
        import os, socket, threading
        driver = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        driver.bind(f"\0cuda-uvmfd-1-{os.getpid()}"); driver.listen()
        threading.Thread(target=driver.accept, daemon=True).start()
        threading.Event().wait()
    """,
    "a lock that is lost while a server is idle": """
        import socket, threading
        server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=server.accept, daemon=True).start()
        lock = threading.Lock(); lock.acquire()
        with lock: pass
    """,
}

# --- nothing is wrong with these ------------------------------------------------------------------

HEALTHY = {
    "sleep": "import time; time.sleep(60)",
    "the sleep of a shell": "import os; os.execlp('sleep', 'sleep', '60')",
    "a thread that sleeps is joined": """
        import threading, time
        t = threading.Thread(target=time.sleep, args=(60,)); t.start(); t.join()
    """,
    "asyncio sleeps": "import asyncio; asyncio.run(asyncio.sleep(60))",
    "a timer of threading": """
        import threading
        t = threading.Timer(60, print); t.start(); t.join()
    """,
    "a child that sleeps is waited for": "import subprocess; subprocess.run(['sleep', '60'])",
    "a shell waits for a job that sleeps": """
        import os; os.execlp("sh", "sh", "-c", "sleep 60 & wait")
    """,
    "a pipeline whose first sleeps": """
        import os; os.execlp("sh", "sh", "-c", "sleep 60 | cat")
    """,
    "asyncio waits for a child that sleeps": """
        import asyncio
        async def main():
            p = await asyncio.create_subprocess_exec("sleep", "60"); await p.wait()
        asyncio.run(main())
    """,
    "the output of a child that sleeps": """
        import subprocess; subprocess.run(["sleep", "60"], capture_output=True)
    """,
    "input()": "input()",
    "all of standard input": "import sys; sys.stdin.read()",
    "cat": "import os; os.execlp('cat', 'cat')",
    "a line is read by a shell": "import os; os.execlp('sh', 'sh', '-c', 'read line')",
    "an interactive Python": "import os, sys; os.execl(sys.executable, sys.executable, '-S', '-i')",
    "a debugger's prompt": "import pdb; pdb.set_trace(); x = 1",
    "input in a thread, the main thread waits": """
        import threading
        t = threading.Thread(target=input); t.start(); t.join()
    """,
    "tail -f": "import os; os.execlp('tail', 'tail', '-f', __file__)",
    "accept": "import socket; socket.create_server(('127.0.0.1', 0)).accept()",
    "accept in a thread, the main thread waits": """
        import socket, threading
        server = socket.create_server(("127.0.0.1", 0))
        t = threading.Thread(target=server.accept); t.start(); t.join()
    """,
    "accept, with idle threads that wait for work": """
        import queue, socket, threading
        q = queue.Queue()
        for _ in range(3): threading.Thread(target=q.get, daemon=True).start()
        socket.create_server(("127.0.0.1", 0)).accept()
    """,
    "accept in forked workers": """
        import os, socket
        server = socket.create_server(("127.0.0.1", 0))
        for _ in range(2):
            if os.fork() == 0: server.accept()
        os.wait()
    """,
    "select on a server": """
        import select, socket
        select.select([socket.create_server(("127.0.0.1", 0))], [], [])
    """,
    "poll on a server": """
        import select, socket
        server = socket.create_server(("127.0.0.1", 0))
        poll = select.poll(); poll.register(server); poll.poll()
    """,
    "epoll on a server": """
        import select, socket
        server = socket.create_server(("127.0.0.1", 0))
        poll = select.epoll(); poll.register(server); poll.poll()
    """,
    "a server of asyncio": """
        import asyncio
        async def serve(reader, writer): pass
        async def main():
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            await server.serve_forever()
        asyncio.run(main())
    """,
    "http.server": """
        import http.server
        http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                        http.server.SimpleHTTPRequestHandler).serve_forever()
    """,
    "a Unix server": """
        import socket, tempfile
        server = socket.socket(socket.AF_UNIX); server.bind(tempfile.mktemp()); server.listen()
        server.accept()
    """,
    "a Unix server without a path": r"""
        import os, socket
        server = socket.socket(socket.AF_UNIX); server.bind(f"\0rl-{os.getpid()}"); server.listen()
        server.accept()
    """,
    "datagrams": """
        import socket
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0)); s.recv(1)
    """,
    "Unix datagrams": """
        import socket, tempfile
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(tempfile.mktemp()); s.recv(1)
    """,
    "a slow server elsewhere": """
        import os, socket
        socket.create_connection(("127.0.0.1", int(os.environ["ELSEWHERE"]))).recv(1)
    """,
    "a slow server elsewhere, asked by asyncio": """
        import asyncio, os
        async def main():
            r, w = await asyncio.open_connection("127.0.0.1", int(os.environ["ELSEWHERE"]))
            await r.read(1)
        asyncio.run(main())
    """,
    "a slow server in a thread of its own": """
        import socket, threading, time
        server = socket.create_server(("127.0.0.1", 0))
        def serve():
            connection, _ = server.accept(); time.sleep(60); connection.send(b"x")
        threading.Thread(target=serve).start()
        socket.create_connection(server.getsockname()).recv(1)
    """,
    "a slow child over a socket pair": """
        import os, socket, time
        a, b = socket.socketpair()
        if os.fork() == 0: time.sleep(60)
        b.close(); a.recv(1)
    """,
    "a socket pair with a time limit of its own": """
        import socket, struct
        a, b = socket.socketpair()
        a.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 60, 0)); a.recv(1)
    """,
    "a socket pair with a time limit of Python": """
        import socket
        a, b = socket.socketpair(); a.settimeout(60); a.recv(1)
    """,
    "a queue with a time limit": "import queue; queue.Queue().get(timeout=60)",
    "an event with a time limit": "import threading; threading.Event().wait(60)",
    "a lock with a time limit": """
        import threading
        lock = threading.Lock(); lock.acquire(); lock.acquire(timeout=60)
    """,
    "a child with a time limit": """
        import multiprocessing as mp, threading
        p = mp.get_context("fork").Process(target=threading.Event().wait); p.start(); p.join(60)
        p.kill()
    """,
    "a time limit of asyncio": """
        import asyncio
        asyncio.run(asyncio.wait_for(asyncio.Event().wait(), 60))
    """,
    "a timer of the kernel wakes who waits for a lock": """
        import signal, threading
        signal.signal(signal.SIGALRM, lambda *_: None); signal.alarm(60)
        lock = threading.Lock(); lock.acquire(); lock.acquire()
    """,
    "pause": "import signal; signal.pause()",
    "sigwait": "import signal; signal.sigwait([signal.SIGUSR1])",
    "an event that a signal sets": """
        import signal, threading
        event = threading.Event()
        signal.signal(signal.SIGUSR1, lambda *_: event.set()); event.wait()
    """,
    "asyncio waits for SIGTERM": """
        import asyncio, signal
        async def main():
            stop = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
            await stop.wait()
        asyncio.run(main())
    """,
    "computing in Python": """
        def work():
            x = 0
            for i in range(10**12): x += i
        work()
    """,
    "computing in C": "import hashlib; hashlib.pbkdf2_hmac('sha256', b'x', b'y', 10**9)",
    "a child computes": """
        import subprocess, sys
        subprocess.run([sys.executable, "-S", "-c",
                        "def f():\\n for i in range(10**12): x = i\\nf()"])
    """,
    "waiting for a file": """
        import os, time
        while not os.path.exists("/nowhere/yet"): time.sleep(0.1)
    """,
    "idle workers beside one that sleeps": """
        from concurrent.futures import ThreadPoolExecutor
        import time
        pool = ThreadPoolExecutor(4)
        list(pool.map(time.sleep, [0, 0, 0, 60]))
    """,
    "idle processes beside one that sleeps": """
        import multiprocessing as mp, time
        with mp.get_context("fork").Pool(3) as pool: pool.map(time.sleep, [0, 60], chunksize=1)
    """,
    "a lock on a file that another has": """
        import fcntl, os
        fcntl.flock(open(os.environ["LOCKED"]), fcntl.LOCK_EX)
    """,
    "a lock of POSIX on a file that another has": """
        import fcntl, os
        fcntl.lockf(open(os.environ["LOCKED_TOO"], "w"), fcntl.LOCK_EX)
    """,
    "a named pipe that another has open": """
        import os
        open(os.environ["NAMED"]).read()
    """,
    "a named semaphore that another may post": """
        import _multiprocessing, os
        _multiprocessing.SemLock(1, 0, 1, os.environ["SEMAPHORE"], False).acquire()
    """,
    "a process elsewhere is waited for": """
        import os, select
        poll = select.poll(); poll.register(os.pidfd_open(int(os.environ["OTHER"]))); poll.poll()
    """,
    "stopped by a signal": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "a shell polls": "import os; os.execlp('sh', 'sh', '-c', 'while :; do sleep 0.2; done')",
    "changes of a folder are waited for": """
        import ctypes, os
        libc = ctypes.CDLL(None); fd = libc.inotify_init()
        libc.inotify_add_watch(fd, b"/tmp", 0x100000); os.read(fd, 100)
    """,
}
NEVER_SUSPECT = frozenset(HEALTHY) - {
    "computing in C", "waiting for a file", "a shell polls", "a child with a time limit",
    "a named pipe that another has open", "a socket pair with a time limit of its own",
    "a process elsewhere is waited for",
}  # fmt: skip
"""Of the healthy, those that are not even suspected; the others stay at one place, or poll."""

SAID = {
    "accept": "waits for connections at 127.0.0.1:",
    "sleep": "waits for the end of a sleep in ",
    "input()": "waits for standard input, from process ",
    "a slow server elsewhere": "waits for 127.0.0.1:",
    "an event that a signal sets": "waits for SIGUSR1",
    "a lock on a file that another has": "waits for process ",
}
"""What is said of some of the healthy; one of which it was not yet said is watched for longer."""

PROGRAMS = {**DEADLOCKS, **SUSPECTS, **HEALTHY}


# --- all of them at once --------------------------------------------------------------------------


def run(
    names: list[str],
    *,
    python: str = sys.executable,
    silence_s: float = SILENCE_S,
    longest_s: float = LONGEST_S,
) -> dict[str, dict[str, Any]]:
    """Run programs, some beside each other, each watched; return what was found of each."""
    if len(names) > AT_ONCE:
        parts = (names[:AT_ONCE], names[AT_ONCE:])
        both = [
            run(part, python=python, silence_s=silence_s, longest_s=longest_s) for part in parts
        ]
        return {**both[0], **both[1]}
    asked = subprocess.run(
        [sys.executable, "-m", "tests.hanging", python, str(silence_s), str(longest_s), *names],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, dict[str, Any]] = json.loads(asked.stdout)
    return found


def _source(name: str) -> str:
    from textwrap import dedent

    return f"print('ready', flush=True)\n{dedent(PROGRAMS[name])}"


def _watched(name: str, folder: str, words: list[str], env: dict[str, str], out: int) -> None:
    """Run one of them as `rl` would, and write what was found of it."""
    python, silence_s, longest_s = words
    path = os.path.join(folder, "".join(c if c.isalnum() else "_" for c in name) + ".py")
    Path(path).write_text(_source(name))
    silence = NEVER_S if name in DEADLOCKS else float(silence_s)
    for limit_s in (HEALTHY_S, float(longest_s)) if name in HEALTHY else (float(longest_s),):
        said: list[str] = []
        watch = HangWatch(silence, "kill", folder="", roots=[folder], say=said.append)
        supervise(
            [python, "-S", "-W", "ignore", path],
            cwd=folder,
            env=env,
            chunk=lambda _when, _stream, _data: None,
            timeout_s=limit_s,
            quiet=True,
            companions=[watch],
        )
        if SAID.get(name, "") in " ".join(said):
            break
    os.write(out, json.dumps({"reached": dict(watch.reached()), "said": said}).encode())


def main(words: list[str]) -> None:
    """Fork a watched run for each program, and collect what they found."""
    names = words[3:]
    with tempfile.TemporaryDirectory(prefix="rl-hanging-") as folder:
        world = _World(folder)
        waiting = {}
        for name in names:
            near, far = os.pipe()
            pid = os.fork()
            if pid == 0:
                try:
                    os.setsid()
                    os.dup2(world.stdin, 0)
                    world.let_go()
                    os.close(near)
                    _watched(name, folder, words[:3], world.env, far)
                finally:
                    os._exit(0)
            os.close(far)
            waiting[name] = pid, near
        found = {}
        for name, (pid, near) in waiting.items():
            with open(near, "rb") as file:
                found[name] = json.loads(file.read() or b"{}")
            os.waitpid(pid, 0)
        world.let_go()
        Path("/dev/shm/sem." + world.env["SEMAPHORE"][1:]).unlink(missing_ok=True)
    print(json.dumps(found))


class _World:
    """What is outside of the programs: somebody at the other ends, who does nothing."""

    def __init__(self, folder: str) -> None:
        self.stdin, self._typist = os.pipe()
        server = socket.create_server(("127.0.0.1", 0))
        named = os.path.join(folder, "named")
        os.mkfifo(named)
        locked = [os.path.join(folder, name) for name in ("locked", "locked_too")]
        files = [open(path, "w") for path in locked]  # noqa: SIM115  # for as long as we are there
        fcntl.flock(files[0], fcntl.LOCK_EX)
        fcntl.lockf(files[1], fcntl.LOCK_EX)
        self._ours: list[Any] = [*files, os.fdopen(os.open(named, os.O_RDWR), "wb"), server]
        self.env = {
            **os.environ,
            "ELSEWHERE": str(server.getsockname()[1]),
            "LOCKED": locked[0],
            "LOCKED_TOO": locked[1],
            "NAMED": named,
            "OTHER": str(os.getpid()),
            "SEMAPHORE": f"/rl-test-{os.getpid()}",
            "TMPDIR": folder,
        }
        self._closed = False

    def let_go(self) -> None:
        """Close our ends: who is forked does not have them."""
        if not self._closed:
            self._closed = True
            os.close(self.stdin)
            os.close(self._typist)
            for one in self._ours:
                one.close()


if __name__ == "__main__":
    main(sys.argv[1:])
