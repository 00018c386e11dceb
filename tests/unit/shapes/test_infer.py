"""From what was seen to names: the right ones, and a number where nobody can tell."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import arrays, looking

from relaunch.inside.shapes.sites import functions_of
from relaunch.trial.shapes.choose import Words, choose
from relaunch.trial.shapes.seen import Call
from relaunch.trial.shapes.sides import Side
from relaunch.trial.shapes.source import Source

ATTENTION = """\
class Attention:
    def __init__(self, n_head, width):
        self.n_head = n_head
        self.qkv = Linear(width, 3 * width)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = q @ k.transpose(-2, -1)
        y = att.sum(-1)
        return y + 1
"""
NAMES = {"Linear": arrays.Linear, "Array": arrays.Array}


def see(text, folder, *, names=None, after=""):
    text = textwrap.dedent(text)
    calls, _ = looking.run(text, folder, {**NAMES, **(names or {})}, after=after)
    return text, calls


def of(text, folder, *, after, names=None, **options):
    text, calls = see(text, folder, names=names, after=after)
    return looking.comments(text, calls, **options)


def test_the_names_of_an_attention(tmp_path):
    after = "for B in (2, 5): Attention(6, 42).forward(Array(B, 7, 42))\n"
    assert of(ATTENTION, tmp_path, after=after) == {
        "q, k, v = self.qkv(x).split(C, dim=2)": "# (B, T, C)",
        "q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)": (
            "# (B, n_head, T, C//n_head)"
        ),
        "k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)": (
            "# (B, n_head, T, C//n_head)"
        ),
        "att = q @ k.transpose(-2, -1)": "# (B, n_head, T, T)",
        "y = att.sum(-1)": "# (B, n_head, T)",
        "return y + 1": "# (B, n_head, T)",
    }


def test_where_all_sizes_are_the_same_the_words_of_the_code_decide(tmp_path):
    after = "Attention(4, 16).forward(Array(4, 4, 16))\n"
    found = of(ATTENTION, tmp_path, after=after)
    assert found["att = q @ k.transpose(-2, -1)"] == "# (B, n_head, T, T)"
    assert found["y = att.sum(-1)"] == "# (B, n_head, T)"


UNKNOWN = """\
def f(x, heads):
    B = x.shape[0]
    y = make(x)
    return y + 1
"""


def test_a_number_that_two_names_have_is_written_as_a_number_and_told(tmp_path):
    text, calls = see(UNKNOWN, tmp_path, after="f(Array(6), 6)\n",
                      names={"make": lambda x: arrays.Array(9, 6)})  # fmt: skip
    found = looking.planned(text, calls)
    assert looking.comments(text, calls)["y = make(x)"] == "# (9, 6)"
    (row,) = [row for row in found.rows if row.line == 3]
    assert row.doubts == (("6", ("B", "heads")),)
    assert row.steady == (("9", 9),)


def test_a_number_that_was_written_before_is_in_no_doubt_of_itself():
    choice = choose([(16, {})], Side("16", sure=False), Words(nearness={}))
    assert (choice.text, choice.doubts) == ("16", ())


def test_another_size_tells_two_names_apart(tmp_path):
    found = of(UNKNOWN, tmp_path, after="f(Array(6), 6); f(Array(8), 6)\n",
               names={"make": lambda x: arrays.Array(9, 6)})  # fmt: skip
    assert found["y = make(x)"] == "# (9, heads)"


def test_a_side_that_changes_with_nothing_is_any(tmp_path):
    sizes = iter((3, 8, 5))
    found = of(UNKNOWN, tmp_path, after="for n in (1, 2, 3): f(Array(6), n)\n",
               names={"make": lambda x: arrays.Array(6, next(sizes))})  # fmt: skip
    assert found["y = make(x)"] == "# (B, *)"


def test_products_and_quotients_that_change_together(tmp_path):
    text = """\
    def f(x, n):
        B, C = x.shape
        y = make(B * C, n)
        z = make(C // n, 2 * B)
        return y
    """
    after = "for b, c, n in ((3, 20, 5), (4, 21, 7)): f(Array(b, c), n)\n"
    found = of(text, tmp_path, after=after, names={"make": arrays.ones})
    assert found["y = make(B * C, n)"] == "# (B*C, n)"
    assert found["z = make(C // n, 2 * B)"] == "# (C//n, 2*B)"


def test_attributes_of_self_and_of_its_configuration(tmp_path):
    text = """\
    class Config:
        def __init__(self): self.n_embd, self.vocab = 48, 101
    class Model:
        def __init__(self, config): self.config, self.depth = config, 17
        def forward(self, x):
            y = make(x)
            return y
    """
    found = of(text, tmp_path, after="Model(Config()).forward(1)\n",
               names={"make": lambda x: arrays.Array(48, 101, 17)})  # fmt: skip
    assert found["y = make(x)"] == "# (n_embd, vocab, depth)"


def test_a_function_without_names_has_those_of_its_callers(tmp_path):
    text = """\
    def norm(x):
        y = x + 1
        return y
    def forward(x):
        B, T = x.shape
        return norm(x)
    """
    found = of(text, tmp_path, after="forward(Array(5, 7)); forward(Array(6, 9))\n")
    assert found["y = x + 1"] == "# (B, T)"


def test_names_of_the_module(tmp_path):
    text = """\
    width = 48
    def f():
        y = make(width)
        return y
    """
    text_, calls = see(text, tmp_path, names={"make": arrays.ones}, after="f()\n")
    assert looking.comments(text_, calls)["y = make(width)"] == "# (width,)"


def test_a_changing_number_counts_as_it_is_then(tmp_path):
    text = """\
    def f(n):
        out = Array(1, 4)
        for step in range(5, 5 + n):
            out = Array(step, 9)
        return out
    """
    found = of(text, tmp_path, after="f(4)\n")
    assert found["out = Array(step, 9)"] == "# (step, 9)"


def test_ranks_that_differ_have_their_last_sides_in_common(tmp_path):
    text = """\
    def f(x, dim):
        y = x + 1
        z = x.view(-1)
        return y
    """
    found = of(text, tmp_path, after="f(Array(3, 12), 12); f(Array(4, 5, 13), 13)\n")
    assert found["y = x + 1"] == "# (..., dim)"


def test_ranks_with_nothing_in_common_are_left_out_and_told(tmp_path):
    text = """\
    def f(x):
        y = x + 1
        return y
    """
    text, calls = see(text, tmp_path, after="f(Array(3, 12)); f(Array(4, 5, 13))\n")
    (row,) = looking.planned(text, calls).rows
    assert (row.state, row.why) == ("left out", "it has 2 or 3 dimensions")


def test_lists_tuples_and_dicts_of_arrays(tmp_path):
    text = """\
    def f(x, n):
        B, T = x.shape
        parts = [x] * n
        pair = (x + 1, x.sum(1))
        both = {"a": x + 1, "b": x.sum(0)}
        none = {}
        many = [x, 1]
        return [x + 1, x + 2]
    """
    found = of(text, tmp_path, after="f(Array(5, 7), 2); f(Array(6, 9), 3)\n")
    assert found == {
        "parts = [x] * n": "# [(B, T), ...]",
        "pair = (x + 1, x.sum(1))": "# ((B, T), (B,))",
        'both = {"a": x + 1, "b": x.sum(0)}': "# {a: (B, T), b: (T,)}",
        "return [x + 1, x + 2]": "# [(B, T), ...]",
    }


def test_two_statements_on_a_line_and_targets_that_differ(tmp_path):
    text = """\
    def f(x):
        B, T = x.shape
        a = x + 1; b = x.sum(0)
        c, n = x + 1, 3
        d, e = x.sum(0), x.sum(1)
        return 1
    """
    found = of(text, tmp_path, after="f(Array(5, 7)); f(Array(6, 9))\n")
    assert found == {
        "a = x + 1; b = x.sum(0)": "# a (B, T), b (T,)",
        "c, n = x + 1, 3": "# c (B, T)",
        "d, e = x.sum(0), x.sum(1)": "# d (T,), e (B,)",
    }


def test_what_is_not_worth_a_comment(tmp_path):
    text = """\
    def f(x):
        y = x
        y += 1
        n = 3
        s = x.sum(0)
        return y
    """
    assert of(text, tmp_path, after="f(Array(5))\n") == {}


def test_arguments_only_when_asked_for(tmp_path):
    text = """\
    def f(x, mask=None):
        B, T = x.shape
        return 1
    """
    text, calls = see(text, tmp_path, after="f(Array(5, 7)); f(Array(6, 9))\n")
    assert looking.comments(text, calls) == {}
    asked = looking.comments(text, calls, with_arguments=True)
    assert asked == {"def f(x, mask=None):": "# x (B, T)"}


def test_loops_generators_nested_functions_and_methods(tmp_path):
    text = """\
    class Data:
        def __iter__(self):
            for n in (4, 5):
                x = Array(n, 9)
                yield x
    def main():
        def inner(x):
            y = x + 1
            return y
        for batch in Data():
            z = inner(batch)
        return [inner(one) for one in Data()]
    """
    found = of(text, tmp_path, after="main()\n")
    assert found["x = Array(n, 9)"] == "# (n, 9)"
    assert found["for batch in Data():"] == "# (*, 9)"
    assert found["y = x + 1"] == "# (*, 9)"
    assert "# (*, 9)" in found["z = inner(batch)"]


def test_coroutines(tmp_path):
    text = """\
    import asyncio
    async def part(x):
        B, T = x.shape
        await asyncio.sleep(0)
        y = x.sum(1)
        return y + 1
    async def main():
        await asyncio.gather(*[part(Array(n, 2 * n)) for n in (5, 6, 7)])
    """
    found = of(text, tmp_path, after="asyncio.run(main())\n")
    assert found["y = x.sum(1)"] == "# (B,)"
    assert found["return y + 1"] == "# (B,)"


def test_patterns_of_einops_give_names(tmp_path):
    text = """\
    def f(x, heads):
        q = rearrange(x, 'b n (h d) -> b h n d', h=heads)
        out = rearrange(q, 'b h n d -> b n (h d)')
        return out
    """

    def rearrange(x, pattern, h=0):
        b, n, c = x.shape if len(x.shape) == 3 else (x.shape[0], x.shape[2], 0)
        if "(h d) ->" in pattern:
            return arrays.Array(b, h, n, c // h)
        return arrays.Array(b, n, x.shape[1] * x.shape[3])

    found = of(text, tmp_path, after="f(Array(5, 7, 12), 3); f(Array(4, 8, 20), 2)\n",
               names={"rearrange": rearrange})  # fmt: skip
    assert found["q = rearrange(x, 'b n (h d) -> b h n d', h=heads)"] == "# (b, h, n, d)"
    assert found["out = rearrange(q, 'b h n d -> b n (h d)')"] == "# (b, n, h*d)"


def test_a_comment_that_holds_keeps_the_names_of_its_author(tmp_path):
    text = ATTENTION.replace("-2, -1)", "-2, -1)  # (B, nh, T, S)")
    after = "for B in (2, 5): Attention(6, 42).forward(Array(B, 7, 42))\n"
    found = of(text, tmp_path, after=after)
    assert "y = att.sum(-1)" in found
    assert not any("@" in line for line in found)


def test_a_comment_that_does_not_hold_is_updated_and_its_words_stay(tmp_path):
    text = ATTENTION.replace("-2, -1)", "-2, -1) # now (B, T) is it")
    after = "for B in (2, 5): Attention(6, 42).forward(Array(B, 7, 42))\n"
    line = "att = q @ k.transpose(-2, -1) # now (B, T) is it"
    assert of(text, tmp_path, after=after)[line] == "# now (B, n_head, T, T) is it"


def test_numbers_become_names_once_they_are_known(tmp_path):
    text = """\
    def f(x):
        B, T = x.shape
        y = x + 1  # (5, 7)
        return y
    """
    found = of(text, tmp_path, after="f(Array(5, 7))\n")
    assert found["y = x + 1  # (5, 7)"] == "# (B, T)"


def test_a_line_that_would_be_too_long_is_left_out_and_told(tmp_path):
    text, calls = see(UNKNOWN, tmp_path, after="f(Array(6), 5)\n",
                      names={"make": lambda x: arrays.Array(6)})  # fmt: skip
    (row,) = [row for row in looking.planned(text, calls, width=20).rows if row.line == 3]
    assert (row.state, row.why) == ("left out", "the line would be over 20 long")


@pytest.mark.parametrize("hidden", ["locals()", "eval('1')", "vars()"])
def test_a_function_that_would_see_our_names_is_left_alone(tmp_path, hidden):
    text = f"def f(x):\n    y = x + 1\n    {hidden}\n    return y\n"
    calls, _ = looking.run(text, tmp_path, NAMES, after="f(Array(3))")
    assert [call for call in calls if call.function] == []
    assert "would show a name of ours" in functions_of(Source(text.encode()).tree)[1].hidden


def test_what_another_package_compiles_is_left_alone():
    text = "from numba import njit\n@njit\ndef f(x):\n    y = x\n"
    assert functions_of(Source(text.encode()).tree)[1].hidden == "numba compiles it"
    text = "import numba as nb\ndef f(x):\n    y = x\ng = nb.njit(f)\n"
    assert functions_of(Source(text.encode()).tree)[1].hidden
    text = "from jax import jit\n@jit\ndef f(x):\n    y = x\n"
    assert not functions_of(Source(text.encode()).tree)[1].hidden


# --- laws -----------------------------------------------------------------------------------------

LAW = """\
class M:
    def f(self, x, n):
        B, T = x.size()
        a = g(x, 0)
        b, c = g(x, 1)  # (B, T) here
        d = g(x, 2); e = g(x, 3)
        for h in g(x, 4):
            i = g(h, 5)  # noqa
        return g(x, 6)
"""
sizes = st.sampled_from([1, 2, 3, 4, 6, 8, 12])
shape = st.lists(sizes, max_size=4).map(tuple)
one = shape | st.lists(shape, min_size=1, max_size=3).map(lambda s: ("list", *s))
value = one | st.just("NoneType") | sizes


@st.composite
def programs(draw):
    """Calls of `M.f`, each with numbers of its own and whatever arrays its sites set."""
    sites = functions_of(Source(LAW.encode()).tree)[1].sites
    calls = []
    for _ in range(draw(st.integers(1, 4))):
        names = {"n": draw(sizes), "self.heads": draw(sizes), "self.dim": draw(sizes)}
        call = Call(1, names, {"K": draw(sizes)})
        for site in sites:
            for index, label in enumerate(site.labels):
                number = site.number if site.kind != "arguments" else -1
                for _ in range(draw(st.integers(0, 2))):
                    drawn = draw(sizes) if label in ("B", "T") else draw(value)
                    call.events.append((number, index, drawn))
        calls.append(call)
    return calls


@given(programs(), st.booleans())
def test_what_is_written_holds_and_is_written_once(calls, with_arguments):
    new = looking.commented(LAW, calls, with_arguments=with_arguments)
    again = looking.planned(new, calls, with_arguments=with_arguments)
    assert again.comments == {}, new
    left = [row.line for row in again.rows if row.is_broken]
    unsayable = [row.line for row in looking.planned(LAW, calls).rows
                 if row.is_broken and row.state == "holds"]  # fmt: skip
    assert left == unsayable, new
