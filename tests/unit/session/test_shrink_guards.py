"""A line of shell that must still pass: what names an input is replaced, all else stays."""

from __future__ import annotations

import shlex

import pytest

from relaunch.session.shrinking.guards import placed

PATHS = {"/p/data.txt": "/w/data.txt", "/p/my data": "/w/my data", "/p/images": "/w/images"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("grep -q x data.txt && true", "grep -q x /w/data.txt && true"),
        ("test -s <./data.txt; wc /p/data.txt|cat", "test -s </w/data.txt; wc /w/data.txt|cat"),
        ("check --in=data.txt -p a,data.txt", "check --in=/w/data.txt -p a,/w/data.txt"),
        ("cat 'data.txt' \"data.txt\"", "cat '/w/data.txt' \"/w/data.txt\""),
        ("cat 'my data' my\\ data", "cat '/w/my data' '/w/my data'"),
        ("python -c \"open('data.txt')\"", "python -c \"open('/w/data.txt')\""),
        ("test \"$(wc -l < data.txt)\" -ge 7", "test \"$(wc -l < /w/data.txt)\" -ge 7"),
        ("sh -c 'test -s $0' data.txt", "sh -c 'test -s $0' /w/data.txt"),
        ("ls images images/a/b.png", "ls /w/images /w/images/a/b.png"),
        ("cat o/data.txt data.txt.b $HERE/data.txt", "cat o/data.txt data.txt.b $HERE/data.txt"),
        ("echo 'it''s' \\' it # what's data.txt", "echo 'it''s' \\' it # what's /w/data.txt"),
    ],
)  # fmt: skip
def test_what_names_an_input_is_replaced_and_all_else_stays(line: str, said: str) -> None:
    assert placed(line, PATHS, "/p") == said


@pytest.mark.parametrize("line", ["cat {}", "cat '{}'", 'cat "{}"', "x=1 cat <{}"])
def test_a_path_with_a_space_and_an_apostrophe_is_one_word_of_the_shell(line: str) -> None:
    path = "/w/it's here/data.txt"
    words = shlex.split(placed(line.format("data.txt"), {"/p/data.txt": path}, "/p"))
    assert words[-1].lstrip("<") == path


def test_a_path_in_double_quotes_is_never_expanded() -> None:
    path = '/w/$HOME/`a`/"b"/data.txt'
    said = placed('cat "data.txt"', {"/p/data.txt": path}, "/p")
    assert said == 'cat "/w/\\$HOME/\\`a\\`/\\"b\\"/data.txt"'
