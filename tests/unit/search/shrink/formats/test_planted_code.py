"""Files of others that hold code: no verb that reads them runs it."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from relaunch.errors import RelaunchError
from relaunch.search.shrink.formats.choose import read
from relaunch.tiny.payloads.files import read_like


class Runs:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (self.command,)


def of_torch(code: bytes) -> bytes:
    """Return a file as `torch.save` writes one."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("batch/data.pkl", code)
        file.writestr("batch/version", b"3\n")
    return out.getvalue()


def of_numpy(made: object) -> bytes:
    out = io.BytesIO()
    np.save(out, np.array([made], dtype=object), allow_pickle=True)
    return out.getvalue()


def zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("rows.npy", data)
    return out.getvalue()


@pytest.mark.parametrize("name", ["a.pkl", "a.joblib", "a.pt", "old.pt", "a.npy", "a.npz"])
def test_code_in_a_file_never_runs(name: str, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    made = {"rows": [1, Runs(f"touch {marker}")], "more": {"deep": (Runs(f"touch {marker}"),)}}
    code = pickle.dumps(made, 2)
    data = {
        "a.pt": of_torch(code),
        "a.npy": of_numpy(made),
        "a.npz": zipped(of_numpy(made)),
    }.get(name, code)
    path = tmp_path / name
    path.write_bytes(data)
    for act in (
        lambda: read(str(path)).write(str(tmp_path / f"new-{name}")),
        lambda: read_like(str(path)),
    ):
        try:
            act()
        except RelaunchError:
            continue
    assert not marker.exists()
    pickle.loads(code)
    assert marker.exists()  # it would have
