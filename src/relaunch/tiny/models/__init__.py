"""The same architecture in a megabyte: what is shrunk (pure), and the work in the user's Python."""
