"""The table of mounts is read as the kernel writes it."""

import sys

import pytest

if sys.platform != "linux":
    pytest.skip("mounts of one's own need Linux", allow_module_level=True)

from relaunch.proc.namespace import read_mounts

TABLE = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw
40 27 0:40 / /data rw - ext4 /dev/vdb rw
41 40 0:41 / /data/a\\040b\\134c rw - tmpfs tmpfs rw
42 40 0:42 / /data/x rw - ext4 /dev/vdc rw
43 42 0:43 / /data/x rw - xfs /dev/vdd rw
44 40 0:44 / /database rw - ext4 /dev/vde rw
"""


def test_only_what_is_mounted_below_a_folder_is_listed():
    assert read_mounts(TABLE, "/data") == ["/data/a b\\c", "/data/x"]


def test_below_the_root_is_everything_but_the_root():
    assert read_mounts(TABLE, "/") == ["/data", "/data/a b\\c", "/data/x", "/database", "/proc"]
