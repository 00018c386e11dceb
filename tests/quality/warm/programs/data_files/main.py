# mypy: ignore-errors
import csv
import json

with open("config.json") as file:
    config = json.load(file)
print(config["name"])
rows = []
with open("data.csv", newline="") as file:
    for row in csv.DictReader(file):
        rows.append(row)
print(len(rows), "rows")


def total(column):
    return sum(float(row[column]) for row in rows)


def best(column):
    return max(rows, key=lambda row: float(row[column]))["name"]


scale = config["scale"]
print(total("price") * scale)
print(best("count"))
for row in rows:
    if row["name"] in config["skip"]:
        continue
    print(row["name"], row["price"])
text = open("notes.txt").read()
print(text.upper())
result = {"total": total("count"), "best": best("price")}
with open("result.json", "w") as file:
    json.dump(result, file, indent=1)
print(sorted(result))
