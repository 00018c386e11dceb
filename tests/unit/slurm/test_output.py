"""Lines of ranks come whole, words of Slurm come apart; however the pipe cuts them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.trial.launch.slurm.output import Output


def shown(data: bytes, *, labelled: bool, step: int = 7) -> tuple[bytes, list[str]]:
    output = Output(labelled=labelled)
    parts = [output.take(1, data[at : at + step]) for at in range(0, len(data), step)]
    return b"".join([*parts, output.take(1, b"")]), output.said


def srun(task: int, line: bytes) -> bytes:
    """Write a line as srun -l does: a long one in fragments, each with a label and an end."""
    pieces = [line[at : at + 1024] for at in range(0, len(line), 1024)] or [b""]
    if len(pieces[-1]) == 1024:
        pieces.append(b"")
    return b"".join(b"%d: %s\n" % (task, piece) for piece in pieces)


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 2047, 2048, 7000, 100_000])
def test_a_line_that_came_in_fragments_is_whole_again(size):
    line = b"x" * size
    data = srun(3, line) + srun(3, b"next")
    assert shown(data, labelled=True, step=500)[0] == b"[rank3]: %s\n[rank3]: next\n" % line


def test_fragments_of_two_ranks_do_not_mix():
    ones, twos = srun(1, b"a" * 3000).splitlines(True), srun(2, b"b" * 3000).splitlines(True)
    mixed = b"".join(one + two for one, two in zip(ones, twos, strict=True))
    text, _ = shown(mixed, labelled=True, step=100)
    assert text == b"[rank1]: " + b"a" * 3000 + b"\n[rank2]: " + b"b" * 3000 + b"\n"


def test_what_torch_has_labelled_is_not_labelled_twice():
    assert shown(b"1: [rank1]: Traceback\n", labelled=True)[0] == b"[rank1]: Traceback\n"


def test_labels_may_have_zeros_before_them_and_components():
    assert shown(b"07: a\nP1 12: b\n", labelled=True)[0] == b"[rank7]: a\n[rank12]: b\n"


def test_a_last_line_without_an_end_is_not_lost():
    assert shown(b"0: a", labelled=True)[0] == b"[rank0]: a\n"
    assert shown(b"a", labelled=False)[0] == b"a"


def test_words_of_slurm_are_taken_out_and_what_is_not_understood_stays():
    data = b"hi\nsrun: error: node1: task 0: Exited with exit code 3\nsrun: a new thing\nbye"
    text, said = shown(data, labelled=False)
    assert text == b"hi\nsrun: a new thing\nbye"
    assert said == ["srun: error: node1: task 0: Exited with exit code 3"]


def test_a_prompt_is_shown_at_once_though_its_line_is_not_over():
    output = Output(labelled=False)
    assert output.take(1, b"name? ") == b"name? "
    assert output.take(1, b"srun: error: x: task 1: Killed\n") != b"", "in the middle of a line"


def test_carriage_returns_pass_as_they_are():
    assert shown(b"10%\r20%\rsr\r\n", labelled=False, step=1)[0] == b"10%\r20%\rsr\r\n"


@given(st.lists(st.binary(max_size=30)), st.integers(1, 9))
def test_without_labels_every_byte_of_a_program_comes_through(pieces, step):
    data = b"\n".join(piece.replace(b"srun", b"").replace(b"slurm", b"") for piece in pieces)
    assert shown(data, labelled=False, step=step)[0] == data
