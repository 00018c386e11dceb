"""Probes seen from outside: what is asked of a program, and what its processes told."""
