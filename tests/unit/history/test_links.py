"""A commit and its pull request have their pages, and no secret is ever shown."""

import pytest
from tests.histories import History, own_settings  # noqa: F401

from relaunch.history.line import message
from relaunch.history.links import Links, links, remote_of, without_secret

ID = "0123456789abcdef0123456789abcdef01234567"
GITHUB = f"https://github.com/o/n/commit/{ID}"


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("https://github.com/o/n", GITHUB),
        ("https://github.com/o/n.git", GITHUB),
        ("https://github.com/o/n.git/", GITHUB),
        ("https://GitHub.com/o/n", GITHUB),
        ("https://user:s3cret@github.com/o/n.git", GITHUB),
        ("https://token@github.com/o/n.git", GITHUB),
        ("https://user:p@ss@github.com/o/n.git", GITHUB),
        ("git@github.com:o/n.git", GITHUB),
        ("github.com:o/n", GITHUB),
        ("ssh://git@github.com/o/n.git", GITHUB),
        ("ssh://git@ssh.github.com:443/o/n.git", GITHUB),
        ("git://github.com/o/n.git", GITHUB),
        ("git+ssh://git@github.com/o/n", GITHUB),
        ("https://github.example.org/o/n", f"https://github.example.org/o/n/commit/{ID}"),
        ("git@gitlab.com:g/sub/n.git", f"https://gitlab.com/g/sub/n/-/commit/{ID}"),
        ("ssh://git@gitlab.example.org:2222/g/n.git", f"https://gitlab.example.org/g/n/-/commit/{ID}"),
        ("https://gitlab.example.org:8443/g/n", f"https://gitlab.example.org:8443/g/n/-/commit/{ID}"),
        ("git@bitbucket.org:o/n.git", f"https://bitbucket.org/o/n/commits/{ID}"),
        ("https://codeberg.org/o/n.git", f"https://codeberg.org/o/n/commit/{ID}"),
        ("https://gitea.example.org/o/n.git", f"https://gitea.example.org/o/n/commit/{ID}"),
        ("http://gitea.local:3000/o/n", f"http://gitea.local:3000/o/n/commit/{ID}"),
        ("", ""),
        ("/srv/git/o/n.git", ""),
        ("../github.com/o", ""),
        ("file:///srv/github.com/o/n", ""),
        ("C:/github.com/n", ""),
        ("https://example.org/o/n", ""),
        ("https://notgithub.com/o/n", ""),
        ("git@example.org:o/n.git", ""),
        ("https://github.com/o", ""),
        ("https://github.com/o/n/extra", ""),
        ("https://github.com/o/n\x1b[31m", ""),
        ("https://github.com/o/n m", ""),
        ("https://", ""),
    ],
)  # fmt: skip
def test_the_page_of_a_commit(url, page):
    assert links(url, ID, "subject") == Links(commit=page)


@pytest.mark.parametrize(
    ("host", "text", "page"),
    [
        ("github.com", "Fix it (#123)", "/pull/123"),
        ("github.com", "Fix it (#1004) (#1009)", "/pull/1009"),
        ("github.com", "Fix it (#123)\n\nMore of it", "/pull/123"),
        ("github.com", "Merge pull request #12 from o/topic\n\nFix (#9)", "/pull/12"),
        ("github.com", "Fix #123", ""),
        ("github.com", "Fix (#123) for good", ""),
        ("github.com", "Fix\n\nas in (#123)", ""),
        ("gitlab.com", "Merge branch 'a' into 'main'\n\nFix\n\nSee merge request o/n!12",
         "/-/merge_requests/12"),
        ("gitlab.com", "Fix (!7)", "/-/merge_requests/7"),
        ("gitlab.com", "Fix (#7)", ""),
        ("bitbucket.org", "Merged in topic (pull request #5)\n\nFix", "/pull-requests/5"),
        ("codeberg.org", "Merge pull request 'Fix' (#8) from a into main", "/pulls/8"),
        ("codeberg.org", "Fix (#8)", "/pulls/8"),
        ("github.com", "", ""),
    ],
)  # fmt: skip
def test_the_page_of_a_pull_request(host, text, page):
    found = links(f"https://me:s3cret@{host}/o/n.git", ID, text)
    assert found.pull == (f"https://{host}/o/n{page}" if page else "")
    assert "s3cret" not in repr(found)


def test_the_whole_message_is_read(tmp_path):
    history = History(tmp_path / "p")
    commit = history.commit("Merge branch 'x'\n\nSee merge request g/n!3\n")
    assert message(history.repo, commit) == "Merge branch 'x'\n\nSee merge request g/n!3"
    assert links("git@gitlab.com:g/n", commit, message(history.repo, commit)).pull.endswith("/3")


def test_the_remote_is_the_followed_one_then_upstream_then_origin_then_the_only_one(tmp_path):
    history = History(tmp_path / "p")
    history.commit(a="1")
    assert remote_of(history.repo) == ""
    history.git("remote", "add", "mine", "https://github.com/mine/n")
    assert remote_of(history.repo) == "https://github.com/mine/n"
    history.git("remote", "add", "other", "https://github.com/other/n")
    assert remote_of(history.repo) == ""
    history.git("remote", "add", "origin", "https://me:s3cret@github.com/origin/n")
    assert remote_of(history.repo) == "https://github.com/origin/n"
    history.git("remote", "add", "upstream", "git@github.com:upstream/n")
    assert remote_of(history.repo) == "git@github.com:upstream/n"
    history.git("config", "branch.main.remote", "other")
    history.git("config", "branch.main.merge", "refs/heads/main")
    assert remote_of(history.repo) == "https://github.com/other/n"
    history.git("config", "url.https://codeberg.org/.insteadOf", "https://github.com/")
    assert remote_of(history.repo) == "https://codeberg.org/other/n"
    history.git("checkout", "-q", "--detach")
    assert remote_of(history.repo) == "git@github.com:upstream/n"


@pytest.mark.parametrize(
    "url", ["https://me:pw@host/o/n", "https://pw@host/o/n", "HTTPS://me:p@w@host/o/n"]
)
def test_a_remote_address_is_told_without_its_secret(url):
    assert without_secret(url).lower() == "https://host/o/n"
