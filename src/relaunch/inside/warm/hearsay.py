"""Takes what forked processes told into the ledger, as if the program itself had seen and done it.

They tell in the order in which it happened, and did not know of each other. So here it counts what
was the program's own by then, and what was known already.
"""

from __future__ import annotations

from .states import MAYBE_FOLDER, folder_of, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .ledger import Ledger


def take(ledger: Ledger, what: str, key: str, value: Any) -> None:
    """Take one note of a forked process over."""
    if what == "blind":
        ledger.lose_sight(key)
    elif what == "stdin":
        ledger.use_stdin()
    elif what == "shown":
        ledger.shown()
    elif value is None:
        ledger.add(what, key)
    elif what == "lines":
        number, text = value
        ledger.lines.setdefault(key, {}).setdefault(number, text)
    elif what == "bases":
        ledger.bases.setdefault(key, value)
    elif what == "written":
        _write(ledger, key, value)
    elif what == "contents":
        _read(ledger, key, value)
    elif what == "kinds":
        _look(ledger, key, value)
    elif what == "names":
        _list(ledger, key, value)
    elif not ledger.is_own(key):
        getattr(ledger, what).setdefault(key, value)


def _write(ledger: Ledger, path: str, base: int) -> None:
    """Of a file that was only appended to, the first to do so knows how long it was."""
    if path in ledger.contents:
        base = -1
    if base == -1 or path not in ledger.written:
        ledger.written[path] = base


def _read(ledger: Ledger, path: str, state: list[Any]) -> None:
    known = ledger.contents.get(path)
    if known is not None:
        if known[:5] == state[:5] and known[0] == "file":
            known[5] = known[5] or state[5]
        return
    if ledger.is_own(path) and ledger.written.get(path, -1) == -1:
        return
    if path in ledger.written:
        ledger.lose_sight(f"a file was appended to, then read: {short(path)}")
    ledger.contents[path] = state


def _look(ledger: Ledger, path: str, kind: str) -> None:
    if ledger.kinds.get(path) == MAYBE_FOLDER and kind in ("absent", "dir"):
        ledger.kinds[path] = "absent" if path in ledger.written else kind
    elif not ledger.is_own(path):
        ledger.kinds.setdefault(path, kind)


def _list(ledger: Ledger, path: str, listed: list[Any]) -> None:
    """Leave out what others of the program made there."""
    names, own, endings, times = listed
    old = ledger.names.get(path)
    if old and not old[2] and (old[3] or not times):
        return
    if path in ledger.written and ledger.kinds.get(path) == "absent":
        return
    others = {one.rpartition("/")[2] for one in ledger.written if folder_of(one) == path}
    if isinstance(names, list):
        names = [one for one in names if one.partition("\0")[0].rstrip("/") not in others]
    elif names is not None and not others <= {*own}:
        ledger.lose_sight(f"a large folder was listed while it changed: {short(path)}")
    ledger.names[path] = [names, sorted({*own, *others}), endings, times]
