"""Sections of a program: how long each took, and what memory it had, took and kept."""
