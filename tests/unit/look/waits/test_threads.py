from relaunch.look.waits.threads import Work, is_at_work

SECOND = 10**9


def after(seconds: float, *, ticks: int = 0, runnable_s: float | None = None) -> bool:
    thread = (7, 7)
    had = {} if runnable_s is None else {thread: 3 * SECOND}
    has = {} if runnable_s is None else {thread: int((3 + runnable_s) * SECOND)}
    before = Work(at_ns=0, ticks=100, runnable_ns=had)
    return is_at_work(before, Work(at_ns=int(seconds * SECOND), ticks=100 + ticks, runnable_ns=has))


def test_one_that_uses_half_a_core_is_at_work():
    assert after(1, ticks=50)
    assert not after(5, ticks=50), "who looks late sees more of a program that only wakes"


def test_one_that_waits_for_a_core_all_the_time_is_at_work():
    assert after(1, ticks=10, runnable_s=0.95)


def test_one_that_wakes_now_and_then_is_not():
    assert not after(1, ticks=10, runnable_s=0.5)
    assert not after(1)


def test_what_a_new_thread_had_before_does_not_count():
    before = Work(at_ns=0, ticks=100, runnable_ns={})
    now = Work(at_ns=SECOND, ticks=100, runnable_ns={(7, 8): 9 * SECOND})
    assert not is_at_work(before, now)
