"""Whatever JSON stands in a trial's files, it is shown or refused in one line."""

import argparse
import json

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.cli import diff, log, show
from relaunch.errors import RelaunchError
from relaunch.journal.store import Journal
from relaunch.session import look_back

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
START = ["note", "set", "code", "env", "host", "python", "packages", "resets", "cwd", "doubts",
         "until", "timeout_s", "env_set", "src", "unsaved", "rl", "code_problem"]  # fmt: skip
END = ["exit_code", "signal", "duration_s", "critical_s", "signature", "metrics", "told", "resets",
       "code_changed", "loaded", "ended_processes", "not_started"]  # fmt: skip


def arguments(module, words):
    parser = argparse.ArgumentParser()
    module.arguments(parser)
    return parser.parse_args(words)


def said(module, words):
    """Run a verb; returns the message of a refusal."""
    try:
        module.main(arguments(module, words))
    except RelaunchError as error:
        return error.message
    return ""


@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from(START), anything, max_size=3),
    st.dictionaries(st.sampled_from(END), anything, max_size=3),
    st.dictionaries(st.sampled_from(["verdict", "text", "name", "when"]), anything, max_size=2),
)
def test_any_json_in_a_trial_is_shown_or_refused_in_one_line(tmp_path, start, end, mark):
    home = tmp_path / ".relaunch"
    for number in ("1", "2"):
        folder = home / "trials" / number
        folder.mkdir(parents=True, exist_ok=True)
        whole = {"format": 1, "when": 1e9, "command": ["true"], "rl": {}}
        damaged = number == "2"
        (folder / "start.json").write_text(json.dumps({**whole, **(start if damaged else {})}))
        (folder / "end.json").write_text(json.dumps({"exit_code": 0, **(end if damaged else {})}))
        (folder / "mark.json").write_text(json.dumps(mark if damaged else {}))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert log.main(arguments(log, ["--all"])) == 0
        assert log.main(arguments(log, ["--json"])) == 0
        for module, words in (
            (show, ["2", "--env", "--code"]),
            (show, ["2", "--json"]),
            (diff, ["1", "2"]),
        ):
            assert said(module, words).count("\n") == 0
    assert look_back.summarise(Journal(str(home)), "1")["state"] == "passed"
