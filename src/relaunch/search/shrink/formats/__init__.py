"""The formats of what can be shrunk, each a module with `read(path, keep=())`."""
