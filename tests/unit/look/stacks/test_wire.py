"""Stacks as JSON, read back: on another host they are what they were."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from tests.depth import examples
from tests.unit.look.stacks.test_merge import REDUCE, processes, rank

from relaunch.look.stacks.merge import merge
from relaunch.look.stacks.wire import (
    SCHEMA,
    NoStacksError,
    merged_json,
    process_json,
    read_processes,
)


def text_of(everyone, **more) -> str:
    value = {"schema": SCHEMA, "processes": [process_json(one) for one in everyone], **more}
    return json.dumps(value, indent=2)


@examples(30)
@given(processes)
def test_what_is_written_is_read_back_and_merges_to_the_same(everyone):
    back = read_processes(text_of(everyone))
    assert back == everyone
    assert merge(back) == merge(everyone)
    assert json.loads(json.dumps(merged_json(merge(back)))) == merged_json(merge(everyone))


def test_the_output_of_several_hosts_may_come_one_after_the_other():
    text = text_of([rank(0, *REDUCE)]) + "\n" + text_of([rank(1, *REDUCE)]) + "\n"
    assert [one.rank for one in read_processes(text)] == [0, 1]
    assert [one.rank for one in read_processes(text.replace("\n", "\r\n"))] == [0, 1]


def test_what_a_newer_rl_says_besides_is_passed_over():
    (value,) = [process_json(rank(3, *REDUCE))]
    text = json.dumps({"schema": SCHEMA, "processes": [{**value, "colour": "blue"}], "more": 1})
    assert read_processes(text) == [rank(3, *REDUCE)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not what `rl stacks --json` prints"),
        ("srun: error: node lost", "not what `rl stacks --json` prints"),
        ('{"schema": "relaunch/watch/1"}', "not what `rl stacks --json` prints"),
        ('{"schema": "relaunch/stacks/9", "processes": []}', "relaunch/stacks/9"),
        (f'{{"schema": "{SCHEMA}"}}', "damaged"),
        (f'{{"schema": "{SCHEMA}", "processes": [{{"pid": "x", "threads": []}}]}}', "pid"),
    ],
)
def test_what_is_no_stacks_is_told_in_a_line(text, why):
    with pytest.raises(NoStacksError) as caught:
        read_processes(text)
    assert why in caught.value.message
    assert "\n" not in caught.value.message


def test_a_tree_as_json_names_ranks_and_the_odd_one():
    (group,) = merged_json(merge([rank(n, *REDUCE[: 3 - (n == 2)]) for n in range(4)]))
    (root,) = group["main"]
    assert (group["kind"], group["ranks"], root["ranks"]) == ("ranks", [0, 1, 2, 3], [0, 1, 2, 3])
    assert [(one["ranks"], one["odd"]) for one in root["below"]] == [
        ([0, 1, 3], False), ([2], True),
    ]  # fmt: skip
