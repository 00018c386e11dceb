"""The table of tiny models: which rows count."""

import json
from pathlib import Path

from relaunch.tiny.models.rows import read_rows

NOW = {"transformers": "5.1.0", "torch": "2.9.0", "code": "abc"}


def test_rows_of_other_code_or_other_packages_do_not_count(tmp_path: Path):
    file = tmp_path / "rows.jsonl"
    made_with = {
        "same": NOW, "older": {**NOW, "transformers": "5.0.0"}, "other": {**NOW, "code": "abd"},
        "unknown": None,
    }  # fmt: skip
    rows: list[dict[str, object]]
    rows = [{"type": name, "class": "C", "made_with": one} for name, one in made_with.items()]
    rows.append({"type": "older still", "class": "C"})
    rows.append({"type": "other", "class": "C", "made_with": NOW, "bytes": 1})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert set(read_rows(str(file), NOW)) == {"same C", "other C"}
    assert len(read_rows(str(file))) == 5
