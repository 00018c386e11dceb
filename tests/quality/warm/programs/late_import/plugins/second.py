# mypy: ignore-errors
from .first import run as first


def run(n):
    value = first(n) * 2
    print("second", value)
    return value
