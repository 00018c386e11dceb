"""Ways to start the program other than plainly."""
