"""A Python that waits at its start, with the libraries imported, to be forked into the program."""
