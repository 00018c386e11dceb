"""Loggers of the standard library that say when, where and which rank; and their levels."""
