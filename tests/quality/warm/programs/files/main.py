# mypy: ignore-errors
import os

log = open("run.log", "w")
log.write("started\n")


def note(text):
    log.write(text + "\n")
    log.flush()


def append(name, text):
    with open(name, "a") as file:
        file.write(text)


note("first")
append("list.txt", "one\n")
append("list.txt", "two\n")
with open("list.txt") as file:
    lines = file.read().splitlines()
    print(lines)
note(f"{len(lines)} lines")
both = open("both.bin", "w+b")
both.write(b"0123456789")
both.seek(3)
print(both.read(2))
both.write(b"XY")
print(both.tell())
both.seek(0)
print(both.read())
append("list.txt", "three\n")
os.rename("list.txt", "renamed.txt")
print(os.path.exists("list.txt"), os.path.getsize("renamed.txt"))
reader = open("renamed.txt")
print(reader.readline().strip())
print(reader.readline().strip())
note("almost")
print(reader.read().strip())
os.remove("renamed.txt")
log.close()
with open("run.log") as file:
    for line in file:
        print("log:", line.strip())
both.close()
