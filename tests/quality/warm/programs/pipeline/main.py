# mypy: ignore-errors
import sys

from stages import Stage, clean, load

stages = []


def stage(function):
    stages.append(function.__name__)
    return function


@stage
def prepare(rows):
    ready = []
    for row in rows:
        if row is None:
            continue
        ready.append(row + 1)
    return ready


@stage
def combine(rows, size=2):
    groups = [rows[n : n + size] for n in range(0, len(rows), size)]
    return [sum(group) for group in groups]


def execute(rows):
    for name in stages:
        step = Stage(name, globals()[name])
        with step:
            rows = step(rows)
        print(name, rows)
    return rows


def main():
    rows = load("rows.txt")
    print("loaded", rows)
    rows = clean(rows)
    try:
        rows = execute(rows)
    except TypeError as error:
        print("failed", error, file=sys.stderr)
        return 2
    with open("out.txt", "w") as file:
        for row in rows:
            print(row, file=file)
    print("log", Stage.log)
    return len(rows) - 2


if __name__ == "__main__":
    status = main()
    if status:
        print("status", status)
    sys.exit(status)
