# mypy: ignore-errors
import os

CACHE = "cache/data.txt"


def load():
    if os.path.exists(CACHE):
        print("cached")
        with open(CACHE) as file:
            return file.read()
    print("computing")
    text = "-".join(str(n) for n in range(5))
    os.makedirs("cache", exist_ok=True)
    with open(CACHE, "w") as file:
        file.write(text)
    return text


def count(folder):
    names = sorted(os.listdir(folder))
    print(folder, names)
    return len(names)


text = load()
print(text)
again = load()
print(again == text)
print(count("cache"))
if os.path.isfile("options.txt"):
    options = open("options.txt").read().split()
else:
    options = ["none"]
print("options", options)
for n in range(2):
    name = f"part{n}.txt"
    if not os.path.exists(name):
        with open(name, "x") as file:
            file.write(str(n))
    else:
        with open(name, "a") as file:
            file.write("+")
    print(name, os.stat(name).st_size)
os.makedirs("out/deep", exist_ok=True)
print(os.path.isdir("out"), os.access("main.py", os.R_OK))
try:
    os.mkdir("out")
except FileExistsError:
    print("out is there")
print(sum(len(files) for _, _, files in os.walk("cache")))
