"""What may be edited behind the back of a program that has come so far, and what may not."""

from __future__ import annotations

import pytest

from relaunch.inside.warm.compare import Source, compare

HEAD = """\
import os

def load(path, n=3):
    \"\"\"Read it.\"\"\"
    data = list(range(n))
    if path:
        data.append(1)
    else:
        data.append(2)
    return data

def save(data):
    total = sum(data)
    return total

class Model:
    rate = 1
    def step(self, x):
        y = x * self.rate
        return y

"""
BODY = "data = load('x')\nprint(data)\nprint(save(data))\n"
OLD = HEAD + BODY


def _seen(source: Source, *lines: int) -> bytes:
    """Mark the sites before the statements of these lines, as if the program had come by."""
    seen = bytearray(source.size)
    for block in source.blocks:
        for index, statement in enumerate(block.body):
            if statement.lineno in lines:
                seen[block.first + index] = 1
    return bytes(seen)


# load() was called and took its first branch; the last statement is still to come.
RAN = (1, 3, 5, 6, 7, 10, 12, 16, 22, 23)


@pytest.mark.parametrize(
    ("edited", "line"),
    [
        (OLD, "nothing"),
        (OLD.replace("print(save(data))", "print(save(data), 2)"), "the statement that is next"),
        (OLD + "print('more')\n", "statements at the end"),
        (OLD.replace("total = sum(data)", "total = max(data)"), "a function never entered"),
        (OLD.replace("data.append(2)", "data.append(3)"), "a branch never taken"),
        (OLD.replace("y = x * self.rate", "y = x"), "a method never called"),
        (OLD.replace("import os\n", "import os  # a comment\n\n\n"), "comments and blank lines"),
        (OLD.replace("load('x')", "load(\n    'x',\n)"), "the layout of a call"),
        (OLD.replace("data = list(range(n))", "data = list( range( n ) )"), "blanks"),
    ],
)
def test_stays_valid(edited: str, line: str) -> None:
    old = Source(OLD, "a.py")
    assert compare(old, Source(edited, "a.py"), _seen(old, *RAN))[0] == "", line


@pytest.mark.parametrize(
    ("edited", "line"),
    [
        (OLD.replace("import os", "import sys"), "line 1"),
        (OLD.replace("n=3", "n=4"), "line 3"),
        (OLD.replace("Read it", "Read them"), "line 4"),
        (OLD.replace("range(n)", "range(n + 1)"), "line 5"),
        (OLD.replace("if path:", "if not path:"), "line 6"),
        (OLD.replace("append(1)", "append(7)"), "line 7"),
        (OLD.replace("append(1)", "append(True)"), "line 7"),
        (OLD.replace("rate = 1", "rate = 1.0"), "line 17"),
        (OLD.replace("rate = 1\n", "rate = 1\n    other = 2\n"), "line 1"),
        (OLD.replace("def save(data):", "def save(data, more=None):"), "line 12"),
        (OLD.replace("def save", "@print\ndef save"), "line 12"),
        (OLD.replace("load('x')", "load('y')"), "line 22"),
        (OLD.replace("print(data)\n", "print(1)\nprint(data)\n"), "line 23"),
        (OLD.replace("    return data\n", "    return data\n    path = 1\n"), "line 3"),
        (HEAD.replace("return data\n", "return [os for os in data]\n") + BODY, "line 10"),
    ],
)
def test_is_no_longer_valid(edited: str, line: str) -> None:
    old = Source(OLD, "a.py")
    why, _ = compare(old, Source(edited, "a.py"), _seen(old, *RAN))
    if "path = 1" in edited:  # after a return: nothing that ran is another statement
        assert why == ""
        return
    assert why.startswith(line), why


def test_a_name_that_becomes_local_is_another_variable() -> None:
    old = Source("n = 1\ndef f():\n    print(n)\n    print(2)\nf()\n", "a.py")
    new = Source("n = 1\ndef f():\n    print(n)\n    n = 2\nf()\n", "a.py")
    why, _ = compare(old, new, _seen(old, 1, 2, 3, 5))
    assert "`n` means another variable" in why


HIDDEN = (
    "def f(a):\n    b = [a]\n    c = [b]\n    return c\n    def g(): return b\nf(1)\nprint(2)\n"
)


@pytest.mark.parametrize(("ran", "is_valid"), [((1, 2, 3, 4), False), ((1, 2, 3), True)])
def test_a_function_that_ended_let_go_of_its_variables_in_their_order(ran, is_valid) -> None:
    old = Source(HIDDEN.replace("    def g(): return b\n", ""), "a.py")
    why, _ = compare(old, Source(HIDDEN, "a.py"), _seen(old, *ran, 5))
    assert why == ("" if is_valid else "line 1: its variables are in another order now")


def test_an_unentered_function_must_keep_the_variables_around_it() -> None:
    text = (
        "def f():\n    a = b = 1\n    def g():\n        return a\n    print(0)\n    return g\nf()\n"
    )
    old = Source(text, "a.py")
    why, _ = compare(
        old, Source(text.replace("return a", "return b"), "a.py"), _seen(old, 1, 2, 3, 5, 7)
    )
    assert "other variables" in why


def test_decorated_functions_are_looked_into_by_who_knows_whom() -> None:
    text = "@deco\ndef f():\n    return 1\nprint(2)\n"
    old = Source(text, "a.py")
    why, _ = compare(old, Source(text.replace("1", "3"), "a.py"), _seen(old, 2))
    assert "decorated" in why


@pytest.mark.parametrize(
    "decorator",
    [
        "staticmethod",
        "click.version_option(version, message='%(prog)s')",
        "pytest.mark.parametrize('n', [2, 4])",
        "mark.slow",
        "mock.patch.object(os, 'name', 'x')",
        "hydra.main(config_name='x')",
    ],
)
def test_decorators_that_only_keep_a_function_leave_it_free_to_be_edited(decorator) -> None:
    text = f"@{decorator}\ndef f():\n    return 1\nprint(2)\n"
    old = Source(text, "a.py")
    assert compare(old, Source(text.replace("1", "3"), "a.py"), _seen(old, 2))[0] == ""


@pytest.mark.parametrize("decorator", ["numba.jit", "main", "some.object(1)", "given(integers())"])
def test_decorators_that_may_look_into_a_function_hold_it(decorator) -> None:
    text = f"@{decorator}\ndef f():\n    return 7\nprint(2)\n"
    old = Source(text, "a.py")
    assert "decorated" in compare(old, Source(text.replace("7", "3"), "a.py"), _seen(old, 2))[0]


def test_tells_where_lines_moved() -> None:
    old = Source(OLD, "a.py")
    new = Source("# one\n" + OLD, "a.py")
    why, moves = compare(old, new, _seen(old, *RAN))
    assert (why, moves.any) == ("", True)
    assert moves((22, 22, 0, 16)) == (23, 23, 0, 16)
    assert not compare(old, Source(OLD + "x = 1\n", "a.py"), _seen(old, *RAN))[1].any


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Says."""\nx = 1\n', '"""Says more."""\nx = 1\n'),
        ("x = 1\n", '"""Says."""\nx = 1\n'),
        ("if True:\n    'Says.'\n", "'Says.'\n"),
        ("'Says.'\n", "if True:\n    pass\n'Says.'\n"),
        ("x = 1\n", "from __future__ import annotations\nx = 1\n"),
    ],
)
def test_what_stands_before_all_statements_of_a_file_was_done_when_it_was_begun(old, new) -> None:
    source = Source(old, "x.py")
    why, _ = compare(source, Source(new, "x.py"), bytes(source.size))
    assert why.endswith("the docstring or a __future__ import was edited")


def test_of_functions_that_may_have_been_dissected_all_counts() -> None:
    old, new = (Source(f"def f():\n    return {n}\nx = 1\n", "x.py") for n in (1, 2))
    seen = _seen(old, 1, 3)
    assert compare(old, new, seen)[0] == ""
    why, _ = compare(old, new, seen, dissected=True)
    assert why == "line 1 was edited, and the program looks into functions"
