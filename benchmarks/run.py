"""What all subjects of one benchmark run share."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.spend import Costs


@dataclass(kw_only=True, slots=True)
class Run:
    """Where to work, with which commands, how often; and every sample, kept for `--json`."""

    python: str
    """Makes the environments."""
    rl: tuple[str, ...]
    """The command measured as `rl`."""
    rl_python: str
    """The interpreter that `rl` runs on, where `import relaunch` works."""
    work: Path
    """A folder for repositories, removed in the end."""
    rounds: int
    quick: bool
    clones: Path | None = None
    """A folder with clones of real projects, where one was given."""
    cases: Path | None = None
    """A folder with failures of real projects, where one was given."""
    limit_s: int | None = None
    """How long each contestant may take, where that was given."""
    samples: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)

    def keep(self, subject: str, costs: dict[str, Costs]) -> None:
        """Remember every single run."""
        for name, cost in costs.items():
            runs = [asdict(one) for one in cost.runs]
            for one in runs:
                del one["tail"]
            self.samples.setdefault(subject, {})[name] = runs
