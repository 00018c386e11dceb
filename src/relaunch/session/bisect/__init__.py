"""Finds the commit that made the difference: ends, probes in checkouts, the search, the card."""
