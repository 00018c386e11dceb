"""A limit of the memory of a program and all its processes, and the moment it is reached."""

STACKS = "stacks.txt"
"""In the folder of a trial: where all its threads were at its limit."""
