"""`rl completion SHELL`: prints the static completion; nothing of ours runs when a shell starts."""

from __future__ import annotations

import sys

from relaunch.cli import draw

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
examples:
  rl doctor --fix completion              install it for the shells you use
  rl completion bash > ~/.local/share/bash-completion/completions/rl
  rl completion zsh > ~/.zfunc/_rl        in a folder of $fpath, before compinit
  rl completion fish > ~/.config/fish/completions/rl.fish
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Take the shell."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell to complete in")


def main(args: argparse.Namespace) -> int:
    """Print the file of that shell."""
    from relaunch.desk.complete import completion

    draw.say(completion(args.shell))
    if sys.stdout.isatty():
        draw.remark("rl: to install it: rl doctor --fix completion")
    return 0
