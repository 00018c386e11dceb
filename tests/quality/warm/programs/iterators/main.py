# mypy: ignore-errors
import itertools


class Countdown:
    def __init__(self, start):
        self.left = start

    def __iter__(self):
        return self

    def __next__(self):
        if self.left <= 0:
            raise StopIteration
        self.left -= 1
        return self.left


shared = Countdown(6)
for n in shared:
    print("n", n)
    if n == 3:
        skipped = next(shared)
        print("skipped", skipped)
for a, b in zip("abc", itertools.count(5)):
    text = a * b
    print(text[:3], b)
for number, word in enumerate(["x", "y", "z"], 1):
    if word == "y":
        word = "why"
    print(number, word)
letters = list("pqrs")
for letter in letters:
    if letter == "q":
        letters.remove("r")
    print(letter)
for key, value in {"k": 1, "l": 2}.items():
    print(key, value)
for row in map(str.upper, ["m", "n"]):
    print(row)
with open("lines.txt", "w") as file:
    file.write("one\ntwo\nthree\n")
with open("lines.txt") as file:
    for line in file:
        word = line.strip()
        if word == "two":
            print("two!")
        print(len(word))
cycle = itertools.cycle("ab")
first = [next(cycle) for _ in range(3)]
print(first, next(cycle))
for group, members in itertools.groupby([1, 1, 2, 3, 3], key=lambda n: n % 2):
    print(group, list(members))
