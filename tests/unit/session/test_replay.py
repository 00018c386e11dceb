"""Which calls are tried, in which order, and what counts as the same failure."""

from typing import Any

from relaunch.session.captures import Capture
from relaunch.session.replay import (
    Choice,
    Replays,
    Tried,
    best,
    choices,
    from_frame,
)
from relaunch.trial.launch.replay import Replayed


def frame(name: str, line: int, **more: Any) -> dict[str, Any]:
    kind = "module" if name == "<module>" else "function"
    given = {"positional": ["x"], "keywords": [], "star": "", "stars": "", "free": []}
    place = {"file": "/p/a.py", "qualname": name, "first": line, "line": line, "module": "a"}
    return {**place, **given, "kind": kind, "kept": True, "depth": 0, **more}


def capture(*frames: dict[str, Any], message: str = "no 1") -> Capture:
    told = [{"file": f["file"], "name": f["qualname"], "line": f["line"]} for f in frames]
    told[-1]["source"] = "return rows[x]"
    for depth, one in enumerate(frames):
        one["depth"] = depth
    facts = {
        "frames": list(frames),
        "depth": len(frames),
        "error": {"type": "ValueError", "message": message, "frames": told},
        "python": {"executable": "/bin/sh", "options": [], "path": []},
        "cwd": "/",
        "libraries": [],
        "roots": ["/p"],
    }
    return Capture(path="/c", facts=facts, found={})


def tried_frames(*frames: dict[str, Any]) -> list[list[tuple[int, str]]]:
    found = choices(capture(*frames))
    return [[(one.frame, one.how) for one in several] for several in found]


def test_calls_are_tried_from_the_inside_out_and_the_program_is_none_of_them():
    main = frame("main", 9, module="__main__", positional=[])
    found = tried_frames(frame("<module>", 20), main, frame("train", 5), frame("step", 2))
    assert found == [
        [(3, "call"), (3, "statement")],
        [(2, "call"), (2, "statement")],
    ]


def test_a_flat_script_has_its_statement():
    assert tried_frames(frame("<module>", 3)) == [[(0, "statement")]]


def test_main_is_tried_when_there_is_nothing_else():
    main = frame("main", 9, module="__main__", positional=[])
    assert tried_frames(frame("<module>", 20), main) == [[(1, "call"), (1, "statement")]]


def test_a_recursion_is_tried_at_its_ends():
    deep = [frame("walk", 2) for _ in range(30)]
    found = tried_frames(frame("<module>", 20), *deep)
    assert [several[0][0] for several in found] == [30, 1]


def test_frames_that_were_not_kept_or_are_no_functions_are_passed_over():
    found = tried_frames(
        frame("f", 1), frame("g", 2, kept=False), frame("<genexpr>", 3, kind="expression")
    )
    assert found == [[(0, "call"), (0, "statement")]]


def judged(message: str, *, line: int = 2, name: str = "step", ended: str = "raised") -> Tried:
    one = capture(frame("train", 5), frame("step", 2))
    replays = Replays(one, env={}, project=("/p",))
    place = {"file": "/p/a.py", "name": name, "line": line, "source": "return rows[x]"}
    error = {"type": "ValueError", "message": message, "frames": [place]}
    return replays.judge(Choice(frame=1, how="call"), Replayed(ended=ended, error=error))


def test_the_same_words_at_the_same_place_are_the_same():
    assert (judged("no 1").verdict, judged("no 1").same_line) == ("same", True)


def test_other_numbers_are_almost_the_same_and_moved_lines_too():
    assert judged("no 2").verdict == "almost"
    assert (judged("no 1", line=7).verdict, judged("no 1", line=7).same_line) == ("same", False)


def test_other_words_or_another_function_are_another_failure():
    assert judged("yes").verdict == "other"
    assert judged("no 1", name="other").verdict == "other"


def test_no_failure_is_gone_and_no_answer_is_neither():
    assert judged("", ended="passed").verdict == "gone"
    assert judged("", ended="timed_out").verdict == "neither"


def test_the_outermost_that_fails_the_same_is_the_best():
    def tried(number: int, verdict: str, same_line: bool = True) -> Tried:
        replayed = Replayed(ended="raised")
        choice = Choice(frame=number, how="call")
        return Tried(choice=choice, verdict=verdict, replayed=replayed, same_line=same_line)

    found = [tried(3, "same"), tried(2, "same"), tried(1, "almost"), tried(0, "gone")]
    assert best(found) == found[1]
    assert best(found[2:]) == found[2]
    assert best(found[3:]) is None
    assert best([tried(2, "same"), tried(1, "same", same_line=False)]) == tried(2, "same")


def test_of_a_deep_traceback_the_frames_that_were_described_count():
    frames = [frame("f", n) for n in range(70)]
    one = capture(*frames)
    facts = {
        **one.facts,
        "depth": 1000,
        "frames": [frame("f", 5, depth=3), frame("f", 9, depth=999)],
    }
    assert len(from_frame(facts, 0)["frames"]) == 67
    assert len(from_frame(facts, 1)["frames"]) == 1
