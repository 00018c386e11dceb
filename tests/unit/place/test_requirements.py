"""What a revision needs, from files as real projects have them."""

import ast
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from relaunch.trial.place.requirements import Requirements, requirements
from relaunch.trial.place.stated.line import normalised
from relaunch.trial.place.stated.tables import poetry_versions


def read(**files: str) -> Requirements:
    """Read files; `setup_py` stands for setup.py."""
    endings = ("_toml", "_cfg", "_py", "_txt", "_yml")
    named = {
        next((name[: -len(e)] + "." + e[1:] for e in endings if name.endswith(e)), name): text
        for name, text in files.items()
    }
    return requirements({n: textwrap.dedent(text).encode() for n, text in named.items()})


def setup(text: str, **files: str) -> Requirements:
    return read(setup_py="from setuptools import setup\n" + textwrap.dedent(text), **files)


# --- one line


@pytest.mark.parametrize(
    ("line", "one_spelling"),
    [
        ("Typing_Extensions >= 3.7.4", "typing-extensions>=3.7.4"),
        ("zope.interface", "zope-interface"),
        ("foo (>=1.0, <2)", "foo<2,>=1.0"),
        ("foo >=1.0,<2,", "foo<2,>=1.0"),
        ("Foo[B,a] == 1.*", "foo[a,b]==1.*"),
        ("foo[]", "foo"),
        ("dataclasses ; python_version<'3.7'", 'dataclasses; python_version < "3.7"'),
        (
            'a>1;(os_name=="nt"  or  extra == "x")and python_version>="3"',
            'a>1; (os_name == "nt" or extra == "x") and python_version >= "3"',
        ),
        ("foo@git+https://host/foo.git@v1", "foo @ git+https://host/foo.git@v1"),
        (
            "foo @ https://host/a;b.zip ; os_name == 'nt'",
            'foo @ https://host/a;b.zip ; os_name == "nt"',
        ),
        ("foo===1.0-custom", "foo===1.0-custom"),
    ],
)
def test_a_requirement_has_one_spelling(line: str, one_spelling: str) -> None:
    assert normalised(line) == one_spelling
    assert normalised(one_spelling) == one_spelling
    Requirement(one_spelling)


@pytest.mark.parametrize("line", ["", "   ", "-e .", "./here", "foo bar", "foo >>1", "# foo"])
def test_what_is_no_requirement_has_no_spelling(line: str) -> None:
    assert normalised(line) == ""


names = st.lists(st.text("abz09", min_size=1, max_size=3), min_size=1, max_size=2).map("-".join)
versions = st.lists(st.integers(0, 30), min_size=1, max_size=3).map(
    lambda numbers: ".".join(map(str, numbers))
)
clauses = st.tuples(st.sampled_from([">=", "<=", "==", "!=", "<", ">"]), versions)
needs = st.dictionaries(
    names, st.tuples(st.lists(clauses, max_size=3), st.sets(names, max_size=2)), max_size=6
)


def spelled(draw, need):
    """Write one requirement in some way of the many that mean the same."""
    name, (parts, extras) = need
    blank = lambda: draw(st.sampled_from(["", " ", "  "]))  # noqa: E731
    case = str.upper if draw(st.booleans()) else str
    name = case(name.replace("-", draw(st.sampled_from("-_."))))
    inner = draw(st.permutations(sorted(extras)))
    head = f"{name}{blank()}[{(',' + blank()).join(map(case, inner))}]" if inner else name
    shuffled = draw(st.permutations(parts))
    return blank() + head + blank() + f"{blank()},".join(a + blank() + b for a, b in shuffled)


@given(needs, st.data())
def test_the_digest_knows_neither_order_nor_blanks_nor_the_case_of_names(chosen, data) -> None:
    def one_way() -> Requirements:
        items = data.draw(st.permutations(list(chosen.items())))
        lines = [spelled(data.draw, item) for item in items]
        listed = ", ".join(f'"{line}"' for line in lines)
        if data.draw(st.booleans()):
            return read(requirements_txt="\n".join(lines) + "\n")
        if data.draw(st.booleans()):
            return read(pyproject_toml=f"[project]\nname = 'x'\ndependencies = [{listed}]\n")
        return setup(f"setup(install_requires=[{listed}])")

    one, other = one_way(), one_way()
    assert one.needs == other.needs
    assert one.digest == other.digest
    assert list(one.needs) == sorted(set(one.needs))


@given(needs)
def test_a_normalised_line_means_what_it_meant(chosen) -> None:
    for name, (parts, extras) in chosen.items():
        line = f"{name}[{','.join(extras)}] {','.join(a + b for a, b in parts)}"
        before, after = Requirement(line), Requirement(normalised(line))
        assert before.specifier == after.specifier
        assert len(before.extras) >= len(after.extras)


@given(st.lists(names, max_size=3), st.lists(names, max_size=3))
def test_other_needs_have_another_digest(one: list[str], other: list[str]) -> None:
    first, second = (read(requirements_txt="\n".join(lines)) for lines in (one, other))
    assert (first.digest == second.digest) is (set(one) == set(other))


# --- poetry's versions


@pytest.mark.parametrize(
    ("poetry", "pep440"),
    [
        ("^1.2.3", ">=1.2.3,<2"),
        ("^0.2.3", ">=0.2.3,<0.3"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("^0.0", ">=0.0,<0.1"),
        ("^0", ">=0,<1"),
        ("^1.0a1", ">=1.0a1,<2"),
        ("~1.2.3", ">=1.2.3,<1.3"),
        ("~1.2", ">=1.2,<1.3"),
        ("~1", ">=1,<2"),
        ("~=1.4.2", "~=1.4.2"),
        ("1.2.*", "==1.2.*"),
        ("*", ""),
        ("1.2.3", "==1.2.3"),
        ("v1.2", "==1.2"),
        (">= 1.2, < 2", ">=1.2,<2"),
        (">=1.2 <2.0", ">=1.2,<2.0"),
        (">=3.6.*", ">=3.6"),
        ("~2.7 || ^3.5", ">=3.5,<4"),
        ("!=1.5", "!=1.5"),
    ],
)
def test_versions_of_poetry_are_told_in_words_of_pep_440(poetry: str, pep440: str) -> None:
    assert poetry_versions(poetry) == pep440
    SpecifierSet(pep440)


release = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))


@given(release, release)
def test_a_caret_keeps_the_first_number_that_is_not_zero(least, other) -> None:
    allowed = SpecifierSet(poetry_versions("^" + ".".join(map(str, least))))
    at = next((at for at, number in enumerate(least) if number), 2)
    expected = other >= least and other[: at + 1] == least[: at + 1]
    assert allowed.contains(Version(".".join(map(str, other)))) is expected


# --- pyproject.toml


def test_the_project_table_is_read_with_its_extras_and_groups() -> None:
    found = read(
        pyproject_toml="""
        [build-system]
        requires = ["hatchling>=1.8", "hatch-vcs"]
        build-backend = "hatchling.build"
        [project]
        name = "black"
        dynamic = ["version"]
        requires-python = ">=3.8, <4"
        dependencies = ["click>=8", "tomli>=1.1; python_version < '3.11'"]
        [project.optional-dependencies]
        d = ["aiohttp>=3.7"]
        test = ["pytest>=7", "black[d,jupyter]"]
        jupyter = ["ipython"]
        [dependency-groups]
        dev = ["tox", {include-group = "lint"}]
        lint = ["ruff"]
        """
    )
    assert found.needs == ("click>=8", 'tomli>=1.1; python_version < "3.11"')
    assert found.build == ("hatch-vcs", "hatchling>=1.8")
    assert (found.python, found.name, found.dynamic) == (">=3.8,<4", "black", False)
    assert found.found_in == ("pyproject.toml",)
    assert found.extras == {
        "test": ("aiohttp>=3.7", "ipython", "pytest>=7"),
        "dev": ("ruff", "tox"),
    }


def test_needs_that_the_table_leaves_to_a_file_are_read_from_it() -> None:
    project = """
        [project]
        name = "x"
        dynamic = ["dependencies"]
        [tool.setuptools.dynamic]
        dependencies = {file = ["requirements.txt"]}
        """
    found = read(pyproject_toml=project, requirements_txt="attrs\n")
    assert (found.needs, found.dynamic) == (("attrs",), False)
    assert found.found_in == ("pyproject.toml", "requirements.txt")
    without = read(pyproject_toml=project)
    assert (without.needs, without.dynamic, without.missing) == ((), True, ("requirements.txt",))


@pytest.mark.parametrize(
    ("other", "needs", "dynamic"),
    [
        ({"setup_cfg": "[options]\ninstall_requires = attrs\n"}, ("attrs",), False),
        (
            {"setup_py": "import setuptools\nsetuptools.setup(install_requires=['a'])"},
            ("a",),
            False,
        ),
        ({"requirements_txt": "attrs\n"}, ("attrs",), True),
        ({}, (), True),
    ],
)
def test_needs_that_the_table_leaves_to_a_build_tool_are_looked_for(other, needs, dynamic) -> None:
    found = read(pyproject_toml="[project]\nname='x'\ndynamic=['dependencies']\n", **other)
    assert (found.needs, found.dynamic) == (needs, dynamic)


def test_a_table_that_says_there_are_none_is_believed() -> None:
    found = read(pyproject_toml="[project]\ndependencies = []\n", requirements_txt="attrs\n")
    assert (found.needs, found.found_in) == ((), ("pyproject.toml",))


def test_a_table_that_says_nothing_leaves_it_to_the_requirements_file() -> None:
    found = read(pyproject_toml="[project]\nname = 'app'\n", requirements_txt="attrs\n")
    assert (found.needs, found.name, found.dynamic) == (("attrs",), "app", False)


POETRY = """
    [tool.poetry]
    name = "sample"
    [tool.poetry.dependencies]
    python = "^3.7"
    Click = "^7.0"
    toml = {version = "~0.10", optional = true}
    importlib-metadata = {version = ">=1", python = "<3.8"}
    colorama = {version = "*", platform = "win32", extras = ["b", "a"]}
    fork = {git = "https://host/fork.git", branch = "main"}
    numpy = [
        {version = "1.16.*", python = "<3.8"},
        {version = "^1.21", markers = "python_version >= '3.8'"},
    ]
    [tool.poetry.extras]
    test = ["toml"]
    [tool.poetry.dev-dependencies]
    pytest = "^5.2"
    """


def test_the_tables_of_poetry_are_read() -> None:
    found = read(pyproject_toml=POETRY)
    assert found.needs == (
        "click<8,>=7.0",
        'colorama[a,b]; sys_platform == "win32"',
        "fork @ git+https://host/fork.git@main",
        'importlib-metadata>=1; python_version < "3.8"',
        'numpy<2,>=1.21; python_version >= "3.8"',
        'numpy==1.16.*; python_version < "3.8"',
    )
    assert (found.python, found.name, found.dynamic) == (">=3.7,<4", "sample", False)
    assert found.extras == {"test": ("toml<0.11,>=0.10",), "dev": ("pytest<6,>=5.2",)}
    for line in found.needs:
        Requirement(line)


def test_groups_of_poetry_are_extras_and_a_path_cannot_be_told() -> None:
    found = read(
        pyproject_toml="""
        [tool.poetry.dependencies]
        mine = {path = "../mine"}
        attrs = "*"
        [tool.poetry.group.test.dependencies]
        pytest = "*"
        """
    )
    assert (found.needs, found.dynamic) == (("attrs",), True)
    assert found.extras == {"test": ("pytest",)}


def test_a_table_of_poetry_counts_less_than_setup_py_unless_poetry_builds() -> None:
    script = "import setuptools\nsetuptools.setup(install_requires=['wide'])\n"
    built = '[build-system]\nbuild-backend = "poetry.core.masonry.api"\n' + textwrap.dedent(POETRY)
    assert read(pyproject_toml=POETRY, setup_py=script).needs == ("wide",)
    assert "click<8,>=7.0" in read(pyproject_toml=built, setup_py=script).needs


def test_the_metadata_of_flit_are_read() -> None:
    found = read(
        pyproject_toml="""
        [build-system]
        requires = ["flit"]
        build-backend = "flit.buildapi"
        [tool.flit.metadata]
        module = "sample"
        requires = ["requests (>=2)"]
        requires-python = ">=3"
        [tool.flit.metadata.requires-extra]
        test = ["pytest"]
        """
    )
    assert (found.needs, found.python, found.name) == (("requests>=2",), ">=3", "sample")
    assert found.extras == {"test": ("pytest",)}


def test_a_pyproject_that_only_sets_up_tools_says_nothing() -> None:
    found = read(pyproject_toml="[tool.black]\nline-length = 88\n", requirements_txt="attrs")
    assert (found.needs, found.dynamic) == (("attrs",), False)


# --- setup.cfg


def test_setup_cfg_is_read() -> None:
    found = read(
        setup_cfg="""
        [metadata]
        name = sample
        [options]
        python_requires = >= 3.6
        setup_requires =
            setuptools_scm
        install_requires =
            attrs >=19  # why
            importlib_metadata; python_version<"3.8"
        [options.extras_require]
        testing =
            pytest
        docs = sphinx
        """
    )
    assert found.needs == ("attrs>=19", 'importlib-metadata; python_version < "3.8"')
    assert (found.python, found.name, found.dynamic) == (">=3.6", "sample", False)
    assert (found.build, found.extras) == (("setuptools-scm",), {"testing": ("pytest",)})


def test_setup_cfg_may_name_a_file() -> None:
    text = "[options]\ninstall_requires = file: requirements.txt\n"
    assert read(setup_cfg=text, requirements_txt="attrs\n").needs == ("attrs",)
    assert read(setup_cfg=text).dynamic


def test_setup_cfg_goes_before_setup_py() -> None:
    found = setup(
        "setup(name='x', install_requires=['no'])", setup_cfg="[options]\ninstall_requires = yes\n"
    )
    assert (found.needs, found.name) == (("yes",), "x")


def test_a_setup_cfg_without_needs_leaves_them_to_setup_py() -> None:
    found = setup("setup(install_requires=['a'])", setup_cfg="[flake8]\nmax-line-length = 88\n")
    assert found.needs == ("a",)


# --- setup.py


@pytest.mark.parametrize(
    "text",
    [
        "setup(install_requires=['a>=1', 'b'])",
        "setup(install_requires=('a>=1', 'b'))",
        "setup(install_requires='a>=1\\nb')",
        "NEEDS = ['a>=1', 'b']\nsetup(install_requires=NEEDS)",
        "NEEDS: list = ['a>=1']\nNEEDS += ['b']\nsetup(install_requires=NEEDS)",
        "NEEDS = ['a>=1']\nNEEDS.append('b')\nsetup(install_requires=NEEDS)",
        "NEEDS = []\nNEEDS.extend(['a>=1', 'b'])\nsetup(install_requires=list(NEEDS))",
        "A = ['a>=1']\nB = ['b']\nsetup(install_requires=A + B)",
        "A = ['a>=1']\nsetup(install_requires=[*A, 'b'])",
        "LEAST = '1'\nsetup(install_requires=['a>=' + LEAST, 'b'])",
        "LEAST = '1'\nsetup(install_requires=[f'a>={LEAST}', 'b'])",
        "LEAST = '1'\nsetup(install_requires=['a>={}'.format(LEAST), 'b'])",
        "setup(install_requires='''\n a>=1\n b\n'''.split())",
        "kwargs = dict(install_requires=['a>=1', 'b'])\nsetup(**kwargs)",
        "kwargs = {'name': 'x'}\nkwargs['install_requires'] = ['a>=1', 'b']\nsetup(**kwargs)",
        "kwargs = {}\nkwargs.update(install_requires=['a>=1', 'b'])\nsetup(**kwargs)",
        "NEEDS = {'all': ['a>=1', 'b']}\nsetup(install_requires=NEEDS['all'])",
        "def main():\n    needs = ['a>=1', 'b']\n    setup(install_requires=needs)\nmain()",
        "if __name__ == '__main__':\n    setup(install_requires=['a>=1', 'b'])",
        "try:\n    import x\nexcept ImportError:\n    pass\nsetup(install_requires=['a>=1', 'b'])",
        "import setuptools\nsetuptools.setup(install_requires=['a>=1', 'b'])",
        "done = setup(install_requires=['a>=1', 'b'])",
        "_deps = ['a>=1', 'b', 'c']\ndeps = {x.split('>')[0]: x for x in _deps}\n"
        "setup(install_requires=[deps['a'], deps['b']])",
    ],
)
def test_needs_are_read_from_the_text_of_setup_py(text: str) -> None:
    found = setup(text)
    assert (found.needs, found.dynamic) == (("a>=1", "b"), False)
    assert found.found_in == ("setup.py",)


@pytest.mark.parametrize(
    "text",
    [
        "setup(install_requires=open('requirements.txt').read().splitlines())",
        "setup(install_requires=open('./requirements.txt').readlines())",
        "setup(install_requires=[line.strip() for line in open('requirements.txt')])",
        "with open('requirements.txt') as f:\n    needs = f.read().split('\\n')\n"
        "setup(install_requires=needs)",
        "with open('requirements.txt') as f:\n    setup(install_requires=list(f))",
        "def read(name):\n    return open(os.path.join(HERE, name)).read()\n"
        "setup(install_requires=read('requirements.txt').splitlines())",
        "def needs():\n    with open('requirements.txt') as f:\n        return f.readlines()\n"
        "setup(install_requires=needs())",
        "FILE = os.path.join(os.path.dirname(__file__), 'requirements.txt')\n"
        "needs = [x for x in open(FILE) if not x.startswith('#')]\nsetup(install_requires=needs)",
        "from pathlib import Path\n"
        "setup(install_requires=Path(__file__).parent.joinpath('requirements.txt').read_text())",
        "from pip.req import parse_requirements\n"
        "setup(install_requires=[str(r.req) for r in parse_requirements('requirements.txt')])",
        "setup(setup_requires=['pbr'], pbr=True)",
    ],
)
def test_requirements_files_that_setup_py_reads_are_read(text: str) -> None:
    found = setup(text, requirements_txt="a>=1\n\n# why\nb\n")
    assert (found.needs, found.dynamic) == (("a>=1", "b"), False)
    assert "requirements.txt" in found.found_in


def test_each_list_is_read_from_the_file_it_names() -> None:
    found = setup(
        """
        def lines(name):
            return open(name).read().splitlines()
        setup(
            install_requires=lines("requirements.txt") + ["more"],
            extras_require={"dev": lines("requirements-dev.txt"), "docs": ["sphinx"]},
            tests_require=["nose"],
            python_requires=">=3.6",
        )
        """,
        requirements_txt="attrs\n",
        **{"requirements-dev.txt": "pytest\n"},
    )
    assert (found.needs, found.python) == (("attrs", "more"), ">=3.6")
    assert found.extras == {"dev": ("pytest",), "test": ("nose",)}
    assert found.found_in == ("setup.py", "requirements.txt")


def test_a_file_in_a_folder_is_asked_for_and_read_when_it_is_there() -> None:
    script = b"""
from setuptools import setup
import os
with open(os.path.join("requirements", "base.txt")) as f:
    setup(install_requires=f.readlines())
"""
    found = requirements({"setup.py": script})
    assert (found.needs, found.dynamic) == ((), True)
    assert found.missing == ("requirements/base.txt",)
    files = {"setup.py": script, "requirements/base.txt": b"-r more.txt\nattrs\n"}
    assert requirements(files).missing == ("requirements/more.txt",)
    found = requirements({**files, "requirements/more.txt": b"click\n"})
    assert (found.needs, found.dynamic, found.missing) == (("attrs", "click"), False, ())


@pytest.mark.parametrize(
    ("test", "yes", "no"),
    [
        ("sys.version_info < (3, 7)", 'python_version < "3.7"', 'python_version >= "3.7"'),
        ("sys.version_info <= (3, 7)", 'python_version < "3.7"', 'python_version >= "3.7"'),
        ("sys.version_info[:2] <= (3, 7)", 'python_version <= "3.7"', 'python_version > "3.7"'),
        ("sys.version_info[0] == 2", 'python_version < "3"', 'python_version >= "3"'),
        ("sys.version_info.major >= 3", 'python_version >= "3"', 'python_version < "3"'),
        ("not sys.version_info[0] != 2", 'python_version < "3"', 'python_version >= "3"'),
        ("sys.platform == 'win32'", 'sys_platform == "win32"', 'sys_platform != "win32"'),
        ("os.name == 'nt'", 'os_name == "nt"', 'os_name != "nt"'),
    ],
)
def test_a_branch_on_the_python_or_the_platform_becomes_a_marker(test, yes, no) -> None:
    both = (f"new; {no}", f"old; {yes}", "same")
    as_statement = setup(
        f"""
        needs = ["same"]
        if {test}:
            needs.append("old")
        else:
            needs += ["new"]
        setup(install_requires=needs)
        """
    )
    as_expression = setup(
        f"OLD = {test}\nsetup(install_requires=['same'] + (['old'] if OLD else ['new']))"
    )
    assert as_statement.needs == as_expression.needs == both
    assert not as_statement.dynamic
    assert not as_expression.dynamic


@pytest.mark.parametrize("test", ["sys.version_info[0] in (2, 3)", "sys.version_info.major == {}"])
def test_a_test_of_the_python_that_is_no_marker_leaves_the_branch_open(test) -> None:
    found = setup(
        f"needs = ['same']\nif {test}:\n    needs += ['old']\nsetup(install_requires=needs)"
    )
    assert (found.needs, found.dynamic) == (("same",), True)


def test_a_marker_in_the_name_of_an_extra_is_a_condition() -> None:
    found = setup(
        """
        setup(
            install_requires=["six"],
            extras_require={
                ":python_version<'3.4'": ["pathlib2", "x; os_name=='nt'"],
                "test:python_version<'3'": ["mock"],
            },
        )
        """
    )
    assert found.needs == (
        'pathlib2; python_version < "3.4"',
        "six",
        'x; (os_name == "nt") and (python_version < "3.4")',
    )
    assert found.extras == {"test": ('mock; python_version < "3"',)}


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("setup(install_requires=find_them())", ()),
        ("import mine\nsetup(install_requires=mine.NEEDS)", ()),
        ("setup(install_requires=['a', find_it()])", ("a",)),
        ("setup(install_requires=['a'] + find_them())", ("a",)),
        (
            "needs = ['a']\nif find_out():\n    needs.append('b')\nsetup(install_requires=needs)",
            ("a",),
        ),
        ("setup(install_requires=['a', 'not a requirement'])", ("a",)),
        ("needs = ['a']\nfor x in y:\n    needs.append(x)\nsetup(install_requires=needs)", ("a",)),
        (
            "needs = ['a']\ntry:\n    import argparse\nexcept ImportError:\n"
            "    needs.append('argparse')\nsetup(install_requires=needs)",
            ("a",),
        ),
        ("print 'Python 2'", ()),
        ("setup(install_requires=[" + "'a' + " * 5000 + "'b'])", ()),
        ("setup(install_requires=open('requirements/base.txt').readlines())", ()),
    ],
)
def test_what_only_running_it_would_tell_is_said_to_be_unknown(text: str, known) -> None:
    found = setup(text)
    assert (found.needs, found.dynamic) == (known, True)


def test_nothing_of_setup_py_is_run(tmp_path) -> None:
    trap = tmp_path / "trap"
    setup(f"open({str(trap)!r}, 'w')\nsetup(install_requires=[open({str(trap)!r}, 'w').name])")
    assert not trap.exists()


def test_a_setup_py_with_old_escapes_is_read_without_a_warning() -> None:
    assert setup("x = '\\d'\nsetup(install_requires=['a'])").needs == ("a",)


@given(st.text(max_size=300))
def test_no_text_breaks_the_reading(text: str) -> None:
    names = ("pyproject.toml", "setup.cfg", "setup.py", "requirements.txt", "Pipfile")
    for name in (*names, "environment.yml"):
        requirements({name: text.encode("utf-8", "replace")})


expressions = st.recursive(
    st.sampled_from(
        ["x", "''", "'a{}'", "'a'", "['a']", "{'k': ['a']}", "3", "None", "f()", "open('r.txt')"]
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("({0[0]} + {0[1]})".format),
        st.tuples(inner, inner, inner).map("({0[0]} if {0[1]} else {0[2]})".format),
        st.tuples(inner, inner).map("({0[0]})[{0[1]}]".format),
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.tuples(inner, inner).map("({0[0]}).split({0[1]})".format),
        st.tuples(inner, inner).map("({0[0]}).format({0[1]})".format),
        inner.map("dict(k={0})".format),
        inner.map("(not {0} < 3)".format),
    ),
    max_leaves=8,
)


statements = ["x = {}\n", "x += {}\n", "if {}:\n  x = ['b']\n", "for x in {}:\n  x.append('c')\n"]


@given(st.lists(st.tuples(st.sampled_from(statements), expressions), max_size=5))
def test_no_expression_breaks_the_reading(lines) -> None:
    text = "".join(statement.format(value) for statement, value in lines)
    text += "setup(install_requires=x, extras_require=x, python_requires=x)\n"
    ast.parse(text)
    for line in requirements({"setup.py": text.encode()}).needs:
        Requirement(line)


# --- requirements files, Pipfile, environment.yml


def test_a_requirements_file_is_read_as_pip_reads_it() -> None:
    found = read(
        requirements_txt="""
        --index-url https://host/simple
        # a comment
        attrs == 19.3.0 \\
            --hash=sha256:aaaa \\
            --hash=sha256:bbbb
        click>=7   # why
        -e .
        -e .[dev]
        -e git+https://host/fork.git@main#egg=Fork_Of
        git+ssh://git@host/other.git#egg=other&subdirectory=py
        https://host/wheels/thing-1.0-py3-none-any.whl
        named @ https://host/named.zip
        """
    )
    assert found.needs == (
        "attrs==19.3.0",
        "click>=7",
        "fork-of @ git+https://host/fork.git@main",
        "named @ https://host/named.zip",
        "other @ git+ssh://git@host/other.git#subdirectory=py",
        "thing @ https://host/wheels/thing-1.0-py3-none-any.whl",
    )
    assert not found.dynamic


def test_requirements_files_may_name_each_other_even_in_a_circle() -> None:
    found = read(
        requirements_txt="-r requirements-base.txt\nb\n",
        **{"requirements-base.txt": "-r ./requirements.txt\na\n"},
    )
    assert (found.needs, found.dynamic) == (("a", "b"), False)
    assert found.found_in == ("requirements.txt", "requirements-base.txt")


@pytest.mark.parametrize("line", ["-c limits.txt", "./vendored", "-e ../other", "what is this"])
def test_a_line_that_cannot_be_told_is_said_to_be_unknown(line: str) -> None:
    found = read(requirements_txt=f"attrs\n{line}\n")
    assert (found.needs, found.dynamic) == (("attrs",), True)


@pytest.mark.parametrize(
    ("name", "extra"),
    [("requirements-dev.txt", "dev"), ("requirements_test.txt", "test"),
     ("requirements-tests.txt", "tests"), ("requirements-development.txt", "dev")],
)  # fmt: skip
def test_requirements_files_of_tests_and_developers_are_extras(name: str, extra: str) -> None:
    found = read(requirements_txt="a\n", **{name: "pytest\n"})
    assert (found.needs, found.extras) == (("a",), {extra: ("pytest",)})


def test_a_pipfile_is_read() -> None:
    found = read(
        Pipfile="""
        [packages]
        requests = "*"
        Records = ">0.5.0"
        django = {version = "~=2.2", extras = ["bcrypt"]}
        mine = {git = "https://host/mine.git", ref = "abc"}
        [dev-packages]
        pytest = "*"
        [requires]
        python_version = "3.6"
        """
    )
    assert found.needs == (
        "django[bcrypt]~=2.2",
        "mine @ git+https://host/mine.git@abc",
        "records>0.5.0",
        "requests",
    )
    assert (found.python, found.extras) == ("==3.6.*", {"dev": ("pytest",)})


def test_an_environment_of_conda_is_read_as_far_as_installers_know_its_names() -> None:
    found = read(
        environment_yml="""
        name: sample
        channels:
          - conda-forge
          - defaults
        dependencies:
          - python=3.8
          - numpy=1.18.1=py38h8854b6b_1
          - conda-forge::scipy>=1.4
          - pytorch==1.5.0
          - cudatoolkit=10.1
          - pip
          - pip:
            - transformers==3.0.0
            - git+https://host/x.git#egg=x
        prefix: /home/someone
        """
    )
    assert found.needs == (
        "numpy==1.18.1.*",
        "scipy>=1.4",
        "torch==1.5.0",
        "transformers==3.0.0",
        "x @ git+https://host/x.git",
    )
    assert (found.python, found.dynamic) == ("==3.8.*", True)


def test_a_revision_without_any_of_these_files_needs_nothing() -> None:
    found = requirements({})
    assert found == Requirements()
    assert found.digest == read(requirements_txt="# nothing\n").digest


@pytest.mark.parametrize("name", ["pyproject.toml", "Pipfile"])
def test_a_file_that_cannot_be_parsed_is_said_to_be_unknown(name: str) -> None:
    found = requirements({name: b"[[[", "requirements.txt": b"attrs\n"})
    assert found.needs == ("attrs",)
    assert found.dynamic is (name == "pyproject.toml")


def test_a_file_with_a_byte_order_mark_is_read() -> None:
    assert requirements({"requirements.txt": b"\xef\xbb\xbfattrs\n"}).needs == ("attrs",)
