# mypy: ignore-errors
import sys

sys.setrecursionlimit(220)
calls = 0


def fib(n):
    global calls
    calls += 1
    if n < 2:
        return n
    left = fib(n - 1)
    right = fib(n - 2)
    return left + right


def walk(tree, depth=0):
    name, children = tree
    print("  " * depth + name)
    size = 1
    for child in children:
        size += walk(child, depth + 1)
    if depth == 0:
        print("size", size)
    return size


def hanoi(n, a, b, c):
    if n == 0:
        return []
    moves = hanoi(n - 1, a, c, b)
    moves.append((a, c))
    moves += hanoi(n - 1, b, a, c)
    return moves


def is_even(n):
    if n == 0:
        return True
    return is_odd(n - 1)


def is_odd(n):
    if n == 0:
        return False
    return is_even(n - 1)


def deep(n):
    return deep(n + 1)


print(fib(6), calls)
walk(("root", [("a", []), ("b", [("c", []), ("d", [])])]))
moves = hanoi(3, "x", "y", "z")
print(len(moves), moves[:3])
print(is_even(6), is_odd(6))
try:
    deep(0)
except RecursionError as error:
    print(type(error).__name__)
print("end")
