"""One line -> a program: expand it, see which names it lacks, import them. Starts nothing."""
