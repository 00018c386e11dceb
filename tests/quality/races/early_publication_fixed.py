"""The same, where a server is made whole first."""

import threading

servers = {}
failures = []


class Server:
    def __init__(self):
        self.handlers = self.load()

    def load(self):
        return {"ping": lambda: "pong"}


def start():
    server = Server()
    servers["main"] = server


def ask():
    server = servers.get("main")
    if server is not None:
        try:
            server.handlers["ping"]()
        except AttributeError as error:
            failures.append(error)


threads = [threading.Thread(target=start), threading.Thread(target=ask)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if failures:
    raise failures[0]
