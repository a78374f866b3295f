"""Work that models do: kernels as their public users write them, beside torch eager and `torch.compile`."""
