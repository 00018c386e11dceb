"""Which shapes the arrays of a program have, statement by statement, seen while it runs."""
