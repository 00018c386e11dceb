# mypy: ignore-errors
def collect(first, *rest, sep="-", **options):
    text = sep.join(str(one) for one in (first, *rest))
    for key in sorted(options):
        text += f" {key}={options[key]}"
    return text


def forward(*args, **options):
    print(len(args), sorted(options))
    return collect(*args, **options)


def positional(a, b=2, /, c=3, *, d=4):
    return a, b, c, d


print(collect(1))
print(collect(1, 2, 3, sep="+"))
print(forward("a", "b", x=1, y=2))
extra = {"z": 26}
values = [7, 8]
print(forward(*values, *"cd", **extra, sep="/"))
print(positional(1), positional(1, 5, d=9), positional(1, c=0))
merged = {**extra, "q": 17, **{"z": 0}}
print(merged)
(a, b), *others = [(1, 2), 3, 4]
print(a, b, others)
try:
    positional(a=1)
except TypeError as error:
    print(error)


def swap(a, b, *, times=1):
    for _ in range(times):
        a, b = b, a
    return a, b


print(swap(1, 2), swap(1, 2, times=2))
print(*values, sep=", ", end=".\n")
print(max(*values, key=lambda v: -v))
