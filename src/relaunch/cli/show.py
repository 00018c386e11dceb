"""`rl show N`: one trial on a card, or its output, byte for byte; `rl show search/N`: a search."""

from __future__ import annotations

import os
import sys
import time

from relaunch.cli import draw, opened
from relaunch.cli.log import STATE_STYLES, VERDICT_STYLES, exit_word, is_hung
from relaunch.errors import UsageError
from relaunch.inside.protocol import LOG_FILE
from relaunch.journal.output import RESET, STDERR, STDOUT, read_chunks, segments
from relaunch.journal.searches import PREFIX
from relaunch.session import look_back
from relaunch.session.captures import captures_of, has_capture
from relaunch.session.measured import sections_of
from relaunch.session.watched import is_watched
from relaunch.textfile import read_if_there
from relaunch.trial.place.memory import STACKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable
    from typing import Any

    from relaunch.journal.output import Chunk
    from relaunch.journal.store import Journal, Trial

EXAMPLES = """\
Examples
  rl show                      the newest
  rl show 3 --output | less    what it printed, byte for byte
  rl show -1 --output --follow while it runs
  rl show @bad --code --env
  rl show search/3             a bisect, grow or sweep: each probe, the answer
"""
_FILES_SHOWN = 8
_STACK_LINES = 30
_INDENT = 10
"""What stands before the lines of a card."""
_STREAMS = {"out": (STDOUT,), "err": (STDERR,), "reset": (RESET,), "both": (STDOUT, STDERR)}
_STREAM_WORDS = {STDOUT: "out", STDERR: "err", RESET: "reset"}


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("trial", nargs="?", default="-1", metavar="TRIAL|search/N",
        help="3, 3.2, -1, @good, a name, search/3 (the newest)")  # fmt: skip
    add("--output", action="store_true", help="write what it printed, byte for byte")
    add("--follow", action="store_true", help="with --output: go on until it ends")
    add("--stream", choices=tuple(_STREAMS), default="both", help="with --output: which (both)")
    add("--sections", action="store_true", help="its sections, process by process")
    add("--blame", action="store_true", help="all its calls that failed, hidden ones too")
    add("--log", action="store_true", help="write what its loggers said")
    add("--times", action="store_true", help="with --output: when each line came")
    add("--code", action="store_true", help="all files that differ from the commit")
    add("--env", action="store_true", help="the environment, name by name")
    add("--json", action="store_true", help="as JSON: schema relaunch/show/1")
    add("--color", choices=("auto", "always", "never"), default="auto", help="(auto)")


def main(args: Namespace) -> int:
    """Show one trial."""
    _, journal = opened.here()
    if args.trial.startswith(PREFIX):
        return _search(journal, args)
    trial = look_back.trial_of(journal, args.trial)
    if args.output or args.follow or args.times:
        return _output(journal, trial, args)
    if args.log:
        return _log(trial)
    if args.sections and not args.json:
        return _sections(trial, args.color)
    if args.blame and not args.json:
        return _all_blame(trial, args.color)
    packages = look_back.packages_of(journal, trial)
    if args.json:
        draw.say_json("show", _as_json(trial, packages))
        return 0
    with trial.reading():
        lines = card(
            trial,
            packages=packages,
            now=time.time(),
            width=draw.width(),
            pen=draw.pen(choice=args.color),
            all_files=args.code,
            all_env=args.env,
        )
    draw.say("\n".join(lines) + "\n")
    return 0


def _search(journal: Journal, args: Namespace) -> int:
    from relaunch.cli import searches
    from relaunch.session.searched import search_of

    search = search_of(journal.home, args.trial)
    for name in ("output", "follow", "times", "sections", "blame", "log", "code", "env"):
        if getattr(args, name):
            raise UsageError(
                f"--{name} is of one trial, not of a search", hint=f"rl show {search.id}"
            )
    return searches.show(journal.home, search, json=args.json, color=args.color)


def _as_json(trial: Trial, packages: dict[str, str]) -> dict[str, Any]:
    return {
        "trial": look_back.summary(trial),
        "path": trial.path,
        "output_bytes": output_bytes(trial),
        "start": trial.start,
        "end": trial.end,
        "mark": trial.mark,
        "verified": look_back.verified(trial),
        "packages": packages,
        "sections": sections_of(trial),
        "blame": _blame_kept(trial),
        "usage": _usage_json(trial),
        **_collapsed_json(trial),
    }


def output_bytes(trial: Trial) -> int:
    """Count the bytes of output that were kept."""
    paths = (os.path.join(trial.path, f"output.{number}") for number in segments(trial.path))
    return sum(os.path.getsize(path) for path in paths)


# --- what was measured and logged ----------------------------------------------------------------


def _table(trial: Trial, width: int, pen: draw.Pen) -> str:
    found = sections_of(trial)
    if found is None:
        return ""
    from relaunch.cli.sections import screen

    return "\n".join(screen(found, width=width - _INDENT, pen=pen))


def _sections(trial: Trial, color: str) -> int:
    found = sections_of(trial)
    if found is None or not found["processes"]:
        draw.remark(f"rl: #{trial.id} measured no sections")
        return 0
    from relaunch.cli.sections import details

    draw.say("\n".join(details(found, width=draw.width(), pen=draw.pen(choice=color))) + "\n")
    return 0


def _blame_kept(trial: Trial) -> dict[str, Any] | None:
    if not os.path.exists(os.path.join(trial.path, "blame.json")):
        return None
    from relaunch.session.blaming import blame_of

    return blame_of(trial)


def _blame(trial: Trial, pen: draw.Pen) -> str:
    found = _blame_kept(trial)
    if found is None:
        return ""
    from relaunch.cli.blame_told import blame_lines

    lines = blame_lines(found, pen, trial_id=trial.id)
    return "\n".join(line.removeprefix("rl: ") for line in lines)


def _collapsed_json(trial: Trial) -> dict[str, Any]:
    if not (trial.start.get("single") or trial.start.get("sync")):
        return {}
    from relaunch.session.simpler import collapsed_of

    return {"collapsed": [*collapsed_of(trial)]}


def _collapsed(trial: Trial) -> str:
    if not os.path.exists(os.path.join(trial.path, "single.json")):
        return ""
    from relaunch.cli.sync import collapsed_lines
    from relaunch.session.simpler import collapsed_of

    return "\n".join(collapsed_lines(collapsed_of(trial)))


def _all_blame(trial: Trial, color: str) -> int:
    found = _blame_kept(trial)
    if found is None:
        draw.remark(f"rl: nobody watched the calls of #{trial.id}: rl blame")
        return 0
    from relaunch.cli.blame_told import blame_lines

    lines = blame_lines(found, draw.pen(choice=color), everything=True)
    draw.say("\n".join(lines) + "\n")
    return 0


def _log(trial: Trial) -> int:
    try:
        with open(os.path.join(trial.path, LOG_FILE), "rb") as file:
            draw.say_bytes(file.read())
    except OSError:
        draw.remark(f"rl: no logger of #{trial.id} said anything")
    return 0


def _usage(trial: Trial, width: int, pen: draw.Pen) -> str:
    if not is_watched(trial):
        return ""
    from relaunch.cli.watch_told import told

    return "\n".join(told(trial, width=width - _INDENT, pen=pen))


def _log_line(trial: Trial) -> str:
    try:
        kept = os.path.getsize(os.path.join(trial.path, LOG_FILE))
    except OSError:
        return ""
    return f"{draw.size(kept)}: rl show {trial.id} --log"


def _usage_json(trial: Trial) -> dict[str, Any] | None:
    if not is_watched(trial):
        return None
    from relaunch.cli.watch_told import usage_json

    return usage_json(trial)


# --- the output ----------------------------------------------------------------------------------


def _output(journal: Journal, trial: Trial, args: Namespace) -> int:
    chunks: Iterable[Chunk] = read_chunks(trial.path)
    if args.follow:
        from relaunch.session.follow import follow

        chunks = follow(journal, trial.id)
    wanted = _STREAMS[args.stream]
    stamp = _Stamps() if args.times else None
    gathered = _Lines()
    try:
        for chunk in chunks:
            if chunk.lost:
                draw.remark("rl: some output in the middle was not kept")
            if chunk.stream in wanted:
                draw.say_bytes(gathered.whole(stamp.mark(chunk) if stamp else chunk.data))
    except KeyboardInterrupt:
        return 130
    finally:
        draw.say_bytes(gathered.rest)
    return 0


class _Lines:
    """Gathers whole lines for a terminal: a sequence cut in two would not be known as one."""

    def __init__(self) -> None:
        self.rest = b""
        self._is_terminal = sys.stdout.isatty()

    def whole(self, data: bytes) -> bytes:
        if not self._is_terminal:
            return data
        *lines, self.rest = (self.rest + data).splitlines(keepends=True) or [b""]
        if self.rest.endswith(b"\n"):
            lines, self.rest = [*lines, self.rest], b""
        return b"".join(lines)


class _Stamps:
    """Puts the time and the stream before each line."""

    def __init__(self) -> None:
        self._at_start = True

    def mark(self, chunk: Chunk) -> bytes:
        head = f"{chunk.when_s:9.3f} {_STREAM_WORDS.get(chunk.stream, '?'):<5} ".encode()
        parts = []
        for line in chunk.data.splitlines(keepends=True):
            parts.append(head + line if self._at_start else line)
            self._at_start = line.endswith((b"\n", b"\r"))
        return b"".join(parts)


# --- the card ------------------------------------------------------------------------------------


def card(
    trial: Trial,
    *,
    packages: dict[str, str],
    now: float,
    width: int,
    pen: draw.Pen,
    all_files: bool = False,
    all_env: bool = False,
) -> list[str]:
    """Draw all that is known about one trial."""
    row = look_back.summary(trial)
    start, end = trial.start, trial.end or {}
    pairs: list[tuple[str, str]] = []

    def add(name: str, value: str) -> None:
        if value:
            pairs.append((name, value))

    add("why", draw.clean(row["note"]))
    add("mark", _mark(row, pen))
    add("broken", draw.clean(row.get("unreadable", "")))
    add("command", draw.quoted(row["typed"] or row["command"]))
    add("in", directory(str(start.get("cwd", ""))))
    add("by", f"{start['by']}: seen in a run of many" if start.get("by") else "")
    add("given", _given(start))
    add("reset", _resets(start, end))
    add("set", draw.clean(row["set"]))
    add("failure", _failure(row, pen))
    is_hang = (end.get("reached") or {}).get("what") == "hang"
    add("stacks" if is_hang else "limit", _limit(trial, end, pen))
    add("waited", _listed((end.get("reached") or {}).get("waited"), ""))
    add("replay", _replay(trial, now))
    add("told", draw.clean(row["told"]))
    add("critical", "" if row["critical_s"] is None else f"point at {_s(row['critical_s'])}")
    add("warm", _warm(row))
    add("verified", _verified(trial))
    add("metrics", "   ".join(f"{n} {v}" for n, v in map(_cleaned, row["metrics"].items())))
    add("unknown", "\n".join(f"{n}: {w}" for n, w in map(_cleaned, _items(end.get("unknown")))))
    add("code", _code(start, pen, everything=all_files))
    add("sections", _table(trial, width, pen))
    add("blame", _blame(trial, pen))
    add("single", _collapsed(trial))
    add("changed", _listed(end.get("code_changed"), "while it ran: "))
    add("loaded", "\n".join(f"{n} from {p}" for n, p in map(_cleaned, _items(end.get("loaded")))))
    add("ended", _listed(end.get("ended_processes"), "with it: "))
    add("env", _env(start.get("env") or {}, everything=all_env))
    add("python", _python(start.get("python") or {}))
    add("packages", f"{len(packages)}" if packages else "")
    add("host", _host(start.get("host") or {}))
    add("unsaved", _listed(start.get("unsaved"), "run anyway: "))
    add("doubts", "\n".join(draw.clean(str(line)) for line in start.get("doubts") or ()))
    add("output", _output_line(trial))
    add("log", _log_line(trial))
    add("used", _usage(trial, width, pen))
    return [_headline(row, now, pen), *draw.facts(pairs, width, pen)]


def _headline(row: look_back.Summary, now: float, pen: draw.Pen) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["when"]))
    style = STATE_STYLES.get(row["state"], "")
    head = pen("bold", draw.clean(f"#{row['id']}")) + "  " + pen(style, outcome_words(row))
    return f"{head}   {when} ({draw.ago(now - row['when'])})"


def outcome_words(row: look_back.Summary) -> str:
    """Say how a trial ended, in a few words."""
    took = "" if row["duration_s"] is None else f" in {_s(row['duration_s'])}"
    word = exit_word(row)
    if row["state"] == "running":
        return "running"
    if row["state"] == "killed":
        return "rl was killed before it ended"
    if row["state"] == "unknown":
        return "outcome unknown"
    if row["state"] == "unstarted":
        return f"not run: {draw.clean(row['not_started'])}"
    if row.get("lost"):
        return f"lost{took}: {draw.clean(row['lost'])}"
    if row["timed_out"]:
        return f"timed out{took}"
    if row["state"] == "interrupted":
        return f"interrupted{took}"
    if is_hung(row):
        return f"{row['state']}: hung, and was ended{took}"
    return f"{row['state']}: {'killed by ' if row['signal'] else 'exit '}{word}{took}"


def _s(seconds: float) -> str:
    return draw.duration(seconds)


def _cleaned(pair: tuple[Any, Any]) -> tuple[str, str]:
    return draw.clean(str(pair[0])), draw.clean(str(pair[1]))


def _items(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _mark(row: look_back.Summary, pen: draw.Pen) -> str:
    verdict = pen(VERDICT_STYLES.get(row["verdict"], ""), draw.clean(row["verdict"]))
    name = f"[{draw.clean(row['name'])}]" if row["name"] else ""
    return "  ".join(part for part in (verdict, name, draw.clean(row["text"])) if part)


def directory(path: str) -> str:
    """Write a directory ready to paste; a shell takes `~` for home only without quotes."""
    short = _tilde(path)
    return short if short != path else draw.quote(path)


def _tilde(path: str) -> str:
    home = os.path.expanduser("~")
    inside = path == home or path.startswith(home + os.sep)
    return "~" + path[len(home) :] if inside and draw.quote(path) == path else path


def _given(start: dict[str, Any]) -> str:
    """Say which options of the launch matter for a repeat."""
    words = [f"--env {draw.quote(f'{n}={v}')}" for n, v in _items(start.get("env_set"))]
    words += [f"--env {name}=(redacted)" for name in start.get("env_set_redacted") or ()]
    for option, field in (("--until", "until"), ("--match", "match")):
        if start.get(field):
            words.append(f"{option} {draw.quote(str(start[field]))}")
    if start.get("exit_code") is not None:
        words.append(f"--exit-code {start['exit_code']}")
    if start.get("timeout_s"):
        words.append(f"--timeout {start['timeout_s']:g}")
    limits = start.get("limits") or {}
    words += [f"--disk {draw.quote(_disk(disk))}" for disk in limits.get("disks") or ()]
    words += ["--keep"] if limits.get("keep") else []
    for gpu in limits.get("gpu_free") or ():
        which = "" if gpu.get("device") is None else f"{gpu['device']}="
        words.append(f"--gpu-free {which}{_size(gpu['bytes'])}")
    words += [f"--gpu-by {limits['gpu_by']}"] if limits.get("gpu_by") else []
    if limits.get("memory_bytes"):
        words.append(f"--memory {_size(limits['memory_bytes'])}")
        words += [f"--{name.replace('_', '-')} {limits[name]}"
                  for name in ("at_limit", "memory_by") if limits.get(name)]  # fmt: skip
    if limits.get("hang_s"):
        words.append(f"--hang {limits['hang_s']:g}")
        words += [f"--on-hang {limits['on_hang']}"] if limits.get("on_hang") else []
    words += [f"--{name.replace('_', '-')}"
              for name in ("track_memory", "pause_at_peak") if limits.get(name)]  # fmt: skip
    if start.get("ranks"):
        words.append(f"--ranks {start['ranks']}{' --threads' if start.get('threads') else ''}")
    words += [f"--src {draw.quote(str(clone))}" for clone in start.get("src") or ()]
    words += [
        f"--{name.replace('_', '-')}"
        for name in ("frozen", "let_live", "watch", "sync", "single")
        if start.get(name)
    ]
    return draw.clean(" ".join(words))


def _disk(disk: dict[str, Any]) -> str:
    """Write a small disk as it is typed: DIR=SIZE,inodes=N."""
    limits = [_size(disk["size_bytes"])] if disk.get("size_bytes") is not None else []
    limits += [f"inodes={disk['inodes']}"] if disk.get("inodes") is not None else []
    return f"{disk['path']}={','.join(limits)}"


def _size(count: int) -> str:
    """Write a size as it is typed, exactly: 5G, 500M, 1234567."""
    for unit, bytes_ in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if count >= bytes_ and count % bytes_ == 0:
            return f"{count // bytes_}{unit}"
    return str(count)


def _warm(row: look_back.Summary) -> str:
    """Say how a warm run began."""
    resumed = row["resumed"]
    if resumed is None:
        return f"cold: {draw.clean(row['cold'])}" if row["cold"] else ""
    saved = draw.duration(resumed["saved_s"])
    took = f"{draw.duration(resumed['took_s'])} instead of " if resumed["took_s"] else ""
    line = f"resumed at {draw.clean(resumed['at'])} ({took}{saved}{'' if took else ' saved'})"
    because = draw.clean(resumed["because"])
    return f"{line}\nbecause {because}" if because else line


def _verified(trial: Trial) -> str:
    """Say what the cold run that was compared with it showed."""
    found = look_back.verified(trial)
    if not found:
        return ""
    cold, difference, left_out = (
        draw.clean(str(found.get(key, ""))) for key in ("against", "difference", "left_out")
    )
    words = f"NOT as the cold #{cold}: {difference}" if difference else f"as the cold #{cold}"
    return f"{words}\n{left_out}" if left_out else words


def _resets(start: dict[str, Any], end: dict[str, Any]) -> str:
    done = end.get("resets") or []
    lines = []
    for number, reset in enumerate(start.get("resets") or ()):
        line = draw.clean(reset) if isinstance(reset, str) else draw.quoted(reset)
        code = done[number].get("exit_code") if number < len(done) else 0
        lines.append(draw.clean(f"{line}   (exit {code})") if code else line)
    return "\n".join(lines)


def _failure(row: look_back.Summary, pen: draw.Pen) -> str:
    signature = row["signature"]
    if not signature:
        return ""
    digest = pen("dim", draw.clean(f"{signature['kind']} {signature['digest'][:8]}"))
    return f"{draw.clean(signature['title'])}   {digest}"


def _limit(trial: Trial, end: dict[str, Any], pen: draw.Pen) -> str:
    """Say which limit was reached, and where everybody was then."""
    reached = end.get("reached") or {}
    lines = [draw.clean(str(reached.get("text", "")))] if not reached.get("title") else []
    stacks = read_if_there(os.path.join(trial.path, STACKS)).splitlines()[1:]
    lines += [draw.clean(line) for line in stacks[:_STACK_LINES] if line]
    if len(stacks) > _STACK_LINES:
        path = draw.quote(os.path.join(trial.path, STACKS))
        lines.append(pen("dim", f"... and {len(stacks) - _STACK_LINES} more lines: less {path}"))
    return "\n".join(line for line in lines if line)


def _replay(trial: Trial, now: float) -> str:
    """Say how to replay the call that failed, and how that ended the last time."""
    if not has_capture(trial):
        return ""
    replays = [one for capture in captures_of(trial) for one in capture.found.get("replays", ())]
    small = f"\nrl replay {trial.id} --small" if captures_of(trial, small=True) else ""
    if not replays:
        return f"rl replay {trial.id}{small}"
    last = max(replays, key=lambda one: float(one["when"]))
    word = {"gone": "no longer fails", "neither": "could not be said"}.get(last["verdict"], "fails")
    count = draw.plural(len(replays), "replay")
    return f"rl replay {trial.id}   {count}, last {draw.ago(now - last['when'])}: {word}{small}"


def _code(start: dict[str, Any], pen: draw.Pen, *, everything: bool) -> str:
    if start.get("code_problem"):
        return f"not recorded: {draw.clean(str(start['code_problem']))}"
    lines: list[str] = []
    for number, root in enumerate((start.get("code") or {}).get("roots") or ()):
        lines += _root(root, pen, everything=everything, first=number == 0)
    return "\n".join(lines) or "not recorded"


def _root(root: dict[str, Any], pen: draw.Pen, *, everything: bool, first: bool) -> list[str]:
    kinds = (("changed", "M"), ("new", "A"), ("deleted", "D"))
    counts = [f"{len(root[kind])} {kind}" for kind, _ in kinds if root.get(kind)]
    base = draw.clean(str(root.get("base") or "")[:7]) or "no commit"
    where = "" if first else f"   {draw.clean(_tilde(str(root.get('path', ''))))}"
    lines = [f"{base}{' + ' + ', '.join(counts) if counts else ''}{where}"]
    files = [
        f"  {sign} {draw.clean(path)}" for kind, sign in kinds for path in root.get(kind) or ()
    ]
    shown = files if everything or len(files) <= _FILES_SHOWN else files[: _FILES_SHOWN - 1]
    lines += shown
    if len(files) > len(shown):
        lines.append(pen("dim", f"  ... and {len(files) - len(shown)} more: rl show --code"))
    for left in root.get("left_out") or ():
        path, why = draw.clean(str(left.get("path"))), draw.clean(str(left.get("why")))
        lines.append(pen("yellow", f"  not kept: {path} {draw.size(left.get('size') or 0)}, {why}"))
    if root.get("problem"):
        lines.append(pen("yellow", f"  problem: {draw.clean(str(root['problem']))}"))
    return lines


def _listed(values: Any, before: str) -> str:
    names = [draw.clean(str(value)) for value in values or ()]
    return before + ", ".join(names) if names else ""


def _env(env: dict[str, Any], *, everything: bool) -> str:
    values, hashes = env.get("values") or {}, env.get("hashes") or {}
    redacted = env.get("redacted") or []
    if not (values or hashes or redacted):
        return ""
    count = draw.plural(len({*values, *hashes, *redacted}), "name")
    line = f"{count}: {len(values)} with values, {len(redacted)} redacted"
    if not everything:
        names = ", ".join(draw.clean(name) for name in redacted[:4])
        return f"{line} ({names}{', ...' if len(redacted) > 4 else ''})" if redacted else line
    lines = [line, *(f"{name}={draw.quote(str(value))}" for name, value in values.items())]
    lines += [f"{name} (redacted)" for name in redacted]
    lines += [f"{name} (hash {text})" for name, text in hashes.items() if name not in redacted]
    return "\n".join(draw.clean(one) for one in lines)


def _python(python: dict[str, Any]) -> str:
    return draw.clean(" ".join(str(python.get(k, "")) for k in ("version", "executable"))).strip()


def _host(host: dict[str, Any]) -> str:
    parts = [str(host.get(key) or "") for key in ("name", "kernel")]
    parts.append(f"{host['cpus']} cpus" if host.get("cpus") else "")
    parts.append(draw.size(host["memory_bytes"]) if host.get("memory_bytes") else "")
    parts += [str(gpu) for gpu in host.get("gpus") or ()]
    return draw.clean(", ".join(part for part in parts if part))


def _output_line(trial: Trial) -> str:
    kept = output_bytes(trial)
    return f"{draw.size(kept)}: rl show {trial.id} --output" if kept else "none"
