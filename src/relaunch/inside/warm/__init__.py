"""Runs in the user's process, under the user's Python, of a warm run: standard library only.

Loaded by path, as package `_relaunch_warm`: the user's environment need not have relaunch.
"""
