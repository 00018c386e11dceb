# mypy: ignore-errors
class Stage:
    log = []

    def __init__(self, name, function):
        self.name = name
        self.function = function

    def __enter__(self):
        self.log.append(f"+{self.name}")
        return self

    def __exit__(self, *error):
        self.log.append(f"-{self.name}")

    def __call__(self, rows):
        return self.function(rows)


def load(path):
    rows = []
    with open(path) as file:
        for line in file:
            text = line.strip()
            rows.append(int(text) if text else None)
    return rows


def clean(rows, lowest=0):
    kept = [row for row in rows if row is None or row >= lowest]
    print("kept", len(kept), "of", len(rows))
    return kept
