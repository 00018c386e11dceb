# mypy: ignore-errors
import atexit
import gc
import weakref


class Thing:
    alive = 0

    def __init__(self, name):
        self.name = name
        Thing.alive += 1

    def __del__(self):
        Thing.alive -= 1
        print("gone", self.name)


def goodbye(name):
    print("goodbye", name, Thing.alive)


@atexit.register
def first():
    print("registered first")


atexit.register(goodbye, "world")
one = Thing("one")
two = Thing("two")
print(Thing.alive)
del one
print(Thing.alive)


def scope():
    local = Thing("local")
    print("in scope", local.name)
    pair = [Thing("a"), Thing("b")]
    pair.pop()
    return len(pair)


print(scope())
three = Thing("three")
weakref.finalize(three, print, "finalized three")
reference = weakref.ref(three)
print(reference() is three)
three = None
print(reference())
atexit.unregister(goodbye)
atexit.register(goodbye, "last")
cycle = Thing("cycle")
cycle.me = cycle
watched = weakref.ref(cycle)
del cycle
gc.collect()
print(watched() is None)
two = Thing("new two")
print("end", Thing.alive)
