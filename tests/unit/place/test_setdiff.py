from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from relaunch.trial.place.setdiff import default_pair, differing_lines, tell_apart
from relaunch.trial.place.sets import find_sets


def test_the_one_line_that_parts_the_sets_is_told() -> None:
    good = [{"conf/p.yaml": b"dtype: fp32\nlr: 1\n", "conf/m.yaml": b"x"}]
    bad = [{"conf/p.yaml": b"dtype: bf16\nlr: 1\n", "conf/m.yaml": b"x"}]
    assert tell_apart(good, bad) == ["only conf/p.yaml differs: dtype: fp32 | bf16"]


def test_a_line_that_differs_but_does_not_part_them_is_not_told() -> None:
    good = [{"c": b"dtype=fp32\nlr=1\n"}, {"c": b"dtype=fp32\nlr=2\n"}]
    bad = [{"c": b"dtype=bf16\nlr=1\n"}, {"c": b"dtype=bf16\nlr=3\n"}]
    assert tell_apart(good, bad) == ["only c differs: dtype=fp32 | bf16"]


def test_several_files_are_each_named() -> None:
    good = [{"a": b"x: 1\n", "b": b"y\n"}]
    bad = [{"a": b"x: 2\n", "b": b"z\n"}]
    assert tell_apart(good, bad) == ["a: x: 1 | 2", "b: y | z"]


def test_what_is_not_shown_is_counted() -> None:
    good = "".join(f"k{n}: 1\n" for n in range(30)).encode()
    told = tell_apart([{"a": good}], [{"a": good.replace(b": 1", b": 2")}])
    assert told[0] == "only a differs: k0: 1 | 2"
    assert told[-1] == f"and {30 - len(told) + 1} more lines"


def test_added_lines_missing_files_and_binaries_have_a_line_too() -> None:
    assert tell_apart([{"a": b"x\n"}], [{"a": b"x\ny: 1\n"}]) == ["only a differs: - | y: 1"]
    assert tell_apart([{}], [{"a": b"x\n"}]) == ["only a differs: not there | there"]
    assert tell_apart([{"a": b"x"}], [{}]) == ["only a differs: there | not there"]
    assert tell_apart([{"a": b"\0"}], [{"a": b"\1\0"}]) == ["only a differs: (binary)"]


def test_comments_and_blank_lines_part_nothing() -> None:
    nothing = ["no line parts the sets that passed from those that failed"]
    assert tell_apart([{"a": b"# old\nx: 1\n"}], [{"a": b"# new\n\nx: 1\n"}]) == nothing
    assert tell_apart([{"a": b"x"}], [{"a": b"x"}]) == nothing


LINES = st.lists(st.sampled_from(["a: 1", "a: 2", "b: 1", "c", "# note", ""]), max_size=6)
TEXTS = LINES.map(lambda lines: "\n".join(lines).encode())


@given(st.lists(TEXTS, min_size=1, max_size=3), st.lists(TEXTS, min_size=1, max_size=3))
def test_what_is_told_of_one_side_is_never_in_a_set_of_the_other(
    good: list[bytes], bad: list[bytes]
) -> None:
    for line in tell_apart([{"f": text} for text in good], [{"f": text} for text in bad]):
        if not line.startswith("only f differs: "):
            continue
        left, _, right = line.removeprefix("only f differs: ").partition(" | ")
        key = left.partition(": ")[0] + ": " if ": " in left and ": " not in right else ""
        for text in bad:
            assert left not in text.decode().split("\n")
        if right != "-":
            assert all(key + right not in text.decode().split("\n") for text in good)


def test_a_flag_is_a_difference_as_well(tmp_path: Path) -> None:
    sets = find_sets(str(tmp_path), configured={}, flag="MODE")
    assert differing_lines(["a"], ["b"], sets=sets) == ["only $MODE differs: a | b"]
    assert differing_lines(["a"], [], sets=sets) == []


def test_the_pair_that_is_meant_when_none_is_named() -> None:
    assert default_pair(["base", "x", "y"], "y") == ("base", "y")
    assert default_pair(["base", "x"], "base") == ("base", "x")
    assert default_pair(["base", "x", "y"], "base") is None


def test_a_secret_that_differs_is_not_shown() -> None:
    told = tell_apart([{"a": b"db.password=Kx7quiet-lamp"}], [{"a": b"db.password=Zr4sober-fork"}])
    assert told == ["only a differs: db.password=<redacted> | <redacted>"]
