"""The use cases: trial, journal and settings, wired once for every way in."""
