"""The releases around a commit: the last without it and the first that has it."""

import pytest
from tests.histories import History, own_settings  # noqa: F401

from relaunch.history.releases import is_release, releases


@pytest.mark.parametrize(
    ("tag", "is_one"),
    [
        ("v1.2.3", True), ("1.2", True), ("release-1.2", True), ("REL_1_2", True),
        ("v4.33.0.dev0", True), ("18.3a4", True), ("v2.0.0-rc.1", True), ("1.0.post1", True),
        ("v1.0-beta2", True), ("jax-v0.4.1", True), ("pkg@1.2.0", True), ("1.2.3+cu118", True),
        ("nightly", False), ("v5", False), ("ciflow/trunk/12345", False), ("2024-01-15", False),
        ("before-1.2-rewrite", False), ("", False), ("v1.2.3-windows", False),
    ],
)  # fmt: skip
def test_tags_that_look_like_versions_are_releases(tag, is_one):
    assert is_release(tag) is is_one


def test_the_releases_before_and_after(tmp_path):
    history = History(tmp_path / "p")
    ids = []
    for name in ("", "v0.9", "v1.0rc1", "", "", "v1.1", "v1.2", "nightly"):
        ids.append(history.commit("x"))
        if name:
            history.git("tag", *(["-a", "-m", name] if name == "v1.1" else []), name)
    found = [releases(history.repo, commit) for commit in ids]
    assert found == [
        ("", "v0.9"), ("", "v0.9"), ("v0.9", "v1.0rc1"), ("v1.0rc1", "v1.1"), ("v1.0rc1", "v1.1"),
        ("v1.0rc1", "v1.1"), ("v1.1", "v1.2"), ("v1.2", ""),
    ]  # fmt: skip


def test_a_final_release_is_preferred_to_a_candidate_of_the_same_commit(tmp_path):
    history = History(tmp_path / "p")
    history.commit("x")
    for name in ("v1.0.0", "v1.0.0rc2", "v1.0", "v1.0.0-alpha"):
        history.git("tag", name)
    new = history.commit("y")
    for name in ("v2.0rc1", "v2.0"):
        history.git("tag", name)
    assert releases(history.repo, new) == ("v1.0.0", "v2.0")


def test_releases_made_on_branches_of_their_own_count(tmp_path):
    history = History(tmp_path / "p")
    history.commit(a="1")
    history.branch("release-1")
    history.commit("bump")
    history.git("tag", "v1.0")
    history.git("checkout", "-q", "main")
    culprit = history.commit(a="2")
    history.git("checkout", "-q", "release-1")
    history.commit("patch")
    history.git("tag", "v1.0.1")
    history.git("checkout", "-q", "main")
    history.branch("release-2")
    history.commit("bump")
    history.git("tag", "v2.0")
    history.git("checkout", "-q", "release-1")
    history.commit("late patch")
    history.git("tag", "v1.0.2")
    assert releases(history.repo, culprit) == ("v1.0.1", "v2.0")


def test_releases_are_in_the_order_of_their_commits_though_clocks_were_wrong(tmp_path):
    history = History(tmp_path / "p")
    commits = []
    for name, history.hours in (("v3.0", 9), ("v2.0", 2), ("v1.0", 2), ("v0.1", 5)):
        commits.append(history.commit("x"))
        history.git("tag", name)
    assert releases(history.repo, commits[1]) == ("v3.0", "v2.0")
    assert releases(history.repo, commits[2]) == ("v2.0", "v1.0")


def test_without_tags_there_are_no_releases_and_odd_ones_do_no_harm(tmp_path):
    history = History(tmp_path / "p")
    commit = history.commit(a="1")
    assert releases(history.repo, commit) == ("", "")
    history.git("tag", "v1.0-näme")
    history.git("tag", b"byte\xff")
    history.git("tag", "v9.9", "HEAD:a.py")
    history.git("tag", "line\N{LINE SEPARATOR}1.0")
    assert releases(history.repo, commit) == ("", "")
