"""`rl set`: config sets, files or folders behind one link; made, listed, put in place, compared."""

from __future__ import annotations

import os

from relaunch.cli import draw
from relaunch.cli.opened import open_project
from relaunch.errors import PlaceError, UsageError
from relaunch.session.sets import project_sets
from relaunch.textfile import IN_TREE
from relaunch.trial.place import sets as places
from relaunch.trial.place.hold import repair_sets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from relaunch.session.project import Project
    from relaunch.trial.place.setdiff import FileDiff
    from relaunch.trial.place.sets import ConfigSets

EXAMPLES = """\
examples:
  rl set new bf16 --from conf       conf/ becomes conf@base, conf@bf16; conf -> conf@base
  rl set ls
  rl set diff base bf16
  rl set use bf16                   for good; `rl -s bf16 -- CMD` is for one trial
  rl -s base,bf16 -n 3 -- CMD       each three times, in one table
"""


def arguments(parser: ArgumentParser) -> None:
    """Declare the four words and their options."""
    words = parser.add_subparsers(dest="word", metavar="new|ls|use|diff")
    new = words.add_parser("new", help="copy the set in place under a new name")
    new.add_argument("name", metavar="NAME")
    new.add_argument(
        "--from",
        dest="links",
        metavar="PATH",
        action="append",
        default=[],
        help="the file or folder that differs from set to set (repeatable; default: all links)",
    )
    listed = words.add_parser("ls", help="the sets, the one in place marked")
    listed.add_argument("--json", action="store_true", help="as JSON: schema relaunch/set-ls/1")
    use = words.add_parser("use", help="put a set in place, for good")
    use.add_argument("name", metavar="NAME")
    diff = words.add_parser("diff", help="in which files and lines two sets differ")
    diff.add_argument("one", metavar="A", nargs="?", default="")
    diff.add_argument("other", metavar="B", nargs="?", default="")
    diff.add_argument("--json", action="store_true", help="as JSON: schema relaunch/set-diff/1")


def main(args: Namespace) -> int:
    """Do one of the four."""
    project = open_project()
    repair_sets(project.home.journal)
    sets = project_sets(project)
    if args.word == "new":
        return _new(project, sets, args.name, args.links)
    if args.word == "use":
        return _use(project, sets, args.name)
    if args.word == "diff":
        return _diff(sets, args.one, args.other, as_json=args.json)
    return _list(sets, as_json=getattr(args, "json", False))


def _new(project: Project, sets: ConfigSets, name: str, paths: list[str]) -> int:
    from relaunch.trial.place.setedit import check_name, new_set, tracked_by_git

    check_name(name)
    top = project.home.project
    if paths:
        chosen = tuple(_link_of(project, sets, path) for path in paths)
    elif sets.links:
        chosen = sets.links
    elif sets.flag:
        raise UsageError(
            f"the sets here are values of ${sets.flag}: nothing to make", hint=f"rl -s {name}"
        )
    else:
        raise UsageError("which file or folder?", hint=f"rl set new {name} --from conf")
    first_time = [link for link in chosen if not places.current_name(link)]
    tracked = [link for link in first_time if tracked_by_git(top, link.link)]
    new_set(sets.but(links=chosen), name, journal=project.home.journal, tell=_tell)
    for link in chosen:
        shown = os.path.relpath(link.link, top)
        made = os.path.relpath(link.variant(name), top)
        was = f"a copy of {places.current_name(link)}; {shown} -> {link_text(link)}"
        draw.say(draw.clean(f"{made}  ({was})") + "\n")
    for link in tracked:
        shown = os.path.relpath(link.link, top)
        _tell(
            f"git tracks {shown}, which is a link now: it will show its files as deleted; "
            f"commit the link and {shown}@*, or leave them out with `git rm -r --cached {shown}`"
        )
    return 0


def _link_of(project: Project, sets: ConfigSets, path: str) -> places.SetLink:
    """Return the link a person means by `path`: one that is known, or one to be."""
    full = os.path.normpath(os.path.join(project.cwd, path))
    for link in sets.links:
        if link.link == full:
            return link
    inner = os.path.relpath(full, project.home.project)
    if inner.startswith(".."):
        raise PlaceError(f"{path} is outside of the project {project.home.project}")
    if inner == ".":
        raise PlaceError(f"{path} is the project itself", hint="rl set new NAME --from conf")
    for owner, folder in (("git", ".git"), ("rl", IN_TREE)):
        if folder in inner.split(os.sep):
            raise PlaceError(f"{path} is {owner}'s own", hint="rl set new NAME --from conf")
    if "@" in os.path.basename(full):
        name = inner.rpartition("@")[2]
        raise PlaceError(f"{path} is a set already", hint=f"rl set use {name}")
    return places.set_link(project.home.project, inner)


def link_text(link: places.SetLink) -> str:
    """Return what a link says, as `ls -l` shows it."""
    try:
        return os.readlink(link.link)
    except OSError:
        return "?"


def _use(project: Project, sets: ConfigSets, name: str) -> int:
    from relaunch.trial.place.setedit import use_set

    if not sets.links:
        raise UsageError(_no_links(sets), hint=f"rl set new {name} --from conf")
    for link, target in use_set(sets, name, journal=project.home.journal, tell=_tell).items():
        draw.say(draw.clean(f"{os.path.relpath(link, sets.project)} -> {target}") + "\n")
    return 0


def _list(sets: ConfigSets, *, as_json: bool) -> int:
    names = places.set_names(sets)
    rows = []
    for name in names:
        paths = {
            os.path.relpath(link.link, sets.project): os.path.relpath(
                link.variant(name), sets.project
            )
            for link in sets.links
            if os.path.lexists(link.variant(name))
        }
        in_place = any(places.current_name(link) == name for link in sets.links)
        rows.append({"name": name, "in_place": in_place, "paths": paths})
    if as_json:
        draw.say_json("set-ls", {"sets": rows, "flag": sets.flag})
        return 0
    if sets.flag:
        _tell(f"the name of the set is handed to the program in ${sets.flag}")
    if not rows:
        draw.remark(f"rl: {_no_links(sets)}")
        if not sets.flag:
            draw.remark("    rl set new NAME --from conf")
        return 0
    wide = max(draw.columns_of(draw.clean(name)) for name in names)
    for row in rows:
        mark = "*" if row["in_place"] else " "
        shown = "  ".join(str(path) for path in dict(row["paths"]).values())  # type: ignore[call-overload]
        name = draw.pad(draw.clean(str(row["name"])), wide)
        draw.say(f"{mark} {name}  {draw.clean(shown)}\n")
    return 0


def _no_links(sets: ConfigSets) -> str:
    return "no files or folders have sets here" if sets.flag else "no sets here"


def _diff(sets: ConfigSets, one: str, other: str, *, as_json: bool) -> int:
    from relaunch.trial.place.setdiff import default_pair, diff_sets

    names = places.set_names(sets)
    if not names:
        raise UsageError(_no_links(sets), hint="rl set new NAME --from conf")
    current = next((places.current_name(link) for link in sets.links), "")
    if one and not other:
        one, other = (current, one) if current and current != one else (one, "")
    elif not one:
        one, other = default_pair(names, current) or ("", "")
    if not other:
        raise UsageError(f"which two? there are: {', '.join(names)}", hint="rl set diff A B")
    found = diff_sets(sets.but(flag=""), one, other)
    if as_json:
        files = [{"file": item.file, "lines": list(item.lines)} for item in found]
        draw.say_json("set-diff", {"a": one, "b": other, "files": files})
        return 0
    _show_diff(found, one, other)
    return 0


def _show_diff(found: list[FileDiff], one: str, other: str) -> None:
    if not found:
        draw.remark(f"rl: {one} and {other} are the same")
    pen = draw.pen()
    for item in found:
        draw.say(pen("bold", draw.clean(item.file)) + "\n")
        for line in item.lines:
            if line.startswith(("---", "+++")):
                continue
            style = {"+": "green", "-": "red", "@": "dim"}.get(line[:1], "")
            draw.say("  " + pen(style, draw.clean(line)) + "\n")


def _tell(line: str) -> None:
    draw.remark(f"rl: {line}")
