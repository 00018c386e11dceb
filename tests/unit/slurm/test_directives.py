"""Batch scripts are read as sbatch reads them; what it does with each line was looked at there."""

import pytest

from relaunch.errors import UsageError
from relaunch.trial.launch.slurm.directives import read_directives


def words(*lines: str) -> tuple[str, ...]:
    (found,) = read_directives("\n".join(["#!/bin/sh", *lines]), "job.sh").components
    return found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#SBATCH -N 2", ("-N", "2")),
        ("#SBATCH\t--nodes=2   -t 10", ("--nodes=2", "-t", "10")),
        ("#SBATCH--nodes=2", ("--nodes=2",)),
        ("#SBATCH -J 'a b'", ("-J", "a b")),
        ('#SBATCH --comment="say \\"yes\\""', ('--comment=say "yes"',)),
        ("#SBATCH --comment=a\\ b", ("--comment=a", "b")),
        ("#SBATCH --comment='a\"b'", ('--comment=a"b',)),
        ("#SBATCH -N 2 # two of them", ("-N", "2")),
        ("#SBATCH -N 2#two", ("-N", "2")),
        ("#SBATCH --comment='#1'", ("--comment=#1",)),
        ("#SBATCH --comment=\\#1 -N 2", ("--comment=#1", "-N", "2")),
        ('#SBATCH --comment "" -N 2', ("--comment",)),
        ("#SLURM -N 2", ("-N", "2")),
        ("##SBATCH -N 2", ()),
        ("# SBATCH -N 2", ()),
        (" #SBATCH -N 2", ()),
        ("#sbatch -N 2", ()),
        ("#SBATCH", ()),
    ],
)
def test_a_line_gives_the_words_that_sbatch_takes_from_it(line, expected):
    assert words(line) == expected


def test_directives_end_at_the_first_command_but_not_at_comments_or_empty_lines():
    text = "#!/bin/sh\n#SBATCH -N 1\n\n# why\n  # indented\n#SBATCH -n 2\necho hi\n#SBATCH -t 5\n"
    found = read_directives(text, "job.sh")
    assert found.components == (("-N", "1", "-n", "2"),)
    assert found.late == (8,)


def test_lines_that_look_like_directives_and_are_none_are_named():
    found = read_directives("#!/bin/sh\n##SBATCH -N 1\n# SBATCH -n 2\n#PBS -l x\n", "job.sh")
    assert found.components == ((),)
    assert (found.commented, found.foreign) == ((2, 3), (4,))


@pytest.mark.parametrize("word", ["hetjob", "packjob", "HETJOB"])
def test_a_component_begins_where_sbatch_sees_one(word):
    text = f"#!/bin/sh\n#SBATCH -N 1\n#SBATCH {word}\n#SBATCH -N 2\n"
    assert read_directives(text, "job.sh").components == (("-N", "1"), ("-N", "2"))


def test_the_rest_of_the_line_that_begins_a_component_is_not_read():
    text = "#!/bin/sh\n#SBATCH -N 1\n#SBATCH hetjob -N 2\n"
    assert read_directives(text, "job.sh").components == (("-N", "1"), ())


def test_a_component_begins_only_with_a_line():
    text = "#!/bin/sh\n#SBATCH -N 1 # hetjob\n#SBATCH -n 2 hetjob\n"
    assert read_directives(text, "job.sh").components == (("-N", "1", "-n", "2"),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#SBATCH -N 2\n", "no batch script"),
        ("#!/bin/sh\r\n#SBATCH -N 2\r\n", "line ends of DOS"),
        ("#!/bin/sh\n#SBATCH -J 'a\n", "job.sh:2: ' is not closed"),
        ("#!/bin/sh\n#SBATCH -N 1 : -N 2\n", "unexpected `:`"),
    ],
)
def test_what_sbatch_refuses_is_refused_in_one_line(text, said):
    with pytest.raises(UsageError, match=said):
        read_directives(text, "job.sh")
