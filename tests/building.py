"""Packages that bring their build tool along: they are installed without asking any registry."""

from __future__ import annotations

import textwrap
import zipfile
from pathlib import Path

from tests.conftest import World

from relaunch.trial.place.requirements import Requirements

BACKEND = '''
"""Builds a wheel of the folder it is in; `before.py` is run first."""
import base64, hashlib, os, sys, zipfile
HERE = os.path.dirname(os.path.abspath(__file__))

def wheel(folder, members):
    NAME = open(os.path.join(HERE, "name")).read()
    with open(os.path.join(HERE, "builds"), "a") as file:
        file.write("built\\n")
    exec(open(os.path.join(HERE, "before.py")).read(), {"HERE": HERE})
    info = NAME + "-1.0.dist-info/"
    members = {
        **members(NAME),
        info + "METADATA": "Metadata-Version: 2.1\\nName: %s\\nVersion: 1.0\\n" % NAME,
        info + "WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\n"
                        "Tag: py3-none-any\\n",
        info + "entry_points.txt": "[console_scripts]\\n%s = %s:main\\n" % (NAME, NAME),
    }
    members[info + "RECORD"] = "".join(name + ",,\\n" for name in members)
    name = NAME + "-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as archive:
        for member, text in members.items():
            archive.writestr(member, text)
    return name

def build_wheel(folder, config_settings=None, metadata_directory=None):
    def members(name):
        package = os.path.join(HERE, name)
        files = [file for file in os.listdir(package) if file.endswith(".py")]
        return {name + "/" + file: open(os.path.join(package, file)).read() for file in files}
    return wheel(folder, members)
'''
EDITABLE = """
def build_editable(folder, config_settings=None, metadata_directory=None):
    return wheel(folder, lambda name: {name + ".pth": HERE + "\\n"})
"""


class Package:
    """A package that builds itself, and what its build does on the way."""

    def __init__(self, folder: Path, name: str, before: str = "", *, editable: bool = True) -> None:
        self.folder = folder / name
        self.name = name
        (self.folder / name).mkdir(parents=True)
        project = '[build-system]\nrequires = []\nbuild-backend = "tool"\nbackend-path = ["."]\n'
        (self.folder / "pyproject.toml").write_text(project + f'[tool.x]\nname = "{name}"\n')
        (self.folder / "tool.py").write_text(BACKEND + (EDITABLE if editable else ""))
        (self.folder / "name").write_text(name)
        (self.folder / "before.py").write_text(textwrap.dedent(before))
        (self.folder / name / "__init__.py").write_text("def main():\n    print('here')\n")

    @property
    def needs(self) -> Requirements:
        return Requirements(needs=(f"{self.name} @ {self.folder.as_uri()}",))

    @property
    def builds(self) -> int:
        """How often it was built."""
        path = self.folder / "builds"
        return len(path.read_text().splitlines()) if path.exists() else 0


def package(world: World, name: str, version: str, works: bool) -> None:
    """Put a wheel into the folder that installers look in."""
    folder = world.root / "wheels"
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}.py", f"works = {works}\n")
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        file.writestr(f"{info}/METADATA", about)
        wheel = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        file.writestr(f"{info}/WHEEL", wheel)
        file.writestr(f"{info}/RECORD", "")


def install_from_wheels(world: World) -> None:
    """Let installers know that folder and nothing else."""
    wheels = str(world.root / "wheels")
    world.env |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": wheels, "UV_OFFLINE": "1"}
    world.env |= {"UV_NO_INDEX": "1", "UV_FIND_LINKS": wheels}
