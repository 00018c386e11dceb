"""Which imports a program lacks: only for what it names, and no more of a package than it names."""

from __future__ import annotations

from relaunch.inside.wellknown import ALIASES, MEMBERS, OF_THE_CLASS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from relaunch.desk.oneliner.modules import Module
    from relaunch.desk.oneliner.names import Use

    Find = Callable[[str], Module | None]


def statements(free: Mapping[str, Use], find: Find) -> tuple[list[str], list[str]]:
    """Return the import statements for these names, and the names that nothing has."""
    lines: dict[str, None] = {}
    missing: list[str] = []
    for name, use in free.items():
        found = _of_module(name, use, find) or _well_known(name, use, find)
        lines.update(dict.fromkeys(found))
        if not found:
            missing.append(name)
    return _in_order(lines), missing


def _of_module(name: str, use: Use, find: Find) -> list[str]:
    """Import the module of that name; where no module can be meant, what it has of that name."""
    module = find(name)
    if module is None:
        return []
    inner = _submodules(name, use, module)
    if not module.has_code:  # a mere folder; of data, unless modules in it are named
        return inner
    firsts = {chain[0] for chain in use.chains if chain}
    if use.is_called or firsts & {*OF_THE_CLASS.get(name, ())}:
        return [f"from {name} import {name}"]
    return inner or [f"import {name}"]


def _well_known(name: str, use: Use, find: Find) -> list[str]:
    """Import what everybody means by the name, installed or not: the error names the module."""
    if name in MEMBERS:
        return [f"from {MEMBERS[name]} import {name}"]
    if name not in ALIASES:
        return []
    whole = ALIASES[name]
    top, *rest = whole.split(".")
    module = find(top)
    for part in rest:
        module = module and module.inner(part)
    inner = _submodules(whole, use, module) if module else []
    return [*inner, f"import {whole} as {name}"]


def _submodules(name: str, use: Use, module: Module) -> list[str]:
    """Import the deepest module that each chain of attributes leads to, where it is not the top."""
    lines = []
    for chain in use.chains:
        dotted, here = name, module
        for attribute in chain:
            below = here.inner(attribute)
            if below is None:
                break
            here = below
            dotted = f"{dotted}.{attribute}"
        if here is not module and here.has_code:
            lines.append(f"import {dotted}")
    return lines


def _in_order(lines: Mapping[str, None]) -> list[str]:
    """Put plain imports first; leave one out whose package comes with another."""
    plain = sorted(line for line in lines if line.startswith("import ") and " as " not in line)
    kept = [line for line in plain if not any(other.startswith(f"{line}.") for other in plain)]
    return kept + [line for line in lines if line not in plain]
