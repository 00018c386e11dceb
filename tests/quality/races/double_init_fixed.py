"""The same with a lock, and a second look under it."""

import threading

made = []


class Connection:
    def __init__(self):
        made.append(self)


class Service:
    _connection = None
    _lock = threading.Lock()

    def connection(self):
        if self._connection is None:
            with self._lock:
                if self._connection is None:
                    self._connection = Connection()
        return self._connection


service = Service()
threads = [threading.Thread(target=service.connection) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(made) == 1, f"{len(made)} connections"
