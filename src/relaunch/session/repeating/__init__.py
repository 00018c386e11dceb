"""Repeating: how often a program fails, how sure that is, and what provokes it."""
