"""The user's commits: only read, never written, and nothing is fetched over a network."""
