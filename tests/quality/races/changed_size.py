"""Sessions are counted while others are opened: a dict must not grow while it is gone through."""

import threading

sessions = dict.fromkeys(range(5), "open")
failures = []


def is_open(state):
    return state == "open"


def count():
    try:
        return sum(1 for state in sessions.values() if is_open(state))
    except RuntimeError as error:
        failures.append(error)


def grow():
    for number in range(5, 8):
        sessions[number] = "open"


threads = [threading.Thread(target=count), threading.Thread(target=grow)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if failures:
    raise failures[0]
