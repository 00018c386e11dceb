"""Decides what to try next, and what follows from what was seen; it never runs anything."""
