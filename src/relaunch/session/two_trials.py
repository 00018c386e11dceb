"""What differs between two trials: code, command, set, environment, packages, host, output."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from relaunch.errors import RelaunchError
from relaunch.journal.output import RESET, STDERR, STDOUT, read_chunks
from relaunch.record import Record
from relaunch.session import look_back

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from relaunch.journal.home import Home
    from relaunch.journal.store import Journal, Trial


class Changed(Record):
    """One named thing that is not the same; None is a side on which it is missing."""

    name: str
    old: str | None
    new: str | None


class OutputDifference(Record):
    """The first line that differs. `old` or `new` is None where that output had already ended."""

    stream: str
    line: int
    old: str | None
    new: str | None
    passing: bool = False
    """Only numbers, times or addresses differ."""


class FileChange(Record):
    """One file of a unified diff: what happened to it, and its lines that went or came."""

    path: str
    what: str = "changed"
    """changed, new, deleted, renamed, mode, binary; or how a file that was not kept changed"""
    lines: tuple[tuple[str, int, str], ...] = ()
    """Sign, line number (of the old file for `-`, of the new one for `+`), text."""

    @property
    def added(self) -> int:
        """Count the lines that came."""
        return sum(sign == "+" for sign, _, _ in self.lines)

    @property
    def removed(self) -> int:
        """Count the lines that went."""
        return sum(sign == "-" for sign, _, _ in self.lines)


class Difference(Record):
    """All that differs between two trials; empty parts are the same."""

    old: Trial
    new: Trial
    code: str = ""
    """A unified diff."""
    code_problem: str = ""
    code_same: bool = True
    code_apart: tuple[tuple[str, str], ...] = ()
    """Folders outside the project that only one of them could load from, each with its id."""
    code_order: bool = False
    """Folders that both could load from come in another order."""
    command: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = ()
    """Runs of words: `equal`, `replace`, `delete`, `insert` with the old and the new ones."""
    recipe: tuple[Changed, ...] = ()
    """Set, reset, directory, options."""
    env: tuple[Changed, ...] = ()
    env_count: int = 0
    env_redacted: int = 0
    packages: tuple[Changed, ...] = ()
    packages_count: int = 0
    packages_unknown: tuple[str, ...] = ()
    """Trials of which it is not known, as of a command that is not Python."""
    host: tuple[Changed, ...] = ()
    output: OutputDifference | None = None
    output_beyond: OutputDifference | None = None
    """The first that is more than numbers, when the first difference is not."""


def difference(home: Home, journal: Journal, old: Trial, new: Trial) -> Difference:
    """Compare two trials."""
    with new.reading():
        return _difference(home, journal, old, new)


def _difference(home: Home, journal: Journal, old: Trial, new: Trial) -> Difference:
    code = _code(home, old, new)
    unknown = tuple(one.id for one in (old, new) if not look_back.knows_packages(journal, one))
    before, after = look_back.packages_of(journal, old), look_back.packages_of(journal, new)
    env = [trial.start.get("env") or {} for trial in (old, new)]
    output, beyond = _outputs(old, new)
    return Difference(
        old=old,
        new=new,
        code=code.text,
        code_problem=code.problem,
        code_same=code.is_same,
        code_apart=code.apart,
        code_order=code.is_other_order,
        command=_command_changes(old.start, new.start),
        recipe=changes(_recipe(old.start), _recipe(new.start)) + _hidden(old.start, new.start),
        env=changes(_env(env[0]), _env(env[1])),
        env_count=len(_env(env[1])),
        env_redacted=len(env[1].get("redacted") or ()),
        packages=() if unknown else changes(before, after),
        packages_unknown=unknown,
        packages_count=len(after),
        host=changes(_host(old.start), _host(new.start)),
        output=output,
        output_beyond=beyond,
    )


class _Code(Record):
    text: str = ""
    problem: str = ""
    is_same: bool = False
    apart: tuple[tuple[str, str], ...] = ()
    is_other_order: bool = False


def _code(home: Home, old: Trial, new: Trial) -> _Code:
    codes: list[Any] = [trial.start.get("code") for trial in (old, new)]
    if not all(codes):
        return _Code(problem="not recorded" + ("" if any(codes) else " in both"))
    from relaunch.journal.snapshot.code import from_json

    try:
        before, after = map(from_json, codes)
        if before.digest == after.digest:
            return _Code(is_same=True)
        from relaunch.journal.snapshot.compare import diff_text, of_one, other_order

        return _Code(
            text=diff_text(home, before, after),
            apart=tuple((path, (old, new)[at].id) for path, at in of_one(home, before, after)),
            is_other_order=other_order(home, before, after),
        )
    except RelaunchError as error:
        return _Code(problem=error.message)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return _Code(problem="cannot be read")


def file_changes(text: str) -> list[FileChange]:
    """Read a diff of two snapshots: git's own, and a line for each file that was not kept."""
    files: list[FileChange] = []
    path, what = "", "changed"
    lines: list[tuple[str, int, str]] = []
    notes: list[FileChange] = []

    def flush() -> None:
        if path:
            files.append(FileChange(path=path, what=what, lines=tuple(lines)))

    for line, number in numbered(text):
        if number:
            if line[0] in "+-":
                lines.append((line[0], number, line[1:]))
        elif line.startswith("diff --git "):
            flush()
            path, what, lines = _path_of(line), "changed", []
        elif line.startswith("+++ ") and line != "+++ /dev/null":
            path = line[4:].removeprefix("b/").rstrip("\t")
        elif note := _NOTE.fullmatch(line):
            notes.append(FileChange(path=note[1], what=note[2]))
        else:
            what = _kind_of_change(line) or what
    flush()
    return files + notes


_NOTE = re.compile(r"(?!rename |copy |index |\+\+\+ |--- |@@ |\\)(.+): (.+ -> .+)")
"""How a snapshot tells of a file it did not keep: `data.bin: absent -> 3,000 bytes, too large`."""


def patch_of(text: str) -> str:
    """Keep of a diff of two snapshots what `git apply` takes."""
    kept = [line for line, number in numbered(text) if number or not _NOTE.fullmatch(line)]
    return "\n".join(kept)


def numbered(text: str) -> Iterator[tuple[str, int]]:
    """Give each line of a diff with its number in the file it is from; 0 for git's own words."""
    old = new = old_left = new_left = 0
    for line in text.split("\n"):
        sign = line[:1]
        if (old_left > 0 or new_left > 0) and sign in ("-", "+", " "):
            yield line, old if sign == "-" else new
            if sign != "+":
                old, old_left = old + 1, old_left - 1
            if sign != "-":
                new, new_left = new + 1, new_left - 1
            continue
        if line.startswith("@@ "):
            (old, old_left), (new, new_left) = (_range(word) for word in line.split()[1:3])
        yield line, 0


def _path_of(line: str) -> str:
    return line.rpartition(" b/")[2] or line.split()[-1]


def _range(word: str) -> tuple[int, int]:
    """Read `-3,7`: the first line and how many follow; `-3` is one."""
    start, comma, count = word[1:].partition(",")
    return int(start), int(count) if comma else 1


def _kind_of_change(line: str) -> str:
    for head, what in (
        ("new file", "new"),
        ("deleted file", "deleted"),
        ("rename from", "renamed"),
        ("old mode", "mode"),
        ("Binary files", "binary"),
        ("GIT binary", "binary"),
    ):
        if line.startswith(head):
            return what
    return ""


def changes(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[Changed, ...]:
    """Name what was added, removed or changed, in the order of names."""
    names = sorted({*old, *new})
    return tuple(
        Changed(name=name, old=old.get(name), new=new.get(name))
        for name in names
        if old.get(name) != new.get(name)
    )


def _recipe(start: dict[str, Any]) -> dict[str, str]:
    """Pick what decides how a trial runs, beside code, command and environment."""
    facts = {"set": start.get("set"), "cwd": start.get("cwd")}
    for name in ("until", "match", "timeout_s", "src", "frozen", "let_live", "reset_continue",
                 "sync", "single"):  # fmt: skip
        facts[name] = start.get(name)
    facts["reset"] = start.get("resets")
    facts["match exit"] = start.get("exit_code")
    return {
        name: _text(value) for name, value in facts.items() if value not in (None, "", [], False)
    }


def _hidden(old: dict[str, Any], new: dict[str, Any]) -> tuple[Changed, ...]:
    """Tell whether secrets differ that were taken out of what looks the same."""
    before, after = (
        {"secrets": f"({one['hidden']})"} if "hidden" in one else {} for one in (old, new)
    )
    return changes(before, after) if before and after else ()


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(part if isinstance(part, str) else " ".join(part) for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _env(env: dict[str, Any]) -> dict[str, str]:
    """Give each name a text to compare: its value, or the hash in brackets where that is all."""
    hidden = {name: f"({text})" for name, text in (env.get("hashes") or {}).items()}
    for name in env.get("redacted") or ():
        hidden.setdefault(name, "(redacted)")
    return {**hidden, **(env.get("values") or {})}


def _host(start: dict[str, Any]) -> dict[str, str]:
    facts = {k: _text(v) for k, v in (start.get("host") or {}).items() if k != "load" and v}
    python = start.get("python") or {}
    return {**facts, **{f"python {k}": _text(v) for k, v in python.items() if v}}


def _command_changes(
    old: dict[str, Any], new: dict[str, Any]
) -> tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]:
    """Compare two commands; two one-liners by what was typed, unless that is the same."""
    if old.get("typed") and new.get("typed") and old["typed"] != new["typed"]:
        return word_changes(old["typed"], new["typed"])
    return word_changes(old["command"], new["command"])


def word_changes(
    old: Sequence[str], new: Sequence[str]
) -> tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]:
    """Compare two commands word by word; nothing when they are the same."""
    if list(old) == list(new):
        return ()
    matcher = SequenceMatcher(None, list(old), list(new), autojunk=False)
    return tuple(
        (what, tuple(old[a:b]), tuple(new[c:d])) for what, a, b, c, d in matcher.get_opcodes()
    )


# --- the output ----------------------------------------------------------------------------------


def _outputs(old: Trial, new: Trial) -> tuple[OutputDifference | None, OutputDifference | None]:
    """Find the first difference, in standard output first, and the first beyond numbers."""
    before, after = _streams(old), _streams(new)
    first = None
    for stream, word in ((STDOUT, "stdout"), (STDERR, "stderr")):
        for found in line_differences(before[stream], after[stream], stream=word):
            first = first or found
            if not found.passing:
                return first, found if found is not first else None
    return first, None


def _streams(trial: Trial) -> dict[int, bytes]:
    parts: dict[int, list[bytes]] = {RESET: [], STDOUT: [], STDERR: []}
    for chunk in read_chunks(trial.path):
        parts.setdefault(chunk.stream, []).append(chunk.data)
    return {stream: b"".join(data) for stream, data in parts.items()}


def line_differences(old: bytes, new: bytes, *, stream: str) -> list[OutputDifference]:
    """Find the first line that differs, and the first that differs by more than its numbers."""
    if old == new:
        return []
    before, after = _lines(old), _lines(new)
    found: list[OutputDifference] = []
    for number in range(max(len(before), len(after))):
        one = before[number] if number < len(before) else None
        other = after[number] if number < len(after) else None
        if one == other:
            continue
        passing = one is not None and other is not None and washed(one) == washed(other)
        if not found or not passing:
            found.append(
                OutputDifference(
                    stream=stream, line=number + 1, old=one, new=other, passing=passing
                )
            )
        if not passing:
            break
    return found


def _lines(data: bytes) -> list[str]:
    # By newlines alone: a progress bar's carriage returns are part of its line.
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8,}\b|[-+]?\d[\d.,:_]*(?:[eE][-+]?\d+)?")


def washed(line: str) -> str:
    """Take numbers, times and addresses out of a line."""
    return _NUMBER.sub("0", line)
