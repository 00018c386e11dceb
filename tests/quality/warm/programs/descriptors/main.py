# mypy: ignore-errors
import functools


class Field:
    def __set_name__(self, owner, name):
        self.name = "_" + name
        print("field", name)

    def __get__(self, instance, owner):
        if instance is None:
            return self
        return getattr(instance, self.name, 0)

    def __set__(self, instance, value):
        if value < 0:
            raise ValueError(f"{self.name} < 0")
        setattr(instance, self.name, value)


class Meta(type):
    def __new__(cls, name, bases, names):
        made = super().__new__(cls, name, bases, names)
        made.label = name.lower()
        return made


class Shape(metaclass=Meta):
    width = Field()
    height = Field()
    count = 0

    def __init__(self, width, height):
        self.width = width
        self.height = height
        Shape.count += 1

    @property
    def area(self):
        return self.width * self.height

    @area.setter
    def area(self, value):
        self.width = value // self.height

    @staticmethod
    def unit():
        return "cm"

    @classmethod
    def square(cls, size):
        return cls(size, size)

    @functools.cached_property
    def heavy(self):
        print("computing heavy")
        return self.area**2

    def __init_subclass__(cls):
        print("subclass", cls.__name__)


class Box(Shape):
    def __getattr__(self, name):
        return f"no {name}"

    def __eq__(self, other):
        return self.area == other.area

    __hash__ = None


box = Box(2, 3)
print(box.area, box.unit(), box.label)
square = Box.square(4)
print(square.heavy, square.heavy)
square.area = 8
print(square.width, square.area, box == square)
print(box.missing, Shape.count)
try:
    box.width = -1
except ValueError as error:
    print(error)
Point = type("Point", (), {"x": 1, "show": lambda self: self.x + 1})
print(Point().show())
