"""A connection is made when it is first asked for: two threads may both find none."""

import threading

made = []


class Connection:
    def __init__(self):
        made.append(self)


class Service:
    _connection = None

    def connection(self):
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
