# mypy: ignore-errors
import helper

print("late is loaded")
OFFSET = 7


class Answer:
    base = OFFSET

    def give(self, n):
        return n + self.base


def answer(n):
    helper.state["late"] = n
    return Answer().give(n)
