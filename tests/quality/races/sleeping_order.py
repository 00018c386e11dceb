"""A sleep stands for waiting: it is long enough, until the other thread is slow for once."""

import threading
import time

results = []


def compute():
    results.append(sum(range(100)))


worker = threading.Thread(target=compute)
worker.start()
time.sleep(0.05)
assert results == [4950], "the result is not there yet"
worker.join()
