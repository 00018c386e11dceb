"""Where a commit can be seen in a browser: its page and the page of its pull request.

Never shows the user name or password that a remote's address may hold.
"""

from __future__ import annotations

import os
import re

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.history.repository import Repository


class Links(Record):
    """Addresses of pages; empty where there is none that we know of."""

    commit: str = ""
    pull: str = ""


class _Forge(Record):
    """How one kind of host lays out its pages and words its merges."""

    commit: str
    pull: str
    numbers: tuple[str, ...]
    groups: bool = False
    """A project may lie deeper than owner/name."""


_NUMBERED = r"\A[^\n]*\(#(\d+)\)\s*$"
_GITHUB = _Forge(
    commit="/commit/{}",
    pull="/pull/{}",
    numbers=(r"\AMerge pull request #(\d+)\b", _NUMBERED),
)
_GITLAB = _Forge(
    commit="/-/commit/{}",
    pull="/-/merge_requests/{}",
    numbers=(r"^See merge request [^\s!]*!(\d+)\s*$", r"\A[^\n]*\(!(\d+)\)\s*$"),
    groups=True,
)
_BITBUCKET = _Forge(
    commit="/commits/{}",
    pull="/pull-requests/{}",
    numbers=(r"\A[^\n]*\(pull request #(\d+)\)\s*$",),
)
_GITEA = _Forge(
    commit="/commit/{}",
    pull="/pulls/{}",
    numbers=(r"\AMerge pull request '[^\n]*' \(#(\d+)\) from ", _NUMBERED),
)
_KNOWN = {
    "github": _GITHUB,
    "gitlab": _GITLAB,
    "bitbucket": _BITBUCKET,
    "codeberg": _GITEA,
    "gitea": _GITEA,
    "forgejo": _GITEA,
}
_SSH_HOSTS = ("ssh.", "altssh.")
"""Where GitHub, GitLab and Bitbucket take ssh through firewalls; the pages are beside them."""
_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z+]*)://(?:[^/]*@)?(?P<host>[^/@]+)/(?P<path>.+)", re.I)
_SCP = re.compile(r"(?:[^/@]+@)?(?P<host>[^/:@]{2,}):(?P<path>[^:].*)")
_SECRET = re.compile(r"^(https?://)[^/]*@", re.I)


def links(remote_url: str, commit_id: str, message: str) -> Links:
    """Return the pages of a commit, its pull request found in the whole message."""
    page, forge = _project(remote_url)
    if forge is None:
        return Links()
    number = _number(message, forge)
    return Links(
        commit=page + forge.commit.format(commit_id),
        pull=page + forge.pull.format(number) if number else "",
    )


def _number(message: str, forge: _Forge) -> str:
    for pattern in forge.numbers:
        found = re.search(pattern, message, re.M)
        if found:
            return found[1]
    return ""


def _project(url: str) -> tuple[str, _Forge | None]:
    """Return the page of a project and the kind of its host; None for a path or an unknown host."""
    found = _ADDRESS.fullmatch(url) or ("://" not in url and _SCP.fullmatch(url))
    if not found:
        return "", None
    scheme = found.groupdict().get("scheme", "ssh").lower()
    host, path = found["host"].lower(), found["path"].strip("/").removesuffix(".git").strip("/")
    if scheme not in ("http", "https"):
        scheme, host = "https", host.partition(":")[0]  # the port is that of ssh
        host = next((host.removeprefix(s) for s in _SSH_HOSTS if host.startswith(s)), host)
    forge = next((_KNOWN[word] for word in re.split(r"[.:-]", host) if word in _KNOWN), None)
    parts = path.split("/")
    fits = len(parts) == 2 or (len(parts) > 2 and forge is not None and forge.groups)
    if not fits or not re.fullmatch(r"[\w.~+/-]+", path) or not re.fullmatch(r"[\w.:-]+", host):
        return "", None
    return f"{scheme}://{host}/{path}", forge


def remote_of(repo: Repository) -> str:
    """Return the address of the remote that the commits most likely came from, without secrets.

    The one that the current branch follows, else `upstream`, else `origin`, else the only one.
    """
    names = os.fsdecode(repo.git("remote")).split("\n")[:-1]
    followed = os.fsdecode(
        repo.git("for-each-ref", "--format=%(HEAD)%(upstream:remotename)", "refs/heads/")
    )
    current = [line[1:] for line in followed.split("\n") if line.startswith("*")]
    liked = [*current, "upstream", "origin", *(names if len(names) == 1 else [])]
    name = next((name for name in liked if name in names), "")
    if not name:
        return ""
    return without_secret(repo.try_git("remote", "get-url", name).text.strip())


def without_secret(url: str) -> str:
    """Return an address without the user and password that a web address may begin with."""
    return _SECRET.sub(r"\1", url)
