# mypy: ignore-errors
name = "odd"
print("loading", __name__)
