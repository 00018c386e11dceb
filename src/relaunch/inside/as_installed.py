"""Where tests are about what is installed, not about the checkout: under tox, nox and CI."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_SET_BY = (
    ("tox", ("TOX_ENV_NAME", "TOX_ENV_DIR", "TOX_WORK_DIR")),
    ("nox", ("NOX_CURRENT_SESSION",)),
    ("CI", ("CI", "CONTINUOUS_INTEGRATION", "GITHUB_ACTIONS", "GITLAB_CI", "CIRCLECI", "TRAVIS",
            "BUILDKITE", "APPVEYOR", "CIRRUS_CI", "DRONE", "SEMAPHORE", "TF_BUILD",
            "JENKINS_URL", "TEAMCITY_VERSION", "CODEBUILD_BUILD_ID",
            "BITBUCKET_BUILD_NUMBER", "BUILD_NUMBER")),
)  # fmt: skip
_NO = ("", "0", "false", "no")


def why_as_installed(environ: Mapping[str, str]) -> str:
    """Name what tests what is installed, and the variable that tells; nothing where nothing does.

    >>> why_as_installed({"CI": "true"})
    'CI is set: CI tests what is installed'
    >>> why_as_installed({"CI": "false"})
    ''
    """
    for who, names in _SET_BY:
        for name in names:
            if environ.get(name, "").lower() not in _NO:
                return f"{name} is set: {who} tests what is installed"
    return ""
