"""Passes over a document that is a tree: members and items, nesting, values, names."""

from __future__ import annotations

from fnmatch import fnmatchcase

from relaunch.record import Record
from relaunch.search.shrink import pieces
from relaunch.search.shrink.document import Document, Grammar, Unparsable, spliced
from relaunch.search.shrink.model import Smaller
from relaunch.search.shrink.tree import LIST, NUMBER, TEXT, Tree, without_separated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.search.shrink.model import Pass
    from relaunch.search.shrink.pieces import Pieces
    from relaunch.search.shrink.tree import Edit

_CHAIN = 4
"""In a longer chain of single children only the ends are taken one by one."""
_DEEP = 8
"""Where fewer levels are, to replace a node by its child is all there is to try."""
_MANY_LEVELS = 64
_TREE_UP_TO = 1 << 25
_DETAILS_UP_TO = 1 << 22
"""Of larger documents only the outer levels are read, and their values left alone."""


class TreeGrammar(Grammar):
    """A format whose documents are trees."""

    is_checked = False
    """Whether what the passes make must be read again, to see that it is valid."""
    has_items = True
    """Whether the outermost parts are left out by a pass of their own, before all others."""

    def read_outer(self, data: bytes) -> Tree:
        """Return at least the root with its children, of data that are known to be valid."""
        tree: Tree = self.read(data)
        return tree

    def without(self, tree: Tree, parent: int, gone: Sequence[tuple[int, int]]) -> list[Edit]:
        """Return the cuts that leave out runs of the children of a node."""
        return without_separated(tree, parent, gone)

    def simplest(self, tree: Tree, leaf: int) -> bytes | None:
        """Return the simplest value of the same kind; None if it is that, or cannot be."""
        return None

    def others(self, tree: Tree, leaf: int) -> Sequence[bytes]:
        """Return the simplest values of other kinds."""
        return ()

    def letters(self, tree: Tree, leaf: int) -> list[tuple[int, int]]:
        """Return the spans of what a text is made of."""
        return []

    def number(self, raw: bytes) -> int | None:
        """Return a whole number of a leaf, rounded towards 0."""
        return None

    def written(self, number: int) -> bytes:
        """Return how a number is written."""
        return b"%d" % number

    def can_replace(self, tree: Tree, node: int, inner: int) -> bool:
        """Tell whether a node may be replaced by what is in it."""
        return True

    def replaced(self, tree: Tree, node: int, inner: int) -> list[Edit]:
        """Return the cuts that leave of a node only what is in it."""
        return [
            (tree.start[node], tree.start[inner], b""),
            (tree.end[inner], tree.end[node], b""),
        ]

    def names(self, tree: Tree, node: int) -> Sequence[bytes]:
        """Return shorter names for a node, as they are written."""
        return ()

    def held(self, data: bytes, keep: Sequence[str]) -> object:
        """Return the values at the key paths that match, as they are written."""
        tree: Tree = self.read(data)
        found = []
        todo = [0] if tree.kind else []
        while todo:
            node = todo.pop()
            path = tree.path(node)
            if node and any(fnmatchcase(path, pattern) for pattern in keep):
                found.append((path, tree.data[tree.item_start[node] : tree.item_end[node]].strip()))
            else:
                todo.extend(tree.children[node])
        return found

    def is_valid(self, data: bytes) -> bool:
        """Tell whether it can be read."""
        try:
            self.read(data)
        except Unparsable:
            return False
        return True

    def tree_passes(self, document: Document) -> list[Pass]:
        """Return the passes over the tree."""
        if document.bytes > _TREE_UP_TO:
            return []
        structure: list[Pass] = [Depth(), Everywhere(), Levels(), Inner()]
        if self.has_items:
            structure.insert(0, Items())
        if document.bytes > _DETAILS_UP_TO:
            return structure[:1]
        structure.insert(self.has_items, Names(deep=True))
        return [*structure, Values(alike=True), Values(alike=False), EachValue(), Tied(), Names()]


def made(document: Document, edits: Sequence[Edit], what: str) -> Smaller | None:
    """Return the document with cuts, if it is less and allowed."""
    grammar = document.grammar
    assert isinstance(grammar, TreeGrammar)
    model = document.smaller(spliced(document.data, edits), is_checked=grammar.is_checked)
    return None if model is None else Smaller(model=model, what=what)


def grammar_of(document: Document) -> TreeGrammar:
    """Return the grammar of a document that is a tree."""
    assert isinstance(document.grammar, TreeGrammar)
    return document.grammar


def without_nodes(grammar: TreeGrammar, tree: Tree, nodes: Sequence[int]) -> list[Edit]:
    """Return the cuts that leave out nodes of one level, given in the order of the document."""
    edits: list[Edit] = []
    parent = -1
    runs: list[tuple[int, int]] = []
    for owner, first, last in tree.runs(nodes):
        if owner != parent:
            if runs:
                edits += grammar.without(tree, parent, runs)
            parent, runs = owner, []
        runs.append((first, last))
    if runs:
        edits += grammar.without(tree, parent, runs)
    return edits


class InLevel(Record):
    """A place: a level, and where in it."""

    level: int
    pieces: Pieces


class _ByLevel:
    """A pass that leaves out units level by level, from the root down."""

    name = ""
    phase = 0

    def tree(self, document: Document) -> Tree:
        """Return the tree, as deep as it is needed."""
        tree: Tree = document.tree
        return tree

    def units(self, document: Document, level: int) -> Sequence[object]:
        """Return the units of a level."""
        raise NotImplementedError

    def nodes(self, document: Document, level: int, low: int, high: int) -> Sequence[int]:
        """Return the nodes of some units, in the order of the document."""
        raise NotImplementedError

    def begin(self, document: Document) -> InLevel | None:
        """Return the first place."""
        return self._from(document, 1)

    def _from(self, document: Document, level: int) -> InLevel | None:
        tree = self.tree(document)
        while level < len(tree.levels):
            if not _is_within_chain(tree, level):
                cursor = pieces.begin(len(self.units(document, level)), pairs=False)
                if cursor is not None:
                    return InLevel(level=level, pieces=cursor)
            level += 1
        return None

    def attempt(self, document: Document, cursor: InLevel) -> Smaller | None:
        """Return the document without some units of a level."""
        if cursor.pieces.n != len(self.units(document, cursor.level)):
            return None
        nodes = [
            node
            for low, high in cursor.pieces.drops
            for node in self.nodes(document, cursor.level, low, high)
        ]
        if not nodes:
            return None
        tree = self.tree(document)
        edits = without_nodes(grammar_of(document), tree, nodes)
        return made(document, edits, f"without {_said(tree, nodes)}")

    def failed(self, document: Document, cursor: InLevel) -> InLevel | None:
        """Return the next place: in the level, or below."""
        return self._go_on(document, cursor, pieces.failed(cursor.pieces))

    def passed(self, document: Document, cursor: InLevel) -> InLevel | None:
        """Return the next place in what is left."""
        return self._go_on(document, cursor, pieces.passed(cursor.pieces))

    def _go_on(self, document: Document, cursor: InLevel, to: Pieces | None) -> InLevel | None:
        if to is None or cursor.level >= len(self.tree(document).levels):
            return self._from(document, cursor.level + 1)
        count = len(self.units(document, cursor.level))
        if to.n != count:
            again = pieces.begin(count)
            return (
                InLevel(level=cursor.level, pieces=again)
                if again is not None
                else self._from(document, cursor.level + 1)
            )
        return cursor.but(pieces=to)


class Levels(_ByLevel):
    """Leaves out members and items, whosesoever they are, level by level."""

    name = "parts"

    def units(self, document: Document, level: int) -> Sequence[object]:
        """Return the nodes of a level."""
        levels = self.tree(document).levels
        return levels[level] if level < len(levels) else ()

    def nodes(self, document: Document, level: int, low: int, high: int) -> Sequence[int]:
        """Return the nodes themselves."""
        return self.tree(document).levels[level][low:high]


class Items(Levels):
    """Leaves out what is outermost."""

    name = "items"

    def tree(self, document: Document) -> Tree:
        """Return the root with its children."""
        if self.name not in document.spans:
            document.spans[self.name] = grammar_of(document).read_outer(document.data)
        tree: Tree = document.spans[self.name]
        return tree

    def _from(self, document: Document, level: int) -> InLevel | None:
        return super()._from(document, level) if level == 1 else None


class Everywhere(_ByLevel):
    """Leaves out the same key in all records at once, and the same place in all inner lists."""

    name = "keys"

    def units(self, document: Document, level: int) -> Sequence[object]:
        """Return the keys that several records have, each with its nodes."""
        known = document.spans.setdefault("keys", {})
        if level not in known:
            known[level] = self._groups(document.tree, level)
        found: Sequence[object] = known[level]
        return found

    def _groups(self, tree: Tree, level: int) -> list[list[int]]:
        if level < 2 or level >= len(tree.levels):
            return []
        groups: dict[tuple[int, bytes | int], list[int]] = {}
        for node in tree.levels[level]:
            name = tree.name(node)
            mark = tree.position[node] if name is None else name
            groups.setdefault((tree.patterns[tree.parent[node]], mark), []).append(node)
        return [nodes for nodes in groups.values() if len(nodes) > 1]

    def nodes(self, document: Document, level: int, low: int, high: int) -> Sequence[int]:
        """Return all nodes of some keys, in the order of the document."""
        groups = self.units(document, level)
        chosen = [node for nodes in groups[low:high] for node in nodes]  # type: ignore[attr-defined]
        return sorted(chosen, key=document.tree.start.__getitem__)


class Cut(Record):
    """A place in a chain: so many levels, beginning so far from the root."""

    size: int
    place: int
    """0 near the root, 1 in the middle, 2 at the end."""


class Depth:
    """Cuts levels out of the deepest chain: many at once, halving; at the root, middle and end."""

    name = "depth"
    phase = 0

    def begin(self, document: Document) -> Cut | None:
        """Return the first place."""
        most = len(document.tree.levels) - 2
        return Cut(size=most, place=0) if most >= _DEEP else None

    def attempt(self, document: Document, cursor: Cut) -> Smaller | None:
        """Return the document with a node replaced by what is some levels below it."""
        chain = self._chain(document)
        top = (0, (len(chain) - 1 - cursor.size) // 2, len(chain) - 1 - cursor.size)[cursor.place]
        if cursor.size < 1 or top < 0:
            return None
        node, inner = chain[top], chain[top + cursor.size]
        if not grammar_of(document).can_replace(document.tree, node, inner):
            return None
        edits = grammar_of(document).replaced(document.tree, node, inner)
        return made(document, edits, f"{cursor.size:,} levels of {len(chain) - 1:,} fewer")

    @staticmethod
    def _chain(document: Document) -> list[int]:
        if "depth" not in document.spans:
            document.spans["depth"] = document.tree.longest_chain()
        found: list[int] = document.spans["depth"]
        return found

    def failed(self, document: Document, cursor: Cut) -> Cut | None:
        """Return another place for as many levels, then half as many."""
        if cursor.place < 2:
            return cursor.but(place=cursor.place + 1)
        return Cut(size=cursor.size // 2, place=0) if cursor.size > 1 else None

    def passed(self, document: Document, cursor: Cut) -> Cut | None:
        """Return the same again, as far as there are levels."""
        size = min(cursor.size, len(document.tree.levels) - 2)
        return cursor.but(size=size) if size > 0 else None


class At(Record):
    """A place: the how manieth node of a level."""

    level: int
    index: int


class Inner:
    """Replaces a node by one of its children, and the document by what is in it."""

    name = "nesting"
    phase = 0

    def begin(self, document: Document) -> At | None:
        """Return the first place."""
        return At(level=1, index=0) if len(document.tree.levels) > 1 else None

    def attempt(self, document: Document, cursor: At) -> Smaller | None:
        """Return the document with the parent of a node replaced by the node."""
        tree: Tree = document.tree
        inner = tree.levels[cursor.level][cursor.index]
        node = tree.parent[inner]
        if not grammar_of(document).can_replace(tree, node, inner):
            return None
        what = f"`{tree.place(inner)}` in the place of what it is in"
        return made(document, grammar_of(document).replaced(tree, node, inner), what)

    def failed(self, document: Document, cursor: At) -> At | None:
        """Return the next node."""
        levels: list[list[int]] = document.tree.levels
        if cursor.index + 1 < len(levels[cursor.level]):
            return cursor.but(index=cursor.index + 1)
        level = cursor.level + 1
        while level < len(levels) and _is_within_chain(document.tree, level):
            level += 1
        return At(level=level, index=0) if level < len(levels) else None

    def passed(self, document: Document, cursor: At) -> At | None:
        """Return the first node of the level above."""
        level = max(1, cursor.level - 1)
        return At(level=level, index=0) if level < len(document.tree.levels) else None


class Values:
    """Sets values to the simplest of their kind, many at once; those of a key in all records."""

    phase = 1

    def __init__(self, *, alike: bool) -> None:
        """`alike`: a unit is the values of one key everywhere, else one value."""
        self.name = "values alike" if alike else "values"
        self._alike = alike

    def _units(self, document: Document) -> list[list[int]]:
        known = document.spans.get(self.name)
        if known is None:
            known = document.spans[self.name] = self._found(document)
        found: list[list[int]] = known
        return found

    def _found(self, document: Document) -> list[list[int]]:
        tree: Tree = document.tree
        simplest = grammar_of(document).simplest
        leaves = [leaf for leaf in tree.leaves if _changes(tree, leaf, simplest(tree, leaf))]
        if not self._alike:
            return [[leaf] for leaf in leaves]
        groups: dict[int, list[int]] = {}
        for leaf in leaves:
            groups.setdefault(tree.patterns[leaf], []).append(leaf)
        return [group for group in groups.values() if len(group) > 1] if len(groups) > 1 else []

    def begin(self, document: Document) -> Pieces | None:
        """Return the first place."""
        return pieces.begin(len(self._units(document)))

    def attempt(self, document: Document, cursor: Pieces) -> Smaller | None:
        """Return the document with some values at their simplest."""
        units = self._units(document)
        if cursor.n != len(units):
            return None
        tree: Tree = document.tree
        leaves = sorted(
            (leaf for low, high in cursor.drops for unit in units[low:high] for leaf in unit),
            key=tree.start.__getitem__,
        )
        simplest = grammar_of(document).simplest
        edits = [(tree.start[one], tree.end[one], simplest(tree, one) or b"") for one in leaves]
        return made(document, edits, f"with {_said(tree, leaves, 'values')} at the simplest")

    def failed(self, document: Document, cursor: Pieces) -> Pieces | None:
        """Return the next place."""
        count = len(self._units(document))
        return pieces.failed(cursor) if cursor.n == count else pieces.begin(count)

    def passed(self, document: Document, cursor: Pieces) -> Pieces | None:
        """Return the next place in what is left."""
        return pieces.passed(cursor)


class InValue(Record):
    """A place in the work on one value: a plain one, a number between two, or letters."""

    index: int
    stage: int
    low: int = 0
    high: int = 0
    letters: Pieces | None = None


_OTHERS, _BETWEEN, _LETTERS = range(3)


class _Each:
    """Makes one value after the other plain: by kind, by size, by letters."""

    name = ""
    phase = 1

    def targets(self, document: Document) -> Sequence[Sequence[int]]:
        """Return what is changed together: leaves."""
        raise NotImplementedError

    def begin(self, document: Document) -> InValue | None:
        """Return the first place."""
        return self._enter(document, 0)

    def _enter(self, document: Document, index: int) -> InValue | None:
        return InValue(index=index, stage=_OTHERS) if index < len(self.targets(document)) else None

    def attempt(self, document: Document, cursor: InValue) -> Smaller | None:
        """Return the document with one value made plainer."""
        targets = self.targets(document)
        if cursor.index >= len(targets):
            return None
        text = self._text(document, targets[cursor.index][0], cursor)
        if text is None:
            return None
        tree: Tree = document.tree
        edits = [(tree.start[leaf], tree.end[leaf], text) for leaf in targets[cursor.index]]
        shown = text.decode(errors="replace")
        shown = shown if len(shown) <= 24 else f"{shown[:20]}... ({len(text):,} bytes)"
        return made(document, edits, f"`{tree.place(targets[cursor.index][0])}` as {shown}")

    def _text(self, document: Document, leaf: int, cursor: InValue) -> bytes | None:
        tree: Tree = document.tree
        grammar = grammar_of(document)
        if cursor.stage == _OTHERS:
            plain = self._plain(document, leaf)
            return plain[cursor.low] if cursor.low < len(plain) else None
        if cursor.stage == _BETWEEN:
            middle = (cursor.low + cursor.high) // 2
            return None if cursor.high - cursor.low < 2 else grammar.written(middle)
        letters = grammar.letters(tree, leaf)
        if cursor.letters is None or cursor.letters.n != len(letters):
            return None
        edits = [
            (letters[low][0] - tree.start[leaf], letters[high - 1][1] - tree.start[leaf], b"")
            for low, high in cursor.letters.drops
        ]
        return spliced(tree.raw(leaf), edits)

    @staticmethod
    def _plain(document: Document, leaf: int) -> list[bytes]:
        tree: Tree = document.tree
        grammar = grammar_of(document)
        simplest = grammar.simplest(tree, leaf)
        found = [*grammar.others(tree, leaf)]
        return [*([simplest] if simplest is not None else []), *found]

    def failed(self, document: Document, cursor: InValue) -> InValue | None:
        """Return the next thing to do with a value, or the next value."""
        targets = self.targets(document)
        if cursor.index >= len(targets):
            return None
        leaf = targets[cursor.index][0]
        if cursor.stage == _OTHERS:
            if cursor.low + 1 < len(self._plain(document, leaf)):
                return cursor.but(low=cursor.low + 1)
            return self._sizes(document, leaf, cursor)
        if cursor.stage == _BETWEEN:
            return self._narrow(document, leaf, cursor.but(low=(cursor.low + cursor.high) // 2))
        return self._letters(document, cursor, cursor.letters and pieces.failed(cursor.letters))

    def passed(self, document: Document, cursor: InValue) -> InValue | None:
        """Return the next thing to do with what the value is now."""
        if cursor.stage == _OTHERS:
            return self._enter(document, cursor.index)
        targets = self.targets(document)
        if cursor.index >= len(targets):
            return None
        leaf = targets[cursor.index][0]
        if cursor.stage == _BETWEEN:
            return self._narrow(document, leaf, cursor.but(high=(cursor.low + cursor.high) // 2))
        return self._letters(document, cursor, cursor.letters and pieces.passed(cursor.letters))

    def _sizes(self, document: Document, leaf: int, cursor: InValue) -> InValue | None:
        tree: Tree = document.tree
        if tree.kind[leaf] == NUMBER:
            number = grammar_of(document).number(tree.raw(leaf))
            if number is not None and abs(number) > 1:
                between = InValue(index=cursor.index, stage=_BETWEEN, high=number + (number > 0))
                if number < 0:
                    between = between.but(low=number - 1, high=0)
                return self._narrow(document, leaf, between)
        return self._into_letters(document, leaf, cursor)

    def _narrow(self, document: Document, leaf: int, cursor: InValue) -> InValue | None:
        if cursor.high - cursor.low > 1 and cursor.low >= 0:
            return cursor
        return self._into_letters(document, leaf, cursor)

    def _into_letters(self, document: Document, leaf: int, cursor: InValue) -> InValue | None:
        count = len(grammar_of(document).letters(document.tree, leaf))
        first = pieces.begin(count, is_one_needed=document.tree.kind[leaf] == TEXT)
        return self._letters(document, cursor, first)

    def _letters(
        self, document: Document, cursor: InValue, letters: Pieces | None
    ) -> InValue | None:
        if letters is None:
            return self._enter(document, cursor.index + 1)
        return InValue(index=cursor.index, stage=_LETTERS, letters=letters)


class EachValue(_Each):
    """Makes one value after the other plain."""

    name = "each value"

    def targets(self, document: Document) -> Sequence[Sequence[int]]:
        """Return every leaf alone, empty lists and maps too."""
        if self.name not in document.spans:
            tree: Tree = document.tree
            plain = [node for node in range(len(tree.kind)) if not tree.children[node]]
            document.spans[self.name] = [
                (one,) for one in sorted(plain, key=tree.start.__getitem__)
            ]
        found: Sequence[Sequence[int]] = document.spans[self.name]
        return found


class Tied(_Each):
    """Makes values plain that are equal in several places: all at once."""

    name = "equal values"

    def targets(self, document: Document) -> Sequence[Sequence[int]]:
        """Return the leaves that are equal, as groups."""
        if self.name not in document.spans:
            tree: Tree = document.tree
            groups: dict[bytes, list[int]] = {}
            for leaf in tree.leaves:
                if tree.end[leaf] - tree.start[leaf] > 1:
                    groups.setdefault(tree.raw(leaf), []).append(leaf)
            document.spans[self.name] = [one for one in groups.values() if len(one) > 1]
        found: Sequence[Sequence[int]] = document.spans[self.name]
        return found


class InNames(Record):
    """A place: a name, and the how manieth shorter one."""

    index: int
    choice: int


class Names:
    """Shortens keys: the same one everywhere, with values that are equal to it.

    Where it is `deep`, those that come often go first: at the depth that just fails, nothing else
    may change.
    """

    def __init__(self, *, deep: bool = False) -> None:
        """`deep`: before levels are cut, and only where there are many."""
        self.name = "names of levels" if deep else "names"
        self.phase = 0 if deep else 2
        self._deep = deep

    def _groups(self, document: Document) -> list[list[int]]:
        if self.name not in document.spans:
            tree: Tree = document.tree
            groups: dict[bytes, list[int]] = {}
            for node in range(len(tree.kind)):
                name = tree.name(node)
                if name is not None:
                    groups.setdefault(name, []).append(node)
            least = _MANY_LEVELS if self._deep else 1
            document.spans[self.name] = [one for one in groups.values() if len(one) >= least]
        found: list[list[int]] = document.spans[self.name]
        return found

    def begin(self, document: Document) -> InNames | None:
        """Return the first place."""
        if self._deep and len(document.tree.levels) < _MANY_LEVELS:
            return None
        return InNames(index=0, choice=0) if self._groups(document) else None

    def attempt(self, document: Document, cursor: InNames) -> Smaller | None:
        """Return the document with a key shortened everywhere."""
        nodes = self._groups(document)[cursor.index]
        tree: Tree = document.tree
        choices = grammar_of(document).names(tree, nodes[0])
        if cursor.choice >= 2 * len(choices):
            return None
        with_values, choice = divmod(cursor.choice, len(choices))
        name, old = choices[choice], tree.name(nodes[0])
        spans = [tree.name_span[node] for node in nodes]
        if any(_has_name(tree, tree.parent[node], name) for node in nodes):
            return None
        if with_values:
            same = [(tree.start[one], tree.end[one]) for one in tree.leaves if tree.raw(one) == old]
            if not same:
                return None
            spans += same
        edits = sorted((span[0], span[1], name) for span in spans if span)
        shown = name.decode(errors="replace")
        return made(document, edits, f"`{tree.place(nodes[0])}` named {shown}")

    def failed(self, document: Document, cursor: InNames) -> InNames | None:
        """Return the next shorter name, or the next name."""
        groups = self._groups(document)
        if cursor.index >= len(groups):
            return None
        choices = grammar_of(document).names(document.tree, groups[cursor.index][0])
        if cursor.choice + 1 < 2 * len(choices):
            return cursor.but(choice=cursor.choice + 1)
        return InNames(index=cursor.index + 1, choice=0) if cursor.index + 1 < len(groups) else None

    def passed(self, document: Document, cursor: InNames) -> InNames | None:
        """Return the same name, which is another now."""
        return cursor.but(choice=0) if cursor.index < len(self._groups(document)) else None


def _has_name(tree: Tree, parent: int, name: bytes) -> bool:
    return any(tree.name(child) == name for child in tree.children[parent])


def _changes(tree: Tree, leaf: int, text: bytes | None) -> bool:
    """Tell whether a value would be smaller or plainer as this."""
    if text is None:
        return False
    raw = tree.raw(leaf)
    return (len(text), sum(text)) < (len(raw), sum(raw))


def _is_within_chain(tree: Tree, level: int) -> bool:
    """Tell whether a level is in the midst of a long chain of single nodes: depth is cut there."""
    levels = tree.levels
    low, high = level - _CHAIN, level + _CHAIN
    if low < 0 or high >= len(levels):
        return False
    return all(len(levels[near]) <= _FEW_BESIDE for near in (low, level, high))


_FEW_BESIDE = 1


def _said(tree: Tree, nodes: Sequence[int], word: str = "parts") -> str:
    """Return which nodes: by their path if there is one, else how many."""
    if not nodes:
        return f"no {word}"
    if len(nodes) == 1 or len({tree.path(node) for node in nodes[:50]}) == 1:
        path = tree.place(nodes[0])
        place = (
            f" ({tree.position[nodes[0]] + 1:,})"
            if tree.kind[tree.parent[nodes[0]]] == LIST
            else ""
        )
        return f"`{path}`{place}" if len(nodes) == 1 else f"`{path}` ({len(nodes):,} times)"
    return f"{len(nodes):,} {word}"
