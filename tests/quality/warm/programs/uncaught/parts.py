# mypy: ignore-errors
table = {1: 10, 2: 20, 3: 30}


def convert(name):
    number = int(name)
    return (
        number
    )
