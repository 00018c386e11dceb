# mypy: ignore-errors
import sys

from parts import convert, table


class Bad(RuntimeError):
    """Made here."""


def load(names):
    rows = []
    for name in names:
        rows.append(convert(name))
        print("loaded", name)
    return rows


def check(rows):
    total = 0
    for row in rows:
        try:
            total += table[row]
        except KeyError as error:
            message = f"no row {row}"
            raise Bad(message) from error
    return total


def main():
    rows = load(["1", "2"])
    print(check(rows))
    print("going on", file=sys.stderr)
    more = load(["3", "9"])
    try:
        print(check(more))
    finally:
        print("cleaning up")
    return more


main()
print("not reached")
