# mypy: ignore-errors
"""Adds up some numbers."""

import math

SIZE = 6
STEP = 2
table = []
for n in range(0, SIZE * STEP, STEP):
    square = n * n
    table.append((n, square))
    if square > 30:
        print("big", n, square)
total = sum(square for _, square in table)
print("total", total)


def report(rows, title="rows"):
    """Print a table."""
    print(title, len(rows))
    for left, right in rows:
        line = f"{left:>4} {right:<6}|"
        print(line)


def mean(rows):
    count = len(rows)
    return sum(right for _, right in rows) / count


report(table)
average = mean(table)
print(f"average {average:.3f}")
root = math.sqrt(total)
if root > 10:
    kind = "large"
else:
    kind = "small"
print(kind, round(root, 4))
with open("table.txt", "w") as file:
    for left, right in table:
        file.write(f"{left},{right}\n")
    file.write("end\n")
names = ["a", "b", "c"]
names.append("d")
print(",".join(names))
print("done", STEP)
