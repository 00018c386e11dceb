"""Holds one side of each fork back, so that the other one is the first to do anything."""

import os
import time

_SIDE = os.environ.pop("SLOW_AFTER_FORK", "")
if _SIDE:
    os.register_at_fork(**{f"after_in_{_SIDE}": lambda: time.sleep(0.1)})
