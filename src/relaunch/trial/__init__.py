"""One trial: recipe in, outcome out. It does not remember: the journal does."""
