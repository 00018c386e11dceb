# mypy: ignore-errors
import inspect
import sys
import traceback


def where():
    frame = sys._getframe(1)
    return f"{frame.f_code.co_name}:{frame.f_lineno}"


def stack():
    found = []
    for entry in inspect.stack()[1:]:
        found.append((entry.function, entry.lineno))
    return found


class Caller:
    def call(self):
        print(where())
        return stack()


def outer():
    caller = Caller()
    found = caller.call()
    print(found)
    traceback.print_stack()
    depth = 0
    frame = sys._getframe()
    while frame is not None:
        depth += 1
        frame = frame.f_back
    print("depth", depth)
    return where()


print(where())
print(outer())
for n in range(2):
    print(n, where())
print([entry.name for entry in traceback.extract_stack()])
print(outer.__code__.co_firstlineno, Caller.call.__code__.co_firstlineno)
print(inspect.getsource(where).count("\n"))
print(inspect.currentframe().f_lineno, inspect.signature(outer))
caller_name = sys._getframe().f_code.co_name
print(caller_name)
