"""`from relaunch import section`: where `--sections` measures too, the same class as there."""

from __future__ import annotations

import builtins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.inside.sections.section import section as section
else:
    section = getattr(getattr(builtins, "__rl__", None), "Section", None)
    if section is None:
        from relaunch.inside.sections.section import section
