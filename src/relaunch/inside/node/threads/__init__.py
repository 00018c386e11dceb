"""Hundreds of ranks as threads of one process: who does not meet the others is named at once."""
