"""Writes one reference page per verb from its parser, just before the docs are built.

Usage: python scripts/reference.py [FOLDER]
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from types import ModuleType

from relaunch.cli.main import VERBS

FOLDER = Path(__file__).parent.parent / "docs/reference/verbs"


def main(folder: Path) -> int:
    """Write a page for every verb."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in VERBS.items():
        (folder / f"{name}.md").write_text(page(name, text), encoding="utf-8")
    return 0


def page(name: str, text: str) -> str:
    """Return the page of one verb."""
    module = importlib.import_module(f"relaunch.cli.{name}")
    parser = argparse.ArgumentParser(prog=f"rl {name}", allow_abbrev=False)
    module.arguments(parser)
    parts = [f"# rl {name}", text[:1].upper() + text[1:] + ("" if text[-1] in "?." else "."),
             _examples(module), *_sections(parser, f"rl {name}")]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _examples(module: ModuleType) -> str:
    lines = module.EXAMPLES.rstrip("\n").split("\n")
    if lines[0].strip().rstrip(":").lower() == "examples":
        lines = lines[1:]
    return "\n".join(f"    {line.removeprefix('  ')}".rstrip() for line in lines)


def _sections(parser: argparse.ArgumentParser, title: str) -> list[str]:
    rows, below = [], []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for sub, subparser in action.choices.items():
                below += [f"## {title} {sub}", helps.get(sub, ""), *_sections(subparser, title)]
        elif action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction):
            rows.append(f"| {_named(action)} | {_cell(action.help or '')} |")
    table = ["\n".join(["| word | meaning |", "| --- | --- |", *rows])] if rows else []
    return [part for part in [*table, *below] if part]


def _named(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices:
        metavar = "\\|".join(str(choice) for choice in action.choices)
    value = "" if action.nargs == 0 else _cell(metavar)
    flags = ", ".join(f"`{flag}`" for flag in action.option_strings)
    return f"{flags} {value}".strip() if flags else f"`{value}`".replace("\\|", "|")


def _cell(text: str) -> str:
    escaped = text.replace("%%", "%").replace("<", "&lt;").replace("\n", " ")
    return escaped.replace("\\|", "|").replace("|", "\\|")


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
