"""Programs in a Slurm allocation that is held: what was asked for, who holds it, steps in it."""
