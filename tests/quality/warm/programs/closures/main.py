# mypy: ignore-errors
def counter(start):
    count = start

    def up(by=1):
        nonlocal count
        count += by
        return count

    def down():
        nonlocal count
        count -= 1
        return count

    return up, down


def adders(sizes):
    made = []
    for size in sizes:
        made.append(lambda x, size=size: x + size)
    late = [lambda x: x + size for size in sizes]
    return made, late


def accumulate(values):
    total = 0
    seen = []

    def add(value):
        nonlocal total
        total += value
        seen.append(value)

    for value in values:
        add(value)
        if total > 12:
            print("over", total)
    scale = 10

    def show():
        return f"{total * scale} {seen}"

    text = show()
    print(text)
    scale = 20
    print(show())
    return show


up, down = counter(5)
print(up(), up(3), down())
early, late = adders([1, 2, 3])
print([one(10) for one in early], [one(10) for one in late])
show = accumulate([4, 5, 6])
print(show())


def outer():
    name = "outer"

    def middle():
        def inner():
            nonlocal name
            name = name + "!"
            return name

        first = inner()
        second = inner()
        return first, second

    result = middle()
    print(name, result)
    return middle


again = outer()
print(again())
print(up())
