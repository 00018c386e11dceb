"""Money goes from an account to another, each with a lock: two transfers wait for each other."""

import threading


class Account:
    def __init__(self, balance):
        self.balance = balance
        self.lock = threading.Lock()


def transfer(source, target, amount):
    with source.lock, target.lock:
        source.balance -= amount
        target.balance += amount


savings, current = Account(100), Account(100)
threads = [
    threading.Thread(target=transfer, args=(savings, current, 10)),
    threading.Thread(target=transfer, args=(current, savings, 20)),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert (savings.balance, current.balance) == (110, 90)
