"""What py-spy prints, read, and said in a line."""

from relaunch.look.stacks import Frame, chain, functions, read_fault, read_threads

SAID = """[{"pid": 1, "thread_id": 9, "thread_name": "MainThread", "os_thread_id": 17,
"active": true, "owns_gil": true, "frames": [
 {"name": "read", "filename": "/usr/lib/python3.11/json/x.py", "line": 3, "locals": null},
 {"name": "load_rows", "filename": "/home/me/loader.py", "line": 9,
  "locals": [{"name": "n", "repr": "3"}, {"name": "gone", "repr": null}]},
 {"name": "<module>", "filename": "/home/me/train.py", "line": 12, "locals": []}]}]"""


def test_threads_are_read_with_their_frames_and_values():
    (thread,) = read_threads(SAID)
    assert (thread.id, thread.name, thread.has_gil) == (17, "MainThread", True)
    assert thread.frames[1] == Frame(
        file="/home/me/loader.py", line=9, function="load_rows", locals={"n": "3", "gone": ""}
    )


def test_a_place_is_told_by_the_users_own_frames():
    (thread,) = read_threads(SAID)
    assert chain(thread.frames, ["/home/me"]) == "loader.py:9 load_rows <- train.py:12"
    assert functions(thread.frames, ["/home/me"]) == ("loader.py load_rows", "train.py <module>")


def test_without_a_frame_of_the_users_own_all_are_told():
    (thread,) = read_threads(SAID)
    assert chain(thread.frames, ["/srv"], most=2) == "x.py:3 read <- loader.py:9 load_rows"


def test_what_faulthandler_wrote_is_read_as_threads():
    text = """\
Thread 0x00007f9b [worker] (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait
  File "/home/me/a, line 3.py", line 9 in run

Current thread 0x00007fa0 (most recent call first):
  File "/home/me/train.py", line 12 in <module>
"""
    worker, current = read_fault(text)
    assert (worker.name, worker.has_gil, len(worker.frames)) == ("worker", False, 2)
    assert worker.frames[1] == Frame(file="/home/me/a, line 3.py", line=9, function="run")
    assert (current.has_gil, current.frames[0].line) == (True, 12)
