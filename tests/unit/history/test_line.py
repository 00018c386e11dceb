"""The commits between two ends, whatever shape their history has."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples
from tests.histories import START, History, own_settings  # noqa: F401

from relaunch.errors import UsageError
from relaunch.history.line import (
    Commit,
    dag,
    first_parents,
    inside_merge,
    merged_by,
    sides_of,
    touched,
)
from relaunch.history.prior import weights, weights_on_line
from relaunch.history.repository import Repository, open_repository


def ids(commits) -> list[str]:
    return [commit.id for commit in commits]


@pytest.fixture
def history(tmp_path):
    return History(tmp_path / "p")


def test_a_straight_line_is_listed_oldest_first(history):
    made = [history.commit(f"number {n}", a=str(n)) for n in range(4)]
    line = first_parents(history.repo, made[0], made[3])
    assert (line.start, ids(line.commits)) == (made[0], made[1:])
    second = line.commits[1]
    assert second == Commit(
        id=made[2],
        parents=(made[1],),
        tree=history.git("rev-parse", "HEAD~1^{tree}"),
        author="A Person",
        when=START + 3 * 3600,
        subject="number 2",
    )
    assert (second.short, second.day) == (made[2][:10], "2023-11-15")


def test_merges_hide_their_sides(history):
    old = history.commit(a="1")
    history.branch("side")
    side = [history.commit(b="1"), history.commit(b="2")]
    history.git("checkout", "-q", "main")
    trunk = history.commit(a="2")
    merge = history.merge("side")
    repo = history.repo
    assert ids(first_parents(repo, old, merge).commits) == [trunk, merge]
    assert [ids(one) for one in inside_merge(repo, merge)] == [side]
    assert inside_merge(repo, trunk) == []
    assert set(dag(repo, old, merge)) == {*side, trunk, merge}
    assert merged_by(repo, old, merge) == {
        trunk: trunk, merge: merge, side[0]: merge, side[1]: merge,
    }  # fmt: skip
    sides = sides_of(dag(repo, old, merge), merge)
    assert {way: set(ids(those)) for way, those in sides.items()} == {merge: {*side}}
    assert set(touched(repo, old, merge, sides=True)) == {*side, trunk, merge}


def test_an_octopus_has_a_list_for_each_arm(history):
    old = history.commit(a="1")
    arms = []
    for name in ("one", "two", "three"):
        history.branch(name, old)
        arms.append([history.commit(**{name: "1"}), history.commit(**{name: "2"})])
    history.git("checkout", "-q", "main")
    trunk = history.commit(a="2")
    merge = history.merge("one", "two", "three")
    assert [ids(arm) for arm in inside_merge(history.repo, merge)] == arms
    assert ids(first_parents(history.repo, old, merge).commits) == [trunk, merge]


def test_what_a_branch_merged_back_from_its_target_is_not_inside_it(history):
    root, trunk, side, back, tip, merge = history.graph([[], [0], [0], [2, 1], [3], [1, 4]])
    repo = history.repo
    assert [ids(arm) for arm in inside_merge(repo, merge)] == [[side, back, tip]]
    assert [ids(arm) for arm in inside_merge(repo, back)] == [[trunk]]
    assert inside_merge(repo, back, known=[root, trunk]) == [[]]


def test_a_criss_cross_is_walked_once(history):
    root, a, b, a2, b2, end = history.graph([[], [0], [0], [1, 2], [2, 1], [3, 4]])
    repo = history.repo
    assert ids(first_parents(repo, root, end).commits) == [a, a2, end]
    assert [ids(arm) for arm in inside_merge(repo, end)] == [[b2]]
    assert merged_by(repo, root, end) == {a: a, a2: a2, b: a2, b2: end, end: end}


def test_an_old_end_from_the_side_starts_where_the_line_left_it(history):
    root, start, side, trunk, merge, new = history.graph([[], [0], [1], [1], [3, 2], [4]])
    line = first_parents(history.repo, side, new)
    assert (line.start, ids(line.commits)) == (start, [trunk, merge, new])
    assert root not in dag(history.repo, side, new)


def test_an_old_end_of_another_root_is_its_own_start(history):
    other, root, merge = history.graph([[], [], [1, 0]])
    line = first_parents(history.repo, other, merge)
    assert (line.start, ids(line.commits)) == (other, [root, merge])


def test_equal_ends_are_refused(history):
    commit = history.commit()
    with pytest.raises(UsageError, match=r"v1 and HEAD are the same commit [0-9a-f]{10}:"):
        first_parents(history.repo, commit, commit, called=("v1", "HEAD"))


def test_swapped_ends_are_told(history):
    old, new = history.commit(), history.commit()
    with pytest.raises(UsageError, match="the other order: v1 is an ancestor of HEAD") as refused:
        first_parents(history.repo, new, old, called=("HEAD", "v1"))
    assert refused.value.hint == "rl bisect --good v1 --bad HEAD -- CMD"


def test_ends_on_two_branches_are_told_where_they_parted(history):
    base, left, right = history.graph([[], [0], [0]])
    with pytest.raises(UsageError) as refused:
        first_parents(history.repo, left, right, called=("v1", ""))
    said = f"v1 is not an ancestor of {right[:10]}: they parted at {base[:10]} (2023-11-14)"
    assert refused.value.message == said
    assert refused.value.hint == f"rl bisect --good {base[:10]} --bad {right[:10]} -- CMD"


def test_ends_without_a_common_commit_are_told(history, tmp_path):
    left, right = history.graph([[], []])
    with pytest.raises(UsageError, match="they have no commit in common"):
        first_parents(history.repo, left, right)


def test_in_a_shallow_clone_missing_ancestors_may_only_be_cut_off(history, tmp_path):
    old, _, new = (history.commit(a=str(n)) for n in range(3))
    clone = tmp_path / "shallow"
    history.git("tag", "v1", old)
    history.git("clone", "-q", "--depth", "1", f"file://{history.top}", str(clone))
    history.git("-C", str(clone), "fetch", "-q", "--depth", "1", "origin", "tag", "v1")
    repo = open_repository(str(clone))
    with pytest.raises(UsageError, match="as far as this shallow clone reaches") as refused:
        first_parents(repo, old, new)
    assert refused.value.hint == "git fetch --unshallow"
    history.git("-C", str(clone), "fetch", "-q", "--unshallow")
    assert len(first_parents(repo, old, new).commits) == 2


def test_replaced_commits_are_as_the_user_sees_them(history, monkeypatch):
    old, hidden, new = (history.commit(a=str(n)) for n in range(3))
    history.git("replace", "--graft", new, old)
    assert ids(first_parents(history.repo, old, new).commits) == [new]
    assert hidden not in dag(history.repo, old, new)
    monkeypatch.setenv("GIT_NO_REPLACE_OBJECTS", "1")
    assert ids(first_parents(history.repo, old, new).commits) == [hidden, new]


def test_each_commit_touched_the_files_that_differ_from_its_first_parent(history):
    byte = b"dir/byte\xff\n.py".decode("utf-8", "surrogateescape")
    history.write("old name.py", "1")
    old = history.commit()
    history.branch("side")
    history.commit(b="1")
    history.git("checkout", "-q", "main")
    history.write(byte, "1")
    first = history.commit()
    empty = history.commit()
    history.git("mv", "old name.py", ":new.py")
    renamed = history.commit()
    (history.top / ":new.py").chmod(0o755)
    mode = history.commit()
    merge = history.merge("side")
    found = touched(history.repo, old, merge)
    assert list(found) == [first, empty, renamed, mode, merge]
    assert list(found.values()) == [
        (byte,), (), (":new.py", "old name.py"), (":new.py",), ("b.py",),
    ]  # fmt: skip


def test_settings_of_the_user_change_nothing(history):
    old = history.commit(a="1")
    history.git("checkout", "-q", "--orphan", "other")
    history.git("rm", "-qf", "a.py")
    root = history.commit(b="1")
    history.git("mv", "b.py", "c.py")
    renamed = history.commit()
    history.git("merge", "-q", "--allow-unrelated-histories", "-m", "join", "main")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n\n"
    merged = history.git("cat-file", "commit", "HEAD").replace("\n\n", f"\n{signature}", 1)
    new = history.git("hash-object", "-w", "-t", "commit", "--stdin", data=merged.encode())
    before = touched(history.repo, old, new), dag(history.repo, old, new)
    for name, value in (
        ("log.showSignature", "true"), ("diff.renames", "copies"), ("log.decorate", "full"),
        ("log.diffMerges", "combined"), ("log.showRoot", "false"), ("format.pretty", "%s"),
        ("i18n.logOutputEncoding", "UTF-16"), ("color.ui", "always"), ("diff.relative", "true"),
    ):  # fmt: skip
        history.git("config", name, value)
    assert (touched(history.repo, old, new), dag(history.repo, old, new)) == before
    assert before[0] == {root: ("b.py",), renamed: ("b.py", "c.py"), new: ("a.py",)}


def test_subjects_and_authors_of_any_bytes_can_be_shown(history):
    old = history.commit()
    tree = history.git("rev-parse", "HEAD^{tree}")

    def raw(parent, more):
        who = b" Zo\xeb <z@example.org> 1700000000 +0000\n"
        head = f"tree {tree}\nparent {parent}\n".encode() + b"author" + who + b"committer" + who
        return history.git("hash-object", "-w", "-t", "commit", "--stdin", data=head + more)

    bad = raw(old, b"\ncaf\xe9\nsecond line\n\nbody")
    told = raw(bad, b"encoding ISO-8859-1\n\ncaf\xe9")
    blank = raw(told, b"\n")
    found = dag(history.repo, old, blank)
    assert (found[bad].subject, found[bad].author) == ("caf\ufffd second line", "Zo\ufffd")
    assert (found[told].subject, found[told].author) == ("café", "Zoë")
    assert found[blank].subject == ""


def test_two_thousand_commits_are_listed_by_one_git(history, monkeypatch):
    made = history.graph([[]] + [[at] for at in range(2000)])
    repo = history.repo
    calls = []
    asked = Repository.try_git

    def counted(self, *args, **options):
        calls.append(args[0])
        return asked(self, *args, **options)

    monkeypatch.setattr(Repository, "try_git", counted)
    assert ids(first_parents(repo, made[0], made[-1]).commits) == made[1:]
    assert len(touched(repo, made[0], made[-1])) == len(dag(repo, made[0], made[-1])) == 2000
    assert calls == ["log", "log", "log"]


# --- any history ----------------------------------------------------------------------------------


@st.composite
def graphs(draw):
    """Parents of each commit (none, one or up to three), and which commits change nothing."""
    size = draw(st.integers(3, 14))
    parents: list[list[int]] = [[]]
    for at in range(1, size):
        most = 0 if draw(st.integers(0, 12)) == 7 else min(at, draw(st.sampled_from([1, 1, 2, 3])))
        near = st.integers(max(0, at - 5), at - 1)
        parents.append(draw(st.lists(near, min_size=min(1, most), max_size=most, unique=True)))
    return parents, draw(st.lists(st.booleans(), min_size=size, max_size=size))


def ancestors(parents: list[list[int]]) -> list[set[int]]:
    """The commits that each commit has, itself among them."""
    found: list[set[int]] = []
    for at, above in enumerate(parents):
        found.append({at}.union(*(found[up] for up in above)))
    return found


def flattened(repo: Repository, commits, known: list[str]) -> set[str]:
    """All commits that are met by looking into each merge, and into the merges inside."""
    found: set[str] = set()
    for commit in commits:
        found.add(commit.id)
        for arm in inside_merge(repo, commit.id, known=known):
            found |= flattened(repo, arm, [*known, commit.parents[0]])
    return found


@examples(15)
@given(graphs(), st.data())
def test_the_line_and_what_its_merges_hide_are_all_commits_of_the_range(graph, data):
    parents, empty = graph
    has = ancestors(parents)
    new = data.draw(st.sampled_from([at for at in range(len(parents)) if len(has[at]) > 1]))
    old = data.draw(st.sampled_from(sorted(has[new] - {new})))
    with TemporaryDirectory() as folder:
        history = History(Path(folder) / "p")
        made = history.graph(parents, empty)
        repo = history.repo
        line = first_parents(repo, made[old], made[new])
        found = dag(repo, made[old], made[new])
        merged = merged_by(repo, made[old], made[new])
        files = touched(repo, made[old], made[new])
        every = touched(repo, made[old], made[new], sides=True)
        covered = flattened(repo, line.commits, [made[old]])

    assert set(found) == covered == {made[at] for at in has[new] - has[old]}
    places = [made.index(commit.id) for commit in line.commits]
    assert places[-1] == new
    assert [parents[at][:1] for at in places[1:]] == [[at] for at in places[:-1]]
    assert made.index(line.start) in has[old]
    assert parents[places[0]][:1] in ([made.index(line.start)], [])
    assert merged == {
        made[at]: next(made[way] for way in places if at in has[way]) for at in has[new] - has[old]
    }
    idle = [empty[at] for at in places]
    for chances in (
        weights(line.commits, files, {}, {}, []),
        weights_on_line(line.commits, sides_of(found, made[new]), every, {}, {}, []),
    ):
        assert abs(sum(chances) - 1) < 1e-9
        assert [chance == 0 for chance in chances] == ([False] * len(idle) if all(idle) else idle)
