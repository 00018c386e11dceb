"""The same, where the look and the wait are one step under the lock."""

import threading

items = []
ready = threading.Condition()


def consume():
    with ready:
        while not items:
            ready.wait()
        items.pop()


def produce():
    with ready:
        items.append("item")
        ready.notify()


consumer = threading.Thread(target=consume)
producer = threading.Thread(target=produce)
producer.start()
consumer.start()
consumer.join()
producer.join()
