# mypy: ignore-errors
import multiprocessing
import random

random.seed(7)
SCALE = 3


def price(name):
    with open("data.csv") as file:
        for line in file:
            word, _, number = line.partition(",")
            if word == name:
                return int(number) * SCALE
    return 0


def keep(name, value):
    with open(f"{name}.out", "w") as file:
        file.write(str(value))


def put(queue, number):
    square = number * number
    queue.put((number, square))


names = ["apple", "pear", "plum", "fig"]
with multiprocessing.Pool(2) as pool:
    prices = pool.map(price, names)
print(prices)
total = sum(prices)
print(total, random.random())
workers = []
for name, value in zip(names, prices):
    worker = multiprocessing.Process(target=keep, args=(name, value))
    worker.start()
    workers.append(worker)
for worker in workers:
    worker.join()
print([worker.exitcode for worker in workers])
text = open("plum.out").read()
print("plum", text)
queue = multiprocessing.Queue()
worker = multiprocessing.Process(target=put, args=(queue, 5))
worker.start()
pair = queue.get(timeout=5)
worker.join()
print(pair)
value = multiprocessing.Value("i", 4)
value.value += 1
print(value.value)
rest = total % 7
print("rest", rest, random.random())
for name in names:
    print(name, rest)
    rest += 1
print("end")
