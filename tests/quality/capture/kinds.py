"""Runs as the user's program: calls a function that fails with one argument of each kind.

Each call says in its message what the argument is good for; a replay with the same argument says
the same. What is in `GONE` cannot be anywhere but in its own process: a replay names it.
"""
# It is a program of a user: what is odd in it is the point.
# mypy: ignore-errors
# ruff: noqa: UP028, SIM115

import array
import collections
import contextvars
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import io
import itertools
import logging
import os
import pathlib
import queue
import random
import re
import socket
import sys
import threading
import types
import uuid
import weakref

from relaunch.inside.capture.keep import capture

VALUES: dict = {}
GONE = {"socket", "generator that runs", "match", "context variable", "executor", "broken reduce"}


def use(name, value, twin, check):
    # To look at a value may use it up: the replay looks at what was kept, the program at its twin.
    told = check(value if "KINDS_REPLAYED" in os.environ else twin)
    raise ValueError(f"{name}: {told}")


class Colour(enum.Enum):
    RED = 1


class Flags(enum.Flag):
    A = 1
    B = 2


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int = 2


Car = collections.namedtuple("Car", "name size")


class Slots:
    __slots__ = ("a", "b")


class Keyed(dict):
    extra = 0


class Odd(Exception):
    def __init__(self, code, *, text):
        super().__init__(f"{code}: {text}")
        self.code = code


class Unequal:
    def __eq__(self, other):
        raise RuntimeError("never compare")

    __hash__ = None  # type: ignore[assignment]


class BrokenReduce:
    def __reduce_ex__(self, protocol):
        raise RuntimeError("never pickle")


class BrokenState:
    value = 3

    def __getstate__(self):
        return {"value": 4}

    def __setstate__(self, state):
        raise RuntimeError("never unpickle")


class Loud:
    def __getstate__(self):
        print("pickled!")
        os.write(2, b"pickled!")
        return dict(self.__dict__)


class Greedy:
    def __getattr__(self, name):
        return Greedy()


class Meta(type):
    @property
    def level(cls):
        return len(cls.__mro__)


class Made(metaclass=Meta):
    pass


def counted(top):
    for n in range(top):
        yield n


def closure(step):
    total = 0

    def add(by):
        nonlocal total
        total += by * step
        return total

    add(1)
    return add


def local_class():
    base = 10

    class Local:
        def __init__(self, x):
            self.x = x

        def sum(self):
            return base + self.x

    return Local(5)


def local_dataclass():
    @dataclasses.dataclass
    class Pair:
        a: int
        b: list = dataclasses.field(default_factory=list)

    return Pair(1)


def made_by_exec():
    names: dict = {"base": 7}
    exec("def made(x):\n    return x + base", names)
    return names["made"]


def linked(count):
    node = None
    for n in range(count):
        node = {"next": node, "n": n}
    return node


def circle():
    ring: list = [1]
    ring.append(ring)
    return ring


class Self:
    def __init__(self):
        self.me = self
        self.call = lambda: self


def recursive():
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    return factorial


def text_file():
    path = pathlib.Path("kinds.txt")
    path.write_text("one\ntwo\nthree\n")
    file = open(path)
    next(file)
    return file


def binary_file():
    path = pathlib.Path("kinds.bin")
    path.write_bytes(bytes(range(50)))
    file = open(path, "rb")
    file.read(40)
    return file


def written_file():
    return open("written.txt", "w")


def logger():
    return logging.getLogger("kinds.log")


def plain_kinds():
    tz = datetime.timezone(datetime.timedelta(hours=2))
    add = VALUES.__setitem__
    add("int", (lambda: 10**40, str))
    add("text", (lambda: "\udcff \U0001f525 é", ascii))
    add("decimal", (lambda: decimal.Decimal("1.10"), str))
    add("fraction", (lambda: fractions.Fraction(3, 4), str))
    add("complex", (lambda: 1 + 2j, str))
    add("datetime", (lambda: datetime.datetime(2026, 3, 1, 12, tzinfo=tz), str))
    add("path", (lambda: pathlib.Path("a/b"), str))
    add("pattern", (lambda: re.compile("a+b"), lambda p: p.match("aab").group()))
    add("match", (lambda: re.match("a", "ab"), lambda m: m.group()))
    add("uuid", (lambda: uuid.UUID(int=5), str))
    add("enum", (lambda: Colour.RED, lambda c: c is Colour.RED))
    add("flags", (lambda: Flags.A | Flags.B, lambda f: f == Flags.A | Flags.B))
    add("dataclass", (lambda: Point(1), repr))
    add("named tuple", (lambda: Car("mini", 3), lambda c: c.size))
    add("slots", (make_slots, lambda s: (s.a, hasattr(s, "b"))))
    add("dict subclass", (make_keyed, lambda d: (dict(d), d.extra, type(d).__name__)))
    add("ordered dict", (lambda: collections.OrderedDict(b=1, a=2), list))
    add("default dict", (lambda: collections.defaultdict(lambda: 5), lambda d: d["x"]))
    add("deque", (lambda: collections.deque([1, 2], maxlen=2), lambda d: (list(d), d.maxlen)))
    add("counter", (lambda: collections.Counter("aab"), lambda c: c.most_common(1)))
    add("chain map", (lambda: collections.ChainMap({1: 2}, {3: 4}), dict))
    add("frozen set", (lambda: frozenset({3}), list))
    add("bytes", (lambda: b"\0\xff", repr))
    add("byte array", (lambda: bytearray(b"ab"), repr))
    add("view", (lambda: memoryview(b"abc")[1:], lambda v: v.tobytes()))
    add("array", (lambda: array.array("d", [1.5]), repr))
    add("range", (lambda: range(1, 9, 2), list))
    add("slice", (lambda: slice(1, None, 2), str))
    add("namespace", (lambda: types.SimpleNamespace(a=1), str))
    add("proxy", (lambda: types.MappingProxyType({"a": 1}), dict))
    add("keys", (lambda: {"a": 1, "b": 2}.keys(), list))
    add("values", (lambda: {"a": 1}.values(), list))
    add("lambda", (lambda: lambda x: x + 1, lambda f: f(2)))
    add("closure", (lambda: closure(3), lambda f: f(1)))
    add("recursive closure", (recursive, lambda f: f(5)))
    add("partial", (lambda: functools.partial(int, base=2), lambda f: f("101")))
    add("bound method", (lambda: [3, 1].index, lambda f: f(1)))
    add("function", (lambda: counted, lambda f: list(f(2))))
    add("cached function", (lambda: functools.lru_cache(lambda x: x * 2), lambda f: f(4)))
    add("made by exec", (made_by_exec, lambda f: f(1)))
    add("class", (lambda: Point, lambda c: c(3).x))
    add("class with a metaclass", (lambda: Made, lambda c: c.level))
    add("local class", (local_class, lambda o: o.sum()))
    add("local dataclass", (local_dataclass, lambda o: (o.a, o.b, type(o)(2).a)))
    add("module", (lambda: os.path, lambda m: m.join("a", "b")))
    add("builtin", (lambda: len, lambda f: f([1])))
    add("lock", (threading.Lock, lambda x: x.acquire(blocking=False)))
    add("held lock", (held, lambda x: (x.acquire(blocking=False), 1)[1]))
    add("reentrant lock", (threading.RLock, lambda x: x.acquire(blocking=False)))
    add("event", (threading.Event, lambda e: e.is_set()))
    add("semaphore", (lambda: threading.Semaphore(2), lambda s: s.acquire(blocking=False)))
    add("queue", (make_queue, lambda q: q.get_nowait()))
    add("thread", (lambda: threading.Thread(target=len, name="t"), lambda t: t.name))
    add("text file", (text_file, lambda f: f.read()))
    add("binary file", (binary_file, lambda f: f.read()))
    add("written file", (written_file, lambda f: f.write("abc")))
    add("text in memory", (lambda: io.StringIO("a\nb"), lambda f: f.readline()))
    add("bytes in memory", (lambda: io.BytesIO(b"ab"), lambda f: f.read(1)))
    add("stream", (lambda: sys.stderr, lambda s: s is sys.stderr))
    add("socket", (socket.socket, lambda s: s.family))
    add("generator", (lambda: counted(3), list))
    add("generator that runs", (advanced, list))
    add("iterator", (iterator, list))
    add("map", (lambda: map(str, [1, 2]), list))
    add("zip", (lambda: zip([1], [2], strict=True), list))
    add("enumerate", (lambda: enumerate("ab"), list))
    add("islice", (lambda: itertools.chain([1], [2]), list))
    add("weak reference", (lambda: weakref.ref(Point), lambda r: r() is Point))
    add("exception", (lambda: KeyError("a", 1), lambda e: e.args))
    add("odd exception", (lambda: Odd(3, text="no"), lambda e: (str(e), e.code)))
    add("logger", (logger, lambda log: log.name))
    add("environment", (lambda: os.environ, lambda e: e is os.environ))
    add("context variable", (lambda: contextvars.ContextVar("v"), lambda v: v.name))
    add("random", (lambda: random.Random(4), lambda r: r.random()))
    add("unequal", (Unequal, lambda u: type(u).__name__))
    add("broken reduce", (BrokenReduce, lambda o: o.value))
    add("broken state", (BrokenState, lambda o: type(o).__name__))
    add("loud", (Loud, lambda o: type(o).__name__))
    add("greedy", (Greedy, lambda o: type(o).__name__))
    add("linked list", (lambda: linked(200), lambda n: n["n"]))
    add("circle", (circle, lambda c: c[1] is c))
    add("itself", (Self, lambda s: s.me is s and s.call() is s))
    add("executor", (executor, lambda e: e.submit(len, "")))
    add("union", (lambda: int | None, str))
    add("generic alias", (lambda: list[int], str))


def make_slots():
    made = Slots()
    made.a = 1
    return made


def make_keyed():
    made = Keyed(a=1)
    made.extra = 7
    return made


def make_queue():
    made: queue.Queue = queue.Queue()
    made.put(5)
    return made


def held():
    lock = threading.Lock()
    lock.acquire()
    return lock


def advanced():
    made = counted(5)
    next(made)
    return made


def iterator():
    made = iter([1, 2, 3])
    next(made)
    return made


def executor():
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1)


def array_kinds():
    import numpy as np
    import torch
    from torch import nn

    add = VALUES.__setitem__
    base = np.arange(24.0).reshape(4, 6)
    add("numpy", (lambda: base, lambda a: a.sum()))
    add("numpy view", (lambda: base[1::2, ::-1], lambda a: (a.tolist(), a.strides)))
    add("numpy scalar", (lambda: np.float32(1.5), repr))
    add("numpy of no dimension", (lambda: np.array(3), lambda a: (a.shape, a.item())))
    add("numpy, Fortran", (lambda: np.asfortranarray(base), lambda a: a.flags.f_contiguous))
    add("numpy strings", (lambda: np.array(["a", "bcd"]), lambda a: a.tolist()))
    add("numpy times", (lambda: np.array(["2026-01-01"], "M8[D]"), str))
    add("numpy masked", (lambda: np.ma.masked_array([1, 2], [0, 1]), lambda a: a.sum()))
    add("numpy objects", (lambda: np.array([Point(1), None], dtype=object), repr))
    add("numpy, read only", (read_only, lambda a: a.flags.writeable))
    add("numpy, empty", (lambda: np.empty((0, 3)), lambda a: a.shape))
    add("numpy, expanded", (lambda: np.broadcast_to(np.ones(3), (1000, 3)), lambda a: a.strides))
    add("numpy generator", (lambda: np.random.default_rng(2), lambda r: r.random()))
    add("numpy type", (lambda: np.dtype("f4"), str))
    add("numpy map", (numpy_map, lambda a: a.sum()))
    whole = torch.arange(12.0)
    add("tensor", (lambda: whole, lambda t: t.sum().item()))
    add("tensor view", (lambda: whole.view(3, 4).t()[1:], lambda t: (t.tolist(), t.stride())))
    add("tensors that share", (lambda: (whole, whole[2:]), shared))
    add("tensor with gradient", (lambda: torch.ones(2, requires_grad=True), gradient))
    add("result with gradient", (lambda: torch.ones(2, requires_grad=True) * 2, gradient))
    add("tensor types", (tensor_types, lambda ts: [(t.tolist(), str(t.dtype)) for t in ts]))
    add("tensor, expanded", (lambda: torch.ones(1).expand(10**6), lambda t: (t.stride(), t.sum())))
    add("tensor, sparse", (lambda: torch.eye(3).to_sparse(), lambda t: t.to_dense().sum().item()))
    add("tensor, empty", (lambda: torch.empty(0, 3), lambda t: tuple(t.shape)))
    add("tensor, meta", (lambda: torch.empty(2, 3, device="meta"), lambda t: (t.shape, t.device)))
    add("tensor, conjugated", (lambda: torch.tensor([1 + 2j]).conj(), lambda t: t.tolist()))
    add("parameter", (lambda: nn.Parameter(torch.ones(2)), lambda p: (p.requires_grad, p.shape)))
    add("module with a hook", (module_with_hook, lambda m: m(torch.ones(1, 2)).tolist()))
    add("optimizer", (optimizer, lambda o: o.param_groups[0]["lr"]))
    add("scheduler", (scheduler, lambda s: s.get_last_lr()))
    add("torch generator", (lambda: torch.Generator().manual_seed(3), random_of_torch))
    add("torch type", (lambda: torch.bfloat16, str))
    add("torch device", (lambda: torch.device("cpu"), str))
    add("torch size", (lambda: torch.Size([1, 2]), lambda s: s.numel()))
    add("data loader", (data_loader, lambda d: [x.tolist() for x in d]))


def frame_kinds():
    import pandas as pd

    add = VALUES.__setitem__
    add("data frame", (lambda: pd.DataFrame({"a": [1, 2], "b": ["x", None]}), lambda d: str(d)))
    add("series", (lambda: pd.Series([1.5], index=["k"]), lambda s: s["k"]))
    add("categories", (lambda: pd.Categorical(["a", "b"]), lambda c: list(c.codes)))
    add("time index", (lambda: pd.date_range("2026-01-01", periods=2), str))
    add("groups", (lambda: pd.DataFrame({"a": [1, 1]}).groupby("a"), lambda g: g.size().sum()))


def read_only():
    import numpy as np

    made = np.ones(3)
    made.flags.writeable = False
    return made


def numpy_map():
    import numpy as np

    np.arange(10.0).tofile("map.bin")
    return np.memmap("map.bin", dtype="f8", mode="r", shape=(10,))


def shared(pair):
    pair[1][0] = 100
    return float(pair[0][2])


def gradient(tensor):
    return tensor.requires_grad, tensor.tolist()


def tensor_types():
    import torch

    names = ("bool", "uint8", "int64", "float16", "bfloat16", "complex64")
    return [torch.tensor([1, 0]).to(getattr(torch, name)) for name in names]


def module_with_hook():
    from torch import nn

    made = nn.Linear(2, 1)
    nn.init.ones_(made.weight)
    nn.init.zeros_(made.bias)
    made.register_forward_hook(lambda module, given, result: result * 2)
    return made


def optimizer():
    import torch

    return torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.25)


def scheduler():
    import torch

    return torch.optim.lr_scheduler.LambdaLR(optimizer(), lambda epoch: 0.5**epoch)


def random_of_torch(generator):
    import torch

    return torch.rand(1, generator=generator).item()


def data_loader():
    import torch
    from torch.utils.data import DataLoader

    return DataLoader(torch.arange(3.0), batch_size=2)


def main():
    folder, which = sys.argv[1:3]
    {"plain": plain_kinds, "arrays": array_kinds, "frames": frame_kinds}[which]()
    for name, (make, check) in VALUES.items():
        value = make()
        try:
            use(name, value, make(), (lambda _: "-") if name in GONE else check)
        except ValueError as error:
            if not capture(error, folder, roots=[os.getcwd()], who=name):
                print(f"not kept: {name}")
    print(len(VALUES), "kinds")


if __name__ == "__main__":
    main()
