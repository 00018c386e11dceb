"""Shapes that were seen, as comments: named, written, checked. Pure: from texts and numbers."""
