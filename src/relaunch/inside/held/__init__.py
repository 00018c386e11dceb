"""A program held where it first reads its input, or at its start; each fork goes on from there."""
