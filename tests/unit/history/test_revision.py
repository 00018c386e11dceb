"""Any word for a commit is understood, and one that is not gets the nearest names."""

import os
import subprocess

import pytest
from tests.histories import History, own_settings  # noqa: F401

from relaunch.errors import UsageError
from relaunch.history.repository import open_repository
from relaunch.history.revision import nearest, resolve


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    made = History(tmp_path_factory.mktemp("revision") / "p")
    made.commit(a="1")
    made.git("tag", "v4.33.0")
    made.commit(a="2")
    made.git("tag", "-a", "v4.33.1", "-m", "annotated")
    made.git("tag", "-a", "v4.33.1-again", "-m", "of a tag", "v4.33.1")
    made.git("tag", "odd/näme(1)")
    made.git("tag", os.fsencode(b"byte\xff"))
    made.git("tag", "file", "HEAD:a.py")
    made.commit(a="3")
    made.git("branch", "topic", "HEAD~2")
    made.git("update-ref", "refs/remotes/origin/far", "HEAD~1")
    made.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/far")
    return made


@pytest.mark.parametrize(
    ("word", "commit"),
    [
        ("HEAD", "main"),
        ("@", "main"),
        ("main~2", "main~2"),
        ("topic", "main~2"),
        ("origin/far", "main~1"),
        ("v4.33.0", "main~2"),
        ("v4.33.1", "main~1"),
        ("v4.33.1-again", "main~1"),
        ("refs/tags/v4.33.0", "main~2"),
        ("odd/näme(1)", "main~1"),
        (os.fsdecode(b"byte\xff"), "main~1"),
        ("main^{/more}", "main"),
    ],
)
def test_a_word_becomes_the_full_id_of_its_commit(history, word, commit):
    assert resolve(history.repo, word) == history.git("rev-list", "-1", commit)


def test_an_id_may_be_full_or_short(history):
    full = history.git("rev-parse", "HEAD~1")
    for length in (len(full), 12, 7):
        assert resolve(history.repo, full[:length]) == full


def test_ids_of_64_digits_are_ids(tmp_path):
    long = History(tmp_path / "p", "--object-format=sha256")
    commit = long.commit(a="1")
    assert len(commit) == 64
    assert resolve(long.repo, "HEAD") == resolve(long.repo, commit[:9]) == commit


@pytest.mark.parametrize("word", ["", "-1", "--all", "^HEAD", "a\0b"])
def test_words_that_git_would_read_otherwise_are_refused(history, word):
    with pytest.raises(UsageError, match="names no commit") as refused:
        resolve(history.repo, word)
    assert refused.value.hint == "git log --oneline"


@pytest.mark.parametrize("word", ["HEAD~1..HEAD", "HEAD^@", "HEAD^!", "main...topic"])
def test_a_range_is_no_commit(history, word):
    with pytest.raises(UsageError, match="no revision"):
        resolve(history.repo, word)


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("v4.33", "v4.33.0, v4.33.1, v4.33.1-again"),
        ("4.33.0", "v4.33.0"),
        ("far", "origin/far"),
        ("tpoic", "topic"),
    ],
)
def test_an_unknown_word_gets_the_nearest_names(history, word, near):
    with pytest.raises(UsageError) as refused:
        resolve(history.repo, word)
    assert refused.value.message == f"no revision `{word}`; nearest: {near}"
    assert refused.value.hint == f"git log -1 {near.split(',')[0]}"


def test_a_word_that_is_near_to_nothing_may_not_be_fetched_yet(history):
    with pytest.raises(UsageError) as refused:
        resolve(history.repo, "0123456789abcdef")
    assert refused.value.message == "no revision `0123456789abcdef`"
    assert refused.value.hint == "git fetch --all --tags"


@pytest.mark.parametrize("word", ["file", "HEAD:a.py"])
def test_what_is_no_commit_is_said_to_be_what_it_is(history, word):
    with pytest.raises(UsageError, match=f"`{word}` is a blob, not a commit"):
        resolve(history.repo, word)


def test_a_short_id_of_several_commits_is_ambiguous_and_one_of_several_files_unknown(tmp_path):
    many = History(tmp_path / "p")
    commits = many.graph([[]] + [[at] for at in range(1199)])
    starts = [commit[:4] for commit in commits]
    word = next(start for start in starts if starts.count(start) > 1)
    meant = [commit[:10] for commit in sorted(commits) if commit.startswith(word)]
    for asked in (word, f"{word}~2", word.upper()):
        with pytest.raises(UsageError) as refused:
            resolve(many.repo, asked)
        assert refused.value.message == f"`{asked}` is ambiguous: {', '.join(meant)}"
    assert resolve(many.repo, refused.value.hint.split()[-1]) in commits
    listed = many.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    others = [name[:4] for name in listed if name[:4] not in starts]
    word = next(start for start in others if others.count(start) > 1)
    with pytest.raises(UsageError, match=f"no revision `{word}`"):
        resolve(many.repo, word)


def test_in_a_shallow_clone_the_cut_is_told(history, tmp_path):
    clone = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth", "2", "--branch", "main",
                    f"file://{history.top}", str(clone)], check=True)  # fmt: skip
    repo = open_repository(str(clone))
    assert repo.is_shallow
    with pytest.raises(UsageError) as refused:
        resolve(repo, "v3.0")
    cut = "this clone is shallow, its history is cut at 2 commits"
    assert refused.value.message.startswith(f"no revision `v3.0`: {cut}")
    assert refused.value.hint == "git fetch --unshallow --tags"
    subprocess.run(["git", "-C", str(clone), "fetch", "-q", "--unshallow", "--tags"], check=True)
    assert not open_repository(str(clone)).is_shallow
    assert resolve(repo, "v4.33.0") == history.git("rev-parse", "v4.33.0")


@pytest.mark.parametrize(
    ("word", "names", "near"),
    [
        ("4.3", ["v4.33.0", "v4.3.10", "v4.3.9"], ["v4.3.9", "v4.3.10"]),
        ("v2", ["release-2.0", "v20"], ["release-2.0"]),
        ("V1.0", ["v1.0"], ["v1.0"]),
        ("release", ["main", "release-2", "releases"], ["release-2"]),
        ("xyz", ["main", "v1"], []),
        ("main", [], []),
    ],
)
def test_names_are_near_by_what_people_leave_out(word, names, near):
    assert nearest(word, names) == near
