"""Make the corpus: really run every failing program of `cases.py`, in several places each.

    python tests/quality/signatures/make.py --python 3.11=PATH --python 3.12=PATH \
        --python 3.13=PATH --venv DIR [NAME ...]

`--venv` has pytest, pytest-xdist, rich, ipython and torch. Each case becomes `corpus/NAME.txt`: the
outputs one after another, each behind a line of JSON that says how the program ended and to which
failure it belongs. Outputs of one `group` are one failure; all others are different ones.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[3] / "src")]

from cases import CASES, Case  # type: ignore[import-not-found]  # noqa: E402  # beside this file

from relaunch.inside.protocol import hooked_env  # noqa: E402

CORPUS = Path(__file__).parent / "corpus"
PLACES = {  # variant: directory, lines pushed down, the number `{{n}}`, interpreter
    "a": ("alpha/proj", 0, 3, "3.11"),
    "b": ("beta-77/home/someone/copy2", 13, 417, "3.13"),
    "hooked": ("gamma", 4, 88, "3.12"),
}
MISS = ("delta/proj", 2, 3, "3.11")


def main() -> None:
    options = _options()
    for case in CASES:
        if options.names and case.name not in options.names:
            continue
        _make(case, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--venv", required=True)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.pythons = dict(one.split("=", 1) for one in options.python)
    return options


def _make(case: Case, options: argparse.Namespace) -> None:
    parts = []
    for variant, place in PLACES.items():
        if variant == "hooked" and not case.hook:
            continue
        head, text = _run(case, place, {}, options, hook=variant == "hooked")
        parts.append(({"variant": variant, "group": case.group or case.name, **head}, text))
    for label, change in case.misses.items():
        head, text = _run(case, MISS, change, options, hook=False)
        parts.append(
            ({"variant": label, "group": f"{case.group or case.name} / {label}", **head}, text)
        )
    with open(CORPUS / f"{case.name}.txt", "w", encoding="utf-8", newline="") as out:
        for head, text in parts:
            out.write(f"%% {json.dumps(head)}\n{text}{'' if text.endswith(chr(10)) else chr(10)}")
    print(case.name, [(head["variant"], head["exit_code"], head["signal"]) for head, _ in parts])


def _run(case, place, change, options, *, hook):
    where, pad, number, version = place
    base = Path(tempfile.gettempdir()) / where.split("/")[0]
    folder = Path(tempfile.gettempdir()) / where
    shutil.rmtree(base, ignore_errors=True)
    folder.mkdir(parents=True)

    def fill(text: str) -> str:
        for old, new in change.items():
            text = text.replace(old, new)
        pads = "".join(f"# line {i}\n" for i in range(pad))
        if text.startswith("{{pad}}") and case.comment != "#":
            pads = pads.replace("#", case.comment)
        return text.replace("{{pad}}\n", pads).replace("{{n}}", str(number))

    for name, source in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(fill(source))
    venv = Path(options.venv)
    python = str(venv / "bin/python") if case.venv else options.pythons[case.python or version]
    command = fill(case.command).replace("{{py}}", python).replace("{{bin}}", str(venv / "bin"))
    env = {
        "PATH": f"{venv / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        **{key: fill(value) for key, value in case.env.items()},
    }
    reports = folder / ".reports"
    if hook:
        reports.mkdir()
        env = hooked_env(env, str(reports))
    head, text = _ended(command, folder, env, case.timeout_s)
    wash = _washer(options)
    if hook:
        told = [json.loads(wash(one.read_text())) for one in sorted(reports.glob("*.json"))]
        head["reports"] = told
    shutil.rmtree(base, ignore_errors=True)
    return head, wash(text)


def _ended(command, folder, env, timeout_s):
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    timed_out = False
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(process.pid, signal.SIGTERM)
        output, _ = process.communicate()
    code = process.returncode
    head = {
        "exit_code": code if code >= 0 else None,
        "signal": -code if code < 0 else None,
        "timed_out": timed_out,
    }
    return head, output.decode("utf-8", "replace")


def _washer(options):
    """Take this machine's own directories out of the text: they are not the point."""
    pairs = [(str(Path(options.venv).resolve()), "/opt/venv"), (options.venv, "/opt/venv")]
    for version, python in options.pythons.items():
        pairs.append((str(Path(python).resolve().parents[1]), f"/opt/python/{version}"))
        pairs.append((str(Path(python).parents[1]), f"/opt/python/{version}"))
    pairs.append((socket.gethostname(), "node-a"))

    def wash(text: str) -> str:
        for old, new in pairs:
            text = text.replace(old, new)
        # Terminal cells and lone carriage returns stay; only what JSON lines must not hold goes.
        return re.sub(r"^%% ", "%_ ", text, flags=re.MULTILINE)

    return wash


if __name__ == "__main__":
    main()
