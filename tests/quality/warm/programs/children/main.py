# mypy: ignore-errors
import os
import threading

print("parent", flush=True)
results = [0, 0, 0]  # a place for each thread: their order is by chance


def job(n):
    results[n] = n * n


threads = [threading.Thread(target=job, args=(n,)) for n in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(results))


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
