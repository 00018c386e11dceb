# mypy: ignore-errors
import functools

registry = []


def register(function):
    registry.append(function.__name__)
    return function


def traced(label):
    def around(function):
        @functools.wraps(function)
        def wrapper(*args, **options):
            print("->", label, args, options)
            result = function(*args, **options)
            print("<-", label, result)
            return result

        return wrapper

    return around


def twice(function):
    def wrapper(*args):
        function(*args)
        return function(*args)

    return wrapper


@register
@traced("add")
def add(a, b=2):
    """Add."""
    return a + b


@functools.lru_cache(maxsize=None)
def slow(n):
    print("computing", n)
    return n * n


@twice
def hello(name):
    print("hello", name)
    return len(name)


class Counted:
    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, *args):
        self.calls += 1
        return self.function(*args)


@Counted
def power(a, b):
    value = a**b
    return value


@functools.singledispatch
def show(value):
    return f"other {value}"


@show.register
def _(value: int):
    return f"int {value}"


print(add(1), add(1, b=5))
print(slow(3), slow(3), slow(4))
print(hello("you"))
print(power(2, 5), power(3, 2), power.calls)
print(show(1), show("x"))
print(registry, add.__name__, add.__doc__)
print(slow.cache_info().hits)


@register
def late():
    return "late"


print(late(), registry)
