# mypy: ignore-errors
import importlib
import sys


def plugin(name):
    module = importlib.import_module(f"plugins.{name}")
    return module.run


def choose(n):
    if n % 2:
        import odd

        return odd.name
    import even

    return even.name


total = 0
for name in ("first", "second"):
    run = plugin(name)
    total += run(10)
    print(name, total)
for n in range(3):
    print(n, choose(n))
try:
    import missing
except ImportError as error:
    print(error)
    missing = None
try:
    plugin("broken")
except ZeroDivisionError:
    print("broken plugin")
print(sorted(name for name in sys.modules if name.startswith("plugins")))
print(missing, total)
