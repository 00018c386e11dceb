import os
from pathlib import Path

import pytest

from relaunch.errors import PlaceError
from relaunch.trial.place.hold import HeldSet
from relaunch.trial.place.setedit import check_name, copy_into, new_set
from relaunch.trial.place.sets import (
    content_digest,
    current_name,
    find_sets,
    set_link,
    set_names,
    targets_for,
    variants,
)


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).mkdir()
        (root / name / "f").write_text(name)


def test_links_beside_their_variants_are_found_without_settings(tmp_path: Path) -> None:
    make(tmp_path, "conf@base", "conf@x", "other")
    (tmp_path / "conf").symlink_to("conf@x")
    (tmp_path / "shortcut").symlink_to("other")
    sets = find_sets(str(tmp_path), configured={})
    assert [link.link for link in sets.links] == [str(tmp_path / "conf")]
    assert set_names(sets) == ["base", "x"]
    assert current_name(sets.links[0]) == "x"


def test_a_link_without_the_set_goes_to_base_or_stays(tmp_path: Path) -> None:
    make(tmp_path, "a@base", "a@x", "b@base", "c@y")
    for name, target in (("a", "a@base"), ("b", "b@base"), ("c", "c@y")):
        (tmp_path / name).symlink_to(target)
    sets = find_sets(str(tmp_path), configured={})
    assert targets_for(sets, "x") == {str(tmp_path / "a"): "a@x", str(tmp_path / "b"): "b@base"}


def test_a_pattern_without_exactly_one_star_is_refused(tmp_path: Path) -> None:
    for pattern in ("conf", "c*nf*", "sets/*/conf"):
        with pytest.raises(PlaceError, match="one `\\*`"):
            set_link(str(tmp_path), "conf", pattern)


def test_names_that_a_path_or_a_list_cannot_carry_are_refused() -> None:
    for name in ("", ".", "..", "-n", "a/b", "a@b", "a,b", "a b", "*"):
        with pytest.raises(PlaceError):
            check_name(name)
    for name in ("bf16", "lr-1e3", "v1.2", "a+b", "größe"):
        check_name(name)


def test_temporary_names_are_no_sets(tmp_path: Path) -> None:
    make(tmp_path, "conf@base", ".conf@x.rl-copy")
    assert variants(set_link(str(tmp_path), "conf")) == ["base"]


def test_a_flag_carries_the_name_of_the_set(tmp_path: Path) -> None:
    sets = find_sets(str(tmp_path), configured={}, flag="MODE")
    with HeldSet(sets, "bf16", journal=str(tmp_path / "journal")) as held:
        assert held.env == {"MODE": "bf16"}
    with HeldSet(sets, "", journal=str(tmp_path / "journal")) as held:
        assert held.env == {}
    assert not (tmp_path / "journal").exists()


def test_an_unknown_set_is_refused_before_anything_moves(tmp_path: Path) -> None:
    make(tmp_path, "conf@base")
    (tmp_path / "conf").symlink_to("conf@base")
    sets = find_sets(str(tmp_path), configured={})
    with pytest.raises(PlaceError, match="no set `x` \\(there are: base\\)"):
        HeldSet(sets, "x", journal=str(tmp_path / "journal")).__enter__()


def test_a_frozen_copy_has_its_own_files(tmp_path: Path) -> None:
    project, copy = tmp_path / "p", tmp_path / "copy"
    project.mkdir()
    make(project, "conf@base", "conf@x")
    (project / "conf").symlink_to("conf@base")
    (copy / "conf").mkdir(parents=True)
    sets = find_sets(str(project), configured={})
    copy_into(sets, "x", str(copy))
    (project / "conf@x" / "f").write_text("edited")
    assert (copy / "conf" / "f").read_text() == "conf@x"
    assert not (copy / "conf").is_symlink()


def test_a_link_to_somewhere_else_becomes_the_base(tmp_path: Path) -> None:
    project, shared = tmp_path / "p", tmp_path / "shared"
    project.mkdir()
    make(tmp_path, "shared")
    (project / "conf").symlink_to("../shared")
    sets = find_sets(str(project), configured={"conf": "conf@*"})
    new_set(sets, "x", journal=str(tmp_path / "journal"), tell=pytest.fail)
    assert os.readlink(project / "conf") == "conf@base"
    assert (project / "conf@base").resolve() == shared
    assert not (project / "conf@x").is_symlink()
    assert (project / "conf@x" / "f").read_text() == "shared"


def test_a_journal_that_cannot_be_written_stops_only_a_trial_that_needs_a_move(
    tmp_path: Path,
) -> None:
    make(tmp_path, "conf@base", "conf@x")
    (tmp_path / "conf").symlink_to("conf@base")
    (tmp_path / "journal").write_text("a file where the folder should be")
    sets = find_sets(str(tmp_path), configured={})
    told: list[str] = []
    with HeldSet(sets, "", journal=str(tmp_path / "journal"), tell=told.append):
        assert (tmp_path / "conf" / "f").read_text() == "conf@base"
    assert len(told) == 1
    with pytest.raises(PlaceError, match="cannot lock the sets"):
        HeldSet(sets, "x", journal=str(tmp_path / "journal")).__enter__()
    assert os.readlink(tmp_path / "conf") == "conf@base"


def test_half_copies_of_a_killed_maker_are_swept_up(tmp_path: Path) -> None:
    make(tmp_path, "conf@base", ".conf@old.rl-copy")
    (tmp_path / "conf").symlink_to("conf@base")
    sets = find_sets(str(tmp_path), configured={})
    new_set(sets, "x", journal=str(tmp_path / "journal"), tell=pytest.fail)
    assert sorted(os.listdir(tmp_path)) == ["conf", "conf@base", "conf@x", "journal"]


def test_the_digest_follows_what_is_read_through_the_links(tmp_path: Path) -> None:
    make(tmp_path, "conf@base", "conf@x")
    (tmp_path / "conf").symlink_to("conf@base")
    sets = find_sets(str(tmp_path), configured={})
    base = content_digest(sets)
    assert content_digest(sets) == base
    with HeldSet(sets, "x", journal=str(tmp_path / "journal")):
        other = content_digest(sets)
    assert other != base == content_digest(sets)
    (tmp_path / "conf@x" / "f").write_text("edited")
    assert content_digest(sets) == base
    (tmp_path / "conf@base" / "f").write_text("edited")
    assert content_digest(sets) not in (base, other)
    (tmp_path / "conf@base" / "new").touch()
    os.symlink("nowhere", tmp_path / "conf@base" / "dangling")
    assert content_digest(sets) != base
    assert content_digest(sets.but(links=())) == ""
