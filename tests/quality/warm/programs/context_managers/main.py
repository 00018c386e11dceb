# mypy: ignore-errors
import contextlib


class Step:
    depth = 0

    def __init__(self, name, swallow=False):
        self.name = name
        self.swallow = swallow

    def __enter__(self):
        print("  " * Step.depth + "enter", self.name)
        Step.depth += 1
        return self

    def __exit__(self, kind, error, trace):
        Step.depth -= 1
        what = kind.__name__ if kind else "clean"
        print("  " * Step.depth + "exit", self.name, what)
        return self.swallow


@contextlib.contextmanager
def tagged(name):
    print(f"<{name}>")
    try:
        yield name.upper()
    except KeyError as error:
        print("lost", error)
    finally:
        print(f"</{name}>")


def work(n):
    with Step("work") as step, tagged("inner") as tag:
        value = n * 2
        print(step.name, tag, value)
        if value > 5:
            raise KeyError(value)
        print("small")
    return value


with Step("outer"):
    first = work(1)
    print("first", first)
    with Step("guard", swallow=True):
        print("before")
        number = int("x")
        print("not reached", number)
    second = work(4)
    print("second", second)
with contextlib.suppress(ZeroDivisionError):
    ratio = 1 / 0
    print(ratio)
with contextlib.ExitStack() as stack:
    for name in ("a", "b"):
        stack.enter_context(Step(name))
    stack.callback(print, "called back")
    print("inside")
print("end", Step.depth)
