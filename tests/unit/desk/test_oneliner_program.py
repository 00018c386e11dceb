"""What a line lacks is added: imports of what it names, a loop over input, a place to print to."""

import ast
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.desk.made_programs import program as made

from relaunch.desk.oneliner import names
from relaunch.desk.oneliner.expand import expand
from relaunch.desk.oneliner.modules import Finder, Module, in_folders
from relaunch.desk.oneliner.order import used_first
from relaunch.desk.oneliner.program import write
from relaunch.inside.wellknown import ALIASES, MEMBERS


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A project's folder, and one with what is installed."""
    for name in (
        "here/train.py",
        "here/np.py",
        "here/data/x.csv",
        "here/data/loader.py",
        "site/scipy/__init__.py",
        "site/scipy/sparse/__init__.py",
        "site/tqdm/__init__.py",
        "site/tqdm/auto.py",
        "site/fast.cpython-311-x86_64-linux-gnu.so",
        "site/pack/__init__.py",
        "site/pack/core.abi3.so",
        "far/editable/__init__.py",
        "far/editable/deep/__init__.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


@pytest.fixture
def find(place: Path) -> Finder:
    here, site = str(place / "here"), str(place / "site")
    return Finder([here], [site], {"editable": str(place / "far/editable")})


def imports(line: str, find: Finder) -> list[str]:
    return list(write(line, find).imports)


@pytest.mark.parametrize(
    ("line", "added"),
    [
        ("pd.DataFrame()", ["import pandas as pd"]),
        (
            "F.relu(nn.Linear(1, 1).weight)",
            ["import torch.nn.functional as F", "import torch.nn as nn"],
        ),
        ("plt.plot([1])", ["import matplotlib.pyplot as plt"]),
        ("Path('.')", ["from pathlib import Path"]),
        (
            "Counter(x for x in defaultdict(int))",
            ["from collections import Counter", "from collections import defaultdict"],
        ),
        ("json.dumps(re.findall('a', 'b'))", ["import json", "import re"]),
        ("os.path.join(sys.argv[0])", ["import os", "import sys"]),
        ("xml.etree.ElementTree.parse('a')", ["import xml.etree.ElementTree"]),
        ("ET.parse('a')", ["import xml.etree.ElementTree as ET"]),
        ("concurrent.futures.ThreadPoolExecutor()", ["import concurrent.futures"]),
        ("scipy.sparse.csr_matrix(1)", ["import scipy.sparse"]),
        ("sp.sparse.eye(3), sp.pi", ["import scipy.sparse", "import scipy as sp"]),
        ("scipy.version", ["import scipy"]),
        ("tqdm(range(3))", ["from tqdm import tqdm"]),
        ("tqdm.auto.tqdm(range(3))", ["import tqdm.auto"]),
        ("pprint(glob('*'))", ["from pprint import pprint", "from glob import glob"]),
        ("random.random()", ["import random"]),
        ("datetime.datetime.now()", ["import datetime"]),
        (
            "datetime.now() - timedelta(1)",
            ["from datetime import datetime", "from datetime import timedelta"],
        ),
        ("datetime(2026, 1, 1)", ["from datetime import datetime"]),
        ("np.zeros(3)", ["import np"]),  # the project's own module comes first
        ("train.main(), train.x", ["import train"]),
        ("data.loader.load()", ["import data.loader"]),
        ("fast.go(), pack.core.run()", ["import fast", "import pack.core"]),
        ("editable.deep.x", ["import editable.deep"]),
        ("f'{math.pi:.3f} {json!r:>{shutil.x}}'", ["import json", "import math", "import shutil"]),
        ("lambda a, b=json: (a, b, lambda re: re)", ["import json"]),
        ("[json for json in y for y in z]", []),
        ("import json as re; re.dumps(json)", ["import json"]),
        ("def f(os): return os.path, sys.path;; f(1)", ["import sys"]),
        ("def f(): global np; np = 1;; np", []),
        ("with open('a') as json: json.read()", []),
        ("for re in []: re", []),
        ("try: pass; except E as os: os.x", []),
        ("print(__name__, __doc__, exit, Exception)", []),
        ("class A(Enum): x = auto();; A", ["from enum import Enum", "from enum import auto"]),
        ("@dataclass class A: x: int;; A(1)", ["from dataclasses import dataclass"]),
    ],
)
def test_what_a_line_names_is_imported_and_nothing_else(line, added, find):
    assert imports(line, find) == added


def test_a_name_that_nothing_has_is_told_of_and_not_imported(find):
    program = write("jsn.dumps(data.load(1))", find)
    assert program.missing == ("jsn", "data")  # a mere folder is no module
    assert program.imports == ()


def test_a_mere_folder_does_not_hide_an_installed_module(place, find):
    (place / "site/data.py").touch()
    assert imports("data.load()", find) == ["import data"]


def test_every_well_known_name_comes_from_a_module_that_has_it():
    for name, module in {**ALIASES, **MEMBERS}.items():
        top = module.partition(".")[0]
        if top in sys.stdlib_module_names:
            found = __import__(module, fromlist=["_"])
            if name in MEMBERS and not (name == "batched" and sys.version_info < (3, 12)):
                assert hasattr(found, name), (module, name)


def test_no_well_known_name_is_a_builtin_or_stands_for_two_things():
    assert not set(ALIASES) & set(MEMBERS)
    assert not {*ALIASES, *MEMBERS} & {*dir(__builtins__), "line", "lines", "n"}


# --- the text -------------------------------------------------------------------------------------


def test_what_python_can_read_and_lacks_nothing_is_run_as_it_was_typed(find):
    for line in ("x = 1; print(x)", "print(1)\nif 1:\n    print(2)\n", "for i in []: print(i)"):
        assert write(line, find).text == line.rstrip("\n")


@given(st.integers(min_value=0))
def test_any_program_that_python_can_read_is_in_the_text_as_it_is(seed):
    text = made(seed)[0]
    seen = names.read(text)
    # Without: wrong in a way that only its scopes show, as `global` behind a use.
    if seen and not (seen.awaits or seen.free.keys() & {"line", "lines"} or seen.is_expression):
        assert write(text, lambda _: None).text.endswith(text.rstrip("\n"))


@given(st.integers(min_value=0))
def test_a_line_and_the_same_over_many_make_the_same_program(seed):
    lines, line = made(seed)
    one, many = write(line, lambda _: None), write(lines, lambda _: None)
    assert ast.dump(ast.parse(one.text)) == ast.dump(ast.parse(many.text))


def test_a_value_is_printed_and_stands_on_a_line_of_its_own(find):
    lines = write("json.dumps(1), 2", find).text.split("\n")
    assert lines[:3] == ["import json", "_value = (", "json.dumps(1), 2"]


def test_statements_print_nothing_of_their_own(find):
    assert "print" not in write("x = 1; x", find).text


def test_a_free_line_is_each_line_of_the_input_and_a_bound_one_is_not(find):
    assert write("line.strip()", find).each_line
    assert write("print(n, line)", find).each_line
    for bound in (
        "for line in x: print(line)",
        "line = 1; print(line)",
        "[line for line in x]",
        "(lambda line: line)(1)",
        "len(lines)",
    ):
        assert not write(bound, find).each_line, bound


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("line = line.strip()", "line"),
        ("a += 1", "a"),
        ("a: b = a", "a b"),
        ("(a := a + b)", "a b"),
        ("for a in a: b = a; c", "a c"),
        ("with a as a, b as c: c", "a b"),
        ("[a for a in b if a] + [a]", "b a"),
        ("{a: b for a, b in c for d in a}", "c"),
        ("import a, b.c as d; a, b, d", "b"),
        ("def f(a=b, *, c: d = e) -> g: h = h;; f", "b e g"),
        ("class A(B, c=D): E;; A", "B D"),
        ("try: a except B as c: c, d finally: e", "a B d e"),
        (
            "match a: case [b, *c] | {'x': d, **e} if b: b, c, d, e, f; case A(g) as h: g, h",
            "a f A",
        ),
        ("lambda a, b=c: d", "c"),
        ("a = b = c; del a", "c"),
        ("x = y.z[w](v=u)", "y w u"),
    ],
)
def test_what_is_used_before_it_is_bound_is_known(text, first):
    assert used_first(ast.parse(expand(text))) == set(first.split())


def test_a_name_that_is_bound_only_after_its_use_is_given_too(find):
    program = write("line = line.strip(); if line: json = json.dumps(line)", find)
    assert program.each_line
    assert program.imports == ("import json",)
    assert write("a = a + 1", find).missing == ()  # no module is called so: the run will tell
    text = write("json = await json.load()", find).text
    assert "    global json\n" in text


def test_a_line_number_is_counted_only_if_it_is_named(find):
    assert "for n, line in enumerate(sys.stdin, 1):" in write("print(n, line)", find).text
    assert "for line in sys.stdin:" in write("n = 3; print(n, line)", find).text
    assert write("print(n)", find).missing == ("n",)


def test_names_of_ours_give_way(find):
    text = write("_value + sys_ + (sys := 3) + line", find).text
    assert "_value_ = (" in text
    assert "import sys as sys__" in text


def test_an_import_from_the_future_stays_first(find):
    text = write("from __future__ import annotations; x: json.y = 1; print(re)", find).text
    lines = text.split("\n")
    assert lines[0] == "from __future__ import annotations"
    assert "import re" in lines[1:3]
    compile(text, "", "exec", dont_inherit=True)


def test_a_string_over_several_lines_is_not_indented(find):
    text = write('print("""a\n  b\n""", line)', find).text
    assert 'print("""a\n  b\n""", line)' in text
    body = write('await f("""a\n b""")', find).text
    assert 'f("""a\n b""")' in body


def test_blanks_before_all_lines_go(find):
    assert write("  print(1)\n  print(2)", find).text == "print(1)\nprint(2)"


def test_what_is_no_python_is_told_and_kept(find):
    for line in ("for", "x = 1;; y", "print(\udcff)", "(" * 3000, "'a\nb'"):
        program = write(line, find)
        assert not program.is_code
        assert program.text == line


@pytest.mark.filterwarnings("error")
def test_reading_a_line_warns_of_nothing(find):
    assert write(r"print('\d', 1if 1else 2)", find).is_code


# --- modules --------------------------------------------------------------------------------------


def test_modules_are_found_as_an_import_would(place, find):
    assert find("sys") == Module()
    assert find("scipy") == Module(folders=(str(place / "site/scipy"),))
    assert find("fast") == Module()
    assert find("nothing") is None
    found = in_folders("data", [str(place / "here"), str(place / "missing")])
    assert found == Module(folders=(str(place / "here/data"),), has_code=False)
    assert found.inner("loader") == Module()
    assert found.inner("x") is None
