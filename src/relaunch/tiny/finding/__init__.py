"""Where a pattern of bytes lies: in files, cores, and the memory of a process."""
