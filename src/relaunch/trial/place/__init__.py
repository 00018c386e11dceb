"""The world prepared for one trial and put back after it."""
