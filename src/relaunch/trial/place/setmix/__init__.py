"""Mixes of two config sets: what differs, in units that stay valid, and any part of it applied."""
