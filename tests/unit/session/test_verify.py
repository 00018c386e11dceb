"""What a cold run does otherwise than a warm one, in words."""

from hypothesis import given
from hypothesis import strategies as st

from relaunch.outcome import Outcome
from relaunch.session.left_behind import in_files
from relaunch.session.verify import Told, compare_ends, compare_files, compare_outputs, judge


def test_the_first_line_that_differs_is_named():
    one = {1: [b"a\n", b"b\n"], 2: []}
    assert compare_outputs(one, one) == ""
    other = {1: [b"a\n", b"c\n"], 2: [b"x"]}
    assert compare_outputs(one, other) == ("standard output differs in line 2: `b` warm, `c` cold")
    longer = {1: [b"a\n", b"b\n"], 2: [b"\xff"]}
    assert compare_outputs(one, longer).startswith("standard error differs in line 1: `` warm, ")


def test_ends_are_compared_by_code_and_signal():
    assert compare_ends(Outcome(exit_code=1), Outcome(exit_code=1)) == ""
    assert compare_ends(Outcome(signal=9), Outcome(exit_code=0)) == "exit -9 warm, 0 cold"


def test_files_are_compared_by_what_they_are_and_hold(tmp_path):
    path = str(tmp_path / "out")
    kinds = [in_files([path])]
    for content in (b"one", b"two"):
        (tmp_path / "out").write_bytes(content)
        kinds.append(in_files([path]))
    (tmp_path / "out").unlink()
    (tmp_path / "out").symlink_to("elsewhere")
    kinds.append(in_files([path]))
    assert len({kind[path] for kind in kinds}) == 4
    assert compare_files(kinds[0], kinds[0]) == ""
    assert compare_files(kinds[0], kinds[1]).endswith("out differs: nothing warm, 3 bytes cold")
    assert compare_files(kinds[1], kinds[2]).endswith("out differs: 3 bytes warm, 3 bytes cold")
    assert in_files([str(tmp_path)]) == {str(tmp_path): "a folder"}


# --- what no two cold runs have in common


def told(*lines: str, errors: tuple[str, ...] = (), code: int = 0) -> Told:
    output = {1: [b"%s\n" % one.encode() for one in lines], 2: [one.encode() for one in errors]}
    return Told(ended=Outcome(exit_code=code), output=output)


def left(**files: str) -> Told:
    return Told(ended=Outcome(exit_code=0), output={1: [], 2: []}, files=files)


def test_a_file_that_no_cold_run_leaves_alike_is_left_out():
    verdict = judge(left(log="3", out="x"), left(log="4", out="x"), left(log="5", out="x"))
    assert verdict.difference == ""
    assert verdict.left_out == "files that no two cold runs leave alike were left out: 1"
    differs = judge(left(log="3", out="y"), left(log="4", out="x"), left(log="5", out="x"))
    assert differs.difference == "out differs: y warm, x cold"


def on_terminal(*lines: str) -> Told:
    return Told(ended=Outcome(exit_code=0), output={1: sorted(one.encode() for one in lines)})


def test_a_line_that_is_another_in_every_run_is_left_out():
    verdict = judge(told("a", "took 3", "b"), told("a", "took 1", "b"), told("a", "took 2", "b"))
    assert verdict.difference == ""
    assert verdict.left_out == "lines that no two cold runs have in common were left out: 1"


def test_a_line_that_both_cold_runs_have_is_not():
    cold, again = told("a", "took 1", "b"), told("a", "took 2", "b")
    differs = judge(told("a", "took 3", "c"), cold, again).difference
    assert differs == "standard output differs in line 3: `c` warm, `b` cold"
    more = judge(told("a", "took 3", "b", "c"), cold, again).difference
    assert more == "standard output differs in line 4: `c` warm, `` cold"
    fewer = judge(told("a"), cold, again).difference
    assert fewer == "standard output differs in line 2: `` warm, `…` cold"
    errors = judge(told("a", "took 3", "b", errors=("x",)), cold, again).difference
    assert errors == "standard error differs in line 1: `x` warm, `` cold"


def test_where_the_number_of_lines_varies_those_around_still_count():
    cold, again = told("a", "1", "mid", "b"), told("a", "2", "3", "mid", "b")
    fits = judge(told("a", "4", "5", "6", "mid", "b"), cold, again)
    assert (fits.difference, fits.left_out[-2:]) == ("", " 1")
    assert judge(told("a", "4", "b"), cold, again).difference.endswith("`mid` cold")
    assert judge(told("x", "4", "mid", "b"), cold, again).difference.endswith("`x` warm, `a` cold")


def test_an_exit_code_counts_if_both_cold_runs_have_it():
    one, other = told("a", code=1), told("a", code=2)
    assert judge(told("a", code=3), one, one).difference == "exit 3 warm, 1 cold"
    varies = judge(told("a", code=3), one, other)
    assert varies.difference == ""
    assert varies.left_out.startswith("the exit code, which two cold runs do not have in common")
    assert judge(told("b", code=3), one, other).difference.startswith("standard output differs")


def test_on_a_terminal_a_line_that_varies_may_be_sorted_anywhere():
    cold, again = on_terminal("5 s", "b", "c"), on_terminal("d 5", "b", "c")
    fits = judge(on_terminal("b", "bb", "c"), cold, again)
    assert (fits.difference, fits.left_out[-2:]) == ("", " 1")
    assert judge(on_terminal("b", "bb", "x"), cold, again).difference
    assert judge(on_terminal("b", "b", "c", "x"), cold, again).difference


def test_very_long_outputs_of_different_lengths_are_compared_at_both_ends():
    middle = [str(n) for n in range(3000)]
    cold, again = told("a", *middle, "b"), told("a", *middle[::-1], "more", "b")
    assert judge(told("a", "x", "b"), cold, again).difference == ""
    assert judge(told("a", "x", "c"), cold, again).difference.endswith("`b` cold")


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_each_of_the_two_runs_is_as_both(one: list[str], other: list[str]):
    for each in (one, other):
        assert judge(told(*each), told(*one), told(*other)).difference == ""
        both = on_terminal(*one), on_terminal(*other)
        assert judge(on_terminal(*each), *both).difference == ""
