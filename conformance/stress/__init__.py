"""Random Triton programs with an oracle: made from a seed, run, and shrunk where they fail."""
