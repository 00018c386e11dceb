"""A small extract of a big data set: which rows, and a file of the same format."""
