"""A folder that looks as if it lay on a small disk, and the ladder of ways to make one."""
