"""A balance is read, changed and written without a lock: an update of the other thread is lost."""

import threading

account = {"balance": 0}


def read():
    return account["balance"]


def write(value):
    account["balance"] = value


def pay(times):
    for _ in range(times):
        value = read()
        write(value + 1)


threads = [threading.Thread(target=pay, args=(10,)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert account["balance"] == 20, f"balance {account['balance']}"
