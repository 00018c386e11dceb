"""Read which tests failed, and why the first of them did, from pytest, unittest and doctest."""

from __future__ import annotations

import re
from collections.abc import Mapping

from relaunch.record import Record
from relaunch.trial.signature.normalise import wash
from relaunch.trial.signature.python import Raised, first_of, raised_in


class FailedTest(Record):
    """One failing test, without the path to its file, and its error."""

    id: str
    type: str = ""
    message: str = ""
    place: str = ""
    """`test_io.py:12`, for people."""


class Failing(Record):
    """The failing tests of a run, sorted by id: workers finish in any order."""

    tests: tuple[FailedTest, ...]


_SUMMARY = re.compile(
    r"^(?:FAILED|ERROR) (?P<id>\S+?(?:\[.*?\])?)(?: - (?P<why>.*))?$", re.MULTILINE
)
_COUNTS = re.compile(
    r"^(?:=+ )?(?P<counts>\d{1,9} [a-z]+(?:, \d{1,9} [a-z]+)*) in \d[\d.:]{0,12} ?s\b", re.MULTILINE
)
_PARTS = re.compile(r"^=+ (?:FAILURES|ERRORS|short test summary info) =+$", re.MULTILINE)
_SECTION = re.compile(r"^_{3,} (?P<name>\S.*?) _{3,}$", re.MULTILINE)
_RULE = re.compile(r"^=+ .* =+$", re.MULTILINE)
_E_LINE = re.compile(r"^(?:E  |>?[ \t]*E  )[ \t]*(?P<said>.*)$", re.MULTILINE)
_PLACE = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+): (?P<type>[\w.]+)?", re.MULTILINE)
_LINE_STYLE = re.compile(r"^(?P<file>/[^:\n]*):(?P<line>\d+): (?P<said>\S.*)$", re.MULTILINE)
_TYPED = re.compile(r"^(?P<type>(?:[\w]+\.)*[A-Z]\w*)(?:: (?P<message>.*))?$", re.DOTALL)

_UNITTEST = re.compile(
    r"^={70}\n(?:FAIL|ERROR): (?P<test>\S+) \((?P<owner>[\w.]+)\)(?P<sub>[^\n]*)$", re.MULTILINE
)
_UNITTEST_END = re.compile(r"^Ran \d+ tests? in ", re.MULTILINE)
_DOCTEST = re.compile(
    r'^File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>\S+)\n'
    r"Failed example:\n\s+(?P<example>[^\n]*)\n(?P<rest>(?:(?!\*{20}).*\n?){0,12})",
    re.MULTILINE,
)
_UNITTEST_OK = re.compile(r"^OK(?: \([^)\n]*\))?$", re.MULTILINE)


def failing(text: str) -> Failing | None:
    """Return the failing tests of a test run, or None when this is none."""
    return _pytest(text) or _unittest(text) or _doctest(text)


def all_passed(text: str) -> bool:
    """Tell whether a test runner said that everything passed."""
    counts = [found["counts"] for found in _COUNTS.finditer(text)]
    if counts:
        return "passed" in counts[-1] and not re.search(
            "failed|error", counts[-1].replace("xf", "")
        )
    return _UNITTEST_END.search(text) is not None and _UNITTEST_OK.search(text) is not None


def _pytest(text: str) -> Failing | None:
    if _COUNTS.search(text) is None and _PARTS.search(text) is None:
        return None
    told = {_short_id(one["id"]): one["why"] or "" for one in _SUMMARY.finditer(text)}
    sections = _sections(text)
    ids = sorted(told) or sorted(sections)
    if not ids:
        return None
    lines = {} if sections else {one["said"]: one[0] for one in _LINE_STYLE.finditer(text)}
    return Failing(tests=tuple(_test(one, told.get(one, ""), sections, lines) for one in ids))


def _test(
    test: str, summary: str, sections: Mapping[str, str], lines: Mapping[str, str]
) -> FailedTest:
    body = next((sections[name] for name in sections if _names(name, test)), "")
    if not body:  # --tb=line has no names, but the same words as the summary
        cut = summary.removesuffix("...")
        body = next((line for said, line in lines.items() if cut and cut in said), "")
    kind, message, place = _why(body)
    return FailedTest(id=test, type=kind or _type_said(summary), message=message, place=place)


def _short_id(test: str) -> str:
    file, colons, name = test.partition("::")
    return file.rpartition("/")[2] + colons + name


def _sections(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    found = list(_SECTION.finditer(text))
    for one, after in zip(found, [*found[1:], None], strict=False):
        body = text[one.end() : after.start() if after else len(text)]
        rule = _RULE.search(body)
        parts.setdefault(one["name"], body[: rule.start()] if rule else body)
    return parts


def _names(section: str, test: str) -> bool:
    section = re.sub(r"^ERROR (?:at (?:setup|teardown) of|collecting) ", "", section)
    name = test.partition("::")[2].replace("::", ".")
    return section == name if name else section.endswith(test)


def _why(body: str) -> tuple[str, str, str]:
    """Return type, message and place of the error that a section tells."""
    if (said := _E_LINE.search(body)) is not None:
        lines = [one["said"] for one in _E_LINE.finditer(body)]
        placed = [one for one in _PLACE.finditer(body) if one["type"] not in (None, "in")]
        places = placed or list(_PLACE.finditer(body))
        place = f"{_base(places[-1]['file'])}:{places[-1]['line']}" if places else ""
        typed = _TYPED.match(said["said"])
        if typed is not None and said["said"].split(":")[0] == typed["type"]:
            return _last(typed["type"]), first_of([typed["message"] or "", *lines[1:]]), place
        kind = placed[-1]["type"] if placed else "AssertionError"
        return _last(kind), said["said"], place
    if (raised := raised_in(body)) and raised[-1].type:
        last = raised[-1]
        at = f"{_base(last.frames[-1].file)}:{last.frames[-1].line}" if last.frames else ""
        return _last(last.type), " ".join((last.message, *_leaves(last))), at
    if (line := _LINE_STYLE.search(body)) is not None:
        typed = _TYPED.match(line["said"])
        at = f"{_base(line['file'])}:{line['line']}"
        if typed is not None:
            return _last(typed["type"]), typed["message"] or "", at
        return "AssertionError", line["said"], at
    return "", "", ""


def _leaves(raised: Raised) -> list[str]:
    """Return the members of a group, sorted."""
    return sorted(f"({one.type}: {one.message}{_leaves(one) or ''})" for one in raised.members)


def _type_said(why: str) -> str:
    typed = re.match(r"((?:\w+\.)*[A-Z]\w*)(?=:|$)", why)
    return _last(typed[1]) if typed else "AssertionError" if why.startswith("assert") else ""


def _unittest(text: str) -> Failing | None:
    if _UNITTEST_END.search(text) is None:
        return None
    found = list(_UNITTEST.finditer(text))
    if not found:
        return None
    by_id = {_owner(one["test"], one["owner"]): one.end() for one in reversed(found)}
    return Failing(tests=tuple(_unit(test, text, by_id[test]) for test in sorted(by_id)))


def _unit(test: str, text: str, start: int) -> FailedTest:
    following = text.find("=" * 70, start)
    kind, message, place = _why(text[start : following if following > 0 else len(text)])
    return FailedTest(id=test, type=kind, message=message, place=place)


def _owner(test: str, owner: str) -> str:
    parts = owner.split(".")
    if parts[-1] == test and len(parts) > 1:  # 3.11 and later repeat the test's name
        parts.pop()
    return f"{parts[-1]}.{test}"


def _doctest(text: str) -> Failing | None:
    found = list(_DOCTEST.finditer(text))
    if not found:
        return None
    by_id = {_last(one["name"]): one for one in reversed(found)}
    return Failing(tests=tuple(_example(test, by_id[test]) for test in sorted(by_id)))


def _example(test: str, found: re.Match[str]) -> FailedTest:
    raised = raised_in(re.sub(r"^ {4}", "", found["rest"], flags=re.MULTILINE))
    return FailedTest(
        id=test,
        type=_last(raised[-1].type) if raised else "",
        message=f"{found['example'].strip()} {raised[-1].message if raised else ''}".strip(),
        place=f"{_base(found['file'])}:{found['line']}",
    )


def washed_id(test: str) -> str:
    """Return the id without what a parameter's repr may carry: addresses, temporary paths."""
    return wash(test) if re.search(r"0x[0-9a-f]{6,}|/tmp", test) else test


def _last(dotted: str) -> str:
    return dotted.rpartition(".")[2]


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
