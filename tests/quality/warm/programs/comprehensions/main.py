# mypy: ignore-errors
import functools

data = [3, 1, 4, 1, 5, 9, 2, 6]
factor = 2
scaled = [n * factor for n in data if n > 1]
print(scaled)
lookup = {n: [m for m in data if m < n] for n in set(data)}
print(sorted(lookup.items()))
functions = [lambda x: x * n for n in range(3)]
print([function(10) for function in functions])
bound = [lambda x, n=n: x * n for n in range(3)]
print([function(10) for function in bound])
if (size := len(data)) > 5:
    print("size", size)
running = [total := 0] + [total := total + n for n in data]
print(running, total)
lazy = (factor * n for n in data)
factor = 3
print(list(lazy))


def compute(values):
    limit = 4
    small = [v for v in values if v < limit]
    keep = lambda v: v + limit
    limit = 5
    nested = [[keep(v) for v in small if v != skip] for skip in (1, 2)]
    print(small, nested)
    while chunk := small[:2]:
        print("chunk", chunk)
        small = small[2:]
    return sorted(values, key=lambda v: (v % limit, v))


print(compute(data))
product = functools.reduce(lambda a, b: a * b, data[:4])
print(product, any(n > 8 for n in data), {n % 3 for n in data})
class Holder:
    base = 10
    values = [n + 1 for n in range(3)]
    get = lambda self: self.base


print(Holder.values, Holder().get())
first, *middle, last = data
print(first, middle, last)
print("end")
