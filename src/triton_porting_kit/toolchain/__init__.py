"""The libraries that the kit depends on: one module per library, which is imported nowhere else."""
