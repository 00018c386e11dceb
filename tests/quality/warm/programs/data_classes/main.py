# mypy: ignore-errors
from dataclasses import dataclass, field, replace
from enum import Enum, Flag


class Color(Enum):
    RED = 1
    GREEN = 2
    BLUE = 4

    @property
    def pretty(self):
        return self.name.title()


class Mode(Flag):
    READ = 1
    WRITE = 2


@dataclass
class Item:
    name: str
    price: float = 1.5
    color: Color = Color.RED
    tags: list = field(default_factory=list)

    def total(self, count):
        return self.price * count


@dataclass(frozen=True, order=True)
class Key:
    a: int
    b: int = 0


def summarize(items):
    total = 0
    for item in items:
        total += item.total(2)
        item.tags.append(item.color.pretty)
    return total


items = [Item("pen"), Item("ink", 3.0, Color.BLUE)]
print(items)
print(summarize(items))
print(items[1].tags, items[0] == Item("pen"))
print(sorted([Key(2), Key(1, 5), Key(1)]))
other = replace(items[0], name="cap")
print(other)
print(Mode.READ | Mode.WRITE, Mode.READ in Mode(3))
for color in Color:
    print(color.name, color.value, color.pretty)
try:
    Key(1).a = 3
except Exception as error:
    print(type(error).__name__, error)
print(Color(4), Color["GREEN"])
