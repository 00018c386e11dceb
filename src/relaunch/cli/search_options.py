"""The options that searches share, and what is the same in how they look back."""

from __future__ import annotations

from relaunch.cli.launch_options import OPTIONS, Option, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from relaunch.journal.searches import Search
    from relaunch.session.project import Project

SLURM = tuple(option for option in OPTIONS if option.field in ("slurm", "srun"))
"""Runs go to the nodes of an allocation."""
HANG = tuple(option for option in OPTIONS if option.field == "hang")
"""The failure may be that nothing happens any more."""
MATCH = tuple(option for option in OPTIONS if option.field == "match")
TIMEOUT = Option(
    flags=("--timeout",), field="timeout", metavar="TIME", help="end a run after 30, 5m or 2h"
)
ENV = Option(
    flags=("--env",), field="env", metavar="NAME=VALUE", many=True, help="set it for each run"
)


def kept(verb: str, *, budget: str, log: str, undo: bool = False) -> tuple[Option, ...]:
    """Return the options of a search that is kept: when it ends, how it goes on, what it tells."""
    found = [
        Option(flags=("--budget",), field="budget", metavar="N|TIME", help=f"at most {budget}"),
        Option(flags=("--resume",), field="resume", help="go on with the last search"),
        Option(flags=("--undo",), field="undo", metavar="N", help="forget its last N runs"),
        Option(flags=("--log",), field="log", help=f"the {log} of the last search"),
        Option(flags=("--json",), field="json", help=f"as JSON: schema relaunch/{verb}/1"),
        Option(
            flags=("--color",),
            field="color",
            metavar="WHEN",
            choices=("auto", "always", "never"),
            help="(auto)",
        ),
    ]
    return tuple(one for one in found if undo or one.field != "undo")


def look_back(project: Project, search: Search, values: Mapping[str, Any]) -> int:
    """Show what a search tried, or forget the last of it."""
    from relaunch.cli import searches

    if "undo" in values:
        return searches.undo(search, whole_number(values["undo"], "--undo"))
    color, as_json = values.get("color", "auto"), bool(values.get("json"))
    return searches.log(project.home.journal, search, json=as_json, color=color)
