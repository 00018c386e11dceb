"""Folders that no small disk is laid over: what is in them is the kernel's, not files on a disk."""

from __future__ import annotations

import os
import sys

_KINDS = {
    0x9FA0: "proc", 0x62656572: "sysfs", 0x1CD1: "devpts", 0x27E0EB: "cgroup",
    0x63677270: "cgroup2", 0x64626720: "debugfs", 0x74726163: "tracefs",
    0x73636673: "securityfs", 0x6165676C: "pstore", 0xCAFE4A11: "bpf", 0x62656570: "configfs",
    0xDE5E81E4: "efivarfs", 0x958458F6: "hugetlbfs", 0x19800202: "mqueue", 0x6E736673: "nsfs",
    0x42494E4D: "binfmt_misc", 0x65735543: "fusectl", 0x67596969: "rpc_pipefs",
    0xF97CFF8C: "selinuxfs", 0x43415D53: "smackfs", 0x5A3C69F0: "apparmorfs", 0x187: "autofs",
    0x7655821: "resctrl", 0x9FA2: "usbdevfs", 0x6C6F6F70: "binder", 0xABBA1974: "xenfs",
}  # fmt: skip
"""By the number that statfs gives; linux/magic.h has them."""
_KERNELS = ("/proc/", "/sys/", "/dev/")
_SHARED_MEMORY = "/dev/shm"


def kernel_folder(folder: int) -> str:
    """Name the kernel's file system that an open folder is on; empty where there are files."""
    if kind := _KINDS.get(magic(folder)):
        return kind
    path = os.readlink(f"/proc/self/fd/{folder}") + "/"
    if path.startswith(f"{_SHARED_MEMORY}/"):
        if os.stat(folder).st_dev == os.stat(_SHARED_MEMORY).st_dev:
            return ""
    elif path.startswith(_KERNELS):  # a tmpfs that holds its mount points
        return path.split("/")[1]
    return "devices" if _has_devices(folder) else ""


def magic(folder: int) -> int:
    """Return the number of the kind of file system that an open folder is on."""
    import ctypes

    about = ctypes.create_string_buffer(256)
    if ctypes.CDLL(None).fstatfs(folder, about) != 0:
        return 0
    return int.from_bytes(about.raw[: ctypes.sizeof(ctypes.c_long)], sys.byteorder)


def _has_devices(folder: int) -> bool:
    """Tell whether it is on a file system of devices, wherever: they have the number of a tmpfs."""
    device = os.stat(folder).st_dev
    try:
        dev = os.stat("/dev").st_dev
    except OSError:
        dev = -1
    if device == dev != os.stat("/").st_dev:
        return True
    number = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        return any(line.split()[2] == number and " - devtmpfs " in line for line in file)
