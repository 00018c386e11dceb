"""Random edits of Python source, as people make them: each takes a text and gives another, or None.

All of them are pure: the same text and the same random numbers give the same edit. `edit` tries
some until one fits and the result still compiles.
"""

from __future__ import annotations

import ast
import random
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Edit = Callable[[str, random.Random], str | None]
EDITS: dict[str, Edit] = {}
DATA_EDITS: dict[str, Edit] = {}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BLOCK_FIELDS = ("body", "orelse", "finalbody")
_TRIES = 25


def edit(text: str, rng: random.Random) -> tuple[str, str]:
    """Return an edited text and what was done to it."""
    for _ in range(_TRIES):
        label = rng.choice([*EDITS])
        new = EDITS[label](text, rng)
        if new is not None and new != text and compiles(new):
            return new, label
    return text, "no edit"


def edit_data(text: str, rng: random.Random) -> tuple[str, str]:
    """Return an edited data file and what was done to it."""
    label = rng.choice([*DATA_EDITS])
    new = DATA_EDITS[label](text, rng)
    return (text, "no edit") if new is None or new == text else (new, label)


def compiles(text: str) -> bool:
    """Tell whether Python takes it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "edited.py", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return False
    return True


def _is(label: str) -> Callable[[Edit], Edit]:
    def add(function: Edit) -> Edit:
        EDITS[label] = function
        return function

    return add


def _is_data(label: str) -> Callable[[Edit], Edit]:
    def add(function: Edit) -> Edit:
        DATA_EDITS[label] = function
        return function

    return add


# --- reading a text


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A statement: its lines, counted from 0 and without the end, and what it stands in."""

    node: ast.stmt
    start: int
    end: int
    indent: str
    siblings: int
    index: int
    owner: ast.AST
    function: ast.AST | None
    loop: bool
    field: str


def places(text: str) -> list[Place]:
    """List all statements that have lines of their own."""
    found = list(_places(ast.parse(text), None, False))
    lines = text.splitlines()
    return [one for one in found if _alone(one, lines)]


def _places(owner: ast.AST, function: ast.AST | None, loop: bool) -> Iterator[Place]:
    for field, body in _bodies(owner):
        for index, node in enumerate(body):
            decorators = getattr(node, "decorator_list", ())
            start = min([node.lineno, *(one.lineno for one in decorators)]) - 1
            yield Place(
                node=node,
                start=start,
                end=node.end_lineno or node.lineno,
                indent=" " * node.col_offset,
                siblings=len(body),
                index=index,
                owner=owner,
                function=function,
                loop=loop,
                field=field,
            )
            if isinstance(node, _FUNCTIONS):
                yield from _places(node, node, False)
            elif isinstance(node, ast.ClassDef):
                yield from _places(node, None, False)
            else:
                yield from _places(node, function, loop or isinstance(node, (ast.For, ast.While)))


def _bodies(owner: ast.AST) -> Iterator[tuple[str, list[ast.stmt]]]:
    for field in _BLOCK_FIELDS:
        body = getattr(owner, field, None)
        if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
            yield field, body
    for part in (*getattr(owner, "handlers", ()), *getattr(owner, "cases", ())):
        yield "handler" if isinstance(part, ast.ExceptHandler) else "case", part.body


def _alone(place: Place, lines: list[str]) -> bool:
    """Tell whether nothing else stands on the lines of a statement."""
    return (
        lines[place.start].startswith(place.indent)
        and lines[place.start][: len(place.indent)].strip() == ""
        and len(lines[place.end - 1].encode()[: place.node.end_col_offset])
        >= len(lines[place.end - 1].split("#")[0].rstrip().encode())
    )


def _pick(text: str, rng: random.Random, *kinds: type[ast.AST]) -> Place | None:
    """Choose a statement, rather a late one: that is where people edit."""
    choice = [one for one in places(text) if not kinds or isinstance(one.node, kinds)]
    if not choice:
        return None
    choice.sort(key=lambda one: one.start)
    late = rng.random() < 0.5
    return choice[rng.randrange(len(choice) // 2, len(choice))] if late else rng.choice(choice)


def _with_lines(text: str, start: int, end: int, new: list[str]) -> str:
    lines = text.splitlines()
    lines[start:end] = new
    return "\n".join(lines) + "\n"


def _names(text: str, place: Place) -> list[str]:
    """Name the variables that may be there."""
    scope: ast.AST = place.function or ast.parse(text)
    found = {
        node.id
        for node in ast.walk(scope)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    if place.function is not None:
        found |= {one.arg for one in ast.walk(place.function) if isinstance(one, ast.arg)}
    return sorted(found)


def _shift(lines: list[str], by: str) -> list[str]:
    return [by + line if line else line for line in lines]


def _lines_of(text: str, place: Place) -> list[str]:
    return text.splitlines()[place.start : place.end]


def _movable(place: Place) -> bool:
    """Tell whether taking a statement away leaves a block behind."""
    return place.siblings > 1


# --- insert and delete


def _statement(text: str, place: Place, rng: random.Random) -> str:
    """Write a new statement that could stand there."""
    names = _names(text, place) or ["None"]
    name, other = rng.choice(names), rng.choice(names)
    number = rng.randrange(100)
    return rng.choice(
        [
            f"print('new', {number})",
            f"print('new', {name!r}, type({name}).__name__)",
            f"print({name})",
            f"{name} = {name}",
            f"fresh_{number} = {name}",
            f"{name} = {number}",
            f"{name} = {other}",
            f"fresh = [{name} for _ in range(2)]; print(len(fresh))",
            f"import sys; print('late', {number}, file=sys.stderr)",
            f"hidden = lambda: {name}",
            "pass",
            f"assert {name} is {name}",
            f"del {name}",
            f"open('new.txt', 'a').write('{number}')",
            f"print(f'{{{number}!r:>6}}', end=' ')",
            f"if (walrus := {number}) > 50: print('walrus', walrus)",
        ]
    )


@_is("insert a statement")
def insert(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng)
    if place is None:
        return None
    at = rng.choice([place.start, place.end])
    new = [place.indent + one.strip() for one in _statement(text, place, rng).split(";")]
    return _with_lines(text, at, at, new)


@_is("insert a block")
def insert_block(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng)
    if place is None:
        return None
    inner = _statement(text, place, rng).split(";")[0]
    head = rng.choice(
        ["for fresh in range(2):", "if True:", "if not __name__:", "while True:", "try:"]
    )
    new = [head, "    " + inner]
    if head == "while True:":
        new.append("    break")
    if head == "try:":
        new += ["finally:", "    print('finally')"]
    return _with_lines(text, place.start, place.start, _shift(new, place.indent))


@_is("append at the end")
def append(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng)
    if place is None:
        return None
    number = rng.randrange(100)
    last = places(text)[-1]
    return _with_lines(text, last.end, last.end, [f"print('appended', {number})"])


@_is("delete a statement")
def delete(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng)
    if place is None:
        return None
    new = [] if _movable(place) else [place.indent + "pass"]
    return _with_lines(text, place.start, place.end, new)


@_is("delete the last statement")
def delete_last(text: str, rng: random.Random) -> str | None:
    last = [one for one in places(text) if one.indent == ""][-1]
    return _with_lines(text, last.start, last.end, []) if last.index else None


# --- change in place


def _constants(text: str, kind: type[object]) -> list[ast.Constant]:
    """List the constants of a kind; those in f-strings have no place of their own before 3.12."""
    tree = ast.parse(text)
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in ast.walk(node)}
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and type(node.value) is kind
        and id(node) not in inside
        and node.lineno == node.end_lineno
    ]


def _replace_node(text: str, node: ast.expr, new: str) -> str:
    lines = text.splitlines()
    line = lines[node.lineno - 1].encode()
    end = node.end_col_offset or 0
    changed = line[: node.col_offset] + new.encode() + line[end:]
    return _with_lines(text, node.lineno - 1, node.lineno, [changed.decode()])


@_is("change a number")
def change_number(text: str, rng: random.Random) -> str | None:
    found = _constants(text, int)
    if not found:
        return None
    node = rng.choice(found)
    value = node.value
    assert isinstance(value, int)
    new = rng.choice([str(value + 1), str(abs(value - 1)), f"{value}.0", str(value * 2), "True"])
    return _replace_node(text, node, new)


@_is("change a string")
def change_string(text: str, rng: random.Random) -> str | None:
    found = [one for one in _constants(text, str) if one.value not in ("w", "r", "a", "w+b")]
    if not found:
        return None
    node = rng.choice(found)
    return _replace_node(text, node, repr(str(node.value) + rng.choice("xyz")))


@_is("change a comparison or an operator")
def change_operator(text: str, rng: random.Random) -> str | None:
    pairs = [(" + ", " - "), (" * ", " + "), (" > ", " < "), (" == ", " != "), (" < ", " <= ")]
    pairs += [(" and ", " or "), (" += ", " -= "), (" in ", " not in "), (" % ", " // ")]
    rng.shuffle(pairs)
    for old, new in pairs:
        spots = [found.start() for found in re.finditer(re.escape(old), text)]
        spots = [at for at in spots if "for " not in text[text.rfind("\n", 0, at) + 1 : at]]
        if spots:
            at = rng.choice(spots)
            return text[:at] + new + text[at + len(old) :]
    return None


@_is("use another variable")
def change_name(text: str, rng: random.Random) -> str | None:
    tree = ast.parse(text)
    loads = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    ]
    loads = [node for node in loads if text.splitlines()[node.lineno - 1].count("'") == 0]
    if len(loads) < 2:
        return None
    node, other = rng.sample(loads, 2)
    return _replace_node(text, node, other.id)


@_is("rename a variable of a function")
def rename(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng, *_FUNCTIONS)
    if place is None:
        return None
    names = sorted(
        {
            node.id
            for node in ast.walk(place.node)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
    )
    if not names:
        return None
    name = rng.choice(names)
    lines = [re.sub(rf"\b{name}\b", f"{name}_2", line) for line in _lines_of(text, place)]
    return _with_lines(text, place.start, place.end, lines)


@_is("negate a condition")
def negate(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng, ast.If)
    if place is None:
        return None
    lines = _lines_of(text, place)
    new, count = re.subn(r"\bif (.*):$", r"if not (\1):", lines[0])
    return _with_lines(text, place.start, place.end, [new, *lines[1:]]) if count else None


# --- move things about


@_is("duplicate a statement")
def duplicate(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng)
    if place is None:
        return None
    return _with_lines(text, place.end, place.end, _lines_of(text, place))


@_is("move a statement")
def move(text: str, rng: random.Random) -> str | None:
    place, goal = _pick(text, rng), _pick(text, rng)
    if place is None or goal is None or not _movable(place):
        return None
    if goal.indent != place.indent or place.start <= goal.start < place.end:
        return None
    moved = _lines_of(text, place)
    if goal.start > place.start:
        text = _with_lines(text, goal.start, goal.start, moved)
        return _with_lines(text, place.start, place.end, [])
    text = _with_lines(text, place.start, place.end, [])
    return _with_lines(text, goal.start, goal.start, moved)


@_is("swap two statements")
def swap(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng)
    if place is None:
        return None
    after = [
        one
        for one in places(text)
        if one.owner is not None
        and one.indent == place.indent
        and one.start >= place.end
        and one.start - place.end <= 3
    ]
    if not after:
        return None
    other = after[0]
    lines = text.splitlines()
    between = lines[place.end : other.start]
    new = [*_lines_of(text, other), *between, *_lines_of(text, place)]
    return _with_lines(text, place.start, other.end, new)


# --- layout only


@_is("add blank lines")
def blank_lines(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng)
    if place is None:
        return None
    return _with_lines(text, place.start, place.start, [""] * rng.randrange(1, 4))


@_is("add a comment")
def comment(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng)
    if place is None:
        return None
    new = [f"{place.indent}# a comment {rng.randrange(100)}"]
    return _with_lines(text, place.start, place.start, new)


@_is("add a comment at the end of a line")
def comment_behind(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng)
    if place is None:
        return None
    lines = _lines_of(text, place)
    return _with_lines(text, place.start, place.end, [*lines[:-1], lines[-1] + "  # behind"])


@_is("remove blank lines and comments")
def close_up(text: str, rng: random.Random) -> str | None:
    lines = text.splitlines()
    empty = [n for n, line in enumerate(lines) if not line or line.lstrip().startswith("#")]
    if not empty:
        return None
    at = rng.choice(empty)
    return _with_lines(text, at, at + 1, [])


@_is("spread a call over several lines")
def spread(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng, ast.Expr, ast.Assign, ast.Return)
    if place is None or place.end - place.start != 1:
        return None
    value = getattr(place.node, "value", None)
    if not isinstance(value, ast.Call) or not value.args:
        return None
    line = _lines_of(text, place)[0].encode()
    first = value.args[0]
    end = value.end_col_offset or 0
    if line[first.col_offset - 1 : first.col_offset] != b"(":
        return None
    inner = place.indent + "    "
    new = [
        line[: first.col_offset].decode(),
        inner
        + line[first.col_offset : end - 1].decode().rstrip(", ")
        + ("," if len(value.args) > 1 else ""),
        place.indent + line[end - 1 :].decode(),
    ]
    return _with_lines(text, place.start, place.end, new)


@_is("put brackets around a value")
def brackets(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng, ast.Assign, ast.Return)
    if place is None or place.end - place.start != 1:
        return None
    value = getattr(place.node, "value", None)
    if value is None:
        return None
    line = _lines_of(text, place)[0].encode()
    head, tail = line[: value.col_offset].decode(), line[value.col_offset :].decode()
    new = [head + "(", place.indent + "    " + tail, place.indent + ")"]
    return _with_lines(text, place.start, place.end, new)


@_is("change the quotes")
def quotes(text: str, rng: random.Random) -> str | None:
    found = [one for one in _constants(text, str) if "'" not in str(one.value)]
    return (
        _replace_node(text, node, repr(node.value))
        if found and (node := rng.choice(found))
        else None
    )


# --- functions and classes


@_is("add a docstring or change it")
def docstring(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng, *_FUNCTIONS, ast.ClassDef)
    if place is None:
        return None
    assert isinstance(place.node, (*_FUNCTIONS, ast.ClassDef))
    first = place.node.body[0]
    new = f'{" " * first.col_offset}"""Words {rng.randrange(100)}."""'
    if first.lineno == place.node.lineno:
        return None
    has = ast.get_docstring(place.node) is not None
    start = min([first.lineno, *(one.lineno for one in getattr(first, "decorator_list", ()))]) - 1
    end = (first.end_lineno or first.lineno) if has else start
    return _with_lines(text, start, end, [new])


@_is("change a default argument")
def default(text: str, rng: random.Random) -> str | None:
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.arguments):
            found += [one for one in [*node.defaults, *node.kw_defaults] if one is not None]
    found = [one for one in found if one.lineno == one.end_lineno]
    if not found:
        return None
    return _replace_node(text, rng.choice(found), rng.choice(["17", "None", "'z'", "[]"]))


@_is("add a parameter")
def parameter(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng, *_FUNCTIONS)
    if place is None:
        return None
    lines = _lines_of(text, place)
    at = next(n for n, line in enumerate(lines) if "def " in line)
    lines[at] = lines[at].replace("):", ", extra=5):", 1).replace("(, ", "(")
    return _with_lines(text, place.start, place.end, lines)


@_is("add a decorator")
def decorate(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng, *_FUNCTIONS, ast.ClassDef)
    if place is None:
        return None
    new = rng.choice(["(lambda made: made)", "(lambda made: print('decorated') or made)"])
    return _with_lines(text, place.start, place.start, [f"{place.indent}@{new}"])


@_is("remove a decorator")
def undecorate(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng, *_FUNCTIONS, ast.ClassDef)
    decorators = getattr(place.node, "decorator_list", None) if place else None
    if not decorators:
        return None
    one = rng.choice(decorators)
    return _with_lines(text, one.lineno - 1, one.end_lineno, [])


@_is("add a function and call it")
def new_function(text: str, rng: random.Random) -> str | None:
    top = [one for one in places(text) if one.indent == ""]
    number = rng.randrange(100)
    at = rng.choice(top)
    name = f"added_{number}"
    body = [f"def {name}(n=1):", f"    print('{name}', n)", "    return n + 1", ""]
    text = _with_lines(text, at.start, at.start, body)
    later = [one for one in places(text) if one.start > at.start + 3] or [places(text)[-1]]
    place = rng.choice(later)
    return _with_lines(text, place.end, place.end, [f"{place.indent}print({name}({number}))"])


@_is("add a method")
def new_method(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng, ast.ClassDef)
    if place is None:
        return None
    indent = place.indent + "    "
    name = rng.choice(["added", "__len__", "__bool__", "step", "__str__"])
    value = {"__bool__": "True", "__str__": "'text'"}.get(name, "3")
    new = ["", f"{indent}def {name}(self, *_):", f"{indent}    return {value}"]
    return _with_lines(text, place.end, place.end, new)


@_is("change a class variable or add one")
def class_variable(text: str, rng: random.Random) -> str | None:
    found = [one for one in places(text) if isinstance(one.owner, ast.ClassDef)]
    if not found:
        return None
    place = rng.choice(found)
    return _with_lines(text, place.end, place.end, [f"{place.indent}fresh = {rng.randrange(9)}"])


@_is("change the bases of a class")
def bases(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng, ast.ClassDef)
    if place is None:
        return None
    lines = _lines_of(text, place)
    at = next(n for n, line in enumerate(lines) if "class " in line)
    new = re.sub(r"class (\w+):", r"class \1(object):", lines[at])
    if new == lines[at]:
        new = re.sub(r"class (\w+)\(\w+\):", r"class \1:", lines[at])
    return _with_lines(text, place.start, place.end, [*lines[:at], new, *lines[at + 1 :]])


@_is("edit the body of a function")
def function_body(text: str, rng: random.Random) -> str | None:
    inside = [one for one in places(text) if one.function is not None]
    if not inside:
        return None
    place = rng.choice(inside)
    at = rng.choice([place.start, place.end])
    new = [place.indent + one.strip() for one in _statement(text, place, rng).split(";")]
    return _with_lines(text, at, at, new)


@_is("turn a function async, or into a generator")
def other_kind(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng, ast.FunctionDef)
    if place is None:
        return None
    if rng.random() < 0.5:
        lines = _lines_of(text, place)
        at = next(n for n, line in enumerate(lines) if "def " in line)
        lines[at] = lines[at].replace("def ", "async def ", 1)
        return _with_lines(text, place.start, place.end, lines)
    return _with_lines(text, place.end, place.end, [f"{place.indent}    yield 1"])


# --- names and scopes


@_is("declare a name global or nonlocal")
def declare(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng, *_FUNCTIONS)
    if place is None:
        return None
    assert isinstance(place.node, _FUNCTIONS)
    names = _names(text, place) + [
        node.id for node in ast.walk(place.node) if isinstance(node, ast.Name)
    ]
    if not names or place.node.body[0].lineno == place.node.lineno:
        return None
    at = place.node.body[0].lineno - 1
    word = rng.choice(["global", "nonlocal"])
    return _with_lines(text, at, at, [f"{place.indent}    {word} {rng.choice(names)}"])


@_is("drop a global or nonlocal declaration")
def undeclare(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng, ast.Global, ast.Nonlocal)
    if place is None:
        return None
    new = [] if _movable(place) else [place.indent + "pass"]
    return _with_lines(text, place.start, place.end, new)


@_is("turn a local into a closure variable")
def capture(text: str, rng: random.Random) -> str | None:
    inside = [one for one in places(text) if one.function is not None]
    if not inside:
        return None
    place = rng.choice(inside)
    name = rng.choice(_names(text, place) or ["None"])
    new = [f"captured = lambda: {name}", "print('captured', type(captured()).__name__)"]
    if rng.random() < 0.4:
        new = ["def captured():", f"    nonlocal {name}", f"    {name} = {name}", "captured()"]
    return _with_lines(text, place.end, place.end, _shift(new, place.indent))


@_is("add a variable")
def variable(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng)
    if place is None:
        return None
    name = rng.choice([f"fresh_{rng.randrange(9)}", *_names(text, place)])
    new = [f"{place.indent}{name} = {rng.randrange(100)}"]
    return _with_lines(text, place.start, place.start, new)


@_is("change a global")
def change_global(text: str, rng: random.Random) -> str | None:
    found = [one for one in places(text) if one.indent == "" and isinstance(one.node, ast.Assign)]
    found = [one for one in found if one.end - one.start == 1]
    if not found:
        return None
    place = rng.choice(found)
    target = _lines_of(text, place)[0].split(" = ")[0]
    new = f"{target} = {rng.choice(['3', '[1, 2]', 'None', repr('text')])}"
    return _with_lines(text, place.start, place.end, [new])


@_is("import something")
def new_import(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng)
    if place is None:
        return None
    name = rng.choice(["math", "sys", "os", "string", "not_there", "keyword"])
    return _with_lines(text, place.start, place.start, [f"{place.indent}import {name}"])


# --- the way through


@_is("leave early")
def leave(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng)
    if place is None:
        return None
    words = [
        "raise ValueError('early')",
        "raise",
        "raise SystemExit(3)",
        "raise KeyError from None",
    ]
    if place.function is not None:
        words += ["return", "return 7", "yield 5"]
    if place.loop:
        words += ["break", "continue"] * 2
    new = [rng.choice(words)]
    if rng.random() < 0.4:
        new = [f"if {rng.choice(['True', 'False', '__name__'])}:", "    " + new[0]]
    return _with_lines(text, place.start, place.start, _shift(new, place.indent))


@_is("wrap statements")
def wrap(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng)
    if place is None:
        return None
    inner = _shift(_lines_of(text, place), "    ")
    head, tail = rng.choice(
        [
            (["try:"], ["except Exception as wrapped:", "    print('wrapped', wrapped)"]),
            (["try:"], ["finally:", "    print('after')"]),
            (["import contextlib", "with contextlib.nullcontext():"], []),
            (["if True:"], ["else:", "    print('never')"]),
            (["for wrapped in range(1):"], []),
            (["if not __name__:"], []),
        ]
    )
    new = [*_shift(head, place.indent), *inner, *_shift(tail, place.indent)]
    return _with_lines(text, place.start, place.end, new)


@_is("unwrap a block")
def unwrap(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng, ast.If, ast.With, ast.Try, ast.For)
    if place is None:
        return None
    body = place.node.body  # type: ignore[attr-defined]
    first = min([body[0].lineno, *(one.lineno for one in getattr(body[0], "decorator_list", ()))])
    lines = text.splitlines()[first - 1 : body[-1].end_lineno]
    by = body[0].col_offset - len(place.indent)
    return _with_lines(text, place.start, place.end, [line[by:] for line in lines])


@_is("edit an except, else or finally body")
def handler(text: str, rng: random.Random) -> str | None:
    found = [one for one in places(text) if one.field in ("handler", "finalbody", "orelse", "case")]
    if not found:
        return None
    place = rng.choice(found)
    if rng.random() < 0.3 and _movable(place):
        return _with_lines(text, place.start, place.end, [])
    new = rng.choice([_statement(text, place, rng).split(";")[0], "raise", "print('here')"])
    return _with_lines(text, place.start, place.start, [place.indent + new])


@_is("add an else or a finally")
def add_branch(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng, ast.Try, ast.For, ast.While, ast.If)
    if place is None:
        return None
    word = "finally" if isinstance(place.node, ast.Try) else "else"
    new = [f"{place.indent}{word}:", f"{place.indent}    print('branch')"]
    return _with_lines(text, place.end, place.end, new)


@_is("change an iteration")
def iteration(text: str, rng: random.Random) -> str | None:
    place = _pick(text, rng, ast.For)
    if place is None:
        return None
    assert isinstance(place.node, ast.For)
    over = place.node.iter
    if over.lineno != over.end_lineno:
        return None
    inner = text.splitlines()[over.lineno - 1].encode()[over.col_offset : over.end_col_offset]
    new = rng.choice([f"list({inner.decode()})", f"list({inner.decode()})[:1]", "[]"])
    return _replace_node(text, over, new)


# --- data files


@_is_data("change a digit")
def digit(text: str, rng: random.Random) -> str | None:
    spots = [n for n, letter in enumerate(text) if letter.isdigit()]
    if not spots:
        return None
    at = rng.choice(spots)
    return text[:at] + str(rng.randrange(1, 10)) + text[at + 1 :]


@_is_data("duplicate a line")
def data_line(text: str, rng: random.Random) -> str | None:
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return None
    at = rng.randrange(1, len(lines))
    return "".join([*lines[:at], lines[at], *lines[at:]])


@_is_data("drop the last line")
def data_drop(text: str, rng: random.Random) -> str | None:
    lines = text.splitlines(keepends=True)
    return "".join(lines[:-1]) if len(lines) > 2 else None


@_is_data("change a letter")
def letter(text: str, rng: random.Random) -> str | None:
    spots = [n for n, one in enumerate(text) if one.isalpha()]
    if not spots:
        return None
    at = rng.choice(spots)
    return text[:at] + rng.choice("abcxyz") + text[at + 1 :]
