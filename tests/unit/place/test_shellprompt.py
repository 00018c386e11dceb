"""A shell that may take less says so; other commands are left as they are."""

import pytest

from relaunch.trial.place.shellprompt import kind_of, prompted, safe_label


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["bash"], "bash"), (["/usr/local/bin/bash", "-i"], "bash"), (["-zsh"], "zsh"),
        (["dash"], "sh"), (["bash", "-c", "ls"], ""), (["sh", "run.sh"], ""), (["python"], ""),
        (["bash", "--norc"], "bash"), (["bash", "-l"], "bash"), (["bash", "-lc", "ls"], ""),
        (["fish", "--command=ls"], ""),
        (["bash", "--rcfile", "mine"], "bash"), (["bash", "--rcfile", "mine", "run.sh"], ""),
    ],
)  # fmt: skip
def test_a_shell_is_known_by_its_name_and_that_it_has_no_script(words, kind):
    assert kind_of(words) == kind


def test_what_would_mean_something_in_a_prompt_is_not_shown():
    assert safe_label(["5G", "/tmp/$(rm x)=1G", "gpu 0=3G"]) == "[5G /tmp/??rm x?=1G gpu 0=3G]"


def test_the_folder_and_file_that_a_person_has_set_are_kept_for_the_shell():
    zsh = prompted(["zsh"], "[5G]", "/f", {"ZDOTDIR": "/mine"})
    sh = prompted(["sh"], "[5G]", "/f", {"ENV": "/mine/rc"})
    assert zsh is not None
    assert sh is not None
    assert zsh.env == {"ZDOTDIR": "/f", "RELAUNCH_ZDOTDIR": "/mine"}
    assert sh.env == {"ENV": "/f/shrc", "RELAUNCH_ENV": "/mine/rc"}


@pytest.mark.parametrize(
    ("words", "argv", "read"),
    [
        (["bash", "-i"], ("bash", "--rcfile", "/f/bashrc", "-i"), "~/.bashrc"),
        (["bash", "--norc"], ("bash", "--rcfile", "/f/bashrc"), "/dev/null"),
        (["bash", "--rcfile", "m y"], ("bash", "--rcfile", "/f/bashrc"), "'./m y'"),
    ],
)
def test_bash_reads_ours_and_we_read_the_file_that_it_would_have_read(words, argv, read):
    shell = prompted(words, "[5G]", "/f", {})
    assert shell is not None
    assert shell.argv == argv
    assert shell.files["/f/bashrc"].startswith(f"[ -f {read} ] && . {read}\n")


def test_a_bash_that_logs_in_is_a_shell_without_a_prompt_of_ours():
    assert prompted(["bash", "-l"], "[5G]", "/f", {}) is None


def test_a_command_that_is_no_shell_needs_nothing():
    assert prompted(["python", "train.py"], "[5G]", "/f", {}) is None
