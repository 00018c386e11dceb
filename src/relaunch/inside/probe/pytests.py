"""The way into files whose assertions pytest rewrites: it loads those by itself."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from relaunch.inside.probe.engine import Engine

REWRITER = "_pytest.assertion.rewrite"


def watch(engine: Engine) -> bool:
    """Have pytest rewrite probed files with their probes; False while it is not loaded."""
    module: Any = sys.modules.get(REWRITER)
    if module is None or getattr(module.__spec__, "_initializing", False):
        return False
    try:
        rewrites, reads, writes = module._rewrite_test, module._read_pyc, module._write_pyc
        change_asserts = module.rewrite_asserts
    except AttributeError:
        engine.runtime.notes.add("translated", file="", by="pytest")
        return True

    def rewrite_test(file: Any, config: Any) -> Any:
        stamp, native = rewrites(file, config)
        if not engine.file_of(str(file)):
            return stamp, native
        source = file.read_bytes()

        def change(tree: Any) -> None:
            change_asserts(tree, source, str(file), config)

        return stamp, engine.probed(source, str(file), change) or native

    def read_pyc(file: Any, *more: Any) -> Any:
        return None if engine.file_of(str(file)) else reads(file, *more)

    def write_pyc(state: Any, code: Any, *more: Any) -> Any:
        return True if engine.is_ours(code) else writes(state, code, *more)

    module._rewrite_test, module._read_pyc, module._write_pyc = rewrite_test, read_pyc, write_pyc
    return True
