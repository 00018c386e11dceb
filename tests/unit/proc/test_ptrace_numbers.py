"""The tables of system calls, against what the kernel's own headers say."""

import os
import re
from pathlib import Path

import pytest

from relaunch.proc.ptrace.numbers import AARCH64, X86_64, machine, numbers
from relaunch.trial.blame.calls import FAILING, SHAPES

HEADER = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")


def test_well_known_numbers():
    assert [X86_64[name] for name in ("read", "write", "openat", "execve", "clone3")] == [
        0, 1, 257, 59, 435,
    ]  # fmt: skip
    assert [AARCH64[name] for name in ("openat", "close", "read", "write", "execve", "clone3")] == [
        56, 57, 63, 64, 221, 435,
    ]  # fmt: skip
    assert "open" not in AARCH64  # only the calls that start at a folder


def test_the_table_is_that_of_the_header():
    if not HEADER.exists():
        pytest.skip("no kernel headers here")
    there = dict(re.findall(r"#define __NR_(\w+) (\d+)", HEADER.read_text()))
    differ = {name: n for name, n in X86_64.items() if name in there and n != int(there[name])}
    assert differ == {}


def test_each_call_whose_arguments_we_know_is_one_somewhere():
    assert {name for name in SHAPES if name not in X86_64 and name not in AARCH64} == set()
    assert len(FAILING) < 200  # as many fit into a filter


def test_this_machine_is_known_where_it_is_one_of_the_two():
    if os.uname().machine in ("x86_64", "aarch64"):
        assert numbers()["write"] == {"x86_64": 1, "aarch64": 64}[machine()]
