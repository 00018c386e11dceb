# mypy: ignore-errors
print("tools imported")


def area(width, height):
    return width * height
