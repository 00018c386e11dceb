"""The same, where the end of the other thread is waited for."""

import threading

results = []


def compute():
    results.append(sum(range(100)))


worker = threading.Thread(target=compute)
worker.start()
worker.join()
assert results == [4950], "the result is not there yet"
