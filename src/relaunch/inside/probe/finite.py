"""Stops at the first line of the program that made a nan or an inf, and names it.

After each statement of the project's own files that sets something, what it set is looked at:
floats, tensors, arrays, and those in lists and dicts. Nobody is asked to import torch for that.
"""

from __future__ import annotations

import _ast
import math
import sys

from relaunch.inside.probe import lines, rewrite
from relaunch.inside.probe.chain import callers, program_frame, shortened
from relaunch.inside.shown import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Any

    from relaunch.inside.probe.runtime import Runtime

_INSIDE = 20
"""So many members of a list or dict are looked at."""
_MEANT = ("inf", "nan", "-inf")
"""A line that speaks of these means them."""
_PIECE = 32_000
DEATH = 71


def inject(tree: Any) -> None:
    """Have every statement of a file that sets something looked at."""
    for node in [tree, *lines.statements(tree)]:
        for block in lines.blocks(node):
            block[:] = _with_looks(block)
        if isinstance(node, (_ast.For, _ast.AsyncFor)):
            node.body[:0] = _looks(node.body[0], [*_names(node.target)], node.lineno)
        elif isinstance(node, (_ast.FunctionDef, _ast.AsyncFunctionDef)):
            spec = node.args
            named = [*spec.posonlyargs, *spec.args, spec.vararg, *spec.kwonlyargs, spec.kwarg]
            names = [one.arg for one in named if one is not None and one.arg != "self"]
            place = lines.entry(node)
            place.block[place.index : place.index] = _looks(place.statement, names, 0)


def _with_looks(block: list[Any]) -> Iterator[Any]:
    for index, statement in enumerate(block):
        if isinstance(statement, _ast.Return) and statement.value is not None:
            name = rewrite.at(_ast.Name(rewrite.RETURNED, _ast.Store()), statement.value)
            yield rewrite.at(_ast.Assign([name], statement.value), statement)
            yield from _looks(statement, [rewrite.RETURNED], statement.lineno)
            load = _ast.Name(rewrite.RETURNED, _ast.Load())
            statement.value = rewrite.at(load, statement.value)
            yield statement
            continue
        yield statement
        if not lines.is_prelude(block, index):
            yield from _looks(statement, [*_set_by(statement)], statement.lineno)


def _set_by(statement: Any) -> Iterator[str]:
    """Name what a statement sets: variables, attributes of variables, what it changes in place."""
    if isinstance(statement, _ast.Assign):
        for target in statement.targets:
            yield from _names(target)
    elif isinstance(statement, (_ast.AugAssign, _ast.AnnAssign)):
        if statement.value is not None:
            yield from _names(statement.target)
    elif isinstance(statement, _ast.Expr) and isinstance(statement.value, _ast.Call):
        function: Any = statement.value.func
        if isinstance(function, _ast.Attribute) and function.attr.endswith("_"):
            yield from _names(function.value)


def _names(target: Any) -> Iterator[str]:
    if isinstance(target, _ast.Name):
        yield target.id
    elif isinstance(target, (_ast.Tuple, _ast.List)):
        for one in target.elts:
            yield from _names(one)
    elif isinstance(target, (_ast.Starred, _ast.Subscript)):
        yield from _names(target.value)
    elif isinstance(target, _ast.Attribute) and isinstance(target.value, _ast.Name):
        yield f"{target.value.id}.{target.attr}"


def _looks(beside: Any, names: list[str], line: int) -> Iterator[Any]:
    """Return the statement that looks at these names, if there are any."""
    if names:
        words: list[Any] = [_ast.Constant(line)]
        for name in names:
            first, _, attribute = name.partition(".")
            value: Any = _ast.Name(first, _ast.Load())
            if attribute:
                value = _ast.Attribute(value, attribute, _ast.Load())
            words += [_ast.Constant(name), value]
        look = rewrite.guarded_call("finite", words)
        rewrite.place(look, beside)
        yield look


class Look:
    """What the calls do: find the first thing that is not finite, tell, and stop."""

    def __init__(self, runtime: Runtime, *, opens_debugger: bool) -> None:
        """Tell through the voice of the runtime."""
        self._runtime = runtime
        self._opens_debugger = opens_debugger
        self._is_over = False

    def __call__(self, line: int, *pairs: Any) -> None:
        """Look at names and values, one after the other."""
        if self._is_over:
            return
        for name, value in zip(pairs[::2], pairs[1::2], strict=False):
            what = unfinite(value)
            if what:
                frame = program_frame()
                label = "it returns " if name == rewrite.RETURNED else f"{name}="
                if not line and frame.f_back is not None:  # an argument: who called made it
                    label = f"{frame.f_code.co_qualname} is called with {label}"
                    frame = frame.f_back
                if what == "nan" or _is_new(frame, line or frame.f_lineno, pairs[::2]):
                    self._is_over = True
                    self._tell(what, f"{label}{show(value)}", frame, line or frame.f_lineno)
                    return

    def _tell(self, what: str, made: str, frame: FrameType, line: int) -> None:
        text = _text_of(frame, line)
        place = f"{shortened(frame.f_code.co_filename)}:{line}"
        say = self._runtime.voice.say
        for caller in reversed(callers()[1:]):
            say(f"  called by {caller}")
        for name, value in _inputs(frame, text):
            say(f"  from {name}={show(value)}")
        say(f"  {made}")
        say(f"{place} made the first {what}: {text}")  # last, where the failure is told from
        self._runtime.notes.add("unfinite", place=place, made=what, text=text)
        if self._opens_debugger:
            from relaunch.inside.probe.pause import debug_here

            debug_here(self._runtime.notes.folder)
            return
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        import os

        os._exit(DEATH)


def _is_new(frame: FrameType, line: int, names: tuple[str, ...]) -> bool:
    """Tell whether an inf was made here, and neither meant nor brought along."""
    text = _text_of(frame, line)
    if any(word in text for word in _MEANT):
        return False
    others = [value for name, value in _inputs(frame, text) if name not in names]
    return not any(unfinite(value) == "inf" for value in others)


def unfinite(value: Any, depth: int = 1) -> str:
    """Return `nan` or `inf` for what holds one, nothing for what does not."""
    if type(value) is float:
        return "nan" if value != value else "inf" if math.isinf(value) else ""
    if isinstance(value, (list, tuple, dict)) and depth:
        members = [*(value.values() if isinstance(value, dict) else value)][:_INSIDE]
        return next((what for one in members if (what := unfinite(one, depth - 1))), "")
    module = type(value).__module__.partition(".")[0]
    library: Any = sys.modules.get("torch" if hasattr(value, "is_sparse") else "numpy")
    if library is None or (module not in ("torch", "numpy") and not hasattr(value, "dtype")):
        return ""
    try:
        return _unfinite_array(value, library)
    except Exception:  # an array of objects, a tensor without data
        return ""


def _unfinite_array(value: Any, library: Any) -> str:
    if library.__name__ == "torch":
        if not (value.is_floating_point() or value.is_complex()):
            return ""
        with library.no_grad():
            found = [_unfinite_tensor(one, library) for one in _pieces(value.detach())]
        return "nan" if "nan" in found else "inf" if "inf" in found else ""
    if getattr(value.dtype, "kind", "") not in "fc":
        return ""
    if bool(library.isfinite(value).all()):
        return ""
    return "nan" if bool(library.isnan(value).any()) else "inf"


def _unfinite_tensor(value: Any, library: Any) -> str:
    if bool(library.isfinite(value).all()):
        return ""
    return "nan" if bool(library.isnan(value).any()) else "inf"


def _pieces(value: Any) -> list[Any]:
    """Return a tensor in parts so small that torch starts no threads for them: forks would hang."""
    if value.device.type != "cpu" or value.numel() <= _PIECE:
        return [value]
    return list(value.reshape(-1).split(_PIECE))


def _text_of(frame: FrameType, line: int) -> str:
    try:
        with open(frame.f_code.co_filename, encoding="utf-8", errors="replace") as file:
            for number, text in enumerate(file, 1):
                if number == line:
                    return text.strip()
    except OSError:
        pass
    return ""


def _inputs(frame: FrameType, text: str) -> list[tuple[str, Any]]:
    """Return the variables that a line uses, with what they are now."""
    try:
        tree: Any = compile(text, "<line>", "exec", lines.ONLY_AST, dont_inherit=True)
    except (SyntaxError, ValueError):
        return []
    used = [
        node.id
        for node in rewrite.walk(tree)
        if isinstance(node, _ast.Name) and isinstance(node.ctx, _ast.Load)
    ]
    known = {**frame.f_globals, **frame.f_locals}
    return [(name, known[name]) for name in dict.fromkeys(used) if _is_data(known.get(name))]


def _is_data(value: Any) -> bool:
    return isinstance(value, (int, float, list, tuple, dict)) or (
        hasattr(value, "dtype") and hasattr(value, "shape")
    )
