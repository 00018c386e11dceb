"""Finds the size from which on it fails, and how time and memory grow with it."""
