"""Puts the text of a call's arguments together again from its instructions, where that is simple.

Names, attributes, items, constants, operators and calls; anything else is `Unknown`.
"""

from __future__ import annotations

from relaunch.inside.looks.plain import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

CALLS = ("CALL", "CALL_KW", "CALL_FUNCTION_EX")
_CONSTANT = 40
"""Characters of a constant."""
_SAID = "constant"
_UNARY = {"UNARY_NEGATIVE": "-", "UNARY_INVERT": "~", "UNARY_NOT": "not ", "UNARY_POSITIVE": "+"}
_FROM_THE_LEFT = ("+", "-", "*", "/", "//", "%", "@", "&", "|", "^", "<<", ">>")
"""Operators of which several in a row need no brackets."""
_BUILD = {"BUILD_TUPLE": "()", "BUILD_LIST": "[]", "BUILD_SET": "{}"}
_NAMES = (
    "LOAD_NAME", "LOAD_GLOBAL", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_DEREF", "LOAD_CLASSDEREF",
    "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_FROM_DICT_OR_DEREF", "LOAD_FAST_LOAD_FAST",
)  # fmt: skip
# An empty place for `self` is not kept on the stack here, so what fills it has nothing to do.
_IDLE = (
    "CACHE", "RESUME", "PUSH_NULL", "PRECALL", "NOP", "EXTENDED_ARG", "KW_NAMES",
    "COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR", "POP_TOP",
)  # fmt: skip


class Unknown(Exception):
    """An instruction that is not understood."""


class Text(str):
    """A text, and whether it needs brackets beside an operator."""

    operator: str
    names: tuple[str, ...]
    """Those that a constant holds: the names of a call's last arguments."""

    def __new__(cls, text: str, operator: str = "") -> Text:
        """Take a text that an operator made, or that stands alone."""
        made = super().__new__(cls, text)
        made.operator, made.names = operator, ()
        return made

    def tight(self, beside: str = "") -> str:
        """Return it so that another operator can stand beside it."""
        return self if self.operator in ("", _SAID, beside) else f"({self})"


def rebuilt(steps: list[Any], constants: tuple[Any, ...]) -> tuple[str, list[str]]:
    """Return who is called at the end of these instructions, and the texts of the arguments."""
    call = steps[-1]
    if call.opname not in CALLS[:2]:
        raise Unknown(call.opname)
    stack: list[Text] = []
    for at, one in enumerate(steps[:-1]):
        if one.opname == "CALL" and (names := _names_before(steps, at, constants)):
            stack.append(_call(one, stack, names))
        elif one.opname == "TO_BOOL" and steps[at + 1].opname == "UNARY_NOT":
            continue
        else:
            _step(one, stack)
    if call.opname == "CALL_KW":
        _pop(stack)  # the names
    given = _popped(stack, call.arg)
    return _pop(stack), ["" if one.operator == _SAID or "@py" in one else str(one) for one in given]


def _names_before(steps: list[Any], at: int, constants: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the names of a call's last arguments, as Python before 3.13 keeps them."""
    while at and steps[at - 1].opname in ("PRECALL", "CACHE", "EXTENDED_ARG"):
        at -= 1
    known = at and steps[at - 1].opname == "KW_NAMES"
    return constants[steps[at - 1].arg] if known else ()


def unmangled(name: str) -> str:
    """Take away the class from a private name, as in `_Class__name`."""
    return name if name[:1] != "_" or "__" not in name[1:] else name[name.index("__", 1) :]


def _step(one: Any, stack: list[Text]) -> None:
    name = one.opname
    if name in _IDLE:
        return
    if name in _NAMES:
        names = one.argval if type(one.argval) is tuple else (one.argval,)
        stack.extend([Text(unmangled(each)) for each in names])
    elif name in ("LOAD_ATTR", "LOAD_METHOD"):
        stack.append(Text(f"{_pop(stack).tight()}.{unmangled(one.argval)}"))
    elif name == "LOAD_CONST":
        constant = Text(cut(repr(one.argval), _CONSTANT), _SAID)
        constant.names = one.argval if type(one.argval) is tuple else ()
        stack.append(constant)
    elif name in _UNARY:
        stack.append(Text(f"{_UNARY[name]}{_pop(stack).tight()}", "unary"))
    elif name in _BUILD:
        stack.append(_built(_BUILD[name], _popped(stack, one.arg)))
    elif name in _MORE:
        stack.append(_MORE[name](one, stack))
    else:
        raise Unknown(name)


def _pop(stack: list[Text]) -> Text:
    if not stack:
        raise Unknown
    return stack.pop()


def _popped(stack: list[Text], count: int) -> list[Text]:
    if count > len(stack):
        raise Unknown
    found = stack[len(stack) - count :]
    del stack[len(stack) - count :]
    return found


def _built(brackets: str, texts: list[Text]) -> Text:
    comma = "," if brackets == "()" and len(texts) == 1 else ""
    return Text(f"{brackets[0]}{', '.join(texts)}{comma}{brackets[1]}")


def _between(operator: str, stack: list[Text]) -> Text:
    right, left = _pop(stack), _pop(stack)
    same = operator if operator in _FROM_THE_LEFT else ""
    return Text(f"{left.tight(same)} {operator} {right.tight()}", operator)


def _call(one: Any, stack: list[Text], names: tuple[str, ...] = ()) -> Text:
    given: list[str] = [*_popped(stack, one.arg)]
    for at, name in enumerate(reversed(names), 1):
        given[-at] = f"{name}={given[-at]}"
    return Text(f"{_pop(stack).tight()}({', '.join(given)})")


def _item(stack: list[Text], index: str) -> Text:
    return Text(f"{_pop(stack).tight()}[{index}]")


def _slice(one: Any, stack: list[Text]) -> str:
    parts = _popped(stack, one.arg if one.opname == "BUILD_SLICE" else 2)
    return ":".join(["" if part == "None" else part for part in parts])


def _mapping(one: Any, stack: list[Text]) -> Text:
    flat = _popped(stack, 2 * one.arg)
    pairs = [f"{key}: {value}" for key, value in zip(flat[::2], flat[1::2], strict=True)]
    return Text(f"{{{', '.join(pairs)}}}")


_MORE: dict[str, Callable[[Any, list[Text]], Text]] = {
    "BINARY_OP": lambda one, stack: _between(one.argrepr, stack),
    "COMPARE_OP": lambda one, stack: _between(str(one.argval), stack),
    "IS_OP": lambda one, stack: _between("is not" if one.arg else "is", stack),
    "CONTAINS_OP": lambda one, stack: _between("not in" if one.arg else "in", stack),
    "BINARY_SUBSCR": lambda one, stack: _item(stack, _pop(stack)),
    "BINARY_SLICE": lambda one, stack: _item(stack, _slice(one, stack)),
    "BUILD_SLICE": lambda one, stack: Text(_slice(one, stack)),
    "BUILD_MAP": _mapping,
    "CALL": _call,
    "CALL_KW": lambda one, stack: _call(one, stack, _pop(stack).names),
}
