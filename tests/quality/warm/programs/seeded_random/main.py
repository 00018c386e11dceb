# mypy: ignore-errors
import random

random.seed(7)
numbers = [random.randrange(100) for _ in range(5)]
print(numbers)
own = random.Random(3)
print(own.random())


def shuffle(values):
    values = list(values)
    random.shuffle(values)
    print("shuffled", values)
    return values


def walk(steps):
    place = 0
    for _ in range(steps):
        place += own.choice((-1, 1))
        if random.random() < 0.3:
            place *= 2
    return place


deck = shuffle(range(6))
print(walk(5))
print(random.gauss(0, 1), own.gauss(0, 1))
state = random.getstate()
print(random.random())
random.setstate(state)
print(random.random())
sample = random.sample(deck, 3)
print(sample, walk(4))
print(random.choices("abc", k=4))
