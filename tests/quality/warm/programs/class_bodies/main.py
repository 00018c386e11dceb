# mypy: ignore-errors
LEVEL = 2


class Config:
    """Settings."""

    level = LEVEL
    options = {}
    for name in ("a", "b"):
        options[name] = level
        level += 1
    if LEVEL > 1:

        def extra(self):
            return "extra"

    else:

        def extra(self):
            return "plain"

    print("body", sorted(options))

    class Inner:
        depth = 1

        def show(self):
            return self.depth


def factory(base):
    class Made(base):
        made = True

        def __init__(self, n):
            self.n = n

        def __add__(self, other):
            return type(self)(self.n + other.n)

        def __str__(self):
            return f"Made {self.n} {base.__name__}"

    return Made


class Stack:
    __slots__ = ("items",)

    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)
        return self

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        for item in reversed(self.items):
            yield item

    def __getitem__(self, index):
        return self.items[index]


print(Config.options, Config().extra(), Config.Inner().show())
Made = factory(Config)
print(Made(1) + Made(2), Made.made, Made(0).extra())
stack = Stack().push(1).push(2)
print(len(stack), list(stack), stack[0])
Stack.peek = lambda self: self.items[-1]
print(stack.peek())
Config.level = 99
print(Made(3).level)
Config.extra = lambda self: "patched"
print(Made(4).extra())


class Late(Stack):
    def push(self, item):
        print("push", item)
        return super().push(item * 2)


late = Late().push(3)
late.push(4)
print(list(late), isinstance(late, Stack), Late.__mro__[1].__name__)
