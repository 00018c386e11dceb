"""The same, where an empty queue is the way to learn that it is empty."""

import queue
import threading

jobs = queue.Queue()
done = []
for number in range(4):
    jobs.put(number)


def work():
    while True:
        try:
            done.append(jobs.get_nowait())
        except queue.Empty:
            return


threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert sorted(done) == [0, 1, 2, 3]
