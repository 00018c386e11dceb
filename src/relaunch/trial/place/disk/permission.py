"""Why nothing can be mounted here, as a command that would allow it."""

from __future__ import annotations

import os

from relaunch.proc.left_out import WITHOUT, left_out
from relaunch.trial.place.disk.words import OVERLAY, TMPFS

_SWITCHES = (
    ("/proc/sys/user/max_user_namespaces", "0", "sudo sysctl user.max_user_namespaces=10000"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0",
     "sudo sysctl kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
     "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"),
)  # fmt: skip
"""What forbids user namespaces, and what allows them."""
_CONTAINERS = (
    ("/.dockerenv", "docker run --cap-add SYS_ADMIN --security-opt apparmor=unconfined ..."),
    ("/run/.containerenv", "podman run --cap-add SYS_ADMIN ..."),
    ("/run/secrets/kubernetes.io", "securityContext: {capabilities: {add: [SYS_ADMIN]}}"),
)
"""Files that are there in a container, and how one is started that may mount."""


def what_allows_mounts() -> str:
    """Return what would allow small disks here; it is said where none could be made."""
    if left_out() & {OVERLAY, TMPFS}:
        return f"unset {WITHOUT}"
    for path, command in _CONTAINERS:
        if os.path.exists(path):
            return command
    for path, value, command in _SWITCHES:
        try:
            with open(path, encoding="ascii") as file:
                if file.read().strip() == value:
                    return command
        except OSError:
            continue
    return "Linux 5.11 or later" if os.geteuid() == 0 else "sudo rl ..., or Linux 5.11 or later"
