"""The person's desk: dotfiles, completion, and what works on this machine."""
