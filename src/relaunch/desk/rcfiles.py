"""Knows which line in which dotfile helps, and reads whether it is there; writes nothing.

Files are read, never run: an interactive shell started to ask it could start anything.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from relaunch.record import Record

BASH_HISTORY = """\
shopt -s histappend
# Written after every command, so that a killed shell keeps its history. Last in PROMPT_COMMAND,
# on a line of its own: earlier parts of it may want to read $?.
case "${PROMPT_COMMAND[*]}" in
  *"history -a"*) ;;
  *) PROMPT_COMMAND="${PROMPT_COMMAND:+$PROMPT_COMMAND
}history -a" ;;
esac
"""

ZSH_HISTORY = """\
HISTFILE=${HISTFILE:-${ZDOTDIR:-$HOME}/.zsh_history}
(( HISTSIZE >= 10000 )) || HISTSIZE=10000
(( SAVEHIST >= 10000 )) || SAVEHIST=10000  # at 0 zsh keeps nothing
[[ -o share_history || -o inc_append_history_time ]] || setopt inc_append_history
"""

INPUTRC = """\
"\\e[A": history-search-backward
"\\e[B": history-search-forward
"\\eOA": history-search-backward
"\\eOB": history-search-forward
"""

PDBRC = """\
alias nl next ;; list .
alias sl step ;; list .
alias pd pp {k: v for k, v in vars(%*).items() if not k.startswith('__')}
"""


class World(Record):
    """Where this person's files are."""

    home: str
    shell: str = ""
    """The base name of $SHELL."""
    config: str
    data: str
    state: str
    zdotdir: str
    inputrc: str
    path: str = os.defpath


def world(env: Mapping[str, str]) -> World:
    """Read the world from the environment."""
    home = env.get("HOME") or os.path.expanduser("~")
    return World(
        home=home,
        shell=os.path.basename(env.get("SHELL", "")),
        config=env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"),
        data=env.get("XDG_DATA_HOME") or os.path.join(home, ".local/share"),
        state=env.get("XDG_STATE_HOME") or os.path.join(home, ".local/state"),
        zdotdir=env.get("ZDOTDIR") or home,
        inputrc=env.get("INPUTRC") or os.path.join(home, ".inputrc"),
        path=env.get("PATH", os.defpath),
    )


class Edit(Record):
    """The text a file should have; `path` as the person names it, links not followed."""

    path: str
    text: str


class Change(Record):
    """A block of ours in a file, or without a `block` name the whole file."""

    path: str
    body: str
    block: str = ""
    comment: str = "#"
    head: str = ""
    """What a file that does not exist yet begins with."""


def fold(changes: Sequence[Change]) -> list[Edit]:
    """Turn changes into one edit per file, several blocks of one file together."""
    texts: dict[str, str] = {}
    for change in changes:
        old = texts[change.path] if change.path in texts else read_text(change.path)
        if change.block:
            old = old or change.head
            texts[change.path] = with_block(old, change.block, change.body, change.comment)
        else:
            texts[change.path] = change.body
    return [Edit(path=path, text=text) for path, text in texts.items() if text != read_text(path)]


class Advice(Record):
    """What a desk file says today, and the changes that would help; none when all is well."""

    area: str
    name: str
    fix: str
    """The name for `rl doctor --fix`."""
    ok: bool
    text: str
    changes: tuple[Change, ...] = ()


def advise(here: World, completions: Mapping[str, str]) -> list[Advice]:
    """Read every dotfile we have an opinion on; `completions` is the text per shell."""
    found: list[Advice] = []
    for shell in _shells(here):
        found += _history(here, shell)
    if _has(here, "bash") or os.path.exists(here.inputrc):
        found.append(_inputrc(here))
    for shell in _shells(here):
        found.append(_completion(here, shell, completions[shell]))
    return [*found, *_editors(here), _pdb(here)]


def _shells(here: World) -> list[str]:
    """Return the shells this person uses: the login shell, and those with a file of their own."""
    files = {"bash": _bashrc(here), "zsh": _zshrc(here), "fish": _fish_config(here)}
    used = [s for s, file in files.items() if s == here.shell or os.path.exists(file)]
    return [shell for shell in used if _has(here, shell)]


# --- files and blocks -----------------------------------------------------------------------------


def with_block(text: str, name: str, body: str, comment: str = "#") -> str:
    """Put `body` at the end of `text` between our marks, or renew it where it stands."""
    opening = f"{comment} >>> relaunch: {name} (rl doctor --undo takes it back) >>>\n"
    closing = f"{comment} <<< relaunch: {name} <<<\n"
    block = f"{opening}{body}{closing}"
    start, end = text.find(opening), text.find(closing)
    if 0 <= start < end:
        return text[:start] + block + text[end + len(closing) :]
    if text and not text.endswith("\n"):
        text += "\n"
    return f"{text}\n{block}" if text else block


def read_text(path: str) -> str:
    """Return what the file says, or nothing; undecodable bytes survive a round trip."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def sourced_text(path: str, home: str, depth: int = 3) -> str:
    """Return the file's lines without comments, and those of files it sources by plain name."""
    try:
        text = read_text(path)
    except OSError:
        return ""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    parts = ["\n".join(lines)]
    if depth:
        for line in lines:
            for name in re.findall(r"(?:^|[;&|]|\bthen\b)\s*(?:source|\.)\s+(\S+)", line):
                plain = name.strip("\"';").replace("${HOME}", home).replace("$HOME", home)
                plain = os.path.join(home, plain[2:]) if plain.startswith("~/") else plain
                if os.path.isabs(plain) and plain != path and os.path.isfile(plain):
                    parts.append(sourced_text(plain, home, depth - 1))
    return "\n".join(parts)


def _has(here: World, program: str) -> bool:
    return any(os.access(os.path.join(d, program), os.X_OK) for d in here.path.split(os.pathsep))


def _in_home(here: World, name: str) -> str:
    return os.path.join(here.home, name)


def _bashrc(here: World) -> str:
    return _in_home(here, ".bashrc")


def _zshrc(here: World) -> str:
    return os.path.join(here.zdotdir, ".zshrc")


def _fish_config(here: World) -> str:
    return os.path.join(here.config, "fish", "config.fish")


def _advice(area: str, name: str, bad: str, good: str, change: Change) -> Advice:
    changes = (change,) if bad else ()
    fix = change.block
    return Advice(area=area, name=name, fix=fix, ok=not bad, text=bad or good, changes=changes)


# --- one function per file ------------------------------------------------------------------------


def _history(here: World, shell: str) -> list[Advice]:
    if shell == "bash":
        path, body, bad = _bashrc(here), BASH_HISTORY, bash_history_fault(here)
    elif shell == "zsh":
        path, body, bad = _zshrc(here), ZSH_HISTORY, zsh_history_fault(here)
    else:
        return []  # fish writes each command as it is run
    good = "each command is written at once: a killed shell keeps its history"
    change = Change(path=path, block="history", body=body)
    return [_advice("shell", shell, bad, good, change)]


def bash_history_fault(here: World) -> str:
    """Say why a killed bash would lose its history; empty if it would not."""
    text = sourced_text(_bashrc(here), here.home)
    if re.search(r"history\s+-a", text):
        return ""
    lost = "a killed shell loses its history"
    if re.search(r"shopt\s+-s\s+.*histappend", text):
        return f"histappend on, but `history -a` missing: {lost}"
    return f"history is written only when the shell ends: {lost}"


def zsh_history_fault(here: World) -> str:
    """Say why a killed zsh would lose its history; empty if it would not."""
    text = sourced_text(_zshrc(here), here.zdotdir).replace("_", "").lower()
    if not re.search(r"\bsavehist=[1-9]", text) and "savehist>=" not in text:
        return "SAVEHIST is not set: zsh keeps no history at all"
    if re.search(r"\b(setopt|set -o)\b[^\n]*\b(incappendhistory(time)?|sharehistory)\b", text):
        return ""
    return "INC_APPEND_HISTORY off: a killed shell loses its history"


def _inputrc(here: World) -> Advice:
    path = here.inputrc
    text = "\n".join(
        line for line in read_text(path).splitlines() if not line.lstrip().startswith("#")
    )
    bound = re.search(r'"\\e(\[|O)A"\s*:\s*"?history-(substring-)?search-backward', text)
    bad = "" if bound else "arrow-up prefix search not bound"

    # Without this head a new ~/.inputrc replaces the system's bindings for Home, End and Delete.
    head = "$include /etc/inputrc\n"
    change = Change(path=path, block="inputrc", body=INPUTRC, head=head)
    good = "arrow-up finds what begins with the typed words"
    return _advice("shell", "inputrc", bad, good, change)


def _editors(here: World) -> list[Advice]:
    found = []
    if _has(here, "nano"):
        found.append(_nano(here))
    if _has(here, "vim") or _has(here, "vi"):
        found.append(_vim(here))
    if _has(here, "nvim"):
        found.append(_neovim(here))
    if _has(here, "emacs"):
        found.append(_emacs(here))
    return found


def _last_match(pattern: str, text: str) -> str:
    found = re.findall(pattern, text, re.MULTILINE)
    return found[-1] if found else ""


def _nano(here: World) -> Advice:
    path = _first_existing(_in_home(here, ".nanorc"), os.path.join(here.config, "nano/nanorc"))
    state = _last_match(r"^\s*((?:un)?set)\s+locking\b", read_text(path))
    bad = "" if state == "set" else "without `set locking` unsaved edits are invisible outside tmux"
    change = Change(path=path, block="nano", body="set locking\n")
    return _advice("editor", "nano", bad, "locking on: unsaved edits are seen", change)


def _vim(here: World) -> Advice:
    path = _first_existing(
        _in_home(here, ".vimrc"),
        _in_home(here, ".vim/vimrc"),
        os.path.join(here.config, "vim/vimrc"),
    )
    return _swap(path, "vim", '"', "set swapfile\n")


def _neovim(here: World) -> Advice:
    folder = os.path.join(here.config, "nvim")
    path = _first_existing(os.path.join(folder, "init.lua"), os.path.join(folder, "init.vim"))
    if path.endswith(".lua"):
        return _swap(path, "nvim", "--", "vim.opt.swapfile = true\n")
    return _swap(path, "nvim", '"', "set swapfile\n")


def _swap(path: str, name: str, comment: str, body: str) -> Advice:
    vim = r"^\s*:?set?\s+(?:\S+\s+)*?(no(?:swapfile|swf)|swapfile|swf)\b"
    lua = r"^\s*vim\.(?:opt|o|bo|go)\.(swapfile\s*=\s*(?:true|false))"
    state = _last_match(lua if comment == "--" else vim, read_text(path))
    off = state.startswith("no") or state.endswith("false")
    bad = "swap files are off: unsaved edits are invisible" if off else ""
    change = Change(path=path, block=name, body=body, comment=comment)
    return _advice("editor", name, bad, "swap files on: unsaved edits are seen", change)


def _emacs(here: World) -> Advice:
    path = _first_existing(
        _in_home(here, ".emacs.d/init.el"), _in_home(here, ".emacs"), _in_home(here, ".emacs.el"),
        os.path.join(here.config, "emacs/init.el"),
    )  # fmt: skip
    state = _last_match(r"^[^;\n]*\bcreate-lockfiles\s+(nil|t)\b", read_text(path))
    bad = "create-lockfiles is nil: unsaved edits are invisible" if state == "nil" else ""
    change = Change(path=path, block="emacs", body="(setq create-lockfiles t)\n", comment=";;")
    return _advice("editor", "emacs", bad, "lock files on: unsaved edits are seen", change)


def _first_existing(*paths: str) -> str:
    return next((path for path in paths if os.path.lexists(path)), paths[0])


def _pdb(here: World) -> Advice:
    path = _in_home(here, ".pdbrc")
    text = read_text(path)
    bad = "" if "alias nl " in text else ("no aliases in ~/.pdbrc" if text else "no ~/.pdbrc")
    change = Change(path=path, block="pdb", body=PDBRC)
    good = "nl, sl: step and list; pd OBJECT: its attributes"
    return _advice("pdb", "pdbrc", bad, good, change)


# --- completion -----------------------------------------------------------------------------------


def _completion(here: World, shell: str, text: str) -> Advice:
    changes = {"bash": _bash_completion, "zsh": _zsh_completion, "fish": _fish_completion}
    wanted = changes[shell](here, text)
    bad = ""
    if fold(wanted):
        stale = os.path.exists(wanted[0].path)
        bad = "completion is of another version" if stale else "no completion"
    return Advice(
        area="shell", name=f"{shell} completion", fix="completion", ok=not bad,
        text=bad or "completion installed", changes=wanted if bad else (),
    )  # fmt: skip


def _quoted(here: World, path: str) -> str:
    inside = path.removeprefix(here.home + "/")
    return f'"$HOME/{inside}"' if inside != path else f'"{path}"'


def _bash_completion(here: World, text: str) -> tuple[Change, ...]:
    # Where bash-completion loads it when first wanted; the block serves shells without it.
    path = os.path.join(here.data, "bash-completion/completions/rl")
    body = f"complete -p rl >/dev/null 2>&1 || . {_quoted(here, path)}\n"
    block = Change(path=_bashrc(here), block="completion", body=body)
    return Change(path=path, body=text), block


def _zsh_completion(here: World, text: str) -> tuple[Change, ...]:
    path = os.path.join(here.data, "relaunch/completions/_rl")
    body = (
        "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }\n"
        f"source {_quoted(here, path)}\n"
    )
    block = Change(path=_zshrc(here), block="completion", body=body)
    return Change(path=path, body=text), block


def _fish_completion(here: World, text: str) -> tuple[Change, ...]:
    folder = os.path.join(here.config, "fish/completions")
    other = "complete -c relaunch -w rl\n"
    return (
        Change(path=os.path.join(folder, "rl.fish"), body=text),
        Change(path=os.path.join(folder, "relaunch.fish"), body=other),
    )
