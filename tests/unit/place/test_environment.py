"""What an installer says, and which Pythons a revision allows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from relaunch.trial.place.installer import installer_fault
from relaunch.trial.place.pythons import suitable

UV_NO_VERSION = """\
Using Python 3.11.7 environment at: c
error: No solution found when resolving dependencies
  cause: Because there is no version of attrs==999 and you require attrs==999, we can conclude that your requirements are unsatisfiable.
"""  # noqa: E501
OLDER_UV_NO_VERSION = """\
Using Python 3.11.7 environment at: c
  × No solution found when resolving dependencies:
  ╰─▶ Because only click<=8.1.7 is available and you require click>=9, we can
      conclude that your requirements are unsatisfiable.
"""  # noqa: RUF001
UV_UNBUILT = """\
   Building typed-ast==1.4.0
error: Failed to build `typed-ast==1.4.0`
  cause: The build backend returned an error
  cause: Call to `setuptools.build_meta:__legacy__.build_wheel` failed (exit status: 1)

         [stderr]
         ast27/Include/asdl.h:37:41: error: unknown type name 'PyArena'
         ast27/Include/compile.h:5:10: fatal error: code.h: No such file or directory
         error: Command '['gcc', '-c']' returned non-zero exit status 1.

hint: This error likely indicates that you need to install a library
"""
OLDER_UV_UNBUILT = """\
  × Failed to build `old==0.1`
  ├─▶ The build backend returned an error
  ╰─▶ Call to `setuptools.build_meta:__legacy__.build_wheel` failed (exit
      status: 1)

      [stderr]
      Traceback (most recent call last):
        File "<string>", line 5, in <module>
      ModuleNotFoundError: No module named 'imp'
"""  # noqa: RUF001
PIP_NO_VERSION = """\
Looking in indexes: https://host/simple
ERROR: Could not find a version that satisfies the requirement attrs==999 (from versions: 15.0.0)
ERROR: No matching distribution found for attrs==999
"""
PIP_UNBUILT = """\
  error: subprocess-exited-with-error
      AttributeError: module 'configparser' has no attribute 'SafeConfigParser'
      [end of output]
  note: This error originates from a subprocess, and is likely not a problem with pip.
  ERROR: Failed building wheel for old
Failed to build old
ERROR: Could not build wheels for old, which is required to install pyproject.toml-based projects
"""
PIP_NO_METADATA = """\
  error: subprocess-exited-with-error
      RuntimeError: Python 2 is needed
      [end of output]
error: metadata-generation-failed

× Encountered error while generating package metadata.
╰─> old
"""  # noqa: RUF001
UV_NO_EDITABLE = """\
   Building file:///tree
error: The build backend returned an error
  cause: Call to `tool.build_editable` failed (exit status: 1)

         [stderr]
         RuntimeError: no Fortran here
"""
PIP_CONFLICT = """\
ERROR: Cannot install a==1 and b==2 because these package versions have conflicting dependencies.

The conflict is caused by:
    a 1 depends on c==1
    b 2 depends on c==2
ERROR: ResolutionImpossible: for help visit https://host/help
"""


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (UV_NO_VERSION, "there is no version of attrs==999, for Python 3.11"),
        (OLDER_UV_NO_VERSION, "only click<=8.1.7 is available, for Python 3.11"),
        (
            UV_UNBUILT,
            "typed-ast==1.4.0 cannot be built for Python 3.11: "
            "fatal error: code.h: No such file or directory",
        ),
        (
            OLDER_UV_UNBUILT,
            "old==0.1 cannot be built for Python 3.11: ModuleNotFoundError: No module named 'imp'",
        ),
        (PIP_NO_VERSION, "there is no version of attrs==999 for Python 3.11"),
        (
            PIP_UNBUILT,
            "old cannot be built for Python 3.11: "
            "AttributeError: module 'configparser' has no attribute 'SafeConfigParser'",
        ),
        (PIP_NO_METADATA, "old cannot be built for Python 3.11: RuntimeError: Python 2 is needed"),
        (UV_NO_EDITABLE, "it cannot be built for Python 3.11: RuntimeError: no Fortran here"),
        (
            PIP_CONFLICT,
            "Cannot install a==1 and b==2 because these package versions have conflicting "
            "dependencies.",
        ),
        ("all well\nthe last word\n\n", "the last word"),
        ("", "it ended without a word"),
    ],
)
def test_why_an_installation_failed_is_told_in_one_line(text: str, fault: str) -> None:
    assert installer_fault(text, "3.11.7") == fault


@given(st.text())
def test_whatever_an_installer_says_it_is_one_short_line(text: str) -> None:
    assert len(installer_fault(text, "3.11.7")) <= 300
    assert len(installer_fault(f"error: {text}", "3.11.7").splitlines()) <= 1


versions = st.tuples(st.integers(2, 3), st.integers(0, 13), st.integers(0, 20)).map(
    lambda numbers: ".".join(map(str, numbers))
)
bounds = st.lists(st.integers(0, 13), min_size=2, max_size=3).map(
    lambda numbers: ".".join(map(str, [3, *numbers[1:]]))
)
clauses = st.one_of(
    st.tuples(st.sampled_from([">=", "<=", "==", "!=", "<", ">", "~="]), bounds).map("".join),
    st.tuples(st.sampled_from(["==", "!="]), bounds).map(lambda pair: "".join(pair) + ".*"),
)


@given(st.lists(clauses, max_size=3), versions)
def test_a_python_is_suitable_if_the_standard_says_so(parts: list[str], version: str) -> None:
    allowed = SpecifierSet(",".join(parts)).contains(version, prereleases=True)
    pairs = [(version, "/python")]
    assert suitable(", ".join(parts), pairs) == (pairs if allowed else [])


def test_suitable_pythons_stay_in_their_order_and_what_is_no_clause_forbids_nothing() -> None:
    pythons = [("3.13.0", "/a"), ("3.8.18", "/b"), ("3.7.16", "/c")]
    assert suitable(">=3.7,<3.9", pythons) == pythons[1:]
    assert suitable("", pythons) == pythons
    assert suitable("whatever", pythons) == pythons
