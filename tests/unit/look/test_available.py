"""How much memory could be had: the machine's, or that of the narrowest control group."""

from pathlib import Path

from relaunch.look.available import memory

GB = 1 << 30


def machine(tmp_path: Path, cgroup: str) -> tuple[str, str]:
    proc, root = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    text = f"MemTotal: {64 << 20} kB\nMemAvailable: {48 << 20} kB\nSwapTotal: 1024 kB\n"
    (proc / "meminfo").write_text(text)
    (proc / "self" / "cgroup").write_text(cgroup)
    return str(proc), str(root)


def group(root: str, path: str, **files: str) -> None:
    folder = Path(root) / path
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_without_control_groups_it_is_that_of_the_machine(tmp_path):
    found = memory(*machine(tmp_path, ""))
    assert (found.total, found.available, found.swap) == (64 * GB, 48 * GB, 1 << 20)
    assert found.by == "the machine"


def test_the_second_version_limits_also_from_above(tmp_path):
    proc, root = machine(tmp_path, "0::/a/b\n")
    group(root, "a/b", memory__max="max\n", memory__current="5\n")
    group(
        root, "a", memory__max=f"{8 * GB}\n", memory__current=f"{3 * GB}\n",
        memory__stat=f"anon 5\ninactive_file {GB}\n",
    )  # fmt: skip
    found = memory(proc, root)
    assert (found.total, found.available) == (8 * GB, 6 * GB)
    assert found.by == "the control group /a"


def test_the_first_version_limits_likewise_and_its_unlimited_is_a_number(tmp_path):
    proc, root = machine(tmp_path, "4:memory:/x\n3:cpuset:/x\n0::/\n")
    group(
        root, "memory/x", memory__limit_in_bytes=f"{4 * GB}\n",
        memory__usage_in_bytes=f"{GB}\n", memory__stat=f"total_inactive_file {GB}\n",
    )  # fmt: skip
    group(
        root, "memory", memory__limit_in_bytes="9223372036854771712\n",
        memory__usage_in_bytes=f"{60 * GB}\n",
    )  # fmt: skip
    assert memory(proc, root).available == 4 * GB


def test_where_the_kernel_says_nothing_nothing_is_known(tmp_path):
    assert memory(str(tmp_path), str(tmp_path)).total == 0
