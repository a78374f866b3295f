"""The wheels that the kit stands on: one module per foreign library, imported nowhere else."""
