"""What a sweep makes of its words: combinations, their commands, and which failure is which."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.cli.sweep import read_values
from relaunch.errors import UsageError
from relaunch.outcome import Outcome, Signature
from relaunch.recipe import Recipe
from relaunch.search.seen import Seen
from relaunch.session.sweeping.cases import cases_of, check, filled, names_in, recipe_for
from relaunch.session.sweeping.judge import judge
from relaunch.session.sweeping.told import Factor, Kind, Request, Run

plain = st.text(alphabet="ab{}$., '")
names = st.sampled_from(["lr", "b_1", "model.dim", "use-amp"])


def factor(name, *values, kind=Kind.ARG):
    return Factor(name=name, kind=kind, values=values)


def request(*factors, **more):
    return Request(argv=("true",), cwd="/", factors=factors, **more)


# --- the command of a combination


@given(st.lists(st.tuples(plain.filter(lambda text: "{" not in text and "$" not in text), names)))
def test_every_place_gets_its_value_and_nothing_else_changes(parts):
    values = {name: f"<{name}>" for _, name in parts}
    word = "".join(f"{text}{{{name}}}" for text, name in parts)
    assert "".join(filled([word], values)) == "".join(f"{text}<{name}>" for text, name in parts)


@given(names)
def test_doubled_braces_and_those_of_the_shell_are_left_to_the_program(name):
    assert names_in(f"{{{{{name}}}}} ${{{name}}}") == []
    assert filled([f"{{{{{name}}}}} ${{{name}}}"], {}) == (f"{{{name}}} ${{{name}}}",)


@pytest.mark.parametrize("word", ["{}", "{'a': 1}", "{ print $1 }", "a{3}", "{1,2}", "${HOME}"])
def test_braces_of_other_languages_are_no_places(word):
    assert names_in(word) == []
    assert filled([word], {}) == (word,)


def test_a_word_that_becomes_empty_is_left_out_and_one_that_was_empty_stays():
    assert filled(["run", "{amp}", "", "--x={amp}"], {"amp": ""}) == ("run", "", "--x=")


def test_each_kind_of_factor_reaches_the_program_its_own_way():
    factors = (
        factor("set", "bf16", kind=Kind.SET),
        factor("seed", "7", kind=Kind.SEED),
        factor("FLAG", "b", kind=Kind.ENV),
        factor("lr", "1e-3"),
    )
    base = Recipe(argv=("run", "{lr}", "{seed}", "{FLAG}", "{set}"), cwd="/", env={"A": "1"})
    found = recipe_for(base, factors, {one.name: one.values[0] for one in factors})
    assert found.argv == ("run", "1e-3", "7", "b", "bf16")
    assert found.env == {"A": "1", "FLAG": "b", "PYTHONHASHSEED": "7", "SEED": "7"}
    assert found.config_set == "bf16"


def test_a_place_without_a_factor_and_an_argument_without_a_place_are_refused():
    with pytest.raises(UsageError, match="nothing says what it is"):
        check(["run", "{lr}"], [factor("seed", "1", kind=Kind.SEED)])
    with pytest.raises(UsageError, match=r"the command has no \{lr\}"):
        check(["run"], [factor("lr", "1")])
    check(["run"], [factor("seed", "1", kind=Kind.SEED), factor("FLAG", "1", kind=Kind.ENV)])


# --- which combinations


def test_ranges_and_commas_in_values_are_read():
    assert [*read_values("8..11,x,-1..0", "--arg")] == ["8", "9", "10", "11", "x", "-1", "0"]
    assert [*read_values(r"a\,b,c\d,", "--arg")] == ["a,b", r"c\d", ""]


def test_paired_factors_go_in_step_and_all_others_are_combined():
    asked = request(
        factor("lr", "1", "2"), factor("b", "8", "16"), factor("x", "0", "1"), paired=(("lr", "b"),)
    )
    cases = cases_of(asked)
    assert len(cases) == 4
    assert {(case["lr"], case["b"]) for case in cases} == {("1", "8"), ("2", "16")}


def test_pairwise_has_every_pair_in_few_runs():
    factors = [factor(name, "0", "1", "2") for name in "abcdef"]
    cases = cases_of(request(*factors, pairwise=True))
    assert len(cases) < 25
    for one in "abcdef":
        for other in set("abcdef") - {one}:
            assert len({(case[one], case[other]) for case in cases}) == 9


def test_too_many_need_a_limit_and_a_combination_comes_once():
    many = [factor(name, *map(str, range(101))) for name in "ab"]
    with pytest.raises(UsageError, match="10,201 combinations"):
        cases_of(request(*many))
    assert len(cases_of(request(*many, limit=20))) == 20
    assert len(cases_of(request(factor("a", "1", "1", "2")))) == 2


# --- which failure


def run(value, outcome):
    return Run(settings={"x": value}, trial_id="1", outcome=outcome)


def failed(title, *key, kind="exception"):
    signature = Signature(kind=kind, title=title, key=key or (title,))
    return Outcome(exit_code=1, signature=signature)


def test_the_most_frequent_failure_is_explained_and_the_others_apart():
    rare, frequent = failed("TypeError: no"), failed("ValueError: loss is nan")
    skipped = Outcome(exit_code=125, not_started="no set")
    runs = [run("0", Outcome(exit_code=0)), run("1", rare), run("4", skipped)]
    judged = judge([*runs, run("2", frequent), run("3", frequent)])
    assert judged.hunted == frequent.signature
    seen = [case.seen for case in judged.cases]
    assert seen == [Seen.PASSED, Seen.OTHER, Seen.UNTESTABLE, Seen.FAILED, Seen.FAILED]
    assert [*judged.titles.values()] == ["ValueError: loss is nan", "TypeError: no"]
    assert judged.untestable == {"no set": 1}


def test_a_failure_whose_words_show_the_setting_is_one_but_last_words_of_an_exit_are_not():
    def of(kind):
        runs = [
            run(value, failed(f"Bad size {value}", "ValueError", f"this size is bad: '{value}'"))
            for value in "abc"
        ]
        return [
            one.but(outcome=one.outcome.but(signature=one.outcome.signature.but(kind=kind)))
            for one in runs
        ]

    assert len(judge(of("exception")).titles) == 1
    assert len(judge(of("exit")).titles) == 3


def test_what_match_names_is_hunted_though_others_are_more_frequent():
    pinned, other = failed("the words", kind="pinned"), failed("TypeError: no")
    runs = [run("1", other), run("2", other), run("3", pinned)]
    assert judge(runs, match="words").hunted == pinned.signature
    none = judge(runs[:2], match="words")
    assert none.hunted is None
    assert {case.seen for case in none.cases} == {Seen.OTHER}


def test_running_out_of_time_is_a_failure_of_its_own():
    late = failed("timed out", kind="timeout").but(timed_out=True, exit_code=124)
    judged = judge([run("1", failed("TypeError: no")), run("2", late), run("3", late)])
    assert judged.hunted == late.signature
    assert [case.seen for case in judged.cases] == [Seen.OTHER, Seen.FAILED, Seen.FAILED]
