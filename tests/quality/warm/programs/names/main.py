# mypy: ignore-errors
def inside(a, b=2):
    c = a + b
    print(sorted(locals().items()))
    for d in range(2):
        pass
    names = locals()
    print(sorted(names))

    def inner():
        return c

    print(sorted(locals()), inner())
    return vars()


class Holder:
    x = 1
    y = [one for one in range(2)]

    def method(self):
        return sorted(name for name in dir(self) if not name.startswith("__"))


print(sorted(name for name in globals() if not name.startswith("__")))
print(dir())
result = inside(1)
print(sorted(result))
holder = Holder()
holder.z = 3
print(holder.method(), vars(holder))
print(__name__, __doc__, sorted(Holder.__dict__)[:3])
print(sorted(name for name in globals() if name.startswith("__")))
exec("made = 5\nprint('exec', made)")
print(eval("made + 1"), "made" in dir())
print(inside.__code__.co_varnames, inside.__code__.co_argcount)
print(inside.__qualname__, Holder.method.__qualname__, inside.__module__)
print(callable(inside), __file__.rsplit("/", 1)[-1], __builtins__.__name__)
