# mypy: ignore-errors
def numbers(limit):
    print("started", limit)
    n = 0
    while n < limit:
        got = yield n
        if got:
            print("got", got)
        n += 1
    print("finished")
    return "result"


def chain(*sources):
    for source in sources:
        result = yield from source
        print("from", result)


def pairs(values):
    values = iter(values)
    for left in values:
        right = next(values, None)
        yield left, right


half = numbers(5)
print(next(half), next(half))
print(half.send("hello"))
waiting = numbers(2)
squares = (n * n for n in range(6))
print(next(squares), next(squares))
for left, right in pairs("abcde"):
    print(left, right)
    if left == "c":
        extra = next(squares)
        print("extra", extra)
print("rest", list(half))
print("waiting", list(waiting))
print("squares", sum(squares))
for value in chain(numbers(1), numbers(2)):
    print("value", value)


def closing():
    try:
        yield 1
        yield 2
    finally:
        print("closed")


one = closing()
print(next(one))
one.close()
two = closing()
next(two)
del two
print("end")
