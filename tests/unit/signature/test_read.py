"""Which failure is it? The rules for choosing, and what does not change the answer."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples, rounds, takes_turns

from relaunch.trial.signature.marker import looks_failing
from relaunch.trial.signature.python import raised_in
from relaunch.trial.signature.read import identify


def said(text, exit_code=1, signal=None, **more):
    return identify(text=text, exit_code=exit_code, signal=signal, **more)


def traceback(*, root="/home/a/proj", line=10, kind="ValueError", message="bad", function="step"):
    return (
        "Traceback (most recent call last):\n"
        f'  File "{root}/train.py", line {line}, in <module>\n'
        "    main()\n"
        f'  File "{root}/train.py", line {line + 7}, in main\n'
        "    step()\n"
        '  File "/opt/python/lib/python3.11/site-packages/lib/deep.py", line 3, in deep\n'
        "    go()\n"
        f'  File "{root}/sub/model.py", line {line * 2}, in {function}\n'
        f"    raise {kind}\n"
        f"{kind}: {message}\n"
    )


def test_a_program_that_passed_has_no_failure():
    assert said("all well\n", exit_code=0) is None


def test_a_program_that_never_ran_has_no_failure():
    assert identify(text="", exit_code=None, signal=None) is None


def test_the_title_says_where_with_the_line_and_the_key_does_not():
    found = said(traceback())
    assert found.title == "model.py:20 ValueError: bad"
    assert found.key == ("ValueError", "bad", "step", "main")


roots = st.sampled_from(["/home/a/proj", "/tmp/tmpabcd1234/x", "/srv/Work Dir/é", "C:/w", "."])


@given(root=roots, line=st.integers(1, 9999), number=st.integers(0, 10**9), rank=st.integers(0, 64))
def test_path_line_number_and_rank_do_not_change_the_identity(root, line, number, rank):
    text = traceback(root=root, line=line, message=f"{number} rows at {hex(number)}")
    labelled = "".join(f"[rank{rank}]: {one}\n" for one in text.splitlines())
    expected = said(traceback(message="7 rows at 0x1f")).digest
    assert said(text).digest == expected
    assert said(f"pid {number}\n" + text + "\n").digest == expected
    assert said(labelled).digest == expected


@pytest.mark.parametrize(
    "change", [{"kind": "TypeError"}, {"message": "worse"}, {"function": "evaluate"}]
)
def test_type_message_and_function_change_the_identity(change):
    assert said(traceback(**change)).digest != said(traceback()).digest


@examples(50)
@given(st.integers(0, 2**32))
def test_two_ranks_talking_at_once_are_read_apart(seed):
    order = random.Random(seed)
    ranks = {
        label: traceback(message="shard 3 broke").splitlines()
        for label in ("[rank0]: ", "[default1]:", "(worker pid=33) ")
    }
    mixed = []
    while ranks:
        label = order.choice(sorted(ranks))
        mixed.append(label + ranks[label].pop(0))
        if not ranks[label]:
            del ranks[label]
    found = said("\n".join(mixed))
    assert found.key == ("ValueError", "shard <n> broke", "step", "main")
    assert len(raised_in("\n".join(mixed))) == 3


@given(st.text(max_size=400))
def test_any_text_is_borne(text):
    for code in (0, 1, 139):
        said(text, exit_code=code)
    identify(text=text, exit_code=None, signal=6)


LINES = st.sampled_from(
    [
        *traceback().splitlines(),
        "  + Exception Group Traceback (most recent call last):",
        "  | ExceptionGroup: many (2 sub-exceptions)",
        "  +-+---------------- 1 ----------------",
        "    | ValueError: a",
        "    +---------------- 2 ----------------",
        "    +------------------------------------",
        "╭──────── Traceback (most recent call last) ────────╮",
        "│ /tmp/x.py:5 in f                                  │",
        "╰───────────────────────────────────────────────────╯",
        "ValueError                     Traceback (most recent call last)",
        "Cell In[1], line 5",
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
        "Original Traceback (most recent call last):",
        "=================================== FAILURES ===================================",
        "____________________________ test_a ____________________________",
        "E       assert 1 == 2",
        "FAILED tests/test_a.py::test_a - assert 1 == 2",
        "1 failed in 0.01s",
        "======================================================================",
        "FAIL: test_a (mod.T.test_a)",
        "Ran 1 test in 0.0s",
        "Fatal Python error: Segmentation fault",
        "Current thread 0x00007f (most recent call first):",
        '  File "x.py", line 5 in f',
        "",
        '"""',
    ]
)


@examples(300)
@given(st.lists(LINES, max_size=25).map("\n".join))
def test_tracebacks_cut_and_shuffled_in_any_way_are_borne(text):
    for code in (0, 1):
        said(text, exit_code=code)


def test_a_logged_traceback_with_exit_0_is_a_failure_of_its_own_kind():
    found = said("ERROR:root:oh\n" + traceback() + "done\n", exit_code=0)
    assert found.kind == "logged"
    assert found.digest != said(traceback()).digest


def test_tracebacks_in_a_test_run_that_passed_say_nothing():
    assert said(traceback() + "\n=== 3 passed, 1 skipped in 0.12s ===\n", exit_code=0) is None
    assert said(traceback() + "\nRan 3 tests in 0.1s\n\nOK\n", exit_code=0) is None


def test_an_exception_ignored_by_the_interpreter_says_nothing_with_exit_0():
    assert said("Exception ignored in: <function X.__del__>\n" + traceback(), exit_code=0) is None


def test_the_fatal_one_counts_and_not_the_one_logged_before():
    text = "ERROR:root:retry\n" + traceback(message="retry") + traceback(message="fatal")
    assert said(text).key[1] == "fatal"


def test_the_cause_counts_and_the_context_does_not():
    link = "\nThe above exception was the direct cause of the following exception:\n\n"
    text = traceback(message="root") + link + traceback(kind="RuntimeError", message="wrapped")
    assert said(text).key[:2] == ("ValueError", "root")
    link = "\nDuring handling of the above exception, another exception occurred:\n\n"
    text = traceback(message="caught") + link + traceback(kind="RuntimeError", message="after")
    assert said(text).key[:2] == ("RuntimeError", "after")


def test_the_rank_that_failed_counts_and_not_the_launcher_or_the_neighbour():
    neighbour = traceback(kind="RuntimeError", message="Connection closed by peer [127.0.0.1]:1")
    launcher = traceback(kind="torch.distributed.elastic.ChildFailedError", message="")
    text = "".join(f"[rank0]: {line}\n" for line in neighbour.splitlines())
    text += "".join(f"[rank1]: {line}\n" for line in traceback().splitlines())
    assert said(text + launcher).key[:2] == ("ValueError", "bad")


def test_the_users_own_frames_are_those_outside_libraries_or_inside_the_project():
    text = traceback(root="/opt/python/lib/python3.11/myproj")
    assert said(text, project=["/opt/python/lib/python3.11/myproj"]).key == said(traceback()).key
    inside = traceback().replace("/opt/python", "/home/a/proj/.venv")
    assert said(inside, project=["/home/a/proj"]).key == said(traceback()).key


def test_a_signal_has_its_name_whether_it_came_raw_or_through_a_shell():
    raw = said("Segmentation fault\n", None, signal=11)
    assert raw.kind == "signal"
    assert raw.title == "SIGSEGV"
    assert said("Segmentation fault (core dumped)\n", exit_code=139).digest == raw.digest
    assert said("Killed\n", exit_code=137).key[0] == "SIGKILL"
    assert said("code of our own\n", exit_code=139).kind == "exit"


def test_a_timeout_is_a_timeout_whatever_ended_the_program():
    assert said("x", None, signal=15, timed_out=True).kind == "timeout"


def test_a_pin_by_hand_counts_over_everything_else():
    pinned = said("loss 1\nloss nan at 3\n", exit_code=0, match=r"loss nan")
    assert (pinned.kind, pinned.title) == ("pinned", "loss nan at 3")
    assert said(traceback() + "loss nan at 9", match=r"loss nan").digest == pinned.digest
    assert said(traceback(), match=r"loss nan").kind == "exception"
    assert said("fine\n", exit_code=0, match=r"loss nan") is None
    assert said("x", exit_code=3, pinned_exit=3).digest == said("y", 3, pinned_exit=3).digest
    assert said("x", exit_code=4, pinned_exit=3).kind == "exit"
    assert said("nan", exit_code=4, pinned_exit=3, match="nan").kind == "exit"


def report(*errors, started=0.0, **more):
    return {"schema": 1, "started": started, "exceptions": list(errors), **more}


def error(message, time=1.0, kind="ValueError", name="step", **more):
    frames = [{"file": "/p/t.py", "name": "<module>", "line": 1}]
    frames.append({"file": "/p/t.py", "name": f"Net.{name}", "line": 2})
    return {"type": kind, "message": message, "time": time, "frames": frames, **more}


def test_the_process_itself_is_believed_over_the_text():
    found = said("FATAL - ouch\n", reports=[report(error("bad"))])
    assert found.key == ("ValueError", "bad", "step")


def test_of_processes_that_ran_together_the_first_to_fail_counts():
    reports = [report(error("second", 5.0)), report(error("first", 4.0), started=1.0)]
    assert said("", reports=reports).key[1] == "first"


def test_of_processes_that_ran_in_turn_the_last_counts():
    reports = [report(error("earlier", 1.0)), report(error("later", 4.0), started=2.0)]
    assert said("", reports=reports).key[1] == "later"


def test_a_failure_that_never_reached_the_output_gives_way_to_one_that_did():
    reports = [report(error("hidden probe", 1.0)), report(error("shown", 4.0))]
    assert said("ValueError: shown\n", reports=reports).key[1] == "shown"


PATHOLOGICAL = [
    "x",
    ".",
    "a.b:",
    "/a",
    "_ ",
    "=",
    " ",
    "-",
    "1",
    "File ",
    "E  ",
    "at (",
    "1 passed,",
]


@takes_turns
@pytest.mark.parametrize("piece", [*PATHOLOGICAL, "│", "(a", "[rank0]:", "0x", "\t\n"])
def test_output_without_an_end_is_read_in_reasonable_time(piece):
    line = piece * (3000 // len(piece))
    for text in (piece * rounds(300_000, 1_000_000), f"{line}\n" * 600):
        start = time.process_time()
        assert said(text + "\n" + traceback()).key[0] == "ValueError"
        assert said(text) is not None
        identify(text=text, exit_code=0, signal=None)
        assert time.process_time() - start < 20


def test_a_long_log_before_the_traceback_is_no_matter():
    text = "step 1 loss 0.5 lr 1e-3\n" * 200_000 + traceback()
    assert said(text).key[0] == "ValueError"


@pytest.mark.parametrize(
    "data",
    [b"x\nTraceback (most recent call last):\n", b"Fatal Python error: x", b"= FAILURES ="],
)
def test_a_chunk_with_a_failing_event_is_noticed(data):
    assert looks_failing(data)
    assert not looks_failing(b"epoch 1 loss 0.3\n")


def test_an_internal_error_of_pytest_is_read_behind_its_label():
    text = """\
INTERNALERROR> Traceback (most recent call last):
INTERNALERROR>   File "/v/site-packages/_pytest/main.py", line 10, in wrap_session
INTERNALERROR>     config._do_configure()
INTERNALERROR>   File "/proj/tests/conftest.py", line 5, in pytest_configure
INTERNALERROR>     config.inicfg
INTERNALERROR> DeprecationWarning: config.inicfg is deprecated
"""
    found = identify(text=text, exit_code=3, signal=None, project=["/proj"])
    assert found is not None
    assert found.kind == "exception"
    assert found.title == "conftest.py:5 DeprecationWarning: config.inicfg is deprecated"


def test_work_that_ran_in_one_process_fails_as_in_its_own():
    """Who called a worker is not part of its failure, as with a real one nobody did."""
    worker = (
        '  File "/p/work.py", line 9, in worker\n    inner(x)\n'
        '  File "/p/work.py", line 5, in inner\n    1 // x\n'
        "ZeroDivisionError: division by zero\n"
    )
    head = "Traceback (most recent call last):\n"
    pool = '  File "/any/relaunch/inside/single/pools.py", line 73, in get\n    raise error\n'
    main = '  File "/p/work.py", line 20, in main\n    pool.map(worker, rows)\n'
    real = (
        f'multiprocessing.pool.RemoteTraceback: \n"""\n{head}{worker}"""\n\n'
        "The above exception was the direct cause of the following exception:\n\n"
        f"{head}{main}ZeroDivisionError: division by zero\n"
    )
    found = [
        identify(text=text, exit_code=1, signal=None, project=["/p"])
        for text in (real, head + main + pool + worker)
    ]
    assert found[0] is not None
    assert found[0] == found[1]
