from pathlib import Path

import pytest

from relaunch.trial.place.interpreter import find_start, interpreter, project_python


def fake_python(prefix: Path, version: str = "3.11") -> Path:
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib" / f"python{version}" / "site-packages").mkdir(parents=True)
    python = prefix / "bin" / f"python{version}"
    python.write_bytes(b"\x7fELF")
    python.chmod(0o755)
    for name in ("python", "python3"):
        (prefix / "bin" / name).symlink_to(python.name)
    return python


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def env_of(*folders: Path, **more: str) -> dict[str, str]:
    return {"PATH": ":".join(map(str, folders)), "HOME": "/nowhere", **more}


def test_a_python_outside_of_any_venv_is_told_by_the_folders_around_it(tmp_path: Path) -> None:
    fake_python(tmp_path / "py", "3.12")
    found = interpreter(("python", "x.py"), env_of(tmp_path / "py" / "bin"), str(tmp_path))
    assert found is not None
    assert (found.version, found.prefix) == ("3.12", str(tmp_path / "py"))
    assert found.site_packages == (str(tmp_path / "py/lib/python3.12/site-packages"),)


@pytest.mark.parametrize(
    "first_lines",
    [
        "#!{python}\n",
        "#!{python} -I\n",
        "#!/usr/bin/env python3\n",
        "#!/usr/bin/env -S python3 -u\n",
        "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n",
    ],
)
def test_a_console_script_is_told_by_its_first_lines(tmp_path: Path, first_lines: str) -> None:
    python = fake_python(tmp_path / "with space" if "exec" in first_lines else tmp_path / "py")
    script = program(tmp_path / "tools" / "mytool", first_lines.format(python=python))
    start = find_start(("mytool", "-x"), env_of(script.parent, python.parent), str(tmp_path))
    assert start is not None
    assert (start.kind, start.target) == ("console", str(script))
    assert start.python.version == "3.11"


def test_a_shim_is_followed_to_the_version_the_folder_names(tmp_path: Path) -> None:
    root = tmp_path / "pyenv"
    for version in ("3.11.7", "3.12.1"):
        fake_python(root / "versions" / version, version[:4])
    program(root / "shims" / "python", "#!/usr/bin/env bash\nexec pyenv exec python\n")
    (root / "version").write_text("3.11.7\n")
    work = tmp_path / "work" / "deep"
    work.mkdir(parents=True)
    env = env_of(root / "shims")
    assert _version(env, work) == "3.11"
    (tmp_path / "work" / ".python-version").write_text("3.12.1\n")
    assert _version(env, work) == "3.12"
    assert _version({**env, "PYENV_VERSION": "3.11.7"}, work) == "3.11"


def test_the_projects_python_is_the_active_one_then_that_of_the_tree_then_that_of_the_path(
    tmp_path: Path,
) -> None:
    fake_python(tmp_path / "system")
    for venv in ("active", "top/.venv", "top/.hidden"):
        fake_python(tmp_path / venv)
        (tmp_path / venv / "pyvenv.cfg").write_text("home = /nowhere\nversion = 3.11.1\n")
    cwd = tmp_path / "top" / "deep"
    cwd.mkdir()
    top, path = str(tmp_path / "top"), tmp_path / "system" / "bin"

    def python(**more: str) -> str:
        return project_python(env_of(path, **more), str(cwd), top)

    assert python() == f"{top}/.venv/bin/python"
    assert python(CONDA_PREFIX="/opt/conda") == "python"
    active = tmp_path / "active"
    assert python(VIRTUAL_ENV=str(active)) == f"{active}/bin/python"
    on_path = env_of(active / "bin", path, VIRTUAL_ENV=str(active))
    assert project_python(on_path, str(cwd), top) == "python"
    assert project_python(env_of(path), str(tmp_path), str(tmp_path)) == "python"
    assert project_python(env_of(tmp_path), str(tmp_path), str(tmp_path)) == ""


def test_a_python_2_is_passed_over_and_a_shim_is_followed(tmp_path: Path) -> None:
    fake_python(tmp_path / "old", "2.7")
    fake_python(tmp_path / "new", "3.11")
    env = env_of(tmp_path / "old/bin", tmp_path / "new/bin")
    (tmp_path / "old/bin/python3").unlink()
    assert project_python(env, str(tmp_path), str(tmp_path)) == "python3"
    root = tmp_path / "pyenv"
    fake_python(root / "versions" / "3.12.1", "3.12")
    program(root / "shims" / "python", "#!/usr/bin/env bash\nexec pyenv exec python\n")
    (root / "version").write_text("3.12.1\n")
    found = project_python(env_of(root / "shims"), str(tmp_path), str(tmp_path))
    assert found == f"{root}/versions/3.12.1/bin/python"


def _version(env: dict[str, str], cwd: Path) -> str:
    found = interpreter(("python", "x.py"), env, str(cwd))
    return found.version if found else ""


@pytest.mark.parametrize(
    ("words", "kind", "target", "flags"),
    [
        (("python",), "stdin", "", ""),
        (("python", "-"), "stdin", "", ""),
        (("python", "a.py", "-m", "b"), "script", "/w/a.py", ""),
        (("python", "-um", "pkg.mod", "x"), "module", "pkg.mod", "u"),
        (("python", "-mpkg"), "module", "pkg", ""),
        (("python", "-W", "error", "-X", "dev", "-Is", "a.py"), "script", "/w/a.py", "Is"),
        (("python", "-c", "pass", "a.py"), "code", "", ""),
        (("python", "--check-hash-based-pycs", "always", "a.py"), "script", "/w/a.py", ""),
        (("nice", "python", "-P", "a.py"), "script", "/w/a.py", "P"),
        (("timeout", "-s", "INT", "5", "env", "A=1", "python", "a.py"), "script", "/w/a.py", ""),
        (("python", "-m", "torch.distributed.run", "-m", "pkg"), "module", "pkg", ""),
    ],
)
def test_the_words_of_python_are_read_as_python_reads_them(
    tmp_path: Path, words: tuple[str, ...], kind: str, target: str, flags: str
) -> None:
    python = fake_python(tmp_path / "py")
    start = find_start(words, env_of(python.parent), "/w")
    assert start is not None
    assert (start.kind, start.target, start.flags) == (kind, target, flags)


def test_no_words_can_make_it_fail(tmp_path: Path) -> None:
    python = fake_python(tmp_path / "py")
    env = env_of(python.parent, tmp_path)
    for words in (
        (), ("",), ("env",), ("env", "-u"), ("timeout",), ("nice", "-n"), ("uv", "run"),
        ("uv", "run", "--with"), ("python", "-m"), ("python", "-"), ("/",), (".",), ("\udcff",),
    ):  # fmt: skip
        find_start(words, env, str(tmp_path))
