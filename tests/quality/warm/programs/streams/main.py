# mypy: ignore-errors
import os
import sys

sys.stdout.write("no newline")
sys.stderr.write("error one\n")
print(" then", end="")
print(" more")


def mixed(n):
    for k in range(n):
        print("out", k)
        print("err", k, file=sys.stderr)
        if k == 1:
            sys.stdout.flush()
    return n


mixed(3)
os.write(1, b"raw\n")
print("buffered", end=" ")
os.write(2, b"raw error\n")
print("flushed", flush=True)
sys.stdout.buffer.write(b"bytes\n")
sys.stdout.writelines(["a\n", "b"])
keep = sys.stdout
with open("captured.txt", "w") as file:
    sys.stdout = file
    print("into the file")
    mixed(1)
    sys.stdout = keep
print("c")
print("long " * 30, file=sys.stderr)
progress = 0
while progress < 3:
    progress += 1
    sys.stdout.write(f"\r{progress}/3")
sys.stdout.write("\nlast")
