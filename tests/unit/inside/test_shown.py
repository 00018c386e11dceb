"""Any value on one line: what each kind looks like, and what no value can do to the program."""

from __future__ import annotations

import argparse
import array
import collections
import dataclasses
import datetime
import decimal
import enum
import functools
import json
import os
import random
import signal
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.inside import shown
from relaunch.inside.looks import patience
from relaunch.inside.private import Private
from relaunch.inside.shown import show, summary


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Config:
    rate: float = 0.1
    secret: str = dataclasses.field(default="hidden", repr=False)
    parts: object = None


@dataclasses.dataclass(slots=True)
class Slotted:
    a: int = 1
    b: int = 2


class Colour(enum.Enum):
    RED = 1


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Plain:
    def __init__(self) -> None:
        self._hidden = 1
        self.seen = [1, 2]


class Empty:
    __slots__ = ("a",)


def numbers():
    yield 1
    yield 2


def waiting():
    found = numbers()
    next(found)
    return found


def ended():
    found = numbers()
    list(found)
    return found


# --- what a value looks like


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (-1.5, "-1.5"),
        (float("nan"), "nan"),
        (True, "True"),
        (None, "None"),
        (2j, "2j"),
        ("it's\n", '"it\'s\\n"'),
        (b"\x00a", "b'\\x00a'"),
        (bytearray(b"ab"), "b'ab'"),
        ([1, [2, "a"]], "[1, [2, 'a']]"),
        ((), "()"),
        ((1,), "(1,)"),
        ({"a": 1, 2: None}, "{'a': 1, 2: None}"),
        ({3, 1, 2}, "{1, 2, 3}"),
        (set(), "set()"),
        (frozenset({1}), "frozenset({1})"),
        (collections.OrderedDict(a=1), "OrderedDict({'a': 1})"),
        (collections.defaultdict(list, a=[1]), "defaultdict({'a': [1]})"),
        (collections.deque([1, 2]), "deque([1, 2])"),
        (array.array("d", [1.5]), "array([1.5])"),
        ({"a": 1}.keys(), "dict_keys(['a'])"),
        (types.MappingProxyType({"a": 1}), "mappingproxy({'a': 1})"),
        (Point(1, 2), "Point(x=1, y=2)"),
        (time.gmtime(0)[:1], "(1970,)"),
        (Config(), "Config(rate=0.1, parts=None)"),
        (Slotted(), "Slotted(a=1, b=2)"),
        (Plain(), "Plain(seen=[1, 2], _hidden=1)"),
        (Empty(), "<Empty>"),
        (object(), "<object>"),
        (types.SimpleNamespace(a=1), "SimpleNamespace(a=1)"),
        (argparse.Namespace(rate=0.1), "Namespace(rate=0.1)"),
        (Colour.RED, "Colour.RED"),
        (Right.READ | Right.WRITE, "Right.READ|WRITE"),
        (Path("/a/b"), "PosixPath('/a/b')"),
        (decimal.Decimal("1.50"), "Decimal('1.50')"),
        (datetime.date(2020, 1, 2), "datetime.date(2020, 1, 2)"),
        (ValueError("bad", 3), "ValueError('bad', 3)"),
        (range(3), "range(0, 3)"),
        (..., "Ellipsis"),
        (int, "class int"),
        (datetime.date, "class datetime.date"),
        (print, "function print"),
        (functools.partial(print, 1, end=""), "partial(function print, 1, end='')"),
        (numbers(), "generator numbers, has not begun"),
        (ended(), "generator numbers, has ended"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_value_looks_like_this(value, text):
    assert show(value) == text


def test_a_generator_says_where_it_waits():
    line = numbers.__code__.co_firstlineno + 1
    assert show(waiting()) == f"generator numbers, waits at line {line}"


def test_functions_methods_and_modules_are_shown_by_name_and_not_by_address():
    assert show(numbers).endswith(f".numbers line {numbers.__code__.co_firstlineno}")
    assert show(Path("/").joinpath) == "method PurePath.joinpath of PosixPath"
    assert show(json).startswith("module json /")


def test_a_named_tuple_made_in_c_shows_its_names():
    assert show(os.times_result((1, 2, 3, 4, 5))).startswith("times_result(user=1, system=2")


# --- what is long


def test_a_long_text_keeps_its_ends_and_says_its_length():
    text = show("a" * 5000 + "z" * 5000)
    assert text.startswith("'aaa")
    assert text.endswith("zzz' (10,000 characters)")
    assert 190 < len(text) <= 200


def test_escapes_in_a_long_text_are_never_cut_into_a_text_that_is_too_long():
    assert len(show("\x00" * 500, 60)) <= 60
    assert len(show(b"\x00" * 500, 60)) <= 60
    assert show("'" * 500, 60).endswith("(500 characters)")


def test_a_long_list_counts_what_is_not_shown():
    text = show(list(range(1000)))
    assert text.startswith("[0, 1, 2")
    assert text.endswith(f", … {1000 - text.count(',')} more]")


def test_an_int_of_ten_thousand_digits_is_shown():
    assert show(10**10_000) == "1.0000e+10000 (about 10,001 digits)"
    assert show(-(10**400)).endswith("000 (401 digits)")
    assert show(12345 * 10**5000) == "1.2345e+5004 (about 5,005 digits)"


def test_a_gigantic_text_costs_no_more_than_a_long_one():
    huge = "x" * 100_000_000
    began = time.thread_time()
    show(huge)
    show([huge])
    assert time.thread_time() - began < 0.05


def test_a_list_that_holds_itself_is_shown():
    loop: list[Any] = [1]
    loop.append(loop)
    assert show(loop) == "[1, [...]]"
    knot: dict[str, Any] = {}
    knot["self"] = [knot]
    assert show(knot) == "{'self': [{...}]}"


def test_what_is_deep_is_counted_and_not_opened():
    deep: Any = 1
    for _ in range(3000):
        deep = [deep]
    assert show(deep) == "[[[[[… 1 more]]]]]"


def test_a_dataclass_that_holds_itself_is_shown():
    config = Config()
    config.parts = config
    assert show(config) == "Config(rate=0.1, parts=Config(...))"


# --- strangers


class Fails:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Exits:
    def __repr__(self) -> str:
        sys.exit(3)


class Asks:
    def __repr__(self) -> str:
        return f"Asks({show(self)}, {self!r})"


class Wrong:
    def __repr__(self) -> Any:
        return 3


class Many:
    def __repr__(self) -> str:
        return "line one\n   line two\x1b[31m\r\u2028\udc80" + "x" * 10_000_000


class Endless:
    def __repr__(self) -> str:
        while True:
            pass


class Long:
    def __init__(self) -> None:
        self.items = list(range(100_000))

    def __repr__(self) -> str:
        raise AssertionError("it is not asked: what it holds is too long")


class Dawdles:
    asked = 0

    def __repr__(self) -> str:
        Dawdles.asked += 1
        end = time.thread_time() + patience.SLOW_CPU_S
        while time.thread_time() <= end:
            pass
        return "at last"


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError(name)


class Odd(metaclass=Meta):
    __class__ = property(lambda self: 1 / 0)
    __dict__ = property(lambda self: 1 / 0)

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


@pytest.mark.parametrize("kind", [Fails, Exits, Asks, Wrong], ids=lambda kind: kind.__name__)
def test_an_object_whose_repr_fails_is_shown_by_its_class(kind):
    assert show(kind()) in (f"<{kind.__name__}>", "Asks(<Asks>, Asks(<Asks>, …")
    assert show([kind()])


def test_an_object_whose_class_answers_nothing_is_shown_by_its_name():
    assert show(Odd()) == "<Odd>"
    assert show([Odd(), 1]) == "[<Odd>, 1]"


def test_a_repr_of_many_lines_is_one_line_without_control_characters():
    text = show(Many())
    assert text.startswith("line one line two\\x1b[31m")
    assert text.isprintable()
    assert len(text) == 200


def test_a_repr_without_an_end_is_ended_and_its_class_not_asked_again():
    before = signal.getsignal(signal.SIGVTALRM)
    began = time.thread_time()
    assert show(Endless()) == "<Endless>"
    assert time.thread_time() - began < 2
    again = time.thread_time()
    assert show(Endless()) == "<Endless>"
    assert time.thread_time() - again < 0.05
    assert signal.getsignal(signal.SIGVTALRM) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)


def test_the_timer_of_a_program_that_uses_it_is_left_alone():
    told: list[int] = []
    before = signal.signal(signal.SIGVTALRM, lambda *_: told.append(1))
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)
        assert show(decimal.Decimal(1)) == "Decimal('1')"
        assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0
        while not told:
            pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def test_a_repr_that_took_long_is_asked_once():
    assert show(Dawdles()) == "at last"
    assert show(Dawdles()) == "<Dawdles>"
    assert Dawdles.asked == 1


def test_an_object_that_holds_much_is_shown_by_its_fields():
    assert show(Long()).startswith("Long(items=[0, 1, 2")


def test_what_hides_its_text_stays_hidden():
    class Secret:
        def __init__(self) -> None:
            self.value = "k" * 5000

        def __repr__(self) -> str:
            return "Secret(**)"

    assert show([Secret()]) == "[Secret(**)]"


def test_on_another_thread_a_repr_is_asked_too():
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(show(decimal.Decimal(2))))
    thread.start()
    thread.join()
    assert found == ["Decimal('2')"]


def test_ctrl_c_in_a_repr_reaches_the_program():
    class Interrupted:
        def __repr__(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        show(Interrupted())


def test_fields_are_read_without_running_code_of_the_class():
    class Lazy:
        __slots__ = ("made",)
        made: int

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    lazy = Lazy()
    assert show(lazy) == "<Lazy>"
    lazy.made = 3
    assert show(lazy) == "Lazy(made=3)"


def test_containers_of_a_class_of_their_own_are_gone_through_as_what_they_are():
    class Loud(dict):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            raise AssertionError

        items = keys = values = __len__ = __getitem__ = __iter__  # type: ignore[assignment]

    assert show(Loud(a=1)) == "Loud({'a': 1})"


# --- laws


plain = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(),
    st.binary(), st.decimals(), st.datetimes(), st.fractions(), st.uuids(), st.timedeltas(),
)  # fmt: skip
hashable = st.one_of(st.integers(), st.text(), st.binary(), st.booleans(), st.none())
values = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner),
        st.tuples(inner, inner),
        st.dictionaries(hashable, inner),
        st.sets(hashable),
        st.frozensets(hashable),
        st.builds(lambda a: types.SimpleNamespace(a=a), inner),
        st.builds(lambda a: Config(parts=a), inner),
        st.builds(lambda a: ValueError(a), inner),
        st.builds(lambda a: collections.deque(a), st.lists(inner)),
        st.builds(lambda a: Point(a, a), inner),
    ),
    max_leaves=20,
)


@examples(200)
@given(values, st.integers(20, 300))
def test_it_is_one_line_that_fits_and_says_the_same_again(value, room):
    text = show(value, room)
    assert 0 < len(text) <= room
    assert text.isprintable()
    assert show(value, room) == text


@examples(60)
@given(values)
def test_the_value_and_the_random_state_stay_as_they_were(value):
    before, state = repr(value), random.getstate()
    show(value)
    summary(value)
    assert repr(value) == before
    assert random.getstate() == state


@examples(60)
@given(st.one_of(st.integers(), st.floats(), st.text(max_size=50), st.binary(max_size=50)))
def test_what_is_short_is_shown_as_python_writes_it(value):
    if len(repr(value)) <= 200:
        assert show(value) == repr(value)


@examples(60)
@given(values)
def test_a_summary_is_fit_for_json(value):
    found = json.loads(json.dumps(summary(value), allow_nan=False))
    assert found["text"] == show(value)
    assert found["type"]


# --- how it is loaded


def test_it_works_beside_the_modules_of_the_program():
    loaded = Private(str(Path(shown.__file__).parent)).load("shown")
    assert loaded is not shown
    assert loaded.show({"a": [Config(), Plain(), decimal.Decimal(1)]}) == show(
        {"a": [Config(), Plain(), decimal.Decimal(1)]}
    )


def test_types_without_end_are_not_remembered_without_end():
    for number in range(2000):
        assert show(type(f"T{number}", (), {})()) == f"<T{number}>"
    looks = sys.modules["relaunch.inside.looks.choose"].looks
    assert len(looks) <= sys.modules["relaunch.inside.looks.choose"].KINDS
    assert show(3) == "3"
