"""Has `torch.compile` leave functions of ours alone: it runs them, but makes no graph of them."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def leave_untraced(*functions: Callable[..., Any]) -> bool:
    """Mark the functions, with all that they call; False as long as there is no torch."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return False
    try:
        frames = torch._C._dynamo.eval_frame
        if hasattr(frames, "set_code_exec_strategy"):
            skip = frames._FrameAction.SKIP
            strategy = frames._FrameExecStrategy(skip, skip)
            for one in functions:
                frames.set_code_exec_strategy(one.__code__, strategy)
        else:
            for one in functions:
                frames.skip_code(one.__code__)
    except Exception:
        pass
    return True
