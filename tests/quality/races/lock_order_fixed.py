"""The same with the locks always taken in one order."""

import threading


class Account:
    def __init__(self, number, balance):
        self.number = number
        self.balance = balance
        self.lock = threading.Lock()


def transfer(source, target, amount):
    first, second = sorted((source, target), key=lambda one: one.number)
    with first.lock, second.lock:
        source.balance -= amount
        target.balance += amount


savings, current = Account(1, 100), Account(2, 100)
threads = [
    threading.Thread(target=transfer, args=(savings, current, 10)),
    threading.Thread(target=transfer, args=(current, savings, 20)),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert (savings.balance, current.balance) == (110, 90)
