"""What processes left of their sections, read back: whole, half-written, killed in between."""

import json

from hypothesis import given
from hypothesis import strategies as st

from relaunch.inside.sections.layout import FIELDS, HEAD, PER_FILE, ROW, ROWS, SIZE, read
from relaunch.trial.sections import collect, processes, remove


def note(folder, pid, **facts):
    with (folder / f"{pid}.jsonl").open("a") as file:
        file.write(json.dumps(facts) + "\n")


def put(folder, pid, slot, times, rows=0):
    path = folder / f"{pid}.{slot // PER_FILE}.sections"
    data = bytearray(path.read_bytes() if path.exists() else PER_FILE * SIZE)
    values = [times, *range(1, len(FIELDS))]
    HEAD.pack_into(data, slot % PER_FILE * SIZE, *values, rows)
    for n in range(rows):
        ROW.pack_into(data, slot % PER_FILE * SIZE + HEAD.size + n * ROW.size, n, *[7] * 9)
    path.write_bytes(data)


def test_sections_are_read_with_their_paths_and_ranks_come_first(tmp_path):
    for pid, rank in ((30, None), (20, 1), (10, 0)):
        note(tmp_path, pid, what="process", rank=rank, memory="reset", argv=["python"])
        note(tmp_path, pid, what="section", slot=0, parent=-1, name="outer")
        note(tmp_path, pid, what="section", slot=17, parent=0, name="inner")
        put(tmp_path, pid, 0, 3)
        put(tmp_path, pid, 17, 4, rows=2)
    found = collect(str(tmp_path), 5)
    assert [(one["pid"], one["rank"]) for one in found["processes"]] == [
        (10, 0),
        (20, 1),
        (30, None),
    ]
    sections = found["processes"][0]["sections"]
    assert [(one["path"], one["times"]) for one in sections] == [
        (["outer"], 3),
        (["outer", "inner"], 4),
    ]
    assert len(sections[1]["iterations"]) == 2
    again = processes(json.loads(json.dumps(found)))
    assert list(again[0].sections) == [("outer",), ("outer", "inner")]
    remove(str(tmp_path))
    assert not tmp_path.exists()


def test_what_is_half_written_or_not_ours_is_passed_over(tmp_path):
    note(tmp_path, 7, what="process", rank=None, memory="reset", argv=[])
    note(tmp_path, 7, what="section", slot=0, parent=-1, name="good")
    note(tmp_path, 7, what="section", slot="x", parent=-1, name="bad")
    note(tmp_path, 7, what="section", slot=3, parent=99, name="of nobody")
    note(tmp_path, 7, what="section", slot=1, parent=-1, name="never written")
    note(tmp_path, 7, slot=-5, parent=-1)
    with (tmp_path / "7.jsonl").open("ab") as file:
        file.write(b'[1, 2]\nnot json\n{"what": "sect')
    (tmp_path / "notes.jsonl").write_text("{}\n")
    (tmp_path / "8.jsonl").write_text("")
    (tmp_path / "7.9.sections").write_bytes(b"short")
    put(tmp_path, 7, 0, 2)
    (process,) = collect(str(tmp_path), 5)["processes"]
    assert [one["path"] for one in process["sections"]] == [["good"]]


def test_of_many_processes_fewer_iterations_are_kept(tmp_path):
    for pid in range(10, 22):
        note(tmp_path, pid, what="process", rank=pid, memory="", argv=[])
        note(tmp_path, pid, what="section", slot=0, parent=-1, name="a")
        put(tmp_path, pid, 0, 200, rows=ROWS)
    found = collect(str(tmp_path), 5)["processes"]
    assert {len(one["sections"][0]["iterations"]) for one in found} == {16}
    assert found[0]["sections"][0]["iterations"][-1][0] == ROWS - 1


def test_secrets_are_taken_out_of_names_and_words(tmp_path):
    note(tmp_path, 7, what="process", rank=None, memory="", argv=["--key", "sesame123"])
    note(tmp_path, 7, what="section", slot=0, parent=-1, name="load sesame123")
    put(tmp_path, 7, 0, 2)
    assert "sesame123" not in json.dumps(collect(str(tmp_path), 5, [b"sesame123"]))


@given(st.binary(max_size=2 * SIZE), st.integers(0, 3))
def test_any_bytes_are_numbers_or_nothing(data, slot):
    found = read(data, slot)
    assert found is None or len(found.rows) <= ROWS
