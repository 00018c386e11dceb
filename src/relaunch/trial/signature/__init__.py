"""Turns what a program said and how it ended into the identity of its failure. Pure."""
