# mypy: ignore-errors
def run(n):
    value = n + 1
    print("first", value)
    return value
