"""Sees, and may refuse, the system calls of a program and of all it starts; without a debugger."""
