# mypy: ignore-errors
import logging
import sys

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
log = logging.getLogger("main")
file_handler = logging.FileHandler("run.log", mode="w")
file_handler.setFormatter(logging.Formatter("%(funcName)s:%(lineno)d %(message)s"))
log.addHandler(file_handler)
log.info("started")


def work(n):
    log.debug("hidden %s", n)
    log.info("working %s", n)
    if n > 1:
        log.warning("many: %d", n)
    return n * 2


class Memory(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


memory = Memory()
log.addHandler(memory)
total = 0
for n in range(3):
    total += work(n)
log.info("total %s", total)
other = logging.getLogger("main.other")
other.error("child")
try:
    work("x" * 2)
except TypeError:
    log.exception("failed")
print(memory.lines)
handler = logging.StreamHandler(sys.stdout)
log.addHandler(handler)
log.info("on stdout")
log.removeHandler(memory)
log.setLevel(logging.ERROR)
log.info("not shown")
log.error("shown")
