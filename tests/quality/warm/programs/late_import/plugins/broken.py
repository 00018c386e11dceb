# mypy: ignore-errors
print("about to break")
value = 1 // 0
