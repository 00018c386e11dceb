"""A consumer looks first and waits then: a notice that comes in between is lost for ever."""

import threading

items = []
ready = threading.Condition()


def consume():
    if not items:
        with ready:
            ready.wait()
    items.pop()


def produce():
    items.append("item")
    with ready:
        ready.notify()


consumer = threading.Thread(target=consume)
producer = threading.Thread(target=produce)
producer.start()
consumer.start()
consumer.join()
producer.join()
