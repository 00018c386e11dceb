"""The library's own tests pass with a probe before and after every line of what they test."""

from __future__ import annotations

import os
import subprocess

from tests.depth import takes_turns
from tests.needs import every_python, missing

from relaunch.inside.probe import lines
from relaunch.inside.protocol import hooked_env
from relaunch.recipe import Probe
from relaunch.trial.probe.asked import write_asked
from relaunch.trial.probe.seen import read_seen

MODULES = {
    "textwrap.py": "test_textwrap",
    "shlex.py": "test_shlex",
    "reprlib.py": "test_reprlib",
    "graphlib.py": "test_graphlib",
    "copy.py": "test_copy",
    "fractions.py": "test_fractions",
    "contextlib.py": "test_contextlib",
    "configparser.py": "test_configparser",
}


def _library(python: str) -> str:
    asked = "import os, test; print(os.path.dirname(os.__file__))"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
    if done.returncode:
        missing(f"{python} comes without the tests of its library")
    return os.path.realpath(done.stdout.strip())


def _probes(library: str) -> list[Probe]:
    """Count before each line, and evaluate something after it, without saying so."""
    found = []
    for name in MODULES:
        file = os.path.join(library, name)
        with open(file, "rb") as source:
            tree = lines.parse(source.read(), file)
        for line in lines.lines_with_code(tree):
            found.append(Probe(kind="count", file=file, line=line, label="before"))
            found.append(Probe(kind="peek", file=file, line=line, after=True, exprs=("1",),
                               first=1, last=1, label="after"))  # fmt: skip
    return found


@takes_turns
@every_python
def test_the_library_passes_its_tests_with_every_line_probed(python, tmp_path):
    probes = _probes(_library(python))
    asked = write_asked(str(tmp_path), probes)
    env = hooked_env(dict(os.environ), str(tmp_path), (), asked)
    command = [python, "-m", "test", "-q", *MODULES.values()]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    seen = read_seen(str(tmp_path), len(probes))
    hit = sum(1 for number in range(len(probes)) if seen.count(number))
    print(f"{len(MODULES)} modules, {len(probes)} probes, {hit} hit")
    assert hit > 0.8 * len(probes)
    assert not seen.noted("trouble")
    assert not seen.noted("unplaced")
