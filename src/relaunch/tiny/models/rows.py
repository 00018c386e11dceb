"""Every installed architecture made tiny, one forked process each; told as lines of JSON.

Runs in the user's Python. A row that is in the file already is not made again, unless other code
or other packages have made it.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import time
from hashlib import blake2b

from relaunch.tiny.models import build, kinds, repair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from relaunch.tiny.models.kinds import Kind


def all_rows(path: str, *, seconds: float, only: list[str], failed: bool, jobs: int = 1) -> None:
    """Make every row that the file does not have yet, and add it there; `jobs` at a time."""
    quiet()
    _warm()
    made_with = stamp()
    known = read_rows(path, made_with)
    waiting = []
    for kind in kinds.installed():
        name = f"{kind.model_type} {kind.cls}"
        before = known.get(name)
        if only and kind.model_type not in only and name not in only:
            continue
        if before is not None and not (failed and not passed(before)) and not only:
            continue
        waiting.append(kind)
    workers = []
    for at in range(1, max(jobs, 1)):
        pid = os.fork()
        if not pid:
            try:
                _rows_of(waiting[at::jobs], path, seconds, made_with)
            finally:
                os._exit(0)
        workers.append(pid)
    _rows_of(waiting[:: max(jobs, 1)], path, seconds, made_with)
    for pid in workers:
        os.waitpid(pid, 0)


def stamp() -> dict[str, str]:
    """Return what a row depends on: the packages, and the code that makes models tiny."""
    import torch
    import transformers

    code = blake2b(digest_size=8)
    folder = os.path.dirname(__file__)
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), "rb") as file:
                code.update(name.encode() + b"\0" + file.read())
    return {
        "transformers": str(transformers.__version__), "torch": str(torch.__version__),
        "code": code.hexdigest(),
    }  # fmt: skip


def _rows_of(wanted: list[Kind], path: str, seconds: float, made_with: Mapping[str, str]) -> None:
    for kind in wanted:
        row = {**_in_a_fork(kind, seconds), "made_with": made_with}
        mark = "ok" if passed(row) else f"{row['stage']}: {why(row)}"
        told = f"{kind.model_type} {kind.cls}  {'+'.join(row['families'])}  {mark}\n"
        for name, text in ((path, json.dumps(row) + "\n"), ("", told)):
            place = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666) if name else 1
            os.write(place, text.encode())  # whole lines: others write there too
            if name:
                os.close(place)


def read_rows(path: str, made_with: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """Return the rows of a file by their names, the last of each; only those made with these."""
    try:
        with open(path, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file if line.strip().endswith("}")]
    except FileNotFoundError:
        return {}
    if made_with is not None:
        rows = [row for row in rows if row.get("made_with") == made_with]
    return {f"{row['type']} {row['class']}": row for row in rows}


def passed(row: dict[str, Any]) -> bool:
    """Tell whether a model is tiny and does all that was asked of it."""
    checks = row.get("checks") or {}
    small = 0 < row.get("bytes", 0) <= build.MOST_BYTES
    return row["stage"] == "ok" and small and all(one == "ok" for one in checks.values())


def why(row: dict[str, Any]) -> str:
    """Say in one line what kept a row from passing."""
    if row["stage"] != "ok":
        return str(row.get("error", ""))[:160]
    for name, told in (row.get("checks") or {}).items():
        if told != "ok":
            return f"{name}: {told}"[:160]
    return f"{row.get('bytes', 0):,} bytes"


def quiet() -> None:
    """Keep libraries from asking the network, and from talking."""
    import logging
    import warnings

    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    from transformers.utils import logging as theirs

    theirs.set_verbosity(logging.CRITICAL)
    theirs.disable_progress_bar()


def _warm() -> None:
    """Import what every model needs, so that no fork has to: a model is built, called, reloaded."""
    import torch
    import transformers

    data = plain(transformers.LlamaConfig())
    found = repair.find(
        data,
        lambda made: build.attempt(
            transformers.LlamaForCausalLM, transformers.LlamaConfig, made, 0
        ),
    )
    with torch.no_grad():
        build.check(found.tried.model, found.tried.inputs, generates=True)


def _in_a_fork(kind: Kind, seconds: float) -> dict[str, Any]:
    """Make a row in a copy of this process, which may crash or hang.

    The seconds are those of the processor, so that a busy machine refuses nothing.
    """
    near, far = os.pipe()
    began = time.monotonic()
    pid = os.fork()
    if not pid:
        os.close(near)
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
            row = one_row(kind, seconds * 0.6)
            os.write(far, json.dumps(row).encode()[:60000])
            code = 0
        finally:
            os._exit(code)
    os.close(far)
    data = b""
    while select.select([near], [], [], max(0.0, began + 12 * seconds - time.monotonic()))[0]:
        block = os.read(near, 65536)
        if not block:
            break
        data += block
    os.close(near)
    os.kill(pid, signal.SIGKILL)
    _, status, ended = os.wait4(pid, 0)
    took = round(time.monotonic() - began, 1)
    used = round(ended.ru_utime + ended.ru_stime, 1)
    if data:
        return {**json.loads(data), "seconds": took, "cpu_seconds": used}
    late = status == signal.SIGXCPU or used >= seconds - 0.5 or took >= 12 * seconds
    stage = "out of time" if late else "crashed"
    error = f"{seconds:g} s of CPU were not enough" if late else _ending(status)
    known = [*kind.families] or ["other"]
    return {
        "type": kind.model_type, "class": kind.cls, "families": known, "stage": stage,
        "error": error, "seconds": took,
    }  # fmt: skip


def _ending(status: int) -> str:
    """Say how a process ended that said nothing itself."""
    if os.WIFSIGNALED(status):
        return f"its process was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"its process ended with {os.WEXITSTATUS(status)}"


def one_row(kind: Kind, seconds: float) -> dict[str, Any]:
    """Make one architecture tiny from its default configuration, and try it."""
    import transformers

    row: dict[str, Any] = {"type": kind.model_type, "class": kind.cls}
    row["families"] = [*kind.families] or ["other"]
    try:
        config_class = transformers.CONFIG_MAPPING[kind.model_type]
        cls = getattr(transformers, kind.cls)
        config = fitting(cls, default(config_class))
        config_class, data = type(config), plain(config)
    except Exception as error:  # a default configuration that does not build itself
        return {**row, "stage": "default", "error": f"{type(error).__name__}: {error}"[:300]}
    row["families"] = kinds.families(kind, cls, data)
    found = repair.find(
        data, lambda made: build.attempt(cls, config_class, made, 0), seconds=seconds
    )
    tried = found.tried
    row.update(
        stage=tried.stage, error=tried.error, tries=found.tries, first=found.first[:300],
        bytes=tried.bytes, changes=len(found.changes),
    )  # fmt: skip
    if tried.stage == "ok":
        row["inputs"] = {n: list(getattr(v, "shape", ())) for n, v in tried.inputs.items()}
        row["checks"] = build.check(tried.model, tried.inputs, generates=True)
    return row


def fitting(cls: Any, config: Any) -> Any:
    """Return the part of a configuration that a class is made from, as a rule the whole."""
    wanted = getattr(cls, "config_class", None)
    if wanted is None or isinstance(config, wanted):
        return config
    for name in getattr(type(config), "sub_configs", {}):
        part = getattr(config, name, None)
        if isinstance(part, wanted):
            return part
    return config


def default(config_class: Any) -> Any:
    """Return the configuration that a class has by itself."""
    return config_class()


def plain(config: Any) -> dict[str, Any]:
    """Return a configuration as the plain data that its file would have."""
    made = json.loads(json.dumps(config.to_dict(), default=str))
    assert isinstance(made, dict)
    return made
