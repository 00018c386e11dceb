# mypy: ignore-errors
import os
import threading
from concurrent.futures import ThreadPoolExecutor

print("parent", flush=True)


def job(n):
    return n * n


with ThreadPoolExecutor(3) as pool:  # whatever an edit does to it, their order is not told
    print(sorted(pool.map(job, range(3))))


def child(code):
    pid = os.fork()
    if pid == 0:
        with open(f"child{code}.txt", "w") as file:
            file.write("from the child")
        os._exit(code)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


print(child(3))
first = child(0)
print(first)
near, far = os.pipe()
os.write(far, b"through")
print(os.read(near, 10))
os.close(far)
os.close(near)
event = threading.Event()
waiter = threading.Thread(target=event.wait, daemon=True)
waiter.start()
print("waiting", waiter.daemon)
event.set()
waiter.join()
print("joined")
lock = threading.Lock()
with lock:
    print("locked", lock.locked())
print("end")
