"""Which call failed: on which file, with how much space left, at which line, in which process."""
