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
_SHARED_MEMORY = "/dev/shm/"


def kernel_folder(folder: int) -> str:
    """Name the kernel's file system that an open folder is on; empty where there are files."""
    path = os.readlink(f"/proc/self/fd/{folder}") + "/"
    if path.startswith(_SHARED_MEMORY):
        return ""
    if kind := _KINDS.get(_magic(folder)):
        return kind
    if path.startswith(_KERNELS):  # a tmpfs that holds its mount points
        return path.split("/")[1]
    return "devices" if _has_devices(folder) else ""


def _magic(folder: int) -> int:
    import ctypes

    about = ctypes.create_string_buffer(256)
    if ctypes.CDLL(None).fstatfs(folder, about) != 0:
        return 0
    return int.from_bytes(about.raw[: ctypes.sizeof(ctypes.c_long)], sys.byteorder)


def _has_devices(folder: int) -> bool:
    """Tell whether it is on the file system of /dev, wherever: it has the number of a tmpfs."""
    try:
        devices = os.stat("/dev").st_dev
    except OSError:
        return False
    return os.fstat(folder).st_dev == devices != os.stat("/").st_dev
