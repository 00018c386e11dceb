"""Code of ours at a line of the user's program, put there without touching the user's files."""
