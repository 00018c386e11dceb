# mypy: ignore-errors
"""Plugins."""
