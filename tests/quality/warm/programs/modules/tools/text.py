# mypy: ignore-errors
from . import area

WIDTH = 12


def banner(text):
    mark = "=" * area(1, 2)
    return f"{mark} {text:^{WIDTH}} {mark}"
