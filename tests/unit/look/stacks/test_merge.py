"""Many stacks as one tree: who is where, who is the odd one out, and no thread is lost."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as some
from tests.depth import examples

from relaunch.look.stacks import Frame, ProcessStacks, Thread
from relaunch.look.stacks.merge import Branch, Group, leaves, merge
from relaunch.look.stacks.ranges import ranges, unfold
from relaunch.look.stacks.variables import MISSING, compared


def frames(*places: str, values: dict[str, str] | None = None) -> tuple[Frame, ...]:
    """Frames `file:line function` from the outermost, which is how a person says them."""
    found = []
    for one in places:
        at, function = one.split(" ")
        file, line = at.split(":")
        found.append(Frame(file=file, line=int(line), function=function))
    if values:
        found[-1] = found[-1].but(locals=values)
    return tuple(reversed(found))


def rank(number: int, *places: str, values: dict[str, str] | None = None, **more) -> ProcessStacks:
    thread = Thread(id=100 + number, name="MainThread", frames=frames(*places, values=values))
    return ProcessStacks(
        pid=100 + number, node="a", command="python train.py", rank=number, rank_from="RANK",
        **{"threads": (thread,), "read_by": "py-spy", **more},
    )  # fmt: skip


def who(group: Group, branch: Branch) -> str:
    return ranges(group.processes[at].rank or 0 for at in branch.members)


def outline(group: Group, branches=None, indent: str = "") -> list[str]:
    found = []
    for one in group.main if branches is None else branches:
        words = " ".join(frame.function for frame in one.frames) or one.problem or "(here)"
        found.append(f"{indent}{who(group, one)} {words}{' <- odd' if one.is_odd else ''}")
        found += outline(group, one.below, indent + "  ")
    return found


REDUCE = ("t.py:9 main", "t.py:5 step", "d.py:70 all_reduce")
BARRIER = ("t.py:9 main", "t.py:6 step", "d.py:80 barrier")


def test_the_rank_that_is_elsewhere_is_the_odd_one_out():
    (group,) = merge(rank(n, *(BARRIER if n == 5 else REDUCE)) for n in range(8)).groups
    assert (group.kind, len(group.processes)) == ("ranks", 8)
    assert outline(group) == [
        "0-7 main",
        "  0-4,6-7 step all_reduce",
        "  5 step barrier <- odd",
    ]


def test_halves_are_not_odd_and_neither_is_one_of_two():
    (group,) = merge(rank(n, *(BARRIER if n % 2 else REDUCE)) for n in range(8)).groups
    assert not any("odd" in line for line in outline(group))
    (group,) = merge([rank(0, *REDUCE), rank(1, *BARRIER)]).groups
    assert not any("odd" in line for line in outline(group))


def test_a_stack_that_is_the_beginning_of_another_ends_where_it_ends():
    (group,) = merge([rank(0, *REDUCE[:2]), rank(1, *REDUCE), rank(2, *REDUCE)]).groups
    assert outline(group) == ["0-2 main step", "  1-2 all_reduce", "  0 (here) <- odd"]


def test_a_rank_that_could_not_be_read_is_in_the_tree_with_the_reason():
    bad = rank(2, threads=(), read_by="", problem="permission denied")
    (group,) = merge([rank(0, *REDUCE), rank(1, *REDUCE), bad]).groups
    assert outline(group) == ["0-1 main step all_reduce", "2 permission denied <- odd"]


def test_a_rank_that_should_be_there_and_is_not_is_missing():
    (group,) = merge(rank(n, *REDUCE, world_size=4) for n in (0, 1, 3)).groups
    assert group.missing == (2,)


def test_workers_of_ranks_and_launchers_are_apart_from_the_ranks():
    loader = ("w.py:3 worker_loop",)
    worker = [
        rank(n, *loader, parent=100 + n).but(pid=200 + n) for n in range(2)
    ]  # they have inherited the variable
    launcher = ProcessStacks(pid=1, node="a", command="torchrun t.py", rank=0,
                             rank_from="SLURM_PROCID")  # fmt: skip
    merged = merge([*worker, launcher, *(rank(n, *REDUCE, parent=1) for n in range(2))])
    assert [(one.kind, len(one.processes)) for one in merged.groups] == [
        ("ranks", 2), ("workers", 2), ("processes", 1),
    ]  # fmt: skip


def test_jobs_of_different_worlds_are_not_mixed():
    found = merge([rank(0, *REDUCE, world="job 1"), rank(0, *REDUCE, world="job 2")])
    assert [group.world for group in found.groups] == ["job 1", "job 2"]


def plain(pid: int, command: str, parent: int = 0, **more) -> ProcessStacks:
    thread = Thread(id=pid, name="MainThread", frames=frames("w.py:3 get"))
    return ProcessStacks(
        pid=pid, node="a", command=command, parent=parent, **{"threads": (thread,), **more}
    )


def test_forked_workers_are_compared_with_each_other_and_not_with_their_parent():
    pool = [plain(10, "python pool.py"), *(plain(n, "python pool.py", 10) for n in (11, 12, 13))]
    sizes = [len(group.processes) for group in merge(pool).groups]
    assert sizes == [1, 3]


def test_workers_whose_commands_differ_by_numbers_are_alike():
    spawned = [plain(n, f"python -c spawn_main(pipe_handle={n})", 1) for n in (11, 12)]
    (group,) = merge(spawned).groups
    assert len(group.processes) == 2


def test_what_is_no_python_or_has_ended_is_no_member_of_a_group():
    shell = ProcessStacks(pid=5, command="sh run.sh", is_python=False)
    ended = ProcessStacks(pid=6, command="python", state="Z")
    merged = merge([shell, ended, plain(7, "python a.py")])
    assert [one.pid for one in merged.foreign] == [5, 6]
    assert merged.processes == 3


def test_other_threads_have_a_tree_of_their_own_and_several_of_a_process_count():
    workers = tuple(
        Thread(id=n, name=f"pool_{n}", frames=frames("threading.py:9 run", "q.py:3 get"))
        for n in (8, 9)
    )
    one = plain(7, "python a.py")
    (group,) = merge([one.but(threads=(*workers, *one.threads))]).groups
    (branch,) = group.others
    assert (branch.members, branch.threads, branch.names) == ((0,), 2, ("pool_8", "pool_9"))


def test_threads_without_frames_are_told_apart_by_what_the_kernel_says():
    def thread(doing: str) -> tuple[Thread, ...]:
        return (Thread(id=0, name="MainThread", frames=(), doing=doing),)

    one, two = plain(1, "python a.py", threads=thread("futex")), plain(2, "python a.py")
    (group,) = merge([one, two.but(threads=thread("read"))]).groups
    assert [branch.doing for branch in group.main] == [("futex",), ("read",)]


def test_native_frames_merge_though_their_addresses_and_templates_differ():
    def native(number: int, address: str, kind: str) -> ProcessStacks:
        found = rank(number, "t.py:9 main")
        more = tuple(
            Frame(file="libtorch.so", line=0, function=name, is_native=True)
            for name in (f"void c10d::wait<{kind}>({kind}&) const", address)
        )
        (thread,) = found.threads
        return found.but(threads=(thread.but(frames=(*more, *thread.frames)),))

    (group,) = merge([native(0, "0x7f01", "int"), native(1, "0x7f99", "float")]).groups
    assert outline(group) == ["0-1 main ? c10d::wait"]


# --- variables ------------------------------------------------------------------------------------


def test_a_variable_says_who_has_which_value_numbers_in_their_order():
    values = [(3, {"step": "2"}), (0, {"step": "3"}), (1, {"step": "4"}), (2, {"step": "4"})]
    (step,) = compared(values)
    assert [(one.text, one.members) for one in step.values] == [
        ("2", (3,)), ("3", (0,)), ("4", (1, 2)),
    ]  # fmt: skip


def test_addresses_make_no_difference_and_a_variable_that_one_lacks_does():
    model, extra = compared(
        [(0, {"m": "<Net at 0x7f01>"}), (1, {"m": "<Net at 0x7f02>", "e": "1"})]
    )
    assert not model.differs
    assert [one.text for one in extra.values] == [MISSING, "1"]


def test_the_variables_of_a_branch_are_compared_over_its_members():
    (group,) = merge(rank(n, *REDUCE, values={"step": str(n // 2)}) for n in range(4)).groups
    (branch,) = group.main
    assert branch.variables[:2] == ((), ())
    (step,) = branch.variables[2]
    assert [(one.text, one.members) for one in step.values] == [("0", (0, 1)), ("1", (2, 3))]


# --- laws -----------------------------------------------------------------------------------------

a_frame = some.builds(
    Frame, file=some.sampled_from(["a.py", "b.py"]), line=some.integers(1, 2),
    function=some.sampled_from(["f", "g"]),
    locals=some.dictionaries(some.sampled_from("xy"), some.sampled_from(["1", "2", "-0"]),
                             max_size=2),
)  # fmt: skip
a_thread = some.builds(
    Thread, id=some.integers(0, 5), name=some.sampled_from(["", "MainThread", "w"]),
    frames=some.lists(a_frame, max_size=5).map(tuple),
    doing=some.sampled_from(["", "futex"]),
)  # fmt: skip
a_process = some.builds(
    ProcessStacks, pid=some.integers(1, 5), node=some.sampled_from(["a", "b"]),
    command=some.sampled_from(["python a.py", "python b.py 1"]), parent=some.integers(0, 5),
    rank=some.none() | some.integers(0, 3), rank_from=some.sampled_from(["RANK", "LOCAL_RANK"]),
    is_python=some.booleans(), threads=some.lists(a_thread, max_size=3).map(tuple),
)  # fmt: skip
processes = some.lists(a_process, max_size=8, unique_by=lambda one: (one.node, one.pid))


def keys(stack) -> tuple[tuple[str, int, str], ...]:
    return tuple((one.file, one.line, one.function) for one in stack)


@examples(60)
@given(processes)
def test_every_thread_is_at_exactly_one_end_of_the_tree(everyone):
    merged = merge(everyone)
    assert merged.processes == len(everyone)
    for group in merged.groups:
        told = [
            keys(stack)
            for tree in (group.main, group.others)
            for branch, stack in leaves(tree)
            for _ in range(branch.threads)
        ]
        real = [keys(t.frames[::-1]) for one in group.processes for t in one.threads]
        assert sorted(told) == sorted(real)


@examples(30)
@given(processes, some.randoms(use_true_random=False))
def test_the_order_in_which_processes_come_does_not_matter(everyone, chance: random.Random):
    shuffled = [*everyone]
    chance.shuffle(shuffled)
    assert merge(shuffled) == merge(everyone)


@given(some.sets(some.integers(0, 200)))
def test_ranges_say_exactly_the_numbers(numbers):
    assert unfold(ranges(numbers)) == sorted(numbers)


def test_stacks_deeper_than_python_recurses_are_merged():
    deepest = frames(*(f"r.py:{n} f" for n in range(1100)))

    def at(depth: int) -> tuple[Thread, ...]:
        return (Thread(id=100 + depth, name="MainThread", frames=deepest[-depth:]),)

    (group,) = merge([rank(n, threads=at(n)) for n in range(1, 1101)]).groups
    assert len(leaves(group.main)) == 1100
