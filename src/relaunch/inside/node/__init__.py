"""A node of GPUs that are not there: its ranks as forks or threads, torch.cuda on the CPU."""
