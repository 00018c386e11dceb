# mypy: ignore-errors
import collections

words = "the cat and the dog and the bird".split()
counts = {}
for word in words:
    counts[word] = counts.get(word, 0) + 1
print(counts)
counts["cat"] += 5
del counts["the"]
counts["the"] = 1
print(list(counts))
groups = collections.defaultdict(list)
for word in words:
    groups[len(word)].append(word)
print(dict(groups))
common = collections.Counter(words).most_common(2)
print(common)
order = collections.OrderedDict(a=1, b=2)
order.move_to_end("a")
print(order)
unique = set(words)
print(unique)


def table(rows, width=8):
    for name, number in rows.items():
        print(f"{name!r:>{width}}|{number:03d}|{number / 3:.2e}")
    print("%-6s|%5.1f|%x" % ("end", 2.25, 255))
    print("{:,} {:+d} {:^7}".format(1234567, 5, "mid"))


table(counts)
Point = collections.namedtuple("Point", "x y")
points = [Point(2, 1), Point(1, 2)]
points.sort(key=lambda point: point.y)
print(points)
queue = collections.deque([1, 2, 3], maxlen=3)
queue.append(4)
queue.rotate(1)
print(queue, max(queue))
iterator = iter(counts.items())
print(next(iterator))
copied = counts.copy()
copied.update(zebra=0)
print(next(iterator), list(copied))
