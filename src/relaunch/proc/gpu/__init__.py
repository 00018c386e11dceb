"""GPU memory held by a process of ours, so that a program finds less of it free."""
