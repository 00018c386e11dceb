"""A queue is asked whether it has something, and then emptied: another thread may be quicker."""

import queue
import threading

jobs = queue.Queue()
done = []
failed = []
for number in range(4):
    jobs.put(number)


def work():
    try:
        while not jobs.empty():
            done.append(jobs.get_nowait())
    except queue.Empty:
        failed.append(threading.current_thread().name)


threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failed, f"{failed} found nothing"
