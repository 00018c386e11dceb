"""Programs that run out of space, each in its own way; their word is a folder of few bytes.

Each has the comment `# here` on the line that is to be blamed.
"""

PROGRAMS = {
    "parquet": """
import numpy, pyarrow, pyarrow.parquet, sys
table = pyarrow.table({"a": numpy.random.default_rng(0).random(1_000_000)})
def save():
    pyarrow.parquet.write_table(table, sys.argv[1] + "/out")  # here
save()
""",
    "sqlite": """
import os, sqlite3, sys
base = sqlite3.connect(sys.argv[1] + "/out")
base.execute("create table t (x blob)")
def fill():
    for _ in range(200):
        base.execute("insert into t values (?)", (os.urandom(100_000),))  # here
        base.commit()  # here
fill()
""",
    "numpy save": """
import numpy, sys
def save():
    numpy.save(open(sys.argv[1] + "/out", "wb"), numpy.ones(1_000_000))  # here
save()
""",
    "memmap": """
import numpy, sys
def fill(path):
    array = numpy.memmap(path, "u1", "w+", shape=(9_000_000,))
    array[:] = 7  # here
fill(sys.argv[1] + "/out")
""",
    "pickle": """
import os, pickle, sys
def dump(path):
    with open(path, "wb") as file:
        pickle.dump([os.urandom(1000) for _ in range(9_000)], file)  # here
dump(sys.argv[1] + "/out")
""",
    "tarfile": """
import io, os, sys, tarfile
def pack():
    with tarfile.open(sys.argv[1] + "/out", "w") as tar:
        info = tarfile.TarInfo("x"); info.size = 9_000_000
        tar.addfile(info, io.BytesIO(os.urandom(info.size)))  # here
pack()
""",
    "logging handler": """
import logging, sys
handler = logging.FileHandler(sys.argv[1] + "/out")
log = logging.getLogger(); log.addHandler(handler)
def talk():
    for _ in range(9):
        log.warning("x" * 1_000_000)  # here
talk()
sys.exit(3)
""",
    "swallowed exception": """
import sys
def save(path):
    try:
        with open(path, "wb", buffering=0) as file:
            for _ in range(9): file.write(b"x" * 1_000_000)  # here
    except OSError:
        pass
save(sys.argv[1] + "/out")
""",
    "TemporaryFile": """
import sys, tempfile
def spool():
    with tempfile.TemporaryFile(dir=sys.argv[1]) as file:
        file.write(b"x" * 9_000_000)  # here
spool()
""",
    "subprocess": """
import subprocess, sys
def run():
    subprocess.run(["dd", "if=/dev/zero", "bs=1M", f"of={sys.argv[1]}/out"], check=True)  # here
run()
""",
    "shell": """
import subprocess, sys
def run():
    subprocess.check_call("head -c 9000000 /dev/zero > " + sys.argv[1] + "/out", shell=True)  # here
run()
""",
    "threads": """
import sys, threading
def save(name):
    with open(sys.argv[1] + "/out" + name, "wb") as file:
        for _ in range(9): file.write(b"x" * 500_000)  # here
threads = [threading.Thread(target=save, args=(str(n),)) for n in range(3)]
for one in threads: one.start()
for one in threads: one.join()
""",
    "worker": """
import multiprocessing, sys
def save(path):
    with open(path, "wb") as file:
        file.write(b"x" * 9_000_000)  # here
if __name__ == "__main__":
    worker = multiprocessing.get_context("fork").Process(target=save, args=(sys.argv[1] + "/out",))
    worker.start(); worker.join()
    sys.exit(worker.exitcode)
""",
    "many files": """
import sys
def make():
    for n in range(900):
        open(sys.argv[1] + f"/out{n}", "w").write("x" * 9_000)  # here
make()
""",
}

SEMAPHORE = """
import multiprocessing
def fill():
    try:
        with open("/dev/shm/fill", "wb", buffering=0) as file:
            while True: file.write(b"x" * 4096)
    except OSError:
        pass
def lock():
    return multiprocessing.Lock()  # here
fill()
lock()
"""

TORCH = """
import sys, torch
def save():
    torch.save({"w": torch.ones(2_500_000)}, sys.argv[1] + "/out")  # here
save()
"""


def lines_to_blame(text: str) -> list[int]:
    """Return the numbers of the lines that are to be blamed."""
    return [number for number, line in enumerate(text.split("\n"), 1) if line.endswith("# here")]
