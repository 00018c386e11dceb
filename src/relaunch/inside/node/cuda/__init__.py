"""torch.cuda without a GPU: tensors that say where they are, and stay in the memory of the CPU."""
