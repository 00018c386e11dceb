"""Programs that fail: each the shortest that shows one way to lose what a call was given."""

from __future__ import annotations

GUARD = '\nif __name__ == "__main__":\n    main()\n'

# Name to source; `main()` is called below a guard unless the program has top-level calls itself.
PLAIN = {
    "function": """
def mean(values):
    return sum(values) / len(values)

def main():
    print(mean([]))
""",
    "keyword only and stars": """
def join(first, /, *rest, sep, **more):
    text = sep.join([first, *rest])
    return more["width"] - len(text), more["depth"]

def main():
    join("a", "b", "c", sep="-", width=3)
""",
    "method": """
class Account:
    def __init__(self, owner):
        self.owner, self.__balance = owner, 10
    def draw(self, amount):
        self._check(amount)
        self.__balance -= amount
    def _check(self, amount):
        if amount > self.__balance:
            raise ValueError(f"{self.owner} has only {self.__balance}")

def main():
    account = Account("ada")
    for amount in (3, 4, 5):
        account.draw(amount)
""",
    "classmethod": """
class Point:
    scale = 2
    @classmethod
    def parse(cls, text):
        x, y = text.split(",")
        return cls.scale * int(x), cls.scale * int(y)

def main():
    Point.parse("3,four")
""",
    "init": """
class Grid:
    def __init__(self, rows, columns):
        self.rows = rows
        self.cells = [[0] * columns for _ in range(rows)]
        self.corner = self.cells[rows][columns]

def main():
    Grid(2, 3)
""",
    "init of a base class": """
class Base:
    def __init__(self, size):
        self.size = size
        self.share = 1 / size

class Derived(Base):
    def __init__(self, size, name):
        super().__init__(size - 2)
        self.name = name

def main():
    Derived(2, "x")
""",
    "property": """
class Circle:
    def __init__(self, radius):
        self.radius = radius
    @property
    def area(self):
        if self.radius < 0:
            raise ValueError("negative radius")
        return 3 * self.radius ** 2

def total(circles):
    return sum(circle.area for circle in circles)

def main():
    total([Circle(1), Circle(-1)])
""",
    "generator": """
def parse(lines):
    for line in lines:
        yield int(line)

def main():
    print(sum(parse(["1", "2", "x"])))
""",
    "generator pipeline": """
def numbers(top):
    for n in range(top):
        yield n

def inverse(values):
    for value in values:
        yield 1 / (value - 3)

def collect(values):
    found = []
    for value in values:
        found.append(value)
    return found

def main():
    collect(inverse(numbers(10)))
""",
    "async": """
import asyncio

async def fetch(name, delay):
    await asyncio.sleep(0)
    if delay < 0:
        raise ValueError(f"{name}: negative delay")
    return name

async def gather(names):
    return await asyncio.gather(*(fetch(name, 3 - len(name)) for name in names))

def main():
    asyncio.run(gather(["a", "long name"]))
""",
    "task group": """
import asyncio

async def work(n):
    await asyncio.sleep(0)
    return [1, 2][n]

async def all_of_it():
    async with asyncio.TaskGroup() as group:
        for n in range(3):
            group.create_task(work(n))

def main():
    asyncio.run(all_of_it())
""",
    "async generator": """
import asyncio

async def ticks(top):
    for n in range(top):
        await asyncio.sleep(0)
        yield 10 // (2 - n)

async def consume():
    return [tick async for tick in ticks(4)]

def main():
    asyncio.run(consume())
""",
    "closure": """
def scaler(factor, offsets):
    def scale(value):
        return factor * value + offsets[value]
    return scale

def main():
    scale = scaler(3, {1: 2})
    print([scale(value) for value in (1, 2)])
""",
    "closure with a counter": """
def counter(limit):
    count = 0
    def step(by):
        nonlocal count
        count += by
        if count > limit:
            raise OverflowError(f"over {limit}")
        return count
    return step

def main():
    step = counter(5)
    for by in (1, 2, 3):
        step(by)
""",
    "lambda": """
def apply(function, values):
    return [function(value) for value in values]

def main():
    key = "missing"
    print(apply(lambda row: row[key], [{"found": 1}]))
""",
    "decorator": """
import functools

def logged(times):
    def around(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            for _ in range(times):
                result = function(*args, **kwargs)
            return result
        return wrapper
    return around

@logged(times=2)
def divide(a, b):
    return a / b

def main():
    divide(1, b=0)
""",
    "recursion": """
def depth(tree):
    if tree is None:
        return 0
    left, right = tree
    return 1 + max(depth(left), depth(right))

def main():
    print(depth(((None, None), (None, (None, 3)))))
""",
    "endless recursion": """
def even(n):
    return odd(n - 1)

def odd(n):
    return even(n - 1)

def main():
    even(10)
""",
    "dataclass": """
from dataclasses import dataclass, field

@dataclass
class Config:
    rate: float
    layers: list = field(default_factory=list)
    def width(self, layer):
        return self.layers[layer] * self.rate

def build(config):
    return [config.width(n) for n in range(3)]

def main():
    build(Config(0.1, [4, 8]))
""",
    "enum and named tuple": """
import enum
from collections import namedtuple

class Colour(enum.Enum):
    RED = 1
    GREEN = 2

Car = namedtuple("Car", "name colour")
PRICES = {Colour.RED: 3}

def price(car):
    return PRICES[car.colour]

def main():
    price(Car("mini", Colour.GREEN))
""",
    "slots": """
class Node:
    __slots__ = ("value", "next")
    def __init__(self, value, next=None):
        self.value, self.next = value, next

def third(node):
    return node.next.next.value

def main():
    third(Node(1, Node(2)))
""",
    "a raise from": """
def load(table, name):
    try:
        return table[name]
    except KeyError as error:
        raise RuntimeError(f"no {name}") from error

def main():
    load({"a": 1}, "b")
""",
    "during handling": """
def clean(value):
    return value.strip()

def read(value):
    try:
        return int(value)
    except ValueError:
        return int(clean(None))

def main():
    read("x")
""",
    "exception group": """
def check(values):
    errors = []
    for value in values:
        try:
            int(value)
        except ValueError as error:
            errors.append(error)
    if errors:
        raise ExceptionGroup("bad values", errors)

def main():
    check(["1", "x", "y"])
""",
    "own exception": """
class Rejected(Exception):
    def __init__(self, code, text):
        super().__init__(f"{text} ({code})")
        self.code = code

def post(form):
    if "name" not in form:
        raise Rejected(422, "name is missing")

def main():
    post({"age": 3})
""",
    "assert": """
def normalise(weights):
    total = sum(weights)
    result = [weight / total for weight in weights]
    assert max(result) < 0.9, f"one weight is all: {result}"
    return result

def main():
    normalise([1, 99])
""",
    "rebound argument": """
def last(values, default):
    values = [value for value in values if value]
    default = default or values
    return values[0] + default

def main():
    last([0, 0], 1)
""",
    "rebound loop argument": """
def reduce(value, steps):
    for step in steps:
        value = step(value)
    return value

def half(value):
    return value // 2 if value % 2 == 0 else value // 0

def main():
    reduce(12, [half, half, half])
""",
    "consumed iterator": """
def total(rows):
    count = 0
    for row in rows:
        count += int(row)
    return count

def main():
    total(iter(["1", "2", "three", "4"]))
""",
    "consumed list": """
def drain(queue):
    done = []
    while queue:
        item = queue.pop(0)
        done.append(100 // item)
    return done

def main():
    drain([5, 2, 0, 1])
""",
    "mutated argument": """
def settle(accounts, moves):
    for source, target, amount in moves:
        accounts[source] -= amount
        accounts[target] += amount
        if accounts[source] < 0:
            raise ValueError(f"{source} is {accounts[source]}")

def main():
    settle({"a": 10, "b": 0}, [("a", "b", 7), ("b", "a", 3), ("a", "b", 9)])
""",
    "deleted argument": """
def release(handle, size):
    view = handle[:size]
    del handle
    return view[size]

def main():
    release([1, 2, 3], 2)
""",
    "consumed file": """
import pathlib

def parse(file):
    rows = []
    for line in file:
        name, value = line.split("=")
        rows.append((name, int(value)))
    return rows

def main():
    path = pathlib.Path("settings.txt")
    path.write_text("a=1\\nb=2\\nc=x\\nd=4\\n")
    with open(path) as file:
        parse(file)
""",
    "open file": """
import pathlib

def header(file):
    return file.readline().split(",")[3]

def main():
    path = pathlib.Path("table.csv")
    path.write_text("skip me\\na,b,c\\n1,2,3\\n")
    file = open(path)
    file.readline()
    header(file)
""",
    "random": """
import random

def draw(limit):
    value = random.random()
    if value < limit:
        raise ValueError(f"unlucky: {value}")
    return value

def main():
    random.seed(7)
    for _ in range(1000):
        draw(0.01)
""",
    "random generator as an argument": """
import random

def pick(rng, values):
    return values[rng.randrange(len(values) + 2)]

def main():
    rng = random.Random(3)
    while True:
        pick(rng, [1, 2, 3])
""",
    "globals that changed": """
CACHE = {}
LIMIT = 3

def remember(key):
    if len(CACHE) >= LIMIT:
        raise MemoryError(f"full at {key}")
    CACHE[key] = True

def main():
    for key in "abcdef":
        remember(key)
""",
    "sentinel": """
MISSING = object()

def get(table, key, default=MISSING):
    value = table.get(key, default)
    if value is MISSING:
        raise KeyError(key)
    return value

def main():
    get({"a": 1}, "b")
""",
    "thread": """
import threading

class Worker(threading.Thread):
    def __init__(self, jobs):
        super().__init__(name="worker")
        self.jobs = jobs
    def run(self):
        for job in self.jobs:
            divide(10, job)

def divide(a, b):
    return a / b

def main():
    worker = Worker([1, 0])
    worker.start()
    worker.join()
    raise SystemExit(1)
""",
    "thread pool": """
from concurrent.futures import ThreadPoolExecutor

def square_root(x):
    if x < 0:
        raise ValueError(f"negative: {x}")
    return x ** 0.5

def main():
    with ThreadPoolExecutor(2) as pool:
        print(list(pool.map(square_root, [4, -1])))
""",
    "process": """
import multiprocessing

def work(table, key):
    return table[key]

def main():
    process = multiprocessing.get_context("fork").Process(target=work, args=({"a": 1}, "b"))
    process.start()
    process.join()
    raise SystemExit(process.exitcode)
""",
    "process pool": """
import multiprocessing

def work(n):
    return [10, 20][n]

def main():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.map(work, [0, 1, 2])
""",
    "spawned pool": """
from concurrent.futures import ProcessPoolExecutor
import multiprocessing

def work(text):
    return text.upper() + None

def main():
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(work, ["a"]))
""",
    "context manager": """
class Transaction:
    def __init__(self, rows):
        self.rows = rows
    def __enter__(self):
        return self.rows
    def __exit__(self, *error):
        self.rows.clear()
        return False

def apply(rows):
    with Transaction(rows) as open_rows:
        return open_rows[5]

def main():
    apply([1, 2, 3])
""",
    "locks and sockets": """
import socket, threading

class Client:
    def __init__(self):
        self.lock = threading.RLock()
        self.socket = socket.socket()
        self.sent = {}
    def send(self, name, size):
        with self.lock:
            self.sent[name] = size / len(name)

def main():
    Client().send("", 3)
""",
    "two on a line": """
def both(a, b):
    c = a + 1; d = c / b; return d

def main():
    both(1, 0)
""",
    "multi line call": """
def area(width, height, depth):
    return (
        width
        * height
        * depth["value"]
    )

def main():
    area(
        2,
        3,
        {"values": 4},
    )
""",
    "match": """
def run(command):
    match command.split():
        case ["go", where]:
            return {"north": 1}[where]
        case _:
            raise ValueError(command)

def main():
    run("go south")
""",
}

FLAT = {
    "flat script": """
rows = [{"name": "a", "size": 1}, {"name": "b"}]
total = 0
for row in rows:
    total += row["size"]
print(total)
""",
    "flat script with functions": """
import json

def scale(value, factor):
    return value * factor["x"]

settings = json.loads('{"factor": {"y": 2}}')
print("running")
result = scale(3, settings["factor"])
""",
    "script with a class and an instance": """
class Model:
    def __init__(self, layers):
        self.layers = layers
    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

def main():
    return model([1, 2])

model = Model([len, lambda n: n + missing])
main()
""",
}

PACKAGES = {
    "package with -m": (
        ["-m", "shop.cart"],
        {
            "shop/__init__.py": "TAX = 0.2\n",
            "shop/prices.py": "PRICES = {'a': 1}\n\ndef price(name):\n    return PRICES[name]\n",
            "shop/cart.py": "from . import TAX\nfrom .prices import price\n\n"
            "def total(names):\n    return sum(price(name) for name in names) * (1 + TAX)\n\n"
            "def main():\n    total(['a', 'b'])\n" + GUARD,
        },
    ),
    "imports from the project": (
        ["run.py"],
        {
            "lib/steps.py": "STATE = []\n\n"
            "def first(x):\n    STATE.append(x)\n    return second(x)\n\n"
            "def second(x):\n    return x / (len(STATE) - 1)\n",
            "run.py": "import sys\nsys.path.insert(0, 'lib')\nimport steps\n\n"
            "def main():\n    steps.first(3)\n" + GUARD,
        },
    ),
    "fails while importing": (
        ["run.py"],
        {"settings.py": "DEBUG = int('yes')\n", "run.py": "import settings\n" + GUARD},
    ),
}


def programs() -> dict[str, tuple[list[str], dict[str, str]]]:
    """Return each program as the words after `python` and its files."""
    found = {name: (["prog.py"], {"prog.py": text + GUARD}) for name, text in PLAIN.items()}
    found |= {name: (["prog.py"], {"prog.py": text}) for name, text in FLAT.items()}
    return found | PACKAGES


# Programs with torch and numpy; one process imports both and forks for each of them.
TORCH = {
    "shapes of a model": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, 2 * width)
        self.second = nn.Linear(width, 3)
    def forward(self, x):
        return self.second(torch.relu(self.first(x)))

def step(model, batch):
    return model(batch).sum()

def main():
    torch.manual_seed(0)
    step(Net(8), torch.randn(4, 8))
""",
    "numpy shapes": """
import numpy as np

def project(points, matrix):
    return points @ matrix

def main():
    project(np.ones((5, 3)), np.ones((4, 2)))
""",
    "numpy index": """
import numpy as np

def gather(table, ids):
    return table[ids]

def main():
    gather(np.arange(12.0).reshape(4, 3), np.array([0, 3, 7]))
""",
    "embedding index": """
import torch

def embed(table, ids):
    return torch.nn.functional.embedding(ids, table)

def main():
    embed(torch.randn(10, 4), torch.tensor([1, 2, 12]))
""",
    "view of strides": """
import torch

def flatten(x):
    return x.view(-1)

def main():
    flatten(torch.randn(4, 6).t())
""",
    "nan check": """
import torch

def check(loss, step):
    if not torch.isfinite(loss):
        raise ValueError(f"loss is {loss.item()} at {step}")

def train(weights, rate):
    for step in range(100):
        loss = (weights ** 3).sum()
        check(loss, step)
        loss.backward()
        with torch.no_grad():
            weights -= rate * weights.grad
            weights.grad = None

def main():
    torch.manual_seed(1)
    train(torch.randn(3, requires_grad=True), 10.0)
""",
    "optimizer": """
import torch
from torch import nn

def step(model, optimizer, batch, target):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(batch), target)
    loss.backward()
    optimizer.step()
    return loss.item()

def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(model.parameters())
    for n in range(5):
        step(model, optimizer, torch.randn(2, 4), torch.tensor([n, 1]))
""",
    "shared weights": """
import torch
from torch import nn

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.head = nn.Linear(4, 6, bias=False)
        self.head.weight = self.embed.weight
    def forward(self, ids):
        with torch.no_grad():
            self.embed.weight.fill_(2)
        if float(self.head.weight.sum()) == 48:
            raise ValueError("tied as they should be")
        return self.head(self.embed(ids))

def main():
    run(Tied(), torch.tensor([1]))

def run(model, ids):
    return model(ids)
""",
    "over the budget": """
import torch

def combine(big, small):
    return big @ small

def main():
    combine(torch.zeros(6000, 6000), torch.zeros(3000, 2))
""",
    "slice of a big array": """
import numpy as np

def first(rows, limit):
    if rows.shape[0] > limit:
        raise ValueError(f"{rows.shape[0]} rows, {rows.sum()}")

def main():
    big = np.ones((2_000_000, 8))
    first(big[:10], 5)
""",
    "expanded tensor": """
import torch

def mean(x, weights):
    return (x * weights).mean(1)

def main():
    mean(torch.ones(1, 1).expand(20_000, 20_000), torch.ones(7, 20_001))
""",
    "data loader": """
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, index):
        return torch.tensor(self.rows[index]["x"])

def main():
    rows = [{"x": 1.0}, {"x": 2.0}, {"y": 3.0}]
    loader = DataLoader(Rows(rows), 2, num_workers=1, multiprocessing_context="fork")
    for batch in loader:
        print(batch)
""",
    "data loader, collating": """
import torch
from torch.utils.data import DataLoader

def collate(rows):
    return torch.stack(rows)

def main():
    rows = [torch.zeros(3), torch.zeros(3), torch.zeros(4)]
    for batch in DataLoader(rows, batch_size=3, collate_fn=collate):
        print(batch)
""",
    "torch random": """
import torch

def drop(x, rate):
    mask = torch.rand(x.shape) > rate
    if not mask.any():
        raise ValueError("all dropped")
    return x * mask

def main():
    torch.manual_seed(5)
    while True:
        drop(torch.ones(3), 0.7)
""",
    "numpy random": """
import numpy as np

def sample(rng, weights):
    choice = rng.choice(len(weights), p=weights)
    return weights[choice + 1]

def main():
    rng = np.random.default_rng(0)
    while True:
        sample(rng, np.array([0.9, 0.1]))
""",
    "structured and object arrays": """
import numpy as np

def total(records, extra):
    return sum(records["weight"]) + sum(extra)

def main():
    records = np.array([("a", 1.0)], dtype=[("name", "U4"), ("weight", "f8")])
    total(records, np.array([1, "two"], dtype=object))
""",
}


def torch_programs() -> dict[str, tuple[list[str], dict[str, str]]]:
    """Return the programs that need torch and numpy."""
    return {name: (["prog.py"], {"prog.py": text + GUARD}) for name, text in TORCH.items()}
