"""What a setup.py asks for, worked out from its text; it is never run."""

from __future__ import annotations

import ast
import copy
import posixpath
import re

from relaunch.record import Record
from relaunch.trial.place.stated.line import canonical, name_of, normalised, under
from relaunch.trial.place.stated.lists import read_lines
from relaunch.trial.place.stated.said import Said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any


def from_setup_script(texts: Mapping[str, str]) -> Iterator[Said]:
    if "setup.py" not in texts:
        return
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its escapes in strings
            script = _Script(ast.parse(texts["setup.py"]), texts)
    except (SyntaxError, ValueError, RecursionError):  # of Python 2, or not even that
        yield Said(file="setup.py", dynamic=True)
        return
    asked = script.arguments
    needs = script.lines(asked["install_requires"]) if "install_requires" in asked else None
    if needs is None and asked.get("pbr") is True:
        needs = script.lines(script.file("requirements.txt"))
    extras = {"test": script.lines(asked.get("tests_require")) or []}
    named = asked.get("extras_require")
    for key, value in named.items() if isinstance(named, dict) else ():
        name, _, marker = str(key).partition(":")
        lines = [under(line, marker) if marker else line for line in script.lines(value) or ()]
        if name:
            extras[name] = [*extras.get(name, ()), *lines]
        else:
            needs = [*(needs or ()), *lines]
    yield Said(
        file="setup.py",
        needs=needs,
        build=script.lines(asked.get("setup_requires")) or (),
        python=_text(asked.get("python_requires")),
        dynamic=script.unsure(asked.get("install_requires")),
        name=_text(asked.get("name")),
        extras={name: lines for name, lines in extras.items() if lines},
        also_read=tuple(name for name in script.read if _is_in(name, texts, needs or ())),
        missing=tuple(script.missing),
    )


def _is_in(name: str, texts: Mapping[str, str], needs: Iterable[str]) -> bool:
    return set(read_lines(name, texts).needs) <= set(map(normalised, needs))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class _Unknown:
    """A value that only running the script would tell."""

    def __deepcopy__(self, memo: object) -> _Unknown:
        return self


_UNKNOWN = _Unknown()


class _Condition(Record):
    """A test of the world as a marker, and the opposite of it."""

    yes: str
    no: str


class _Script:
    """The arguments of `setup(...)`, worked out from the text of a script that is never run.

    Literals, names, sums, branches on the version of Python or the platform, and the requirements
    files that an expression mentions, however it goes on to read them.
    """

    def __init__(self, tree: ast.Module, texts: Mapping[str, str]) -> None:
        """Read it from top to bottom; functions only if no call of setup() was met."""
        self._texts = texts
        self.arguments: dict[str, Any] = {}
        self.read: list[str] = []
        self.missing: list[str] = []
        self._listed = [
            item.value
            for node in ast.walk(tree)
            for item in (node.elts if isinstance(node, ast.List) else ())
            if isinstance(item, ast.Constant) and isinstance(item.value, str)
        ]
        self._values: dict[str, Any] = {}
        self._meant: dict[str, ast.AST] = {}
        """What a name that has no value stands for."""
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        self._meant.update((function.name, function) for function in functions)
        self._run(tree.body)
        for function in functions:
            if not self.arguments:
                self._run(function.body)

    def lines(self, value: object) -> list[str] | None:
        """Return what is known of a list of requirements; None when nothing is."""
        if isinstance(value, str):
            value = value.splitlines()
        if not isinstance(value, list):
            return None
        return [item for item in value if isinstance(item, str) and item.strip()]

    def unsure(self, value: object) -> bool:
        """Tell whether a list of requirements holds something that is not known."""
        if isinstance(value, list):
            return any(not isinstance(item, str) for item in value)
        return isinstance(value, (_Unknown, dict))

    def file(self, name: str) -> list[Any]:
        """Return the lines of a requirements file of the revision."""
        found = read_lines(name, self._texts)
        self.read += found.read
        self.missing += found.missing
        return [*found.needs, *([_UNKNOWN] if found.dynamic else [])]

    # statements

    def _run(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.If):
            certain = _is_main(node.test)
            self._branch(node.body, node.orelse, certain or self._value(node.test))
        elif isinstance(node, (ast.For, ast.While)):
            self._branch(node.body, [], _UNKNOWN)
        elif isinstance(node, ast.With):
            for item in node.items:
                if isinstance(item.optional_vars, ast.Name):
                    self._set(item.optional_vars.id, item.context_expr)
            self._run(node.body)
        elif isinstance(node, ast.Try):
            self._run([*node.body, *node.orelse, *node.finalbody])
            for handler in node.handlers:
                self._branch(handler.body, [], _UNKNOWN)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._assign(node.target, node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            name, more = node.target.id, self._value(node.value)
            self._values[name] = _sum(self._values.get(name, _UNKNOWN), more)
        elif isinstance(node, (ast.Expr, ast.Return)) and isinstance(node.value, ast.Call):
            self._call(node.value)

    def _branch(self, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], condition: Any) -> None:
        if condition is True:
            self._run(body)
            return
        before = copy.deepcopy(self._values)
        self._run(body)
        taken, self._values = self._values, before
        self._run(orelse)
        for name in {*taken, *self._values}:
            one, other = taken.get(name, _UNKNOWN), self._values.get(name, _UNKNOWN)
            self._values[name] = _either(one, other, condition)

    def _set(self, name: str, node: ast.expr) -> None:
        self._values[name] = self._value(node)
        self._meant[name] = node

    def _assign(self, target: ast.expr, node: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._set(target.id, node)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            table, key = self._values.get(target.value.id), self._value(target.slice)
            if isinstance(table, dict) and isinstance(key, str):
                table[key] = self._value(node)

    def _call(self, node: ast.Call) -> None:
        """Follow `setup(...)`, and what changes a list or a table in place."""
        function = node.func
        called = _name(function)
        if called == "setup":
            self.arguments.update(self._keywords(node))
        elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            held = self._values.get(function.value.id)
            values = [self._value(argument) for argument in node.args]
            if isinstance(held, list) and called in ("append", "insert") and values:
                held.append(values[-1])
            elif isinstance(held, list) and called == "extend" and values:
                held += values[0] if isinstance(values[0], list) else [_UNKNOWN]
            elif isinstance(held, dict) and called == "update":
                for value in values:
                    held.update(value if isinstance(value, dict) else {})
                held.update(self._keywords(node))

    def _keywords(self, node: ast.Call) -> dict[Any, Any]:
        """Return the arguments of a call by their names, those of `**table` too."""
        table: dict[Any, Any] = {}
        for keyword in node.keywords:
            value = self._value(keyword.value)
            if keyword.arg:
                table[keyword.arg] = value
            elif isinstance(value, dict):
                table.update(value)
        return table

    # expressions

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return copy.copy(self._values.get(node.id, _UNKNOWN))
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return self._list(node.elts)
        if isinstance(node, ast.Dict):
            return self._dict(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return _sum(self._value(node.left), self._value(node.right))
        if isinstance(node, ast.IfExp):
            condition = self._value(node.test)
            return _either(self._value(node.body), self._value(node.orelse), condition)
        if isinstance(node, ast.Subscript):
            return self._item(node)
        if isinstance(node, (ast.Compare, ast.UnaryOp)):
            return self._condition(node)
        if isinstance(node, ast.JoinedStr):
            return self._joined(node)
        if isinstance(node, ast.Call):
            return self._called(node)
        return self._from_files(node)

    def _list(self, nodes: Iterable[ast.expr]) -> list[Any]:
        items: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                inner = self._value(node.value)
                items += inner if isinstance(inner, list) else [_UNKNOWN]
            else:
                items.append(self._value(node))
        return items

    def _dict(self, node: ast.Dict) -> dict[Any, Any]:
        table: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            found = self._value(value)
            if key is not None:
                name = self._value(key)
                table[name if isinstance(name, str) else _UNKNOWN] = found
            elif isinstance(found, dict):
                table.update(found)
        return table

    def _joined(self, node: ast.JoinedStr) -> Any:
        parts = [
            self._value(part.value if isinstance(part, ast.FormattedValue) else part)
            for part in node.values
        ]
        return "".join(parts) if all(isinstance(part, str) for part in parts) else _UNKNOWN

    def _item(self, node: ast.Subscript) -> Any:
        held, key = self._value(node.value), self._value(node.slice)
        if isinstance(held, dict) and isinstance(key, str):
            return held.get(key, _UNKNOWN)
        if isinstance(key, str):
            # A table that the script makes of a list of requirements, by their names.
            for line in self._listed:
                if name_of(line) == canonical(key):
                    return line
        return _UNKNOWN

    def _called(self, node: ast.Call) -> Any:
        name = _name(node.func)
        if name == "setup":
            self._call(node)
        if name == "dict":
            return self._keywords(node)
        if name in ("list", "tuple", "set", "sorted") and len(node.args) == 1:
            inner = self._value(node.args[0])
            return inner if isinstance(inner, list) else self._from_files(node)
        if isinstance(node.func, ast.Attribute):
            held = self._value(node.func.value)
            values = [self._value(argument) for argument in node.args]
            if isinstance(held, str):
                known = all(isinstance(value, str) for value in values) and not node.keywords
                return _changed_text(held, name, values) if known else _UNKNOWN
            if isinstance(held, (list, dict)) and name == "copy":
                return held
        return self._from_files(node)

    def _from_files(self, node: ast.AST) -> Any:
        """Return the lines of the requirements files that an expression mentions."""
        names = dict.fromkeys(self._mentioned(node, set()))
        return [line for name in names for line in self.file(name)] if names else _UNKNOWN

    def _mentioned(self, node: ast.AST, seen: set[str]) -> Iterator[str]:
        """Find the files that a node names itself; without any, those that its names stand for."""
        own = [path for path in map(posixpath.normpath, _paths(node)) if _FILE.match(path)]
        yield from own
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} if not own else set()
        for name in sorted(names & self._meant.keys()):
            if name not in seen:
                seen.add(name)
                yield from self._mentioned(self._meant[name], seen)

    # conditions

    def _condition(self, node: ast.expr) -> Any:
        """Turn a test of the world into a marker, where there is one for it."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._value(node.operand)
            known = isinstance(inner, _Condition)
            return _Condition(yes=inner.no, no=inner.yes) if known else _UNKNOWN
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            how = _HOW.get(type(node.ops[0]), "")
            return _compared(ast.unparse(node.left), how, self._value(node.comparators[0]))
        return _UNKNOWN


_FILE = re.compile(r".*(requir|depend|deps|reqs).*\.(txt|in)$", re.IGNORECASE)
_HOW = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_MAJOR = {
    **dict.fromkeys((("<", 3), ("<=", 2), ("==", 2), ("!=", 3)), "<"),
    **dict.fromkeys(((">=", 3), (">", 2), ("==", 3), ("!=", 2)), ">="),
}
_VARIABLES = {
    "sys.platform": "sys_platform",
    "os.name": "os_name",
    "platform.system()": "platform_system",
    "platform.python_implementation()": "platform_python_implementation",
}


def _compared(left: str, how: str, right: Any) -> Any:
    """Return the marker that says the same as a comparison with a literal."""
    if left in _VARIABLES and how in ("==", "!=") and isinstance(right, str):
        return _marked(_VARIABLES[left], how, right)
    if left in ("sys.version_info[0]", "sys.version_info.major"):
        how = _MAJOR.get((how, right), "") if isinstance(right, int) else ""
        return _marked("python_version", how, "3") if how else _UNKNOWN
    numbers = right if isinstance(right, list) else []
    if left not in ("sys.version_info", "sys.version_info[:2]") or not how or not numbers:
        return _UNKNOWN
    if not all(type(number) is int for number in numbers):
        return _UNKNOWN
    if left == "sys.version_info":  # it goes on after these numbers, so it is never equal
        how = {"<=": "<", ">": ">="}.get(how, how)
    name = "python_full_version" if len(numbers) > 2 else "python_version"
    return _marked(name, how, ".".join(map(str, numbers)))


def _marked(name: str, how: str, value: str) -> _Condition:
    return _Condition(yes=f'{name} {how} "{value}"', no=f'{name} {_OPPOSITE[how]} "{value}"')


def _changed_text(text: str, method: str, values: Sequence[str]) -> Any:
    """Return what a method of a text returns, for the few that lists are written with."""
    if method in ("split", "splitlines", "strip") and "" not in values:
        return getattr(text, method)(*values[: method != "splitlines"])
    if method == "format" and text.count("{}") == text.count("{") == len(values):
        for value in values:
            text = text.replace("{}", value, 1)
        return text
    return _UNKNOWN


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, str) and isinstance(other, str):
        return one + other
    if isinstance(one, list) or isinstance(other, list):
        return [
            *(one if isinstance(one, list) else [_UNKNOWN]),
            *(other if isinstance(other, list) else [_UNKNOWN]),
        ]
    return _UNKNOWN


def _either(one: Any, other: Any, condition: Any) -> Any:
    """Return what holds after a branch: `one` where the condition does, else `other`."""
    if type(one) is type(other) and one == other:
        return one
    if isinstance(one, dict) and isinstance(other, dict):
        names = dict.fromkeys((*one, *other))
        return {name: _either(one.get(name, []), other.get(name, []), condition) for name in names}
    if not isinstance(one, list) or not isinstance(other, list):
        return _UNKNOWN
    both = [item for item in one if item in other]
    if not isinstance(condition, _Condition):
        return [*both, _UNKNOWN]
    only = [_where(item, condition.yes) for item in one if item not in both]
    return [*both, *only, *(_where(item, condition.no) for item in other if item not in both)]


def _where(item: Any, marker: str) -> Any:
    return under(item, marker) if isinstance(item, str) else item


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _paths(node: ast.AST) -> Iterator[str]:
    """Find the texts in a node that may be paths, those put together by a `join` as one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Call) and _name(node.func) in ("join", "joinpath"):
        yield "/".join(text for argument in node.args for text in _paths(argument))
    else:
        for inner in ast.iter_child_nodes(node):
            yield from _paths(inner)


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and _name(test.left) == "__name__"
