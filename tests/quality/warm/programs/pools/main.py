# mypy: ignore-errors
import multiprocessing
import random
import sys

sys.stdout.reconfigure(line_buffering=True)
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


def apart(function, *args):
    worker = multiprocessing.Process(target=function, args=args)
    worker.start()
    worker.join()
    return worker


names = ["apple", "pear", "plum", "fig"]
with multiprocessing.Pool(1) as pool:
    prices = pool.map(price, names)
print(prices)
total = sum(prices)
print(total, random.random())
workers = [apart(keep, name, value) for name, value in zip(names, prices)]
print([worker.exitcode for worker in workers])
text = open("plum.out").read()
print("plum", text)
queue = multiprocessing.SimpleQueue()
print(apart(put, queue, 5).is_alive())
pair = None if queue.empty() else queue.get()
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
