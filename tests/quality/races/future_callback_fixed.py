"""The same, where the totals are read once the pool is closed: all callbacks have run then."""

from concurrent.futures import ThreadPoolExecutor

totals = {}


def square(number):
    return number * number


def keep(future):
    totals["square"] = future.result()


with ThreadPoolExecutor(max_workers=1) as pool:
    future = pool.submit(square, 7)
    future.add_done_callback(keep)
    result = future.result()
assert totals.get("square") == result, "the result is there, its callback is not"
