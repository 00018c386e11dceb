"""What is told of the moment a limit is reached."""

from relaunch.bytewords import in_words
from relaunch.look.stacks import Frame, Thread
from relaunch.trial.place.memory.moment import Growth, Line, Seen, culprit, is_caught, page, reached
from relaunch.trial.place.memory.told_inside import read_growth

MB = 1 << 20


def thread(number, *places, gil=False):
    frames = tuple(Frame(file=f"/home/me/{file}", line=line, function=name)
                   for file, line, name in places)  # fmt: skip
    return Thread(id=number, name=f"T{number}", frames=frames, has_gil=gil)


LOADS = thread(7, ("loader.py", 9, "load_rows"), ("train.py", 12, "<module>"))
WAITS = thread(6, ("train.py", 3, "wait"), gil=True)


def seen(*threads, pid=6, busy=(), size=400 * MB):
    return Seen(pid=pid, command="python train.py", bytes=size, threads=threads,
                busy=frozenset(busy))  # fmt: skip


def test_the_thread_that_ran_is_named_not_the_one_that_has_the_gil():
    assert culprit([seen(WAITS, LOADS, busy=[7])], ["/home/me"]) == (
        seen(WAITS, LOADS, busy=[7]),
        LOADS,
    )


def test_where_none_ran_the_one_with_the_gil_is_named():
    found = culprit([seen(LOADS, WAITS)], ["/home/me"])
    assert found is not None
    assert found[1] is WAITS


def test_a_larger_process_that_waits_gives_way_to_one_that_ran():
    found = culprit([seen(WAITS, pid=1), seen(LOADS, pid=2, busy=[7], size=MB)], ["/home/me"])
    assert found is not None
    assert found[0].pid == 2


def test_a_larger_process_that_waits_gives_way_to_one_that_took_pages_and_sleeps_now():
    found = culprit([seen(WAITS, pid=1).but(grew=False), seen(LOADS, pid=2, size=MB)], ["/home/me"])
    assert found is not None
    assert found[0].pid == 2


LIB = "/usr/lib/python3.11/multiprocessing/"
FORKED = (Frame(file=f"{LIB}popen_fork.py", line=71, function="_launch"),
          Frame(file="/home/me/train.py", line=12, function="<module>"))  # fmt: skip
"""What a worker has of who forked it."""


def forked(number, *places):
    mine = thread(number, *places).frames
    got = Frame(file=f"{LIB}connection.py", line=5, function="send")
    return Thread(id=number, name="", frames=(*(mine or (got,)), *FORKED))


def test_a_worker_between_two_rows_gives_way_to_one_that_runs_code_of_the_user():
    sends, grows = forked(3), forked(4, ("rows.py", 8, "grow"))
    parent = seen(thread(2, ("train.py", 12, "<module>")), pid=2, busy=[2], size=MB).but(grew=False)
    workers = [seen(sends, pid=3, busy=[3]), seen(grows, pid=4, busy=[4], size=2 * MB)]
    found = culprit([*workers, parent], ["/home/me"])
    assert found is not None
    assert found[1] is grows


def test_who_waits_in_a_loop_gives_way_to_a_worker_that_grew_and_is_in_a_call_now():
    grows = forked(4, ("rows.py", 8, "grow"))
    parent = seen(thread(2, ("train.py", 12, "<module>")), pid=2, busy=[2]).but(grew=False)
    found = culprit([parent, seen(grows, pid=4, size=MB)], ["/home/me"])
    assert found is not None
    assert found[1] is grows


def test_somebody_is_caught_who_ran_code_of_the_user_and_took_memory():
    grows = forked(4, ("rows.py", 8, "grow"))
    assert is_caught([seen(grows, pid=4, busy=[4])], ["/home/me"])
    assert not is_caught([seen(grows, pid=4)], ["/home/me"])
    assert not is_caught([seen(grows, pid=4, busy=[4]).but(grew=False)], ["/home/me"])
    assert not is_caught([seen(forked(3), pid=3, busy=[3])], ["/home/me"])


def test_where_nobody_runs_code_of_the_user_who_took_memory_is_caught():
    theirs = Thread(id=9, name="", frames=(Frame(file="/usr/x.py", line=1, function="recv"),))
    assert is_caught([seen(theirs, pid=1, busy=[9])], ["/home/me"])
    assert not is_caught([seen(theirs, pid=1)], ["/home/me"])
    waits = seen(thread(2, ("train.py", 12, "<module>")), pid=2)
    assert not is_caught([seen(theirs, pid=1, busy=[9]), waits], ["/home/me"])


def test_a_stack_without_its_number_is_of_the_first_thread_where_that_has_the_gil():
    told = forked(4, ("rows.py", 8, "grow")).but(id=0, has_gil=True)
    assert is_caught([seen(told, pid=4, busy=[4])], ["/home/me"])
    assert not is_caught([seen(told.but(has_gil=False), pid=4, busy=[4])], ["/home/me"])
    assert not is_caught([seen(told, pid=4, busy=[5])], ["/home/me"])


def test_a_thread_of_a_library_gives_way_to_the_users_own_code():
    theirs = Thread(id=9, name="", frames=(Frame(file="/usr/x.py", line=1, function="recv"),))
    found = culprit([seen(theirs, pid=1, busy=[9]), seen(LOADS, pid=2, size=MB)], ["/home/me"])
    assert found is not None
    assert found[1] is LOADS


def test_a_process_without_stacks_gives_way_to_the_next():
    found = culprit([seen(pid=1), seen(LOADS, pid=2)], ["/home/me"])
    assert found is not None
    assert found[0].pid == 2


def test_the_title_says_where_and_who_stopped_it():
    told = reached(5 << 30, 5 << 30, [seen(LOADS)], ["/home/me"], ending="Stopped by relaunch")
    assert told["title"] == (
        "Reached 5.0 GB at loader.py:9 load_rows <- train.py:12. Stopped by relaunch"
    )
    assert told["key"] == ["loader.py load_rows", "train.py <module>"]


def test_the_identity_has_no_line_so_that_an_edit_does_not_change_it():
    moved = thread(7, ("loader.py", 99, "load_rows"), ("train.py", 1, "<module>"))
    both = [reached(MB, MB, [seen(one)], ["/home/me"], ending="x")["key"] for one in (LOADS, moved)]
    assert both[0] == both[1]


def test_without_an_ending_it_is_no_failure():
    told = reached(64 * MB, 64 * MB, [seen(LOADS)], ["/home/me"], ending="")
    assert (told["title"], told["text"][:16]) == ("", "Reached 64.0 MB ")


def test_a_tiny_limit_in_code_that_is_not_the_users_is_explained():
    frozen = Thread(id=1, name="", frames=(Frame(file="<frozen>", line=1, function="f"),))
    told = reached(2 * MB, 2 * MB, [seen(frozen)], ["/home/me"], ending="x")
    assert told["text"] == "Reached 2.0 MB before a line of yours ran: Python alone needs more"


def test_a_process_that_runs_no_python_function_is_said_to():
    told = reached(64 * MB, 64 * MB, [seen(thread(6))], ["/home/me"], ending="x")
    assert told["text"] == "Reached 64.0 MB while no Python function ran"


def test_the_page_has_every_process_and_thread_and_line():
    growth = {6: Growth(bytes=300 * MB, lines=(Line(file="/a.py", line=3, bytes=MB, count=2),))}
    text = page("Reached", 800 * MB, [seen(LOADS, busy=[7]), seen(pid=8)], growth)
    assert text.splitlines() == [
        "Reached",
        "2 processes had 800 MB together",
        "",
        "process 6   400 MB   python train.py",
        "  thread T7, running",
        "    /home/me/loader.py:9 load_rows",
        "    /home/me/train.py:12 <module>",
        "  most memory allocated since the start by line, seen at 300 MB",
        "      1.0 MB   /a.py:3   (2 blocks)",
        "",
        "process 8   400 MB   python train.py",
    ]


def test_growth_is_read_as_the_program_wrote_it():
    found = read_growth("900\n400 2 7 /a file.py\n300 1 9 /b.py")
    assert (found.bytes, len(found.lines)) == (900, 2)
    assert found.lines[0] == Line(bytes=400, count=2, line=7, file="/a file.py")


def test_sizes_in_words():
    assert [in_words(n) for n in (MB // 2, 512 * MB, 1 << 30, 5 << 30, 3 << 40)] == [
        "512 KB", "512 MB", "1.0 GB", "5.0 GB", "3.0 TB",
    ]  # fmt: skip
