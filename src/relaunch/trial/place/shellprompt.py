"""Has a shell say in its prompt what it may take: each kind of shell in its own way.

The person's own start-up files are read as ever, and no file of theirs is touched.
"""

from __future__ import annotations

import os
import shlex

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BASH = """\
[ -f {rc} ] && . {rc}
__rl_prompt() {{
  local code=$?
  [[ "$PS1" == '{label} '* ]] || PS1='{label} '$PS1
  return $code
}}
if [[ "$(declare -p PROMPT_COMMAND 2>/dev/null)" == "declare -a"* ]]; then
  PROMPT_COMMAND+=(__rl_prompt)
else
  PROMPT_COMMAND="${{PROMPT_COMMAND:+$PROMPT_COMMAND$'\\n'}}__rl_prompt"
fi
"""
_ZSH = """\
if [[ -n ${{RELAUNCH_ZDOTDIR+x}} ]]; then
  export ZDOTDIR=$RELAUNCH_ZDOTDIR
  unset RELAUNCH_ZDOTDIR
else
  unset ZDOTDIR
fi
_rl_prompt() {{ [[ $PROMPT == '{label} '* ]] || PROMPT='{label} '$PROMPT }}
precmd_functions+=(_rl_prompt)
[[ -f ${{ZDOTDIR:-$HOME}}/.zshenv ]] && source ${{ZDOTDIR:-$HOME}}/.zshenv
"""
_FISH = """\
functions -q fish_prompt; and functions -c fish_prompt _rl_prompt
function _rl_code; return $argv[1]; end
function fish_prompt
    set -l code $status
    echo -n '{label} '
    _rl_code $code
    functions -q _rl_prompt; and _rl_prompt; or echo -n '> '
end
"""
_SH = """\
if [ -n "${{RELAUNCH_ENV+x}}" ]; then ENV=$RELAUNCH_ENV; unset RELAUNCH_ENV; else unset ENV; fi
[ -n "$ENV" ] && [ -f "$ENV" ] && . "$ENV"
PS1='{label} '"${{PS1-$ }}"
"""
_SHELLS = {"bash": "bash", "zsh": "zsh", "fish": "fish"} | dict.fromkeys(
    ("sh", "dash", "ash", "ksh", "mksh"), "sh"
)


_RC_FILES = ("--rcfile", "--init-file")
_LOGIN = frozenset(("-l", "--login"))


class Prompted(Record):
    """How to start a shell so that its prompt says it: words, variables, and files it reads."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    """Path to text."""


def kind_of(argv: Sequence[str]) -> str:
    """Return bash, zsh, fish or sh when these words start a shell that a person types to.

    One with a script has a word that is no option, and one with a line has `-c`.
    """
    kind = _SHELLS.get(os.path.basename(argv[0]).lstrip("-"), "")
    words = argv[1:]
    options = [word for at, word in enumerate(words) if not at or words[at - 1] not in _RC_FILES]
    return kind if all(map(_is_harmless, options)) else ""


def _is_harmless(word: str) -> bool:
    """Tell whether a word is an option that leaves the shell waiting for lines to be typed."""
    if word.startswith("--"):
        return word.partition("=")[0] not in ("--", "--command", "--help", "--version")
    return len(word) > 1 and word[0] == "-" and "c" not in word


def prompted(
    argv: Sequence[str], label: str, folder: str, env: Mapping[str, str]
) -> Prompted | None:
    """Say how to start the shell; its files go into `folder`. None when these words are no shell.

    `label` is shown as it is: it must have no sign that is special in a prompt.
    """
    kind = kind_of(argv)
    words = tuple(argv)
    if kind == "bash":
        return _bash(words, label, os.path.join(folder, "bashrc"))
    if kind == "zsh":
        path = os.path.join(folder, ".zshenv")
        theirs = {"RELAUNCH_ZDOTDIR": env["ZDOTDIR"]} if "ZDOTDIR" in env else {}
        return Prompted(
            argv=words, env={"ZDOTDIR": folder, **theirs}, files={path: _ZSH.format(label=label)}
        )
    if kind == "fish":
        return Prompted(argv=(*words, "-C", _FISH.format(label=label)))
    if kind == "sh":
        path = os.path.join(folder, "shrc")
        theirs = {"RELAUNCH_ENV": env["ENV"]} if "ENV" in env else {}
        return Prompted(
            argv=words, env={"ENV": path, **theirs}, files={path: _SH.format(label=label)}
        )
    return None


def _bash(words: tuple[str, ...], label: str, path: str) -> Prompted | None:
    """Have bash read our file, which reads the one that it would have read."""
    if words[0].startswith("-") or not _LOGIN.isdisjoint(words):
        return None  # one that logs in reads other files
    rc, rest, given = "~/.bashrc", list(words[1:]), [word for word in words if word in _RC_FILES]
    for option in given:
        at = rest.index(option)
        if at + 1 < len(rest):  # a name alone would be looked for on PATH
            rc = shlex.quote(os.path.join(".", rest[at + 1]))
        del rest[at : at + 2]
    if "--norc" in rest:
        rest.remove("--norc")
        rc = "/dev/null"
    # Long options must come first.
    argv = (words[0], "--rcfile", path, *rest)
    return Prompted(argv=argv, files={path: _BASH.format(label=label, rc=rc)})


def safe_label(words: Sequence[str]) -> str:
    """Return `[5G /tmp=1G]`, of signs that mean themselves in every prompt."""
    text = " ".join(words)
    return "[" + "".join(c if c.isalnum() or c in " ./=,-_+:" else "?" for c in text) + "]"
