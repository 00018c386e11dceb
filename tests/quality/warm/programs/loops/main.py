# mypy: ignore-errors
def search(grid, wanted):
    for y, row in enumerate(grid):
        for x, cell in enumerate(row):
            if cell < 0:
                continue
            if cell == wanted:
                found = (x, y)
                break
        else:
            print("row", y, "has none")
            continue
        print("found", found)
        break
    else:
        found = None
        print("nowhere")
    return found


def collatz(n):
    steps = 0
    while n != 1 and steps < 40:
        if n % 2:
            n = 3 * n + 1
        else:
            n //= 2
        steps += 1
        if steps == 30:
            print("long")
            break
    else:
        print("arrived", steps)
    return steps


grid = [[1, -2, 3], [4, 5, -6], [7, 8, 9]]
print(search(grid, 5))
print(search(grid, 42))
for start in (6, 7, 27):
    print(start, collatz(start))
pairs = []
for a in range(4):
    for b in range(a):
        if (a + b) % 3 == 0:
            continue
        pairs.append((a, b))
        if len(pairs) > 3:
            break
print(pairs)
stack = [1, 2, 3]
for _ in range(10):
    if not stack:
        break
    top = stack.pop()
    if top == 2:
        stack.append(0)
    print("top", top)
