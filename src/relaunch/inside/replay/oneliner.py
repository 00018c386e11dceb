"""Writes a kept call as one line of Python that needs neither us nor the capture."""

from __future__ import annotations

import sys

from relaunch.inside.capture.rebuild import Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from relaunch.inside.replay.loaded import Capture

MOST = 24_000
"""A longer line is none."""
_FEW, _SOME = 6, 64
"""Up to so many elements an array is written out: first only the fewest, then more."""
_MOST_PICKLED = 6_000
_MADE = "made = lambda kind, state: ((o := object.__new__(kind)).__dict__.update(state), o)[1]"
_ASYNC, _GENERATOR = 0x80, 0x20
_PLAIN = (bool, int, str, bytes, type(None), type(...))


class Cannot(Exception):
    """There is no such line; says why."""


def line(capture: Capture, number: int, *, values: bool) -> tuple[str, list[str]]:
    """Return the code of the line, and what in it is not as it was.

    Without `values`, arrays of more than a few elements are zeros: often their shapes are enough.
    """
    frame = capture.facts["frames"][number]
    if frame["kind"] != "function" or "<" in frame["qualname"]:
        raise Cannot(f"{frame['qualname']} has no name by which it could be imported")
    if frame["name"] == "__init__":
        raise Cannot("an object that is being made cannot be written down")
    writer = Writer(capture, _SOME if values else _FEW)
    module = writer.module_of(frame["module"])
    call = f"{module}.{frame['qualname']}({writer.arguments(frame, capture.variables(number))})"
    if frame["flags"] & _ASYNC:
        call = f"{writer.imported('asyncio')}.run({call})"
    elif frame["flags"] & _GENERATOR:
        call = f"list({call})"
    imports = f"import {', '.join(writer.imports)}"
    code = "; ".join([*writer.path(), imports, *writer.helpers, call])
    if len(code) > MOST:
        raise Cannot(f"its arguments take {len(code):,} characters")
    return code, writer.notes


class Writer:
    """Turns values into expressions, and remembers what they need."""

    def __init__(self, capture: Capture, few: int) -> None:
        """Write for the program of this capture, arrays of so `few` elements with their values."""
        self._capture = capture
        self._few = few
        self.imports: list[str] = []
        self.notes: list[str] = []
        self.helpers: dict[str, None] = {}
        self._inside: list[int] = []

    def path(self) -> list[str]:
        """Return what the import path needs besides the folder that the line is run in."""
        facts = self._capture.facts
        own = [root.rstrip("/") for root in facts["roots"] if root]
        found = [
            entry
            for entry in map(self._capture.here, facts["python"]["path"])
            if entry not in ("", facts["cwd"]) and "-packages" not in entry
            if any(f"{entry}/".startswith(f"{root}/") for root in own) or not entry.startswith("/")
        ]
        return [f"import sys; sys.path[:0] = {self.write(found)}"] if found else []

    def imported(self, name: str) -> str:
        """Return a module by its name, imported."""
        if name not in self.imports:
            self.imports.append(name)
        return name

    def module_of(self, name: str) -> str:
        """Return the module of the user's code; the script is one too, if it has a guard."""
        if name not in ("__main__", "__mp_main__"):
            return self.imported(name)
        main = self._capture.facts["main"]
        if main["name"]:
            return self.imported(main["name"])
        file = self._capture.here(main["file"])
        folder, _, base = file.rpartition("/")
        stem = base.removesuffix(".py")
        if not stem.isidentifier() or folder not in (self._capture.facts["cwd"], *sys.path):
            raise Cannot(f"{base} cannot be imported by its name")
        if b"__main__" not in self._capture.source(main["file"]).data:
            raise Cannot(f"to import {base} is to run it: it has no `if __name__ == ...`")
        return self.imported(stem)

    def arguments(self, frame: dict[str, Any], variables: dict[str, Any]) -> str:
        """Return the arguments of a call."""
        words = [self.write(variables[name]) for name in frame["positional"]]
        if frame["star"]:
            words += [self.write(one) for one in variables[frame["star"]]]
        named = [(name, variables[name]) for name in frame["keywords"]]
        if frame["stars"]:
            named += variables[frame["stars"]].items()
        return ", ".join([*words, *(f"{name}={self.write(value)}" for name, value in named)])

    # --- values

    def write(self, value: Any) -> str:
        """Return an expression for a value."""
        if id(value) in self._inside:
            raise Cannot("an argument contains itself")
        self._inside.append(id(value))
        try:
            return self._written(value)
        finally:
            self._inside.pop()

    def _written(self, value: Any) -> str:
        kind = type(value)
        if kind in _PLAIN:
            return _quoted(value)
        if kind is float or kind is complex:
            text = repr(value)
            return f'{kind.__name__}("{text}")' if "n" in text else text
        if isinstance(value, Missing):
            raise Cannot(f"it needs {value!r}")
        for test, write in self._ways():
            if test(value):
                return write(value)
        return self._pickled(value)

    def _ways(self) -> list[tuple[Callable[[Any], bool], Callable[[Any], str]]]:
        def of(module: str, name: str) -> Callable[[Any], bool]:
            kind = getattr(sys.modules.get(module), name, None)
            return lambda value: kind is not None and type(value) is kind

        return [
            (lambda v: type(v) in (list, tuple, set, frozenset), self._items),
            (lambda v: type(v) is dict, self._pairs),
            (lambda v: isinstance(v, type) or hasattr(v, "__qualname__"), self._by_name),
            (of("numpy", "ndarray"), self._array),
            (of("torch", "Tensor"), self._tensor),
            (of("torch.nn", "Parameter"), self._parameter),
            (lambda v: isinstance(v, _enum()), self._member),
            (lambda v: type(v).__module__ == "datetime", self._time),
            (of("decimal", "Decimal"), self._told),
            (of("fractions", "Fraction"), self._told),
            (lambda v: type(v).__module__.startswith("pathlib"), self._path),
            (_is_dataclass, self._dataclass),
            (lambda v: isinstance(v, tuple) and hasattr(v, "_fields"), self._named_tuple),
            (_is_plain_object, self._object),
        ]

    def _items(self, value: Any) -> str:
        inner = ", ".join(map(self.write, value))
        if isinstance(value, list):
            return f"[{inner}]"
        if isinstance(value, tuple):
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        return f"{type(value).__name__}([{inner}])"

    def _pairs(self, value: dict[Any, Any]) -> str:
        pairs = (f"{self.write(key)}: {self.write(one)}" for key, one in value.items())
        return f"{{{', '.join(pairs)}}}"

    def _by_name(self, value: Any) -> str:
        module, name = getattr(value, "__module__", ""), value.__qualname__
        if "<" in name or not module:
            raise Cannot(f"{name} has no name by which it could be imported")
        if module == "builtins":
            return str(name)
        return f"{self.module_of(module)}.{name}"

    def _kind(self, value: Any) -> str:
        return self._by_name(type(value))

    def _array(self, value: Any) -> str:
        numpy = self.imported("numpy")
        dtype = value.dtype.str
        if value.dtype.hasobject or value.dtype.names:
            return self._pickled(value)
        if value.size <= self._few:
            return f'{numpy}.array({self.write(value.tolist())}, "{dtype}")'
        self.notes.append(f"an array of {value.shape} is all zeros")
        return f'{numpy}.zeros({value.shape!r}, "{dtype}")'

    def _tensor(self, value: Any) -> str:
        torch = self.imported("torch")
        if value.layout is not sys.modules["torch"].strided:
            return self._pickled(value)
        if value.numel() <= self._few:
            made = f"{torch}.tensor({self.write(value.tolist())}, dtype={value.dtype})"
            made += f".reshape({tuple(value.shape)!r})" if not value.numel() else ""
        else:
            self.notes.append(f"a tensor of {tuple(value.shape)} is all zeros")
            made = f"{torch}.zeros({tuple(value.shape)!r}, dtype={value.dtype})"
        if value.dim() == 2 and not value.is_contiguous():
            made = f"{made}.t().contiguous().t()"
        return f"{made}.requires_grad_()" if value.requires_grad else made

    def _parameter(self, value: Any) -> str:
        return f"{self.imported('torch')}.nn.Parameter({self._tensor(value.detach())})"

    def _member(self, value: Any) -> str:
        return f"{self._kind(value)}.{value.name}"

    def _time(self, value: Any) -> str:
        self.imported("datetime")
        return repr(value).replace("'", '"')

    def _told(self, value: Any) -> str:
        return f"{self._kind(value)}({_quoted(str(value))})"

    def _path(self, value: Any) -> str:
        return f"{self.imported('pathlib')}.Path({_quoted(str(value))})"

    def _dataclass(self, value: Any) -> str:
        fields = [
            one.name for one in vars(type(value))["__dataclass_fields__"].values() if one.init
        ]
        words = (f"{name}={self.write(getattr(value, name))}" for name in fields)
        return f"{self._kind(value)}({', '.join(words)})"

    def _named_tuple(self, value: Any) -> str:
        return f"{self._kind(value)}({', '.join(map(self.write, value))})"

    def _object(self, value: Any) -> str:
        """Write an object as its class and attributes; its `__init__` is not run again."""
        self.helpers[_MADE] = None
        return f"made({self._kind(value)}, {self.write(vars(value))})"

    def _pickled(self, value: Any) -> str:
        """Write whatever else as it is pickled, if it is small and made of what can be imported."""
        import base64
        import pickle
        import zlib

        kind = type(value).__qualname__
        try:
            data = pickle.dumps(value)
        except Exception:
            raise Cannot(f"a {kind} cannot be written down") from None
        if b"__main__" in data:
            raise Cannot(f"a {kind} is of a class of the script itself")
        data = zlib.compress(data, 9)
        if len(data) > _MOST_PICKLED:
            raise Cannot(f"a {kind} takes {len(data):,} bytes")
        for name in ("pickle", "base64", "zlib"):
            self.imported(name)
        text = base64.b64encode(data).decode()
        return f"pickle.loads(zlib.decompress(base64.b64decode({_quoted(text)})))"


def _quoted(value: Any) -> str:
    """Write a text with double quotes, which a shell leaves alone between single ones."""
    text = repr(value)
    for prefix in ("", "b"):
        if text.startswith(f"{prefix}'") and '"' not in text:
            return f'{prefix}"{text[len(prefix) + 1 : -1]}"'
    return text


def _enum() -> Any:
    import enum

    return enum.Enum


def _is_plain_object(value: Any) -> bool:
    """Tell an object that is no more than its attributes."""
    kind = type(value)
    custom = ("__reduce_ex__", "__reduce__", "__getstate__", "__new__")
    is_default = all(getattr(kind, name) is getattr(object, name) for name in custom)
    return is_default and hasattr(value, "__dict__") and not hasattr(kind, "__setstate__")


def _is_dataclass(value: Any) -> bool:
    return "__dataclass_fields__" in vars(type(value))
