from __future__ import annotations

from pathlib import Path

import pytest
from tests.needs import PYTHONS
from tests.unit.warm.desk import Desk
from tests.unit.warm.resuming import Program


@pytest.fixture(params=sorted(PYTHONS))
def program(request: pytest.FixtureRequest, tmp_path: Path):
    one = Program(tmp_path, PYTHONS[request.param])
    yield one
    one.close()


@pytest.fixture
def desk(tmp_path: Path):
    one = Desk(tmp_path)
    yield one
    one.close()
