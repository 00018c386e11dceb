"""From options of sbatch to words of salloc, and what is said of the rest."""

import pytest

from relaunch.errors import UsageError
from relaunch.trial.launch.slurm.asked import asked_by_file, asked_by_words, read_array
from relaunch.trial.launch.slurm.options import Given, from_variables, read_options


def asked(*lines, words=(), env=None):
    text = "\n".join(["#!/bin/sh", *lines, "hostname\n"])
    return asked_by_file(text, "/home/me/job.sh", words=words, env=env or {})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["-N2"], [("nodes", "2")]),
        (["-N", "2"], [("nodes", "2")]),
        (["--nodes", "2"], [("nodes", "2")]),
        (["--nodes=2"], [("nodes", "2")]),
        (["--part", "debug"], [("partition", "debug")]),
        (["-HO"], [("hold", None), ("overcommit", None)]),
        (["-OJname"], [("overcommit", None), ("job-name", "name")]),
        (["--exclusive"], [("exclusive", None)]),
        (["--exclusive=user"], [("exclusive", "user")]),
        (["--exclusive", "-N1"], [("exclusive", None), ("nodes", "1")]),
        (["-k", "-N1"], [("no-kill", None), ("nodes", "1")]),
        (["--tasks=3"], [("ntasks", "3")]),
        (["--of-a-plugin", "x", "-N1"], [("of-a-plugin", "x"), ("nodes", "1")]),
        (["--comment", "--nodes=9"], [("comment", "--nodes=9")]),
    ],
)
def test_options_are_read_as_getopt_does(given, expected):
    assert [(one.name, one.value) for one in read_options(given, "job.sh")] == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["python"], "`python` is no option"),
        (["-N2", "--", "x"], "`--` is no option"),
        (["--ntasks-per=2"], "could be --ntasks-per-core or"),
        (["-N"], "-N needs a value"),
        (["-Z"], "no option -Z"),
    ],
)
def test_words_that_are_no_options_are_refused(given, said):
    with pytest.raises(UsageError, match=said):
        read_options(given, "job.sh")


def test_a_job_is_called_as_its_script_unless_it_has_a_name():
    assert asked("#SBATCH -N 2").components == (("--nodes=2", "--job-name=job.sh"),)
    assert asked("#SBATCH -J x").components == (("--job-name=x",),)


def test_variables_go_over_the_script_and_typed_words_over_both():
    found = asked("#SBATCH -t 1 -p a", words=["-t", "3"], env={"SBATCH_PARTITION": "b"})
    (words,) = found.components
    assert words.index("--partition=b") > words.index("--partition=a")
    assert words.index("--time=3") > words.index("--time=1")


@pytest.mark.parametrize(
    ("variable", "value", "word"),
    [
        ("SBATCH_TIMELIMIT", "5", "--time=5"),
        ("SBATCH_MEM_PER_NODE", "1G", "--mem=1G"),
        ("SBATCH_ARRAY_INX", "1-3", "--array=1-3"),
        ("SBATCH_EXCLUSIVE", "", "--exclusive"),
        ("SBATCH_OVERCOMMIT", "1", "--overcommit"),
        ("SBATCH_GPUS_PER_NODE", "2", "--gpus-per-node=2"),
    ],
)
def test_variables_of_sbatch_are_options(variable, value, word):
    assert [one.word for one in from_variables({variable: value, "SBATCH_DEBUG": "1"})] == [word]


def test_what_an_allocation_cannot_have_is_named_with_its_reason():
    found = asked("#SBATCH -o out.txt --error err.txt", "#SBATCH -i in -N1", "#SBATCH --requeue -H")
    assert found.components == (("--nodes=1", "--job-name=job.sh"),)
    assert len(found.remarks) == 3
    assert found.remarks[0].startswith("--output and --error: ")
    assert any("--hold" in one for one in found.remarks)
    assert not any("requeue" in one for one in found.remarks)


def test_an_array_is_one_element_with_its_variables():
    found = asked("#SBATCH --array=2-8:3%2")
    assert found.array == (2, 5, 8)
    assert found.variables == {
        "SLURM_ARRAY_TASK_ID": "2",
        "SLURM_ARRAY_TASK_COUNT": "3",
        "SLURM_ARRAY_TASK_MIN": "2",
        "SLURM_ARRAY_TASK_MAX": "8",
        "SLURM_ARRAY_TASK_STEP": "3",
    }
    assert not any("array" in word for word in found.components[0])


@pytest.mark.parametrize("spec", ["", "x", "5-2", "1,,2"])
def test_an_array_without_elements_is_refused(spec):
    with pytest.raises(UsageError, match="names no element"):
        read_array(spec)


def test_exported_variables_are_set_and_a_smaller_environment_is_named():
    found = asked("#SBATCH --export=\"ALL,A=1,B='x,y'\"")
    assert found.variables == {"A": "1", "B": "x,y"}
    assert not found.remarks
    assert "whole environment" in asked("#SBATCH --export=NONE").remarks[0]


def test_exported_variables_of_a_file(tmp_path):
    (tmp_path / "vars").write_bytes(b"A=1\0B=two words\0")
    found = asked(f"#SBATCH --export-file={tmp_path}/vars")
    assert found.variables == {"A": "1", "B": "two words"}


def test_what_only_srun_takes_goes_to_srun():
    assert asked("#SBATCH --propagate=NOFILE").srun == ("--propagate=NOFILE",)


def test_the_shell_of_a_batch_job_gets_no_signal_because_there_is_none():
    assert "--signal=USR1@60" in asked("#SBATCH --signal=B:USR1@60").components[0]
    assert "--signal=R:USR1@60" in asked("#SBATCH --signal=RB:USR1@60").components[0]


def test_late_and_foreign_directives_are_remarked_upon():
    text = "#!/bin/sh\n#PBS -l x\ntrue\n#SBATCH -N 2\n"
    found = asked_by_file(text, "job.sh", env={})
    assert any("job.sh:4" in one for one in found.remarks)
    assert any("#PBS" in one for one in found.remarks)


def test_components_of_typed_words_are_parted_by_a_colon():
    found = asked_by_words(["-N1", ":", "-N", "2"])
    assert found.components == (("--nodes=1", "--job-name=relaunch"), ("--nodes=2",))


def test_an_option_prints_as_one_word():
    assert Given(name="comment", value="a b").word == "--comment=a b"
    assert Given(name="exclusive").word == "--exclusive"
