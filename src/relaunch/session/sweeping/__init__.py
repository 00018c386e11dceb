"""Sweeping: which of many settings fail, and which setting explains it."""
