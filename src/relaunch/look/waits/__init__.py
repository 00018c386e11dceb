"""What the threads of a tree wait for, and who could end that; read from /proc, without ptrace."""
