"""Requirements in setup.cfg, and in the environment.yml of conda."""

from __future__ import annotations

import re

from relaunch.trial.place.stated.line import canonical
from relaunch.trial.place.stated.lists import COMMENT, one_line, reading
from relaunch.trial.place.stated.said import Said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def from_setup_cfg(texts: Mapping[str, str]) -> Iterator[Said]:
    if "setup.cfg" not in texts:
        return
    import configparser

    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(texts["setup.cfg"])
    except configparser.Error:
        yield Said(file="setup.cfg", dynamic=True)
        return
    options = {
        key.replace("-", "_"): value
        for section in ("metadata", "options")
        if parser.has_section(section)
        for key, value in parser.items(section)
    }
    section = "options.extras_require"
    extras = parser.items(section) if parser.has_section(section) else []
    stated = options.get("install_requires")
    said = Said(
        file="setup.cfg",
        needs=None if stated is None else _cfg_list(stated),
        build=_cfg_list(options.get("setup_requires", "")),
        python=options.get("python_requires", ""),
        name=options.get("name", ""),
        extras={name: _cfg_list(value) for name, value in extras},
    )
    named = re.match(r"\s*file:(.*)$", stated or "", re.DOTALL)
    yield reading(said, re.split(r"[,\s]+", named[1].strip()), texts) if named else said


def _cfg_list(value: str) -> list[str]:
    return COMMENT.sub("", value).splitlines()


# --- environment.yml


_CONDA = {"pytorch": "torch", "pytorch-cpu": "torch", "matplotlib-base": "matplotlib"}
_NO_PACKAGE = frozenset(
    ("python", "pip", "cudatoolkit", "cudnn", "cuda", "mkl", "gcc", "gxx", "nodejs", "conda")
)


def from_conda(texts: Mapping[str, str]) -> Iterator[Said]:
    """Read the plain lists of an environment.yml; conda's names are not always the installers'."""
    text = texts.get("environment.yml")
    if text is None:
        return
    needs: list[str] = []
    python = where = ""
    for line in COMMENT.sub("", text).splitlines():
        item = re.match(r"\s*-\s*(.+?)\s*$", line)
        if not item:
            where = line.strip() or where
        elif re.match(r"pip\s*:$", item[1]):
            where = "pip:"
        elif where == "pip:":
            needs.append(one_line(item[1].strip("\"'")) or "")
        elif where == "dependencies:":
            name, versions = _conda_line(item[1].strip("\"'"))
            python = versions if name == "python" else python
            if name not in _NO_PACKAGE:
                needs.append(f"{_CONDA.get(name, name)}{versions}")
    yield Said(file="environment.yml", needs=needs, python=python, dynamic=True)


def _conda_line(line: str) -> tuple[str, str]:
    """Split `conda-forge::numpy=1.18=py37_0` into its name and what PEP 440 makes of the rest."""
    found = re.match(r"(?:\S+::)?([A-Za-z0-9._-]+)\s*(.*)$", line)
    name, rest = (canonical(found[1]), found[2].strip()) if found else ("", "")
    exact = re.match(r"=?\s*(\d[^=\s,|]*)(?:[=\s]\S+)?$", rest)
    if exact:
        return name, f"=={exact[1].removesuffix('.*').removesuffix('*')}.*"
    return name, rest if rest[:1] in ("=", "<", ">", "!", "~") else ""
