"""Reads processes that run: who belongs together, what they use, where they are."""
