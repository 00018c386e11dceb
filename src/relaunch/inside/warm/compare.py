"""Decides whether what a program has done so far would have been the same with edited sources.

Statement by statement and only as far as it ran: a function that was never entered, the rest of a
block that was never reached, may be anything. What was reached must be the same statement, whatever
its layout. Where it cannot be known, the answer is no.
"""

from __future__ import annotations

import _warnings
import ast
import symtable
import sys

from . import morph, sites

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import CodeType
    from typing import Any

LINES = (
    "lineno", "co_lines", "co_positions", "findCaller", "getsource", "inspect.stack",
    "getframeinfo", "getouterframes", "extract_stack", "faulthandler",
)  # fmt: skip
"""Words of programs that look at the numbers of their lines."""
CODES = (
    "__code__", "co_varnames", "getclosurevars", "import dis", "from dis", "cloudpickle", "dill",
    "marshal", "joblib",
)  # fmt: skip
"""Words of programs that look into functions, without calling them."""
_TRANSPARENT = frozenset(
    (
        "property", "staticmethod", "classmethod", "cached_property", "cache", "lru_cache",
        "wraps", "contextmanager", "dataclass", "no_grad", "inference_mode", "command", "group",
        "option", "argument", "version_option", "help_option", "password_option",
        "confirmation_option", "pass_context", "pass_obj", "callback", "result_callback", "fixture",
        "patch", "setter", "abstractmethod", "override", "overload", "final", "total_ordering",
    )
)  # fmt: skip
"""Decorators by their last name that keep a function without looking into it."""
_TRANSPARENT_PAIRS = frozenset(
    (("hydra", "main"), ("patch", "object"), ("patch", "dict"), ("patch", "multiple"))
)
"""Those that are known by their last two names; and all of `pytest.mark`."""
_ROOM = 40
"""So many variables more have room in a frame; a few are left for a deeper stack."""
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_NO_WARNINGS = ("ignore", None, Warning, None, 0)
_LAYOUT = ("type_comment", "type_ignores")


class Unwarned:
    """While something is compiled of whose doubtful parts somebody was warned before.

    Not by the functions of `warnings`: they would forget what was told once.
    """

    def __enter__(self) -> None:
        theirs = sys.modules.get("warnings", _warnings)
        self._filters: list[Any] = getattr(theirs, "filters", _warnings.filters)
        self._filters.insert(0, _NO_WARNINGS)

    def __exit__(self, *_: object) -> None:
        self._filters.remove(_NO_WARNINGS)


class Moves:
    """Where statements that are the same stand now: whole lines, and single nodes."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, int, int]] = []
        """First and last line as they were, and how far they moved."""
        self.nodes: dict[tuple[int, ...], tuple[int, ...]] = {}

    @property
    def any(self) -> bool:
        """True when something that ran stands on another line."""
        moved = any(by for _, _, by in self.lines)
        return moved or any(old[0] != new[0] for old, new in self.nodes.items())

    def __call__(self, place: tuple[int, ...]) -> tuple[int, ...]:
        """Return the new place of an instruction: line, last line, column, last column."""
        if place in self.nodes:
            return self.nodes[place]
        line, last, *columns = place
        for first, end, by in self.lines:
            if first <= line <= end:
                return (line + by, last + by, *columns)
        return place


class Source:
    """A file's text with what is read from it."""

    tree: ast.Module
    lines: list[str]
    blocks: list[sites.Block]
    first: dict[int, int]

    def __init__(self, text: str, file: str, size: int = -1) -> None:
        """Parse the file; SyntaxError as Python would say it.

        One whose `size` is known is parsed when somebody looks into it.
        """
        self.text = text
        self.file = file
        self.size = size
        """How many sites it has."""
        self._tables: dict[tuple[str, int], symtable.SymbolTable] | None = None
        self._codes: dict[tuple[str, int], CodeType] | None = None
        if size < 0:
            self._parse()
            self.size = self.blocks[-1].end + 1 if self.blocks else 0

    def __getattr__(self, name: str) -> Any:
        if name not in Source.__annotations__:
            raise AttributeError(name)
        with Unwarned():
            self._parse()
        return vars(self)[name]

    def _parse(self) -> None:
        self.tree = ast.parse(self.text, self.file)
        self.lines = self.text.split("\n")
        self.blocks = sites.blocks(self.tree)
        self.first = {id(block.body): block.first for block in self.blocks}

    @property
    def digest(self) -> str:
        """A name for the text."""
        from _blake2 import blake2b

        return blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def code(self, function: ast.stmt) -> CodeType | None:
        """Return what Python makes of a function."""
        if self._codes is None:
            with Unwarned():
                whole = compile(self.text, self.file, "exec", dont_inherit=True)
            self._codes = {
                (code.co_name, code.co_firstlineno): code for code in sites.codes_of(whole)
            }
        return self._codes.get((function.name, _first_line(function)))  # type: ignore[attr-defined]

    def table(self, function: ast.stmt) -> symtable.SymbolTable | None:
        """Return what the names of a function mean."""
        if self._tables is None:
            self._tables = {}
            todo = [symtable.symtable(self.text, self.file, "exec")]
            while todo:
                table = todo.pop()
                if table.get_type() != "type parameter":
                    self._tables.setdefault((table.get_name(), table.get_lineno()), table)
                todo += table.get_children()
        return self._tables.get((function.name, function.lineno))  # type: ignore[attr-defined]


def compare(
    old: Source, new: Source, seen: Sequence[int], *, names: bool = True, dissected: bool = False
) -> tuple[str, Moves]:
    """Say what of an executed file was edited, empty if nothing was; and where the rest is now.

    `seen` has one number for each site of the old file, not zero where the program came by. Without
    `names` it is taken for granted that names mean what they meant. Of functions that may have been
    `dissected`, all counts that was defined.
    """
    comparison = _Comparison(old, new, seen, names, dissected)
    why = comparison.prelude(old.tree.body, new.tree.body)
    return why or comparison.block(old.tree.body, new.tree.body), comparison.moves


def _annotates(body: list[ast.stmt]) -> bool:
    """Tell whether names are annotated at the level of a file: its first step depends on it."""
    todo: list[ast.AST] = [*body]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.AnnAssign):
            return True
        if isinstance(node, ast.stmt) and not isinstance(node, (*sites.FUNCTIONS, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)
    return False


def first_edits(old: Source, new: Source) -> Iterator[int]:
    """Give the sites of the new file before the first edited statement of each block."""
    olds = {block.path: block for block in old.blocks}
    for block in new.blocks:
        twin = olds.get(block.path)
        if twin is None:
            continue
        for index, statement in enumerate(block.body):
            before = twin.body[index] if index < len(twin.body) else None
            if before is None or not _same_own(before, statement):
                yield block.first + index
                break


def _same_own(old: ast.stmt, new: ast.stmt) -> bool:
    """Tell whether two statements are the same but for what is in their blocks."""
    if type(old) is not type(new):
        return False
    return all(
        _same_value(getattr(old, field, None), getattr(new, field, None))
        for field in old._fields
        if field not in _BLOCKS and field not in _LAYOUT
    )


class _Comparison:
    def __init__(
        self, old: Source, new: Source, seen: Sequence[int], names: bool, dissected: bool
    ) -> None:
        self.names = names
        self.dissected = dissected
        self.old = old
        self.new = new
        self.seen = seen
        self.moves = Moves()

    def prelude(self, old: list[ast.stmt], new: list[ast.stmt]) -> str:
        """Compare what stands before all sites of a file: its docstring, what is of the future."""
        before, after = (
            [one for number, one in enumerate(body) if sites.is_prelude(number, one)]
            for body in (old, new)
        )
        if not all_same(before, after):
            here = self._at((before or after)[0])
            return f"{here}: the docstring or a __future__ import was edited"
        if _annotates(old) != _annotates(new):
            return f"{self._at((new or old)[0])}: the file has annotated names now, or no more"
        return ""

    def block(self, old: list[ast.stmt], new: list[ast.stmt]) -> str:
        """Compare two lists of statements as far as the old one was executed."""
        first = self.old.first.get(id(old))
        if first is None:
            return self.whole(old, new)
        reached = [number for number in range(len(old) + 1) if self.seen[first + number]]
        if not reached:
            return ""
        started = min(reached[-1] + 1, len(old))
        for number in range(started):
            if number >= len(new):
                return f"{self._at(old[number])} is gone"
            why = self.statement(old[number], new[number])
            if why:
                return why
        if reached[-1] == len(old) and len(new) > len(old):
            return f"{self._at(new[len(old)])} is new, after lines that were executed"
        return ""

    def whole(self, old: list[ast.stmt], new: list[ast.stmt]) -> str:
        """Compare two lists of statements that count as executed to their end."""
        if len(old) != len(new):
            here = self._at(new[0]) if new else self._at(old[0])
            return f"{here}: another number of statements"
        for one, other in zip(old, new, strict=True):
            why = self.statement(one, other)
            if why:
                return why
        return ""

    def statement(self, old: ast.stmt, new: ast.stmt) -> str:
        """Compare two statements of which the old one was begun."""
        if self._same_text(old, new):
            return ""
        if type(old) is not type(new):
            return f"{self._at(old)} was edited"
        if isinstance(old, sites.FUNCTIONS):
            return self.function(old, new)
        if isinstance(old, ast.ClassDef):
            return self._class(old, new)
        why = self._head(old, new, _BLOCKS)
        if why:
            return why
        return self._below(old, new)

    def _below(self, old: ast.stmt, new: ast.stmt) -> str:
        olds, news = dict(sites.bodies(old)), dict(sites.bodies(new))
        if olds.keys() != news.keys():
            return f"{self._at(old)}: a branch was added or removed"
        for number, handler in enumerate(getattr(old, "handlers", ())):
            other = new.handlers[number]  # type: ignore[attr-defined]
            why = self._head(handler, other, ("body",))
            if why:
                return why
        for number, case in enumerate(getattr(old, "cases", ())):
            why = self._head(case, new.cases[number], ("body",))  # type: ignore[attr-defined]
            if why:
                return why
        for field, body in olds.items():
            why = self.block(body, news[field])
            if why:
                return why
        return ""

    def _class(self, old: ast.stmt, new: ast.stmt) -> str:
        why = self._head(old, new, ("body",))
        if why:
            return why
        if not _all_transparent(old):
            return "" if same(old, new) else f"{self._at(old)} is decorated, and was edited"
        return self.whole(old.body, new.body)  # type: ignore[attr-defined]

    def function(self, old: Any, new: Any) -> str:
        """Compare two functions of which the old one was defined, and perhaps entered."""
        why = self._head(old, new, ("body",))
        if why:
            return why
        doc, other = old.body[0], new.body[0]
        if (sites.is_docstring(doc) or sites.is_docstring(other)) and not same(doc, other):
            return f"{self._at(doc)}: the docstring was edited"
        if all_same(old.body, new.body):
            self._pair(old, new)
            return ""
        if self.dissected:
            return f"{self._at(old)} was edited, and the program looks into functions"
        if is_generator(old) != is_generator(new):
            return f"{self._at(old)} became a generator, or is none any more"
        if not _all_transparent(old):
            return f"{self._at(old)} is decorated, and was edited"
        first = self.old.first.get(id(old.body))
        entered = first is None or any(
            self.seen[number] for number in range(first, first + len(old.body) + 1)
        )
        why = self._names(old, new, entered) if self.names else ""
        why = why or (self.block(old.body, new.body) if entered else "")
        if not why and self.names and entered and self._may_have_ended(old):
            why = self._order(old, new)
        return why

    def _may_have_ended(self, function: Any) -> bool:
        """Tell whether an entered function may have returned, and let go of its variables."""
        first = self.old.first.get(id(function.body))
        if first is None or self.seen[first + len(function.body)]:
            return True
        for body in _bodies_within(function):
            first = self.old.first.get(id(body))
            for index, statement in enumerate(body):
                is_end = isinstance(statement, (ast.Return, ast.Raise))
                if is_end and (first is None or self.seen[first + index]):
                    return True
        return False

    def _order(self, old: Any, new: Any) -> str:
        """Say if a function lets go of its variables in another order now."""
        codes = self.old.code(old), self.new.code(new)
        if None in codes:
            return f"{self._at(old)} was edited"
        then, now = (morph.variables(code)[0] for code in codes if code is not None)
        both = {*then} & {*now}
        if [name for name in then if name in both] == [name for name in now if name in both]:
            return ""
        return f"{self._at(old)}: its variables are in another order now"

    def _names(self, old: Any, new: Any, entered: bool) -> str:
        """Say if a name in a function means something else now, as when it became local."""
        one, other = self.old.table(old), self.new.table(new)
        if one is None or other is None:
            return f"{self._at(old)} was edited"
        if set(one.get_frees()) != set(other.get_frees()):  # type: ignore[attr-defined]
            return f"{self._at(old)} uses other variables of the function around it"
        if len(other.get_identifiers()) - len(one.get_identifiers()) > _ROOM:
            return f"{self._at(old)} has too many new variables"
        if not entered:
            return ""
        locals_then, locals_now = set(one.get_locals()), set(other.get_locals())  # type: ignore[attr-defined]
        became = (locals_now - locals_then) & _used(one)
        became |= (locals_then - locals_now) & _used(other)
        if became:
            return f"{self._at(old)}: `{min(became)}` means another variable now"
        return ""

    # --- small things

    def _head(self, old: ast.AST, new: ast.AST, without: Iterable[str]) -> str:
        """Compare two nodes without their blocks."""
        for field in old._fields:
            if field in without or field in _LAYOUT:
                continue
            if not _same_value(getattr(old, field, None), getattr(new, field, None)):
                return f"{self._at(old)} was edited"
        self._pair(old, new, without)
        return ""

    def _same_text(self, old: ast.stmt, new: ast.stmt) -> bool:
        """Tell whether two statements are the same letters at the same columns."""
        start, end = _first_line(old) - 1, old.end_lineno or 0
        new_start, new_end = _first_line(new) - 1, new.end_lineno or 0
        columns = (old.col_offset, old.end_col_offset) == (new.col_offset, new.end_col_offset)
        if not columns or self.old.lines[start:end] != self.new.lines[new_start:new_end]:
            return False
        self.moves.lines.append((start + 1, end, new_start - start))
        return True

    def _pair(self, old: ast.AST, new: ast.AST, without: Iterable[str] = ()) -> None:
        """Note where each node of two equal nodes stands."""
        if hasattr(old, "lineno"):
            self.moves.nodes[_place(old)] = _place(new)
        for field in old._fields:
            if field in without:
                continue
            one, other = getattr(old, field, None), getattr(new, field, None)
            for inner, twin in _nodes(one, other):
                self._pair(inner, twin)

    def _at(self, node: ast.AST) -> str:
        return f"line {getattr(node, 'lineno', 0)}"


def _bodies_within(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Give the blocks of a function, without those of functions and classes in it."""
    for _, body in sites.bodies(node):
        yield body
        for statement in body:
            if not isinstance(statement, (*sites.FUNCTIONS, ast.ClassDef)):
                yield from _bodies_within(statement)


def same(old: ast.AST, new: ast.AST) -> bool:
    """Tell whether two nodes mean the same, wherever they stand."""
    if type(old) is not type(new):
        return False
    return all(
        _same_value(getattr(old, field, None), getattr(new, field, None))
        for field in old._fields
        if field not in _LAYOUT
    )


def all_same(old: list[Any], new: list[Any]) -> bool:
    """Tell whether two lists of nodes mean the same."""
    return len(old) == len(new) and all(map(_same_value, old, new))


def _same_value(old: Any, new: Any) -> bool:
    if isinstance(old, ast.AST):
        return isinstance(new, ast.AST) and same(old, new)
    if isinstance(old, list):
        return isinstance(new, list) and all_same(old, new)
    # 1 == 1.0 == True, and 0.0 == -0.0, but they are other constants
    return type(old) is type(new) and (old == new) and repr(old) == repr(new)


def is_generator(function: Any) -> bool:
    """Tell whether a function has a `yield` of its own."""
    todo = [*function.body]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (*sites.FUNCTIONS, ast.ClassDef, ast.Lambda)):
            todo += ast.iter_child_nodes(node)
    return False


def _nodes(old: Any, new: Any) -> Iterator[tuple[ast.AST, ast.AST]]:
    if isinstance(old, ast.AST) and isinstance(new, ast.AST):
        yield old, new
    elif isinstance(old, list) and isinstance(new, list):
        for one, other in zip(old, new, strict=False):
            yield from _nodes(one, other)


def _place(node: Any) -> tuple[int, ...]:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", ())
    return min([statement.lineno, *(int(one.lineno) for one in decorators)])


def _all_transparent(node: Any) -> bool:
    return all(_is_transparent(one) for one in node.decorator_list)


def _is_transparent(decorator: ast.expr) -> bool:
    while isinstance(decorator, ast.Call):
        decorator = decorator.func
    name, owner = _last_name(decorator), ""
    if isinstance(decorator, ast.Attribute):
        owner = _last_name(decorator.value)
    return name in _TRANSPARENT or owner == "mark" or (owner, name) in _TRANSPARENT_PAIRS


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _used(table: symtable.SymbolTable) -> set[str]:
    """Name all that a function and those in it refer to."""
    found = set(table.get_identifiers())
    for inner in table.get_children():
        found |= _used(inner)
    return found
