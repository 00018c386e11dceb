"""Where the threads of running processes are, asked from outside; many processes as one tree."""

from relaunch.look.stacks.faults import read_fault
from relaunch.look.stacks.frames import (
    Frame,
    LookError,
    ProcessStacks,
    Thread,
    chain,
    functions,
    is_own,
    since_fork,
)
from relaunch.look.stacks.pyspy import dump, dump_all, py_spy, read_threads

__all__ = [
    "Frame",
    "LookError",
    "ProcessStacks",
    "Thread",
    "chain",
    "dump",
    "dump_all",
    "functions",
    "is_own",
    "py_spy",
    "read_fault",
    "read_threads",
    "since_fork",
]
