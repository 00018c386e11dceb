"""How each editor gives away that it holds text which is not on the disk."""
