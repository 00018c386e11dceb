"""Code that runs in the user's process: standard library only, never breaks the program."""
