# mypy: ignore-errors
import sys
import traceback


def fail(n):
    values = [1, 2, 3]
    return values[n]


def middle(n):
    result = fail(
        n + 5,
    )
    return result


def attempt(n):
    try:
        return middle(n)
    except IndexError:
        traceback.print_exc()
        return None


class Odd(Exception):
    def __str__(self):
        return f"odd {self.args}"


print(attempt(-5))
print(attempt(1))
try:
    try:
        middle(3)
    except IndexError as error:
        raise Odd(1, 2) from error
except Odd:
    text = traceback.format_exc()
    print(text)
    line = sys.exc_info()[2].tb_lineno
    print("line", line)
try:
    {}["key"]
except KeyError as error:
    error.add_note("a note")
    traceback.print_exception(error)
for n in (0, 9):
    try:
        print("got", fail(n))
    except IndexError as error:
        last = error.__traceback__.tb_next
        print("at", last.tb_lineno, last.tb_frame.f_code.co_name)
try:
    raise ExceptionGroup("many", [ValueError(1), TypeError(2)])
except* ValueError as group:
    print(group.exceptions)
except* TypeError as group:
    traceback.print_exception(group)
print("end")
