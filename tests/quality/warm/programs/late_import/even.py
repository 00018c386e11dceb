# mypy: ignore-errors
name = "even"
parts = []
for letter in name:
    parts.append(letter.upper())
print("loading", __name__, parts)
