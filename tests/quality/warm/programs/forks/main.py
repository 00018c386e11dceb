# mypy: ignore-errors
import json
import os
import sys

import work

print("begin", flush=True)
with open("config.json") as file:
    config = json.load(file)


def apart(function, *args):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 9
        try:
            function(*args)
            sys.stdout.flush()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def count(name, column):
    rows = work.rows(name)
    total = sum(int(row[column]) for row in rows)
    with open(f"{column}.out", "w") as file:
        file.write(str(total * config["scale"]))
    print("counted", column, flush=True)


def two(name):
    apart(count, name, 1)
    with open("log.out", "a") as file:
        file.write(f"two of {name}\n")


def late():
    import extra

    print(extra.say(config["name"]), flush=True)


print(apart(count, "data.csv", 2))
first = open("2.out").read()
print("first", first)
status = apart(two, "data.csv")
print(status, open("1.out").read())
total = int(first) + int(open("1.out").read())
print("total", total)
print(apart(late))
names = sorted(name for name in os.listdir() if name.endswith(".out"))
print(names)
print(apart(work.tidy, names[:1]))
print(sorted(os.listdir()))
rest = work.rest(total)
print(rest)
if total > 10:
    print("many")
    print(apart(count, "data.csv", 1))
print("end", total)
