"""Runs a kept call alone: in a process of ours, with the user's Python and modules."""
