"""Random programs about rows of a matrix: passes that reduce, scan, compute and store them, block by block."""
