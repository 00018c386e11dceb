# mypy: ignore-errors
WORD = "hello"


def say(name):
    text = f"{WORD} {name}"
    return text.title()
