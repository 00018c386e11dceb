"""A tokenizer of the same kind with a few hundred tokens: plain JSON work, no library needed."""
