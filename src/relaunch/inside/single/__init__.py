"""Has a program of many processes run in one: each of its processes is a thread that takes turns.

Everything here is in the user's process, and only where `--single` was asked for. Who starts a
process waits until its work is done, so that one thing happens at a time, as in one process; only
work that waits for others (a queue that is filled later, a barrier) goes on beside.
"""
