# mypy: ignore-errors
import os
import sys


def validate(values):
    for value in values:
        if value > 3:
            print("too big", value)
            return 4
    return 0


def leave(code):
    try:
        print("leaving", code)
        sys.exit(code)
    finally:
        print("finally", code)


print("start")
try:
    leave("in vain")
except SystemExit as error:
    print("caught", error.code)
code = validate([1, 2, 3])
print(code)
code = validate([1, 5, 3])
if code:
    print("bad", file=sys.stderr)
    with open("code.txt", "w") as file:
        file.write(str(code))
    if os.environ.get("NEVER_SET"):
        os._exit(9)
    leave(code)
print("good")
sys.exit("a message")
