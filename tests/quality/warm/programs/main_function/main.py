# mypy: ignore-errors
import sys

LIMIT = 5


def prepare(limit):
    rows = []
    for n in range(limit):
        rows.append(n * 3 % 7)
    return rows


def score(rows, weight):
    best = 0
    for row in rows:
        value = row * weight
        if value > best:
            best = value
    return best


def unused(rows):
    print("never", rows)
    return rows[0]


def main():
    """Do everything."""
    rows = prepare(LIMIT)
    print("prepared", rows)
    weight = 2
    best = score(rows, weight)
    print("best", best)
    history = []
    for step in range(4):
        weight += step
        value = score(rows, weight)
        history.append(value)
        if value > 60:
            print("stop", step)
            break
        print("step", step, value)
    else:
        print("no stop")
    summary = {"best": max(history), "last": history[-1]}
    for key, value in summary.items():
        print(key, value)
    if summary["best"] == 0:
        unused(rows)
    return 0


if __name__ == "__main__":
    code = main()
    print("code", code)
    sys.exit(code)
