"""`rl trust`: allow what the settings of a project run, or a folder of another user."""

from __future__ import annotations

import os
import sys

from relaunch.cli import draw
from relaunch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from relaunch.session.consent import Wanted

EXAMPLES = """\
Examples
  rl trust                  what the settings of this project run before each launch: allow it
  rl trust --show           only show it
  rl trust /srv/shared/lib  use a project that belongs to another user
  rl trust --list
  rl trust --remove         ask again here
"""


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("folder", nargs="?", default="", help="a project (the one around you)")
    add("--show", action="store_true", help="show what would run, and allow nothing")
    add("--list", action="store_true", help="what is allowed, in all projects")
    add("--remove", action="store_true", help="forget what was allowed in this project")
    add("--json", action="store_true", help="as JSON: schema relaunch/trust/1")


def main(args: Namespace) -> int:
    """Allow, show or forget; what is allowed is in the user's own state alone."""
    if args.show + args.list + args.remove > 1:
        raise UsageError("one of --show, --list and --remove", hint="rl trust --help")
    if args.list:
        return _list(as_json=args.json)
    if args.folder and not os.path.isdir(args.folder):
        raise UsageError(f"{args.folder} is no folder", hint="rl trust FOLDER")
    if args.folder:
        os.chdir(args.folder)
    if args.remove:
        return _remove(as_json=args.json)
    return _allow(only_show=args.show, as_json=args.json)


def _allow(*, only_show: bool, as_json: bool) -> int:
    """Allow the folder where it is another user's, else the commands of its settings."""
    from relaunch.session.consent import allow, wanted_by
    from relaunch.session.project import open_project
    from relaunch.trust import change_store, foreign, whose

    project = open_project()
    theirs = project.home.foreign or project.settings.foreign
    folder = project.home.allow if project.home.foreign else os.path.dirname(theirs)
    if theirs and (foreign(theirs) or foreign(folder)):
        owner = whose(theirs)
        if not only_show:
            _kept(lambda: change_store("folders", os.path.realpath(folder), {"owner": owner}))
        if as_json:
            draw.say_json("trust", {"folder": folder, "owner": owner, "allowed": not only_show})
        else:
            said = "is not used" if only_show else "is used from now on"
            draw.say(f"{draw.clean(folder)} belongs to {owner} and {said}\n")
        return 0
    wanted = wanted_by(project)
    if wanted is not None and wanted.why and not only_show:
        allow(project, wanted)
    if as_json:
        draw.say_json("trust", _told(project.home.project, wanted, only_show=only_show))
    elif wanted is None:
        draw.remark("rl: the settings of this project run nothing")
    else:
        draw.say("".join(f"{draw.clean(line)}\n" for line in wanted.lines))
        if wanted.why:
            said = "not allowed" if only_show else "allowed from now on"
            draw.remark(f"rl: {said}: {wanted.why}")
    return 0


def _told(project: str, wanted: Wanted | None, *, only_show: bool) -> dict[str, Any]:
    return {
        "project": project,
        "runs": [*wanted.lines] if wanted else [],
        "why": wanted.why if wanted else "",
        "allowed": wanted is None or not (wanted.why and only_show),
    }


def _list(*, as_json: bool) -> int:
    from relaunch.session.consent import CONSENTS
    from relaunch.trust import read_store

    store = read_store()
    given = [one for one in store[CONSENTS].values() if not one.get("own")]
    if as_json:
        draw.say_json("trust", {"folders": sorted(store["folders"]), "consents": given})
        return 0
    lines = [f"{folder}  (of {one.get('owner')})" for folder, one in store["folders"].items()]
    lines += [f"{one['project']}  {line}" for one in given for line in one["lines"]]
    draw.say("".join(f"{draw.clean(line)}\n" for line in lines))
    if not lines:
        draw.remark("rl: nothing was allowed yet")
    return 0


def _remove(*, as_json: bool) -> int:
    """Forget what concerns the project around us, and the folder itself."""
    from relaunch.session.consent import CONSENTS
    from relaunch.session.project import open_project
    from relaunch.trust import change_store, read_store

    project, here = os.path.realpath(open_project().home.project), os.path.realpath(os.getcwd())
    store, gone = read_store(), []
    for name, one in store[CONSENTS].items():
        if os.path.realpath(one.get("project", "")) == project:
            gone.append((CONSENTS, name))
    gone += [("folders", name) for name in store["folders"] if name in (project, here)]
    for kind, name in gone:
        _kept(lambda kind=kind, name=name: change_store(kind, name, None))
    if as_json:
        draw.say_json("trust", {"project": project, "removed": len(gone)})
    else:
        draw.remark(f"rl: {draw.plural(len(gone), 'entry')} forgotten for {project}")
    return 0


def _kept(change: Any) -> None:
    try:
        change()
    except OSError as error:
        raise UsageError(f"what is allowed cannot be kept: {error.strerror}") from None


def ask_to_run(wanted: Wanted) -> bool:
    """Show what would run and why it is asked about; nothing but a yes runs it."""
    draw.remark(f"rl: before the launch this would run; {wanted.why}:")
    for line in wanted.lines:
        draw.remark(f"    {line}")
    draw.put(sys.stderr, "    run it, now and from now on? [y/N] > ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
