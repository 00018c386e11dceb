"""Writes the static shell completions from the parsers of the verbs; `--check` only compares.

Usage: python scripts/completions.py [--check]
"""

from __future__ import annotations

import argparse
import importlib
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from relaunch.cli.main import VERBS

FOLDER = Path(__file__).parent.parent / "src/relaunch/desk/completions"
NAMES = {"bash": "rl.bash", "zsh": "_rl", "fish": "rl.fish"}
TRIALS = ("@good", "@bad", "-1")
LAUNCHES = ("run", "warm", "bisect", "sweep", "grow")
"""Verbs that take a command after `--`."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option as a shell sees it; `kind` says what its value is, empty for a switch."""

    flags: tuple[str, ...]
    help: str
    kind: str = ""
    choices: tuple[str, ...] = ()
    takes_two: bool = False
    """A second value may follow the first."""


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A verb, or one word below it such as `set new`."""

    name: str
    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...] = ()
    """What may stand here: subcommands, or the choices of a position."""
    kind: str = ""
    below: tuple[Verb, ...] = ()


def main() -> int:
    """Write or compare all three; returns 1 when one is out of date."""
    verbs = read_verbs()
    stale = 0
    for shell, name in NAMES.items():
        path, text = FOLDER / name, render(shell, verbs)
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.stderr.write(f"{path} is out of date: make generated\n")
            stale = 1
    return stale


def render(shell: str, verbs: list[Verb]) -> str:
    """Return the completion of one shell."""
    return {"bash": bash, "zsh": zsh, "fish": fish}[shell](verbs)


# --- from argparse --------------------------------------------------------------------------------


def read_verbs() -> list[Verb]:
    """Ask the parser of every verb for its options."""
    found = []
    for name, text in VERBS.items():
        parser = argparse.ArgumentParser(prog=f"rl {name}", allow_abbrev=False)
        importlib.import_module(f"relaunch.cli.{name}").arguments(parser)
        found.append(_verb(name, text, parser))
    return found


def _verb(name: str, text: str, parser: argparse.ArgumentParser) -> Verb:
    options, words, kind, below = [], [], "", []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for sub, subparser in action.choices.items():
                one = _verb(sub, helps.get(sub, ""), subparser)
                below.append(_of_sets(one) if name == "set" else one)
                words.append(sub)
        elif action.help == argparse.SUPPRESS:
            continue
        elif action.option_strings:
            options.append(_option(action))
        else:
            words += [str(choice) for choice in action.choices or ()]
            kind = kind or _kind(_metavar(action)) or _trial(_metavar(action))
    return Verb(
        name=name, help=text, options=tuple(options), words=tuple(words), kind=kind,
        below=tuple(below),
    )  # fmt: skip


def _of_sets(verb: Verb) -> Verb:
    """Below `rl set`, A and B and names are sets; a new one has no name to complete yet."""
    return verb if verb.name in ("new", "ls") else replace(verb, kind="sets")


def _option(action: argparse.Action) -> Option:
    switch = action.nargs == 0
    if "--set" in action.option_strings:
        return Option(
            flags=tuple(action.option_strings), help=action.help or "", kind="sets",
            takes_two=action.nargs == "+",
        )  # fmt: skip
    choices = tuple(str(choice) for choice in action.choices or ())
    return Option(
        flags=tuple(action.option_strings),
        help=(action.help or "").split(";")[0].split("\n")[0],
        kind="" if switch else (_kind(_metavar(action)) or "text"),
        choices=choices,
    )


def _metavar(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return (metavar or action.dest).upper()


def _kind(metavar: str) -> str:
    kinds = {
        "CMD": "command", "-- CMD": "", "CLONE": "dir", "DIR": "dir", "FOLDER": "dir",
        "FILE": "file", "FILE:LINE": "file", "PATH": "file", "A,B": "sets", "SET": "sets",
        "SETS": "sets",
    }  # fmt: skip
    return kinds.get(metavar, "")


def _trial(metavar: str) -> str:
    if metavar == "TRIAL|SEARCH/N":
        return "either"
    return "trial" if metavar in ("N", "A", "B", "TRIAL", "OLD", "NEW") else ""


# --- bash -----------------------------------------------------------------------------------------


def bash(verbs: list[Verb]) -> str:
    """Plain bash 3.2 and later, with or without bash-completion."""
    cases = "".join(_bash_case(verb) for verb in _flat(verbs))
    return f"""\
# bash completion for rl. Written by scripts/completions.py; do not edit.
_rl() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} verb= i
    local options= words= values=
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${{COMP_WORDS[i]}} == -- ]] && {{ _rl_program $((i + 1)); return; }}
    done
    if [[ $cur == = ]]; then cur=; prev=${{COMP_WORDS[COMP_CWORD-1]}}; fi
    if [[ $prev == = ]]; then prev=${{COMP_WORDS[COMP_CWORD-2]}}; fi
    if ((COMP_CWORD > 1)) && [[ ${{COMP_WORDS[1]}} != -* ]]; then verb=${{COMP_WORDS[1]}}; fi
    if ((COMP_CWORD == 1)); then words='{" ".join(verb.name for verb in verbs)}'; fi
    case $verb in {_bash_parents(verbs)})
        if ((COMP_CWORD > 2)); then verb="$verb ${{COMP_WORDS[2]}}"; fi ;;
    esac
    case $verb in
{cases}    esac
    case $values in
    '') ;;
    text) return ;;
    file|command) _rl_files; return ;;
    dir) compopt -o filenames 2>/dev/null
        while IFS= read -r i; do COMPREPLY+=("$i"); done < <(compgen -d -- "$cur"); return ;;
    sets) _rl_sets; return ;;
    *) COMPREPLY=($(compgen -W "$values" -- "$cur")); return ;;
    esac
    if [[ $cur == -* ]]; then words=$options; fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}

_rl_files() {{
    local name
    compopt -o filenames 2>/dev/null
    while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen -f -- "$cur")
}}

# The sets that lie here, as conf@NAME; several are joined by commas.
_rl_sets() {{
    local before= last=$cur path name
    case $cur in *,*) before=${{cur%,*}}, last=${{cur##*,}} ;; esac
    for path in *@*; do
        name=${{path#*@}}
        if [[ -e $path && $name == "$last"* ]]; then
            printf -v name %q "$name"  # it is typed into the line
            COMPREPLY+=("$before$name")
        fi
    done
}}

# What the journal has here, as search/N: numbers alone, for bash expands these words.
_rl_searches() {{
    local path number folder=$(git rev-parse --git-common-dir 2>/dev/null)/relaunch
    if [[ ! -d $folder ]]; then folder=.relaunch; fi
    for path in "$folder"/searches/[0-9]*; do
        number=${{path##*/}}
        if [[ -d $path && $number != *[!0-9]* ]]; then words+=" search/$number"; fi
    done
}}

# After -- the words belong to the program: complete them as without rl.
_rl_program() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} name
    if declare -F _comp_command_offset >/dev/null; then _comp_command_offset "$1"; return; fi
    if declare -F _command_offset >/dev/null; then _command_offset "$1"; return; fi
    if ((COMP_CWORD == $1)) && [[ $cur != */* ]]; then
        while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen -c -- "$cur")
    fi
    _rl_files
}}

complete -F _rl rl relaunch
"""


def _flat(verbs: list[Verb], before: str = "") -> list[Verb]:
    flat = []
    for verb in verbs:
        named = replace(verb, name=f"{before}{verb.name}")
        flat += [named, *_flat(list(verb.below), f"{named.name} ")]
    return flat


def _bash_parents(verbs: list[Verb]) -> str:
    return "|".join(verb.name for verb in verbs if verb.below) or "-"


def _bash_case(verb: Verb) -> str:
    flags = " ".join([flag for option in verb.options for flag in option.flags])
    extra = " --" if verb.name in LAUNCHES else ""
    values = "".join(
        f"        {'|'.join(option.flags)}) values='{' '.join(option.choices) or option.kind}' ;;\n"
        for option in verb.options
        if option.kind
    )
    words = " ".join([*verb.words, *(TRIALS[:2] if verb.kind in ("trial", "either") else ())])
    lines = [f"    {_bash_pattern(verb.name)})\n        options='{flags}{extra}'\n"]
    if verb.kind == "sets":
        lines.append("        if [[ $cur != -* ]]; then values=sets; fi\n")
    if words:
        lines.append(f"        words='{words}'\n")
    for option in verb.options:
        if option.takes_two:
            test = f"$cur != -* && ${{COMP_WORDS[COMP_CWORD-2]}} == {option.flags[0]}"
            lines.append(f"        if [[ {test} ]]; then values={option.kind}; fi\n")
    if verb.kind == "either":
        lines.append("        _rl_searches\n")
    if values:
        lines.append(f"        case $prev in\n{values}        esac\n")
    return "".join(lines) + "        ;;\n"


def _bash_pattern(name: str) -> str:
    return "''|run" if name == "run" else f"'{name}'" if " " in name else name


# --- zsh ------------------------------------------------------------------------------------------


def zsh(verbs: list[Verb]) -> str:
    """Works from $fpath as `_rl`, and sourced after compinit."""
    names = "\n".join(f"    {_zsh_word(f'{verb.name}:{verb.help}')}" for verb in verbs)
    cases = "".join(_zsh_case(verb) for verb in verbs)
    return f"""\
#compdef rl relaunch
# zsh completion for rl. Written by scripts/completions.py; do not edit.
_rl_verbs() {{
  local -a verbs=(
{names}
  )
  _describe -t verbs verb verbs
}}

# The sets that lie here, as conf@NAME; several are joined by commas.
_rl_sets() {{
  local -a sets=(*@*(N))
  sets=(${{sets#*@}})
  _sequence compadd - $sets
}}

_rl_trials() {{
  local -a trials=({" ".join(repr(trial) for trial in TRIALS)})
  compadd -a trials
}}

# What the journal has here, as search/N.
_rl_either() {{
  local folder="$(git rev-parse --git-common-dir 2>/dev/null)/relaunch"
  [[ -d $folder ]] || folder=.relaunch
  local -a searches=($folder/searches/<->(N:t))
  searches=(search/$^searches)
  _rl_trials
  compadd -a searches
}}

_rl() {{
  local dashes=${{words[(i)--]}}
  if (( dashes < CURRENT )); then
    # After -- the words belong to the program: complete them as without rl.
    (( CURRENT -= dashes ))
    shift $dashes words
    _normal
    return
  fi
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _rl_verbs
    return
  fi
  local verb=run
  if [[ $words[2] != -* ]]; then
    verb=$words[2]
    shift words
    (( CURRENT-- ))
  fi
  case $verb in
{cases}  esac
}}

if [[ $funcstack[1] == _rl ]]; then
  _rl "$@"
else
  compdef _rl rl relaunch
fi
"""


def _zsh_case(verb: Verb) -> str:
    if not verb.below:
        return f"    {verb.name})\n      {_zsh_arguments(verb, '      ')}\n      ;;\n"
    subs = "".join(
        f"        {sub.name})\n          {_zsh_arguments(sub, '          ')}\n          ;;\n"
        for sub in verb.below
    )
    words = " ".join(_zsh_word(f"{sub.name}:{sub.help}") for sub in verb.below)
    return f"""\
    {verb.name})
      if (( CURRENT == 2 )); then
        local -a below=({words})
        _describe -t commands command below
        return
      fi
      shift words
      (( CURRENT-- ))
      case $words[1] in
{subs}      esac
      ;;
"""


def _zsh_arguments(verb: Verb, indent: str) -> str:
    specs = [_zsh_option(option) for option in verb.options]
    if verb.words:
        specs.append(f"'*:word:({' '.join(verb.words)})'")
    elif verb.kind:
        specs.append(f"'*:{verb.kind}:{_ZSH[verb.kind]}'")
    return f" \\\n{indent}  ".join(["_arguments -s", *specs])


_ZSH = {
    "trial": "_rl_trials",
    "either": "_rl_either",
    "file": "_files",
    "dir": "_files -/",
    "command": "_cmdstring",
    "sets": "_rl_sets",
    "text": " ",
}


def _zsh_option(option: Option) -> str:
    value = ""
    if option.choices:
        value = f":value:({' '.join(option.choices)})"
    elif option.kind:
        value = f":{option.kind}:{_ZSH[option.kind]}" * (2 if option.takes_two else 1)
    text = option.help.replace("[", "(").replace("]", ")").replace(":", ",")
    parts = []
    for flag in option.flags:
        others = "" if len(option.flags) == 1 else f"({' '.join(option.flags)})"
        equals = "=" if value and flag.startswith("--") else "+" if value else ""
        parts.append(_zsh_word(f"{others}{flag}{equals}[{text}]{value}"))
    return " ".join(parts)


def _zsh_word(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# --- fish -----------------------------------------------------------------------------------------


def fish(verbs: list[Verb]) -> str:
    """Conditions are functions of our own, evaluated by fish alone."""
    lines = []
    for verb in verbs:
        lines.append(f"complete -c rl -n __rl_first -a {verb.name} -d {_fish_word(verb.help)}")
    lines += [
        f"complete -c rl -n {test} -a -- -d 'then the command'"
        for test in ("__rl_launch", "'__rl_in warm'")
    ]
    for verb in verbs:
        test = "__rl_launch" if verb.name == "run" else f"'__rl_in {verb.name}'"
        lines += _fish_verb(verb, test)
        for sub in verb.below:
            text = _fish_word(sub.help)
            lines.append(f"complete -c rl -n '__rl_at {verb.name}' -a {sub.name} -d {text}")
            lines += _fish_verb(sub, f"'__rl_in {verb.name} {sub.name}'")
    body = "\n".join(lines)
    return f"""\
# fish completion for rl. Written by scripts/completions.py; do not edit.
# The words before the cursor, without rl itself; fails after -- where they are the program's.
function __rl_before
    set -l before (commandline -opc)[2..]
    contains -- -- $before; and return 1
    for word in $before
        echo -- $word
    end
    return 0
end

function __rl_first
    set -l before (__rl_before); or return 1
    test (count $before) -eq 0
end

function __rl_launch
    set -l before (__rl_before); or return 1
    test (count $before) -eq 0; or string match -q -- '-*' $before[1]; or test $before[1] = run
end

function __rl_in
    set -l before (__rl_before); or return 1
    test "$before[1..$(count $argv)]" = "$argv"
end

function __rl_second
    set -l before (__rl_before); or return 1
    test "$before[1]" = $argv[1]; and test (count $before) -gt 2; and test "$before[-2]" = $argv[2]
end

function __rl_at
    set -l before (__rl_before); or return 1
    test "$before" = "$argv"
end

function __rl_program
    contains -- -- (commandline -opc)
end

# After -- the words belong to the program: complete them as without rl.
function __rl_rest
    set -l words (commandline -opc)
    set -l dashes (contains -i -- -- $words)
    set -l rest (string escape -- $words[(math $dashes + 1)..]) (commandline -ct)
    complete -C "$rest"
end

# The sets that lie here, as conf@NAME; several are joined by commas.
function __rl_sets
    set -l before (string replace -rf '[^,]*$' '' -- (commandline -ct))
    for path in *@*
        printf '%s%s\\n' "$before" (string replace -r '^[^@]*@' '' -- $path)
    end
end

# What the journal has here, as search/N.
function __rl_searches
    set -l folder (git rev-parse --git-common-dir 2>/dev/null)/relaunch
    test -d "$folder"; or set folder .relaunch
    for path in $folder/searches/*
        string match -rq '/\\d+$' -- $path; and echo search/(basename $path)
    end
end

complete -c rl -f
complete -c rl -n __rl_program -a '(__rl_rest)'
{body}
"""


_FISH = {
    "trial": f"-xa '{' '.join(TRIALS)}'",
    "file": "-rF",
    "dir": "-xa '(__fish_complete_directories)'",
    "command": "-xa '(__fish_complete_command)'",
    "sets": "-xa '(__rl_sets)'",
    "text": "-x",
}


def _fish_verb(verb: Verb, test: str) -> list[str]:
    lines = []
    for option in verb.options:
        flags = " ".join(
            f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags
        )
        value = f"-xa '{' '.join(option.choices)}'" if option.choices else ""
        value = value or (_FISH[option.kind] if option.kind else "")
        text = _fish_word(option.help)
        lines.append(" ".join(f"complete -c rl -n {test} {flags} {value} -d {text}".split("  ")))
        if option.takes_two:
            second = f"'__rl_second {verb.name} {option.flags[0]}'"
            lines.append(f"complete -c rl -n {second} {_FISH[option.kind]}")
    words = [*verb.words] if not verb.below else []
    words += TRIALS[:2] if verb.kind in ("trial", "either") else ()
    words += ["(__rl_searches)"] if verb.kind == "either" else ()
    words += ["(__rl_sets)"] if verb.kind == "sets" else ()
    if words:
        lines.append(f"complete -c rl -n {test} -a '{' '.join(words)}'")
    return lines


def _fish_word(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


if __name__ == "__main__":
    raise SystemExit(main())
