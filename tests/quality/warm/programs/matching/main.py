# mypy: ignore-errors
class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x = x
        self.y = y


def describe(value):
    match value:
        case 0:
            text = "zero"
        case int(n) if n > 10:
            text = f"big {n}"
        case int() | float():
            text = "number"
        case [first, *rest]:
            text = f"list {first} +{len(rest)}"
            if not rest:
                text += " alone"
        case {"kind": kind, **others}:
            text = f"{kind} {sorted(others)}"
        case Point(0, y):
            text = f"on axis {y}"
        case Point(x=x, y=y):
            text = f"point {x + y}"
        case "quit" | "exit":
            return "leaving"
        case _:
            text = "unknown"
    return text


def run(commands):
    place = 0
    for command in commands:
        match command.split():
            case ["go", steps]:
                place += int(steps)
            case ["back"]:
                place -= 1
                continue
            case ["say", *words]:
                print(" ".join(words))
            case []:
                break
        print("at", place)
    return place


for value in (0, 50, 3.5, [1, 2, 3], [9], {"kind": "a", "x": 1}, Point(0, 3), Point(1, 2), "quit", None):
    print(describe(value))
print(run(["go 3", "back", "say hello there", "go 2", "", "go 5"]))
match [1, 2]:
    case [a, b]:
        print("pair", a, b)
    case _:
        print("no pair")
print("end")
