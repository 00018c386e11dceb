"""Keeps a call that failed, with its arguments: runs in the user's process, after the failure."""
