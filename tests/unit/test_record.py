"""Records behave like frozen dataclasses, and JSON text is what `json` would read and write."""

import json
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.jsontext import dumps, loads
from relaunch.record import Record


class Point(Record):
    x: int
    y: int = 2


class Point3(Point):
    z: int = 3


def test_fields_are_taken_by_name_and_defaults_fill_the_rest():
    assert Point3(x=1).__dict__ == {"x": 1, "y": 2, "z": 3}


def test_a_missing_field_and_an_unknown_field_are_refused():
    with pytest.raises(TypeError, match="needs `x`"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no field `q`"):
        Point(x=1, q=2)  # type: ignore[call-arg]


def test_a_record_never_changes_but_gives_changed_copies():
    point = Point(x=1)
    with pytest.raises(AttributeError, match="frozen"):
        point.x = 5  # type: ignore[misc]
    assert point.but(y=9) == Point(x=1, y=9)
    assert point == Point(x=1)
    assert hash(point) == hash(Point(x=1))
    assert point != Point3(x=1)
    assert repr(point) == "Point(x=1, y=2)"


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(alphabet=st.characters(codec=None)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(values)
def test_what_is_written_is_what_json_reads_and_what_we_read_back(value):
    text = dumps(value)
    assert text.isascii()
    assert json.loads(text) == value
    assert loads(text) == value
    assert loads(json.dumps(value, indent=3)) == value


@pytest.mark.parametrize(
    "text", ["", "{", '{"a": }', "[1,]", "nope", "[" * 100_000, '{"a": 1} x', '"open']
)
def test_what_is_no_json_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"\S"):
        loads(text)


def test_not_a_number_survives_a_round_trip():
    assert math.isnan(loads(dumps(float("nan"))))


def test_broken_json_is_a_value_error_also_where_nobody_imported_json():
    code = (
        "from relaunch.jsontext import loads\n"
        "try: loads('{\"half')\n"
        "except ValueError as e: print('clear:', e)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout.startswith("clear: "), ran.stderr
