"""`section`, in this process: nesting, threads, tasks, generators, failures; and what it keeps."""

import asyncio
import contextvars
import inspect
import itertools
import mmap
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from relaunch.inside.sections import record as recording
from relaunch.inside.sections.ending import process_of
from relaunch.inside.sections.gpu import Gpu
from relaunch.inside.sections.layout import ROWS, Numbers
from relaunch.inside.sections.meter import RECORD, RESET, Meter, Unheld
from relaunch.inside.sections.record import Recorder
from relaunch.inside.sections.section import section
from relaunch.inside.sections.tables import leaks

MB = 1 << 20


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """A recorder of this test alone, without a trial."""
    monkeypatch.delenv("RELAUNCH_TRIAL", raising=False)
    monkeypatch.setattr(recording, "_one", [])
    one = recording.recorder()
    one.is_told_by_cell = True
    return one


def taken(size: int) -> mmap.mmap:
    """Memory that is really there, and really gone when it is closed, whatever `malloc` does."""
    block = mmap.mmap(-1, size)
    for at in range(0, size, mmap.PAGESIZE):
        block[at] = 1
    return block


def measured(record: Recorder) -> Mapping[tuple[str, ...], Numbers]:
    return process_of(record).sections


def times(record: Recorder) -> dict[tuple[str, ...], int]:
    return {path: one.times for path, one in measured(record).items()}


# --- one in another -------------------------------------------------------------------------------


def test_sections_lie_in_each_other_and_repeat(record):
    for _ in range(3):
        with section("epoch"):
            for _ in range(2):
                with section("load"):
                    pass
            with section("train"):
                pass
    with section("load"):
        pass
    assert times(record) == {
        ("epoch",): 3, ("epoch", "load"): 6, ("epoch", "train"): 3, ("load",): 1,
    }  # fmt: skip


def test_self_time_is_what_no_section_inside_took(record):
    with section("outer"):
        time.sleep(0.02)
        with section("inner"):
            time.sleep(0.03)
    outer, inner = measured(record)["outer",], measured(record)["outer", "inner"]
    assert outer.total_ns >= 50e6
    assert inner.total_ns >= 30e6
    assert 0 <= outer.total_ns - inner.total_ns - outer.self_ns < 5e6
    assert outer.self_ns >= 20e6


def test_what_is_raised_passes_through_and_the_section_is_marked_failed(record):
    error = KeyError("mine")
    with pytest.raises(KeyError) as caught, section("outer"), section("bad"):
        raise error
    assert caught.value is error
    assert error.__context__ is None
    assert error.__cause__ is None
    assert [one.failed for one in measured(record).values()] == [1, 1]
    assert error.__traceback__ is not None
    frames = inspect.getinnerframes(error.__traceback__)
    assert [frame.filename for frame in frames] == [__file__]


def test_ends_that_are_raised_are_no_failures(record):
    for kind in (StopIteration, GeneratorExit, SystemExit):
        with pytest.raises(kind), section("ends"):
            raise kind
    assert measured(record)["ends",].failed == 0


def test_the_same_object_may_be_entered_again_inside_itself(record):
    same = section("again")
    with same, section("between"), same:
        pass
    with same:
        pass
    assert times(record) == {
        ("again",): 2, ("again", "between"): 1, ("again", "between", "again"): 1,
    }  # fmt: skip


def test_sections_left_in_another_order_than_entered_are_each_left_once(record):
    first, second = section("first"), section("second")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    with section("after"):
        pass
    second.__exit__(None, None, None)
    with section("last"):
        pass
    assert [path[-1] for path in times(record)] == ["first", "second", "after", "last"]
    assert all(one.times == 1 and not one.open for one in measured(record).values())
    assert ("last",) in times(record)


def test_a_section_left_twice_counts_once(record):
    one = section("once")
    one.__enter__()
    one.__exit__(None, None, None)
    one.__exit__(None, None, None)
    assert times(record) == {("once",): 1}


def test_names_made_up_anew_each_time_end_in_one_row(record):
    for n in range(600):
        with section(f"step {n}"):
            pass
    found = times(record)
    assert len(found) == 501
    assert found["(more sections)",] == 100


def test_a_function_is_no_name():
    with pytest.raises(TypeError, match="section needs a name"):
        section(len)  # type: ignore[arg-type]
    assert repr(section(3)) == "section('3')"  # type: ignore[arg-type]


# --- at once --------------------------------------------------------------------------------------


def test_threads_have_sections_of_their_own(record):
    barrier = threading.Barrier(4)

    def work() -> None:
        for _ in range(200):
            with section("thread"), section("inner"):
                pass
        barrier.wait()

    with section("main"):
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        barrier.wait()
        for thread in threads:
            thread.join()
    assert times(record) == {("main",): 1, ("thread",): 600, ("thread", "inner"): 600}
    assert not record.open


def test_tasks_that_take_turns_do_not_mix_their_sections(record):
    async def task(name: str) -> None:
        with section(name):
            for _ in range(3):
                await asyncio.sleep(0)
                with section("step"):
                    await asyncio.sleep(0)

    async def main() -> None:
        with section("main"):
            await asyncio.gather(task("a"), task("b"))

    asyncio.run(main())
    assert times(record) == {
        ("main",): 1, ("main", "a"): 1, ("main", "a", "step"): 3,
        ("main", "b"): 1, ("main", "b", "step"): 3,
    }  # fmt: skip
    assert measured(record)["main",].self_ns >= 0


def test_sections_inside_at_the_same_time_are_taken_from_the_outer_ones_time_once(record):
    async def wait() -> None:
        with section("wait"):
            await asyncio.sleep(0.05)

    async def main() -> None:
        with section("main"):
            await asyncio.gather(*(wait() for _ in range(10)))

    asyncio.run(main())
    main_, wait_ = measured(record)["main",], measured(record)["main", "wait"]
    assert wait_.total_ns > 5 * main_.total_ns
    assert 0 <= main_.self_ns < main_.total_ns


def test_a_generator_that_waits_inside_a_section_harms_no_other(record):
    def steps() -> Iterator[int]:
        with section("generator"):
            yield 1
            yield 2

    ones, others = steps(), steps()
    next(ones)
    next(others)
    with section("consumer"):
        next(ones)
    list(others)
    del ones
    with section("after"):
        pass
    assert times(record)["generator",] + times(record).get(("generator", "generator"), 0) == 2
    assert ("after",) in times(record)
    assert not record.open


def test_a_section_may_be_left_in_another_context_than_it_was_entered_in(record):
    one = section("far")
    contextvars.copy_context().run(one.__enter__)
    one.__exit__(None, None, None)
    assert times(record) == {("far",): 1}
    assert not record.open


# --- as a decorator -------------------------------------------------------------------------------


def test_a_decorated_function_is_still_itself(record):
    @section("f")
    def plain(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    assert plain(1) == 3
    assert (plain.__name__, plain.__doc__) == ("plain", "Add.")
    assert inspect.signature(plain).parameters.keys() == {"a", "b"}
    assert times(record) == {("f",): 1}


def test_a_decorated_method_is_one(record):
    class Model:
        @section("forward")
        def forward(self, x: int) -> int:
            return x + 1

    assert Model().forward(1) == 2
    assert times(record) == {("forward",): 1}


def test_a_decorated_coroutine_is_measured_to_its_end(record):
    @section("wait")
    async def wait() -> str:
        await asyncio.sleep(0.01)
        return "done"

    assert inspect.iscoroutinefunction(wait)
    assert asyncio.run(wait()) == "done"
    assert measured(record)["wait",].total_ns >= 9e6


def test_of_a_decorated_generator_each_step_is_measured_and_not_its_consumer(record):
    @section("load")
    def load() -> Iterator[int]:
        yield from range(3)

    assert inspect.isgeneratorfunction(load)
    for _ in load():
        time.sleep(0.01)
    assert times(record) == {("load",): 4}
    assert measured(record)["load",].total_ns < 10e6


def test_a_decorated_generator_takes_what_is_sent_and_thrown_and_returns(record):
    log: list[object] = []

    @section("talk")
    def talk() -> Iterator[object]:
        try:
            log.append((yield "first"))
            yield "second"
        except ValueError as error:
            log.append(error)
            yield "caught"
        return "end"  # type: ignore[return-value]

    steps = talk()
    assert next(steps) == "first"
    assert steps.send("sent") == "second"  # type: ignore[attr-defined]
    error = ValueError("thrown")
    assert steps.throw(error) == "caught"  # type: ignore[attr-defined]
    with pytest.raises(StopIteration) as stop:
        next(steps)
    assert stop.value.value == "end"
    assert log == ["sent", error]


def test_a_decorated_generator_that_is_closed_cleans_up(record):
    log = []

    @section("held")
    def held() -> Iterator[int]:
        try:
            yield 1
        finally:
            log.append("closed")

    steps = held()
    next(steps)
    steps.close()  # type: ignore[attr-defined]
    assert log == ["closed"]
    assert not record.open


def test_of_a_decorated_asynchronous_generator_each_step_is_measured(record):
    @section("stream")
    async def stream():
        for n in range(3):
            await asyncio.sleep(0)
            yield n

    async def main() -> list[int]:
        return [n async for n in stream()]

    assert asyncio.run(main()) == [0, 1, 2]
    assert times(record) == {("stream",): 4}


# --- memory ---------------------------------------------------------------------------------------


def test_memory_that_comes_and_goes_is_a_peak_and_what_stays_a_change(record):
    kept = []
    with section("all"):
        with section("peak"):
            time.sleep(0.001)
            taken(80 * MB).close()
        with section("keep"):
            time.sleep(0.001)
            kept.append(taken(30 * MB))
        with section("nothing"):
            time.sleep(0.001)
    found = measured(record)
    if record.meter.by != RESET:
        pytest.skip("this kernel does not begin the peak anew")
    peak, keep, nothing = (found["all", name] for name in ("peak", "keep", "nothing"))
    assert peak.rss_peak - peak.rss > 70 * MB
    assert abs(peak.rss_delta) < 10 * MB
    assert 25 * MB < keep.rss_delta < 40 * MB
    assert nothing.rss_peak - nothing.rss < 5 * MB  # its own, not that of the one before it
    assert found["all",].rss_peak >= peak.rss_peak - MB
    assert kept


def test_memory_is_read_at_most_every_100_microseconds(record, monkeypatch):
    count = 0
    theirs = record.meter.read

    def read() -> None:
        nonlocal count
        count += 1
        theirs()

    monkeypatch.setattr(record.meter, "read", read)
    began = time.perf_counter_ns()
    for _ in range(2000):
        with section("empty"):
            pass
    assert count <= (time.perf_counter_ns() - began) / 100_000 + 2 + recording.ALWAYS


def test_a_leak_of_a_few_quick_iterations_is_found(record, monkeypatch):
    monkeypatch.setattr(recording, "WINDOW_NS", 1 << 60)
    kept = []
    for _ in range(8):
        with section("step"):
            kept.append(taken(4 * MB))
    (one,) = leaks(process_of(record))
    assert one.bytes == pytest.approx(4 * MB, rel=0.1)


def test_without_leave_to_begin_the_peak_anew_a_record_is_told(monkeypatch):
    monkeypatch.setenv("RELAUNCH_SECTIONS_PEAK", "record")
    meter = Meter()
    assert meter.by == RECORD
    meter.read()
    taken(200 * MB).close()
    meter.read()
    assert meter.high - meter.rss > 150 * MB
    taken(100 * MB).close()
    meter.read()
    assert meter.high == meter.rss  # no new record, so nothing is known


def test_files_that_the_program_closed_are_opened_again_a_few_times():
    meter = Meter()
    rung = meter.by
    for left in (4, 3, 2, 1):
        for fd in (meter._statm, meter._status, meter._clear):
            os.close(fd)
        meter.read()
        assert (meter.by, meter._lives) == (rung, left)
        assert meter.rss > MB
    for fd in (meter._statm, meter._status, meter._clear):
        os.close(fd)
    meter.read()
    assert meter.by != rung


def test_a_meter_that_holds_no_file_finds_the_same():
    held, unheld = Meter(), Unheld()
    held.read()
    unheld.read()
    assert abs(held.rss - unheld.rss) < 4 * MB
    open_now = set(os.listdir("/proc/self/fd"))
    unheld.read()
    assert set(os.listdir("/proc/self/fd")) == open_now


def test_a_file_of_the_user_named_like_the_standard_library_is_not_imported(tmp_path, monkeypatch):
    (tmp_path / "resource.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "resource", raising=False)
    assert Meter().rss > 0
    assert "resource" not in sys.modules


# --- iterations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 100, 128, 129, 1000, 5000])
def test_of_many_iterations_evenly_spread_ones_are_kept(record, count):
    for _ in range(count):
        with section("step"):
            pass
    numbers = measured(record)["step",].column("number")
    assert len(numbers) <= ROWS
    steps = {later - earlier for earlier, later in itertools.pairwise(numbers)}
    assert numbers[0] == 0
    assert len(steps) <= 1
    assert count == 1 or len(numbers) >= min(count, ROWS // 2)
    assert numbers[-1] >= count - (steps.pop() if steps else 1)


# --- after a fork ---------------------------------------------------------------------------------


def test_a_forked_child_begins_its_own_count(record):
    reading, writing = os.pipe()
    with section("parent"):
        with section("before"):
            pass
        pid = os.fork()
        if not pid:
            with section("child"):
                pass
            told = repr(times(recording.recorder()))
            os.write(writing, told.encode())
            os._exit(0)
        os.waitpid(pid, 0)
    os.close(writing)
    with os.fdopen(reading) as file:
        assert file.read() == repr({("parent", "child"): 1})
    assert ("parent", "before") in times(record)
    assert ("parent", "child") not in times(record)


# --- GPU memory, as torch tells it; a stand-in, for this machine has no GPU -----------------------


class Cuda:
    """What is asked of torch: devices with what they hold and their record, and how often."""

    def __init__(self, *held: int) -> None:
        self.held, self.records = list(held), list(held)
        self.is_begun = True
        self.asked: list[int] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        torch = SimpleNamespace(
            cuda=SimpleNamespace(
                is_initialized=lambda: self.is_begun,
                device_count=lambda: len(self.held),
                synchronize=lambda: self.asked.append(-1),
            ),
            _C=SimpleNamespace(_cuda_memoryStats=self.stats, _cuda_getDevice=lambda: 0),
        )
        monkeypatch.setitem(sys.modules, "torch", torch)

    def stats(self, device: int) -> dict[str, dict[str, dict[str, int]]]:
        assert self.is_begun, "asked before CUDA was begun"
        self.asked.append(device)
        held, record = self.held[device], self.records[device]
        return {"allocated_bytes": {"all": {"current": held, "peak": record}}}


def test_a_gpu_that_the_program_has_not_begun_to_use_is_left_alone(monkeypatch):
    cuda = Cuda(5)
    cuda.is_begun = False
    cuda.install(monkeypatch)
    gpu = Gpu()
    gpu.read()
    gpu.wait()
    assert (gpu.now, gpu.high, cuda.asked) == (0, 0, [])


def test_a_new_record_of_gpu_memory_is_a_peak_and_an_old_one_is_not(monkeypatch):
    cuda = Cuda(10)
    cuda.install(monkeypatch)
    gpu = Gpu()
    gpu.read()
    assert (gpu.now, gpu.high) == (10, 10)
    cuda.records[0] = 90
    gpu.read()
    assert (gpu.now, gpu.high) == (10, 90)
    gpu.read()
    assert (gpu.now, gpu.high) == (10, 10)


def test_of_many_devices_those_in_use_are_asked(monkeypatch):
    cuda = Cuda(10, 0, 7, 0)
    cuda.install(monkeypatch)
    gpu = Gpu()
    gpu.read()
    cuda.asked.clear()
    gpu.read()
    assert sorted(cuda.asked) == [0, 2]
    assert gpu.now == 17


def test_sections_tell_gpu_memory_and_wait_for_it_when_asked(record, monkeypatch):
    cuda = Cuda(100 * MB)
    cuda.install(monkeypatch)
    with section("forward", sync=True):
        cuda.held[0], cuda.records[0] = 130 * MB, 300 * MB
        time.sleep(0.001)
    found = measured(record)["forward",]
    assert (found.gpu, found.gpu_peak, found.gpu_delta) == (130 * MB, 300 * MB, 30 * MB)
    assert cuda.asked.count(-1) == 2


# --- cells of a notebook --------------------------------------------------------------------------


class Shell:
    """As much of IPython as an extension is told about."""

    def __init__(self) -> None:
        self.called: dict[str, list[Any]] = {"pre_run_cell": [], "post_run_cell": []}
        self.events = self

    def register(self, event: str, function: Any) -> None:
        self.called[event].append(function)

    def unregister(self, event: str, function: Any) -> None:
        self.called[event].remove(function)

    def run(self, text: str, **names: Any) -> None:
        info = SimpleNamespace(raw_cell=text, silent=False)
        for function in list(self.called["pre_run_cell"]):
            function(info)
        error = None
        try:
            exec(text, names)
        except Exception as raised:  # noqa: BLE001
            error = raised
        for function in list(self.called["post_run_cell"]):
            function(SimpleNamespace(info=info, error_in_exec=error))


def test_after_each_cell_its_time_and_memory_are_said(record, capsys):
    import relaunch

    shell = Shell()
    relaunch.load_ipython_extension(shell)
    relaunch.load_ipython_extension(shell)
    names: dict[str, Any] = {"kept": [], "taken": taken}
    shell.run("kept.append(taken(20 << 20))", **names)
    (line,) = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"cell: .* m?s, memory \+(19|20|21)\.\d MiB, now .* MiB, peak .* MiB", line)
    shell.run("1 / 0")
    assert capsys.readouterr().out.startswith("cell: ")
    shell.run("with section('inner'): pass", section=section)
    said = capsys.readouterr().out.splitlines()
    assert [one.split()[0] for one in said] == ["section", "inner", "cell:"]
    for _ in range(9):
        shell.run("kept.append(taken(3 << 20))  # again", **names)
    assert "per iteration: leak?" in capsys.readouterr().out.splitlines()[-1]
    relaunch.unload_ipython_extension(shell)
    shell.run("1")
    assert capsys.readouterr().out == ""
