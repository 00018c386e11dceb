"""Threads of a program, one at a time, in an order that a seed decides: races come every time."""
