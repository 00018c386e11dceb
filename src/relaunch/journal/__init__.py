"""Remembers every trial: one directory each; everything else can be rebuilt from them."""
