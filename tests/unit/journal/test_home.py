"""Where a project's journal lives, whatever is in the files that say so."""

from pathlib import Path

from relaunch.journal.home import find_home


def test_a_common_folder_is_named_up_to_a_null_as_git_reads_it(tmp_path: Path):
    (tmp_path / ".git/common").mkdir(parents=True)
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / ".git/commondir").write_bytes(b"common\0more\n")
    assert find_home(str(tmp_path)).common_dir == str(tmp_path / ".git/common")
