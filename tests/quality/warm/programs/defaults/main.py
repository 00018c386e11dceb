# mypy: ignore-errors
def remember(value, seen=[]):
    seen.append(value)
    return seen


def tally(word, counts={}):
    counts[word] = counts.get(word, 0) + 1
    return dict(counts)


def scaled(value, *, by=3, offset=1):
    return value * by + offset


def with_state(n):
    with_state.calls += 1
    return n + with_state.calls


with_state.calls = 0
BASE = 4


def bound(n, base=BASE):
    return n + base


print(remember(1))
print(remember(2))
print(tally("a"), tally("b"), tally("a"))
print(scaled(2), scaled(2, by=5))
BASE = 40
print(bound(1), bound(1, BASE))
for n in range(3):
    print(with_state(n))
scaled.__kwdefaults__["by"] = 7
print(scaled(2))
print(remember(3), remember.__defaults__)
print(with_state.calls)
