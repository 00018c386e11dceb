"""The command line: one module per verb, imported only when it is used."""
