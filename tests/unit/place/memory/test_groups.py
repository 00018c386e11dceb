"""Which folder a control group has, by what the kernel says of it."""

import os

import pytest

from relaunch.trial.place.memory import groups
from relaunch.trial.place.memory.groups import group_in
from relaunch.trial.place.memory.throttling import hands_memory_down

V1 = "4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n0::/\n"
V2 = "0::/user.slice/session-2.scope\n"
MOUNT_1 = "30 25 0:26 {root} {point} rw,nosuid - cgroup cgroup rw,memory\n"
MOUNT_2 = "31 25 0:27 {root} {point} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
OTHERS = "29 25 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\nshort line\n"


@pytest.mark.parametrize(
    ("version", "cgroups", "root", "point", "found"),
    [
        (1, V1, "/", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/docker/abc"),
        (1, V1, "/docker/abc", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory"),
        (1, V1, "/docker/ab", "/sys/fs/cgroup/memory", ""),
        (1, V1, "/", "/with\\040blank", "/with blank/docker/abc"),
        (1, V2, "/", "/sys/fs/cgroup/memory", ""),
        (2, V2, "/", "/sys/fs/cgroup", "/sys/fs/cgroup/user.slice/session-2.scope"),
        (2, V1, "/", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified"),
        (2, "0::/../outside\n", "/", "/sys/fs/cgroup", ""),
        (2, "", "/", "/sys/fs/cgroup", ""),
    ],
)
def test_the_folder_of_our_own_group(version, cgroups, root, point, found):
    mount = (MOUNT_1 if version == 1 else MOUNT_2).format(root=root, point=point)
    assert group_in(version, cgroups, OTHERS + mount) == found


def test_without_such_a_mount_there_is_no_group():
    assert group_in(1, V1, OTHERS) == ""


def test_memory_is_handed_down_by_our_group_or_the_one_above(tmp_path):
    own = tmp_path / "above" / "own"
    own.mkdir(parents=True)
    assert hands_memory_down(str(own)) == ""
    (own.parent / "cgroup.subtree_control").write_text("cpu memory pids\n")
    assert hands_memory_down(str(own)) == str(own.parent)
    (own / "cgroup.subtree_control").write_text("memory\n")
    assert hands_memory_down(str(own)) == str(own)
    assert hands_memory_down("") == ""


def test_numbers_are_read_alone_and_by_their_field(tmp_path):
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("4096\n")
    (tmp_path / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    assert groups.number(str(tmp_path), "memory.max") == -1
    assert groups.number(str(tmp_path), "memory.current") == 4096
    assert groups.number(str(tmp_path), "memory.events", "oom_kill") == 2
    assert groups.number(str(tmp_path), "memory.events", "high") == -1
    assert groups.number(str(tmp_path), "not.there") == -1


def test_only_groups_of_an_rl_that_is_gone_are_swept(tmp_path):
    gone = 1 << 30  # no pid is that large
    names = [f"relaunch-{gone}-1", f"relaunch-{os.getpid()}-1", "other-1-1", "relaunch-x-1"]
    for name in names:
        (tmp_path / name).mkdir()
    assert groups.sweep(str(tmp_path)) == [names[0]]
    assert sorted(os.listdir(tmp_path)) == sorted(names[1:])
