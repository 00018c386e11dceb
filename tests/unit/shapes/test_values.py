"""What a value is, as far as shapes go; no code of a stranger's is run to find out."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

import pytest
from tests.arrays import Array

from relaunch.inside.shapes.names import numbers_of
from relaunch.inside.shapes.values import has_arrays, is_shape, spec_of


class Slotted:
    __slots__ = ("dtype", "shape")

    def __init__(self):
        self.shape, self.dtype = (2, 3), "int"


class Lazy:
    """As a proxy of torch.fx: whatever it is asked for, it records."""

    def __getattr__(self, name):
        raise AssertionError(f"asked for {name}")


class Layer:
    """A layer with a shape of its own is no array."""

    def __init__(self):
        self.shape = (3, 32, 32)


class Symbolic(int):
    pass


class Open:
    dtype = "float"
    shape = (Symbolic(3), 4)


Pair = namedtuple("Pair", "one other")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, 7),
        (True, "bool"),
        (None, "NoneType"),
        (2.5, "float"),
        (Array(2, 3), (2, 3)),
        (Array(), ()),
        (Slotted(), (2, 3)),
        (Slotted.__new__(Slotted), "Slotted"),
        (Lazy(), "Lazy"),
        (Layer(), "Layer"),
        (Open(), (None, 4)),
        ([Array(1), Array(2)], ("list", (1,), (2,))),
        ((Array(1),), ("tuple", (1,))),
        (Pair(Array(1), Array(2)), ("tuple", (1,), (2,))),
        ([Array(1), 2], "list"),
        ([], "list"),
        ((1, 2), "tuple"),
        ([Array(1)] * 65, "list"),
        ({"a": Array(1), "n": 3}, ("dict", ("a", (1,)))),
        (OrderedDict(a=Array(1)), ("dict", ("a", (1,)))),
        ({1: Array(1)}, "dict"),
        (Array, "type"),
    ],
    ids=lambda one: type(one).__name__,  # an address would differ in each worker
)
def test_what_a_value_is(value, expected):
    assert spec_of(value) == expected


def test_one_array_several_and_none():
    specs = [(), (1, 2), ("list", (1,)), "list", 3]
    assert [is_shape(one) for one in specs] == [True, True, False, False, False]
    assert [has_arrays(one) for one in specs] == [True, True, True, False, False]


class Config:
    def __init__(self, **values):
        self.__dict__.update(values)


class Model:
    size = property(lambda self: 1 / 0)

    def __init__(self):
        self.n_head = 4
        self.flag = True
        self.config = Config(dim=8, inner=Config(no=9))
        self.other = Config(no=9)
        self.name = "x"


def test_the_numbers_that_a_call_can_name():
    given = [("self", Model()), ("n", 3), ("x", Array(2)), ("cls", Model), ("neg", -2)]
    assert numbers_of(given, {"width": 5, "cfg": Config(k=6), "module": pytest}) == {
        "self.n_head": 4,
        "self.config.dim": 8,
        "n": 3,
        "width": 5,
        "cfg.k": 6,
    }
