"""Starts, streams and ends processes: the only room that does."""
