# mypy: ignore-errors
import os


def rows(name):
    with open(name) as file:
        lines = file.read().split()
    return [line.split(",") for line in lines[1:]]


def tidy(names):
    for name in names:
        if os.path.exists(name):
            os.remove(name)
            print("removed", name, flush=True)


def rest(number):
    while number > 7:
        number -= 7
    return number
